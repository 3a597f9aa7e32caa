/* SPDX-License-Identifier: MIT */
/* histogram.c: the rare paths of histogram.h. */
#include "metrics/histogram.h"

#define E(n) UINT64_C(1##n)
const uint64_t wq__powers_of_ten[20] = {
    1,
    10,
    100,
    1000,
    10000,
    100000,
    E(000000),
    E(0000000),
    E(00000000),
    E(000000000),
    E(0000000000),
    E(00000000000),
    E(000000000000),
    E(0000000000000),
    E(00000000000000),
    E(000000000000000),
    E(0000000000000000),
    E(00000000000000000),
    E(000000000000000000),
    E(0000000000000000000),
};

const uint64_t wq__bounds_ns[WQ__BOUNDS] = {
    10,           100,           1000,           9999,
    99999,        E(000000),     E(0000000),     E(00000000),
    E(000000000), E(0000000000), E(00000000000), E(000000000000),
};

void
wq__histogram_shared(struct wq__histogram *h, uint64_t ns)
{
    _Atomic uint64_t *bucket = &h->buckets[wq__bucket_of(ns)];
    uint64_t sum = atomic_load_explicit(&h->sum_ns, memory_order_relaxed);

    (void)atomic_fetch_add_explicit(bucket, 1, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        &h->sum_ns, &sum, wq__add_up_to_max(sum, ns), memory_order_relaxed,
        memory_order_relaxed))
        ;
}

void
wq__histogram_read(const struct wq__histogram *h, struct wq__durations *out)
{
    for (unsigned i = 0; i < WQ__BUCKETS; i++)
        out->buckets[i] +=
            atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
    wq__add_ns(&out->seconds, &out->ns,
               atomic_load_explicit(&h->sum_ns, memory_order_relaxed));
}
