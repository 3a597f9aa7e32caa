/* SPDX-License-Identifier: MIT */
/* wait.c: how does a thread wait for tokens?
 *
 * It reserves them, enters the bucket's list, and sleeps on the bucket's clock
 * until the time to act. An interrupt takes all sleepers off the list under the
 * lock and wakes them after that; a sleeper that was taken off must not return
 * before it is woken, because the waker still uses its stack. Cost: O(1); an
 * interrupt O(sleepers).
 */
#include <stdbool.h>

#include "clock/clock.h"
#include "limit/bucket.h"
#include "port/park.h"

/* A sleeping thread; on its stack. */
struct wq__waiter {
    struct wq__waiter *prev, *next; /* in the list, or in a waker's chain */
    struct wq__parker  parker;
    bool               taken_off; /* by a waker, which will unpark it */
};

static void
enter(wq_bucket *b, struct wq__waiter *w)
{
    wq__lock_assert_taken(&b->lock);
    *w = (struct wq__waiter){.next = b->waiters};
    wq__parker_init(&w->parker);
    if (w->next)
        w->next->prev = w;
    b->waiters = w;
}

static void
leave(wq_bucket *b, struct wq__waiter *w)
{
    wq__lock_assert_taken(&b->lock);
    *(w->prev ? &w->prev->next : &b->waiters) = w->next;
    if (w->next)
        w->next->prev = w->prev;
}

/* Sleep until an interrupt: true; or until `deadline`: false. Sleeps again
 * after an early alarm of the clock. */
static bool
sleep_until(wq_clock *clock, struct wq__waiter *w, int64_t deadline)
{
    while (!clock->park(clock, &w->parker, deadline))
        if (wq_clock_now(clock) >= deadline)
            return false;
    return true;
}

/* With the lock, which is released meanwhile: sleep until the time to act of
 * `r`. */
static wq_err
sleep_for(wq_bucket *b, wq_reservation *r)
{
    struct wq__waiter self;

    enter(b, &self);
    wq__lock_release(&b->lock);
    const bool woken = sleep_until(b->clock, &self, r->time_to_act_ns);
    wq__lock_take(&b->lock);

    const bool interrupted = self.taken_off;
    if (!interrupted)
        leave(b, &self);
    else
        wq__bucket_cancel(b, r, wq_clock_now(b->clock));
    if (interrupted && !woken) {
        wq__lock_release(&b->lock);
        while (!wq__park(&self.parker,
                         WQ_FOREVER)) /* the waker is about to unpark it */
            ;
        wq__lock_take(&b->lock);
    }
    wq__parker_fini(&self.parker);
    return interrupted ? WQ_EINTERRUPTED : WQ_OK;
}

static wq_err
wait_locked(wq_bucket *b, int64_t n, int64_t timeout_ns)
{
    wq_reservation r;

    if (n > b->rate.burst && b->rate.limit != WQ_RATE_INF)
        return WQ_EINVAL;
    if (b->interrupted) {
        b->interrupted = false;
        return WQ_EINTERRUPTED;
    }
    const int64_t now = wq_clock_now(b->clock);
    const wq_err  err = wq__bucket_take(b, now, n, timeout_ns, &r);
    if (err || r.time_to_act_ns <= now)
        return err;
    return sleep_for(b, &r);
}

wq_err
wq_bucket_wait(wq_bucket *b, int64_t timeout_ns)
{
    return wq_bucket_wait_n(b, 1, timeout_ns);
}

wq_err
wq_bucket_wait_n(wq_bucket *b, int64_t n, int64_t timeout_ns)
{
    if (!b || n < 0 || timeout_ns < 0)
        return WQ_EINVAL;
    wq__lock_take(&b->lock);
    const wq_err err = wait_locked(b, n, timeout_ns);
    wq__lock_release(&b->lock);
    return err;
}

void
wq_bucket_interrupt(wq_bucket *b)
{
    if (!b)
        return;
    wq__lock_take(&b->lock);
    struct wq__waiter *chain = b->waiters;
    b->waiters = NULL;
    b->interrupted = b->interrupted || !chain;
    for (struct wq__waiter *w = chain; w; w = w->next)
        w->taken_off = true;
    wq__lock_release(&b->lock);

    while (chain) {
        struct wq__waiter *next =
            chain->next; /* `chain` is invalid once it is woken */
        wq__unpark(&chain->parker);
        chain = next;
    }
}
