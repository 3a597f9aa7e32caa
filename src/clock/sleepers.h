/* SPDX-License-Identifier: MIT */
/* sleepers.h: which threads sleep in the queue, and which is woken first?
 *
 * A list of threads, each with a struct on its own stack. The queue's lock
 * guards the list; threads are woken after the lock is released:
 *
 *   waker, with the lock:     take sleepers off the list into a collection
 *   waker, without the lock:  wq__wake() the collection
 *
 * A sleeper that was taken off must not leave its stack frame before it is
 * woken, even if it times out in between (wq__sleeper_is_being_woken()). The
 * thread that went to sleep last is woken first: its stack is still in the
 * cache, and threads that are not needed stay asleep. Cost: O(1) each.
 */
#ifndef WQ_CLOCK_SLEEPERS_H
#define WQ_CLOCK_SLEEPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/clock.h"
#include "port/lock.h"
#include "port/park.h"

/* Why a sleeper was woken. */
enum wq__wake {
    WQ__WAKE_NOT,       /* it was not woken yet */
    WQ__WAKE_LOOK,      /* the state has changed: look again */
    WQ__WAKE_INTERRUPT, /* return WQ_EINTERRUPTED */
    WQ__WAKE_LISTEN,    /* shared queues: sleep again, as the listener */
};

struct wq__sleeper {
    struct wq__sleeper *prev, *next; /* on the list, or in a collection */
    struct wq__parker   parker;
    enum wq__wake       why; /* written when taken off the list */
};

struct wq__sleepers {
    struct wq__sleeper *first; /* the one that went to sleep last */
    size_t              len;
};

/* With the lock: put `s` on the list, in front. */
void wq__sleeper_enter(struct wq__sleepers *list, struct wq__sleeper *s);

/* The same behind `other`, which is on the list; NULL: in front. */
void wq__sleeper_enter_behind(struct wq__sleepers *list, struct wq__sleeper *s,
                              struct wq__sleeper *other);

/* Without the lock: sleep until woken: true; or until `deadline_ns` on `clock`:
 * false. */
static inline bool
wq__sleeper_sleep(struct wq__sleeper *s, wq_clock *clock, int64_t deadline_ns)
{
    return clock->park(clock, &s->parker, deadline_ns);
}

/* With the lock: was `s` taken off the list? Then a waker has woken it or is
 * about to: sleep again, without a deadline, before leaving. */
static inline bool
wq__sleeper_is_being_woken(const struct wq__sleeper *s)
{
    return s->why != WQ__WAKE_NOT;
}

/* With the lock: take `s` off the list, if it is still on it. Returns why it
 * was woken. */
enum wq__wake wq__sleeper_leave(struct wq__sleepers *list,
                                struct wq__sleeper  *s);

/* Without the lock: sleep until woken and until the waker has released `lock`,
 * then leave the list. For a thread that frees the list and the lock. */
void wq__sleeper_outlast(struct wq__sleepers *list, struct wq__sleeper *s,
                         wq_clock *clock, struct wq__lock *lock);

/* With the lock: take `s`, which is on the list, off it and put it in front of
 * `collection`; returns the new collection. */
struct wq__sleeper *wq__sleepers_take(struct wq__sleepers *list,
                                      struct wq__sleeper *s, enum wq__wake why,
                                      struct wq__sleeper *collection);

/* The same with all sleepers of the list. */
struct wq__sleeper *wq__sleepers_take_all(struct wq__sleepers *list,
                                          enum wq__wake        why,
                                          struct wq__sleeper  *collection);

/* Without the lock: wake a collection, which may be NULL. */
void wq__wake(struct wq__sleeper *collection);

#endif
