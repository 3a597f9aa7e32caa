/* SPDX-License-Identifier: MIT */
/* sleep.c: how do threads sleep in a handle, and which are woken when?
 *
 * Every thread that changes what the handle knows leaves through
 * wq__shared_leave(), which decides from that alone which threads to wake:
 *
 *   READY keys in the store, and sleeping getters
 *                       one getter for each key that no woken one comes for
 *   no READY key, and no key HELD through this handle
 *                       all threads in a drain
 *   no READY and no HELD key in the store
 *                       all threads in wq_wait_idle()
 *   a lost answer, or lost holds: the store may keep a key for this handle
 *   that no thread has  one thread, whose look gives the key back
 *   threads sleep, and none of them listens to the store, or not until the
 *   earliest deadline   one thread, which becomes the listener
 *
 * The listener sleeps in the engine: until another handle changes the store, or
 * the earliest deadline passes. All others sleep until a thread of this handle
 * wakes them. Sleeping costs no processor time.
 */
#include <assert.h>

#include "core/span.h"
#include "shared/call.h"
#include "shared/shared.h"

int64_t
wq__shared_deadline(struct wq__shared *s, int64_t timeout_ns)
{
    return timeout_ns == WQ_FOREVER
               ? WQ_FOREVER
               : wq__span_add(s->steady_clock->now(s->steady_clock),
                              timeout_ns);
}

bool
wq__shared_is_past(struct wq__shared *s, int64_t deadline_ns)
{
    return deadline_ns != WQ_FOREVER &&
           s->steady_clock->now(s->steady_clock) >= deadline_ns;
}

/* When that is on the store's clock, unless it steps. */
static int64_t
time_in_store(struct wq__shared *s, int64_t deadline_ns)
{
    if (deadline_ns == WQ_FOREVER || s->steady_clock == s->clock)
        return deadline_ns;
    const int64_t left =
        wq__span_sub(deadline_ns, s->steady_clock->now(s->steady_clock));
    return wq__span_add(s->clock->now(s->clock), left);
}

/* ---- waking -------------------------------------------------------------- */

/* Threads to wake after the lock is released. */
struct waking {
    struct wq__sleeper *threads;
    bool                kick; /* the listener is among them */
};

static void
take(struct wq__shared *s, struct wq__sleepers *list, struct wq__sleeper *one,
     enum wq__wake why, struct waking *wake)
{
    wake->kick |= one == s->listener;
    s->changing += why == WQ__WAKE_LISTEN && list == &s->getters;
    wake->threads = wq__sleepers_take(list, one, why, wake->threads);
}

static void
take_all(struct wq__shared *s, struct wq__sleepers *list, struct waking *wake)
{
    while (list->first)
        take(s, list, list->first, WQ__WAKE_LOOK, wake);
}

/* The getter to wake next: not the listener, if there is another one. */
static struct wq__sleeper *
next_getter(const struct wq__shared *s)
{
    struct wq__sleeper *one = s->getters.first;

    assert(one);
    return one == s->listener && one->next ? one->next : one;
}

static void
take_getters(struct wq__shared *s, struct waking *wake)
{
    while (s->getters.len && s->woken < s->seen.ready && !s->paused) {
        take(s, &s->getters, next_getter(s), WQ__WAKE_LOOK, wake);
        s->woken++;
    }
}

/* A thread that could listen, or look. */
static struct wq__sleepers *
list_to_listen(struct wq__shared *s)
{
    return s->getters.first    ? &s->getters
           : s->drainers.first ? &s->drainers
           : s->idlers.first   ? &s->idlers
                               : NULL;
}

/* A look either ends the doubt, or fails: then its thread returns the error. */
static void
take_one_in_doubt(struct wq__shared *s, struct waking *wake)
{
    struct wq__sleepers *list = list_to_listen(s);

    if (!s->in_doubt || !list)
        return;
    s->woken += list == &s->getters;
    take(s, list, list->first, WQ__WAKE_LOOK, wake);
}

/* When must a listener of this list look at the store? A getter has nothing to
 * look for while the handle is paused. */
static int64_t
next_look(const struct wq__shared *s, const struct wq__sleepers *list)
{
    return s->paused && list == &s->getters ? WQ_FOREVER : s->seen.next_ns;
}

/* If no thread listens, one must; if the listener would miss the earliest
 * deadline, it must sleep again. A listener that was woken is the listener until
 * it has left the engine, where only one thread waits at a time; then this is
 * decided again. */
static void
take_listener(struct wq__shared *s, struct waking *wake)
{
    struct wq__sleepers *list = list_to_listen(s);

    if (!list)
        return;
    if (!s->listener)
        take(s, list, list->first, WQ__WAKE_LISTEN, wake);
    else if (next_look(s, s->listener_list) < s->listener_until_ns &&
             !wq__sleeper_is_being_woken(s->listener))
        take(s, s->listener_list, s->listener, WQ__WAKE_LISTEN, wake);
}

