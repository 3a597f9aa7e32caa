/* SPDX-License-Identifier: MIT */
/* gets.c: how do keys go out, and how do they come back? */
#include "core/mem.h"
#include "core/span.h"
#include "memory/gate.h"
#include "memory/report.h"
#include "port/slot.h"

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

/* As many as can be reported without memory. */
enum { AT_ONCE = 64 };

/* Keys that are handed out at one go. */
struct haul {
    wq_item **out;
    size_t    max;    /* how many are wanted, 1 at least */
    size_t    n;      /* how many there are */
    int64_t  *waited; /* for how long each was READY, if there are sinks. Read
                         with the lock: another thread may say done before we
                         report. At least `max` of them, AT_ONCE at most */
};

static inline void
note_hand_out(struct wq__memory *m, struct haul *h)
{
    wq__core_note_holder(h->out[h->n], wq__slot_serial());
    if (m->core.ages && h->n < AT_ONCE)
        h->waited[h->n] = wq__core_latency(h->out[h->n]);
    h->n++;
}

/* The calling thread was handed a key. Producers leave it alone from now on,
 * and hand over as much as it can use. That another one was handed keys too is
 * seen now and then: it is all the same to producers, and a line of memory that
 * they read is best left alone. */
static inline void
note_getter(struct wq__memory *m)
{
    enum { SELDOM = 64 };
    const void *me = wq__slot_mark();
    const void *getter = atomic_load_explicit(&m->getter, memory_order_relaxed);

    if (getter != me && (!getter || m->core.fence % SELDOM == 0))
        atomic_store_explicit(&m->getter, me, memory_order_relaxed);
    if (!wq__gate_has_plenty(m))
        wq__inbox_grant(&m->inbox);
}

/* Keys, if there are any: 1 .. max of them. */
static inline wq_err
take(struct wq__memory *m, struct haul *h)
{
    if (wq__core_offers(&m->core) == 0)
        return WQ_ENOTFOUND;
    const int64_t now = hand_out_time(m);
    const wq_err  err = wq__core_get(&m->core, now, h->out);

    if (err)
        return err;
    h->n = 0;
    note_hand_out(m, h);
    note_getter(m);
    while (h->n < h->max && !wq__core_get(&m->core, now, &h->out[h->n]))
        note_hand_out(m, h); /* what stops it, the next get will meet */
    return WQ_OK;
}

/* The same, or why not. WQ_ENOTFOUND: there may be some later. `lack`: what
 * catching up said. */
static inline wq_err
take_or_say_why(struct wq__memory *m, struct haul *h, wq_err lack)
{
    const wq_err err = take(m, h);
    if (err != WQ_ENOTFOUND)
        return err;
    if (lack)
        return lack; /* there are keys, and no memory to take them in */
    return m->core.shutting_down && wq__core_empty(&m->core) ? WQ_ESHUTDOWN
                                                             : WQ_ENOTFOUND;
}

static inline wq_err
try_get(struct wq__memory *m, struct haul *h)
{
    if (m->destroying)
        return WQ_ESHUTDOWN;
    return take_or_say_why(m, h, wq__gate_catch_up(m));
}

static wq_err
wait_for_work(struct wq__memory *m, int64_t timeout_ns, struct haul *h)
{
    const int64_t deadline_ns = wq__memory_deadline(m, timeout_ns);
    wq_err        err;

    const int looks = wq__gate_spin(m);
    err = try_get(m, h);
    wq__spin_pay(&m->spin, looks, looks && !err);
    while (err == WQ_ENOTFOUND) {
        err = wq__memory_is_past(m, deadline_ns)
                  ? WQ_ETIMEDOUT
                  : wq__gate_await_work(m, deadline_ns);
        if (!err)
            err = try_get(m, h);
    }
    return err;
}

/* Without the lock. */
static void
report_latencies(struct wq__memory *m, const struct haul *h)
{
    if (!wq__report_sinks(m))
        return;
    for (size_t i = 0; i < h->n; i++)
        wq__report_latency(m, h->waited[i]);
}

/* With the lock, which is free afterwards. */
static wq_err
get(struct wq__memory *m, int64_t timeout_ns, struct haul *h)
{
    wq_err err = try_get(m, h);
    if (err != WQ_ENOTFOUND || timeout_ns == 0) {
        wq__gate_leave(m);
        if (!err)
            report_latencies(m, h);
        return err == WQ_ENOTFOUND ? WQ_ETIMEDOUT : err;
    }
    wq__gate_stay(m);
    err = wait_for_work(m, timeout_ns, h);
    if (!err && wq__report_sinks(m)) { /* while wq_destroy() waits for us */
        wq__gate_leave(m);
        report_latencies(m, h);
        wq__gate_enter(m);
    }
    wq__gate_leave_for_good(m);
    return err;
}

/* With sinks, as many at a time as can be reported. */
wq_err
wq__memory_get_many(wq_queue *q, wq_item **out, size_t max, int64_t timeout_ns,
                    size_t *n)
{
    struct wq__memory *m = wq__memory_of(q);
    const size_t most = wq__report_sinks(m) && max > AT_ONCE ? AT_ONCE : max;
    int64_t      waited[AT_ONCE];
    struct haul  h = {.out = out, .max = most, .waited = waited};

    wq__gate_enter(m);
    const wq_err err = get(m, timeout_ns, &h);
    if (err)
        return err;
    size_t got = h.n;
    while (h.n == most && got < max) {
        h.out = out + got;
        h.max = max - got < most ? max - got : most;
        wq__gate_enter(m);
        if (get(m, 0, &h))
            break;
        got += h.n;
    }
    *n = got;
    return WQ_OK;
}

