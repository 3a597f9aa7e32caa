/* SPDX-License-Identifier: MIT */
/* stopwatch.h: how is a length of time measured at the least cost?
 *
 * wq__stopwatch_now() is wq__time_now(), more or less, for those who ask for
 * the sake of a statistic: metrics and ages. Deadlines are no matter for it.
 *
 * On x86-64 whose counter ticks at one pace (the processor says so: "invariant
 * TSC") it reads that counter and follows a line that the thread anchored at
 * CLOCK_MONOTONIC a moment ago (ticks.h). Elsewhere it is wq__time_now().
 *
 * Error: against CLOCK_MONOTONIC typically some 50 ns. At most
 *   1 us    by which the anchor is off (half of WQ__TICKS_SLACK at 2 GHz),
 *   1 us    for the slope, in the worst case of a very first one,
 *   0.5 us  while the clock is slewed by adjtime().
 * A counter that does not keep its word (a virtual machine moved to a
 * processor of another pace) is believed for WQ__TICKS_WINDOW ticks, so that
 * the answer is wrong by less than those take, and that does not add up.
 *
 * Within one thread it never goes back. A length that begins in one thread and
 * ends in another can come out below zero by the error.
 *
 * Cost: a read of the counter; once a window, of the clock too.
 */
#ifndef WQ_PORT_STOPWATCH_H
#define WQ_PORT_STOPWATCH_H

#include <stdint.h>

int64_t wq__stopwatch_now(void);

#endif
