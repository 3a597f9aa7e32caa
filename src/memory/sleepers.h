/* SPDX-License-Identifier: MIT */
/* sleepers.h: which threads sleep in the queue, and which one is woken?
 *
 * A list of threads, each represented by a struct on its own stack. The list is
 * guarded by the queue's lock; waking is done after the lock is released:
 *
 *   waker, with the lock:   take sleepers off the list, collect them
 *   waker, without it:      wq__wake() the collection
 *
 * A sleeper that was taken off must not leave its stack frame before it was
 * woken, also when its time is up in between (wq__sleeper_is_being_woken()).
 * The one that went to sleep last is woken first: its stack is still warm, and
 * workers that are not needed can stay asleep. Cost: O(1) each.
 */
#ifndef WQ_MEMORY_SLEEPERS_H
#define WQ_MEMORY_SLEEPERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock/clock.h"
#include "port/park.h"

/* Why a sleeper was woken. */
enum wq__wake {
    WQ__WAKE_NOT,       /* it was not, so far */
    WQ__WAKE_LOOK,      /* things have changed: it shall look again */
    WQ__WAKE_INTERRUPT, /* it shall give up */
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

/* With the lock: go on the list. */
void wq__sleeper_enter(struct wq__sleepers *list, struct wq__sleeper *s);

/* The same behind another one that is on it; NULL: in front. */
void wq__sleeper_enter_behind(struct wq__sleepers *list, struct wq__sleeper *s,
                              struct wq__sleeper *other);

/* Without the lock: sleep until woken: true; or until `deadline_ns` on `clock`:
 * false. */
static inline bool
wq__sleeper_sleep(struct wq__sleeper *s, wq_clock *clock, int64_t deadline_ns)
{
    return clock->park(clock, &s->parker, deadline_ns);
}

/* With the lock: was `s` taken off the list? Then a waker is about to wake it,
 * or has done so; sleep on, without limit, before leaving. */
static inline bool
wq__sleeper_is_being_woken(const struct wq__sleeper *s)
{
    return s->why != WQ__WAKE_NOT;
}

/* With the lock: off the list, if still on it. Says why it was woken. */
enum wq__wake wq__sleeper_leave(struct wq__sleepers *list,
                                struct wq__sleeper  *s);

/* With the lock: take `s`, which is on the list, off it and put it in front of
 * `collection`; returns the new collection. */
struct wq__sleeper *wq__sleepers_take(struct wq__sleepers *list,
                                      struct wq__sleeper *s, enum wq__wake why,
                                      struct wq__sleeper *collection);

/* The same with all of them. */
struct wq__sleeper *wq__sleepers_take_all(struct wq__sleepers *list,
                                          enum wq__wake        why,
                                          struct wq__sleeper  *collection);

/* Without the lock: wake a collection, which may be NULL. */
void wq__wake(struct wq__sleeper *collection);

#endif
