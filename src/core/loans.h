/* SPDX-License-Identifier: MIT */
/* loans.h: which keys are in somebody's hands, and for how long?
 *
 * A loan is what a worker gets: the item with the key. It lives from get to
 * done, and its memory until the end of the queue, so that a done can be
 * checked whatever item it names: one that was given back already, or one of
 * another queue. An item that was given back and is on loan again cannot be
 * told from the new loan.
 *
 * Loans are numbered. Their memory comes in blocks, each twice as large as the
 * one before, so that a number leads to its loan by counting its leading
 * zeroes. One that has ended is the next to be handed out: its memory is warm.
 *
 * If ages are kept, loans are in a list, the oldest first, and their times are
 * summed up.
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

/* A key on loan. `rec` is 0 when it has ended. */
struct wq__loan {
    wq_item  item;         /* what the worker sees; item.slot is its number */
    int64_t  got;          /* when it was handed out, if ages are kept */
    int64_t  waited;       /* for how long it was READY before; likewise */
    wq__ref  rec;          /* whose key it is */
    uint32_t older, newer; /* loans by age, if ages are kept; or 0. Of one that
                              has ended: `older` ended before it */
    uint32_t holder;       /* the caller's: which thread got it */
};

_Static_assert(sizeof(struct wq__loan) == 64 || sizeof(void *) != 8,
               "a cache line; docs say so");

enum {
#if WQ_DEBUG
    WQ__LOANS_FIRST_BITS = 1, /* rare paths become daily ones */
#else
    WQ__LOANS_FIRST_BITS = 3, /* half a kilobyte; every next one doubles */
#endif
    WQ__LOANS_FIRST = 1 << WQ__LOANS_FIRST_BITS,
    WQ__LOANS_BLOCKS = 32 - WQ__LOANS_FIRST_BITS, /* numbers have 32 bits */
};

struct wq__loans {
    const wq_allocator *mem;     /* not owned */
    struct wq__loan    *ended;   /* the one that ended last; NULL: none */
    uint32_t            fresh;   /* from this number on, none was made */
    uint32_t            limit;   /* from this number on, there is no memory */
    size_t              live;    /* how many there are */
    uint32_t            oldest;  /* if ages are kept; or 0 */
    uint32_t            newest;  /* likewise */
    uint64_t            got_sum; /* modulo 2^64 */
    struct wq__loan    *blocks[WQ__LOANS_BLOCKS]; /* owned */
};

void wq__loans_init(struct wq__loans *l, const wq_allocator *mem);
void wq__loans_fini(struct wq__loans *l);

/* Loan number `number`, which was made at some time. The first block holds the
 * numbers from FIRST on, the next one those from twice FIRST on. */
static inline struct wq__loan *
wq__loans_at(const struct wq__loans *l, uint32_t number)
{
    const unsigned high = 31U - (unsigned)__builtin_clz(number);

    return &l->blocks[high - WQ__LOANS_FIRST_BITS][number - (1U << high)];
}

/* The loan that `item` is, or NULL. The item may be anyone's: nothing but its
 * own fields is read before it is known to be one of ours. */
static inline struct wq__loan *
wq__loans_find(const struct wq__loans *l, const wq_item *item)
{
    if (item->slot < WQ__LOANS_FIRST || item->slot >= l->fresh)
        return NULL;
    struct wq__loan *loan = wq__loans_at(l, item->slot);
    return &loan->item == item && loan->rec ? loan : NULL;
}

/* Make sure that the next begin has memory. WQ_ENOMEM. */
wq_err wq__loans_grow(struct wq__loans *l);

static inline wq_err
wq__loans_reserve(struct wq__loans *l)
{
    return l->ended || l->fresh < l->limit ? WQ_OK : wq__loans_grow(l);
}

/* A loan of the key of `rec`; the rest is the caller's to fill in, but for its
 * number. It was reserved. */
static inline struct wq__loan *
wq__loans_begin(struct wq__loans *l, wq__ref rec)
{
    struct wq__loan *loan = l->ended;

    if (loan) {
        l->ended = loan->older ? wq__loans_at(l, loan->older) : NULL;
    } else {
        loan = wq__loans_at(l, l->fresh);
        loan->item.slot = l->fresh++;
    }
    loan->rec = rec;
    l->live++;
    return loan;
}

static inline void
wq__loans_end(struct wq__loans *l, struct wq__loan *loan)
{
    loan->rec = 0;
    loan->older = l->ended ? l->ended->item.slot : 0;
    l->ended = loan;
    l->live--;
}

/* The list of ages: a loan comes at `now`, and goes before it ends. */
void wq__loans_note_age(struct wq__loans *l, struct wq__loan *loan,
                        int64_t now);
void wq__loans_forget_age(struct wq__loans *l, const struct wq__loan *loan);

#endif
