/* SPDX-License-Identifier: MIT */
/* batches.c: how are several items got and done in one call?
 *
 * By the backend, if it has the verb; otherwise by single calls. wq_done_many()
 * by single calls cannot check all items first: it stops at the first item that
 * is refused.
 */
#include "front/check.h"

static wq_err
get_singly(wq_queue *q, wq_item **out, size_t max, int64_t timeout_ns,
           size_t *n)
{
    const wq_err err = q->backend->get(q, timeout_ns, out);
    size_t       got = 1;

    if (err)
        return err;
    while (got < max && q->backend->get(q, 0, out + got) == WQ_OK)
        got++;
    *n = got;
    return WQ_OK;
}

wq_err
wq_get_many(wq_queue *q, wq_item **out, size_t max, int64_t timeout_ns,
            size_t *n)
{
    if (!q || !out || !n || max == 0 || timeout_ns < 0)
        return WQ_EINVAL;
    return WQ_HAS_VERB(q, get_many)
               ? q->backend->get_many(q, out, max, timeout_ns, n)
               : get_singly(q, out, max, timeout_ns, n);
}

static wq_err
done_singly(wq_queue *q, wq_item **items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const wq_err err = q->backend->done(q, items[i]);
        if (err)
            return err;
        items[i] = NULL;
    }
    return WQ_OK;
}

wq_err
wq_done_many(wq_queue *q, wq_item **items, size_t n)
{
    const wq_err err = wq__check_items(q, items, n);

    if (err || n == 0)
        return err;
    return WQ_HAS_VERB(q, done_many) ? q->backend->done_many(q, items, n)
                                     : done_singly(q, items, n);
}

static wq_err
next_singly(wq_queue *q, int64_t timeout_ns, wq_item **item)
{
    if (*item) {
        const wq_err err = q->backend->done(q, *item);
        if (err && err != WQ_ELOST)
            return err;
        *item = NULL;
    }
    return q->backend->get(q, timeout_ns, item);
}

wq_err
wq_next(wq_queue *q, int64_t timeout_ns, wq_item **item)
{
    if (!q || !item || timeout_ns < 0)
        return WQ_EINVAL;
    return WQ_HAS_VERB(q, next) ? q->backend->next(q, timeout_ns, item)
                                : next_singly(q, timeout_ns, item);
}
