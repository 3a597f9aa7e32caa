/* SPDX-License-Identifier: MIT */
/* system.c: the clocks of the system; see <wq/clock.h>. */
#include "clock/clock.h"

#include <errno.h>

#include "error/error.h"
#include "port/stopwatch.h"
#include "port/time.h"

/* A timer of the system makes the beacon readable. */
static void
arm_timer(wq_clock *clock, struct wq__watch *w, int64_t deadline_ns)
{
    (void)clock;
    wq__beacon_arm(w->beacon, deadline_ns);
}

static int64_t
monotonic_now(wq_clock *clock)
{
    (void)clock;
    return wq__time_now();
}

static int64_t
monotonic_stopwatch(wq_clock *clock)
{
    (void)clock;
    return wq__stopwatch_now();
}

static bool
monotonic_park(wq_clock *clock, struct wq__parker *p, int64_t deadline_ns)
{
    (void)clock;
    return wq__park(p, deadline_ns);
}

static int64_t
boottime_now(wq_clock *clock)
{
    (void)clock;
    return wq__time_boottime();
}

static bool
boottime_park(wq_clock *clock, struct wq__parker *p, int64_t deadline_ns)
{
    (void)clock;
    return wq__park_boottime(p, deadline_ns);
}

wq_clock *
wq_clock_monotonic(void)
{
    static wq_clock monotonic = {
        .now = monotonic_now,
        .stopwatch = monotonic_stopwatch,
        .park = monotonic_park,
        .watch = arm_timer,
        .timer = WQ__TIMER_MONOTONIC,
    };
    return &monotonic;
}

wq_clock *
wq_clock_boottime(void)
{
    static wq_clock boottime = {
        .now = boottime_now,
        .stopwatch = boottime_now,
        .park = boottime_park,
        .watch = arm_timer,
        .timer = WQ__TIMER_BOOTTIME,
    };

    if (wq__time_has_boottime())
        return &boottime;
    (void)wq_fail(WQ_ENOTSUP,
                  "wq_clock_boottime: the system has no CLOCK_BOOTTIME");
    errno = ENOSYS;
    return NULL;
}

int64_t
wq_clock_now(wq_clock *clock)
{
    return clock ? clock->now(clock) : wq__time_now();
}

void
wq_clock_destroy(wq_clock *clock)
{
    if (clock && clock->destroy)
        clock->destroy(clock);
}
