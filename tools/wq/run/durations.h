/* SPDX-License-Identifier: MIT */
/* durations.h: how long were keys in the queue, and how long did runs take?
 *
 * The histograms of /metrics have one bucket for each power of ten, as those of
 * Kubernetes: too coarse for a percentile. These have 90 for each: 1.0, 1.1, ...
 * 9.9 times the power. So a percentile is at most a tenth too high.
 *
 * They get the same events as the registry, as a second sink of the queue. Cost:
 * O(1) for an event, O(DURATIONS) to read.
 */
#ifndef WQ_TOOL_DURATIONS_H
#define WQ_TOOL_DURATIONS_H

#include <stdatomic.h>
#include <stdint.h>

#include <wq/metrics.h>

/* Twelve powers of ten, from a microsecond to 10^6 seconds, which are 11 days.
 * What is below or above counts in the first or the last bucket. */
#define DURATIONS_FIRST_NS INT64_C(1000)
#define DURATIONS_POWERS 12
#define DURATIONS_LAST_NS INT64_C(1000000000000000)
#define DURATIONS (DURATIONS_POWERS * 90)

struct durations {
    _Atomic uint64_t buckets[DURATIONS]; /* relaxed: the queue may report from
                                            other threads, and each number
                                            stands for itself */
    _Atomic uint64_t count;
    _Atomic int64_t  sum_ns;
    _Atomic int64_t  longest_ns;
};

/* Of one queue. Zero is empty. */
struct queue_durations {
    struct durations queued; /* READY until the hand-out */
    struct durations worked; /* HELD */
    wq_metrics       sink;   /* adds to the two; set by durations_sink() */
};

/* A sink that reports to `d` and to the registry: the registry's, whose `next`
 * is `d->sink`. `d` must outlive the queue. */
wq_metrics durations_sink(struct queue_durations *d, wq_registry *registry);

void durations_add(struct durations *d, int64_t ns);

/* The upper bound of the bucket with the q-quantile, or the longest if that is
 * less; 0: none was added. */
int64_t durations_quantile(const struct durations *d, double q);

/* How many are in the buckets of [from_ns, to_ns); both are bounds of buckets. */
uint64_t durations_between(const struct durations *d, int64_t from_ns,
                           int64_t to_ns);

#endif
