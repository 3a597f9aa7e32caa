/* SPDX-License-Identifier: MIT */
/* park.c: one thread sleeps, another wakes it; see park.h. */
#include "port/park.h"

#include <wq/wq.h>

#if WQ__HAVE_FUTEX

void
wq__parker_init(struct wq__parker *p)
{
    atomic_init(&p->woken, 0);
}

void
wq__parker_fini(struct wq__parker *p)
{
    (void)p;
}

bool
wq__park(struct wq__parker *p, int64_t deadline_ns)
{
    while (!atomic_load_explicit(&p->woken, memory_order_acquire))
        if (!wq__futex_wait(&p->woken, 0, deadline_ns))
            return atomic_load_explicit(&p->woken, memory_order_acquire);
    return true;
}

void
wq__unpark(struct wq__parker *p)
{
    /* From here on the sleeper may return and its stack frame be gone: the wake
     * names the address only (see futex.h). */
    atomic_store_explicit(&p->woken, 1, memory_order_release);
    wq__futex_wake_one(&p->woken);
}

#else

#include <errno.h>
#include <time.h>

void
wq__parker_init(struct wq__parker *p)
{
    pthread_condattr_t attr;

    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&p->mutex, NULL);
    (void)pthread_cond_init(&p->cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    p->woken = false;
}

void
wq__parker_fini(struct wq__parker *p)
{
    (void)pthread_cond_destroy(&p->cond);
    (void)pthread_mutex_destroy(&p->mutex);
}

bool
wq__park(struct wq__parker *p, int64_t deadline_ns)
{
    const struct timespec until = {
        .tv_sec = (time_t)(deadline_ns / 1000000000),
        .tv_nsec = (long)(deadline_ns % 1000000000),
    };
    int rc = 0;

    (void)pthread_mutex_lock(&p->mutex);
    while (!p->woken && rc != ETIMEDOUT)
        rc = deadline_ns == WQ_FOREVER
                 ? pthread_cond_wait(&p->cond, &p->mutex)
                 : pthread_cond_timedwait(&p->cond, &p->mutex, &until);
    const bool woken = p->woken;
    (void)pthread_mutex_unlock(&p->mutex);
    return woken;
}

void
wq__unpark(struct wq__parker *p)
{
    (void)pthread_mutex_lock(&p->mutex);
    p->woken = true;
    (void)pthread_cond_signal(&p->cond);
    (void)pthread_mutex_unlock(&p->mutex);
}

#endif
