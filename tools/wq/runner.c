/* SPDX-License-Identifier: MIT */
/* runner.c: which key runs when, and what then?
 *
 * One thread. The queue's own descriptor, wq_fd(), is not needed: all that adds
 * keys happens in this loop, and before each sleep it is asked for keys once
 * more, and when the next deadline comes. That saves the system calls with
 * which a queue keeps its descriptor up to date.
 */
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <wq/inspect.h>

#include "backoff.h"
#include "child.h"
#include "pending.h"
#include "summary.h"
#include "tell.h"

/* Exit codes that mean something to us. */
enum {
    EXIT_TEMPFAIL = 75,    /* sysexits.h: try later; that is not an error */
    EXIT_STOP_ALL = 255,   /* as for xargs */
    EXIT_CANNOT_RUN = 126, /* said by us, for a run that did not start */
    EXIT_NOT_FOUND = 127,  /* likewise */
};

/* Descriptors: our ends of a run's pipes, and while it is started the child's;
 * everything else, with some clients of --listen. */
enum { FILES_OF_A_RUN = 4, FILES_OF_OURS = 64 };

/* ------------------------------------------------------------- keys come -- */

/* How a key is added that says `after_ns` (-1: it does not). One run serves
 * all adds that come before it begins, and a retry that the key waits for. */
static wq_add_options
how_to_add(const struct options *options, int64_t after_ns, int priority)
{
    wq_add_options how = {.size = sizeof how, .priority = priority};

    if (after_ns < 0 && options->debounce_ns) {
        how.debounce_ns = options->debounce_ns;
        how.max_wait_ns = options->debounce_max_ns;
    } else {
        how.after_ns = after_ns < 0 ? options->after_ns : after_ns;
        how.waiting = WQ_IF_WAITING_MERGE;
    }
    return how;
}

static void
add(struct runner *runner, wq_key key, int64_t after_ns, int priority)
{
    wq_add_options how = how_to_add(runner->options, after_ns, priority);
    wq_added       done;

    how.results = &done;
    const wq_err err = wq_add_one(runner->q, key, &how);
    if (err) {
        tell("cannot add %s: %s", tell_key(key.data, key.len),
             wq_strerror(err));
        runner->failed++;
        runner->fatal = STATUS_ERROR; /* seen before the loop sleeps */
        return;
    }
    runner->adds++;
    if (done != WQ_ADDED_NEW && done != WQ_ADDED_DIRTY &&
        done != WQ_ADDED_SCHEDULED)
        runner->merged++;
    events_added(runner->events, key, done, priority,
                 how.debounce_ns ? how.debounce_ns : how.after_ns);
}

static void
on_key(void *ctx, const void *data, size_t len, int64_t after_ns,
       bool prioritized, int priority)
{
    struct runner *runner = ctx;
    const wq_key   key = {data, len};

    if (joblog_skips(runner->joblog, key)) {
        runner->adds++;
        runner->skipped++;
        events_skipped(runner->events, key);
    } else {
        add(runner, key, after_ns,
            prioritized ? priority : runner->options->priority);
    }
}

static void
on_bad(void *ctx)
{
    struct runner *runner = ctx;

    runner->bad++;
    runner->failed++;
}

static void
on_ended(void *ctx, bool failed)
{
    struct runner *runner = ctx;

    runner->open--;
    if (failed)
        runner->input_failed = true;
}

static void
on_result_add(void *ctx, struct run *run, const void *data, size_t len)
{
    struct runner *runner = ctx;

    add(runner, (wq_key){data, len}, -1,
        run->result.prioritized ? run->result.priority
                                : runner->options->priority);
}

/* ---------------------------------------------------------------- places -- */

