/* SPDX-License-Identifier: MIT */
/* runner.c: which key starts next, and how do the parts of the program begin and
 * end?
 *
 * One thread. A queue in memory needs no wq_fd(): only this thread adds keys, and
 * before each sleep it gets keys until there are none, and reads the next
 * deadline. That saves the system calls that keep the descriptor up to date. A
 * shared queue has one (store.c).
 */
#include "run/runner.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <wq/inspect.h>

#include "base/report.h"
#include "display/summary.h"
#include "log/pending.h"
#include "process/child.h"
#include "process/words.h"
#include "queue/open.h"

/* Open descriptors, for the limit of child_setup(). FILES_PER_RUN: our ends of
 * a run's pipes and, while it starts, the child's ends. OTHER_FILES: everything
 * else, including some clients of --listen. */
enum { FILES_PER_RUN = 4, OTHER_FILES = 64 };

/* How often --until-empty looks whether others still hold keys. */
#define UNTIL_EMPTY_INTERVAL WQ_MS(100)

/* ------------------------------------------------------- which is next? -- */

static void
on_wake(void *ctx)
{
    (void)ctx; /* before_sleep() does the work */
}

/* Set the timer to now + wait_ns; INT64_MAX if the sum would overflow. */
static void
wake_after(struct runner *runner, int64_t wait_ns)
{
    const int64_t now_ns = loop_refresh(runner->loop);

    loop_timer_set(runner->loop, &runner->wake,
                   wait_ns < INT64_MAX - now_ns ? now_ns + wait_ns : INT64_MAX,
                   on_wake, runner);
}

/* Is there a token for --rate? If not, a timer wakes us up when there is. */
static bool
has_token(struct runner *runner)
{
    runner->rate_limited = false;
    if (!runner->bucket || runner->token)
        return true;
    if (!runner->reserved)
        runner->reserved =
            wq_bucket_reserve(runner->bucket, &runner->reservation) == WQ_OK;
    const int64_t wait_ns = wq_reservation_delay(&runner->reservation);
    if (wait_ns > 0) {
        runner->rate_limited = true;
        wake_after(runner, wait_ns);
        return false;
    }
    runner->reserved = false;
    runner->token = true;
    return true;
}

/* May one more run start, if there is a key? */
static bool
may_start(const struct runner *runner)
{
    return runner->running < runner->max_running &&
           runner->phase < PHASE_DRAINING && !output_congested(runner->output);
}

static bool
has_key(struct runner *runner)
{
    return runner->options->shared ? store_has_key(runner)
                                   : wq_len(runner->q) > 0;
}

static wq_err
get_key(struct runner *runner, wq_item **item)
{
    return runner->options->shared ? store_get(runner, item)
                                   : wq_get_within(runner->q, 0, item);
}

/* Does a run need more than a key and a slot? */
static bool
has_conditions(const struct runner *runner)
{
    return runner->bucket || runner->options->load > 0 ||
           runner->options->memfree > 0;
}

static bool
is_pressed(struct runner *runner)
{
    runner->pressed =
        pressure_is_high(&runner->pressure, runner->loop, runner->options);
    return runner->pressed;
}

/* Starts the next key. False: none is READY, or none may start now. */
static bool
start_next(struct runner *runner)
{
    wq_item *item;

    if (!may_start(runner))
        return false;
    if (has_conditions(runner) &&
        (!has_key(runner) || is_pressed(runner) || !has_token(runner)))
        return false;
    const wq_err err = get_key(runner, &item);
    if (err == WQ_ETIMEDOUT)
        return false;
    struct slot *slot = err ? NULL : slot_take(runner, item);
    if (!slot) {
        report("cannot get a key: %s", wq_strerror(err ? err : WQ_ENOMEM));
        if (!err)
            (void)wq_finish(runner->q, item, wq_result_back());
        ending_fatal(runner, STATUS_ERROR);
        return false;
    }
    runner->token = false;
    slot_take_more(runner, slot);
    if (runner->options->dry_run)
        start_dry_run(runner, slot);
    else
        start_run(runner, slot);
    return true;
}

