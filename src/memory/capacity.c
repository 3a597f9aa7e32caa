/* SPDX-License-Identifier: MIT */
/* capacity.c: what does an add do when the queue is full?
 *
 * Adds of a queue with bounds, of several keys or with options: one attempt
 * under the lock adds all keys or none. If the queue is full, the add is
 * refused, waits until keys have left, or displaces others, as
 * wq_config.overflow says.
 */
#include "memory/gate.h"

/* One attempt, with the lock. Reads the clock only if the core needs the time:
 * for delays and ages. */
static wq_err
try_add(struct wq__memory *m, const struct wq__how *how, const wq_key *keys,
        struct wq__prepared *prepared, size_t n, struct wq__capacity *needs,
        wq__ref *victims)
{
    const bool     is_now = how->kind == WQ__ADD_NOW;
    struct wq__how timed = *how;
    const wq_err   err =
        is_now ? wq__gate_catch_up(m) : wq__gate_catch_up_to(m, how->now);

    if (err)
        return err;
    if (is_now)
        timed.now = wq__memory_stamp(m);
    else
        atomic_store_explicit(&m->wait_hint, true, memory_order_relaxed);
    return wq__core_add_with(&m->core, &timed, keys, prepared, n, needs,
                             victims);
}

/* Can it help to wait? Not if the add exceeds the bounds of an empty queue, nor
 * if a wq_order returned WQ_EFULL: then needs.keys is 0. */
static bool
may_fit_later(const struct wq__memory *m, wq_err err, struct wq__capacity needs)
{
    return err == WQ_EFULL && needs.keys && wq__core_ever_fits(&m->core, needs);
}

/* The queue is full: try again whenever there may be capacity. A cooldown may
 * have ended meanwhile, so each attempt needs the current time, not that of the
 * call. */
static wq_err
wait_for_capacity(struct wq__memory *m, const struct wq__how *how,
                  const wq_key *keys, struct wq__prepared *prepared, size_t n,
                  struct wq__capacity needs, int64_t timeout_ns)
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
        wq__gate_await_capacity(m, needs, ticket, deadline_ns);
        if (m->destroying)
            continue;
        if (how->kind != WQ__ADD_NOW) /* try_add() reads it then */
            later.now = m->clock->now(m->clock);
        err = try_add(m, &later, keys, prepared, n, &needs, NULL);
    }
    return err;
}

static void
bury_all(struct wq__memory *m, wq__ref victims)
{
    while (victims)
        victims = wq__core_free_victim(&m->core, victims);
}

/* Report the displaced keys to on_drop(), without the lock. A record holds the
 * bytes of its key and stays until then; no other thread can reach it. */
static void
report_victims(struct wq__memory *m, wq__ref victims)
{
    while (victims) {
        const wq_key key = wq__core_victim_key(&m->core, victims);

        wq__gate_leave(m);
        m->on_drop(m->drop_ctx, key, 0, WQ_EFULL);
        wq__gate_enter(m);
        victims = wq__core_free_victim(&m->core, victims);
    }
}

wq_err
wq__memory_add_prepared(struct wq__memory *m, const struct wq__how *how,
                        const wq_key *keys, struct wq__prepared *prepared,
                        size_t n, int64_t timeout_ns)
{
    struct wq__how      bounded = *how;
    struct wq__capacity needs = {0};
    wq__ref             victims = 0;

    bounded.displace = m->overflow == WQ_OVERFLOW_DROP_OLDEST;
    wq__gate_enter(m);
    wq_err err = try_add(m, &bounded, keys, prepared, n, &needs, &victims);
    if (m->overflow == WQ_OVERFLOW_BLOCK && timeout_ns != 0 &&
        may_fit_later(m, err, needs)) {
        wq__gate_begin_blocking(m);
        err = wait_for_capacity(m, &bounded, keys, prepared, n, needs,
                                timeout_ns);
        wq__gate_end_blocking(m);
        return err;
    }
    if (m->on_drop)
        report_victims(m, victims);
    else
        bury_all(m, victims);
    wq__gate_leave(m);
    return err;
}