/* Room for one more place. */
static bool
grow(struct runner *runner)
{
    if (runner->n_places < runner->room)
        return true;
    const size_t room = runner->room ? 2 * runner->room : 8;
    void *places = realloc(runner->places, room * sizeof *runner->places);
    if (places)
        runner->places = places;
    void *pids = realloc(runner->pids, room * sizeof *runner->pids);
    if (pids)
        runner->pids = pids;
    void *shown = realloc(runner->shown, room * sizeof *runner->shown);
    if (shown)
        runner->shown = shown;
    if (!places || !pids || !shown)
        return false;
    runner->room = room;
    return true;
}

/* The free place with the lowest number; NULL: no memory. */
static struct place *
take_place(struct runner *runner)
{
    size_t i = runner->free_from;

    while (i < runner->n_places && runner->pids[i])
        i++;
    if (i == runner->n_places) {
        struct place *place = grow(runner) ? calloc(1, sizeof *place) : NULL;
        if (!place)
            return NULL;
        runner->places[i] = place;
        runner->pids[i] = 0;
        runner->n_places++;
    }
    runner->free_from = i + 1;
    runner->places[i]->run = (struct run){.slot = (unsigned)i + 1};
    return runner->places[i];
}

static void
leave_place(struct runner *runner, const struct run *run)
{
    const size_t i = run->slot - 1;

    runner->pids[i] = 0;
    if (i < runner->free_from)
        runner->free_from = i;
}

static struct run *
find_run(struct runner *runner, pid_t pid)
{
    for (size_t i = 0; i < runner->n_places; i++)
        if (runner->pids[i] == pid)
            return &runner->places[i]->run;
    return NULL;
}

/* -------------------------------------------------------- a run is over -- */

/* Nothing is to be done for the key any more, for now. */
static void
settle(struct runner *runner, const struct run *run)
{
    if (run->attempt > 1)
        (void)wq_forget(runner->q, run->key);
}

/* Brings the key back after `after_ns`; below 0: when its limiter says so.
 * Returns how long it has to wait: 0 if it came again meanwhile. */
static int64_t
bring_back(struct runner *runner, const struct run *run, int64_t after_ns)
{
    wq_add_options how = {
        .size = sizeof how,
        .priority =
            run->result.prioritized ? run->result.priority : run->priority,
        .waiting = WQ_IF_WAITING_MERGE,
        .rate_limited = after_ns < 0,
        .after_ns = after_ns < 0 ? 0 : after_ns,
    };
    wq_key_info info = {.size = sizeof info};

    if (wq_add_one(runner->q, run->key, &how) != WQ_OK) {
        tell("no memory to retry %s", tell_key(run->key.data, run->key.len));
        ending_fatal(runner, STATUS_ERROR);
        return 0;
    }
    if (wq_read_key(runner->q, run->key, &info) != WQ_OK || info.wait_ns < 0)
        return 0;
    return info.wait_ns;
}

static bool
is_for_good(const struct runner *runner, const struct run *run)
{
    const struct options *options = runner->options;

    if (run->for_good)
        return true;
    if (run->signal == 0 && !run->timed_out &&
        (run->exit_code == EXIT_STOP_ALL ||
         options->no_retry.has[run->exit_code & 255]))
        return true;
    return options->retries != RETRIES_FOREVER &&
           run->attempt > options->retries;
}

static void
retry(struct runner *runner, struct run *run)
{
    run->outcome = OUTCOME_RETRY;
    runner->retries++;
    runner->retrying++;
    if (run->signal == 0 && run->exit_code == EXIT_TEMPFAIL && !run->timed_out)
        runner->tempfails++;
    if (run->result.requeue) {
        (void)wq_limiter_when(runner->backoff, run->key); /* one failure more */
        run->retry_in_ns = bring_back(runner, run, run->result.requeue_ns);
    } else {
        run->retry_in_ns = bring_back(runner, run, -1);
    }
}

static void
succeed(struct runner *runner, struct run *run)
{
    run->outcome = OUTCOME_OK;
    runner->ok++;
    settle(runner, run);
    if (run->result.requeue) {
        run->outcome = OUTCOME_REQUEUE;
        run->retry_in_ns = bring_back(runner, run, run->result.requeue_ns);
    }
}

