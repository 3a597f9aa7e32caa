/* SPDX-License-Identifier: MIT */
/* index.c: hash table from keys to records; see index.h. */
#include "core/index.h"

#include <assert.h>
#include <string.h>

#include "core/mem.h"
#include "core/record.h"

enum {
#if WQ_DEBUG
    CAP_FIRST = 2, /* rare paths become daily ones */
#else
    CAP_FIRST = 16,
#endif
};

/* References have 32 bits, so there are never more records than this. */
#define CAP_MAX ((size_t)1 << 31)

static bool
holds_key(const struct wq__index *ix, wq__ref ref, wq_key key)
{
    const struct wq__rec *rec = wq__slab_at(ix->recs, ref);
    return wq__rec_len(rec) == key.len &&
           memcmp(wq__rec_bytes(rec), key.data, key.len) == 0;
}

/* Put `slot` into the first free place from where its hash wants it. */
static void
place(struct wq__slot *slots, size_t cap, struct wq__slot slot)
{
    const size_t mask = cap - 1;
    size_t       i = slot.hash & mask;

    while (slots[i].ref)
        i = (i + 1) & mask;
    slots[i] = slot;
}

static bool
resize(struct wq__index *ix, size_t cap)
{
    struct wq__slot *slots = wq__mem_array(ix->mem, cap, sizeof *slots);
    if (!slots)
        return false;

    memset(slots, 0, cap * sizeof *slots);
    for (size_t i = 0; i < ix->cap; i++)
        if (ix->slots[i].ref)
            place(slots, cap, ix->slots[i]);
    wq__mem_free(ix->mem, ix->slots, ix->cap * sizeof *slots);
    ix->slots = slots;
    ix->cap = cap;
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

wq__ref
wq__index_find(const struct wq__index *ix, wq_key key, uint32_t hash)
{
    if (ix->len == 0)
        return 0;

    const size_t mask = ix->cap - 1;
    for (size_t i = hash & mask; ix->slots[i].ref; i = (i + 1) & mask)
        if (ix->slots[i].hash == hash && holds_key(ix, ix->slots[i].ref, key))
            return ix->slots[i].ref;
    return 0;
}

wq_err
wq__index_reserve(struct wq__index *ix)
{
    if ((ix->len + 1) * 4 <= ix->cap * 3)
        return WQ_OK;
    if (ix->cap < CAP_MAX && resize(ix, ix->cap ? ix->cap * 2 : CAP_FIRST))
        return WQ_OK;
    /* One slot stays free: it ends every search. */
    return ix->len + 1 < ix->cap ? WQ_OK : WQ_ENOMEM;
}

void
wq__index_insert(struct wq__index *ix, uint32_t hash, wq__ref ref)
{
    assert(ix->len + 1 < ix->cap);
    place(ix->slots, ix->cap, (struct wq__slot){hash, ref});
    ix->len++;
}

void
wq__index_remove(struct wq__index *ix, uint32_t hash, wq__ref ref)
{
    const size_t mask = ix->cap - 1;
    size_t       hole = hash & mask;

    while (ix->slots[hole].ref != ref) {
        assert(ix->slots[hole].ref);
        hole = (hole + 1) & mask;
    }
    /* Every later slot of the run that may stand in the hole moves there: it
     * may if the hole is not before the place its hash wants. */
    for (size_t i = (hole + 1) & mask; ix->slots[i].ref; i = (i + 1) & mask) {
        const size_t wanted = ix->slots[i].hash & mask;
        if (((i - wanted) & mask) >= ((i - hole) & mask)) {
            ix->slots[hole] = ix->slots[i];
            hole = i;
        }
    }
    ix->slots[hole].ref = 0;
    ix->len--;

    if (ix->cap > CAP_FIRST && ix->len * 8 < ix->cap)
        (void)resize(ix, ix->cap / 2); /* failing only keeps it large */
}
