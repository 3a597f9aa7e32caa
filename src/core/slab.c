/* SPDX-License-Identifier: MIT */
/* slab.c: blocks of equal slots; see slab.h. */
#include "core/slab.h"

#include <assert.h>
#include <string.h>

#include "core/mem.h"

enum {
    UNIT = WQ__SLAB_UNIT,
    UNIT_BITS = WQ__SLAB_UNIT_BITS,
    BLOCK_MAX = UNIT << UNIT_BITS,
    HEAD_UNITS = sizeof(struct wq__block) / UNIT,
    TABLE_MAX =
        1 << (32 - UNIT_BITS), /* the remaining bits of a 32-bit reference */
    /* Small at first, so that a small queue stays small; each next one is twice
     * as large. In debug builds rare paths become daily ones. */
    BLOCK_FIRST = WQ_DEBUG ? 256 : 512,
    TABLE_FIRST = WQ_DEBUG ? 2 : 4,
    CLASSES_STEP = WQ_DEBUG ? 1 : 8, /* sizes that are added at once */
};

_Static_assert(sizeof(struct wq__block) % WQ__SLAB_UNIT == 0,
               "slots begin on a unit");
_Static_assert(WQ__SLAB_MAX + sizeof(struct wq__block) <= 512,
               "an object fits the smallest block of a release build");

/* ---- the list of blocks with a free slot --------------------------------- */

static void
list_push_front(struct wq__class *c, struct wq__block *b)
{
    b->prev = NULL;
    b->next = c->first;
    *(c->first ? &c->first->prev : &c->last) = b;
    c->first = b;
}

static void
list_push_back(struct wq__class *c, struct wq__block *b)
{
    b->next = NULL;
    b->prev = c->last;
    *(c->last ? &c->last->next : &c->first) = b;
    c->last = b;
}

static void
list_remove(struct wq__class *c, struct wq__block *b)
{
    *(b->prev ? &b->prev->next : &c->first) = b->next;
    *(b->next ? &b->next->prev : &c->last) = b->prev;
}

/* ---- blocks ------------------------------------------------------------- */

/* Make sure that the table has a free entry; `lowest` is its index then. */
static bool
reserve_number(struct wq__slab *s)
{
    while (s->lowest < s->table_len && s->table[s->lowest])
        s->lowest++;
    if (s->lowest < s->table_len)
        return true;
    if (s->table_len == TABLE_MAX)
        return false;

    const uint32_t     len = s->table_len ? s->table_len * 2 : TABLE_FIRST;
    struct wq__block **table = wq__mem_array(s->mem, len, sizeof *table);
    if (!table)
        return false;

    for (uint32_t i = 0; i < len; i++)
        table[i] = i < s->table_len ? s->table[i] : NULL;
    wq__mem_free(s->mem, s->table, s->table_len * sizeof *table);
    s->table = table;
    s->table_len = len;
    return true;
}

/* Make sure that there is a class for slots of `slot_units`. */
static bool
reserve_class(struct wq__slab *s, uint32_t slot_units)
{
    if (slot_units < s->classes_len)
        return true;
    const uint32_t    len = (slot_units / CLASSES_STEP + 1) * CLASSES_STEP;
    struct wq__class *classes = wq__mem_array(s->mem, len, sizeof *classes);
    if (!classes)
        return false;

    for (uint32_t i = 0; i < len; i++)
        classes[i] = i < s->classes_len ? s->classes[i]
                                        : (struct wq__class){.first = NULL};
    wq__mem_free(s->mem, s->classes, s->classes_len * sizeof *classes);
    s->classes = classes;
    s->classes_len = len;
    return true;
}

/* The size of the next block for slots of `slot_units`: larger than those before
 * it, also than the one that stayed when the queue was empty. So a queue that
 * fills and drains again and again soon fits the block that stays. */