static void
fail(struct runner *runner, struct run *run)
{
    run->outcome = OUTCOME_FAILED;
    runner->failed++;
    settle(runner, run);
}

/* Decides what becomes of the key, which is still held. */
static void
judge(struct runner *runner, struct run *run)
{
    if (run->timed_out)
        runner->timeouts++;
    if (run->signal == 0 && run->exit_code == 0 && !run->timed_out) {
        succeed(runner, run);
    } else if (run->stopping && !run->timed_out) {
        run->outcome = OUTCOME_STOPPED;
        (void)bring_back(runner, run, 0);
    } else if (is_for_good(runner, run)) {
        fail(runner, run);
    } else {
        retry(runner, run);
    }
}

/* Children that were killed by somebody else, and failures for good, are worth
 * a word; what they wrote themselves tells the rest. */
static void
tell_failure(const struct runner *runner, const struct run *run)
{
    const char *key;

    if (run->outcome != OUTCOME_FAILED || runner->options->quiet)
        return;
    key = tell_key(run->key.data, run->key.len);
    if (run->timed_out)
        tell("%s: failed: timed out (attempt %u)", key, run->attempt);
    else if (run->signal)
        tell("%s: failed: killed by SIG%s (attempt %u)", key,
             value_signal_name(run->signal), run->attempt);
    else
        tell("%s: failed: exit %d (attempt %u)", key, run->exit_code,
             run->attempt);
}

/* The run is over, or could not be started. */
static void
finish(struct runner *runner, struct run *run)
{
    run->ended_ns = loop_now(runner->loop);
    loop_timer_clear(runner->loop, &run->limit);
    result_finish(&run->result, run);
    judge(runner, run);
    output_finish(runner->output, run);
    joblog_finished(runner->joblog, run);
    events_finished(runner->events, run);
    tell_failure(runner, run);

    (void)wq_done(runner->q, run->item); /* it is on loan: cannot fail */
    leave_place(runner, run);
    runner->running--;
    if (run->exit_code == EXIT_STOP_ALL && run->signal == 0 &&
        runner->phase < PHASE_DRAINING) {
        tell("%s: exited with 255: stopping",
             tell_key(run->argv[0], strlen(run->argv[0])));
        runner->halted = true;
        ending_drain(runner, "exit 255");
    }
    if (run->outcome != OUTCOME_RETRY)
        ending_check_halt(runner);
}

static void
reap(struct runner *runner)
{
    int   exit_code, number;
    pid_t pid;

    while ((pid = child_reap(&exit_code, &number))) {
        struct run *run = find_run(runner, pid);
        if (run) {
            run->exit_code = exit_code;
            run->signal = number;
            finish(runner, run);
        } else {
            (void)list_reaped(runner->list, pid, exit_code, number);
        }
    }
}

/* -------------------------------------------------------- a run begins -- */

struct start {
    struct child_start how;
    int                fds[2];
};

/* A run that takes too long is told so once. */
static void
on_timeout(void *ctx)
{
    struct run    *run = ctx;
    struct runner *runner = run->result.sink->ctx;

    run->timed_out = true;
    ending_stop_run(runner, run);
}

static int64_t
wall_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Prints the command that is (or would be) run. */
static void
say_command(struct runner *runner, const struct run *run)
{
    struct text text = {0};

    command_say(&text, run->argv);
    if (runner->options->dry_run) {
        output_line(runner->output, text.data ? text.data : "", text.len);
    } else {
        text_add(&text, "\n", 1);
        tell_clear();
        const ssize_t n = write(STDERR_FILENO, text.data, text.len);
        (void)n; /* stderr is gone: nobody wants to know */
    }
    text_fini(&text);
}

/* Is the machine full, of processes, descriptors or memory? */
static bool
is_full(int err)
{
    return err == EAGAIN || err == ENOMEM || err == EMFILE || err == ENFILE;
}

/* Others run, so there will be room again: the key has not failed, and from
 * now on there are fewer runs at a time. */
