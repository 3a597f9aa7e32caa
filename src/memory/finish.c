/* SPDX-License-Identifier: MIT */
/* finish.c: how does a loan end together with what becomes of its key?
 *
 * What becomes of the key comes first, while the caller still holds it, since
 * limiters are called without the lock; then done. No other thread can get the
 * key in between. A queue in memory keeps no DEAD keys: it drops them.
 */
#include "core/result.h"
#include "memory/gate.h"
#include "memory/report.h"

/* An item that is not on loan changes nothing, so this is checked first. */
static bool
is_on_loan(struct wq__memory *m, wq_item *item)
{
    wq__gate_enter(m);
    const bool lent = wq__core_are_lent(&m->core, &item, 1);
    wq__gate_leave(m);
    return lent;
}

static wq_err
give_back(struct wq__memory *m, const wq_item *item, int priority)
{
    const int64_t now = wq__memory_stamp(m);

    wq__gate_enter(m);
    (void)wq__gate_catch_up(m);
    const wq_err err = wq__core_give_back(&m->core, item, priority, now);
    wq__gate_leave(m);
    return err;
}

/* Do what `result` says, before the done. */
static wq_err
settle(struct wq__memory *m, const wq_item *item, wq_result result)
{
    const wq_add_options how = wq__result_add(result, item);
    wq_err               err;

    switch (result.outcome) {
    case WQ_RESULT_DONE:
        return wq__memory_forget(&m->base, item->key);
    case WQ_RESULT_AFTER:
        err = wq__memory_add_with(&m->base, &how, &item->key, 1);
        if (!err || err == WQ_ESHUTDOWN)
            (void)wq__memory_forget(&m->base, item->key);
        return err;
    case WQ_RESULT_BACK: /* also after a shutdown */
        return give_back(m, item, how.priority);
    case WQ_RESULT_DROP:
        return WQ_OK;
    case WQ_RESULT_BURY:
        return WQ_EDROPPED;
    case WQ_RESULT_RETRY:
    default:
        return wq__memory_add_with(&m->base, &how, &item->key, 1);
    }
}

static wq_err
finish(struct wq__memory *m, wq_item **item, wq_result result)
{
    if (!is_on_loan(m, *item)) {
        *item = NULL;
        return WQ_ESTATE;
    }
    const wq_err settled = settle(m, *item, result);
    if (!wq__result_ends_loan(settled))
        return settled;
    const wq_err err = wq__memory_done(&m->base, *item);
    if (err)
        return err; /* may be any error of a wq_order */
    *item = NULL;
    if (wq__result_drops(result, settled))
        (void)wq__memory_count_drops(&m->base, 1);
    return settled;
}

wq_err
wq__memory_finish(wq_queue *q, wq_item **items, const wq_result *results,
                  wq_err *errs, size_t n)
{
    wq_err first = WQ_OK;

    for (size_t i = 0; i < n; i++) {
        const wq_err err = finish(wq__memory_of(q), &items[i],
                                  results ? results[i] : wq_result_done());
        if (errs)
            errs[i] = err;
        if (!first)
            first = err;
    }
    return first;
}

/* DONE, the common result, ends the loan and gets the next key in one step. The
 * limiter forgets the key before. */
static wq_err
done_and_get(struct wq__memory *m, int64_t timeout_ns, wq_item **item)
{
    if (!wq__core_may_be_lent(*item)) {
        *item = NULL;
        return WQ_ESTATE;
    }
    (void)wq__memory_forget(&m->base, (*item)->key);
    const wq_err err = wq__memory_next(&m->base, timeout_ns, item);
    if (err == WQ_ESTATE)
        *item = NULL;
    return err;
}

wq_err
wq__memory_next_with(wq_queue *q, wq_result result, int64_t timeout_ns,
                     wq_item **item)
{
    struct wq__memory *m = wq__memory_of(q);

    if (result.outcome == WQ_RESULT_DONE)
        return done_and_get(m, timeout_ns, item);
    const wq_err err = finish(m, item, result);
    return *item || err == WQ_ESTATE ? err
                                     : wq__memory_get(q, timeout_ns, item);
}
