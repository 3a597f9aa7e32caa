/* SPDX-License-Identifier: MIT */
/* lock.h: how do threads take turns?
 *
 * A mutual-exclusion lock for short critical sections. It has two doors.
 *
 * The front door is for everybody: one atomic instruction to enter and one to
 * leave, without a system call. Who finds it closed spins for a
 * moment, because our critical sections are shorter than a sleep, and then
 * sleeps in the kernel. It is not fair: a thread that is running beats one that
 * must be woken, which is what keeps throughput up when there are more threads
 * than processors.
 *
 *   word   0 free    1 taken    2 taken, and someone may sleep
 *
 * The side door is for one thread, the owner, which becomes it by coming and
 * going often enough without anyone between. It enters and leaves by plain
 * loads and stores: a program that uses a queue from one thread, an event loop
 * say, pays nothing for others that never come, and its processor need not
 * wait for one operation to end before it begins the next. The first other
 * thread that comes takes the side door away; each time it is taken away it is
 * harder to get, so that threads which alternate soon use the front door only.
 *
 * Why it is correct, step by step:
 *
 *  K1  The front door: taking acquires and releasing releases, so what one
 *      holder wrote the next one sees. A thread sleeps only while the word is
 *      2, and whoever turns a 2 into 0 wakes one sleeper.
 *  K2  The owner says `inside`, then reads `owner`; who takes the side door
 *      away has the front door, clears `owner`, then reads `inside`. Between
 *      the two steps the latter has all processors of the process pass a full
 *      barrier (barrier.h), so that the former needs none. Either the owner
 *      said `inside` before the barrier: then the other one sees it, and waits.
 *      Or after it: then it also reads `owner` after it, finds that it is none
 *      any more, takes `inside` back and goes to the front door.
 *  K3  Who has the front door enters only when `inside` is not said, whether it
 *      took the side door away itself or somebody before it did.
 *  K4  The owner leaves by clearing `inside` with release, which the thread
 *      that waits reads with acquire. What others write the owner sees, since
 *      it can only have become the owner again by the front door.
 *  K5  `inside` has one writer. A thread that lost the side door may not have
 *      noticed yet, and still say `inside` and take it back (K2). So nobody
 *      else gets the side door until that thread itself has come to the front
 *      door, where it leaves its key. If it never does, nobody else gets it.
 *  K6  A thread is told from another by an address of its own (slot.h). A new
 *      thread may have that of one that has ended; what the former owner did,
 *      it sees, as the kernel, or who joined it, waited for its end before its
 *      memory was used again.
 *
 * Where there is no such barrier, nobody becomes the owner.
 */
#ifndef WQ_PORT_LOCK_H
#define WQ_PORT_LOCK_H

#include <stdbool.h>

#include "port/futex.h"

#if WQ__HAVE_FUTEX

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "port/barrier.h"
#include "port/relax.h"
#include "port/slot.h"

struct wq__lock {
    _Atomic uint32_t      word;     /* the front door */
    atomic_bool           inside;   /* the owner's: it is in, or about to be */
    bool                  sideways; /* the holder's: it came by the side door */
    _Atomic(const void *) owner;    /* written with the front door; or NULL */

    /* Guarded by the front door. */
    const void *keyholder; /* the owner, or who was it and may not know; or
                              NULL (K5) */
    const void *last;      /* who came by it last */
    uint32_t    streak;    /* how often in a row */
    uint32_t    patience;  /* how often makes it the owner */
};

static inline void
wq__lock_init(struct wq__lock *l)
{
#if WQ_DEBUG
    enum { OFTEN = 2 }; /* rare paths become daily ones */
#else
    enum { OFTEN = 256 }; /* costs less than what it takes to be undone */
#endif

    (void)wq__barrier_available(); /* asked here, since it may take long */
    atomic_init(&l->word, 0);
    atomic_init(&l->inside, false);
    atomic_init(&l->owner, NULL);
    l->sideways = false;
    l->keyholder = l->last = NULL;
    l->streak = 0;
    l->patience = OFTEN;
}

static inline void
wq__lock_fini(struct wq__lock *l)
{
    (void)l;
}

/* K2; false: this thread is not the owner. */
static inline bool
wq__lock_enter_sideways(struct wq__lock *l, const void *me)
{
    if (atomic_load_explicit(&l->owner, memory_order_relaxed) != me)
        return false;
    assert(!atomic_load_explicit(&l->inside, memory_order_relaxed));
    wq__dawdle();
    wq__barrier_store_light(&l->inside, true);
    wq__dawdle();
    if (atomic_load_explicit(&l->owner, WQ__BARRIER_READ) == me) {
        l->sideways = true;
        return true;
    }
    atomic_store_explicit(&l->inside, false, memory_order_release);
    return false;
}

/* The front door. */
void wq__lock_take_front(struct wq__lock *l, const void *me);
bool wq__lock_try_front(struct wq__lock *l, const void *me);
void wq__lock_release_front(struct wq__lock *l);

static inline bool
wq__lock_try(struct wq__lock *l)
{
    const void *me = wq__slot_mark();

    return wq__lock_enter_sideways(l, me) || wq__lock_try_front(l, me);
}

static inline void
wq__lock_take(struct wq__lock *l)
{
    const void *me = wq__slot_mark();

    if (!wq__lock_enter_sideways(l, me))
        wq__lock_take_front(l, me);
}

static inline void
wq__lock_release(struct wq__lock *l)
{
    if (l->sideways)
        atomic_store_explicit(&l->inside, false, memory_order_release); /* K4 */
    else
        wq__lock_release_front(l);
}

/* For the first line of functions that need the lock. */
static inline void
wq__lock_assert_taken(struct wq__lock *l)
{
    assert(atomic_load_explicit(&l->word, memory_order_relaxed) != 0 ||
           atomic_load_explicit(&l->inside, memory_order_relaxed));
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
