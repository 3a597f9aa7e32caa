/* SPDX-License-Identifier: MIT */
/* levels.c: the priorities in use; see levels.h. */
#include "core/levels.h"

#include <assert.h>
#include <string.h>

#include "core/mem.h"

enum {
    CAP_FIRST = WQ_DEBUG ? 2 : 8, /* 2: rare paths become daily ones */
    CAP_KEPT = WQ_DEBUG ? 1 : 8,  /* 512 bytes, after the first priority */
    CAP_MAX = 1 << 30,            /* twice that still fits 32 bits */
};

/* ---- found by priority -------------------------------------------------- */

/* Where a search for `priority` begins, among `mask` + 1 slots. The program
 * itself chooses priorities, so the hash need not withstand an attacker: it
 * only spreads neighbouring numbers. */
static uint32_t
home(int priority, uint32_t mask)
{
    const uint32_t spread = (uint32_t)priority * UINT32_C(0x9E3779B1);
    return (spread ^ spread >> 15) & mask;
}

static uint32_t
mask_of(const struct wq__levels *l)
{
    return 2 * l->cap - 1;
}

/* The slot of `priority`, or the free one where it belongs. */
static uint32_t
slot_of(const struct wq__levels *l, int priority)
{
    const uint32_t mask = mask_of(l);
    uint32_t       i = home(priority, mask);

    while (l->slots[i] && l->at[l->slots[i] - 1].priority != priority)
        i = (i + 1) & mask;
    return i;
}

/* Later slots of the run move into the hole where they may. */
static void
free_slot(struct wq__levels *l, uint32_t hole)
{
    const uint32_t mask = mask_of(l);

    for (uint32_t i = (hole + 1) & mask; l->slots[i]; i = (i + 1) & mask) {
        const uint32_t wanted = home(l->at[l->slots[i] - 1].priority, mask);
        if (((i - wanted) & mask) >= ((i - hole) & mask)) {
            l->slots[hole] = l->slots[i];
            hole = i;
        }
    }
    l->slots[hole] = 0;
}

/* ---- the heap ----------------------------------------------------------- */

static bool
is_above(const struct wq__levels *l, uint32_t a, uint32_t b)
{
    return l->at[a].priority > l->at[b].priority;
}

static void
put(struct wq__levels *l, uint32_t i, uint32_t level)
{
    l->heap[i] = level;
    l->at[level].place = i + 1;
}

