/* SPDX-License-Identifier: MIT */
/* clock.h: what must a clock be able to do?
 *
 * Tell the time, let a parked thread sleep until a time on it, and show a time
 * on it by a beacon, for a queue that an event loop watches.
 */
#ifndef WQ_CLOCK_CLOCK_H
#define WQ_CLOCK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/clock.h>

#include "port/beacon.h"
#include "port/park.h"

/* What a queue asks a clock to look after. All but `beacon` is the clock's;
 * zeroed: nothing is looked after. */
struct wq__watch {
    struct wq__beacon *beacon; /* the queue's; made with the clock's timer */
    struct wq__watch  *prev, *next;
    int64_t            deadline_ns;
    bool               listed;
};

struct wq_clock {
    int64_t (*now)(wq_clock *clock);
    /* The time for those who measure: cheaper where that is possible, and a
     * little less exact; see stopwatch.h. */
    int64_t (*stopwatch)(wq_clock *clock);
    /* As wq__park(), with the deadline on this clock. */
    bool (*park)(wq_clock *clock, struct wq__parker *p, int64_t deadline_ns);
    /* Make the beacon of `w` readable when it is `deadline_ns` on this clock,
     * at once if it is that late already, and until a later deadline is named.
     * WQ_FOREVER: never; to be said before the beacon or the clock goes. Calls
     * for the same `w` are serialised by the caller, who may hold a lock. */
    void (*watch)(wq_clock *clock, struct wq__watch *w, int64_t deadline_ns);
    /* What kind of timer a beacon needs for that. */
    enum wq__timer timer;
    /* NULL: the clock is not ours to destroy. */
    void (*destroy)(wq_clock *clock);
};

#endif