static uint32_t
next_block_bytes(const struct wq__class *c, uint32_t slot_units)
{
    const uint32_t doublings = c->blocks < 16 ? c->blocks : 16;
    const uint32_t least = (HEAD_UNITS + 2 * slot_units) * UNIT;
    uint32_t       wanted = (uint32_t)BLOCK_FIRST << doublings;

    if (c->spare && wanted < 2 * c->spare->bytes)
        wanted = 2 * c->spare->bytes;
    if (wanted > BLOCK_MAX)
        return BLOCK_MAX;
    return wanted > least ? wanted : least;
}

struct wq__block *
wq__slab_add_block(struct wq__slab *s, uint32_t slot_units)
{
    assert(slot_units > 0);
    if (!reserve_number(s) || !reserve_class(s, slot_units))
        return NULL;
    struct wq__class *c = &s->classes[slot_units];
    const uint32_t    bytes = next_block_bytes(c, slot_units);
    struct wq__block *b = wq__mem_alloc(s->mem, bytes);
    if (!b)
        return NULL;

    *b = (struct wq__block){
        .number = s->lowest,
        .bytes = bytes,
        .slot_units = slot_units,
        .slots = (bytes / UNIT - HEAD_UNITS) / slot_units,
        .fresh = HEAD_UNITS,
    };
    s->table[b->number] = b;
    list_push_front(c, b);
    c->blocks++;
    return b;
}

static void
drop_block(struct wq__slab *s, struct wq__block *b)
{
    s->classes[b->slot_units].blocks--;
    s->table[b->number] = NULL;
    if (b->number < s->lowest)
        s->lowest = b->number;
    wq__mem_free(s->mem, b, b->bytes);
}

void
wq__slab_close_block(struct wq__class *c, struct wq__block *b)
{
    list_remove(c, b);
}

void
wq__slab_reopen_block(struct wq__class *c, struct wq__block *b)
{
    list_push_front(c, b);
}

/* The last object of `b` was freed: keep it at the end of the list, or free it if
 * another block of its class is empty. Of two the larger one stays. */
void
wq__slab_retire_block(struct wq__slab *s, struct wq__class *c,
                      struct wq__block *b)
{
    list_remove(c, b);
    if (c->spare && c->spare->live == 0) {
        if (b->bytes <= c->spare->bytes) {
            drop_block(s, b);
            return;
        }
        list_remove(c, c->spare);
        drop_block(s, c->spare);
    }
    list_push_back(c, b);
    c->spare = b;
    /* Forget the free list: slots are allocated in order again. */
    b->freed = 0;
    b->fresh = HEAD_UNITS;
}

/* ---- interface ---------------------------------------------------------- */

void
wq__slab_init(struct wq__slab *s, const wq_allocator *mem)
{
    *s = (struct wq__slab){.mem = mem};
}

void
wq__slab_fini(struct wq__slab *s)
{
    for (uint32_t i = 0; i < s->table_len; i++)
        if (s->table[i])
            wq__mem_free(s->mem, s->table[i], s->table[i]->bytes);
    if (s->table)
        wq__mem_free(s->mem, s->table, s->table_len * sizeof *s->table);
    wq__mem_free(s->mem, s->classes, s->classes_len * sizeof *s->classes);
    wq__slab_init(s, s->mem);
}

/* The unit of the slot after `unit`; of the first slot if `unit` is 0. The
 * block may have been freed since, and another one with slots of another size
 * may have its number. */
static uint32_t
unit_after(const struct wq__block *b, uint32_t unit)
{
    if (unit < HEAD_UNITS)
        return HEAD_UNITS;
    return HEAD_UNITS +
           ((unit - HEAD_UNITS) / b->slot_units + 1) * b->slot_units;
}

bool
wq__slab_next(const struct wq__slab *s, wq__ref *cursor, size_t *budget)
{
    uint32_t number = *cursor >> UNIT_BITS;
    uint32_t unit = *cursor & ((1U << UNIT_BITS) - 1);

    for (; number < s->table_len && *budget; number++, unit = 0) {
        const struct wq__block *b = s->table[number];

        --*budget;
        if (b && (unit = unit_after(b, unit)) < b->fresh) {
            *cursor = number << UNIT_BITS | unit;
            return true;
        }
    }
    *cursor = number << UNIT_BITS | unit;
    return false;
}
