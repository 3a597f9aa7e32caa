/* SPDX-License-Identifier: MIT */
/* op.c: the parts of an operation that all engines share; see op.h. */
#include "shared/op.h"

void
wq__did_count(struct wq__did *did, const struct wq__tally *before,
              const struct wq__tally *after)
{
    did->adds += after->adds - before->adds;
    did->merged += after->merged - before->merged;
    did->gets += after->gets - before->gets;
    did->removed += after->removed - before->removed;
    did->deferred += after->deferred - before->deferred;
    did->drops += after->drops - before->drops;
}

wq_err
wq__op_hand_out(const struct wq__op *op, struct wq__core *core, int64_t now,
                const wq_item *next, int64_t waited_ns, unsigned requeues,
                wq_item **item)
{
    const struct wq__handed handed = {
        .key = next->key,
        .priority = next->priority,
        .fence = next->fence,
        .requeues = requeues,
        .waited_ns = waited_ns,
    };
    const wq_err err =
        op->as.get.take ? op->as.get.take(op->as.get.ctx, &handed) : WQ_OK;

    if (err)
        return err;
    (void)wq__core_get(core, now, item); /* prepared: cannot fail */
    return WQ_OK;
}

wq_err
wq__op_get(struct wq__op *op,
           wq_err (*hand_out)(void *ctx, const struct wq__op *op), void *ctx)
{
    wq_err err = WQ_OK;

    op->as.get.n = 0;
    if (wq__op_is_held_back(op))
        return WQ_OK;
    while (!err && op->as.get.n < op->as.get.max) {
        err = hand_out(ctx, op);
        op->as.get.n += !err;
    }
    if (err == WQ_EAWAY || err == WQ_EIO)
        return err;
    return err == WQ_ENOTFOUND || op->as.get.n ? WQ_OK : err;
}

/* ---- ends of holds ------------------------------------------------------- */

static wq_err
succeed(const struct wq__settler *by, void *hold)
{
    by->end(hold);
    by->forget(hold);
    return WQ_OK;
}

static wq_err
run_after(const struct wq__settler *by, void *hold, int64_t after_ns,
          int priority)
{
    const wq_add_options how = {.size = sizeof how,
                                .priority = priority,
                                .after_ns = after_ns > 0 ? after_ns : 0};
    int64_t              delayed;
    unsigned             retries;
    const wq_err         err = by->add(hold, &how, &delayed, &retries);

    return err ? err : succeed(by, hold);
}

/* The key keeps its failures, for people to look at, until it is revived or
 * removed. */
static wq_err
give_up(const struct wq__settler *by, void *hold, struct wq__did *did)
{
    const wq_err err = by->bury(hold);

    if (err)
        return err;
    did->drops++;
    return WQ_EGIVENUP;
}

static wq_err
retry(const struct wq__settler *by, void *hold, struct wq__op *op, int priority,
      struct wq__did *did)
{
    const wq_add_options how = {
        .size = sizeof how, .priority = priority, .rate_limited = true};
    const wq_err err =
        by->add(hold, &how, &op->as.finish.delayed, &op->as.finish.retries);

    if (err == WQ_EGIVENUP)
        return give_up(by, hold, did);
    if (!err)
        by->end(hold);
    return err;
}

wq_err
wq__op_settle(const struct wq__settler *by, void *hold, struct wq__op *op,
              int priority, struct wq__did *did)
{
    const wq_result result = op->as.finish.result;

    if (result.prioritized)
        priority = result.priority;
    switch (result.outcome) {
    case WQ_RESULT_DONE:
        return succeed(by, hold);
    case WQ_RESULT_AFTER:
        return run_after(by, hold, result.after_ns, priority);
    case WQ_RESULT_DROP:
        by->end(hold);
        return WQ_OK;
    case WQ_RESULT_BACK:
        return by->give_back(hold, priority);
    case WQ_RESULT_BURY:
        return by->bury(hold);
    case WQ_RESULT_RETRY:
    default:
        return retry(by, hold, op, priority, did);
    }
}
