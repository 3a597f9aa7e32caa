/* SPDX-License-Identifier: MIT */
/* time.c: the clocks of the system; see time.h. */
#include "port/time.h"

#include <time.h>

#include "port/futex.h"

static int64_t
read_clock(clockid_t id)
{
    struct timespec t;

    (void)clock_gettime(id, &t); /* cannot fail: the clock exists */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t
wq__time_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t
wq__time_wall(void)
{
    return read_clock(CLOCK_REALTIME);
}

#if WQ__HAVE_FUTEX

int64_t
wq__time_boottime(void)
{
    return read_clock(CLOCK_BOOTTIME);
}

bool
wq__time_has_boottime(void)
{
    return true;
}

#else

int64_t
wq__time_boottime(void)
{
    return wq__time_now();
}

bool
wq__time_has_boottime(void)
{
    return false;
}

#endif
