/* SPDX-License-Identifier: MIT */
/* gets.c: how do keys go out, and how do they come back? */
#include "core/span.h"
#include "memory/gate.h"
#include "memory/report.h"

int64_t
wq__memory_deadline(struct wq__memory *m, int64_t timeout_ns)
{
    return timeout_ns == WQ_FOREVER
               ? WQ_FOREVER
               : wq__span_add(m->clock->now(m->clock), timeout_ns);
}

bool
wq__memory_is_past(struct wq__memory *m, int64_t deadline_ns)
{
    return deadline_ns != WQ_FOREVER && m->clock->now(m->clock) >= deadline_ns;
}

/* ---- get ---------------------------------------------------------------- */

/* When keys are handed out; read only if it matters. Quiet times begin then,
 * and end at a deadline: a stopwatch will not do. */
static int64_t
hand_out_time(struct wq__memory *m)
{
    if (!wq__core_needs_time(&m->core))
        return 0;
    return m->core.paces.live ? m->clock->now(m->clock)
                              : m->clock->stopwatch(m->clock);
}

/* Keys, if there are any: 1 .. max of them. */
static wq_err
take(struct wq__memory *m, wq_item **out, size_t max, size_t *n)
{
    if (wq__core_len(&m->core) == 0)
        return WQ_ENOTFOUND;
    const int64_t now = hand_out_time(m);
    const wq_err  err = wq__core_get(&m->core, now, out);

    if (err)
        return err;
    for (*n = 1; *n < max; ++*n) /* what stops it, the next get will meet */
        if (wq__core_get(&m->core, now, &out[*n]))
            break;
    return WQ_OK;
}

/* The same, or why not. WQ_ENOTFOUND: there may be some later. */
static wq_err
try_get(struct wq__memory *m, wq_item **out, size_t max, size_t *n)
{
    if (m->destroying)
        return WQ_ESHUTDOWN;
    const wq_err lack = wq__gate_catch_up(m);
    const wq_err err = take(m, out, max, n);
    if (err != WQ_ENOTFOUND)
        return err;
    if (lack)
        return lack; /* there are keys, and no memory to take them in */
    return m->core.shutting_down && wq__core_empty(&m->core) ? WQ_ESHUTDOWN
                                                             : WQ_ENOTFOUND;
}

static wq_err
wait_for_work(struct wq__memory *m, int64_t timeout_ns, wq_item **out,
              size_t max, size_t *n)
{
    const int64_t deadline_ns = wq__memory_deadline(m, timeout_ns);
    wq_err        err;

    wq__gate_spin(m);
    while ((err = try_get(m, out, max, n)) == WQ_ENOTFOUND) {
        err = wq__memory_is_past(m, deadline_ns)
                  ? WQ_ETIMEDOUT
                  : wq__gate_await_work(m, deadline_ns);
        if (err)
            break;
    }
    return err;
}

/* Without the lock: the items are the caller's now. */
static void
report_latencies(struct wq__memory *m, wq_item *const *items, size_t n)
{
    if (!m->sinks_len)
        return;
    for (size_t i = 0; i < n; i++)
        wq__report_each_latency(m, wq__core_latency(items[i]));
}

wq_err
wq__memory_get_many(wq_queue *q, wq_item **out, size_t max, int64_t timeout_ns,
                    size_t *n)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    wq_err err = try_get(m, out, max, n);
    if (err != WQ_ENOTFOUND || timeout_ns == 0) {
        wq__gate_leave(m);
        err = err == WQ_ENOTFOUND ? WQ_ETIMEDOUT : err;
        if (!err)
            report_latencies(m, out, *n);
        return err;
    }
    wq__gate_stay(m);
    err = wait_for_work(m, timeout_ns, out, max, n);
    if (!err && m->sinks_len) { /* as long as wq_destroy() waits for us */
        wq__gate_leave(m);
        report_latencies(m, out, *n);
        wq__gate_enter(m);
    }
    wq__gate_leave_for_good(m);
    return err;
}

