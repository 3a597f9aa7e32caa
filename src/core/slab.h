/* SPDX-License-Identifier: MIT */
/* slab.h: where do many small, short-lived objects live?
 *
 * In blocks of at most 64 KiB, each cut into slots of one size. An object never
 * moves, and is named by a 32-bit reference: half a pointer, which is what
 * makes a pending key small. A block whose last object is gone goes back to the
 * allocator, except for one empty block per size, so that a queue that hovers
 * at a boundary does not ask for memory at every step. After a burst, what
 * stays is one block per size in use and the table of blocks.
 *
 * Cost: alloc and free are O(1), a few instructions while a block has room.
 * Limits: objects of at most WQ__SLAB_MAX bytes, 32 GiB in all.
 */
#ifndef WQ_CORE_SLAB_H
#define WQ_CORE_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

/* The name of an object in a slab; 0 names nothing. High bits: the block; low
 * bits: where in it, in units of eight bytes. */
typedef uint32_t wq__ref;

enum {
    WQ__SLAB_UNIT = 8,       /* objects are aligned to and counted in these */
    WQ__SLAB_UNIT_BITS = 13, /* 2^13 units: a block has at most 64 KiB */
    WQ__SLAB_MAX = 320,      /* the largest object: 40 units */
    WQ__SLAB_CLASSES =
        WQ__SLAB_MAX / WQ__SLAB_UNIT + 1, /* by units; 0 unused */
};

/* A block: this head, then its slots. */
struct wq__block {
    struct wq__block *prev, *next; /* in its class's list of blocks with room */
    uint32_t          number;      /* its place in the slab's table */
    uint32_t          bytes;       /* its size, head included */
    uint32_t          slot_units;  /* size of a slot */
    uint32_t          slots;       /* how many it was cut into */
    uint32_t          live;        /* how many are in use */
    uint32_t          fresh;       /* unit where never used slots begin */
    uint32_t          freed;       /* unit of the last slot freed; 0: none. A
                                      free slot begins with that of the next */
    uint32_t          pad;
};

/* The blocks of one slot size. */
struct wq__class {
    struct wq__block *first, *last; /* those with room; empty one last */
    uint32_t          blocks;       /* how many there are, full ones too */
    uint32_t          empty;        /* how many have no live object; at most 1,
                                       unless the slab keeps its blocks */
};

struct wq__slab {
    const wq_allocator *mem;   /* not owned */
    bool                keeps; /* blocks, until fini: the memory of an object
                                      can be read after it was freed */
    struct wq__block  **table; /* owned, and what it points to; NULL: free */
    uint32_t            table_len; /* entries of the table */
    uint32_t            lowest;    /* no entry below this one is free */
    size_t              live;      /* objects in use */
    struct wq__class    classes[WQ__SLAB_CLASSES];
};

void wq__slab_init(struct wq__slab *s, const wq_allocator *mem, bool keeps);

/* Give all blocks back, live objects included. */
void wq__slab_fini(struct wq__slab *s);

/* An uninitialised object of 1 .. WQ__SLAB_MAX bytes, aligned to eight. NULL:
 * no memory, nothing changed. */
void *wq__slab_alloc(struct wq__slab *s, size_t size, wq__ref *ref);

void wq__slab_free(struct wq__slab *s, wq__ref ref);

/* The object that `ref`, which came from alloc and was not freed, names. */
static inline void *
wq__slab_at(const struct wq__slab *s, wq__ref ref)
{
    const uint32_t    unit = ref & ((1U << WQ__SLAB_UNIT_BITS) - 1);
    struct wq__block *block = s->table[ref >> WQ__SLAB_UNIT_BITS];
    return (char *)block + (size_t)unit * WQ__SLAB_UNIT;
}

/* The same for a number of unknown origin: NULL unless it names a slot of this
 * slab that was handed out at some time. Whether it still is, the object itself
 * must tell. */
void *wq__slab_probe(const struct wq__slab *s, wq__ref ref);

/* From *cursor, which begins at 0, to the next slot that was handed out at some
 * time, in the order of numbers; whether it still is, the object itself must
 * tell. An object that lives all the while is met exactly once, since it does
 * not move. At most *budget blocks and slots are looked at, which is counted
 * down. False: no more, if the budget is not spent. */
bool wq__slab_next(const struct wq__slab *s, wq__ref *cursor, size_t *budget);

#endif