/* Does a key wait for a token or for the machine? A timer is set for that. */
static bool
is_held_up(const struct runner *runner)
{
    return runner->rate_limited || runner->pressed;
}

/* Sets a timer for the next deadline, if a run may start then. wq_read_stats()
 * makes keys READY whose deadlines have passed since the last get. If a key can
 * be handed out, the timer is set to now; --group-max may hold READY keys back. */
static void
wake_when_due(struct runner *runner)
{
    wq_stats stats = {.size = sizeof stats};
    int64_t  in_ns = WQ_FOREVER;

    if (is_held_up(runner) || !may_start(runner))
        return;
    if (wq_read_stats(runner->q, &stats) == WQ_OK)
        in_ns = stats.offered ? 0 : stats.next_ns;
    if (in_ns < WQ_FOREVER)
        wake_after(runner, in_ns);
    else
        loop_timer_clear(runner->loop, &runner->wake);
}

/* Likewise for a shared queue: its descriptor tells. --until-empty also ends
 * when other workers have finished their keys, which no descriptor tells. */
static void
wake_when_lit(struct runner *runner)
{
    store_watch(runner, !is_held_up(runner) && may_start(runner));
    if (!is_held_up(runner) && runner->running == 0 &&
        runner->phase == PHASE_FINISHING)
        wake_after(runner, UNTIL_EMPTY_INTERVAL);
}

static void
before_sleep(void *ctx)
{
    struct runner *runner = ctx;

    /* add.c only sets `fatal`: a drain closes the inputs, and the input that
     * calls add.c must not be closed then. Begin the drain here. */
    if (runner->fatal)
        ending_fatal(runner, runner->fatal);
    if (runner->options->shared) {
        store_flush(runner);
        finish_recorded(runner);
    }
    runner->rate_limited = runner->pressed = false;
    while (start_next(runner))
        ;
    if (ending_is_over(runner))
        loop_stop(runner->loop);
    else if (runner->options->shared)
        wake_when_lit(runner);
    else
        wake_when_due(runner);
}

/* --------------------------------------------------------------- signals -- */

