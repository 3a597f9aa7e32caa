/* SPDX-License-Identifier: MIT */
/* stop.c: how does a queue pause, shut down and drain? */
#include "memory/gate.h"
#include "port/race.h"

bool
wq__memory_shutting_down(const wq_queue *q)
{
    struct wq__memory *m = wq__memory_of((wq_queue *)q);
    const bool closed = atomic_load_explicit(&m->closed, memory_order_acquire);

    if (closed)
        wq__race_acquire(&m->closed);
    return closed;
}

/* Handle the deadlines at a shutdown, as wq_config.waiting says. */
static void
settle_waiting(struct wq__memory *m)
{
    if (m->waiting == WQ_WAITING_DROP)
        wq__core_drop_waiting(&m->core);
    else if (m->waiting != WQ_WAITING_KEEP && m->core.waiting.len)
        wq__core_flush_waiting(&m->core, m->clock->now(m->clock),
                               m->waiting == WQ_WAITING_FLUSH_ALL);
}

/* Refuse adds from now on. Adds that were accepted before are merged, or stay
 * in the closed inbox for later gets. Returns the threads that may have to
 * return: getters, and producers that wait for capacity. */
static struct wq__sleeper *
stop_adds(struct wq__memory *m)
{
    wq__race_release(&m->closed);
    atomic_store_explicit(&m->closed, true, memory_order_release);
    wq__inbox_close(&m->inbox);
    (void)wq__gate_catch_up(m);
    wq__core_shut_down(&m->core);
    settle_waiting(m);
    wq__core_pause(&m->core, false);
    wq__memory_review_gets(m);
    return wq__sleepers_take_all(&m->producers, WQ__WAKE_LOOK,
                                 wq__gate_take_getters(m, WQ__WAKE_LOOK));
}

struct wq__sleeper *
wq__memory_stop_all(struct wq__memory *m)
{
    m->shutdowns++;
    return wq__sleepers_take_all(&m->drainers, WQ__WAKE_LOOK, stop_adds(m));
}

void
wq__memory_review_gets(struct wq__memory *m)
{
    const unsigned other = WQ__PAUSED | WQ__GROUPED | WQ__AGEING;

    m->plain_gets = !m->destroying && !(m->core.ready.special & other);
}

static wq_err
set_paused(struct wq__memory *m, bool paused)
{
    wq_err err = WQ_OK;

    wq__gate_enter(m);
    if (paused && m->core.shutting_down)
        err = WQ_ESHUTDOWN;
    else
        wq__core_pause(&m->core, paused);
    wq__memory_review_gets(m);
    wq__gate_leave(m);
    return err;
}

wq_err
wq__memory_pause(wq_queue *q)
{
    return set_paused(wq__memory_of(q), true);
}

wq_err
wq__memory_resume(wq_queue *q)
{
    return set_paused(wq__memory_of(q), false);
}

void
wq__memory_shutdown(wq_queue *q)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    wq__gate_leave_waking(m, wq__memory_stop_all(m));
}

/* `shutdowns`: how many calls of wq_shutdown() there were when the drain
 * began. */
static wq_err
wait_for_drain(struct wq__memory *m, uint64_t shutdowns, int64_t timeout_ns)
{
    const int64_t deadline_ns = wq__memory_deadline(m, timeout_ns);

    while (!wq__gate_is_drained(m)) {
        if (m->shutdowns != shutdowns)
            return WQ_EINTERRUPTED;
        if (timeout_ns == 0 || wq__memory_is_past(m, deadline_ns))
            return WQ_ETIMEDOUT;
        wq__gate_await_drain(m, deadline_ns);
    }
    return WQ_OK;
}

wq_err
wq__memory_drain(wq_queue *q, int64_t timeout_ns)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    wq__gate_begin_blocking(m);
    const uint64_t shutdowns = m->shutdowns;
    wq__gate_leave_waking(m, stop_adds(m));
    wq__gate_enter(m);
    const wq_err err = wait_for_drain(m, shutdowns, timeout_ns);
    wq__gate_end_blocking(m);
    return err;
}

void
wq__memory_interrupt(wq_queue *q)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    if (m->getters.len == 0)
        m->interrupted = true;
    wq__gate_leave_waking(m, wq__gate_take_getters(m, WQ__WAKE_INTERRUPT));
}
