/* SPDX-License-Identifier: MIT */
/* lock.h: how do threads take turns?
 *
 * A mutual-exclusion lock for short critical sections. Uncontended it is one
 * atomic instruction to take and one to release, inlined, without a system
 * call. Contended it spins for a moment, because our critical sections are
 * shorter than a sleep, and then sleeps in the kernel. It is not fair: a
 * thread that is running beats one that must be woken, which is what keeps
 * throughput up when there are more threads than processors.
 *
 *   word   0 free    1 taken    2 taken, and someone may sleep
 *
 * Memory order: taking acquires and releasing releases, so what one holder
 * wrote the next one sees. Sleeping is safe because a thread sleeps only
 * while the word is 2, and whoever turns a 2 into 0 wakes one sleeper.
 */
#ifndef WQ_PORT_LOCK_H
#define WQ_PORT_LOCK_H

#include <stdbool.h>

#include "port/futex.h"

#if WQ__HAVE_FUTEX

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

struct wq__lock {
    _Atomic uint32_t word;
};

void wq__lock_take_contended(struct wq__lock *l);

static inline void
wq__lock_init(struct wq__lock *l)
{
    atomic_init(&l->word, 0);
}

static inline void
wq__lock_fini(struct wq__lock *l)
{
    (void)l;
}

static inline bool
wq__lock_try(struct wq__lock *l)
{
    uint32_t expected = 0;
    return atomic_compare_exchange_strong_explicit(
        &l->word, &expected, 1, memory_order_acquire, memory_order_relaxed);
}

static inline void
wq__lock_take(struct wq__lock *l)
{
    if (!wq__lock_try(l))
        wq__lock_take_contended(l);
}

static inline void
wq__lock_release(struct wq__lock *l)
{
    if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2)
        wq__futex_wake_one(&l->word);
}

/* For the first line of functions that need the lock. */
static inline void
wq__lock_assert_taken(struct wq__lock *l)
{
    assert(atomic_load_explicit(&l->word, memory_order_relaxed) != 0);
    (void)l;
}

#else

#include <pthread.h>

struct wq__lock {
    pthread_mutex_t mutex;
};

static inline void
wq__lock_init(struct wq__lock *l)
{
    (void)pthread_mutex_init(&l->mutex, NULL);
}

static inline void
wq__lock_fini(struct wq__lock *l)
{
    (void)pthread_mutex_destroy(&l->mutex);
}

static inline bool
wq__lock_try(struct wq__lock *l)
{
    return pthread_mutex_trylock(&l->mutex) == 0;
}

static inline void
wq__lock_take(struct wq__lock *l)
{
    (void)pthread_mutex_lock(&l->mutex);
}

static inline void
wq__lock_release(struct wq__lock *l)
{
    (void)pthread_mutex_unlock(&l->mutex);
}

static inline void
wq__lock_assert_taken(struct wq__lock *l)
{
    (void)l;
}

#endif

#endif
