/* SPDX-License-Identifier: MIT */
/* index.c: hash table from keys to records; see index.h. */
#include "core/index.h"

#include <string.h>

#include "core/mem.h"

enum {
    CAP_FIRST = WQ_DEBUG ? 2 : 16,  /* 2: rare paths become daily ones */
    CAP_KEPT = WQ_DEBUG ? 2 : 2048, /* 16 KiB: a burst of 1,500 keys */
};

/* References have 32 bits, so there are never more records than this. */
#define CAP_MAX ((size_t)1 << 31)

static bool
resize(struct wq__index *ix, size_t cap)
{
    struct wq__index to = *ix;

    to.cap = cap;
    to.slots = wq__mem_array(ix->mem, cap, sizeof *to.slots);
    if (!to.slots)
        return false;

    memset(to.slots, 0, cap * sizeof *to.slots);
    for (size_t i = 0; i < ix->cap; i++)
        if (ix->slots[i].ref)
            to.slots[wq__index_place_for(&to, ix->slots[i].hash)] =
                ix->slots[i];
    wq__mem_free(ix->mem, ix->slots, ix->cap * sizeof *ix->slots);
    to.few = cap > CAP_KEPT ? (cap + 15) / 16 : 0;
    *ix = to;
    return true;
}

void
wq__index_init(struct wq__index *ix, const wq_allocator *mem,
               struct wq__slab *recs)
{
    *ix = (struct wq__index){.mem = mem, .recs = recs};
}

void
wq__index_fini(struct wq__index *ix)
{
    wq__mem_free(ix->mem, ix->slots, ix->cap * sizeof *ix->slots);
    *ix = (struct wq__index){.mem = ix->mem, .recs = ix->recs};
}

wq_err
wq__index_grow(struct wq__index *ix)
{
    if (ix->cap < CAP_MAX && resize(ix, ix->cap ? ix->cap * 2 : CAP_FIRST))
        return WQ_OK;
    /* One slot stays free: it ends every search. */
    return ix->len + 1 < ix->cap ? WQ_OK : WQ_ENOMEM;
}

/* Move later slots of the run into the hole. A slot may move there if the hole
 * is not before the home of its hash. */
size_t
wq__index_fill_hole(struct wq__index *ix, size_t hole)
{
    const size_t mask = ix->cap - 1;

    for (size_t i = (hole + 1) & mask; ix->slots[i].ref; i = (i + 1) & mask) {
        const size_t wanted = ix->slots[i].hash & mask;
        if (((i - wanted) & mask) >= ((i - hole) & mask)) {
            ix->slots[hole] = ix->slots[i];
            hole = i;
        }
    }
    return hole;
}

void
wq__index_shrink(struct wq__index *ix)
{
    /* If this fails, the table stays large. */
    (void)resize(ix, ix->cap / 4 > CAP_KEPT ? ix->cap / 4 : CAP_KEPT);
}
