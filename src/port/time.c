/* SPDX-License-Identifier: MIT */
/* time.c: CLOCK_MONOTONIC; see time.h. */
#include "port/time.h"

#include <time.h>

int64_t
wq__time_now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with this clock */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
