/* SPDX-License-Identifier: MIT */
/* fake.c: a clock that moves only when a test moves it; see <wq/clock.h>.
 *
 * A thread that sleeps until a deadline on this clock is in a list; moving the
 * clock sends an alarm to those that are due. A thread compares its deadline
 * and enters the list under the lock under which the time moves: so it sees a
 * move before it sleeps, or the move finds it in the list. A sleeper also
 * leaves the list under that lock, so an alarm never uses a parker that is
 * gone.
 *
 * Watches are in a list of their own while they have a deadline. Every move
 * lights or dims their beacons: moving back dims one again.
 *
 * A thread that another one woke (wq__unpark()) leaves the list only when it
 * runs again. It does not count as a sleeper any more: tests count the threads
 * that have nothing left to do.
 *
 * Cost: O(sleepers + watches) for a move, O(sleepers) to fall asleep or to
 * count. Tests have few.
 */
#include "clock/clock.h"

#include <stdlib.h>

#include "core/span.h"
#include "error/error.h"
#include "port/lock.h"
#include "port/park.h"

/* A thread that sleeps until a deadline, or until enough threads do. */
struct waiter {
    struct waiter     *prev, *next;
    struct wq__parker *parker; /* the thread's own */
    int64_t            deadline_ns;
    bool               due;    /* taken off the list by the clock */
    size_t             wanted; /* second kind: how many threads must sleep */
};

struct fake {
    wq_clock base; /* first: a wq_clock is the beginning of its kind */
    /* Guards all below; only locks of beacons are taken under it. */
    struct wq__lock   lock;
    int64_t           now_ns;
    struct waiter    *sleepers;  /* until a deadline */
    struct waiter    *observers; /* in wq_clock_fake_wait_for_waiters() */
    struct wq__watch *watches; /* those with a deadline; owned by the queues */
};

static struct fake *
fake(wq_clock *clock)
{
    return (struct fake *)(void *)clock;
}

static void
enlist(struct waiter **first, struct waiter *w)
{
    w->prev = NULL;
    w->next = *first;
    if (w->next)
        w->next->prev = w;
    *first = w;
}

static void
delist(struct waiter **first, struct waiter *w)
{
    *(w->prev ? &w->prev->next : first) = w->next;
    if (w->next)
        w->next->prev = w->prev;
}

/* How many threads sleep. A sleeper that was woken before its deadline stays in
 * the list until it runs, but does not count. Its parker is valid while it is
 * in the list. */
static size_t
count_sleepers(const struct fake *f)
{
    size_t n = 0;

    for (const struct waiter *w = f->sleepers; w; w = w->next)
        n += !wq__parker_is_woken(w->parker);
    for (const struct wq__watch *w = f->watches; w; w = w->next)
        n += w->sleeps && w->deadline_ns > f->now_ns;
    return n;
}

/* To be called when a sleeper enters the list: only then the count grows, since
 * a parker that was woken stays so. */
static void
alarm_observers(struct fake *f)
{
    const size_t n = f->observers ? count_sleepers(f) : 0;

    for (struct waiter *w = f->observers; w; w = w->next)
        if (n >= w->wanted)
            wq__alarm(w->parker);
}

/* Take the threads that are due off the list, and send each an alarm. */
static void
alarm_sleepers(struct fake *f)
{
    for (struct waiter *next, *w = f->sleepers; w; w = next) {
        next = w->next;
        if (w->deadline_ns > f->now_ns)
            continue;
        delist(&f->sleepers, w);
        w->due = true;
        /* Its parker is valid: it needs the lock to leave. */
        wq__alarm(w->parker);
    }
}

static void
show_time(const struct fake *f, const struct wq__watch *w)
{
    if (w->deadline_ns != WQ_FOREVER && w->deadline_ns <= f->now_ns)
        wq__beacon_light(w->beacon, WQ__LIT_BY_CLOCK);
    else
        wq__beacon_dim(w->beacon, WQ__LIT_BY_CLOCK);
}

static void
move_to(struct fake *f, int64_t now_ns)
{
    f->now_ns = now_ns;
    alarm_sleepers(f);
    for (struct wq__watch *w = f->watches; w; w = w->next)
        show_time(f, w);
}

static int64_t
fake_now(wq_clock *clock)
{
    struct fake *f = fake(clock);

    wq__lock_take(&f->lock);
    const int64_t now = f->now_ns;
    wq__lock_release(&f->lock);
    return now;
}

