/* SPDX-License-Identifier: MIT */
/* counting.h: which limiter gives a key a delay that depends on a count of its
 * failures?
 *
 * One for all such delays: it counts, and spec.h makes a delay of the count.
 * Relies on failures.h to count and to lock; the random numbers of the jitter
 * need no lock. O(1) a call.
 */
#ifndef WQ_LIMIT_COUNTING_H
#define WQ_LIMIT_COUNTING_H

#include "limit/limiter.h"

/* For the constructor `who`: a limiter that has `part` of a spec that was
 * checked, WQ_PART_EXPONENTIAL or WQ_PART_FAST_SLOW. */
wq_limiter *wq__counting_create(const char *who, const wq_allocator *mem,
                                const wq_limiter_spec *spec, unsigned part);

#endif
