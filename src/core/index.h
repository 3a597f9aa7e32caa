/* SPDX-License-Identifier: MIT */
/* index.h: which record has this key?
 *
 * Hash tables with open addressing and linear probing. A slot holds the 32-bit
 * hash beside the reference, so a probe reads a record only when the hashes
 * agree, and growing reads none. A removal moves later slots back: there are no
 * tombstones.
 *
 * A small index is one table, a segment, which doubles when it is three quarters
 * full. From WQ__SEGMENT_MAX slots on a segment does not double but splits: half
 * of its slots move to another one. A directory finds the segment by the first
 * bits of the hash; the last bits are the home of the hash in it.
 *
 *     hash  0110 ......... 101100111010
 *           │              └ slot of the segment
 *           └ entry of the directory: 2^depth pointers to segments
 *
 * So no insert moves more than one segment, however large the index is: about
 * 10 us. Segments are found by as many bits as they need: one that has not split
 * yet is in several entries of the directory. Two halves of a segment become one
 * again when each is less than a sixteenth full; the last segment shrinks to a
 * quarter then, unless it is small.
 *
 * A failing allocation does no harm: a segment that cannot split gets slower,
 * and refuses an insert only when a single slot is free.
 *
 * If so many hashes begin alike that a directory would have more than
 * WQ__SPARSE times as many entries as the keys are worth, all segments become
 * one table, which doubles as a small one does. Since the hash is keyed, only a
 * test sees that.
 *
 * Cost: O(1) expected, whatever the keys are, because the hash is keyed. An
 * insert that doubles the directory copies a pointer for each 1,500 to 3,000
 * keys.
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

enum {
    WQ__SEGMENT_MAX = WQ_DEBUG ? 128 : 4096, /* slots; 32 KiB */
    WQ__SPARSE = 16,
};

struct wq__slot {
    uint32_t hash;
    wq__ref  ref; /* 0: the slot is free */
};

struct wq__segment {
    uint32_t        len;   /* how many slots are taken */
    uint32_t        depth; /* how many bits of the hash lead here */
    struct wq__slot slots[];
};

struct wq__index {
    const wq_allocator *mem;  /* not owned */
    struct wq__slab    *recs; /* the records; not owned */
    /* 2^depth entries. Owned, and what they point to; but depth 0: &only. */
    struct wq__segment **directory;
    struct wq__segment  *only; /* NULL: no memory yet */
    uint32_t             depth;
    uint32_t             few; /* a segment with fewer keys may shrink */
    size_t               cap; /* slots of every segment: a power of two; or 0 */
    size_t               len; /* keys */
    size_t               deepest; /* segments found by `depth` bits */
};

/* Where a key belongs; no segment: the index has no memory yet. */
struct wq__place {
    struct wq__segment *segment;
    size_t              slot;
};

/* The index must not move. */
void wq__index_init(struct wq__index *ix, const wq_allocator *mem,
                    struct wq__slab *recs);
void wq__index_fini(struct wq__index *ix);

/* The segment of keys with this hash. */
static inline struct wq__segment *
wq__index_segment(const struct wq__index *ix, uint32_t hash)
{
    return ix->directory[(uint64_t)hash >> (32 - ix->depth)];
}

/* The first free slot from the home of `hash` on. There is one. */
static inline size_t
wq__segment_place_for(const struct wq__segment *s, size_t cap, uint32_t hash)
{
    const size_t mask = cap - 1;
    size_t       i = hash & mask;

    while (s->slots[i].ref)
        i = (i + 1) & mask;
    return i;
}

/* Is the index too large for the first-level cache? */
static inline bool
wq__index_is_large(const struct wq__index *ix)
{
    return ix->depth > 1; /* 128 KiB or more */
}

/* A key with this hash will be looked up soon: prefetch its slot. Always
 * inlined: gcc removes calls of a function that only prefetches. */
__attribute__((always_inline)) static inline void
wq__index_prefetch(const struct wq__index *ix, uint32_t hash)
{
    if (wq__index_is_large(ix))
        __builtin_prefetch(
            &wq__index_segment(ix, hash)->slots[hash & (ix->cap - 1)], 1);
}

/* The record with this key; or 0, and *place is where it belongs, if a slot is
 * free there. */
static inline wq__ref
wq__index_seek(const struct wq__index *ix, wq_key key, uint32_t hash,
               struct wq__place *place)
{
    struct wq__segment *s = wq__index_segment(ix, hash);
    const size_t        mask = ix->cap - 1;
    size_t              i = hash & mask;

    *place = (struct wq__place){NULL, 0};
    if (!s)
        return 0;
    for (; s->slots[i].ref; i = (i + 1) & mask)
        if (s->slots[i].hash == hash &&
            wq__rec_has_key(wq__slab_at(ix->recs, s->slots[i].ref), key))
            return s->slots[i].ref;
    *place = (struct wq__place){s, i};
    return 0;
}

static inline wq__ref
wq__index_find(const struct wq__index *ix, wq_key key, uint32_t hash)
{
    struct wq__place place;
    return wq__index_seek(ix, key, hash, &place);
}

/* Make space in the segment of `hash`. WQ_ENOMEM: it cannot grow, and is
 * full. */
wq_err wq__index_grow(struct wq__index *ix, uint32_t hash);

/* Reserve a slot, so that the next insert cannot fail. Slots may move: *place is
 * then updated to where `hash` belongs. */
static inline wq_err
wq__index_reserve(struct wq__index *ix, uint32_t hash, struct wq__place *place)
{
    if (place->segment && ((size_t)place->segment->len + 1) * 4 <= ix->cap * 3)
        return WQ_OK;
    const wq_err err = wq__index_grow(ix, hash);
    if (!err) {
        place->segment = wq__index_segment(ix, hash);
        place->slot = wq__segment_place_for(place->segment, ix->cap, hash);
    }
    return err;
}

/* Insert a record that is not in the index at `place`, where it belongs. A slot
 * was reserved. */
static inline void
wq__index_insert(struct wq__index *ix, uint32_t hash, wq__ref ref,
                 struct wq__place place)
{
    struct wq__segment *s = place.segment;

    assert(s->len + 1 < ix->cap && !s->slots[place.slot].ref);
    s->slots[place.slot] = (struct wq__slot){hash, ref};
    s->len++;
    ix->len++;
}

/* Private to wq__index_remove(): when the next slot is taken, and when few
 * slots are taken. */
size_t wq__segment_fill_hole(struct wq__segment *s, size_t cap, size_t hole);
void   wq__index_shrink(struct wq__index *ix, uint32_t hash);

/* Remove a record that is in the index. */
static inline void
wq__index_remove(struct wq__index *ix, uint32_t hash, wq__ref ref)
{
    struct wq__segment *s = wq__index_segment(ix, hash);
    const size_t        mask = ix->cap - 1;
    size_t              hole = hash & mask;

    while (s->slots[hole].ref != ref) {
        assert(s->slots[hole].ref);
        hole = (hole + 1) & mask;
    }
    if (s->slots[(hole + 1) & mask].ref)
        hole = wq__segment_fill_hole(s, ix->cap, hole);
    s->slots[hole].ref = 0;
    ix->len--;
    if (--s->len < ix->few)
        wq__index_shrink(ix, hash);
}

/* Each slot that is taken, one after the other: *at begins at 0. NULL: there are
 * no more. For an index that does not change meanwhile. */
struct wq__slot *wq__index_next(const struct wq__index *ix, size_t *at);

/* Do directory, depths and counts fit together? NULL, or what does not. */
const char *wq__index_check(const struct wq__index *ix);

#endif
