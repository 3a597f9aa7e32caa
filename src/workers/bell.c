/* SPDX-License-Identifier: MIT */
/* bell.c: waiting for a change; see bell.h. */
#include "workers/bell.h"

struct wq__listener {
    struct wq__listener *prev, *next;
    struct wq__parker    parker;
    bool                 rung; /* off the list */
};

static void
enlist(struct wq__bell *bell, struct wq__listener *l)
{
    l->prev = NULL;
    l->next = bell->first;
    if (l->next)
        l->next->prev = l;
    bell->first = l;
}

static void
delist(struct wq__bell *bell, struct wq__listener *l)
{
    *(l->prev ? &l->prev->next : &bell->first) = l->next;
    if (l->next)
        l->next->prev = l->prev;
}

void
wq__bell_await(struct wq__bell *bell, struct wq__lock *lock, wq_clock *clock,
               int64_t deadline_ns)
{
    struct wq__listener self = {.rung = false};

    wq__lock_assert_taken(lock);
    if (!clock)
        clock = wq_clock_monotonic();
    wq__parker_init(&self.parker);
    enlist(bell, &self);
    wq__lock_release(lock);
    (void)clock->park(clock, &self.parker, deadline_ns);
    wq__lock_take(lock);
    if (!self.rung)
        delist(bell, &self);
    /* Who rang did so with the lock, and is through with the parker. */
    wq__parker_fini(&self.parker);
}

void
wq__bell_ring(struct wq__bell *bell)
{
    struct wq__listener *l = bell->first;

    bell->first = NULL;
    while (l) {
        struct wq__listener *next = l->next; /* `l` stays: it wants the lock */
        l->rung = true;
        wq__unpark(&l->parker);
        l = next;
    }
}
