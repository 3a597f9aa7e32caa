/* SPDX-License-Identifier: MIT */
/* stop.c: how does a queue pause, and how does it come to rest? */
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

/* What becomes of deadlines at a shutdown. */
static void
settle_waiting(struct wq__memory *m)
{
    if (m->waiting == WQ_WAITING_DROP)
        wq__core_drop_waiting(&m->core);
    else if (m->waiting != WQ_WAITING_KEEP && m->core.waiting.len)
        wq__core_hasten(&m->core, m->clock->now(m->clock),
                        m->waiting == WQ_WAITING_FLUSH_ALL);
}

/* What was accepted before this is taken in, or stays in the closed inbox for
 * the gets to come. Returns those who may have to go home: getters, and
 * producers that wait for room. */
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

/* The same, and no drain goes on waiting. */
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

wq_err
wq__memory_pause(wq_queue *q)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    const wq_err err = m->core.shutting_down ? WQ_ESHUTDOWN : WQ_OK;
    if (!err)
        wq__core_pause(&m->core, true);
    wq__memory_review_gets(m);
    wq__gate_leave(m);
    return err;
}

wq_err
wq__memory_resume(wq_queue *q)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    wq__core_pause(&m->core, false);
    wq__memory_review_gets(m);
    wq__gate_leave(m);
    return WQ_OK;
}

void
wq__memory_shutdown(wq_queue *q)
{
    struct wq__memory *m = wq__memory_of(q);

    wq__gate_enter(m);
    wq__gate_leave_waking(m, wq__memory_stop_all(m));
}

/* `shutdowns`: how many there were when the drain began. */
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
    wq__gate_stay(m);
    const uint64_t shutdowns = m->shutdowns;
    wq__gate_leave_waking(m, stop_adds(m));
    wq__gate_enter(m);
    const wq_err err = wait_for_drain(m, shutdowns, timeout_ns);
    wq__gate_leave_for_good(m);
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
