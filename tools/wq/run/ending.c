/* SPDX-License-Identifier: MIT */
/* ending.c: when does `wq run` stop, and how?
 *
 *     RUNNING ──► FINISHING          the input has ended: run the keys that are left
 *        │            │
 *        └──────┬─────┘
 *               ▼    signal, --halt, exit 255, COMMAND cannot be started
 *            DRAINING                start nothing more, let runs finish
 *               │    2nd signal, --halt=now, --drain-timeout, stdout is closed
 *               ▼
 *            STOPPING                the stop signal to all process groups
 *               │    3rd signal, --kill-after
 *               ▼
 *            KILLING                 SIGKILL to all process groups
 *
 * With --pending-file, regular files are read to their end before the program
 * ends, but not when KILLING.
 * When no run is left, the program ends; keys still in the queue are left.
 */
#include <signal.h>
#include <unistd.h>

#include <wq/inspect.h>

#include "base/report.h"
#include "options/values.h"
#include "process/child.h"
#include "run/runner.h"

/* --------------------------------------------------------------- phases -- */

static void
enter(struct runner *runner, enum phase phase, const char *why)
{
    runner->phase = phase;
    events_phase(&runner->events, phase, why);
}

static void
kill_run(struct runner *runner, struct run *run)
{
    loop_timer_clear(runner->loop, &run->limit);
    run->killed = true;
    child_signal(run->pid, SIGKILL);
}

static void
on_kill_after(void *ctx)
{
    struct run *run = ctx;

    run->killed = true;
    child_signal(run->pid, SIGKILL);
}

void
ending_stop_run(struct runner *runner, struct run *run)
{
    if (run->stopping)
        return;
    run->stopping = true;
    child_signal(run->pid, runner->options->stop_signal);
    child_signal(run->pid, SIGCONT); /* a stopped process does not receive it */
    loop_timer_set(runner->loop, &run->limit,
                   loop_now(runner->loop) + runner->options->kill_after_ns,
                   on_kill_after, run);
}

/* Must the pending file list the keys that were not read yet? */
static bool
needs_rest(const struct runner *runner)
{
    return runner->options->pending_file && !runner->add_failed;
}

/* True: it was closed. */
static bool
close_input(struct runner *runner, struct input *input, bool all)
{
    if (!all && needs_rest(runner)) {
        input_read_rest(input);
        if (!input_is_over(input))
            return false;
    }
    runner->unread |= input_is_unread(input);
    input_close(input);
    return true;
}

void
ending_close_inputs(struct runner *runner, bool all)
{
    for (size_t i = 0; i < runner->n_inputs; i++)
        if (runner->inputs[i] && close_input(runner, runner->inputs[i], all))
            runner->inputs[i] = NULL;
    if (needs_rest(runner))
        list_read_rest(runner->list);
    runner->unread |= list_is_unread(runner->list);
    list_close(runner->list);
    runner->list = NULL;
}

/* Are the keys known that the pending file must list? */
static bool
rest_is_read(const struct runner *runner)
{
    for (size_t i = 0; i < runner->n_inputs; i++)
        if (runner->inputs[i] && !input_is_over(runner->inputs[i]))
            return false;
    return true;
}

static void
stop(struct runner *runner, const char *why)
{
    if (runner->phase >= PHASE_STOPPING)
        return;
    enter(runner, PHASE_STOPPING, why);
    slots_each(runner, ending_stop_run);
}

static void
kill_all(struct runner *runner, const char *why)
{
    enter(runner, PHASE_KILLING, why);
    slots_each(runner, kill_run);
}

static void
on_overdue(void *ctx)
{
    struct runner *runner = ctx;

    runner->overdue = true;
    stop(runner, "drain timeout");
}

void
ending_drain(struct runner *runner, const char *why)
{
    if (runner->phase >= PHASE_DRAINING)
        return;
    enter(runner, PHASE_DRAINING, why);
    ending_close_inputs(runner, false);
    if (runner->options->drain_timeout_ns >= 0)
        loop_timer_set(runner->loop, &runner->drain_limit,
                       loop_now(runner->loop) +
                           runner->options->drain_timeout_ns,
                       on_overdue, runner);
}

void
ending_fatal(struct runner *runner, int status)
{
    if (!runner->fatal)
        runner->fatal = status;
    ending_drain(runner, "error");
}

/* ------------------------------------------------------------------ halt -- */

/* With P%, at least so many keys: the first failure is 100% of all. */
#define PERCENT_OF_LEAST 3

static bool
halt_is_met(const struct runner *runner, const struct halt *halt)
{
    const uint64_t settled = runner->counts.ok + runner->counts.failed;
    const uint64_t counted = halt->what == HALT_FAIL ? runner->counts.failed
                             : halt->what == HALT_SUCCESS ? runner->counts.ok
                                                          : settled;

    if (halt->count)
        return counted >= halt->count;
    uint64_t all = settled;
    if (halt->what == HALT_DONE) { /* keys that are not settled count, too */
        wq_stats stats = {.size = sizeof stats};
        if (runner->open > 0 || wq_read_stats(runner->q, &stats) != WQ_OK)
            return false;
        all += stats.known;
    }
    return counted >= PERCENT_OF_LEAST &&
           (double)counted * 100 >= halt->percent * (double)all;
}

void
ending_check_halt(struct runner *runner)
{
    const struct halt *halt = &runner->options->halt;

    if (halt->when == HALT_NEVER || runner->halted ||
        !halt_is_met(runner, halt))
        return;
    runner->halted = true;
    runner->succeeded = halt->what == HALT_SUCCESS;
    ending_drain(runner, "halt");
    if (halt->when == HALT_NOW)
        stop(runner, "halt");
}

