/* SPDX-License-Identifier: MIT */
/* heap.c: the delay heap; see heap.h. */
#include "core/heap.h"

#include <assert.h>
#include <string.h>

#include "core/mem.h"
#include "core/radix.h"
#include "core/record.h"

enum {
    CHILDREN = WQ__HEAP_CHILDREN,
    CAP_FIRST = WQ_DEBUG ? 2 : 16, /* 2: rare paths become daily ones */
};

/* Places are counted anew when `base` gets this large. There are never more
 * than 2^31 entries. */
#define BASE_MAX (WQ_DEBUG ? UINT32_C(50) : UINT32_C(1) << 30)

#define before wq__wait_before

static struct wq__rec *
record(const struct wq__heap *h, wq__ref ref)
{
    return wq__slab_at(h->recs, ref);
}

static void
put(struct wq__heap *h, size_t i, struct wq__wait entry)
{
    h->entries[i] = entry;
    record(h, entry.ref)->wait = h->base + (uint32_t)i + 1;
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
    const size_t i = record(h, ref)->wait - h->base - 1;
    assert(i < h->len && h->entries[i].ref == ref);
    return i;
}

static bool
resize(struct wq__heap *h, size_t cap)
{
    struct wq__wait *entries = wq__mem_array(h->mem, cap, sizeof *entries);
    if (!entries)
        return false;

    if (h->len)
        memcpy(entries, h->entries, h->len * sizeof *entries);
    wq__mem_free(h->mem, h->memory, h->cap * sizeof *entries);
    h->memory = h->entries = entries;
    h->cap = cap;
    return true;
}

/* How many places before the first entry are free. */
static size_t
gone(const struct wq__heap *h)
{
    return (size_t)(h->entries - h->memory);
}

/* Use the places before the first entry again. At least as many entries have
 * left as are moved. */
static void
move_to_front(struct wq__heap *h)
{
    memmove(h->memory, h->entries, h->len * sizeof *h->entries);
    h->entries = h->memory;
}

/* Write the places of all entries into their records. */
static void
number_all(struct wq__heap *h)
{
    h->base = 0;
    for (size_t i = 0; i < h->len; i++)
        record(h, h->entries[i].ref)->wait = (uint32_t)i + 1;
}

void
wq__heap_init(struct wq__heap *h, const wq_allocator *mem,
              struct wq__slab *recs)
{
    *h = (struct wq__heap){.mem = mem, .recs = recs, .is_sorted = true};
}

void
wq__heap_fini(struct wq__heap *h)
{
    wq__mem_free(h->mem, h->memory, h->cap * sizeof *h->entries);
    wq__heap_init(h, h->mem, h->recs);
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
    if (cap == h->cap && n > cap - gone(h) - h->len && gone(h) < h->len)
        cap *= 2; /* to move them would cost more than it gains */
    if (cap != h->cap && !resize(h, cap)) {
        if (n > h->cap - h->len)
            return WQ_ENOMEM;
        move_to_front(h);
    }
    if (n > h->cap - gone(h) - h->len)
        move_to_front(h);
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
    const struct wq__wait entry = {.at = at, .seq = seq, .ref = ref};

    assert(gone(h) + h->len < h->cap && record(h, ref)->wait == 0);
    h->reserved -= h->reserved != 0;
    if (h->seq < seq)
        h->seq = seq;
    if (h->base >= BASE_MAX)
        number_all(h);
    if (h->len && before(&entry, &h->entries[h->len - 1]))
        h->is_sorted = false;
    sift_up(h, h->len++, entry);
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
    h->is_sorted = h->len == 1;
    settle(h, i, entry);
}

void
wq__heap_remove(struct wq__heap *h, wq__ref ref)
{
    const size_t i = place_of(h, ref);

    record(h, ref)->wait = 0;
    h->len--;
    if (h->is_sorted && i == 0) {
        h->entries++;
        h->base++;
    } else if (i < h->len) {
        h->is_sorted = false;
        settle(h, i, h->entries[h->len]);
    }
    if (!h->len) {
        h->entries = h->memory;
        h->is_sorted = true;
    }
    shrink_if_sparse(h);
}

void
wq__heap_sort(struct wq__heap *h)
{
    if (h->is_sorted)
        return;
    wq__radix_sort(h->entries, h->len);
    number_all(h);
    h->is_sorted = true;
}

/* Count the entries at place `i` and below that are due, up to `most`.
 * Recursion is as deep as the heap. */
static size_t
count_due(const struct wq__heap *h, size_t i, int64_t now, size_t most)
{
    size_t n = 1;

    if (i >= h->len || h->entries[i].at > now)
        return 0;
    for (size_t k = 1; k <= CHILDREN && n < most; k++)
        n += count_due(h, i * CHILDREN + k, now, most - n);
    return n;
}

bool
wq__heap_is_mostly_due(const struct wq__heap *h, int64_t now)
{
    const size_t most = h->len / 4 + 1;

    return count_due(h, 0, now, most) >= most;
}

struct wq__wait *
wq__heap_entry(const struct wq__heap *h, wq__ref ref)
{
    return &h->entries[place_of(h, ref)];
}