wq_err
wq__memory_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    size_t n;

    return wq__memory_get_many(q, out, 1, timeout_ns, &n);
}

/* ---- done --------------------------------------------------------------- */

/* What is due, or was handed over, stands in line before a key that is READY
 * again by a done. What there is no memory for comes later; the done itself
 * does not depend on it. */
static void
let_others_go_first(struct wq__memory *m)
{
    (void)wq__gate_catch_up(m);
}

wq_err
wq__memory_done(wq_queue *q, wq_item *item)
{
    struct wq__memory *m = wq__memory_of(q);
    const int64_t      now = wq__memory_stamp(m);
    int64_t            work;

    wq__gate_enter(m);
    let_others_go_first(m);
    const wq_err err = wq__core_done(&m->core, item, now, &work);
    wq__gate_leave(m);
    if (!err)
        wq__report_work(m, work);
    return err;
}

wq_err
wq__memory_done_key(wq_queue *q, wq_key key)
{
    struct wq__memory *m = wq__memory_of(q);
    const uint32_t     hash = wq__core_hash(&m->core, key);
    const int64_t      now = wq__memory_stamp(m);
    int64_t            work;

    wq__gate_enter(m);
    let_others_go_first(m);
    const wq_err err = wq__core_done_key(&m->core, key, hash, now, &work);
    wq__gate_leave(m);
    if (!err)
        wq__report_work(m, work);
    return err;
}

/* As many as can be reported without memory. */
enum { DONES_AT_ONCE = 64 };

static wq_err
done_some(struct wq__memory *m, wq_item **items, size_t n)
{
    const int64_t now = wq__memory_stamp(m);
    int64_t       work[DONES_AT_ONCE];
    size_t        done = 0;
    wq_err        err = WQ_OK;

    wq__gate_enter(m);
    let_others_go_first(m);
    for (; done < n; done++) {
        err = wq__core_done(&m->core, items[done], now, &work[done]);
        if (err)
            break;
        items[done] = NULL;
    }
    wq__gate_leave(m);
    for (size_t i = 0; m->sinks_len && i < done; i++)
        wq__report_each_work(m, work[i]);
    return err;
}

wq_err
wq__memory_done_many(wq_queue *q, wq_item **items, size_t n)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    wq_err err = wq__core_are_lent(&m->core, items, n) ? WQ_OK : WQ_ESTATE;
    wq__gate_leave(m);
    while (!err && n > 0) {
        const size_t some = n < DONES_AT_ONCE ? n : DONES_AT_ONCE;
        err = done_some(m, items, some);
        items += some;
        n -= some;
    }
    return err;
}

/* ---- both --------------------------------------------------------------- */

/* The loan of *item ends and the next one begins, under one lock. Leaves
 * without waiting: WQ_ENOTFOUND, if there is nothing to take. `*done`: the
 * first half was done, and took `*work`. */
static wq_err
done_and_try_get(struct wq__memory *m, wq_item **item, bool *done,
                 int64_t *work)
{
    const int64_t now = wq__memory_stamp(m);
    size_t        n;

    wq__gate_enter(m);
    let_others_go_first(m);
    wq_err err = wq__core_done(&m->core, *item, now, work);
    *done = !err;
    if (!err) {
        *item = NULL;
        err = try_get(m, item, 1, &n);
    }
    wq__gate_leave(m);
    return err;
}

wq_err
wq__memory_next(wq_queue *q, int64_t timeout_ns, wq_item **item)
{
    struct wq__memory *m = wq__memory_of(q);
    bool               done;
    int64_t            work;

    if (!*item)
        return wq__memory_get(q, timeout_ns, item);
    const wq_err err = done_and_try_get(m, item, &done, &work);
    if (!done)
        return err; /* of a wq_order, perhaps: it may have any name */
    wq__report_work(m, work);
    if (!err)
        report_latencies(m, item, 1);
    if (err != WQ_ENOTFOUND)
        return err;
    return timeout_ns ? wq__memory_get(q, timeout_ns, item) : WQ_ETIMEDOUT;
}
