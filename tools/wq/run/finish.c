/* SPDX-License-Identifier: MIT */
/* finish.c: what happens when a run is over?
 *
 *     reaped ──► judge ──► record ──► conclude
 *                            │ ▲
 *                            ▼ │ again later
 *                       the store of a shared queue does not answer
 *
 * A run occupies its slot until the queue knows its result.
 */
#include <string.h>

#include "base/report.h"
#include "process/child.h"
#include "run/runner.h"

/* Exit codes with a meaning of their own. */
enum {
    EXIT_TEMPFAIL = 75,  /* sysexits.h: try later; not an error */
    EXIT_STOP_ALL = 255, /* stop the program, as xargs does */
};

/* ----------------------------------------------------------------- judge -- */

static bool
is_permanent(const struct runner *runner, const struct run *run)
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

/* How has it ended? */
static enum outcome
judge(const struct runner *runner, const struct run *run)
{
    if (run->signal == 0 && run->exit_code == 0 && !run->timed_out)
        return run->result.requeue ? OUTCOME_REQUEUE : OUTCOME_OK;
    if (run->stopping && !run->timed_out)
        return OUTCOME_STOPPED;
    return is_permanent(runner, run) ? OUTCOME_FAILED : OUTCOME_RETRY;
}

/* ------------------------------------------- record: a queue in memory -- */

/* Adds the key again after `after_ns`; below 0: after its backoff. Returns how
 * long it waits: 0 if it was added meanwhile. */
static int64_t
add_again(struct runner *runner, const struct run *run, int64_t after_ns)
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
        report("out of memory: cannot retry %s",
               report_key(run->key.data, run->key.len));
        ending_fatal(runner, STATUS_ERROR);
        return 0;
    }
    if (wq_read_key(runner->q, run->key, &info) != WQ_OK || info.wait_ns < 0)
        return 0;
    return info.wait_ns;
}

static void
retry(struct runner *runner, struct run *run)
{
    if (run->result.requeue) {
        /* The failure counts, although its backoff is not used. */
        (void)wq_limiter_when(runner->backoff, run->key);
        run->retry_in_ns = add_again(runner, run, run->result.requeue_ns);
    } else {
        run->retry_in_ns = add_again(runner, run, -1);
    }
}

static void
record_in_memory(struct runner *runner, struct run *run)
{
    const bool settled =
        run->outcome != OUTCOME_RETRY && run->outcome != OUTCOME_STOPPED;

    if (settled && run->attempt > 1)
        (void)wq_forget(runner->q, run->key);
    if (run->outcome == OUTCOME_REQUEUE)
        run->retry_in_ns = add_again(runner, run, run->result.requeue_ns);
    else if (run->outcome == OUTCOME_STOPPED)
        (void)add_again(runner, run, 0);
    else if (run->outcome == OUTCOME_RETRY)
        retry(runner, run);
    (void)wq_done(runner->q, run->item); /* cannot fail: the item is HELD */
}

/* -------------------------------------------------------------- conclude -- */

static void
count(struct runner *runner, const struct run *run)
{
    struct counts *counts = &runner->counts;

    if (run->timed_out)
        counts->timeouts++;
    if (run->outcome == OUTCOME_OK || run->outcome == OUTCOME_REQUEUE)
        counts->ok++;
    if (run->outcome == OUTCOME_FAILED)
        counts->failed++;
    if (run->outcome != OUTCOME_RETRY)
        return;
    counts->retries++;
    runner->retrying++;
    if (run->signal == 0 && run->exit_code == EXIT_TEMPFAIL && !run->timed_out)
        counts->tempfails++;
}

/* Reports a key that failed for good. */
static void
report_failure(const struct runner *runner, const struct run *run)
{
    char reason[FAILURE_REASON];

    if (run->outcome != OUTCOME_FAILED || runner->options->quiet)
        return;
    const struct failure failure = failure_of(run);
    report("%s: failed: %s (attempt %u)",
           report_key(run->key.data, run->key.len),
           failure_reason(&failure, reason), run->attempt);
}

static void
conclude(struct runner *runner, struct run *run)
{
    count(runner, run);
    output_finish(runner->output, run);
    failures_note(&runner->failures, run);
    joblog_finished(&runner->joblog, run);
    events_finished(&runner->events, run);
    report_failure(runner, run);

    slot_release(runner, run);
    runner->running--;
    if (run->exit_code == EXIT_STOP_ALL && run->signal == 0 &&
        runner->phase < PHASE_DRAINING) {
        report("%s exited with 255: stopping",
               report_key(run->argv[0], strlen(run->argv[0])));
        runner->halted = true;
        ending_drain(runner, "exit 255");
    }
    if (run->outcome != OUTCOME_RETRY)
        ending_check_halt(runner);
}

/* --------------------------------------------------------------- the run -- */

/* Conclude the run if the queue knows its result now. */
static void
record(struct runner *runner, struct run *run)
{
    if (!runner->options->shared)
        record_in_memory(runner, run);
    else if (!store_result(runner, run))
        return;
    conclude(runner, run);
}

void
finish_run(struct runner *runner, struct run *run)
{
    run->ended_ns = loop_now(runner->loop);
    loop_timer_clear(runner->loop, &run->limit);
    result_finish(&run->result, run);
    run->outcome = judge(runner, run);
    slot_end(runner, run);
    record(runner, run);
}

static void
record_again(struct runner *runner, struct run *run)
{
    record(runner, run);
}

void
finish_recorded(struct runner *runner)
{
    slots_each_ended(runner, record_again);
}

static void
abandon(struct runner *runner, struct run *run)
{
    report("%s: cannot store its result: it will run again",
           report_key(run->key.data, run->key.len));
    run->outcome = OUTCOME_STOPPED;
    conclude(runner, run);
}

void
finish_abandoned(struct runner *runner)
{
    slots_each_ended(runner, abandon);
}

void
finish_reaped(struct runner *runner)
{
    int   exit_code, number;
    pid_t pid;

    while ((pid = child_reap(&exit_code, &number))) {
        struct run *run = slot_find(runner, pid);
        if (run) {
            run->exit_code = exit_code;
            run->signal = number;
            finish_run(runner, run);
        } else {
            (void)list_reaped(runner->list, pid, exit_code, number);
        }
    }
}
