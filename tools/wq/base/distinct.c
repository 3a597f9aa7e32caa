/* SPDX-License-Identifier: MIT */
/* distinct.c: how many different keys were there? See distinct.h. */
#include "base/distinct.h"

#include <stdlib.h>

/* FNV-1a, and the last step of MurmurHash3, which spreads all bits. */
static uint64_t
hash(wq_key key)
{
    const unsigned char *s = key.data;
    uint64_t             h = 0xcbf29ce484222325;

    for (size_t i = 0; i < key.len; i++)
        h = (h ^ s[i]) * 0x100000001b3;
    h = (h ^ h >> 33) * 0xff51afd7ed558ccd;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53;
    h ^= h >> 33;
    return h ? h : 1; /* 0 marks a free entry */
}

/* The entry with this hash, or the free one where it belongs. */
static uint64_t *
find(uint64_t *hashes, size_t capacity, uint64_t h)
{
    size_t i = (size_t)h & (capacity - 1);

    while (hashes[i] && hashes[i] != h)
        i = (i + 1) & (capacity - 1);
    return &hashes[i];
}

/* At least half of the entries stay free. */
static bool
grow(struct distinct *keys)
{
    const size_t capacity = keys->capacity ? 2 * keys->capacity : 64;

    if (keys->n < keys->capacity / 2)
        return true;
    if (keys->n >= DISTINCT_MAX)
        return false;
    uint64_t *hashes = calloc(capacity, sizeof *hashes);
    if (!hashes)
        return false;
    for (size_t i = 0; i < keys->capacity; i++)
        if (keys->hashes[i])
            *find(hashes, capacity, keys->hashes[i]) = keys->hashes[i];
    free(keys->hashes);
    keys->hashes = hashes;
    keys->capacity = capacity;
    return true;
}

void
distinct_add(struct distinct *keys, wq_key key)
{
    const uint64_t h = hash(key);

    if (keys->full || (keys->full = !grow(keys)))
        return;
    uint64_t *entry = find(keys->hashes, keys->capacity, h);
    keys->n += !*entry;
    *entry = h;
}

bool
distinct_has(const struct distinct *keys, wq_key key)
{
    return keys->capacity && *find(keys->hashes, keys->capacity, hash(key));
}

void
distinct_fini(struct distinct *keys)
{
    free(keys->hashes);
    *keys = (struct distinct){0};
}
