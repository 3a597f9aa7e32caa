/* SPDX-License-Identifier: MIT */
/* locks.h: how does a test stand in its own way?
 *
 * Tests take a queue's lock and then call its verbs, from the same thread, to
 * see what these do when they find it taken. A thread that owns the side door
 * (lock.h) would not find it so: it would walk in a second time. Here is the
 * front door alone.
 */
#ifndef WQ_TEST_LOCKS_H
#define WQ_TEST_LOCKS_H

#include <stdbool.h>

#include "port/lock.h"

/* Take the lock so that everybody finds it taken, this thread too, and that who
 * waits for it sleeps: for the owner of the side door one only naps. It is
 * released as ever. */
static inline void
lock_shut(struct wq__lock *l)
{
#if WQ__HAVE_FUTEX
    static const char somebody; /* else: this thread is not its owner */
    wq__lock_take_front(l, &somebody);
#else
    wq__lock_take(l);
#endif
}

/* Nobody will own the side door: it seems that another thread has the key to
 * it, and that thread never comes (K5). The lock is new, or taken. */
static inline void
lock_wall_up_side_door(struct wq__lock *l)
{
#if WQ__HAVE_FUTEX
    static const char nobody;
    l->keyholder = &nobody;
#else
    (void)l;
#endif
}

/* Has anybody taken it, be it this thread? For a moment when nobody comes. */
static inline bool
lock_is_taken(struct wq__lock *l)
{
#if WQ__HAVE_FUTEX
    return atomic_load(&l->word) != 0 || atomic_load(&l->inside);
#else
    const bool taken = wq__lock_try(l);
    if (taken)
        wq__lock_release(l);
    return !taken;
#endif
}

#endif
