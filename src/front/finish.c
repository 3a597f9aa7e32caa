/* SPDX-License-Identifier: MIT */
/* finish.c: how does a loan end together with what becomes of its key?
 *
 * By the backend, if it has the verbs: then it is one step of the store.
 * Otherwise by the other verbs: forget or add the key first, while the caller
 * still holds it, then done. No other thread can get the key in between, so
 * callers cannot tell the difference, with three exceptions. If the add
 * succeeds and done fails, the add stays, and a second finish makes it again.
 * An item that is not on loan is noticed by done only, after the add. And a
 * queue that is shut down drops a key that is given back.
 */
#include "core/result.h"
#include "front/check.h"

/* ---- by single verbs ----------------------------------------------------- */

static wq_err
add_at_priority_0(wq_queue *q, wq_key key, bool rate_limited, int64_t after_ns)
{
    if (rate_limited)
        return wq_add_rate_limited(q, key);
    return after_ns > 0 ? wq_add_after(q, key, after_ns) : wq_add(q, key);
}

static wq_err
add_again(wq_queue *q, const wq_item *item, wq_result result)
{
    const wq_add_options how = wq__result_add(result, item);

    if (how.priority) {
        const wq_err err = wq_add_with(q, &how, &item->key, 1);
        if (err != WQ_ENOTSUP) /* better a lost priority than a lost key */
            return err;
    }
    return add_at_priority_0(q, item->key, how.rate_limited, how.after_ns);
}

/* Do what `result` says, before the done. */
static wq_err
settle(wq_queue *q, const wq_item *item, wq_result result)
{
    wq_err err;

    switch (result.outcome) {
    case WQ_RESULT_DONE:
        (void)wq_forget(q, item->key); /* fails only without a limiter */
        return WQ_OK;
    case WQ_RESULT_AFTER:
        err = add_again(q, item, result);
        if (!err || err == WQ_ESHUTDOWN)
            (void)wq_forget(q, item->key);
        return err;
    case WQ_RESULT_DROP:
        return WQ_OK;
    case WQ_RESULT_BURY:
        return WQ_EDROPPED;
    case WQ_RESULT_BACK:
    case WQ_RESULT_RETRY:
    default:
        return add_again(q, item, result);
    }
}

static wq_err
finish_singly(wq_queue *q, wq_item **item, wq_result result)
{
    const wq_err settled = settle(q, *item, result);

    if (!wq__result_ends_loan(settled))
        return settled;
    const wq_err err = q->backend->done(q, *item);
    if (err && err != WQ_ELOST && err != WQ_ESTATE)
        return err;
    *item = NULL;
    if (err)
        return err;
    if (wq__result_drops(result, settled))
        (void)wq_count_drops(q, 1);
    return settled;
}

/* ---- interface ----------------------------------------------------------- */

static wq_err
finish(wq_queue *q, wq_item **item, wq_result result)
{
    return WQ_HAS_VERB(q, finish)
               ? q->backend->finish(q, item, &result, NULL, 1)
               : finish_singly(q, item, result);
}

wq_err
wq_finish(wq_queue *q, wq_item *item, wq_result result)
{
    if (!q || !item)
        return WQ_EINVAL;
    return finish(q, &item, result);
}

static wq_err
finish_one_by_one(wq_queue *q, wq_item **items, const wq_result *results,
                  wq_err *errs, size_t n)
{
    wq_err first = WQ_OK;

    for (size_t i = 0; i < n; i++) {
        const wq_err err = finish_singly(
            q, &items[i], results ? results[i] : wq_result_done());
        if (errs)
            errs[i] = err;
        if (!first)
            first = err;
    }
    return first;
}

wq_err
wq_finish_many(wq_queue *q, wq_item **items, const wq_result *results,
               wq_err *errs, size_t n)
{
    const wq_err err = wq__check_items(q, items, n);

    if (err || n == 0)
        return err;
    return WQ_HAS_VERB(q, finish)
               ? q->backend->finish(q, items, results, errs, n)
               : finish_one_by_one(q, items, results, errs, n);
}

/* Finish *item and get the next one. What became of a key whose loan has ended
 * is no reason not to get the next. */
static wq_err
finish_and_get(wq_queue *q, wq_result result, int64_t timeout_ns,
               wq_item **item)
{
    const wq_err err = finish(q, item, result);

    return *item || err == WQ_ESTATE ? err
                                     : q->backend->get(q, timeout_ns, item);
}

wq_err
wq_next_with(wq_queue *q, wq_result result, int64_t timeout_ns, wq_item **item)
{
    if (!q || !item || timeout_ns < 0)
        return WQ_EINVAL;
    if (!*item)
        return q->backend->get(q, timeout_ns, item);
    if (!WQ_HAS_VERB(q, next_with))
        return finish_and_get(q, result, timeout_ns, item);
    const wq_err err = q->backend->next_with(q, result, timeout_ns, item);
    return err == WQ_ELOST && !*item ? q->backend->get(q, timeout_ns, item)
                                     : err;
}

/* ---- holds --------------------------------------------------------------- */

int64_t
wq_hold_left(wq_queue *q, const wq_item *item)
{
    if (!q || !item)
        return 0;
    return WQ_HAS_VERB(q, hold_left) ? q->backend->hold_left(q, item)
                                     : WQ_FOREVER;
}

wq_err
wq_renew(wq_queue *q)
{
    if (!q)
        return WQ_EINVAL;
    return WQ_HAS_VERB(q, renew) ? q->backend->renew(q) : WQ_OK;
}

wq_err
wq_revive(wq_queue *q, wq_key key)
{
    const wq_err err = wq__check_call(q, key);
    return err ? err : WQ__CALL(q, revive, (q, key));
}
