/* SPDX-License-Identifier: MIT */
/* index.c: hash tables from keys to records; see index.h. */
#include "core/index.h"

#include <string.h>

#include "core/mem.h"

enum {
    CAP_FIRST = WQ_DEBUG ? 2 : 16,  /* 2: rare paths become daily ones */
    CAP_KEPT = WQ_DEBUG ? 2 : 2048, /* 16 KiB: a burst of 1,500 keys */
    /* References have 32 bits, and so do hashes: 20 bits for the directory, and
     * 12 for the slot. */
    DEPTH_MAX = 20,
};

/* ---- segments ------------------------------------------------------------- */

static size_t
size_of(size_t cap)
{
    return sizeof(struct wq__segment) + cap * sizeof(struct wq__slot);
}

static struct wq__segment *
new_segment(const struct wq__index *ix, size_t cap, uint32_t depth)
{
    struct wq__segment *s = wq__mem_alloc(ix->mem, size_of(cap));

    if (s) {
        memset(s, 0, size_of(cap));
        s->depth = depth;
    }
    return s;
}

static void
free_segment(const struct wq__index *ix, struct wq__segment *s)
{
    wq__mem_free(ix->mem, s, size_of(ix->cap));
}

static void
put(struct wq__segment *s, size_t cap, struct wq__slot slot)
{
    s->slots[wq__segment_place_for(s, cap, slot.hash)] = slot;
    s->len++;
}

/* Copy all keys of `from`, which has `n` slots. */
static void
put_all(struct wq__segment *to, size_t cap, const struct wq__segment *from,
        size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (from->slots[i].ref)
            put(to, cap, from->slots[i]);
}

/* Move later slots of the run into the hole. A slot may move there if the hole
 * is not before the home of its hash. */
size_t
wq__segment_fill_hole(struct wq__segment *s, size_t cap, size_t hole)
{
    const size_t mask = cap - 1;

    for (size_t i = (hole + 1) & mask; s->slots[i].ref; i = (i + 1) & mask) {
        const size_t wanted = s->slots[i].hash & mask;
        if (((i - wanted) & mask) >= ((i - hole) & mask)) {
            s->slots[hole] = s->slots[i];
            hole = i;
        }
    }
    return hole;
}

/* ---- one segment ---------------------------------------------------------- */

static void
use_cap(struct wq__index *ix, size_t cap)
{
    ix->cap = cap;
    ix->few = cap > CAP_KEPT ? (uint32_t)(cap + 15) / 16 : 0;
}

static bool
resize_only(struct wq__index *ix, size_t cap)
{
    struct wq__segment *s = new_segment(ix, cap, 0);

    if (!s)
        return false;
    put_all(s, cap, ix->only, ix->cap);
    free_segment(ix, ix->only);
    ix->only = s;
    use_cap(ix, cap);
    return true;
}

/* ---- the directory -------------------------------------------------------- */

static size_t
entries(const struct wq__index *ix)
{
    return (size_t)1 << ix->depth;
}

/* The entries of a segment: `n` from `first` on. */
struct range {
    size_t first, n;
};

static struct range
range_of(const struct wq__index *ix, const struct wq__segment *s, uint32_t hash)
{
    const size_t n = (size_t)1 << (ix->depth - s->depth);
    const size_t entry = (size_t)((uint64_t)hash >> (32 - ix->depth));

    return (struct range){entry & ~(n - 1), n};
}

static void
point(struct wq__index *ix, struct range r, struct wq__segment *s)
{
    for (size_t i = 0; i < r.n; i++)
        ix->directory[r.first + i] = s;
}

static void
free_directory(struct wq__index *ix)
{
    if (ix->depth)
        wq__mem_free(ix->mem, ix->directory,
                     entries(ix) * sizeof *ix->directory);
}

