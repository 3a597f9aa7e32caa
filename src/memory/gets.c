/* SPDX-License-Identifier: MIT */
/* gets.c: how are keys handed out, and how do loans end? */
#include "core/mem.h"
#include "core/span.h"
#include "memory/gate.h"
#include "memory/report.h"
#include "port/thread_mark.h"

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

/* The time of a hand-out; read only if the core needs it. Cooldowns begin then
 * and end at a time of the clock, so the stopwatch is not exact enough. */
static int64_t
hand_out_time(struct wq__memory *m)
{
    if (!wq__core_needs_time(&m->core))
        return 0;
    return m->core.throttle_states.live ? m->clock->now(m->clock)
                                        : m->clock->stopwatch(m->clock);
}

/* As many as can be reported without allocating. */
enum { AT_ONCE = 64 };

/* Keys that are handed out in one step. */
struct batch {
    wq_item **out;
    size_t    max; /* how many at most; at least 1 */
    size_t    n;   /* how many were handed out */
    /* How long each was READY, if there are sinks. Filled in with the lock:
     * another thread may end a loan before we report. At least min(max,
     * AT_ONCE) elements. */
    int64_t *waited;
};

static inline void
note_hand_out(struct wq__memory *m, struct batch *b)
{
    wq__core_note_holder(b->out[b->n], wq__thread_mark_serial());
    if (m->core.ages && b->n < AT_ONCE)
        b->waited[b->n] = wq__core_latency(b->out[b->n]);
    b->n++;
}

/* Are keys got fast? Only of interest if there are several threads. */
static inline void
note_pace(struct wq__memory *m)
{
    if (m->inbox.cells && wq__patience_count(&m->patience))
        wq__patience_time(&m->patience, m->clock->now(m->clock));
}

/* The calling thread got a key: from now on producers use the inbox, and get
 * free cells while there are few READY keys. If several threads get keys,
 * `getter` is updated only now and then: any of them will do, and producers
 * read its cache line. */
static inline void
note_getter(struct wq__memory *m)
{
    enum { SELDOM = 64 };
    const void *me = wq__thread_mark();
    const void *getter = atomic_load_explicit(&m->getter, memory_order_relaxed);

    if (getter != me && (!getter || m->core.fence % SELDOM == 0))
        atomic_store_explicit(&m->getter, me, memory_order_relaxed);
    if (!wq__gate_has_plenty(m))
        wq__inbox_grant(&m->inbox);
    note_pace(m);
}

/* Hand out 1 .. max keys. WQ_ENOTFOUND: none can be handed out now. */
static inline wq_err
take(struct wq__memory *m, struct batch *b)
{
    if (wq__core_offers(&m->core) == 0)
        return WQ_ENOTFOUND;
    const int64_t now = hand_out_time(m);
    const wq_err  err = wq__core_get(&m->core, now, b->out);

    if (err)
        return err;
    b->n = 0;
    note_hand_out(m, b);
    note_getter(m);
    while (b->n < b->max && !wq__core_get(&m->core, now, &b->out[b->n]))
        note_hand_out(m, b); /* the next get returns the error */
    return WQ_OK;
}

/* The same, or the reason. WQ_ENOTFOUND: keys may come later. `lack`: what
 * catching up returned. */
static inline wq_err
take_or_explain(struct wq__memory *m, struct batch *b, wq_err lack)
{
    const wq_err err = take(m, b);
    if (err != WQ_ENOTFOUND)
        return err;
    if (lack)
        return lack; /* out of memory while merging pending adds */
    return m->core.shutting_down && wq__core_empty(&m->core) ? WQ_ESHUTDOWN
                                                             : WQ_ENOTFOUND;
}

static inline wq_err
try_get(struct wq__memory *m, struct batch *b)
{
    if (m->destroying)
        return WQ_ESHUTDOWN;
    return take_or_explain(m, b, wq__gate_catch_up(m));
}

static wq_err
wait_for_work(struct wq__memory *m, int64_t timeout_ns, struct batch *b)
{
    const int64_t deadline_ns = wq__memory_deadline(m, timeout_ns);
    wq_err        err;

    const int looks = wq__gate_spin(m);
    err = try_get(m, b);
    wq__spin_pay(&m->spin, looks, looks && !err);
    while (err == WQ_ENOTFOUND) {
        err = wq__memory_is_past(m, deadline_ns)
                  ? WQ_ETIMEDOUT
                  : wq__gate_await_work(m, deadline_ns);
        if (!err)
            err = try_get(m, b);
    }
    return err;
}

/* Without the lock. */
static void
report_latencies(struct wq__memory *m, const struct batch *b)
{
    if (!wq__report_sinks(m))
        return;
    for (size_t i = 0; i < b->n; i++)
        wq__report_duration(m, WQ__REPORT_LATENCY, b->waited[i]);
}