static void
run_fewer(struct runner *runner, struct run *run)
{
    runner->slots = runner->running - 1;
    run->stopping = true; /* the key comes back */
    tell_errno("no more than %zu runs at the same time from now on",
               runner->slots);
}

/* Could others be started? Then only this key has failed. */
static bool
is_hopeless(const struct runner *runner, int err, bool prepared)
{
    if (!prepared)
        return !is_full(err);
    return command_is_fixed(runner->command) && err != E2BIG && !is_full(err);
}

/* `prepared`: exec said no; else it was us, who could not give it what it
 * needs. */
static void
not_started(struct runner *runner, struct run *run, int err, bool prepared)
{
    const bool absent = prepared && (err == ENOENT || err == ENOTDIR);

    run->exit_code = absent ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
    run->for_good = err == E2BIG;
    errno = err;
    if (is_full(err) && runner->running > 1) {
        run_fewer(runner, run);
    } else {
        tell_errno("%s: cannot %s '%s'", tell_key(run->key.data, run->key.len),
                   prepared ? "run" : "prepare a run of",
                   run->argv ? run->argv[0] : runner->options->command[0]);
    }
    if (is_hopeless(runner, err, prepared)) {
        run->stopping = true; /* the key is left */
        ending_fatal(runner, prepared ? run->exit_code : STATUS_ERROR);
    }
    runner->pids[run->slot - 1] = 0;
    finish(runner, run);
}

/* Makes what the child gets. False: errno says why; finish() undoes it. */
static bool
prepare(struct runner *runner, struct place *place, struct start *start)
{
    struct run *run = &place->run;

    start->how = (struct child_start){
        .out = -1, .err = -1, .result = -1, .result_as = runner->result_fd};
    run->result.fd = -1;
    if (!command_prepare(runner->command, run, &place->arguments,
                         runner->result_fd, &start->how.path,
                         &start->how.envp) ||
        !result_open(&run->result, runner->loop, run, &runner->result_sink,
                     &start->how.result))
        return false;
    if (!output_begin(runner->output, run, start->fds))
        return false;
    start->how.argv = run->argv;
    start->how.out = start->fds[0];
    start->how.err = start->fds[1];
    return true;
}

static void
start_run(struct runner *runner, struct place *place, wq_item *item)
{
    struct run  *run = &place->run;
    struct start start = {.fds = {-1, -1}};

    run->item = item;
    run->key = item->key;
    run->priority = item->priority;
    run->attempt = wq_num_requeues(runner->q, item->key) + 1;
    run->number = ++runner->number;
    run->started_ns = loop_now(runner->loop);
    run->started_wall_ns = wall_ns();
    runner->running++;
    if (run->attempt > 1 && runner->retrying > 0)
        runner->retrying--;

    const bool prepared = prepare(runner, place, &start);
    if (prepared && runner->options->verbose)
        say_command(runner, run);
    const pid_t pid = prepared ? child_start(&start.how) : -1;
    const int   err = errno;
    output_started(runner->output, run);
    if (start.how.result >= 0)
        (void)close(start.how.result);
    if (pid < 0) {
        not_started(runner, run, err, prepared);
        return;
    }
    run->pid = pid;
    runner->pids[run->slot - 1] = pid;
    runner->runs++;
    if (runner->options->timeout_ns)
        loop_timer_set(runner->loop, &run->limit,
                       run->started_ns + runner->options->timeout_ns,
                       on_timeout, run);
    events_started(runner->events, run);
}

/* --dry-run: what would be run is printed, and has succeeded. */
static void
pretend(struct runner *runner, struct place *place, wq_item *item)
{
    struct run *run = &place->run;
    const char *path;
    char      **envp;

    run->item = item;
    run->key = item->key;
    run->attempt = 1;
    if (command_prepare(runner->command, run, &place->arguments,
                        runner->result_fd, &path, &envp))
        say_command(runner, run);
    (void)wq_done(runner->q, item);
    leave_place(runner, run);
    runner->ok++;
}

/* ---------------------------------------------------- which one is next? -- */