/* Would a get return without waiting? */
static bool
get_would_answer(struct wq__shared *s)
{
    return (s->seen.ready && !s->paused) ||
           atomic_load_explicit(&s->closed, memory_order_relaxed);
}

static void
update_beacon(struct wq__shared *s)
{
    if (get_would_answer(s))
        wq__beacon_light(&s->beacon, WQ__LIT_BY_QUEUE);
    else
        wq__beacon_dim(&s->beacon, WQ__LIT_BY_QUEUE);
    s->clock->watch(s->clock, &s->watch,
                    s->paused ? WQ_FOREVER : s->seen.next_ns);
}

static void
release_and_wake(struct wq__shared *s, struct waking *wake)
{
    struct wq__engine *e = s->engine;

    if (s->seen.ready == 0 && s->holds.lent == s->holds.lost)
        take_all(s, &s->drainers, wake);
    if (s->seen.ready == 0 && s->seen.held == 0)
        take_all(s, &s->idlers, wake);
    take_getters(s, wake);
    take_one_in_doubt(s, wake);
    take_listener(s, wake);
    if (s->watched)
        update_beacon(s);
    wq__lock_release(&s->lock);
    /* The listener, and so the engine, stays until it is woken. */
    if (wake->kick)
        wq__engine_kick(e);
    wq__wake(wake->threads);
}

void
wq__shared_leave(struct wq__shared *s)
{
    struct waking wake = {.threads = NULL};

    release_and_wake(s, &wake);
}

void
wq__shared_wake_and_leave(struct wq__shared *s, enum wq__wake why)
{
    struct waking wake = {.threads = NULL};

    while (s->getters.first)
        take(s, &s->getters, s->getters.first, why, &wake);
    s->interrupts += why == WQ__WAKE_INTERRUPT;
    if (why == WQ__WAKE_LOOK) {
        take_all(s, &s->drainers, &wake);
        take_all(s, &s->idlers, &wake);
    }
    release_and_wake(s, &wake);
}

/* ---- sleeping ------------------------------------------------------------ */

static bool
sleep_as(struct wq__shared *s, struct wq__sleeper *self, bool listens,
         int64_t until_ns)
{
    struct wq__engine *e = s->engine;

    wq__shared_leave(s);
    bool woken = false;
    if (listens)
        wq__engine_wait(e, until_ns);
    else
        woken = wq__sleeper_sleep(self, s->steady_clock, until_ns);
    wq__shared_enter(s);
    return woken;
}

/* Sleep once. */
static enum wq__wake
sleep_once(struct wq__shared *s, struct wq__sleepers *list, int64_t deadline_ns)
{
    struct wq__sleeper self;
    int64_t            until_ns = deadline_ns;
    const bool         listens = !s->listener;

    wq__sleeper_enter(list, &self);
    if (listens) {
        until_ns = time_in_store(s, deadline_ns);
        if (next_look(s, list) < until_ns)
            until_ns = next_look(s, list);
        s->listener = &self;
        s->listener_list = list;
        s->listener_until_ns = until_ns;
    }
    const bool woken = sleep_as(s, &self, listens, until_ns);
    if (s->listener == &self)
        s->listener = NULL;
    if (!woken && wq__sleeper_is_being_woken(&self)) {
        wq__lock_release(&s->lock);
        while (!wq__sleeper_sleep(&self, s->clock, WQ_FOREVER))
            ;
        wq__lock_take(&s->lock);
    }
    return wq__sleeper_leave(list, &self);
}

enum wq__wake
wq__shared_sleep(struct wq__shared *s, struct wq__sleepers *list,
                 int64_t deadline_ns)
{
    const bool          gets = list == &s->getters;
    const uint64_t      interrupts = s->interrupts;
    const enum wq__wake why = sleep_once(s, list, deadline_ns);

    if (gets && why == WQ__WAKE_LISTEN) {
        s->changing--;
        if (s->interrupts != interrupts) /* while it was on no list */
            return WQ__WAKE_INTERRUPT;
    }
    if (gets && why == WQ__WAKE_LOOK && s->woken)
        s->woken--;
    return why;
}

/* ---- the end of a handle ------------------------------------------------- */

void
wq__shared_begin_blocking(struct wq__shared *s)
{
    s->blocked++;
}

void
wq__shared_end_blocking(struct wq__shared *s)
{
    struct waking wake = {.threads = NULL};

    if (--s->blocked == 0)
        wake.threads =
            wq__sleepers_take_all(&s->destroyer, WQ__WAKE_LOOK, NULL);
    release_and_wake(s, &wake);
}

void
wq__shared_evacuate(struct wq__shared *s)
{
    struct wq__sleeper self;

    if (!s->blocked) {
        wq__shared_wake_and_leave(s, WQ__WAKE_LOOK);
        return;
    }
    wq__sleeper_enter(&s->destroyer, &self);
    wq__shared_wake_and_leave(s, WQ__WAKE_LOOK);
    wq__sleeper_outlast(&s->destroyer, &self, s->clock, &s->lock);
}
