/* SPDX-License-Identifier: MIT */
/* fake.c: a clock that moves only when it is told to; see <wq/clock.h>.
 *
 * A thread that sleeps until a deadline on this clock stands in a list; moving
 * the clock gives an alarm to those that are due. Whether the deadline has come
 * is looked at, and the list entered, under the lock under which time moves: a
 * move is either seen before sleeping, or finds the sleeper. A sleeper leaves
 * the list under that lock too, so an alarm never meets one that is gone.
 *
 * Watches stand in a list of their own for as long as they have a deadline, and
 * their beacons are lit or dimmed by every move: going back dims one again.
 *
 * A thread that another one woke (wq__unpark()) leaves the list only when it
 * runs again. It is not counted any more: whoever counts the sleepers wants to
 * know which threads have nothing left to do.
 *
 * Cost: a move looks at every sleeper and watch, a sleeper that comes and a
 * count at every sleeper. Clocks of tests have few.
 */
#include "clock/clock.h"

#include <stdlib.h>

#include "core/span.h"
#include "error/error.h"
#include "port/lock.h"
#include "port/park.h"

/* A thread that sleeps: until a deadline, or until there are enough of
 * those. */
struct waiter {
    struct waiter     *prev, *next;
    struct wq__parker *parker; /* the thread's own */
    int64_t            deadline_ns;
    bool               due;    /* taken off the list by the clock */
    size_t             wanted; /* for the second kind */
};

struct fake {
    wq_clock          base; /* first: a wq_clock is the beginning of its kind */
    struct wq__lock   lock; /* guards all below; under it only beacons' locks */
    int64_t           now_ns;
    struct waiter    *sleepers;  /* until a deadline */
    struct waiter    *observers; /* in wq_clock_fake_wait_for_waiters() */
    struct wq__watch *watches;   /* those with a deadline; the queues' own */
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

/* How many threads sleep: a sleeper that was woken before its deadline stays in
 * the list until it runs, but it sleeps no more. Its parker is there as long as
 * it is in the list. */
static size_t
count_sleepers(const struct fake *f)
{
    size_t n = 0;

    for (const struct waiter *w = f->sleepers; w; w = w->next)
        n += !wq__parker_is_woken(w->parker);
    return n;
}

/* The count grows only when a sleeper enters the list: a parker that was woken
 * stays so. */
static void
alarm_observers(struct fake *f)
{
    const size_t n = f->observers ? count_sleepers(f) : 0;

    for (struct waiter *w = f->observers; w; w = w->next)
        if (n >= w->wanted)
            wq__alarm(w->parker);
}

/* Who is due sleeps no more, and is not counted and not alarmed again. */
static void
alarm_sleepers(struct fake *f)
{
    for (struct waiter *next, *w = f->sleepers; w; w = next) {
        next = w->next;
        if (w->deadline_ns > f->now_ns)
            continue;
        delist(&f->sleepers, w);
        w->due = true;
        wq__alarm(w->parker); /* it needs the lock to leave */
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
        return wq__park(p, 0); /* says whether it was woken; does not sleep */
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

/* Whether `w` is in the list follows from its deadline. */
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
    wq__lock_release(&f->lock);
}

static void
fake_destroy(wq_clock *clock)
{
    wq__lock_fini(&fake(clock)->lock);
    free(clock);
}

/* Moving a clock that cannot be moved is ignored. */
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

void
wq_clock_fake_set(wq_clock *clock, int64_t now_ns)
{
    struct fake *f = fake(clock);

    if (!is_fake(clock))
        return;
    wq__lock_take(&f->lock);
    move_to(f, now_ns);
    wq__lock_release(&f->lock);
}

void
wq_clock_fake_step(wq_clock *clock, int64_t by_ns)
{
    struct fake *f = fake(clock);

    if (!is_fake(clock))
        return;
    wq__lock_take(&f->lock);
    move_to(f, wq__span_add(f->now_ns, by_ns));
    wq__lock_release(&f->lock);
}

size_t
wq_clock_fake_waiters(wq_clock *clock)
{
    struct fake *f = fake(clock);

    if (!is_fake(clock))
        return 0;
    wq__lock_take(&f->lock);
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
