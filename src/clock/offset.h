/* SPDX-License-Identifier: MIT */
/* offset.h: how does a store have a clock of its own?
 *
 * Its time is CLOCK_BOOTTIME plus an offset, which all that use the store agree
 * on. So steps of the wall clock change nothing, and the time in which the
 * machine is suspended counts.
 */
#ifndef WQ_CLOCK_OFFSET_H
#define WQ_CLOCK_OFFSET_H

#include <stdatomic.h>

#include "clock/clock.h"

struct wq__offset_clock {
    wq_clock base; /* first */
    /* May change at any time: a number of its own, so relaxed. */
    _Atomic int64_t offset_ns;
};

WQ__STORE_API void wq__offset_clock_init(struct wq__offset_clock *c,
                                         int64_t                  offset_ns);

static inline int64_t
wq__offset_clock_get(const struct wq__offset_clock *c)
{
    return atomic_load_explicit(&c->offset_ns, memory_order_relaxed);
}

static inline void
wq__offset_clock_set(struct wq__offset_clock *c, int64_t offset_ns)
{
    atomic_store_explicit(&c->offset_ns, offset_ns, memory_order_relaxed);
}

#endif
