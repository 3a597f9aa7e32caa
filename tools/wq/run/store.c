/* SPDX-License-Identifier: MIT */
/* store.c: what is different if the queue is shared?
 *
 * The store of a shared queue can be away, and holds can be lost. A call that
 * fails because of the store is reported (outage.h), and repeated: after a delay
 * that grows with each failure, all that is left to do is tried again
 * (before_sleep() in runner.c): keys to add, results to store, keys to get.
 * Nothing is lost meanwhile: keys wait in the batch, ended runs in their slots.
 * If the file of the queue was deleted or replaced, it never answers again: then
 * the program ends, when the runs that are left have.
 *
 * A hold that is lost makes another worker run the key. So our run is stopped,
 * and its result does not count.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/report.h"
#include "queue/open.h"
#include "run/runner.h"

/* The delay after the first failure of a series, and the longest. */
#define FIRST_DELAY WQ_MS(100)
#define LONGEST_DELAY WQ_SECONDS(5)

static void
on_wake(void *ctx)
{
    (void)ctx; /* before_sleep() does the work */
}

/* ------------------------------------------------------- the store is away -- */

static bool
is_transient(wq_err err)
{
    return err == WQ_EAWAY || err == WQ_EIO || err == WQ_ENOMEM;
}

bool
store_is_away(const struct runner *runner)
{
    return runner->retry.set;
}

/* before_sleep() begins the drain: this may be called while a run ends. */
static void
end_without_store(struct runner *runner, const char *what, wq_err err)
{
    report("cannot %s: %s", what, queue_error(err));
    runner->gone = true;
    runner->fatal = STATUS_ERROR;
}

static void
report_failure(struct runner *runner, const char *what, wq_err err)
{
    const char *cause = queue_error(err);

    if (runner->gone)
        return; /* reported already */
    if (place_is_gone(&runner->place))
        end_without_store(runner, what, err);
    else if (outage_report(&runner->outage, loop_refresh(runner->loop), cause))
        report("cannot %s: %s; trying again", what, cause);
}

/* The call returned `err`. Returns false if it is to be repeated later. */
static bool
answered(struct runner *runner, const char *what, wq_err err)
{
    if (err == WQ_ELOST)
        return true; /* a lease is over: known without the store */
    if (!is_transient(err)) {
        if (outage_end(&runner->outage))
            report("the queue answers again");
        runner->delay_ns = 0;
        return true;
    }
    report_failure(runner, what, err);
    runner->delay_ns = !runner->delay_ns ? FIRST_DELAY
                       : runner->delay_ns < LONGEST_DELAY / 2
                           ? 2 * runner->delay_ns
                           : LONGEST_DELAY;
    loop_timer_set(runner->loop, &runner->retry,
                   loop_refresh(runner->loop) + runner->delay_ns, on_wake,
                   runner);
    return false;
}

/* -------------------------------------------------------------- get a key -- */

/* Asking the descriptor costs less than asking the store. After a call that
 * failed it says nothing: only another call finds out. */
bool
store_has_key(const struct runner *runner)
{
    struct pollfd fd = {.fd = runner->ready.fd, .events = POLLIN};

    return !store_is_away(runner) && (runner->delay_ns || poll(&fd, 1, 0) > 0);
}

wq_err
store_get(struct runner *runner, wq_item **out)
{
    if (!store_has_key(runner))
        return WQ_ETIMEDOUT;
    const wq_err err = wq_get_within(runner->q, 0, out);
    return answered(runner, "get a key", err) ? err : WQ_ETIMEDOUT;
}

void
store_watch(struct runner *runner, bool wanted)
{
    wanted = wanted && !store_is_away(runner);
    if (runner->watching != wanted)
        loop_rewatch(runner->loop, &runner->ready, wanted ? EPOLLIN : 0);
    runner->watching = wanted;
}

/* --------------------------------------------------------------- add keys -- */

void
store_flush(struct runner *runner)
{
    struct batch *batch = &runner->batch;

    if (batch->n == 0 || store_is_away(runner))
        return;
    const wq_err err = batch_add(batch, runner->q, add_done, runner);
    if (!answered(runner, "add keys", err) || !err)
        return;
    queue_report(runner->options, "add", batch_first(batch), err);
    ending_fatal(runner, STATUS_ERROR);
    batch_fini(batch);
    batch->options = runner->options;
}

/* ---------------------------------------------------------- store results -- */

/* The failure counts, but the key runs again after the time that the run has
 * asked for, also if it was added meanwhile. Two adds, then the hold is to be ended. The second one only counts,
 * as the key has a deadline, or needs a run already. */
static wq_err
count_and_defer(struct runner *runner, const struct run *run)
{
    wq_added       added;
    wq_add_options how = {
        .size = sizeof how,
        .priority =
            run->result.prioritized ? run->result.priority : run->priority,
        .waiting = runner->options->retry_on_add ? WQ_IF_WAITING_MERGE
                                                 : WQ_IF_WAITING_REPLACE,
        .after_ns = run->result.requeue_ns,
        .results = &added,
    };
    const wq_err err = wq_add_one(runner->q, run->key, &how);

    if (err)
        return err;
    how.after_ns = 0;
    how.rate_limited = true;
    how.waiting = WQ_IF_WAITING_MERGE;
    if (added != WQ_ADDED_DIRTY && added != WQ_ADDED_MERGED &&
        added != WQ_ADDED_RAISED)
        how.waiting = WQ_IF_WAITING_IGNORE;
    return wq_add_one(runner->q, run->key, &how);
}

