/* SPDX-License-Identifier: MIT */
/* delay.h: how long does a key wait that has failed n times before?
 *
 * The arithmetic of backoff and nothing else: no count, no clock, no lock, no
 * libm. All are O(1).
 */
#ifndef WQ_LIMIT_DELAY_H
#define WQ_LIMIT_DELAY_H

#include <stdint.h>

#include <wq/limiter.h>

/* base_ns * factor^n, at most max_ns, for a finite factor of at least 1. It
 * never decreases as n grows. The product is one of two doubles, as in
 * client-go, so a base above 2^53 ns (104 days) is rounded (L-05, L-32). */
int64_t wq__delay_exponential(int64_t base_ns, int64_t max_ns, double factor,
                              uint32_t n);

/* `whole_ns`, shortened by `random`, which is any number of 64 bits (L-20). */
int64_t wq__delay_jitter(int64_t whole_ns, wq_jitter jitter, uint64_t random);

#endif
