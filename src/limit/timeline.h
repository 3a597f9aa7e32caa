/* SPDX-License-Identifier: MIT */
/* timeline.h: how does a limiter change its clock?
 *
 * A limiter has a time of its own: that of a clock plus a shift. When the clock
 * changes, the shift changes with it, so that the limiter's time goes on from
 * where it was, and stored times keep their age. The shift stops at the ends of
 * int64_t. Cost: one reading of the clock.
 *
 * Not thread-safe: the caller locks.
 */
#ifndef WQ_LIMIT_TIMELINE_H
#define WQ_LIMIT_TIMELINE_H

#include <stdint.h>

#include <wq/clock.h>

#include "core/span.h"

/* Zeroed: the monotonic clock, unshifted. */
struct wq__timeline {
    wq_clock *clock; /* not owned; NULL: monotonic */
    int64_t   shift_ns;
};

static inline int64_t
wq__timeline_now(const struct wq__timeline *t)
{
    return wq__span_add(wq_clock_now(t->clock), t->shift_ns);
}

static inline void
wq__timeline_follow(struct wq__timeline *t, wq_clock *clock)
{
    const int64_t now = wq__timeline_now(t);

    t->clock = clock;
    t->shift_ns = wq__span_sub(now, wq_clock_now(clock));
}

#endif
