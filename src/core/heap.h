/* SPDX-License-Identifier: MIT */
/* heap.h: which WAITING key is due first?
 *
 * A four-ary heap of entries by value, ordered by (deadline, arrival), so that
 * equal deadlines leave in arrival order (L4). Each record stores the place of
 * its entry, so an entry can be removed or changed at any place. The heap holds
 * the deadlines, not the record: a key without a deadline pays four bytes.
 *
 * A sorted array is a heap, and so is what is left when its first entry is taken
 * away. So while the array is sorted, the first entry leaves in O(1), and a push
 * of the latest deadline keeps it sorted: equal delays, the common case, need no
 * heap at all. wq__heap_sort() sorts it, which pays if many entries are due.
 *
 * Cost: O(log n), O(1) where it is sorted; the array doubles when full, halves
 * when a quarter full.
 */
#ifndef WQ_CORE_HEAP_H
#define WQ_CORE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

#include "core/slab.h"

/* Four entries are two cache lines: a level of the heap costs two cache misses
 * at most, and there are half as many levels as in a binary heap. The children
 * of place i begin at i * 4 + 1. */
enum { WQ__HEAP_CHILDREN = 4 };

struct wq__wait {
    int64_t  at;       /* the deadline, on the clock of the caller's `now` */
    uint64_t seq;      /* arrival: breaks ties */
    wq__ref  ref;      /* the record, whose `wait` names this entry's place */
    uint32_t level;    /* the number of its priority; set by the caller */
    wq__ref  throttle; /* its throttle state, or 0; set by the caller */
};

struct wq__heap {
    const wq_allocator *mem;     /* not owned */
    struct wq__slab    *recs;    /* the records; not owned */
    struct wq__wait    *memory;  /* owned; `cap` entries */
    struct wq__wait    *entries; /* the heap: `len` of them, from here on */
    size_t              cap, len;
    size_t              reserved; /* places reserved and not used yet */
    uint64_t            seq;      /* the last arrival number */
    /* A record's `wait` is 1 + base + the place of its entry, so that no record
     * changes when the first entry leaves a sorted array. */
    uint32_t base;
    bool     is_sorted; /* an empty one is */
};

/* Is `a` due before `b`? */
static inline bool
wq__wait_before(const struct wq__wait *a, const struct wq__wait *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

void wq__heap_init(struct wq__heap *h, const wq_allocator *mem,
                   struct wq__slab *recs);
void wq__heap_fini(struct wq__heap *h);

/* Reserve memory for `n` entries, so that the next n pushes cannot fail,
 * whatever is removed in between. release_reserved() releases what was reserved
 * and not used. */
wq_err wq__heap_reserve(struct wq__heap *h, size_t n);
void   wq__heap_release_reserved(struct wq__heap *h);

/* Add an entry at `at` for a record that has none. Memory was reserved. Its
 * level and throttle are 0. */
void wq__heap_push(struct wq__heap *h, wq__ref ref, int64_t at);

/* The same for an entry that already has its arrival number. */
void wq__heap_restore(struct wq__heap *h, wq__ref ref, int64_t at,
                      uint64_t seq);

/* Move the entry of a record to `at`, behind entries with the same time. */
void wq__heap_change(struct wq__heap *h, wq__ref ref, int64_t at);

/* Remove the entry of a record. */
void wq__heap_remove(struct wq__heap *h, wq__ref ref);

/* Sort the array: O(n). */
void wq__heap_sort(struct wq__heap *h);

/* Are at least a quarter of the entries due at `now`? O(n), but most of it is
 * for entries that are due. */
bool wq__heap_is_mostly_due(const struct wq__heap *h, int64_t now);

/* The first entry; NULL: the heap is empty. */
static inline const struct wq__wait *
wq__heap_first(const struct wq__heap *h)
{
    return h->len ? h->entries : NULL;
}

/* The entry of a record, valid until the next push, change or removal. The
 * caller may write its `level` and `throttle`. */
struct wq__wait *wq__heap_entry(const struct wq__heap *h, wq__ref ref);

#endif
