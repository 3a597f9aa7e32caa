/* SPDX-License-Identifier: MIT */
/* histogram.h: how are durations counted?
 *
 * In buckets with the bounds of Kubernetes: 10 ns, 100 ns, ... 1000 s, and one
 * for longer durations. A bound belongs to the bucket below it, as Prometheus
 * defines it ("le"). The total count is not stored: it is the sum of the
 * buckets, so the two always agree.
 *
 * Cost: O(1), a handful of instructions.
 */
#ifndef WQ_METRICS_HISTOGRAM_H
#define WQ_METRICS_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    WQ__BOUNDS = 12,              /* bound k is 10^(k+1) ns */
    WQ__BUCKETS = WQ__BOUNDS + 1, /* the last has no bound */
};

/* What threads write. */
struct wq__histogram {
    _Atomic uint64_t buckets[WQ__BUCKETS];
    _Atomic uint64_t sum_ns; /* stops at 2^64 - 1, which is 584 years */
};

/* The powers of ten that fit 64 bits. */
extern const uint64_t wq__powers_of_ten[20];

/* The largest number of nanoseconds within each bound. Kubernetes multiplies
 * doubles, so 10 us and 100 us are slightly above their bounds. */
extern const uint64_t wq__bounds_ns[WQ__BOUNDS];

/* The bucket of `ns`: the first whose bound is not below it. Except for those
 * two, it is one less than the number of decimal digits of ns - 1. The number
 * of binary digits times log10(2) = 1233/4096 gives that number, or one more.
 */
static inline unsigned
wq__bucket_of(uint64_t ns)
{
    /* An odd number has as many digits as the even one before it. */
    const uint64_t n = (ns ? ns - 1 : 0) | 1;
    const unsigned bits = 64 - (unsigned)__builtin_clzll(n);
    const unsigned guess = bits * 1233 >> 12;
    const unsigned power = guess - (n < wq__powers_of_ten[guess]);

    if (power >= WQ__BOUNDS)
        return WQ__BOUNDS;
    return power + (ns > wq__bounds_ns[power]);
}

static inline uint64_t
wq__add_up_to_max(uint64_t a, uint64_t b)
{
    return a + b < a ? UINT64_MAX : a + b;
}

/* Count `ns` in a histogram that only the calling thread writes to. No other
 * thread writes between the load and the store, so no count is lost; readers
 * see the old value or the new one. Relaxed: the counts do not depend on each
 * other. */
static inline void
wq__histogram_own(struct wq__histogram *h, uint64_t ns)
{
    _Atomic uint64_t *bucket = &h->buckets[wq__bucket_of(ns)];
    const uint64_t    n = atomic_load_explicit(bucket, memory_order_relaxed);
    const uint64_t sum = atomic_load_explicit(&h->sum_ns, memory_order_relaxed);

    atomic_store_explicit(bucket, n + 1, memory_order_relaxed);
    atomic_store_explicit(&h->sum_ns, wq__add_up_to_max(sum, ns),
                          memory_order_relaxed);
}

/* Count `ns` in a histogram that other threads write to, too. */
void wq__histogram_shared(struct wq__histogram *h, uint64_t ns);

/* What readers add up. */
struct wq__durations {
    uint64_t buckets[WQ__BUCKETS];
    uint64_t seconds; /* the sum */
    uint32_t ns;      /* and its part below a second */
};

/* Add `ns` to a sum. */
static inline void
wq__add_ns(uint64_t *seconds, uint32_t *rest, uint64_t ns)
{
    const uint64_t second = 1000000000;
    const uint64_t sum = *rest + ns % second;

    *seconds += ns / second + sum / second;
    *rest = (uint32_t)(sum % second);
}

/* Add the counts of a histogram to `out`. */
void wq__histogram_read(const struct wq__histogram *h,
                        struct wq__durations       *out);

#endif
