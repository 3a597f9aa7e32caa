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
#include <stdio.h>
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
    if (run->restarting)
        return OUTCOME_RESTARTED;
    if (run->signal == 0 && run->exit_code == 0 && !run->timed_out)
        return run->result.requeue ? OUTCOME_REQUEUE : OUTCOME_OK;
    if (run->stopping && !run->timed_out)
        return OUTCOME_STOPPED;
    return is_permanent(runner, run) ? OUTCOME_FAILED : OUTCOME_RETRY;
}

/* Is this the end of what the key was added for? */
static bool
is_settled(const struct run *run)
{
    return run->outcome != OUTCOME_RETRY && run->outcome != OUTCOME_STOPPED &&
           run->outcome != OUTCOME_RESTARTED;
}

/* ------------------------------------------- record: a queue in memory -- */

/* Adds the key again after `after_ns`; below 0: after its backoff. `waiting` says
 * what becomes of adds that came meanwhile. Returns how long it waits. */
static int64_t
add_again(struct runner *runner, const struct run *run, int64_t after_ns,
          wq_if_waiting waiting)
{
    wq_add_options how = {
        .size = sizeof how,
        .priority =
            run->result.prioritized ? run->result.priority : run->priority,
        .waiting = waiting,
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

/* An add that came meanwhile must not shorten the backoff: the retry covers it.
 */
static void
retry(struct runner *runner, struct run *run)
{
    const wq_if_waiting waiting = runner->options->retry_on_add
                                      ? WQ_IF_WAITING_MERGE
                                      : WQ_IF_WAITING_REPLACE;

    if (run->result.requeue) {
        /* The failure counts, although its backoff is not used. */
        (void)wq_limiter_when(runner->backoff, run->key);
        run->retry_in_ns =
            add_again(runner, run, run->result.requeue_ns, waiting);
    } else {
        run->retry_in_ns = add_again(runner, run, -1, waiting);
    }
}

/* The note of its key. NULL: out of memory, which ends the program. */
static struct note *
note_of(struct runner *runner, const struct run *run)
{
    struct note *note = notes_get(&runner->notes, run->key);

    if (!note) {
        report("out of memory: cannot remember %s",
               report_key(run->key.data, run->key.len));
        ending_fatal(runner, STATUS_ERROR);
    }
    return note;
}

/* --once: adds of the key since the run began do not count. */
static void
remember(struct runner *runner, const struct run *run)
{
    struct note *note = note_of(runner, run);

    if (!note)
        return;
    note->succeeded = true;
    note_drop_line(note);
    if (note->ticket)
        output_settle(runner->output, note->ticket);
    note->ticket = 0;
    (void)wq_remove(runner->q, run->key);
}

/* --keep-order: the next run of the key has the same place. */
static void
keep_ticket(struct runner *runner, const struct run *run)
{
    struct note *note = note_of(runner, run);

    if (!note)
        return;
    if (note->ticket) /* it was added meanwhile: one run for both */
        output_settle(runner->output, note->ticket);
    note->ticket = run->ticket;
}

/* Nothing more is to be known of a key that is settled, unless it was added
 * meanwhile. */
static void
forget(struct runner *runner, const struct run *run)
{
    struct note *note = notes_find(&runner->notes, run->key);

    if (note && !note->succeeded && !note->ticket && note->lines == run->lines)
        notes_drop(&runner->notes, note);
}

static void
record_in_memory(struct runner *runner, struct run *run)
{
    const bool settled = is_settled(run);

    if (runner->options->once && run->outcome == OUTCOME_OK)
        remember(runner, run);
    if (run->outcome == OUTCOME_OK || run->outcome == OUTCOME_FAILED)
        forget(runner, run);

    if (!settled && run->ticket)
        keep_ticket(runner, run);
    if (settled && run->attempt > 1)
        (void)wq_forget(runner->q, run->key);
    if (run->outcome == OUTCOME_REQUEUE)
        run->retry_in_ns =
            add_again(runner, run, run->result.requeue_ns, WQ_IF_WAITING_MERGE);
    else if (run->outcome == OUTCOME_STOPPED)
        (void)add_again(runner, run, 0, WQ_IF_WAITING_MERGE);
    else if (run->outcome == OUTCOME_RETRY)
        retry(runner, run);
    (void)wq_done(runner->q, run->item); /* cannot fail: the item is HELD */
}

/* -------------------------------------------------------------- conclude -- */

static bool
is_tempfail(const struct run *run)
{
    return run->signal == 0 && run->exit_code == EXIT_TEMPFAIL &&
           !run->timed_out;
}

static void
count(struct runner *runner, const struct run *run)
{
    struct counts *counts = &runner->counts;

    if (run->outcome == OUTCOME_OK || run->outcome == OUTCOME_REQUEUE)
        counts->ok++;
    if (run->outcome == OUTCOME_FAILED)
        counts->failed++;
    if (run->outcome == OUTCOME_OK || run->outcome == OUTCOME_REQUEUE ||
        run->outcome == OUTCOME_FAILED)
        distinct_add(&runner->settled, run->key);
    if (run->outcome != OUTCOME_RETRY)
        return;
    counts->retries++;
    runner->retrying++;
    if (is_tempfail(run))
        counts->tempfails++;
}

/* At most MAX_REPORTS retries at once, then one a second: thousands of keys may
 * fail for the same reason. */
static bool
may_report_retry(struct runner *runner)
{
    enum { MAX_REPORTS = 10 };
    const int64_t now_ns = loop_now(runner->loop);
    const int64_t more = runner->reports_ns
                             ? (now_ns - runner->reports_ns) / WQ_SECONDS(1)
                             : MAX_REPORTS;

    if (more > 0) {
        runner->reports_ns = now_ns;
        runner->reports = runner->reports + more < MAX_REPORTS
                              ? runner->reports + (unsigned)more
                              : MAX_REPORTS;
    }
    if (runner->reports > 0)
        return runner->reports--;
    runner->unreported++;
    return false;
}

/* The first failure of a key: a user who only sees that nothing happens must
 * know that a retry will. */
static void
report_retry(struct runner *runner, const struct run *run)
{
    const unsigned       retries = runner->options->retries;
    const struct failure failure = failure_of(run);
    char reason[FAILURE_REASON], most[16] = "inf", time[16], more[48] = "";

    if (run->attempt > 1 || !may_report_retry(runner))
        return;
    if (retries != RETRIES_FOREVER)
        (void)snprintf(most, sizeof most, "%u", retries);
    if (runner->unreported)
        (void)snprintf(more, sizeof more, " (%llu more failures)",
                       (unsigned long long)runner->unreported);
    runner->unreported = 0;
    report("%s: %s; retry 1 of %s in %s%s",
           report_key(run->key.data, run->key.len),
           failure_reason(&failure, reason), most,
           report_time(run->retry_in_ns, time), more);
}

/* Exit 75 is not reported: the handler has asked for a retry. */
static void
report_failure(struct runner *runner, const struct run *run)
{
    char reason[FAILURE_REASON];

    if (runner->options->quiet)
        return;
    if (run->outcome == OUTCOME_RETRY && !is_tempfail(run))
        report_retry(runner, run);
    if (run->outcome != OUTCOME_FAILED)
        return;
    const struct failure failure = failure_of(run);
    report("%s: failed: %s (attempt %u)",
           report_key(run->key.data, run->key.len),
           failure_reason(&failure, reason), run->attempt);
}

static void
conclude_key(struct runner *runner, const struct run *run)
{
    count(runner, run);
    failures_note(&runner->failures, run);
    joblog_finished(&runner->joblog, run);
    events_finished(&runner->events, run);
    report_failure(runner, run);
}

static void
conclude(struct runner *runner, struct run *run)
{
    bool settled = false;

    runner->counts.timeouts += run->timed_out;
    runner->counts.restarts += run->restarting;
    output_finish(runner->output, run);
    for (struct run *r = run; r; r = r->rest) {
        if (r != run) {
            memcpy(r->err_line, run->err_line, run->err_len);
            r->err_len = run->err_len;
        }
        conclude_key(runner, r);
        settled |= is_settled(r);
        if (r->ticket && is_settled(r))
            output_settle(runner->output, r->ticket);
    }
    slot_release(runner, run);
    runner->running--;
    if (run->exit_code == EXIT_STOP_ALL && run->signal == 0 &&
        !run->restarting && runner->phase < PHASE_DRAINING) {
        report("%s exited with 255: stopping",
               report_key(run->argv[0], strlen(run->argv[0])));
        runner->halted = true;
        ending_drain(runner, "exit 255");
    }
    if (settled)
        ending_check_halt(runner);
}

/* --------------------------------------------------------------- the run -- */

/* Conclude the run if the queue knows its result now. Runs of shared queues have
 * one key. */
static void
record(struct runner *runner, struct run *run)
{
    if (runner->options->shared && !store_result(runner, run))
        return;
    for (struct run *r = run; r && !runner->options->shared; r = r->rest)
        record_in_memory(runner, r);
    conclude(runner, run);
}

/* The result of the process is that of each key. */
static void
copy_result(struct run *to, const struct run *from)
{
    to->exit_code = from->exit_code;
    to->signal = from->signal;
    to->timed_out = from->timed_out;
    to->for_good = from->for_good;
    to->stopping = from->stopping;
}

void
finish_run(struct runner *runner, struct run *run)
{
    run->ended_ns = loop_now(runner->loop);
    loop_timer_clear(runner->loop, &run->limit);
    result_finish(&run->result, run);
    if ((run->signal || run->exit_code) && output_lost_reader(runner->output))
        run->stopping = true; /* so that the key is left */
    run->outcome = judge(runner, run);
    for (struct run *r = run->rest; r; r = r->rest) {
        r->ended_ns = run->ended_ns;
        r->result = run->result; /* which is closed */
        copy_result(r, run);
        r->outcome = judge(runner, r);
    }
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
    report("%s: cannot store its result%s",
           report_key(run->key.data, run->key.len),
           runner->gone ? "" : ": it will run again");
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