static void
on_wake(void *ctx)
{
    (void)ctx; /* the loop looks for work before it sleeps */
}

/* A wait may be too long for the clock. */
static void
wake_after(struct runner *runner, int64_t wait_ns)
{
    const int64_t now_ns = loop_refresh(runner->loop);

    loop_timer_set(runner->loop, &runner->wake,
                   wait_ns < INT64_MAX - now_ns ? now_ns + wait_ns : INT64_MAX,
                   on_wake, runner);
}

/* Is there a token of the --rate? If not, we are woken when there is. */
static bool
has_token(struct runner *runner)
{
    runner->paced = false;
    if (!runner->bucket || runner->token)
        return true;
    if (!runner->reserved)
        runner->reserved =
            wq_bucket_reserve(runner->bucket, &runner->promise) == WQ_OK;
    const int64_t wait_ns = wq_reservation_delay(&runner->promise);
    if (wait_ns > 0) {
        runner->paced = true;
        wake_after(runner, wait_ns);
        return false;
    }
    runner->reserved = false;
    runner->token = true;
    return true;
}

/* Gives the next key a place. False: none is ready, or there is no place. */
static bool
start_next(struct runner *runner)
{
    wq_item *item;

    if (runner->running >= runner->slots || runner->phase >= PHASE_DRAINING ||
        output_congested(runner->output))
        return false;
    if (runner->bucket && (wq_len(runner->q) == 0 || !has_token(runner)))
        return false;
    const wq_err err = wq_get_within(runner->q, 0, &item);
    if (err == WQ_ETIMEDOUT)
        return false;
    struct place *place = err ? NULL : take_place(runner);
    if (!place) {
        tell("cannot take a key: %s", wq_strerror(err ? err : WQ_ENOMEM));
        if (!err && wq_add(runner->q, item->key) == WQ_OK)
            (void)wq_done(runner->q, item);
        ending_fatal(runner, STATUS_ERROR);
        return false;
    }
    runner->token = false;
    if (runner->options->dry_run)
        pretend(runner, place, item);
    else
        start_run(runner, place, item);
    return true;
}

/* Who waits for a time? Only of interest while there is a place for it. Asking
 * makes READY what has become due since the queue was last asked for a key: it
 * waits for nothing any more. */
static void
wake_when_due(struct runner *runner)
{
    wq_stats counts = {.size = sizeof counts};
    int64_t  in_ns = WQ_FOREVER;

    if (runner->paced || runner->running >= runner->slots ||
        runner->phase >= PHASE_DRAINING || output_congested(runner->output))
        return;
    if (wq_read_stats(runner->q, &counts) == WQ_OK)
        in_ns = counts.ready ? 0 : counts.next_ns;
    if (in_ns < WQ_FOREVER)
        wake_after(runner, in_ns);
    else
        loop_timer_clear(runner->loop, &runner->wake);
}

static void
before_sleep(void *ctx)
{
    struct runner *runner = ctx;

    if (runner->fatal)
        ending_fatal(runner, runner->fatal);
    runner->paced = false;
    while (start_next(runner))
        ;
    if (ending_is_here(runner))
        loop_stop(runner->loop);
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
        reap(runner);
        break;
    case SIGUSR1:
        runner->slots++;
        break;
    case SIGUSR2:
        if (runner->slots > 1)
            runner->slots--;
        break;
    default:
        ending_signal(runner, number);
    }
}

/* ----------------------------------------------------- beginning and end -- */

static bool
refuse(const char *what)
{
    tell_errno("%s", what);
    return false;
}

static bool
refuse_queue(void)
{
    tell("cannot make the queue: %s", wq_last_error());
    return false;
}

