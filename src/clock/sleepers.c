/* SPDX-License-Identifier: MIT */
/* sleepers.c: threads that sleep in the queue; see sleepers.h. */
#include "clock/sleepers.h"

#include <assert.h>

void
wq__sleeper_enter_behind(struct wq__sleepers *list, struct wq__sleeper *s,
                         struct wq__sleeper *other)
{
    wq__parker_init(&s->parker);
    s->why = WQ__WAKE_NOT;
    s->prev = other;
    s->next = other ? other->next : list->first;
    *(other ? &other->next : &list->first) = s;
    if (s->next)
        s->next->prev = s;
    list->len++;
}

void
wq__sleeper_enter(struct wq__sleepers *list, struct wq__sleeper *s)
{
    wq__sleeper_enter_behind(list, s, NULL);
}

static void
unlink_sleeper(struct wq__sleepers *list, struct wq__sleeper *s)
{
    *(s->prev ? &s->prev->next : &list->first) = s->next;
    if (s->next)
        s->next->prev = s->prev;
    list->len--;
}

enum wq__wake
wq__sleeper_leave(struct wq__sleepers *list, struct wq__sleeper *s)
{
    if (s->why == WQ__WAKE_NOT)
        unlink_sleeper(list, s);
    wq__parker_fini(&s->parker);
    return s->why;
}

void
wq__sleeper_outlast(struct wq__sleepers *list, struct wq__sleeper *s,
                    wq_clock *clock, struct wq__lock *lock)
{
    while (!wq__sleeper_sleep(s, clock, WQ_FOREVER))
        ;
    wq__lock_take(lock); /* the waker has released it by now */
    (void)wq__sleeper_leave(list, s);
    wq__lock_release(lock);
}

struct wq__sleeper *
wq__sleepers_take(struct wq__sleepers *list, struct wq__sleeper *s,
                  enum wq__wake why, struct wq__sleeper *collection)
{
    assert(s->why == WQ__WAKE_NOT && why != WQ__WAKE_NOT);
    unlink_sleeper(list, s);
    s->why = why;
    s->next = collection;
    return s;
}

struct wq__sleeper *
wq__sleepers_take_all(struct wq__sleepers *list, enum wq__wake why,
                      struct wq__sleeper *collection)
{
    while (list->first)
        collection = wq__sleepers_take(list, list->first, why, collection);
    return collection;
}

void
wq__wake(struct wq__sleeper *collection)
{
    while (collection) {
        struct wq__sleeper *next =
            collection->next; /* `collection` is invalid once it is woken */
        wq__unpark(&collection->parker);
        collection = next;
    }
}
