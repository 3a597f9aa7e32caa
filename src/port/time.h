/* SPDX-License-Identifier: MIT */
/* time.h: what time is it, in nanoseconds?
 *
 * wq__time_now() is CLOCK_MONOTONIC: it never goes back, and stops while the
 * machine is suspended. CLOCK_BOOTTIME goes on then; not every system has it.
 * The wall clock is only used to sleep (park.c).
 */
#ifndef WQ_PORT_TIME_H
#define WQ_PORT_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <wq/wq.h>

WQ__STORE_API int64_t wq__time_now(void);
WQ__STORE_API int64_t
wq__time_boottime(void); /* wq__time_now() on systems without it */
WQ__STORE_API int64_t wq__time_wall(void);
bool                  wq__time_has_boottime(void);

/* The whole seconds of `ns`, at most what a signed integer of `bytes` bytes
 * holds: where time_t has 32 bits, a timeout of 100 years becomes one of 68. */
static inline int64_t
wq__time_seconds(int64_t ns, size_t bytes)
{
    const int64_t most =
        bytes < 8 ? (INT64_C(1) << (8 * bytes - 1)) - 1 : INT64_MAX;
    const int64_t seconds = ns / 1000000000;

    return seconds < most ? seconds : most;
}

/* `ns`, which is not negative, for the system's calls. */
static inline struct timespec
wq__time_spec(int64_t ns)
{
    return (struct timespec){
        .tv_sec = (time_t)wq__time_seconds(ns, sizeof(time_t)),
        .tv_nsec = (long)(ns % 1000000000),
    };
}

#endif
