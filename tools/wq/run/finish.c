/* SPDX-License-Identifier: MIT */
/* finish.c: what happens when a run is over? */
#include <string.h>

#include "base/report.h"
#include "process/child.h"
#include "run/runner.h"

/* Exit codes with a meaning of their own. */
enum {
    EXIT_TEMPFAIL = 75,  /* sysexits.h: try later; not an error */
    EXIT_STOP_ALL = 255, /* stop the program, as xargs does */
};

/* --------------------------------------------------------------- the key -- */

/* The key is settled: its failures are forgotten. */
static void
settle(struct runner *runner, const struct run *run)
{
    if (run->attempt > 1)
        (void)wq_forget(runner->q, run->key);
}

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

static void
retry(struct runner *runner, struct run *run)
{
    run->outcome = OUTCOME_RETRY;
    runner->counts.retries++;
    runner->retrying++;
    if (run->signal == 0 && run->exit_code == EXIT_TEMPFAIL && !run->timed_out)
        runner->counts.tempfails++;
    if (run->result.requeue) {
        /* The failure counts, although its backoff is not used. */
        (void)wq_limiter_when(runner->backoff, run->key);
        run->retry_in_ns = add_again(runner, run, run->result.requeue_ns);
    } else {
        run->retry_in_ns = add_again(runner, run, -1);
    }
}

static void
succeed(struct runner *runner, struct run *run)
{
    run->outcome = OUTCOME_OK;
    runner->counts.ok++;
    settle(runner, run);
    if (run->result.requeue) {
        run->outcome = OUTCOME_REQUEUE;
        run->retry_in_ns = add_again(runner, run, run->result.requeue_ns);
    }
}

static void
fail(struct runner *runner, struct run *run)
{
    run->outcome = OUTCOME_FAILED;
    runner->counts.failed++;
    settle(runner, run);
}

/* Decides what happens to the key, which is still HELD. */
static void
decide(struct runner *runner, struct run *run)
{
    if (run->timed_out)
        runner->counts.timeouts++;
    if (run->signal == 0 && run->exit_code == 0 && !run->timed_out) {
        succeed(runner, run);
    } else if (run->stopping && !run->timed_out) {
        run->outcome = OUTCOME_STOPPED;
        (void)add_again(runner, run, 0);
    } else if (is_permanent(runner, run)) {
        fail(runner, run);
    } else {
        retry(runner, run);
    }
}

/* --------------------------------------------------------------- the run -- */

/* Reports a key that failed for good. */
static void
report_failure(const struct runner *runner, const struct run *run)
{
    const char *key;

    if (run->outcome != OUTCOME_FAILED || runner->options->quiet)
        return;
    key = report_key(run->key.data, run->key.len);
    if (run->timed_out)
        report("%s: failed: timed out (attempt %u)", key, run->attempt);
    else if (run->signal)
        report("%s: failed: killed by SIG%s (attempt %u)", key,
               value_signal_name(run->signal), run->attempt);
    else
        report("%s: failed: exit %d (attempt %u)", key, run->exit_code,
               run->attempt);
}

void
finish_run(struct runner *runner, struct run *run)
{
    run->ended_ns = loop_now(runner->loop);
    loop_timer_clear(runner->loop, &run->limit);
    result_finish(&run->result, run);
    decide(runner, run);
    output_finish(runner->output, run);
    joblog_finished(&runner->joblog, run);
    events_finished(&runner->events, run);
    report_failure(runner, run);

    (void)wq_done(runner->q, run->item); /* cannot fail: the item is HELD */
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