/* With the lock; releases it. */
static wq_err
get(struct wq__memory *m, int64_t timeout_ns, struct batch *b)
{
    wq_err err = try_get(m, b);
    if (err != WQ_ENOTFOUND || timeout_ns == 0) {
        wq__gate_leave(m);
        if (!err)
            report_latencies(m, b);
        return err == WQ_ENOTFOUND ? WQ_ETIMEDOUT : err;
    }
    wq__gate_begin_blocking(m);
    err = wait_for_work(m, timeout_ns, b);
    if (!err &&
        wq__report_sinks(m)) { /* while wq_destroy() waits for this thread */
        wq__gate_leave(m);
        report_latencies(m, b);
        wq__gate_enter(m);
    }
    wq__gate_end_blocking(m);
    return err;
}

/* With sinks, gets at most AT_ONCE keys in one step. */
wq_err
wq__memory_get_many(wq_queue *q, wq_item **out, size_t max, int64_t timeout_ns,
                    size_t *n)
{
    struct wq__memory *m = wq__memory_of(q);
    const size_t most = wq__report_sinks(m) && max > AT_ONCE ? AT_ONCE : max;
    int64_t      waited[AT_ONCE];
    struct batch b = {.out = out, .max = most, .waited = waited};

    wq__gate_enter(m);
    const wq_err err = get(m, timeout_ns, &b);
    if (err)
        return err;
    size_t got = b.n;
    while (b.n == most && got < max) {
        b.out = out + got;
        b.max = max - got < most ? max - got : most;
        wq__gate_enter(m);
        if (get(m, 0, &b))
            break;
        got += b.n;
    }
    *n = got;
    return WQ_OK;
}

/* Can the first READY key be handed out at once: nothing to catch up with, no
 * time needed, a plain queue? */
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
    struct batch       b = {.out = out, .max = 1, .waited = &waited};

    wq__gate_enter(m);
    if (!is_simple(m))
        return get(m, timeout_ns, &b);
    const wq_err err = wq__core_get(&m->core, 0, out);
    if (!err) {
        wq__core_note_holder(*out, wq__thread_mark_serial());
        note_getter(m);
    }
    wq__gate_leave(m);
    return err;
}

/* ---- done --------------------------------------------------------------- */

/* Keys that are due or in the inbox become READY before a key that the done
 * makes READY again. Keys that could not be merged for lack of memory come
 * later; the done does not depend on them. */
__attribute__((always_inline)) static inline wq_err
catch_up_before_done(struct wq__memory *m)
{
    const wq_err lack = wq__gate_catch_up(m);

    if (lack && m->removers)
        wq__waits_withdraw_adds(m);
    return lack;
}

wq_err
wq__memory_done(wq_queue *q, wq_item *item)
{
    struct wq__memory *m = wq__memory_of(q);
    const int64_t      now = wq__memory_stamp(m);
    int64_t            work;

    wq__gate_enter(m);
    (void)catch_up_before_done(m);
    const wq_err err = wq__core_done(&m->core, item, now, &work);
    wq__gate_leave(m);
    if (!err)
        wq__report_duration(m, WQ__REPORT_WORK, work);
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
    (void)catch_up_before_done(m);
    const wq_err err = wq__core_done_key(&m->core, key, hash, now, &work);
    wq__gate_leave(m);
    if (!err)
        wq__report_duration(m, WQ__REPORT_WORK, work);
    return err;
}

/* End all loans or none. `work`: how long each lasted; NULL: there are no
 * sinks. */
static wq_err
done_all(struct wq__memory *m, wq_item **items, size_t n, int64_t *work,
         size_t *done)
{
    const int64_t now = wq__memory_stamp(m);
    wq_err        err = WQ_OK;
    int64_t       nobody;

    wq__gate_enter(m);
    (void)catch_up_before_done(m);
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
        wq__report_duration(m, WQ__REPORT_WORK, work[i]);
    if (work && work != at_hand)
        wq__mem_free(&m->shared_mem, work, n * sizeof *work);
    return err;
}

/* ---- both --------------------------------------------------------------- */

/* End the loan of *b->out and hand out the next key, in one critical section,
 * without waiting: WQ_ENOTFOUND, if there is no key. `*done`: the loan has
 * ended, and lasted `*work`. */
static wq_err
done_and_try_get(struct wq__memory *m, struct batch *b, bool *done,
                 int64_t *work)
{
    const int64_t now = wq__memory_stamp(m);

    wq__gate_enter(m);
    const wq_err lack = catch_up_before_done(m);
    wq_err       err = wq__core_done(&m->core, *b->out, now, work);
    *done = !err;
    if (!err) {
        *b->out = NULL;
        err = take_or_explain(m, b, lack);
    }
    wq__gate_leave(m);
    return err;
}

wq_err
wq__memory_next(wq_queue *q, int64_t timeout_ns, wq_item **item)
{
    struct wq__memory *m = wq__memory_of(q);
    int64_t            waited = 0, work;
    struct batch       b = {.out = item, .max = 1, .waited = &waited};
    bool               done;

    if (!*item)
        return wq__memory_get(q, timeout_ns, item);
    const wq_err err = done_and_try_get(m, &b, &done, &work);
    if (!done)
        return err; /* may be any error of a wq_order */
    wq__report_duration(m, WQ__REPORT_WORK, work);
    if (!err)
        report_latencies(m, &b);
    if (err != WQ_ENOTFOUND)
        return err;
    return timeout_ns ? wq__memory_get(q, timeout_ns, item) : WQ_ETIMEDOUT;
}
