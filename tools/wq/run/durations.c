/* SPDX-License-Identifier: MIT */
/* durations.c: how long were keys in the queue, and how long did runs take? See
 * durations.h.
 *
 *     bucket           0       1    ...   89      90    ...
 *     from (us)      1.0     1.1         9.9    10.0
 *     step (ns)      100     100         100    1000
 */
#include "run/durations.h"

#include <math.h>

/* The step of a power of ten: a tenth of it. */
static int64_t
step_ns(int power)
{
    int64_t step = DURATIONS_FIRST_NS / 10;

    while (power-- > 0)
        step *= 10;
    return step;
}

static int
bucket_of(int64_t ns)
{
    int64_t step = step_ns(0);
    int     first = 0; /* bucket of this power of ten */

    if (ns < DURATIONS_FIRST_NS)
        return 0;
    while (ns / step >= 100) {
        step *= 10;
        first += 90;
    }
    const int bucket = first + (int)(ns / step) - 10;
    return bucket < DURATIONS ? bucket : DURATIONS - 1;
}

/* The upper bound: the lower one of the next bucket. */
static int64_t
end_ns(int bucket)
{
    return (11 + bucket % 90) * step_ns(bucket / 90);
}

static uint64_t
in_bucket(const struct durations *d, int bucket)
{
    return atomic_load_explicit(&d->buckets[bucket], memory_order_relaxed);
}

void
durations_add(struct durations *d, int64_t ns)
{
    int64_t longest =
        atomic_load_explicit(&d->longest_ns, memory_order_relaxed);

    (void)atomic_fetch_add_explicit(&d->buckets[bucket_of(ns)], 1,
                                    memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&d->count, 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&d->sum_ns, ns, memory_order_relaxed);
    while (ns > longest && !atomic_compare_exchange_weak_explicit(
                               &d->longest_ns, &longest, ns,
                               memory_order_relaxed, memory_order_relaxed))
        ;
}

int64_t
durations_quantile(const struct durations *d, double q)
{
    const int64_t longest =
        atomic_load_explicit(&d->longest_ns, memory_order_relaxed);
    uint64_t all = 0, seen = 0;

    for (int i = 0; i < DURATIONS; i++)
        all += in_bucket(d, i);
    const uint64_t rank = (uint64_t)ceil(q * (double)all);
    for (int i = 0; i < DURATIONS && all; i++)
        if ((seen += in_bucket(d, i)) >= rank && seen)
            return end_ns(i) < longest ? end_ns(i) : longest;
    return longest;
}

uint64_t
durations_between(const struct durations *d, int64_t from_ns, int64_t to_ns)
{
    uint64_t sum = 0;

    for (int i = bucket_of(from_ns); i < DURATIONS && end_ns(i) <= to_ns; i++)
        sum += in_bucket(d, i);
    return sum;
}

/* -------------------------------------------------------------- the sink -- */

static wq_err
open_sink(void *self, wq_queue *q, const char *name, void **handle)
{
    (void)q, (void)name;
    *handle = self;
    return WQ_OK;
}

static void
on_latency(void *handle, int64_t ns)
{
    struct queue_durations *d = handle;

    durations_add(&d->queued, ns);
}

static void
on_work(void *handle, int64_t ns)
{
    struct queue_durations *d = handle;

    durations_add(&d->worked, ns);
}

wq_metrics
durations_sink(struct queue_durations *d, wq_registry *registry)
{
    wq_metrics sink = *wq_registry_sink(registry);

    d->sink = (wq_metrics){
        .size = sizeof d->sink,
        .self = d,
        .open = open_sink,
        .latency = on_latency,
        .work = on_work,
    };
    sink.next = &d->sink;
    return sink;
}