/* Is there a key to hand out, nothing to catch up with, and nobody to tell? */
static inline bool
is_simple(struct wq__memory *m)
{
    return wq__core_len(&m->core) && !m->core.waiting.len &&
           !wq__inbox_holds(&m->inbox) && !wq__core_needs_time(&m->core) &&
           m->plain_gets;
}

wq_err
wq__memory_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    struct wq__memory *m = wq__memory_of(q);
    int64_t            waited = 0;
    struct haul        h = {.out = out, .max = 1, .waited = &waited};

    wq__gate_enter(m);
    if (!is_simple(m))
        return get(m, timeout_ns, &h);
    const wq_err err = wq__core_get(&m->core, 0, out);
    if (!err) {
        wq__core_note_holder(*out, wq__slot_serial());
        note_getter(m);
    }
    wq__gate_leave(m);
    return err;
}

/* ---- done --------------------------------------------------------------- */

/* What is due, or was handed over, stands in line before a key that is READY
 * again by a done. What there is no memory for comes later; the done itself
 * does not depend on it. */
__attribute__((always_inline)) static inline wq_err
let_others_go_first(struct wq__memory *m)
{
    const wq_err lack = wq__gate_catch_up(m);

    if (lack && m->removers)
        wq__waits_take_back(m);
    return lack;
}

wq_err
wq__memory_done(wq_queue *q, wq_item *item)
{
    struct wq__memory *m = wq__memory_of(q);
    const int64_t      now = wq__memory_stamp(m);
    int64_t            work;

    wq__gate_enter(m);
    (void)let_others_go_first(m);
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
    (void)let_others_go_first(m);
    const wq_err err = wq__core_done_key(&m->core, key, hash, now, &work);
    wq__gate_leave(m);
    if (!err)
        wq__report_work(m, work);
    return err;
}

/* All or none; `work` has room for all, or there are no sinks and it is NULL.
 */
static wq_err
done_all(struct wq__memory *m, wq_item **items, size_t n, int64_t *work,
         size_t *done)
{
    const int64_t now = wq__memory_stamp(m);
    wq_err        err = WQ_OK;
    int64_t       nobody;

    wq__gate_enter(m);
    (void)let_others_go_first(m);
    if (!wq__core_are_lent(&m->core, items, n))
        err = WQ_ESTATE;
    for (*done = 0; !err && *done < n; ++*done) {
        err = wq__core_done(&m->core, items[*done], now,
                            work ? &work[*done] : &nobody);
        if (err)
            break;
        items[*done] = NULL;
    }
    wq__gate_leave(m);
    return err;
}

wq_err
wq__memory_done_many(wq_queue *q, wq_item **items, size_t n)
{
    struct wq__memory *m = wq__memory_of(q);
    int64_t            at_hand[AT_ONCE];
    int64_t           *work = wq__report_sinks(m) ? at_hand : NULL;
    size_t             done;

    if (work && n > AT_ONCE)
        work = wq__mem_array(&m->shared_mem, n, sizeof *work);
    if (!work && wq__report_sinks(m))
        return WQ_ENOMEM;
    const wq_err err = done_all(m, items, n, work, &done);
    for (size_t i = 0; work && i < done; i++)
        wq__report_each_work(m, work[i]);
    if (work && work != at_hand)
        wq__mem_free(&m->shared_mem, work, n * sizeof *work);
    return err;
}

/* ---- both --------------------------------------------------------------- */

/* The loan of *h->out ends and the next one begins, under one lock. Leaves
 * without waiting: WQ_ENOTFOUND, if there is nothing to take. `*done`: the
 * first half was done, and took `*work`. */
static wq_err
done_and_try_get(struct wq__memory *m, struct haul *h, bool *done,
                 int64_t *work)
{
    const int64_t now = wq__memory_stamp(m);

    wq__gate_enter(m);
    const wq_err lack = let_others_go_first(m);
    wq_err       err = wq__core_done(&m->core, *h->out, now, work);
    *done = !err;
    if (!err) {
        *h->out = NULL;
        err = take_or_say_why(m, h, lack);
    }
    wq__gate_leave(m);
    return err;
}

wq_err
wq__memory_next(wq_queue *q, int64_t timeout_ns, wq_item **item)
{
    struct wq__memory *m = wq__memory_of(q);
    int64_t            waited = 0, work;
    struct haul        h = {.out = item, .max = 1, .waited = &waited};
    bool               done;

    if (!*item)
        return wq__memory_get(q, timeout_ns, item);
    const wq_err err = done_and_try_get(m, &h, &done, &work);
    if (!done)
        return err; /* of a wq_order, perhaps: it may have any name */
    wq__report_work(m, work);
    if (!err)
        report_latencies(m, &h);
    if (err != WQ_ENOTFOUND)
        return err;
    return timeout_ns ? wq__memory_get(q, timeout_ns, item) : WQ_ETIMEDOUT;
}