static wq_result
result_of(const struct run *run)
{
    wq_result result = wq_result_done();

    if (run->outcome == OUTCOME_REQUEUE)
        result = wq_result_after(run->result.requeue_ns);
    else if (run->outcome == OUTCOME_STOPPED)
        result = wq_result_back();
    else if (run->outcome == OUTCOME_FAILED)
        result = wq_result_bury();
    else if (run->outcome == OUTCOME_RETRY)
        result = wq_result_retry();
    result.prioritized = run->result.prioritized;
    result.priority = run->result.priority;
    return result;
}

static wq_err
finish(struct runner *runner, struct run *run)
{
    /* A hold that was lost must change nothing: the finish alone says so. */
    if (run->outcome != OUTCOME_RETRY || !run->result.requeue ||
        wq_hold_left(runner->q, run->item) == 0)
        return wq_finish(runner->q, run->item, result_of(run));
    if (!run->deferred) {
        const wq_err err = count_and_defer(runner, run);
        if (err)
            return err;
        run->deferred = true;
    }
    return wq_done(runner->q, run->item);
}

static void
read_delay(struct runner *runner, struct run *run)
{
    wq_key_info info = {.size = sizeof info};

    if (run->outcome != OUTCOME_RETRY && run->outcome != OUTCOME_REQUEUE)
        return;
    if (wq_read_key(runner->q, run->key, &info) == WQ_OK && info.wait_ns > 0)
        run->retry_in_ns = info.wait_ns;
}

/* Once for each run. */
static void
report_lost(struct runner *runner, struct run *run, const char *meaning)
{
    run->lost = true;
    runner->counts.lost++;
    report("%s: its hold was lost: %s", report_key(run->key.data, run->key.len),
           meaning);
}

bool
store_result(struct runner *runner, struct run *run)
{
    if (store_is_away(runner))
        return false;
    const wq_err err = finish(runner, run);
    if (!answered(runner, "store the result of a run", err))
        return false;
    run->item = NULL;
    if (err == WQ_ELOST) {
        run->outcome = OUTCOME_LOST;
        if (!run->lost)
            report_lost(runner, run,
                        "its result does not count; another worker may have "
                        "run it");
    } else if (err == WQ_EGIVENUP) {
        run->outcome = OUTCOME_FAILED;
    } else if (err && err != WQ_EDROPPED) {
        queue_report(runner->options, "store the result of", run->key, err);
        ending_fatal(runner, STATUS_ERROR);
    } else {
        read_delay(runner, run);
    }
    return true;
}

/* -------------------------------------------------------------- lost holds -- */

/* Called by any thread. */
static void
on_lost(void *ctx, wq_key key, uint64_t fence)
{
    const struct runner *runner = ctx;
    const uint64_t       one = 1;

    (void)key, (void)fence; /* stop_lost() finds it */
    const ssize_t n = write(runner->lost.fd, &one, sizeof one);
    (void)n; /* it fails only if it is set already */
}

static void
stop_lost(struct runner *runner, struct run *run)
{
    if (run->lost || wq_hold_left(runner->q, run->item) > 0)
        return;
    report_lost(runner, run, "another worker may run it now; stopping it");
    ending_stop_run(runner, run);
}

static void
on_lost_fd(void *ctx)
{
    struct runner *runner = ctx;
    uint64_t       times;

    const ssize_t n = read(runner->lost.fd, &times, sizeof times);
    (void)n; /* only the wake-up matters */
    slots_each(runner, stop_lost);
}

/* ---------------------------------------------------------- open and close -- */

static bool
watch_lost(struct runner *runner)
{
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    runner->lost.fd = fd;
    return fd >= 0 && loop_watch(runner->loop, &runner->lost, fd, EPOLLIN,
                                 on_lost_fd, runner);
}

bool
store_open(struct runner *runner)
{
    const struct options *options = runner->options;
    const wq_metrics      sink =
        durations_sink(&runner->durations, runner->registry);

    runner->batch.options = options;
    if (!watch_lost(runner)) {
        report_errno("cannot start");
        return false;
    }
    if (!queue_open(options,
                    WQ_CONFIG(.name = options->name, .metrics = &sink,
                              .limiter = queue_backoff(&options->backoff),
                              .retry = queue_retry_policy(options),
                              .on_lost = on_lost, .lost_ctx = runner),
                    &runner->q))
        return false;
    place_init(&runner->place, options->queue);
    const int fd = wq_fd(runner->q);
    runner->watching = true;
    if (fd >= 0 &&
        loop_watch(runner->loop, &runner->ready, fd, EPOLLIN, on_wake, runner))
        return true;
    report_errno("cannot watch the queue");
    return false;
}

void
store_close(struct runner *runner)
{
    loop_unwatch(runner->loop, &runner->ready);
    wq_destroy(runner->q);
    place_fini(&runner->place);
    if (runner->lost.set) {
        loop_unwatch(runner->loop, &runner->lost);
        (void)close(runner->lost.fd);
    }
    batch_fini(&runner->batch);
}