static bool
open_queue(struct runner *runner)
{
    const struct options *options = runner->options;

    if (wq_registry_create(&runner->registry) != WQ_OK)
        return refuse_queue();
    runner->backoff = backoff_create(&options->backoff);
    if (!runner->backoff)
        return refuse("cannot make the queue");
    if (wq_create(WQ_CONFIG(.name = options->name,
                            .metrics = wq_registry_sink(runner->registry),
                            .limiter = runner->backoff),
                  &runner->q) != WQ_OK)
        return refuse_queue();
    if (options->rate.per_second > 0)
        runner->bucket = wq_bucket_create(options->rate.per_second,
                                          options->rate.burst, NULL);
    if (options->rate.per_second > 0 && !runner->bucket)
        return refuse("cannot make the --rate");
    return true;
}

static bool
open_inputs(struct runner *runner)
{
    const struct options *options = runner->options;
    static const char    *stdin_only[] = {"-"};
    const char          **files = options->files;
    size_t                n = options->n_files;

    if (n == 0 && !options->list) {
        files = stdin_only;
        n = 1;
    }
    runner->inputs = calloc(n + 1, sizeof *runner->inputs);
    if (!runner->inputs)
        return refuse("cannot read");
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

/* All that can fail, in the order in which a user wants to hear of it. */
static bool
begin(struct runner *runner, int *status)
{
    const struct options *options = runner->options;

    *status = STATUS_ERROR;
    runner->result_fd =
        child_setup(FILES_OF_OURS + FILES_OF_A_RUN * (uint64_t)options->slots);
    runner->loop = runner->result_fd < 0 ? NULL : loop_create();
    if (!runner->loop)
        return refuse("cannot start");
    if (!command_create(options, &runner->command, status))
        return false;
    *status = STATUS_ERROR;
    if (options->pending_file && !pending_check(options->pending_file))
        return false;
    if (!loop_signals(runner->loop, caught, sizeof caught / sizeof *caught,
                      on_signal, runner))
        return refuse("cannot catch signals");
    loop_before_sleep(runner->loop, before_sleep, runner);
    return open_queue(runner) &&
           output_create(options, runner->loop, on_wake, runner,
                         &runner->output) &&
           joblog_open(options, &runner->joblog) &&
           events_create(options, runner->output, &runner->events) &&
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
    events_destroy(runner->events);
    joblog_close(runner->joblog);
    output_destroy(runner->output);
    wq_destroy(runner->q);
    wq_bucket_destroy(runner->bucket);
    wq_registry_destroy(runner->registry);
    command_destroy(runner->command);
    for (size_t i = 0; i < runner->n_places; i++) {
        arguments_fini(&runner->places[i]->arguments);
        free(runner->places[i]);
    }
    free(runner->places);
    free(runner->pids);
    free(runner->shown);
    free(runner->inputs);
    loop_destroy(runner->loop);
}

/* The display goes, then the last words. */
static int
say_goodbye(struct runner *runner, int status)
{
    const struct options *options = runner->options;
    struct view           view;
    char                  line[256];

    if (options->pending_file &&
        !pending_write(options->pending_file, runner->q))
        status = STATUS_ERROR;
    view_take(runner, &view);
    events_summary(runner->events, &view, status < 0 ? 128 - status : status);
    progress_destroy(runner->progress);
    runner->progress = NULL;
    const bool quiet = options->quiet || options->dry_run || status == -SIGPIPE;
    if (options->summary || !quiet)
        tell("%s", summary_line(&view, line, sizeof line));
    return status;
}

/* The last event may have to wait for who reads it. Nothing is left to be
 * started, so the loop ends with that. */
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
        .slots = options->slots,
    };
    int status;

    runner.sink = (struct input_sink){on_key, on_bad, on_ended, &runner};
    runner.result_sink = (struct result_sink){on_result_add, &runner};
    if (begin(&runner, &status)) {
        runner.started_ns = loop_now(runner.loop);
        runner.number = joblog_last(runner.joblog);
        if (loop_run(runner.loop)) {
            status = say_goodbye(&runner, ending_status(&runner));
            status = wait_for_output(&runner, status);
        } else {
            tell_errno("cannot wait");
            status = STATUS_ERROR;
        }
    }
    close_all(&runner);
    return status;
}
