/* SPDX-License-Identifier: MIT */
/* system.c: the clocks that run by themselves; see <wq/clock.h>. */
#include "clock/clock.h"

#include <errno.h>

#include "port/time.h"

static int64_t
monotonic_now(wq_clock *clock)
{
    (void)clock;
    return wq__time_now();
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
    static wq_clock monotonic = {monotonic_now, monotonic_park, NULL};
    return &monotonic;
}

wq_clock *
wq_clock_boottime(void)
{
    static wq_clock boottime = {boottime_now, boottime_park, NULL};

    if (wq__time_has_boottime())
        return &boottime;
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
