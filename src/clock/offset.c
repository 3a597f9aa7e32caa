/* SPDX-License-Identifier: MIT */
/* offset.c: a clock with an offset; see offset.h. */
#include "clock/offset.h"

#include "core/span.h"
#include "port/time.h"

static int64_t
offset_of(const wq_clock *clock)
{
    return wq__offset_clock_get(
        (const struct wq__offset_clock *)(const void *)clock);
}

static int64_t
offset_now(wq_clock *clock)
{
    return wq__time_boottime() + offset_of(clock);
}

static int64_t
to_boottime(const wq_clock *clock, int64_t at_ns)
{
    return at_ns == WQ_FOREVER ? WQ_FOREVER
                               : wq__span_sub(at_ns, offset_of(clock));
}

static bool
offset_park(wq_clock *clock, struct wq__parker *p, int64_t deadline_ns)
{
    const int64_t at_ns = to_boottime(clock, deadline_ns);

    return wq__park_boottime(p, at_ns > 0 ? at_ns : 0);
}

static void
offset_watch(wq_clock *clock, struct wq__watch *w, int64_t deadline_ns)
{
    const int64_t at_ns = to_boottime(clock, deadline_ns);

    wq__beacon_arm(w->beacon, at_ns > 0 ? at_ns : 1);
}

void
wq__offset_clock_init(struct wq__offset_clock *c, int64_t offset_ns)
{
    c->base = (wq_clock){
        .now = offset_now,
        .stopwatch = offset_now,
        .park = offset_park,
        .watch = offset_watch,
        .timer = WQ__TIMER_BOOTTIME,
    };
    atomic_init(&c->offset_ns, offset_ns);
}
