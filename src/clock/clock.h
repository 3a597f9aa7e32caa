/* SPDX-License-Identifier: MIT */
/* clock.h: what must a clock be able to do?
 *
 * Tell the time, and let a parked thread sleep until a time on it.
 */
#ifndef WQ_CLOCK_CLOCK_H
#define WQ_CLOCK_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/clock.h>

#include "port/park.h"

struct wq_clock {
    int64_t (*now)(wq_clock *clock);
    /* As wq__park(), with the deadline on this clock. */
    bool (*park)(wq_clock *clock, struct wq__parker *p, int64_t deadline_ns);
    /* NULL: the clock is not ours to destroy. */
    void (*destroy)(wq_clock *clock);
};

#endif
