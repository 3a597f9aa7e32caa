/* SPDX-License-Identifier: MIT */
/* forward.c: verbs that go to the inner queue as they are; see forward.h.
 *
 * FORWARD(result, verb, parameters, arguments) defines wq__forward_<verb>() in
 * terms of wq_<verb>(), which checks whether the inner queue has the verb.
 */
#include "layer/forward.h"

#define FORWARD(result, verb, parameters, arguments)                           \
    result wq__forward_##verb parameters                                       \
    {                                                                          \
        return wq_##verb arguments;                                            \
    }

#define INNER wq__layer_inner(q)

/* ---- keys ---------------------------------------------------------------- */

FORWARD(wq_err, add, (wq_queue * q, wq_key key), (INNER, key))
FORWARD(wq_err, remove, (wq_queue * q, wq_key key), (INNER, key))
FORWARD(wq_err, cancel_after, (wq_queue * q, wq_key key), (INNER, key))
FORWARD(wq_err, done_key, (wq_queue * q, wq_key key), (INNER, key))
FORWARD(wq_err, revive, (wq_queue * q, wq_key key), (INNER, key))
FORWARD(wq_err, add_after, (wq_queue * q, wq_key key, int64_t delay_ns),
        (INNER, key, delay_ns))
FORWARD(wq_err, remove_wait, (wq_queue * q, wq_key key, int64_t timeout_ns),
        (INNER, key, timeout_ns))
FORWARD(wq_err, flush_key, (wq_queue * q, wq_key key, int64_t timeout_ns),
        (INNER, key, timeout_ns))

/* ---- items --------------------------------------------------------------- */

FORWARD(wq_err, get_many,
        (wq_queue * q, wq_item **out, size_t max, int64_t timeout_ns,
         size_t *n),
        (INNER, out, max, timeout_ns, n))
FORWARD(wq_err, done, (wq_queue * q, wq_item *item), (INNER, item))
FORWARD(wq_err, done_many, (wq_queue * q, wq_item **items, size_t n),
        (INNER, items, n))
FORWARD(wq_err, next, (wq_queue * q, int64_t timeout_ns, wq_item **item),
        (INNER, timeout_ns, item))
FORWARD(int64_t, hold_left, (wq_queue * q, const wq_item *item), (INNER, item))

wq_err
wq__forward_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    return wq_get_within(INNER, timeout_ns, out);
}

/* ---- the queue ----------------------------------------------------------- */

FORWARD(wq_err, renew, (wq_queue * q), (INNER))
FORWARD(wq_err, pause, (wq_queue * q), (INNER))
FORWARD(wq_err, resume, (wq_queue * q), (INNER))
FORWARD(wq_err, flush, (wq_queue * q, int64_t timeout_ns), (INNER, timeout_ns))
FORWARD(wq_err, wait_idle, (wq_queue * q, int64_t timeout_ns),
        (INNER, timeout_ns))
FORWARD(wq_err, count_drops, (wq_queue * q, uint64_t n), (INNER, n))
FORWARD(wq_err, check, (wq_queue * q, wq_problem problem, void *ctx),
        (INNER, problem, ctx))
FORWARD(bool, shutting_down, (const wq_queue *q), (INNER))
FORWARD(int, fd, (wq_queue * q), (INNER))

wq_err
wq__forward_drain(wq_queue *q, int64_t timeout_ns)
{
    return wq_shutdown_with_drain_within(INNER, timeout_ns);
}

void
wq__forward_shutdown(wq_queue *q)
{
    wq_shutdown(INNER);
}

void
wq__forward_interrupt(wq_queue *q)
{
    wq_interrupt(INNER);
}

/* The error of the inner queue stays visible, unlike that of wq_len(). */
wq_err
wq__forward_len(wq_queue *q, size_t *out)
{
    return INNER->backend->len(INNER, out);
}

wq_err
wq__forward_depths(wq_queue *q, wq_depth *out, size_t max, size_t *n)
{
    return wq_read_depths(INNER, out, max, n);
}

const char *
wq__forward_queue_name(wq_queue *q)
{
    return WQ_HAS_VERB(INNER, queue_name) ? INNER->backend->queue_name(INNER)
                                          : NULL;
}
