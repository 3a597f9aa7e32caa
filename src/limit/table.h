/* SPDX-License-Identifier: MIT */
/* table.h: how is a small value stored for each of very many keys?
 *
 * A map from keys to values of one small size that needs little memory. An
 * entry is one object of a slab: value, optional links, length, key bytes. An
 * open-addressing hash table of (hash, reference) pairs finds it; a pair that
 * is farther from its home goes first (Robin Hood hashing), so the table may be
 * four fifths full, and grows by half only. Besides the key and its value an
 * entry takes 2 bytes, rounded up to a multiple of eight, and 10 to 15 bytes of
 * table; 8 more if the order of use is kept. The hash is keyed: hostile keys
 * cannot make it slow.
 *
 * The table can keep its entries in the order of their last use, to find the
 * oldest. Keys have 1 to WQ_KEY_MAX bytes.
 *
 * Cost: O(1) each, expected; growing is O(n) once in n/2 inserts. Not
 * thread-safe: the caller locks.
 */
#ifndef WQ_LIMIT_TABLE_H
#define WQ_LIMIT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/wq.h>

#include "core/hash.h"
#include "core/slab.h"

struct wq__table_slot; /* a hash and a reference; see table.c */

struct wq__table {
    const wq_allocator    *mem;    /* not owned */
    struct wq__hasher      hasher; /* never changes */
    struct wq__slab        slab;   /* the entries */
    struct wq__table_slot *slots;  /* owned; `cap` of them, or NULL */
    uint32_t               cap;
    uint32_t               len; /* entries */
    uint32_t links_at;          /* offset in an entry; 0: no order is kept */
    uint32_t size_at;           /* offset of the key's length */
    wq__ref  oldest;            /* by last use; 0: empty, or no order */
    wq__ref  newest;
};

/* Values have `value_bytes`, a multiple of 4, and are aligned to 8. `ordered`:
 * keep the order of use. */
void wq__table_init(struct wq__table *t, const wq_allocator *mem,
                    struct wq__hash_key secret, uint32_t value_bytes,
                    bool ordered);

/* Free everything. A zeroed table is allowed. */
void wq__table_fini(struct wq__table *t);

/* The hash of a key. Needs no lock. */
uint32_t wq__table_hash(const struct wq__table *t, wq_key key);

/* The entry of `key`, or 0. */
wq__ref wq__table_find(const struct wq__table *t, wq_key key, uint32_t hash);

/* The same, or a new entry with a zeroed value, as the newest. 0: out of
 * memory, nothing changed. */
wq__ref wq__table_find_or_insert(struct wq__table *t, wq_key key,
                                 uint32_t hash);

void wq__table_remove(struct wq__table *t, wq__ref entry, uint32_t hash);

/* Remove the entry of a key, if it has one. */
void wq__table_forget(struct wq__table *t, wq_key key, uint32_t hash);

/* The key of an entry, valid while the entry is. */
wq_key wq__table_key(const struct wq__table *t, wq__ref entry);

/* In a table with order: the entry becomes the newest. */
void wq__table_touch(struct wq__table *t, wq__ref entry);

/* In a table with order: remove the oldest entry. There must be one. */
void wq__table_drop_oldest(struct wq__table *t);

/* The value of an entry. */
static inline void *
wq__table_value(const struct wq__table *t, wq__ref entry)
{
    return wq__slab_at(&t->slab, entry);
}

#endif