static void
sift_up(struct wq__levels *l, uint32_t i, uint32_t level)
{
    while (i > 0 && is_above(l, level, l->heap[(i - 1) / 2])) {
        put(l, i, l->heap[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    put(l, i, level);
}

static void
sift_down(struct wq__levels *l, uint32_t i, uint32_t level)
{
    for (uint32_t child; (child = 2 * i + 1) < l->heap_len; i = child) {
        if (child + 1 < l->heap_len &&
            is_above(l, l->heap[child + 1], l->heap[child]))
            child++;
        if (!is_above(l, l->heap[child], level))
            break;
        put(l, i, l->heap[child]);
    }
    put(l, i, level);
}

void
wq__levels_enter_heap(struct wq__levels *l, uint32_t level)
{
    sift_up(l, l->heap_len++, level);
}

static void
leave_heap(struct wq__levels *l, uint32_t level)
{
    const uint32_t i = l->at[level].place - 1;

    l->at[level].place = 0;
    if (i == --l->heap_len)
        return;
    const uint32_t last = l->heap[l->heap_len];
    if (i > 0 && is_above(l, last, l->heap[(i - 1) / 2]))
        sift_up(l, i, last);
    else
        sift_down(l, i, last);
}

uint32_t
wq__levels_drop_empty_tops(struct wq__levels *l)
{
    while (!l->at[l->heap[0]].first) {
        leave_heap(l, l->heap[0]);
        assert(l->heap_len > 0);
    }
    return l->heap[0];
}

/* ---- memory ------------------------------------------------------------- */

static void
free_arrays(struct wq__levels *l)
{
    if (l->at == l->plain)
        return;
    wq__mem_free(l->mem, l->at, l->cap * sizeof *l->at);
    wq__mem_free(l->mem, l->heap, l->cap * sizeof *l->heap);
    wq__mem_free(l->mem, l->slots, 2 * (size_t)l->cap * sizeof *l->slots);
}

/* Double all three arrays, or none. */
static wq_err
grow(struct wq__levels *l)
{
    if (l->cap >= CAP_MAX)
        return WQ_ENOMEM;
    const uint32_t    cap = l->cap < CAP_FIRST ? CAP_FIRST : 2 * l->cap;
    struct wq__levels more = *l;

    more.cap = cap;
    more.at = wq__mem_array(l->mem, cap, sizeof *more.at);
    more.heap = wq__mem_array(l->mem, cap, sizeof *more.heap);
    more.slots = wq__mem_array(l->mem, 2 * (size_t)cap, sizeof *more.slots);
    if (!more.at || !more.heap || !more.slots) {
        free_arrays(&more);
        return WQ_ENOMEM;
    }
    memcpy(more.at, l->at, l->fresh * sizeof *more.at);
    memcpy(more.heap, l->heap, l->heap_len * sizeof *more.heap);
    memset(more.slots, 0, 2 * (size_t)cap * sizeof *more.slots);
    for (uint32_t i = 1; i < l->fresh;
         i++) /* all are in use: the table was full */
        more.slots[slot_of(&more, more.at[i].priority)] = i + 1;
    free_arrays(l);
    l->at = more.at;
    l->heap = more.heap;
    l->slots = more.slots;
    l->cap = cap;
    return WQ_OK;
}

/* Only level 0 is left: free the memory of the others. */
static void
shrink(struct wq__levels *l)
{
    struct wq__levels plain;

    wq__levels_init(&plain, l->mem);
    plain.several = l->several;
    plain.plain[0] = l->at[0];
    plain.plain[0].place = 0;
    const bool in_heap = l->at[0].place != 0;
    free_arrays(l);
    *l = plain;
    l->at = l->plain;
    l->heap = l->plain_heap;
    if (in_heap)
        wq__levels_enter_heap(l, 0);
}

void
wq__levels_init(struct wq__levels *l, const wq_allocator *mem)
{
    *l = (struct wq__levels){.mem = mem, .cap = 1, .used = 1, .fresh = 1};
    l->at = l->plain;
    l->heap = l->plain_heap;
}

void
wq__levels_fini(struct wq__levels *l)
{
    free_arrays(l);
    wq__levels_init(l, l->mem);
}

/* ---- holding ------------------------------------------------------------ */

static uint32_t
take_free(struct wq__levels *l)
{
    const uint32_t level = l->freed ? l->freed : l->fresh++;

    if (level == l->freed)
        l->freed = l->at[level].next_free;
    l->used++;
    l->several = true;
    return level;
}

wq_err
wq__levels_find(struct wq__levels *l, int priority, uint32_t *level)
{
    if (priority == 0) {
        *level = 0;
        return WQ_OK;
    }
    const uint32_t known = l->slots ? l->slots[slot_of(l, priority)] : 0;
    if (known) {
        *level = known - 1;
        l->at[*level].holders++;
        return WQ_OK;
    }
    const wq_err err = l->used == l->cap ? grow(l) : WQ_OK;
    if (err)
        return err;
    *level = take_free(l);
    l->at[*level] = (struct wq__level){.priority = priority, .holders = 1};
    assert(l->slots); /* memory for more than level 0 was allocated */
    l->slots[slot_of(l, priority)] = *level + 1;
    return WQ_OK;
}

void
wq__levels_release_nonzero(struct wq__levels *l, uint32_t level)
{
    struct wq__level *gone = &l->at[level];

    assert(gone->holders > 0);
    if (--gone->holders)
        return;
    assert(gone->len == 0 && gone->dirty == 0);
    if (gone->place)
        leave_heap(l, level);
    free_slot(l, slot_of(l, gone->priority));
    gone->next_free = l->freed;
    l->freed = level;
    if (--l->used == 1 && l->cap > CAP_KEPT)
        /* A small table stays: a few priorities come and go without
         * allocating. */
        shrink(l);
}

/* ---- the auditor -------------------------------------------------------- */

const char *
wq__levels_check(const struct wq__levels *l)
{
    uint32_t used = 0, placed = 0;

    if (l->at[0].priority != 0)
        return "level 0 is not of priority 0";
    for (uint32_t i = 0; i < l->fresh; i++) {
        const struct wq__level *level = &l->at[i];
        if (i && !level->holders)
            continue; /* it was freed */
        used++;
        placed += level->place != 0;
        if (i && l->slots[slot_of(l, level->priority)] != i + 1)
            return "a level cannot be found, or is there twice";
        if (level->first && !level->place)
            return "L4: a level with READY keys is not in the heap of levels";
        if (level->place && l->heap[level->place - 1] != i)
            return "a level and its place do not name each other";
    }
    for (uint32_t i = 1; i < l->heap_len; i++)
        if (is_above(l, l->heap[i], l->heap[(i - 1) / 2]))
            return "L4: the heap of levels is out of order";
    if (used != l->used || placed != l->heap_len)
        return "levels were miscounted";
    return NULL;
}
