/* SPDX-License-Identifier: MIT */
/* time.h: what time is it, in nanoseconds?
 *
 * wq__time_now() is CLOCK_MONOTONIC: it never goes back, and stands still while
 * the machine is suspended. CLOCK_BOOTTIME does not stand still then; not every
 * system has it. The wall clock serves only to sleep (park.c).
 */
#ifndef WQ_PORT_TIME_H
#define WQ_PORT_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <wq/wq.h>

int64_t wq__time_now(void);
int64_t wq__time_boottime(void); /* as wq__time_now() where there is none */
int64_t wq__time_wall(void);
bool    wq__time_has_boottime(void);

/* The whole seconds of `ns`, but no more than a signed integer of `bytes` bytes
 * can hold: where time_t has 32 bits, a time-out of 100 years is one of 68. */
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