/* Lead to segments by one bit more. */
static bool
double_directory(struct wq__index *ix)
{
    const size_t         n = entries(ix);
    struct wq__segment **twice =
        wq__mem_array(ix->mem, 2 * n, sizeof(struct wq__segment *));

    if (!twice)
        return false;
    for (size_t i = 0; i < n; i++)
        twice[2 * i] = twice[2 * i + 1] = ix->directory[i];
    free_directory(ix);
    ix->directory = twice;
    ix->depth++;
    ix->deepest = 0;
    return true;
}

/* Every segment is in two entries or more. If there is no memory, the directory
 * stays as it is. */
static void
halve_directory(struct wq__index *ix)
{
    const size_t         n = entries(ix) / 2;
    struct wq__segment **half = &ix->only;

    if (n > 1)
        half = wq__mem_array(ix->mem, n, sizeof(struct wq__segment *));
    if (!half)
        return;
    for (size_t i = 0; i < n; i++)
        half[i] = ix->directory[2 * i];
    free_directory(ix);
    ix->directory = half;
    ix->depth--;
    ix->deepest = 0;
    for (size_t i = 0; i < n; i++)
        ix->deepest += ix->depth && half[i]->depth == ix->depth;
}

/* ---- many segments -------------------------------------------------------- */

/* Move the keys whose next bit is 1 to `to`. The walk begins behind a free slot,
 * that is, at the beginning of a run. Each key is taken out, and what stays is
 * put back between its home and where it was: so all keys that were walked past
 * can be found from their homes, and a key that comes later is not needed for
 * that. */
static void
divide(struct wq__segment *s, struct wq__segment *to, size_t cap)
{
    const size_t   mask = cap - 1;
    const uint32_t bit = UINT32_C(1) << (31 - s->depth);
    size_t         begin = 0;

    while (s->slots[begin].ref)
        begin++;
    for (size_t n = 1; n < cap; n++) {
        struct wq__slot      *at = &s->slots[(begin + n) & mask];
        const struct wq__slot slot = *at;

        if (!slot.ref)
            continue;
        at->ref = 0;
        s->len--;
        put(slot.hash & bit ? to : s, cap, slot);
    }
}

static void
free_all(struct wq__index *ix)
{
    for (size_t i = 0; ix->cap && i < entries(ix);) {
        struct wq__segment *s = ix->directory[i];
        i += (size_t)1 << (ix->depth - s->depth);
        free_segment(ix, s);
    }
    free_directory(ix);
}

/* Let all segments become one table, which is half full at most. */
static bool
join(struct wq__index *ix)
{
    const struct wq__slot *slot;
    size_t                 at = 0, cap = ix->cap * 2;

    while (cap < ix->len * 2)
        cap *= 2;
    struct wq__segment *s = new_segment(ix, cap, 0);
    if (!s)
        return false;
    while ((slot = wq__index_next(ix, &at)))
        put(s, cap, *slot);
    free_all(ix);
    ix->only = s;
    ix->directory = &ix->only;
    ix->depth = 0;
    ix->deepest = 0;
    use_cap(ix, cap);
    return true;
}

/* Would the directory have more entries than the keys are worth? */
static bool
is_sparse(const struct wq__index *ix)
{
    return ix->len / (ix->cap / WQ__SPARSE) < entries(ix);
}

static bool
split(struct wq__index *ix, uint32_t hash)
{
    struct wq__segment *s = wq__index_segment(ix, hash);
    const bool          deeper = s->depth == ix->depth;

    if (deeper && (ix->depth == DEPTH_MAX || is_sparse(ix)))
        return join(ix);
    struct wq__segment *to = new_segment(ix, ix->cap, s->depth + 1);
    if (!to)
        return false;
    if (deeper && !double_directory(ix)) {
        free_segment(ix, to);
        return false;
    }
    const struct range r = range_of(ix, s, hash);
    divide(s, to, ix->cap);
    s->depth++;
    point(ix, (struct range){r.first + r.n / 2, r.n / 2}, to);
    if (s->depth == ix->depth)
        ix->deepest += 2;
    return true;
}

