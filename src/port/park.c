/* SPDX-License-Identifier: MIT */
/* park.c: one thread sleeps, another wakes it; see park.h. */
#include "port/park.h"

#include <wq/wq.h>

#if WQ__HAVE_FUTEX

#include "port/race.h"
#include "port/time.h"

enum { WOKEN = 1, ALARM = 2 };

void
wq__parker_init(struct wq__parker *p)
{
    atomic_init(&p->signs, 0);
    wq__race_disable_checking(p, sizeof *p);
}

void
wq__parker_fini(struct wq__parker *p)
{
    wq__race_enable_checking(p, sizeof *p);
}

/* Has unpark or an alarm come? Then `*woken` is what park returns. */
static bool
read_signs(struct wq__parker *p, bool *woken)
{
    const uint32_t signs =
        atomic_load_explicit(&p->signs, memory_order_acquire);

    if (signs)
        wq__race_acquire(p);
    if (signs == ALARM)
        atomic_fetch_and_explicit(&p->signs, ~(uint32_t)ALARM,
                                  memory_order_relaxed);
    *woken = signs & WOKEN;
    return signs != 0;
}

bool
wq__park(struct wq__parker *p, int64_t deadline_ns)
{
    bool woken;

    while (!read_signs(p, &woken))
        if (!wq__futex_wait(&p->signs, 0, deadline_ns)) {
            (void)read_signs(p, &woken); /* unpark may have come just now */
            return woken;
        }
    return woken;
}

/* A futex cannot sleep by CLOCK_BOOTTIME. One that sleeps by the wall clock
 * wakes up in time after a suspend, but late if that clock is set back;
 * checking CLOCK_BOOTTIME once a minute bounds the delay. */
static int64_t
wall_deadline(int64_t deadline_ns)
{
    const int64_t minute = INT64_C(60) * 1000000000;
    const int64_t left = deadline_ns - wq__time_boottime();

    return wq__time_wall() + (left < minute ? left : minute);
}

bool
wq__park_boottime(struct wq__parker *p, int64_t deadline_ns)
{
    bool woken;

    if (deadline_ns == WQ_FOREVER)
        return wq__park(p, deadline_ns);
    while (!read_signs(p, &woken) && wq__time_boottime() < deadline_ns)
        (void)wq__futex_wait_wall(&p->signs, 0, wall_deadline(deadline_ns));
    return woken;
}

static void
give_sign(struct wq__parker *p, uint32_t sign)
{
    wq__race_release(p);
    atomic_fetch_or_explicit(&p->signs, sign, memory_order_release);
    /* Once WOKEN is set the sleeper may return, and its stack frame may be
     * gone: the wake uses the address only (see futex.h). */
    wq__futex_wake_one(&p->signs);
}

void
wq__unpark(struct wq__parker *p)
{
    give_sign(p, WOKEN);
}

void
wq__alarm(struct wq__parker *p)
{
    give_sign(p, ALARM);
}

/* Relaxed: an unpark that happened before this load cannot be missed, because
 * no thread clears WOKEN. */
bool
wq__parker_is_woken(struct wq__parker *p)
{
    return atomic_load_explicit(&p->signs, memory_order_relaxed) & WOKEN;
}

#else

#include <errno.h>
#include <time.h>

#include "port/cancel.h"
#include "port/time.h"

/* Condition variables of macOS sleep by the wall clock alone. There a sleep has
 * slices, and the monotonic clock decides after each whether it is over: a wall
 * clock that is set back prolongs it by one slice at most. */
#if defined(__APPLE__) || defined(WQ_PORT_NO_COND_CLOCK)

enum { SLICE_NS = 100000000 }; /* ten looks at the clock a second */

static void
choose_clock(pthread_condattr_t *attr)
{
    (void)attr;
}

static int
wait_until(struct wq__parker *p, int64_t deadline_ns)
{
    const int64_t left_ns = deadline_ns - wq__time_now();

    if (left_ns <= 0)
        return ETIMEDOUT;
    const struct timespec until = wq__time_spec(
        wq__time_wall() + (left_ns < SLICE_NS ? left_ns : SLICE_NS));
    const int rc = pthread_cond_timedwait(&p->cond, &p->mutex, &until);
    return rc == ETIMEDOUT ? 0 : rc;
}

#else

static void
choose_clock(pthread_condattr_t *attr)
{
    (void)pthread_condattr_setclock(attr, CLOCK_MONOTONIC);
}

static int
wait_until(struct wq__parker *p, int64_t deadline_ns)
{
    const struct timespec until = wq__time_spec(deadline_ns);

    return pthread_cond_timedwait(&p->cond, &p->mutex, &until);
}

#endif

void
wq__parker_init(struct wq__parker *p)
{
    pthread_condattr_t  attr;
    pthread_mutexattr_t inherits; /* for real-time queues */

    (void)pthread_condattr_init(&attr);
    choose_clock(&attr);
    (void)pthread_mutexattr_init(&inherits);
    (void)pthread_mutexattr_setprotocol(&inherits, PTHREAD_PRIO_INHERIT);
    (void)pthread_mutex_init(&p->mutex, &inherits);
    (void)pthread_cond_init(&p->cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    (void)pthread_mutexattr_destroy(&inherits);
    p->woken = p->alarm = false;
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
    const int state = wq__cancel_off();
    int       rc = 0;

    (void)pthread_mutex_lock(&p->mutex);
    while (!p->woken && !p->alarm && rc != ETIMEDOUT)
        rc = deadline_ns == WQ_FOREVER ? pthread_cond_wait(&p->cond, &p->mutex)
                                       : wait_until(p, deadline_ns);
    const bool woken = p->woken;
    p->alarm = false;
    (void)pthread_mutex_unlock(&p->mutex);
    wq__cancel_restore(state);
    return woken;
}

bool
wq__park_boottime(struct wq__parker *p, int64_t deadline_ns)
{
    /* Not called: wq__time_has_boottime() is false. */
    return wq__park(p, deadline_ns);
}

static void
give_sign(struct wq__parker *p, bool *sign)
{
    (void)pthread_mutex_lock(&p->mutex);
    *sign = true;
    (void)pthread_cond_signal(&p->cond);
    (void)pthread_mutex_unlock(&p->mutex);
}

void
wq__unpark(struct wq__parker *p)
{
    give_sign(p, &p->woken);
}

void
wq__alarm(struct wq__parker *p)
{
    give_sign(p, &p->alarm);
}

bool
wq__parker_is_woken(struct wq__parker *p)
{
    (void)pthread_mutex_lock(&p->mutex);
    const bool woken = p->woken;
    (void)pthread_mutex_unlock(&p->mutex);
    return woken;
}

#endif
