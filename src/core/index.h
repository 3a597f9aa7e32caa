/* SPDX-License-Identifier: MIT */
/* index.h: which record has this key?
 *
 * An open-addressing hash table with linear probing. A slot holds the 32-bit
 * hash beside the reference, so a probe reads a record only when the hashes
 * agree, and growing the table reads none. A removal moves later slots back:
 * there are no tombstones.
 *
 * The table doubles when it is three quarters full, and shrinks to a quarter
 * when it is less than a sixteenth full; a small table does not shrink. A
 * failing allocation does no harm: a table that cannot grow gets slower, and
 * refuses an insert only when a single slot is free.
 *
 * Cost: O(1) expected, whatever the keys are, because the hash is keyed;
 * growing is O(n) once in n inserts.
 */
#ifndef WQ_CORE_INDEX_H
#define WQ_CORE_INDEX_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <wq/wq.h>

#include "core/record.h"
#include "core/slab.h"

struct wq__slot {
    uint32_t hash;
    wq__ref  ref; /* 0: the slot is free */
};

struct wq__index {
    const wq_allocator *mem;   /* not owned */
    struct wq__slab    *recs;  /* the records; not owned */
    struct wq__slot    *slots; /* owned; a power of two of them, or NULL */
    size_t              cap;   /* how many slots */
    size_t              len;   /* how many are taken */
    size_t              few;   /* with fewer than this it shrinks */
};

void wq__index_init(struct wq__index *ix, const wq_allocator *mem,
                    struct wq__slab *recs);
void wq__index_fini(struct wq__index *ix);

/* The first free slot from the home of `hash` on. There is one. */
static inline size_t
wq__index_place_for(const struct wq__index *ix, uint32_t hash)
{
    const size_t mask = ix->cap - 1;
    size_t       i = hash & mask;

    while (ix->slots[i].ref)
        i = (i + 1) & mask;
    return i;
}

/* Is the table too large for the first-level cache? */
static inline bool
wq__index_is_large(const struct wq__index *ix)
{
    enum { NEAR = 8192 }; /* slots; 64 KiB */

    return ix->cap > NEAR;
}

/* A key with this hash will be looked up soon: prefetch its slot. Always
 * inlined: gcc removes calls of a function that only prefetches. */
__attribute__((always_inline)) static inline void
wq__index_prefetch(const struct wq__index *ix, uint32_t hash)
{
    if (wq__index_is_large(ix))
        __builtin_prefetch(&ix->slots[hash & (ix->cap - 1)], 1);
}

/* The record with this key; or 0, and *place is the slot where it belongs, if
 * one is free. */
static inline wq__ref
wq__index_seek(const struct wq__index *ix, wq_key key, uint32_t hash,
               size_t *place)
{
    *place = 0;
    if (ix->cap == 0)
        return 0;

    const size_t mask = ix->cap - 1;
    size_t       i = hash & mask;
    for (; ix->slots[i].ref; i = (i + 1) & mask)
        if (ix->slots[i].hash == hash &&
            wq__rec_has_key(wq__slab_at(ix->recs, ix->slots[i].ref), key))
            return ix->slots[i].ref;
    *place = i;
    return 0;
}

static inline wq__ref
wq__index_find(const struct wq__index *ix, wq_key key, uint32_t hash)
{
    size_t place;
    return wq__index_seek(ix, key, hash, &place);
}

/* Make the table larger. WQ_ENOMEM: it cannot grow, and is full. */
wq_err wq__index_grow(struct wq__index *ix);

/* Reserve a slot, so that the next insert cannot fail. The table may move:
 * *place is then updated to where `hash` belongs. */
static inline wq_err
wq__index_reserve(struct wq__index *ix, uint32_t hash, size_t *place)
{
    if ((ix->len + 1) * 4 <= ix->cap * 3)
        return WQ_OK;
    const wq_err err = wq__index_grow(ix);
    if (!err)
        *place = wq__index_place_for(ix, hash);
    return err;
}

/* Insert a record that is not in the index at `place`, where it belongs. A slot
 * was reserved. */
static inline void
wq__index_insert(struct wq__index *ix, uint32_t hash, wq__ref ref, size_t place)
{
    assert(ix->len + 1 < ix->cap && !ix->slots[place].ref);
    ix->slots[place] = (struct wq__slot){hash, ref};
    ix->len++;
}

/* Private to wq__index_remove(): when the next slot is taken, and when few
 * slots are taken. */
size_t wq__index_fill_hole(struct wq__index *ix, size_t hole);
void   wq__index_shrink(struct wq__index *ix);

/* Remove a record that is in the index. */
static inline void
wq__index_remove(struct wq__index *ix, uint32_t hash, wq__ref ref)
{
    const size_t mask = ix->cap - 1;
    size_t       hole = hash & mask;

    while (ix->slots[hole].ref != ref) {
        assert(ix->slots[hole].ref);
        hole = (hole + 1) & mask;
    }
    if (ix->slots[(hole + 1) & mask].ref)
        hole = wq__index_fill_hole(ix, hole);
    ix->slots[hole].ref = 0;
    ix->len--;
    if (ix->len < ix->few)
        wq__index_shrink(ix);
}

#endif
