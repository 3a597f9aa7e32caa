/* SPDX-License-Identifier: MIT */
/* waits.c: how does a thread wait for work to be over?
 *
 * wq_flush(), wq_wait_idle(), wq_flush_key() and wq_remove_wait() sleep on one
 * list, each with what it waits for. Every thread that changes the state
 * checks, when it leaves, which of these waits are over (gate.h): so a
 * condition that holds only for a moment is not missed.
 *
 * Cost of a change while such threads wait: O(waiting threads).
 */
#include "core/same.h"
#include "memory/gate.h"
#include "port/thread_mark.h"

struct waiter {
    struct wq__sleeper self; /* first: a sleeper is the beginning of it */
    enum { FLUSH, IDLE, KEY } what;
    bool     over;  /* what it waits for has happened */
    uint64_t epoch; /* FLUSH */
    wq_key   key;   /* KEY: the bytes are the caller's, which sleeps */
    uint32_t hash;  /* ... of it */
    struct wq__key_flush key_flush; /* ... the runs to wait for */
};

/* To be called after every change: KEY keeps track of hand-outs. */
static bool
is_over(struct wq__memory *m, struct waiter *w)
{
    switch (w->what) {
    case FLUSH:
        return wq__core_has_flushed(&m->core, w->epoch);
    case IDLE:
        return wq__core_idle(&m->core) && !wq__inbox_holds(&m->inbox);
    case KEY:
    default:
        return wq__core_has_flushed_key(&m->core, w->key, w->hash,
                                        &w->key_flush);
    }
}

/* Is the core idle, but not the inbox? Its adds may merge into deadlines, and
 * the queue is idle then. So an IDLE waiter does not sleep while the core is
 * idle: its wait is over, or it is woken to merge the inbox. */
static bool
must_catch_up(struct wq__memory *m, const struct waiter *w)
{
    return w->what == IDLE && wq__core_idle(&m->core);
}

struct wq__sleeper *
wq__waits_take(struct wq__memory *m, struct wq__sleeper *wake)
{
    struct wq__sleeper *next;

    for (struct wq__sleeper *s = m->waiters.first; s; s = next) {
        struct waiter *w = (struct waiter *)(void *)s;

        next = s->next;
        w->over = m->destroying || is_over(m, w);
        if (w->over || must_catch_up(m, w))
            wake = wq__sleepers_take(&m->waiters, s, WQ__WAKE_LOOK, wake);
    }
    return wake;
}

/* With the lock. wq_destroy() waits for the caller. */
static wq_err
wait_for(struct wq__memory *m, struct waiter *w, int64_t timeout_ns)
{
    const int64_t deadline_ns = wq__memory_deadline(m, timeout_ns);

    while (!w->over && !is_over(m, w)) {
        if (m->destroying)
            return WQ_EINTERRUPTED;
        const wq_err err = must_catch_up(m, w) ? wq__gate_catch_up(m) : WQ_OK;
        if (err || wq__core_unfinished_runs(&m->core) == 0)
            return err;
        if (timeout_ns == 0 || wq__memory_is_past(m, deadline_ns))
            return WQ_ETIMEDOUT;
        wq__gate_await_waiter(m, &w->self, deadline_ns);
    }
    return m->destroying ? WQ_EINTERRUPTED : WQ_OK;
}

/* The same, and leave. */
static wq_err
wait_and_leave(struct wq__memory *m, struct waiter *w, int64_t timeout_ns)
{
    wq__gate_begin_blocking(m);
    const wq_err err = wait_for(m, w, timeout_ns);
    wq__gate_end_blocking(m);
    return err;
}

/* ---- all keys ----------------------------------------------------------- */

/* Wait for the end of all runs that are unfinished now (FLUSH), or for no
 * unfinished run at all (IDLE). Adds in the inbox count. WQ_ESTATE: the caller
 * holds a key, and would wait for itself. */
static wq_err
wait_for_all(struct wq__memory *m, struct waiter *w, int64_t timeout_ns)
{
    wq__gate_enter(m);
    wq_err err = wq__gate_catch_up(m);
    if (!err && wq__core_holds_any(&m->core, wq__thread_mark_serial()))
        err = WQ_ESTATE;
    if (err) {
        wq__gate_leave(m);
        return err;
    }
    if (w->what == FLUSH)
        w->epoch = wq__core_begin_flush(&m->core);
    return wait_and_leave(m, w, timeout_ns);
}

