/* SPDX-License-Identifier: MIT */
/* start.c: how does a run begin? */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/report.h"
#include "base/text.h"
#include "process/child.h"
#include "run/runner.h"

/* Exit codes of a run that could not be started. */
enum { EXIT_CANNOT_RUN = 126, EXIT_NOT_FOUND = 127 };

/* What the child gets. */
struct start {
    struct child_start how;
    int                fds[2];
};

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
print_command(struct runner *runner, const struct run *run)
{
    struct wq__text text = {0};

    command_print(&text, run->argv);
    if (runner->options->dry_run) {
        output_line(runner->output, text.data ? text.data : "", text.len);
    } else {
        wq__text_char(&text, '\n');
        display_hide();
        const ssize_t n = write(STDERR_FILENO, text.data, text.len);
        (void)n; /* an error of stderr cannot be reported */
    }
    wq__text_fini(&text);
}

/* Is a limit of processes, descriptors or memory reached? */
static bool
is_limit(int err)
{
    return err == EAGAIN || err == ENOMEM || err == EMFILE || err == ENFILE;
}

/* Other runs hold the resources and will release them. So the key has not
 * failed, and from now on fewer runs are allowed at the same time. */
static void
run_fewer(struct runner *runner, struct run *run)
{
    runner->max_running = runner->running - 1;
    run->stopping = true; /* so that the key is added again */
    report_errno("from now on at most %zu runs at the same time",
                 runner->max_running);
}

/* Would it fail for every key? Else only this key has failed. */
static bool
is_hopeless(const struct runner *runner, int err, bool prepared)
{
    if (!prepared)
        return !is_limit(err);
    return command_is_fixed(runner->command) && err != E2BIG && !is_limit(err);
}

/* `prepared`: exec failed; else its pipes or arguments could not be made. */
static void
not_started(struct runner *runner, struct run *run, int err, bool prepared)
{
    const bool absent = prepared && (err == ENOENT || err == ENOTDIR);

    run->exit_code = absent ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
    run->for_good = err == E2BIG;
    errno = err;
    if (is_limit(err) && runner->running > 1) {
        run_fewer(runner, run);
    } else {
        report_errno("%s: cannot %s '%s'",
                     report_key(run->key.data, run->key.len),
                     prepared ? "run" : "prepare a run of",
                     run->argv ? run->argv[0] : runner->options->command[0]);
    }
    if (is_hopeless(runner, err, prepared)) {
        run->stopping = true; /* so that the key is left */
        ending_fatal(runner, prepared ? run->exit_code : STATUS_ERROR);
    }
    finish_run(runner, run);
}

/* Makes what the child gets. False: errno says why; finish_run() frees it. */
static bool
prepare(struct runner *runner, struct slot *slot, struct start *start)
{
    struct run *run = &slot->run;

    start->how = (struct child_start){
        .out = -1, .err = -1, .result = -1, .result_as = runner->result_fd};
    run->result.fd = -1;
    if (!command_prepare(runner->command, run, &slot->arguments,
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
begin(struct runner *runner, struct run *run, int64_t now_wall_ns)
{
    run->attempt = wq_num_requeues(runner->q, run->key) + 1;
    run->number = runner->number;
    run->started_ns = loop_now(runner->loop);
    run->started_wall_ns = now_wall_ns;
    if (run->attempt > 1 && runner->retrying > 0)
        runner->retrying--;
}

void
start_run(struct runner *runner, struct slot *slot)
{
    struct run  *run = &slot->run;
    struct start start = {.fds = {-1, -1}};

    runner->number++;
    run->started_wall_ns = wall_ns();
    for (struct run *r = run; r; r = r->rest)
        begin(runner, r, run->started_wall_ns);
    runner->running++;

    const bool prepared = prepare(runner, slot, &start);
    if (prepared && runner->options->verbose)
        print_command(runner, run);
    const pid_t pid = prepared ? child_start(&start.how) : -1;
    const int   err = errno;
    output_started(runner->output, run);
    if (start.how.result >= 0)
        (void)close(start.how.result);
    if (pid < 0) {
        not_started(runner, run, err, prepared);
        return;
    }
    runner->slots[run->slot - 1].pid = pid;
    runner->counts.runs++;
    if (runner->options->timeout_ns)
        loop_timer_set(runner->loop, &run->limit,
                       run->started_ns + runner->options->timeout_ns,
                       on_timeout, run);
    for (struct run *r = run; r; r = r->rest) {
        r->pid = pid;
        events_started(&runner->events, r);
    }
}

void
start_dry_run(struct runner *runner, struct slot *slot)
{
    struct run *run = &slot->run;
    const char *path;
    char      **envp;

    run->attempt = 1;
    run->number = ++runner->number;
    if (command_prepare(runner->command, run, &slot->arguments,
                        runner->result_fd, &path, &envp))
        print_command(runner, run);
    for (struct run *r = run; r; r = r->rest) {
        (void)wq_done(runner->q, r->item);
        runner->counts.ok++;
    }
    slot_release(runner, run);
}