static const int caught[] = {SIGCHLD, SIGINT,  SIGTERM, SIGHUP,
                             SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

static void
on_signal(void *ctx, int number)
{
    struct runner *runner = ctx;

    switch (number) {
    case SIGCHLD:
        finish_reaped(runner);
        break;
    case SIGUSR1:
        runner->max_running++;
        break;
    case SIGUSR2:
        if (runner->max_running > 1)
            runner->max_running--;
        break;
    default:
        ending_signal(runner, number);
    }
}

/* ------------------------------------------------------- start and end -- */

static bool
refuse(const char *what)
{
    report_errno("%s", what);
    return false;
}

static bool
refuse_queue(void)
{
    report("cannot create the queue: %s", wq_last_error());
    return false;
}

static bool
create_queue(struct runner *runner)
{
    const struct options *options = runner->options;
    const wq_metrics      sink =
        durations_sink(&runner->durations, runner->registry);

    if (options->group_by.set) {
        runner->groups = malloc(sizeof *runner->groups);
        if (!runner->groups)
            return refuse("--group-by");
        runner->groups->expression = &options->group_by;
    }
    runner->backoff = queue_backoff(&options->backoff);
    return wq_create(WQ_CONFIG(.name = options->name, .metrics = &sink,
                               .group = runner->groups ? groups_of : NULL,
                               .group_ctx = runner->groups,
                               .group_max_held = options->group_max,
                               .limiter = runner->backoff),
                     &runner->q) == WQ_OK ||
           refuse_queue();
}

static bool
open_queue(struct runner *runner)
{
    const struct options *options = runner->options;

    if (wq_registry_create(&runner->registry) != WQ_OK)
        return refuse_queue();
    if (!(options->shared ? store_open(runner) : create_queue(runner)))
        return false;
    if (options->rate.per_second > 0)
        runner->bucket = wq_bucket_create(options->rate.per_second,
                                          options->rate.burst, NULL);
    if (options->rate.per_second > 0 && !runner->bucket)
        return refuse("--rate: cannot create the limiter");
    return true;
}

/* Whoever pipes keys to `wq run --queue` expects that they are read. */
static void
warn_of_input(const struct options *options)
{
    struct stat in;

    if (options->verb == VERB_RUN && options->shared && !options->n_files &&
        !options->list && fstat(STDIN_FILENO, &in) == 0 &&
        (S_ISFIFO(in.st_mode) || S_ISREG(in.st_mode)))
        report("with --queue, standard input is not read; -a - reads it");
}

/* The length of a word of GNU parallel at `s` that wq does not have: {1}, {2.},
 * {..}, {/..}, {+/}, {=...=}; 0: there is none. */
static size_t
unknown_word(const char *s)
{
    const size_t digits = strspn(s + 1, "0123456789");
    const size_t plus = !digits && s[1] == '+';
    const char  *marks = s + 1 + digits + plus;
    const size_t n = strspn(marks, "./");
    const char  *end = strncmp(s, "{=", 2) == 0 ? strstr(s, "=}") : NULL;

    if (end)
        return (size_t)(end + 2 - s);
    if (marks[n] != '}' ||
        (!digits && !(plus && n) && !memmem(marks, n, "..", 2)))
        return 0;
    return (size_t)(marks + n + 1 - s);
}

/* Whoever comes from GNU parallel expects that they are replaced. Behind other
 * characters they are part of something else, such as ${1} or [a-z]{2}. */
static void
warn_of_words(const struct options *options)
{
    for (char **arg = options->command; *arg; arg++)
        for (const char *s = *arg; (s = strchr(s, '{')); s++) {
            const bool   alone = s == *arg || strchr(" \t/=:,-'\"", s[-1]);
            struct word  word;
            const bool   known = word_find(options, s, &word) == s;
            const size_t len = alone && !known ? unknown_word(s) : 0;
            if (len > 0 && strcmp(options->replace, "{}") == 0) {
                const bool column = strspn(s + 1, "0123456789") + 2 == len;
                report("'%s' is not replaced: %s", report_key(s, len),
                       column ? "columns need --colsep=REGEX or --key-column=N"
                              : "GNU parallel has this word, wq has not");
                return;
            }
        }
}

static bool
open_inputs(struct runner *runner)
{
    const struct options *options = runner->options;
    static const char    *stdin_only[] = {"-"};
    const char          **files = options->files;
    size_t                n = options->n_files;

    warn_of_input(options);
    warn_of_words(options);
    if (n == 0 && !options->list && !options->shared) {
        files = stdin_only;
        n = 1;
    }
    runner->inputs = calloc(n + 1, sizeof *runner->inputs);
    if (!runner->inputs)
        return refuse("cannot read input");
    for (size_t i = 0; i < n; i++) {
        if (!input_open(options, runner->loop, files[i], &runner->sink,
                        &runner->inputs[i]))
            return false;
        runner->n_inputs++;
        runner->open++;
    }
    if (!options->list)
        return true;
    runner->open++;
    return list_open(options, runner->loop, command_plain_env(runner->command),
                     &runner->sink, &runner->list);
}

/* Creates everything that can fail. COMMAND and the pending file are checked
 * early, before files are opened. */
static bool
begin(struct runner *runner, int *status)
{
    const struct options *options = runner->options;

    *status = STATUS_ERROR;
    runner->result_fd =
        child_setup(OTHER_FILES + FILES_PER_RUN * (uint64_t)options->slots);
    runner->loop = runner->result_fd < 0 ? NULL : loop_create();
    if (!runner->loop)
        return refuse("cannot start");
    if (!command_create(options, &runner->command, status))
        return false;
    *status = STATUS_ERROR;
    if ((options->pending_file && !pending_check(options->pending_file)) ||
        !pressure_check(options))
        return false;
    if (!loop_signals(runner->loop, caught, sizeof caught / sizeof *caught,
                      on_signal, runner))
        return refuse("cannot catch signals");
    loop_before_sleep(runner->loop, before_sleep, runner);
    return open_queue(runner) &&
           output_create(options, runner->loop, on_wake, runner,
                         &runner->output) &&
           joblog_open(&runner->joblog, options) &&
           events_open(&runner->events, options, runner->output) &&
           open_inputs(runner) &&
           progress_create(options, runner->loop, runner, &runner->progress) &&
           listen_create(options, runner->loop, runner, &runner->listener);
}

static void
close_all(struct runner *runner)
{
    listen_destroy(runner->listener);
    progress_destroy(runner->progress);
    for (size_t i = 0; i < runner->n_inputs; i++)
        input_close(runner->inputs[i]);
    list_close(runner->list);
    events_close(&runner->events);
    joblog_close(&runner->joblog);
    output_destroy(runner->output);
    if (runner->options->shared)
        store_close(runner);
    else
        wq_destroy(runner->q);
    wq_bucket_destroy(runner->bucket);
    wq_registry_destroy(runner->registry);
    command_destroy(runner->command);
    slots_free(runner);
    free(runner->groups);
    notes_fini(&runner->notes);
    keymap_fini(&runner->keymap);
    distinct_fini(&runner->settled);
    failures_fini(&runner->failures);
    free(runner->inputs);
    loop_destroy(runner->loop);
}

struct again {
    const struct distinct *settled;
    uint64_t               n;
};

static bool
count_again(void *ctx, wq_key key, const wq_key_info *info)
{
    struct again *again = ctx;

    (void)info;
    again->n += distinct_has(again->settled, key);
    return true;
}

/* How many of the keys that are left were settled before? */
static uint64_t
count_left_again(struct runner *runner)
{
    struct again again = {.settled = &runner->settled};

    if (!runner->options->shared)
        (void)wq_each(runner->q, 0, count_again, &again);
    return again.n;
}

/* What the user must give wq again to have the key run. */
static wq_key
line_of(void *ctx, wq_key key)
{
    const struct runner *runner = ctx;
    const struct note   *note = notes_find(&runner->notes, key);

    return note && note->line ? wq_bytes(note->line, note->line_len) : key;
}

/* Writes the pending file, the last event and the summary. */
static int
conclude(struct runner *runner, int status)
{
    const struct options *options = runner->options;
    struct view           view;
    char                  line[256];

    ending_close_inputs(runner, true);
    if (options->pending_file &&
        !pending_write(options->pending_file, runner->q, line_of, runner))
        status = STATUS_ERROR;
    view_take(runner, &view);
    view.left_again = count_left_again(runner);
    events_summary(&runner->events, &view, status < 0 ? 128 - status : status);
    progress_destroy(runner->progress);
    runner->progress = NULL;
    const bool quiet = options->quiet || options->dry_run || status == -SIGPIPE;
    if (options->summary || !quiet) {
        summary_failures(&runner->failures, options->joblog);
        report("%s", summary_line(&view, line, sizeof line));
    }
    return status;
}

/* The reader of the last event may be slow. Nothing is left to start, so the
 * loop ends when everything is written. */
static int
wait_for_output(struct runner *runner, int status)
{
    (void)loop_run(runner->loop);
    return status == STATUS_OK ? ending_status(runner) : status;
}

int
runner_main(const struct options *options)
{
    struct runner runner = {
        .options = options,
        .events.fd = -1,
        .joblog.fd = -1,
        .max_running = options->slots,
    };
    int status;

    add_connect(&runner);
    if (begin(&runner, &status)) {
        runner.started_ns = loop_now(runner.loop);
        runner.number = joblog_last(&runner.joblog);
        if (loop_run(runner.loop)) {
            status = conclude(&runner, ending_status(&runner));
            status = wait_for_output(&runner, status);
        } else {
            report_errno("cannot wait for events");
            status = STATUS_ERROR;
        }
    }
    close_all(&runner);
    return status;
}