/* A flush that does not wait can only find out whether the queue is idle. */
wq_err
wq__memory_flush(wq_queue *q, int64_t timeout_ns)
{
    struct waiter w = {.what = timeout_ns ? FLUSH : IDLE};

    return wait_for_all(wq__memory_of(q), &w, timeout_ns);
}

wq_err
wq__memory_wait_idle(wq_queue *q, int64_t timeout_ns)
{
    struct waiter w = {.what = IDLE};

    return wait_for_all(wq__memory_of(q), &w, timeout_ns);
}

/* ---- one key ------------------------------------------------------------ */

static wq_err
prepare_key(struct wq__memory *m, const struct waiter *w, int64_t now)
{
    const wq_err err = wq__gate_catch_up_to(m, now);

    if (err)
        return err;
    return wq__core_is_held_by(&m->core, w->key, w->hash,
                               wq__thread_mark_serial())
               ? WQ_ESTATE
               : WQ_OK;
}

wq_err
wq__memory_flush_key(wq_queue *q, wq_key key, int64_t timeout_ns)
{
    struct wq__memory *m = wq__memory_of(q);
    struct waiter      w = {
             .what = KEY, .key = key, .hash = wq__core_hash(&m->core, key)};
    const int64_t now = m->clock->now(m->clock);

    wq__gate_enter(m);
    const wq_err err = prepare_key(m, &w, now);
    if (err) {
        wq__gate_leave(m);
        return err;
    }
    w.key_flush = wq__core_begin_key_flush(&m->core, key, w.hash);
    return wait_and_leave(m, &w, timeout_ns);
}

/* A thread in wq_remove_wait() that waits for a loan to end. Every request for
 * the key is withdrawn until then: the record is marked WQ__REMOVING. All
 * removers of a key share the mark; the last one that leaves before the loan
 * has ended clears it. */
struct wq__remover {
    const struct waiter *waiter;
    struct wq__remover  *next; /* of the queue's list */
};

/* A remover whose loan has ended but which has not left yet does not count: the
 * key may be HELD again. */
static bool
is_being_removed(const struct wq__memory *m, wq_key key)
{
    for (const struct wq__remover *r = m->removers; r; r = r->next)
        if (!r->waiter->over && wq__same_key(r->waiter->key, key))
            return true;
    return false;
}

void
wq__waits_withdraw_adds(struct wq__memory *m)
{
    for (const struct wq__remover *r = m->removers; r; r = r->next)
        if (!r->waiter->over)
            wq__inbox_withdraw(&m->inbox, r->waiter->key);
}

static void
leave_list(struct wq__memory *m, const struct wq__remover *r)
{
    struct wq__remover **link = &m->removers;

    while (*link != r)
        link = &(*link)->next;
    *link = r->next;
}

/* With the lock; releases it. */
static wq_err
await_end_of_loan(struct wq__memory *m, struct waiter *w, int64_t timeout_ns)
{
    struct wq__remover r = {.waiter = w, .next = m->removers};

    w->key_flush = wq__core_begin_key_flush(&m->core, w->key, w->hash);
    (void)wq__core_remove_at_done(&m->core, w->key, w->hash, true);
    m->removers = &r;
    wq__gate_begin_blocking(m);
    const wq_err err = wait_for(m, w, timeout_ns);
    leave_list(m, &r);
    if (err && !is_being_removed(m, w->key)) /* the key is still HELD */
        (void)wq__core_remove_at_done(&m->core, w->key, w->hash, false);
    wq__gate_end_blocking(m);
    return err;
}

wq_err
wq__memory_remove_wait(wq_queue *q, wq_key key, int64_t timeout_ns)
{
    struct wq__memory *m = wq__memory_of(q);
    const int64_t      now = m->clock->now(m->clock);
    struct waiter      w = {
             .what = KEY, .key = key, .hash = wq__core_hash(&m->core, key)};

    wq__gate_enter(m);
    wq_err err = prepare_key(m, &w, now);
    if (!err) {
        const wq_err removed = wq__core_remove(&m->core, key, w.hash, now);
        if (removed == WQ_ENOTSUP)
            err = removed;
    }
    if (!err && wq__core_states(&m->core, key, w.hash) & WQ__HELD)
        return await_end_of_loan(m, &w, timeout_ns);
    wq__gate_leave(m);
    return err;
}
