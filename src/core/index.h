/* SPDX-License-Identifier: MIT */
/* index.h: which record has this key?
 *
 * An open-addressing table with linear probing. A slot holds the 32-bit hash
 * beside the reference, so a probe touches a record only when the hashes agree,
 * and growing the table touches none. Removing moves later slots back: no
 * tombstones, no decay.
 *
 * The table doubles when it is three quarters full and halves when it is less
 * than an eighth full. Both may fail without harm: a table that cannot grow
 * gets slower, and only when the last slot but one is taken an insert is
 * refused.
 *
 * Cost: O(1) expected, with a keyed hash whatever the keys are; growing is O(n)
 * once in n inserts.
 */
#ifndef WQ_CORE_INDEX_H
#define WQ_CORE_INDEX_H

#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

#include "core/slab.h"

struct wq__slot {
    uint32_t hash;
    wq__ref  ref; /* 0: the slot is free */
};

struct wq__index {
    const wq_allocator *mem;   /* not owned */
    struct wq__slab    *recs;  /* where references lead; not owned */
    struct wq__slot    *slots; /* owned; a power of two of them, or NULL */
    size_t              cap;   /* how many slots */
    size_t              len;   /* how many are taken */
};

void wq__index_init(struct wq__index *ix, const wq_allocator *mem,
                    struct wq__slab *recs);
void wq__index_fini(struct wq__index *ix);

/* The record with this key, or 0. */
wq__ref wq__index_find(const struct wq__index *ix, wq_key key, uint32_t hash);

/* Make room for one more, so that the next insert cannot fail. */
wq_err wq__index_reserve(struct wq__index *ix);

/* Add a record that is not in the index. Room was reserved. */
void wq__index_insert(struct wq__index *ix, uint32_t hash, wq__ref ref);

/* Take out a record that is in the index. */
void wq__index_remove(struct wq__index *ix, uint32_t hash, wq__ref ref);

#endif
