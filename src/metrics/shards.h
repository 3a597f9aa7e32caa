/* SPDX-License-Identifier: MIT */
/* shards.h: how do many threads count without sharing cache lines?
 *
 * Each thread has a shard of its own, with cache lines that no other thread
 * writes to. The thread's number (port/thread_mark.h) finds it; it is allocated
 * when the thread counts for the first time. Threads without a number, or whose
 * shard could not be allocated, share one shard and use atomic additions.
 *
 * Why no count is lost: a shard belongs to a number, and a number to one thread
 * at a time, its only writer. A thread that gets the number of a thread that
 * has ended sees all that that thread wrote, the pointer in the table and the
 * counts, because numbers are passed on with release and acquire.
 *
 * Why nothing is counted twice: every report goes to one shard, and shards are
 * freed only all together.
 *
 * Readers add up all shards with relaxed loads, at any time. Each count only
 * grows, and successive readers, which hold a lock, never see it fall.
 *
 * Cost: a few nanoseconds, no lock and no atomic read-modify-write; reading
 * O(shards). Memory: some 400 bytes for each thread that ever counted here.
 */
#ifndef WQ_METRICS_SHARDS_H
#define WQ_METRICS_SHARDS_H

#include <stdalign.h>

#include <wq/wq.h>

#include "metrics/histogram.h"
#include "port/thread_mark.h"

/* What is measured. */
enum wq__measure {
    WQ__LATENCY, /* READY until handed out */
    WQ__WORK,    /* handed out until done */
    WQ__LIMITED, /* what the limiter decided */
    WQ__MEASURES
};

enum { WQ__SHARD_ALIGN = 64 }; /* a cache line */

struct wq__shard {
    alignas(WQ__SHARD_ALIGN) struct wq__histogram of[WQ__MEASURES];
    void *raw; /* the address that the allocator returned; owned */
};

struct wq__shards {
    struct wq__shard shared; /* of threads without one of their own */
    /* By a thread's number; owned. Each is written once, by the thread with
     * that number, with release; readers load with acquire. Entry 0 stays NULL:
     * so one load covers both threads without a number and threads without a
     * shard. */
    _Atomic(struct wq__shard *) own[WQ__THREAD_NUMBERS + 1];
    const wq_allocator         *mem; /* not owned; for any thread */
};

void wq__shards_init(struct wq__shards *s, const wq_allocator *mem);
void wq__shards_fini(struct wq__shards *s);

/* The slow path: for a thread that has no shard yet. */
void wq__shards_count_rarely(struct wq__shards *s, enum wq__measure what,
                             uint64_t ns);

/* Add all shards to the WQ__MEASURES entries of `out`. */
void wq__shards_read(const struct wq__shards *s, struct wq__durations *out);

/* Count a duration of `ns`. It is negative if the clock went back: counts as
 * 0. */
static inline void
wq__shards_count(struct wq__shards *s, enum wq__measure what, int64_t ns)
{
    const uint64_t    took = ns > 0 ? (uint64_t)ns : 0;
    struct wq__shard *own = atomic_load_explicit(
        &s->own[wq__thread_mark_number], memory_order_relaxed);

    if (own)
        wq__histogram_own(&own->of[what], took);
    else
        wq__shards_count_rarely(s, what, took);
}

#endif