/* Let a segment and its other half become one, if both have few keys. */
static void
merge(struct wq__index *ix, uint32_t hash)
{
    struct wq__segment *s = wq__index_segment(ix, hash);

    if (!s->depth) { /* the only one: the directory could not be halved */
        halve_directory(ix);
        return;
    }
    struct wq__segment *other =
        wq__index_segment(ix, hash ^ (UINT32_C(1) << (32 - s->depth)));

    if (other->depth != s->depth || other->len >= ix->few)
        return;
    put_all(s, ix->cap, other, ix->cap);
    point(ix, range_of(ix, other, hash ^ (UINT32_C(1) << (32 - s->depth))), s);
    if (s->depth == ix->depth)
        ix->deepest -= 2;
    s->depth--;
    free_segment(ix, other);
    if (!ix->deepest)
        halve_directory(ix);
}

wq_err
wq__index_grow(struct wq__index *ix, uint32_t hash)
{
    const bool doubles = ix->cap != WQ__SEGMENT_MAX;

    if (doubles ? resize_only(ix, ix->cap ? ix->cap * 2 : CAP_FIRST)
                : split(ix, hash))
        return WQ_OK;
    /* One slot stays free: it ends every search. */
    return ix->cap && wq__index_segment(ix, hash)->len + 1 < ix->cap
               ? WQ_OK
               : WQ_ENOMEM;
}

void
wq__index_shrink(struct wq__index *ix, uint32_t hash)
{
    if (ix->depth)
        merge(ix, hash);
    else /* If this fails, the table stays large. */
        (void)resize_only(ix, ix->cap / 4 > CAP_KEPT ? ix->cap / 4 : CAP_KEPT);
}

/* ---- all of them ---------------------------------------------------------- */

void
wq__index_init(struct wq__index *ix, const wq_allocator *mem,
               struct wq__slab *recs)
{
    *ix = (struct wq__index){
        .mem = mem,
        .recs = recs,
        .directory = &ix->only,
    };
}

void
wq__index_fini(struct wq__index *ix)
{
    free_all(ix);
    wq__index_init(ix, ix->mem, ix->recs);
}

struct wq__slot *
wq__index_next(const struct wq__index *ix, size_t *at)
{
    while (ix->cap && *at / ix->cap < entries(ix)) {
        struct wq__segment *s = ix->directory[*at / ix->cap];
        struct wq__slot    *slot = &s->slots[*at % ix->cap];

        ++*at;
        if (*at % ix->cap == 0) /* its other entries */
            *at += (((size_t)1 << (ix->depth - s->depth)) - 1) * ix->cap;
        if (slot->ref)
            return slot;
    }
    return NULL;
}

static size_t
count_keys(const struct wq__segment *s, size_t cap)
{
    size_t n = 0;

    for (size_t i = 0; i < cap; i++)
        n += s->slots[i].ref != 0;
    return n;
}

const char *
wq__index_check(const struct wq__index *ix)
{
    size_t len = 0, deepest = 0;

    for (size_t i = 0; ix->cap && i < entries(ix);) {
        const struct wq__segment *s = ix->directory[i];
        if (s->depth > ix->depth)
            return "a segment is deeper than its directory";
        const size_t n = (size_t)1 << (ix->depth - s->depth);
        if (i % n)
            return "the entries of a segment begin at a wrong place";
        for (size_t k = 0; k < n; k++)
            if (ix->directory[i + k] != s)
                return "a segment has too few entries";
        if (count_keys(s, ix->cap) != s->len)
            return "a segment has miscounted its keys";
        len += s->len;
        deepest += ix->depth && s->depth == ix->depth;
        i += n;
    }
    return len != ix->len           ? "the index has miscounted its keys"
           : deepest != ix->deepest ? "the index has miscounted its segments"
                                    : NULL;
}
