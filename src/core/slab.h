/* SPDX-License-Identifier: MIT */
/* slab.h: where do many small, short-lived objects live?
 *
 * In blocks of at most 64 KiB, each divided into slots of one size. An object
 * never moves. A 32-bit reference names it, half the size of a pointer, which
 * keeps records small. When the last object of a block is freed, the block goes
 * back to the allocator, except for one empty block per size, so that a queue
 * whose size varies around a block boundary does not allocate at every step.
 * After a burst there remain one block per size in use, the table of blocks and
 * the list of sizes.
 *
 * Cost: alloc and free are O(1), a few instructions while a block has a free
 * slot. Limits: objects of at most WQ__SLAB_MAX bytes, 32 GiB in all.
 */
#ifndef WQ_CORE_SLAB_H
#define WQ_CORE_SLAB_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

/* The reference of an object in a slab; 0: none. High bits: the block; low
 * bits: the offset in it, in units of eight bytes. */
typedef uint32_t wq__ref;

enum {
    WQ__SLAB_UNIT = 8,       /* alignment and unit of size, in bytes */
    WQ__SLAB_UNIT_BITS = 13, /* 2^13 units: a block has at most 64 KiB */
    WQ__SLAB_MAX = 320,      /* the largest object: 40 units */
};

/* A block: this head, then its slots. */
struct wq__block {
    struct wq__block *prev,
        *next;           /* in its class's list of blocks with a free slot */
    uint32_t number;     /* its index in the slab's table */
    uint32_t bytes;      /* its size, head included */
    uint32_t slot_units; /* size of a slot */
    uint32_t slots;      /* how many it has */
    uint32_t live;       /* how many are in use */
    uint32_t fresh;      /* first unit that was never used */
    /* Unit of the last slot freed; 0: none. A freed slot stores the unit of
     * the next one. */
    uint32_t freed;
    uint32_t pad;
};

/* The blocks of one slot size. */
struct wq__class {
    struct wq__block *first, *last; /* those with a free slot */
    /* The empty block that is kept, if it is still empty; or NULL. */
    struct wq__block *spare;
    uint32_t          blocks; /* all of this size, full ones included */
};

struct wq__slab {
    const wq_allocator *mem;   /* not owned */
    struct wq__block  **table; /* owned, and what it points to; NULL: free */
    uint32_t            table_len; /* entries of the table */
    uint32_t            lowest;    /* no entry below this one is free */
    size_t              live;      /* objects in use */
    /* Owned; by units. Only as many as the largest object needed so far: all 41
     * would be a third of an empty queue. */
    struct wq__class *classes;
    uint32_t          classes_len;
};

void wq__slab_init(struct wq__slab *s, const wq_allocator *mem);

/* Free all blocks, with the objects that are left. */
void wq__slab_fini(struct wq__slab *s);

/* Private to alloc and free: no block with a free slot; a block becomes full;
 * it is full no longer; it becomes empty. */
struct wq__block *wq__slab_add_block(struct wq__slab *s, uint32_t slot_units);
void wq__slab_close_block(struct wq__class *c, struct wq__block *b);
void wq__slab_reopen_block(struct wq__class *c, struct wq__block *b);
void wq__slab_retire_block(struct wq__slab *s, struct wq__class *c,
                           struct wq__block *b);

/* The slot at `unit`. A freed slot stores the unit of the next one. */
static inline uint32_t *
wq__slab_slot(struct wq__block *b, uint32_t unit)
{
    return (uint32_t *)(void *)((char *)b + (size_t)unit * WQ__SLAB_UNIT);
}

/* An uninitialised object of 1 .. WQ__SLAB_MAX bytes, aligned to eight. NULL:
 * out of memory, nothing changed. */
static inline void *
wq__slab_alloc(struct wq__slab *s, size_t size, wq__ref *ref)
{
    assert(size > 0 && size <= WQ__SLAB_MAX);
    const uint32_t units =
        (uint32_t)((size + WQ__SLAB_UNIT - 1) / WQ__SLAB_UNIT);
    struct wq__block *b =
        units < s->classes_len ? s->classes[units].first : NULL;

    if (!b && !(b = wq__slab_add_block(s, units)))
        return NULL;

    uint32_t unit = b->freed;
    if (unit) {
        b->freed = *wq__slab_slot(b, unit);
    } else {
        unit = b->fresh;
        b->fresh += units;
    }
    s->live++;
    if (++b->live == b->slots)
        wq__slab_close_block(&s->classes[units], b);

    *ref = b->number << WQ__SLAB_UNIT_BITS | unit;
    return wq__slab_slot(b, unit);
}

/* The object of `ref`, which alloc returned and which was not freed. */
static inline void *
wq__slab_at(const struct wq__slab *s, wq__ref ref)
{
    const uint32_t    unit = ref & ((1U << WQ__SLAB_UNIT_BITS) - 1);
    struct wq__block *block = s->table[ref >> WQ__SLAB_UNIT_BITS];
    return (char *)block + (size_t)unit * WQ__SLAB_UNIT;
}

static inline void
wq__slab_free(struct wq__slab *s, wq__ref ref)
{
    struct wq__block *b = s->table[ref >> WQ__SLAB_UNIT_BITS];
    struct wq__class *c = &s->classes[b->slot_units];
    const uint32_t    unit = ref & ((1U << WQ__SLAB_UNIT_BITS) - 1);

    assert(b->live > 0);
    *wq__slab_slot(b, unit) = b->freed;
    b->freed = unit;
    s->live--;
    if (b->live-- == b->slots)
        wq__slab_reopen_block(c, b);
    if (b->live == 0 && c->spare != b)
        wq__slab_retire_block(s, c, b);
}

/* Move *cursor, which begins at 0, to the next slot that was ever allocated, in
 * the order of references. The slot may be free: the caller must see that from
 * the object. A walk meets an object that exists all the time exactly once,
 * since objects do not move. Each block or slot that is looked at takes 1 from
 * *budget. False: the budget is 0, or there are no more slots. */
bool wq__slab_next(const struct wq__slab *s, wq__ref *cursor, size_t *budget);

#endif
