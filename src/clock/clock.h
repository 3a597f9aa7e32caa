/* SPDX-License-Identifier: MIT */
/* clock.h: what must a clock provide?
 *
 * The time, a way for a parked thread to sleep until a time on it, and a beacon
 * that is lit at a time on it, for a queue that an event loop watches.
 */
#ifndef WQ_CLOCK_CLOCK_H
#define WQ_CLOCK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/clock.h>

#include "port/beacon.h"
#include "port/park.h"

/* A deadline at which a clock lights a beacon. All but `beacon` and
 * `sleeps` is private to the clock; zeroed: no deadline. */
struct wq__watch {
    struct wq__beacon *beacon; /* the queue's; created with the clock's timer */
    struct wq__watch  *prev, *next;
    int64_t            deadline_ns;
    bool               listed;
    bool sleeps; /* set by the caller, once: a thread sleeps until the beacon is
                    lit, so it counts as a sleeper of a fake clock */
};

struct wq_clock {
    int64_t (*now)(wq_clock *clock);
    /* The time for measurements: cheaper where possible, and a little less
     * exact; see stopwatch.h. */
    int64_t (*stopwatch)(wq_clock *clock);
    /* As wq__park(), with the deadline on this clock. */
    bool (*park)(wq_clock *clock, struct wq__parker *p, int64_t deadline_ns);
    /* Make the beacon of `w` readable from `deadline_ns` on this clock on, at
     * once if that has passed, until a later deadline is set. WQ_FOREVER:
     * never; set it before the beacon or the clock is destroyed. The caller
     * serialises calls for the same `w`; it may hold a lock. */
    void (*watch)(wq_clock *clock, struct wq__watch *w, int64_t deadline_ns);
    /* The kind of timer that a beacon needs for that. */
    enum wq__timer timer;
    /* NULL: the clock cannot be destroyed. */
    void (*destroy)(wq_clock *clock);
};

/* Does it go on by itself? Not so a fake one. */
static inline bool
wq__clock_is_real(const wq_clock *clock)
{
    return !clock->destroy;
}

/* End the watch and its beacon. */
static inline void
wq__clock_unwatch(wq_clock *clock, struct wq__watch *w)
{
    clock->watch(clock, w, WQ_FOREVER);
    wq__beacon_fini(w->beacon);
}

#endif
