/* SPDX-License-Identifier: MIT */
/* heap.c: the delay heap; see heap.h. */
#include "core/heap.h"

#include <assert.h>
#include <string.h>

#include "core/mem.h"
#include "core/record.h"

enum {
    CHILDREN = WQ__HEAP_CHILDREN,
    CAP_FIRST = WQ_DEBUG ? 2 : 16, /* 2: rare paths become daily ones */
};

static bool
before(const struct wq__wait *a, const struct wq__wait *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static struct wq__rec *
record(const struct wq__heap *h, wq__ref ref)
{
    return wq__slab_at(h->recs, ref);
}

static void
put(struct wq__heap *h, size_t i, struct wq__wait entry)
{
    h->entries[i] = entry;
    record(h, entry.ref)->wait = (uint32_t)i + 1;
}

/* Move `entry` from the free place `i` towards the root until it fits. */
static void
sift_up(struct wq__heap *h, size_t i, struct wq__wait entry)
{
    while (i > 0) {
        const size_t parent = (i - 1) / CHILDREN;
        if (!before(&entry, &h->entries[parent]))
            break;
        put(h, i, h->entries[parent]);
        i = parent;
    }
    put(h, i, entry);
}

static size_t
first_child(const struct wq__heap *h, size_t i)
{
    const size_t from = i * CHILDREN + 1;
    size_t       best = from;

    for (size_t c = from + 1; c < from + CHILDREN && c < h->len; c++)
        if (before(&h->entries[c], &h->entries[best]))
            best = c;
    return best;
}

/* Move `entry` from the free place `i` towards the leaves until it fits. */
static void
sift_down(struct wq__heap *h, size_t i, struct wq__wait entry)
{
    while (i * CHILDREN + 1 < h->len) {
        const size_t child = first_child(h, i);
        if (!before(&h->entries[child], &entry))
            break;
        put(h, i, h->entries[child]);
        i = child;
    }
    put(h, i, entry);
}

static void
settle(struct wq__heap *h, size_t i, struct wq__wait entry)
{
    if (i > 0 && before(&entry, &h->entries[(i - 1) / CHILDREN]))
        sift_up(h, i, entry);
    else
        sift_down(h, i, entry);
}

static size_t
place_of(const struct wq__heap *h, wq__ref ref)
{
    const size_t wait = record(h, ref)->wait;
    assert(wait > 0 && wait <= h->len && h->entries[wait - 1].ref == ref);
    return wait - 1;
}

static bool
resize(struct wq__heap *h, size_t cap)
{
    struct wq__wait *entries = wq__mem_array(h->mem, cap, sizeof *entries);
    if (!entries)
        return false;

    if (h->len)
        memcpy(entries, h->entries, h->len * sizeof *entries);
    wq__mem_free(h->mem, h->entries, h->cap * sizeof *entries);
    h->entries = entries;
    h->cap = cap;
    return true;
}

void
wq__heap_init(struct wq__heap *h, const wq_allocator *mem,
              struct wq__slab *recs)
{
    *h = (struct wq__heap){.mem = mem, .recs = recs};
}

void
wq__heap_fini(struct wq__heap *h)
{
    wq__mem_free(h->mem, h->entries, h->cap * sizeof *h->entries);
    *h = (struct wq__heap){.mem = h->mem, .recs = h->recs};
}

wq_err
wq__heap_reserve(struct wq__heap *h, size_t n)
{
    size_t cap = h->cap;

    while (n > cap - h->len) {
        if (cap > SIZE_MAX / 2)
            return WQ_ENOMEM;
        cap = cap ? cap * 2 : CAP_FIRST;
    }
    if (cap != h->cap && !resize(h, cap))
        return WQ_ENOMEM;
    h->reserved = n;
    return WQ_OK;
}

static void
shrink_if_sparse(struct wq__heap *h)
{
    size_t cap = h->cap;

    while (cap > CAP_FIRST && (h->len + h->reserved) * 4 < cap)
        cap /= 2;
    if (cap != h->cap)
        (void)resize(h, cap); /* if this fails, the array stays large */
}

void
wq__heap_release_reserved(struct wq__heap *h)
{
    if (!h->reserved)
        return;
    h->reserved = 0;
    shrink_if_sparse(h);
}

void
wq__heap_restore(struct wq__heap *h, wq__ref ref, int64_t at, uint64_t seq)
{
    assert(h->len < h->cap && record(h, ref)->wait == 0);
    h->reserved -= h->reserved != 0;
    if (h->seq < seq)
        h->seq = seq;
    sift_up(h, h->len++, (struct wq__wait){.at = at, .seq = seq, .ref = ref});
}

void
wq__heap_push(struct wq__heap *h, wq__ref ref, int64_t at)
{
    wq__heap_restore(h, ref, at, h->seq + 1);
}

void
wq__heap_change(struct wq__heap *h, wq__ref ref, int64_t at)
{
    const size_t    i = place_of(h, ref);
    struct wq__wait entry = h->entries[i];

    entry.at = at;
    entry.seq = ++h->seq;
    settle(h, i, entry);
}

void
wq__heap_remove(struct wq__heap *h, wq__ref ref)
{
    const size_t i = place_of(h, ref);

    record(h, ref)->wait = 0;
    h->len--;
    if (i < h->len)
        settle(h, i, h->entries[h->len]);
    shrink_if_sparse(h);
}

struct wq__wait *
wq__heap_entry(const struct wq__heap *h, wq__ref ref)
{
    return &h->entries[place_of(h, ref)];
}