/* --------------------------------------------------------------- signals -- */

static void
stop_process(struct runner *runner, struct run *run)
{
    (void)runner;
    child_signal(run->pid, SIGTSTP);
}

static void
continue_process(struct runner *runner, struct run *run)
{
    (void)runner;
    child_signal(run->pid, SIGCONT);
}

/* Hides the display, stops the runs, then ourselves. The time during which runs
 * are stopped does not count for their timeouts. */
static void
suspend(struct runner *runner)
{
    const int64_t before = loop_refresh(runner->loop);

    progress_suspend(runner->progress);
    slots_each(runner, stop_process);
    child_signal(list_pid(runner->list), SIGTSTP);
    (void)kill(getpid(), SIGSTOP);

    const int64_t pause = loop_refresh(runner->loop) - before;
    for (size_t i = 0; i < runner->n_slots; i++) {
        struct timer *limit = &runner->slots[i].slot->run.limit;
        if (runner->slots[i].pid > 0 && limit->set)
            loop_timer_set(runner->loop, limit, limit->at_ns + pause,
                           limit->due, limit->ctx);
    }
    progress_resume(runner->progress);
}

static void
resume(struct runner *runner)
{
    slots_each(runner, continue_process);
    child_signal(list_pid(runner->list), SIGCONT);
}

/* People at a terminal may think that nothing happens. */
static void
report_drain(const struct runner *runner, int number)
{
    if (runner->options->quiet || runner->running == 0 ||
        runner->options->drain_timeout_ns == 0)
        return;
    const bool one = runner->running == 1;
    report("draining %zu run%s; %s %s", runner->running, one ? "" : "s",
           number == SIGINT ? "Ctrl-C again to stop" : "another signal stops",
           one ? "it" : "them");
}

void
ending_signal(struct runner *runner, int number)
{
    if (number == SIGTSTP) {
        suspend(runner);
    } else if (number == SIGCONT) {
        resume(runner);
    } else {
        const char *name = value_signal_name(number);
        if (!runner->signal)
            runner->signal = number;
        if (runner->phase < PHASE_DRAINING) {
            report_drain(runner, number);
            ending_drain(runner, name);
        } else if (runner->phase == PHASE_DRAINING) {
            stop(runner, name);
        } else {
            kill_all(runner, name);
        }
    }
}

/* ------------------------------------------------------------------- end -- */

/* A shared queue may know keys that need no run (DEAD, in a cooldown). */
static bool
queue_is_empty(struct runner *runner)
{
    wq_stats stats = {.size = sizeof stats};

    if (runner->batch.n > 0 || store_is_away(runner) ||
        wq_read_stats(runner->q, &stats) != WQ_OK)
        return false;
    return runner->options->shared
               ? stats.ready + stats.held + stats.waiting == 0
               : stats.known == 0;
}

/* Will the program end by itself, when all work is done? */
static bool
is_finite(const struct options *options)
{
    return !options->follow && (!options->shared || options->until_empty);
}

/* A shared queue: the store does not answer, and we shall not wait for it. */
static void
give_up(struct runner *runner)
{
    finish_abandoned(runner);
    if (runner->batch.n == 0)
        return;
    report("cannot add %s and %zu more: the queue does not answer",
           report_key(batch_first(&runner->batch).data,
                      batch_first(&runner->batch).len),
           runner->batch.n - 1);
    runner->batch.n = 0;
    ending_fatal(runner, STATUS_ERROR);
}

bool
ending_is_over(struct runner *runner)
{
    if (output_failed(runner->output) || joblog_failed(&runner->joblog) ||
        events_failed(&runner->events))
        ending_fatal(runner, STATUS_ERROR);
    if (output_broken(runner->output) && runner->phase < PHASE_STOPPING) {
        ending_drain(runner, "stdout was closed");
        stop(runner, "stdout was closed");
    }
    if (runner->phase == PHASE_RUNNING && runner->open == 0 &&
        is_finite(runner->options))
        enter(runner, PHASE_FINISHING, "end of input");
    if (runner->phase == PHASE_KILLING || runner->overdue || runner->gone)
        give_up(runner);
    if (runner->running > 0 || runner->batch.n > 0)
        return false;
    if (runner->phase == PHASE_FINISHING && !queue_is_empty(runner))
        return false;
    if (runner->phase < PHASE_KILLING && needs_rest(runner) &&
        !rest_is_read(runner))
        return false;
    if (runner->phase != PHASE_RUNNING)
        output_settle_all(runner->output);
    /* The output of finished runs is written even if its reader is slow, until
     * the last signal or the drain timeout. */
    return runner->phase != PHASE_RUNNING &&
           (output_idle(runner->output) || output_broken(runner->output) ||
            runner->phase == PHASE_KILLING || runner->overdue);
}

int
ending_status(struct runner *runner)
{
    const bool cut = runner->open > 0 || !queue_is_empty(runner);

    if (runner->fatal)
        return runner->fatal;
    if (output_broken(runner->output))
        return -SIGPIPE;
    if (runner->overdue)
        return STATUS_STOPPED;
    if (runner->signal)
        return -runner->signal;
    if (runner->succeeded)
        return STATUS_OK; /* no more successes were asked for */
    if (runner->halted && cut)
        return STATUS_STOPPED;
    if (runner->input_failed)
        return STATUS_ERROR;
    return runner->counts.failed > 0 ? STATUS_FAILED : STATUS_OK;
}
