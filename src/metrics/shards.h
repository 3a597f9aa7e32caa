/* SPDX-License-Identifier: MIT */
/* shards.h: how do many threads count without disturbing each other?
 *
 * Each has a shard of its own, with cache lines nobody else writes to. It is
 * found by the thread's number (port/slot.h) and made when the thread counts
 * for the first time. A thread without a number, or for whose shard there is
 * no memory, uses one that all such threads share, with atomic additions.
 *
 * Why nothing is lost: a shard belongs to a number, and a number to one thread
 * at a time, which is then its only writer. A thread that gets the number of
 * one that has ended sees all that one wrote, the pointer in the table and the
 * counts, because numbers are handed over with acquire and release.
 *
 * Why nothing is counted twice: every report goes to one shard, and shards go
 * away only with the whole.
 *
 * Readers add up all shards with relaxed loads, at any time. Each number only
 * grows, and successive readers, who take turns by a lock, never see it fall.
 *
 * Cost: a few nanoseconds, no lock and no atomic read-modify-write; reading
 * O(shards). Memory: some 400 bytes for each thread that ever counted here.
 */
#ifndef WQ_METRICS_SHARDS_H
#define WQ_METRICS_SHARDS_H

#include <stdalign.h>

#include <wq/wq.h>

#include "metrics/histogram.h"
#include "port/slot.h"

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
    void *raw; /* what the allocator gave; it is owned by its table */
};

struct wq__shards {
    struct wq__shard shared; /* of all threads that have none */
    /* By a thread's number; owned. Written once, by the thread that has the
     * number: the store releases, for readers, who acquire. Entry 0 stays
     * NULL: so one look tells both that a thread has no number and that it
     * has no shard. */
    _Atomic(struct wq__shard *) own[WQ__SLOTS + 1];
    const wq_allocator         *mem; /* not owned; for any thread */
};

void wq__shards_init(struct wq__shards *s, const wq_allocator *mem);
void wq__shards_fini(struct wq__shards *s);

/* For a thread that has no shard, or none yet. */
void wq__shards_count_rarely(struct wq__shards *s, enum wq__measure what,
                             uint64_t ns);

/* Add everything up. `out` has WQ__MEASURES entries, which are added to. */
void wq__shards_read(const struct wq__shards *s, struct wq__durations *out);

/* Something took `ns`. A clock that went back makes it negative: no time. */
static inline void
wq__shards_count(struct wq__shards *s, enum wq__measure what, int64_t ns)
{
    const uint64_t    took = ns > 0 ? (uint64_t)ns : 0;
    struct wq__shard *own =
        atomic_load_explicit(&s->own[wq__slot_own], memory_order_relaxed);

    if (own)
        wq__histogram_own(&own->of[what], took);
    else
        wq__shards_count_rarely(s, what, took);
}

#endif