static bool
fake_park(wq_clock *clock, struct wq__parker *p, int64_t deadline_ns)
{
    struct fake  *f = fake(clock);
    struct waiter self = {.parker = p, .deadline_ns = deadline_ns};

    if (deadline_ns == WQ_FOREVER)
        return wq__park(p, WQ_FOREVER);
    wq__lock_take(&f->lock);
    if (deadline_ns <= f->now_ns) {
        wq__lock_release(&f->lock);
        return wq__park(p,
                        0); /* returns whether it was woken; does not sleep */
    }
    enlist(&f->sleepers, &self);
    alarm_observers(f);
    wq__lock_release(&f->lock);

    const bool woken = wq__park(p, WQ_FOREVER);

    wq__lock_take(&f->lock);
    if (!self.due)
        delist(&f->sleepers, &self);
    wq__lock_release(&f->lock);
    return woken;
}

/* A watch is in the list while it has a deadline. */
static void
set_listed(struct fake *f, struct wq__watch *w, bool listed)
{
    if (w->listed == listed)
        return;
    w->listed = listed;
    if (listed) {
        w->prev = NULL;
        w->next = f->watches;
        f->watches = w;
    } else {
        *(w->prev ? &w->prev->next : &f->watches) = w->next;
    }
    if (w->next)
        w->next->prev = listed ? w : w->prev;
}

static void
fake_watch(wq_clock *clock, struct wq__watch *w, int64_t deadline_ns)
{
    struct fake *f = fake(clock);

    wq__lock_take(&f->lock);
    w->deadline_ns = deadline_ns;
    set_listed(f, w, deadline_ns != WQ_FOREVER);
    show_time(f, w);
    alarm_observers(f);
    wq__lock_release(&f->lock);
}

static void
fake_destroy(wq_clock *clock)
{
    wq__lock_fini(&fake(clock)->lock);
    free(clock);
}

/* Moves of other clocks are ignored. */
static bool
is_fake(const wq_clock *clock)
{
    return clock && clock->now == fake_now;
}

wq_clock *
wq_clock_fake_create(int64_t now_ns)
{
    struct fake *f = malloc(sizeof *f);
    if (!f) {
        (void)wq_fail(WQ_ENOMEM, "wq_clock_fake_create: out of memory");
        return NULL;
    }

    *f = (struct fake){
        .base =
            {
                .now = fake_now,
                .stopwatch = fake_now,
                .park = fake_park,
                .watch = fake_watch,
                .destroy = fake_destroy,
            },
        .now_ns = now_ns,
    };
    wq__lock_init(&f->lock);
    return &f->base;
}

/* NULL: it is another kind of clock. */
static struct fake *
lock_fake(wq_clock *clock)
{
    if (!is_fake(clock))
        return NULL;
    wq__lock_take(&fake(clock)->lock);
    return fake(clock);
}

void
wq_clock_fake_set(wq_clock *clock, int64_t now_ns)
{
    struct fake *f = lock_fake(clock);

    if (!f)
        return;
    move_to(f, now_ns);
    wq__lock_release(&f->lock);
}

void
wq_clock_fake_step(wq_clock *clock, int64_t by_ns)
{
    struct fake *f = lock_fake(clock);

    if (!f)
        return;
    move_to(f, wq__span_add(f->now_ns, by_ns));
    wq__lock_release(&f->lock);
}

size_t
wq_clock_fake_waiters(wq_clock *clock)
{
    struct fake *f = lock_fake(clock);

    if (!f)
        return 0;
    const size_t n = count_sleepers(f);
    wq__lock_release(&f->lock);
    return n;
}

void
wq_clock_fake_wait_for_waiters(wq_clock *clock, size_t n)
{
    struct fake      *f = fake(clock);
    struct wq__parker parker;
    struct waiter     self = {.parker = &parker, .wanted = n};

    if (!is_fake(clock))
        return;
    wq__parker_init(&parker);
    wq__lock_take(&f->lock);
    enlist(&f->observers, &self);
    while (count_sleepers(f) < n) {
        wq__lock_release(&f->lock);
        (void)wq__park(&parker, WQ_FOREVER);
        wq__lock_take(&f->lock);
    }
    delist(&f->observers, &self);
    wq__lock_release(&f->lock);
    wq__parker_fini(&parker);
}
