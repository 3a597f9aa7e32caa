/* SPDX-License-Identifier: MIT */
/* heap.h: which WAITING key is due first?
 *
 * A four-ary heap of entries by value, ordered by (deadline, arrival), so that
 * equal deadlines leave in arrival order (L4). Each record knows its place, so
 * an entry can be removed or changed from anywhere. Deadlines live here and not
 * in the record: a key that does not wait pays four bytes for the state.
 *
 * Cost: O(log n); the array doubles when full, halves when a quarter full.
 */
#ifndef WQ_CORE_HEAP_H
#define WQ_CORE_HEAP_H

#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

#include "core/slab.h"

/* Four entries are two cache lines: a level costs two misses at most, and there
 * are half as many levels. Those below place i begin at i * 4 + 1. */
enum { WQ__HEAP_CHILDREN = 4 };

struct wq__wait {
    int64_t  at;    /* the deadline, on the clock of whoever passes `now` */
    uint64_t seq;   /* arrival: breaks ties */
    wq__ref  ref;   /* the record, whose `wait` is 1 + this entry's place */
    uint32_t level; /* the number of its priority; the caller's */
    wq__ref  pace;  /* what else is to be remembered; the caller's; or 0 */
};

struct wq__heap {
    const wq_allocator *mem;     /* not owned */
    struct wq__slab    *recs;    /* where references lead; not owned */
    struct wq__wait    *entries; /* owned */
    size_t              cap, len;
    size_t              reserved; /* places promised and not yet used */
    uint64_t            seq;      /* the arrival number given out last */
};

void wq__heap_init(struct wq__heap *h, const wq_allocator *mem,
                   struct wq__slab *recs);
void wq__heap_fini(struct wq__heap *h);

/* Make room for `n` more, so that the next n pushes cannot fail, whatever is
 * removed in between; until the room that is not used is given up again. */
wq_err wq__heap_reserve(struct wq__heap *h, size_t n);
void   wq__heap_give_up(struct wq__heap *h);

/* Let a record that does not wait, wait until `at`. Room was reserved. Level
 * and pace are 0. */
void wq__heap_push(struct wq__heap *h, wq__ref ref, int64_t at);

/* Give a waiting record another deadline; it arrives anew among its equals. */
void wq__heap_change(struct wq__heap *h, wq__ref ref, int64_t at);

/* A waiting record stops waiting. */
void wq__heap_remove(struct wq__heap *h, wq__ref ref);

/* The entry due first; NULL when nothing waits. */
static inline const struct wq__wait *
wq__heap_first(const struct wq__heap *h)
{
    return h->len ? h->entries : NULL;
}

/* The entry of a waiting record, until the next push, change or removal. Its
 * `level` and `pace` may be written. */
struct wq__wait *wq__heap_entry(const struct wq__heap *h, wq__ref ref);

#endif
