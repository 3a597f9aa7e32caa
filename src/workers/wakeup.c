/* SPDX-License-Identifier: MIT */
/* wakeup.c: waiting for a change; see wakeup.h. */
#include "workers/wakeup.h"

void
wq__wakeup_wait(struct wq__wakeup *w, struct wq__lock *lock, wq_clock *clock,
                int64_t deadline_ns)
{
    struct wq__sleeper self;

    wq__lock_assert_taken(lock);
    if (!clock)
        clock = wq_clock_monotonic();
    wq__sleeper_enter(&w->waiting, &self);
    wq__lock_release(lock);
    (void)wq__sleeper_sleep(&self, clock, deadline_ns);
    wq__lock_take(lock);
    /* The thread that woke us did so with the lock: it does not use the parker
     * any more. */
    (void)wq__sleeper_leave(&w->waiting, &self);
}

void
wq__wakeup_broadcast(struct wq__wakeup *w)
{
    /* Each stays valid: it needs the lock to return. */
    if (w->waiting.first)
        wq__wake(wq__sleepers_take_all(&w->waiting, WQ__WAKE_LOOK, NULL));
}
