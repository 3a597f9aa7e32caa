/* SPDX-License-Identifier: MIT */
/* stopwatch.h: how is a duration measured at the least cost?
 *
 * wq__stopwatch_now() is about wq__time_now(), for statistics: metrics and
 * ages. Do not use it for deadlines.
 *
 * On an x86-64 processor whose counter has a constant rate ("invariant TSC") it
 * reads that counter, and computes the time by a line that the thread anchored
 * at CLOCK_MONOTONIC a moment ago (ticks.h). Elsewhere it is wq__time_now().
 *
 * Error: against CLOCK_MONOTONIC typically some 50 ns. At most
 *   1 us    by which the anchor is off (half of WQ__TICKS_SLACK at 2 GHz),
 *   1 us    for the slope, in the worst case of a very first one,
 *   0.5 us  while the clock is slewed by adjtime().
 * If the rate of the counter changes after all (a virtual machine was moved to
 * another processor), the error is less than the length of WQ__TICKS_WINDOW
 * ticks, and does not add up.
 *
 * Within one thread it never goes back. A duration that begins in one thread
 * and ends in another may be negative by the error.
 *
 * Cost: one read of the counter; once in WQ__TICKS_WINDOW ticks also of the
 * clock.
 */
#ifndef WQ_PORT_STOPWATCH_H
#define WQ_PORT_STOPWATCH_H

#include <stdint.h>

int64_t wq__stopwatch_now(void);

#endif
