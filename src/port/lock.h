/* SPDX-License-Identifier: MIT */
/* lock.h: how do threads exclude each other?
 *
 * A mutex for short critical sections: one atomic instruction to take it and
 * one to release it, without a system call while no thread waits; none at all
 * while the process has one thread, if the C library tells. A thread that
 * finds it taken spins for a moment, because our critical sections are shorter
 * than a sleep, and then sleeps in the kernel. It is not fair: a running thread
 * may take it before one that must be woken, which keeps throughput up when
 * there are more threads than processors.
 *
 *   word   0 free    1 taken    2 taken, and a thread may sleep
 *
 * K1  Taking acquires and releasing releases, so each holder sees what the
 *     holders before it wrote.
 * K2  A thread sleeps only while the word is 2 (the kernel compares again
 *     before it puts the thread to sleep), and the thread that turns 2 into 0
 *     wakes one sleeper. A woken thread takes the lock by writing 2, since
 *     other threads may sleep behind it. So no sleeper is forgotten.
 *
 * tests/protocol/lock.pml checks both.
 *
 * K3  While the process has one thread, plain loads and stores do the same: no
 *     other thread can read the word in between, and none sleeps. Only this
 *     thread can begin a second one. It does not do so between the load and the
 *     store, and what it has stored by then happens before all that the new
 *     thread does. So a lock may be taken without an atomic instruction and
 *     released with one, and the reverse.
 *
 * A lock made by wq__lock_init_inheriting() is a POSIX mutex with priority
 * inheritance instead: while a thread of high priority waits for it, the holder
 * runs with that priority. It costs more, and its waiters do not spin. A lock
 * that is initialised statically is a POSIX mutex, too (WQ__LOCK_STATIC).
 *
 * When a race detector watches the process, each take and each release gives it
 * a hint (race.h).
 */
#ifndef WQ_PORT_LOCK_H
#define WQ_PORT_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include <wq/wq.h>

#include "port/futex.h"

/* WQ_ENOTSUP: the system has no priority inheritance. */
struct wq__lock;
wq_err wq__lock_init_inheriting(struct wq__lock *l);

#if WQ__HAVE_FUTEX

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

/* glibc 2.32 and later. */
#if defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define WQ__HAVE_SINGLE_THREADED 1
#endif
#endif
#ifndef WQ__HAVE_SINGLE_THREADED
#define WQ__HAVE_SINGLE_THREADED 0
#endif

/* The inline functions below handle PLAIN, with one comparison; lock.c handles
 * the other kinds. */
enum wq__lock_kind {
    WQ__LOCK_PLAIN,   /* the word is the lock */
    WQ__LOCK_WATCHED, /* the same, with hints for a race detector */
    WQ__LOCK_MUTEX,   /* `mutex` is the lock; the word is not used */
};

struct wq__lock {
    _Atomic uint32_t word;
    uint8_t          kind;  /* enum wq__lock_kind; set by init */
    pthread_mutex_t  mutex; /* initialised only if WQ__LOCK_MUTEX */
};

#define WQ__LOCK_STATIC                                                        \
    {                                                                          \
        .kind = WQ__LOCK_MUTEX, .mutex = PTHREAD_MUTEX_INITIALIZER             \
    }

WQ__STORE_API void wq__lock_init(struct wq__lock *l);
WQ__STORE_API void wq__lock_fini(struct wq__lock *l);

/* Is the calling thread the only one? False: perhaps not. */
static inline bool
wq__lock_is_alone(void)
{
#if WQ__HAVE_SINGLE_THREADED
    return __libc_single_threaded;
#else
    return false;
#endif
}

static inline bool
wq__lock_try_word(struct wq__lock *l)
{
    uint32_t expected = 0;

    if (wq__lock_is_alone()) { /* K3 */
        if (atomic_load_explicit(&l->word, memory_order_acquire) != 0)
            return false;
        atomic_store_explicit(&l->word, 1, memory_order_relaxed);
        return true;
    }
    return atomic_compare_exchange_strong_explicit(
        &l->word, &expected, 1, memory_order_acquire, memory_order_relaxed);
}

WQ__STORE_API void wq__lock_take_contended(struct wq__lock *l);
WQ__STORE_API void wq__lock_wake_one(struct wq__lock *l);

static inline void
wq__lock_take_word(struct wq__lock *l)
{
    if (!wq__lock_try_word(l))
        wq__lock_take_contended(l);
}

static inline void
wq__lock_release_word(struct wq__lock *l)
{
    if (wq__lock_is_alone()) /* K3 */
        atomic_store_explicit(&l->word, 0, memory_order_release);
    else if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2)
        wq__lock_wake_one(l);
}

/* For locks that are not PLAIN. */
bool               wq__lock_try_kind(struct wq__lock *l);
WQ__STORE_API void wq__lock_take_kind(struct wq__lock *l);
WQ__STORE_API void wq__lock_release_kind(struct wq__lock *l);

static inline bool
wq__lock_try(struct wq__lock *l)
{
    return l->kind ? wq__lock_try_kind(l) : wq__lock_try_word(l);
}

static inline void
wq__lock_take(struct wq__lock *l)
{
    if (l->kind)
        wq__lock_take_kind(l);
    else
        wq__lock_take_word(l);
}

static inline void
wq__lock_release(struct wq__lock *l)
{
    if (l->kind)
        wq__lock_release_kind(l);
    else
        wq__lock_release_word(l);
}

/* For the first line of functions that need the lock. */
static inline void
wq__lock_assert_taken(struct wq__lock *l)
{
    assert(l->kind == WQ__LOCK_MUTEX ||
           atomic_load_explicit(&l->word, memory_order_relaxed) != 0);
    (void)l;
}

#else

struct wq__lock {
    pthread_mutex_t mutex;
};

#define WQ__LOCK_STATIC                                                        \
    {                                                                          \
        .mutex = PTHREAD_MUTEX_INITIALIZER                                     \
    }

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
