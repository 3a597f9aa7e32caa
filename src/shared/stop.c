/* SPDX-License-Identifier: MIT */
/* stop.c: how does a handle pause, shut down, drain and end? Other handles of
 * the store do not notice. */
#include "shared/call.h"
#include "shared/report.h"
#include "shared/shared.h"

#include "core/mem.h"
#include "port/thread_mark.h"

bool
wq__shared_shutting_down(const wq_queue *q)
{
    const struct wq__shared *s = wq__shared_of((wq_queue *)q);

    return atomic_load_explicit(&s->closed, memory_order_acquire);
}

/* ---- pause --------------------------------------------------------------- */

static wq_err
set_paused(struct wq__shared *s, bool paused)
{
    wq_err err = WQ_OK;

    if (!wq__shared_enter_own(s))
        return WQ_ESTATE;
    if (paused && atomic_load_explicit(&s->closed, memory_order_relaxed))
        err = WQ_ESHUTDOWN;
    else
        s->paused = paused;
    wq__shared_leave(s);
    return err;
}

wq_err
wq__shared_pause(wq_queue *q)
{
    return set_paused(wq__shared_of(q), true);
}

wq_err
wq__shared_resume(wq_queue *q)
{
    return set_paused(wq__shared_of(q), false);
}

/* ---- shutdown ------------------------------------------------------------ */

/* With the lock. */
static void
close_handle(struct wq__shared *s)
{
    atomic_store_explicit(&s->closed, true, memory_order_release);
    s->paused = false;
}

void
wq__shared_shutdown(wq_queue *q)
{
    struct wq__shared *s = wq__shared_of(q);

    if (!wq__shared_enter_own(s))
        return;
    close_handle(s);
    s->shutdowns++;
    wq__shared_wake_and_leave(s, WQ__WAKE_LOOK);
}

void
wq__shared_interrupt(wq_queue *q)
{
    struct wq__shared *s = wq__shared_of(q);

    if (!wq__shared_enter_own(s))
        return;
    if (s->getters.len + s->changing == 0)
        s->interrupted = true;
    wq__shared_wake_and_leave(s, WQ__WAKE_INTERRUPT);
}

/* ---- waiting ------------------------------------------------------------- */

/* What a thread waits for: a look at the store decides. */
struct goal {
    bool (*reached)(const struct wq__shared *s);
    struct wq__sleepers *list;
    uint64_t shutdowns; /* how many there were when it began; a drain ends with
                           the next one */
    bool     drains;
};

static bool
is_drained(const struct wq__shared *s)
{
    return s->seen.ready == 0 && s->holds.lent == s->holds.lost;
}

static bool
is_idle(const struct wq__shared *s)
{
    return s->seen.ready == 0 && s->seen.held == 0;
}

/* With the lock, which is released meanwhile. */
static wq_err
look(struct wq__shared *s)
{
    wq__lock_release(&s->lock);
    const wq_err err = wq__shared_run(s, NULL);
    wq__shared_enter(s);
    return err;
}

static wq_err
wait_for(struct wq__shared *s, const struct goal *g, int64_t timeout_ns)
{
    const int64_t deadline_ns = wq__shared_deadline(s, timeout_ns);
    bool          looked = false; /* and nothing was reported since */

    for (;;) {
        const wq_err err = looked ? WQ_OK : look(s);
        if (err)
            return err;
        if (g->reached(s))
            return WQ_OK;
        if (s->destroying || (g->drains && s->shutdowns != g->shutdowns))
            return WQ_EINTERRUPTED;
        if (timeout_ns == 0 || wq__shared_is_past(s, deadline_ns))
            return WQ_ETIMEDOUT;
        looked = wq__shared_sleep(s, g->list, deadline_ns) == WQ__WAKE_LISTEN;
    }
}

wq_err
wq__shared_drain(wq_queue *q, int64_t timeout_ns)
{
    struct wq__shared *s = wq__shared_of(q);

    if (!wq__shared_enter_own(s))
        return WQ_ESTATE;
    wq__shared_begin_blocking(s);
    const struct goal g = {is_drained, &s->drainers, s->shutdowns, true};
    close_handle(s);
    wq__shared_wake_and_leave(s, WQ__WAKE_LOOK);
    wq__shared_enter(s);
    const wq_err err = wait_for(s, &g, timeout_ns);
    wq__shared_end_blocking(s);
    return err;
}

wq_err
wq__shared_wait_idle(wq_queue *q, int64_t timeout_ns)
{
    struct wq__shared *s = wq__shared_of(q);
    const struct goal  g = {is_idle, &s->idlers, 0, false};

    if (!wq__shared_enter_own(s))
        return WQ_ESTATE;
    wq__shared_begin_blocking(s);
    const wq_err err = wq__holds_any_of(&s->holds, wq__thread_mark_serial())
                           ? WQ_ESTATE
                           : wait_for(s, &g, timeout_ns);
    wq__shared_end_blocking(s);
    return err;
}

/* ---- the end ------------------------------------------------------------- */

void
wq__shared_free(struct wq__shared *s)
{
    const wq_allocator mem = s->mem;

    wq__shared_stop_watching(s);
    wq__holds_fini(&s->holds);
    wq__lock_fini(&s->lock);
    wq__mem_free_str(&s->mem, s->name);
    wq__mem_free(&mem, s, sizeof *s);
}

void
wq__shared_destroy(wq_queue *q)
{
    struct wq__shared *s = wq__shared_of(q);
    const bool         foreign = wq__shared_is_foreign(s);

    if (!foreign) {
        wq__shared_enter(s);
        s->destroying = true;
        s->shutdowns++;
        close_handle(s);
        wq__shared_evacuate(s);
        wq__shared_end_lease(s);
    }
    wq__shared_report_close(s, !foreign);
    wq__shared_stop_watching(s); /* the clock may be the engine's */
    wq__engine_close(s->engine, foreign);
    wq__shared_free(s);
}
