/* SPDX-License-Identifier: MIT */
/* loans.h: which keys are HELD, and for how long?
 *
 * A loan is the item that a worker gets. It lasts from get to done. Its memory
 * stays until the end of the queue, so that a done can check any item: also one
 * that is done already, or one of another queue. A second done of an item that
 * is on loan again is not detected: it ends the new loan.
 *
 * Loans are numbered. Their memory comes in blocks, each twice as large as the
 * one before, so that the number of leading zeroes of a loan's number gives its
 * block. The loan that ended last is used next: its memory is in the cache.
 *
 * If ages are kept, a list holds the loans, oldest first, and the sum of their
 * start times is kept.
 *
 * Cost: O(1).
 */
#ifndef WQ_CORE_LOANS_H
#define WQ_CORE_LOANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

#include "core/slab.h"

/* A loan. `rec` is 0 when it has ended. */
struct wq__loan {
    wq_item item;   /* what the worker sees; item.loan is its number */
    int64_t got;    /* when it was handed out, if ages are kept */
    int64_t waited; /* how long it was READY before; likewise */
    wq__ref rec;    /* the record of its key */
    /* Neighbours in the list by age, if ages are kept; or 0. After the end,
     * `older` is the loan that ended before. */
    uint32_t older, newer;
    uint32_t holder; /* the thread that got it; set by the caller */
};

_Static_assert(sizeof(struct wq__loan) == 64 || sizeof(void *) != 8,
               "one cache line, as documented");

enum {
    /* Half a kilobyte; each next block is twice as large. In debug builds rare
     * paths become daily ones. */
    WQ__LOANS_FIRST_BITS = WQ_DEBUG ? 1 : 3,
    WQ__LOANS_FIRST = 1 << WQ__LOANS_FIRST_BITS,
    WQ__LOANS_BLOCKS = 32 - WQ__LOANS_FIRST_BITS, /* numbers have 32 bits */
};

struct wq__loans {
    const wq_allocator *mem;   /* not owned */
    struct wq__loan    *ended; /* the one that ended last; NULL: none */
    uint32_t            fresh; /* numbers from this one on were never used */
    uint32_t            limit; /* numbers from this one on have no memory yet */
    size_t              live;  /* loans that have not ended */
    uint32_t            oldest;  /* if ages are kept; or 0 */
    uint32_t            newest;  /* likewise */
    uint64_t            got_sum; /* of their `got`, modulo 2^64 */
    struct wq__loan    *blocks[WQ__LOANS_BLOCKS]; /* owned */
};

void wq__loans_init(struct wq__loans *l, const wq_allocator *mem);
void wq__loans_fini(struct wq__loans *l);

/* The loan of a number below `fresh`. The first block holds the numbers from
 * FIRST on, the next one those from twice FIRST on. */
static inline struct wq__loan *
wq__loans_at(const struct wq__loans *l, uint32_t number)
{
    const unsigned high = 31U - (unsigned)__builtin_clz(number);

    return &l->blocks[high - WQ__LOANS_FIRST_BITS][number - (1U << high)];
}

/* The loan that `item` belongs to, or NULL. The item may be of another queue:
 * only its own fields are read until it is known to be one of ours. */
static inline struct wq__loan *
wq__loans_find(const struct wq__loans *l, const wq_item *item)
{
    if (item->loan < WQ__LOANS_FIRST || item->loan >= l->fresh)
        return NULL;
    struct wq__loan *loan = wq__loans_at(l, item->loan);
    return &loan->item == item && loan->rec ? loan : NULL;
}

/* Reserve memory for the next wq__loans_begin(). WQ_ENOMEM. */
wq_err wq__loans_grow(struct wq__loans *l);

static inline wq_err
wq__loans_reserve(struct wq__loans *l)
{
    return l->ended || l->fresh < l->limit ? WQ_OK : wq__loans_grow(l);
}

/* Begin a loan of the key of `rec`. Memory was reserved. The caller fills in
 * all other fields but the number. */
static inline struct wq__loan *
wq__loans_begin(struct wq__loans *l, wq__ref rec)
{
    struct wq__loan *loan = l->ended;

    if (loan) {
        l->ended = loan->older ? wq__loans_at(l, loan->older) : NULL;
    } else {
        loan = wq__loans_at(l, l->fresh);
        loan->item.loan = l->fresh++;
    }
    loan->rec = rec;
    l->live++;
    return loan;
}

static inline void
wq__loans_end(struct wq__loans *l, struct wq__loan *loan)
{
    loan->rec = 0;
    loan->older = l->ended ? l->ended->item.loan : 0;
    l->ended = loan;
    l->live--;
}

/* Add a loan to the list by age when it begins, at `now`; remove it before it
 * ends. */
void wq__loans_note_age(struct wq__loans *l, struct wq__loan *loan,
                        int64_t now);
void wq__loans_forget_age(struct wq__loans *l, const struct wq__loan *loan);

#endif
