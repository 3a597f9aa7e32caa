/* SPDX-License-Identifier: MIT */
/* delay.c: the arithmetic of backoff; see delay.h. */
#include "limit/delay.h"

#include <float.h>

/* The smallest double above INT64_MAX, which itself is no double. */
static const double beyond_int64 = 9223372036854775808.0;

/* factor^n, or infinity.
 *
 * The bits of n make k grow from 0 to n; low is factor^k, high is factor^(k+1).
 * Because low <= high, the three products low * low <= low * high <= high *
 * high stay in this order when they are rounded: so the power never decreases
 * as n grows, even for a factor next to 1. The zeros before the first 1 of n
 * would change nothing, and are left out: most keys have failed a few times
 * only. Powers that are doubles, such as those of 2, are exact; the relative
 * error of others is about n * 2^-53 at most, as that of n multiplications. */
static double
power(double factor, uint32_t n)
{
    double   low = 1, high = factor;
    uint32_t bit = n ? UINT32_C(1) << (31 - __builtin_clz(n)) : 0;

    for (; bit; bit >>= 1) {
        const double middle = low * high;
        if (n & bit) {
            low = middle; /* 2k + 1 */
            high = high * high;
        } else {
            low = low * low; /* 2k */
            high = middle;
        }
    }
    return low;
}

int64_t
wq__delay_exponential(int64_t base_ns, int64_t max_ns, double factor,
                      uint32_t n)
{
    const double growth = power(factor, n);
    if (growth > DBL_MAX)
        return max_ns; /* also for a base of 0 (L-04) */

    const double product = (double)base_ns * growth;
    if (product >= beyond_int64)
        return max_ns;
    return (int64_t)product < max_ns ? (int64_t)product : max_ns;
}

/* A time from `least` to `most`. The remainder prefers no value by more than
 * one part in 2^64 / (most - least). */
static int64_t
between(int64_t least, int64_t most, uint64_t random)
{
    const uint64_t choices = (uint64_t)(most - least) + 1;
    return least + (int64_t)(random % choices);
}

int64_t
wq__delay_jitter(int64_t whole_ns, wq_jitter jitter, uint64_t random)
{
    if (jitter == WQ_JITTER_FULL)
        return between(0, whole_ns, random);
    if (jitter == WQ_JITTER_EQUAL)
        return between(whole_ns / 2, whole_ns, random);
    return whole_ns;
}
