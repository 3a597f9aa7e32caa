/* SPDX-License-Identifier: MIT */
/* room.c: what if there is no room for a key?
 *
 * Adds of a queue with a bound, and all that name several keys or say how: one
 * attempt under the lock, all keys or none. Then, as the queue's policy says,
 * the add is refused, waits until keys have gone, or others make room.
 */
#include "memory/gate.h"

/* One attempt, with the lock. The core is told the time if it matters to it: a
 * queue that neither delays nor keeps ages reads no clock. */
static wq_err
try_add(struct wq__memory *m, const struct wq__how *how, const wq_key *keys,
        struct wq__pick *picks, size_t n, struct wq__space *needs,
        wq__ref *victims)
{
    const bool     is_now = how->kind == WQ__ADD_NOW;
    struct wq__how told = *how;
    const wq_err   err =
        is_now ? wq__gate_catch_up(m) : wq__gate_catch_up_to(m, how->now);

    if (err)
        return err;
    if (is_now)
        told.now = wq__memory_stamp(m);
    else
        atomic_store_explicit(&m->wait_hint, true, memory_order_relaxed);
    return wq__core_add_with(&m->core, &told, keys, picks, n, needs, victims);
}

/* Can it help to wait? Not for more than there ever is; nor for an order that
 * calls itself full, and then needs nothing of ours. */
static bool
may_fit_later(const struct wq__memory *m, wq_err err, struct wq__space needs)
{
    return err == WQ_EFULL && needs.keys && wq__core_ever_fits(&m->core, needs);
}

/* The queue is full: try again whenever there may be room. That may have come
 * by time, and what `how` says is as late as the call. */
static wq_err
wait_for_room(struct wq__memory *m, const struct wq__how *how,
              const wq_key *keys, struct wq__pick *picks, size_t n,
              struct wq__space needs, int64_t timeout_ns)
{
    const int64_t  deadline_ns = wq__memory_deadline(m, timeout_ns);
    const uint64_t ticket = m->tickets++;
    struct wq__how later = *how;
    wq_err         err = WQ_EFULL;

    while (may_fit_later(m, err, needs)) {
        if (m->destroying)
            return WQ_ESHUTDOWN;
        if (wq__memory_is_past(m, deadline_ns))
            return WQ_ETIMEDOUT;
        wq__gate_await_room(m, needs, ticket, deadline_ns);
        if (m->destroying)
            continue;
        if (how->kind != WQ__ADD_NOW) /* which looks for itself */
            later.now = m->clock->now(m->clock);
        err = try_add(m, &later, keys, picks, n, &needs, NULL);
    }
    return err;
}

static void
bury_all(struct wq__memory *m, wq__ref victims)
{
    while (victims)
        victims = wq__core_bury(&m->core, victims);
}

/* Show the displaced keys to on_drop(), without the lock. Each record, which
 * holds the bytes, stays until then; no other thread can reach it. */
static void
report_victims(struct wq__memory *m, wq__ref victims)
{
    while (victims) {
        const wq_key key = wq__core_victim_key(&m->core, victims);

        wq__gate_leave(m);
        m->on_drop(m->drop_ctx, key, 0, WQ_EFULL);
        wq__gate_enter(m);
        victims = wq__core_bury(&m->core, victims);
    }
}

wq_err
wq__memory_add_picks(struct wq__memory *m, const struct wq__how *how,
                     const wq_key *keys, struct wq__pick *picks, size_t n,
                     int64_t timeout_ns)
{
    struct wq__how   bounded = *how;
    struct wq__space needs = {0};
    wq__ref          victims = 0;

    bounded.displace = m->overflow == WQ_OVERFLOW_DROP_OLDEST;
    wq__gate_enter(m);
    wq_err err = try_add(m, &bounded, keys, picks, n, &needs, &victims);
    if (m->overflow == WQ_OVERFLOW_BLOCK && timeout_ns != 0 &&
        may_fit_later(m, err, needs)) {
        wq__gate_stay(m);
        err = wait_for_room(m, &bounded, keys, picks, n, needs, timeout_ns);
        wq__gate_leave_for_good(m);
        return err;
    }
    if (m->on_drop)
        report_victims(m, victims);
    else
        bury_all(m, victims);
    wq__gate_leave(m);
    return err;
}
