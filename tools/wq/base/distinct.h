/* SPDX-License-Identifier: MIT */
/* distinct.h: how many different keys were there?
 *
 * Only a hash of each key is kept, of 64 bits: among a million keys, two have
 * the same one with a probability of 1 to 30 million. Above DISTINCT_MAX keys
 * nothing more is counted, since a program that runs for months must not grow.
 */
#ifndef WQ_TOOL_DISTINCT_H
#define WQ_TOOL_DISTINCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

#define DISTINCT_MAX ((size_t)1 << 20)

/* Zero is an empty one. */
struct distinct {
    uint64_t *hashes;   /* a hash table; 0: free. Owned */
    size_t    capacity; /* of it: a power of two */
    size_t    n;        /* keys in it */
    bool      full;     /* keys were not counted */
};

/* Count the key, unless it was counted before. O(1). */
void distinct_add(struct distinct *keys, wq_key key);
/* Was it counted? */
bool distinct_has(const struct distinct *keys, wq_key key);
void distinct_fini(struct distinct *keys);

#endif
