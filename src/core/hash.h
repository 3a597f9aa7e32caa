/* SPDX-License-Identifier: MIT */
/* hash.h: where in the index does a key belong?
 *
 * A keyed hash with a random key per queue: a hostile producer cannot choose
 * keys that collide, so it cannot make the index slow.
 *
 * Keys of up to WQ__HASH_SHORT bytes are hashed by NH (Black, Halevi, Krawczyk,
 * Krovetz and Rogaway, UMAC, 1999): the key's words, two by two, each plus a
 * secret number, multiplied to 128 bits and added up. For any two different
 * keys the sums agree with a probability of 2^-64, over the choice of the
 * secret numbers; SipHash derives these from the queue's 128 random bits. The
 * key's length is one more word, so that keys of different lengths differ, too.
 * A last multiplication mixes the sum down to 32 bits; nothing is proven about
 * that step.
 *
 * Longer keys are hashed by SipHash-1-3 (Aumasson and Bernstein).
 *
 * Cost: a multiplication for every sixteen bytes and two more; for longer keys
 * one round for every eight bytes and four more.
 */
#ifndef WQ_CORE_HASH_H
#define WQ_CORE_HASH_H

#include <stdint.h>

#include <wq/wq.h>

/* A queue's secret. `mask` keeps only some bits of every hash: all of them in
 * real queues, none in tests in which every key collides. */
struct wq__hash_key {
    uint64_t k0, k1;
    uint32_t mask;
};

enum {
    WQ__HASH_SHORT = 64,                     /* bytes: one cache line */
    WQ__HASH_WORDS = WQ__HASH_SHORT / 8 + 4, /* for the length and the mixing */
};

/* A secret, prepared for hashing. */
struct wq__hasher {
    uint64_t            numbers[WQ__HASH_WORDS]; /* for short keys */
    struct wq__hash_key secret;
};

/* The secret made of 16 random bytes. */
static inline struct wq__hash_key
wq__hash_key_of(const uint64_t random[2])
{
    return (struct wq__hash_key){random[0], random[1], UINT32_MAX};
}

struct wq__hasher wq__hasher_of(struct wq__hash_key secret);

WQ__STORE_API uint32_t wq__hash(const struct wq__hasher *h, wq_key key);

/* The whole 64 bits of SipHash-1-3, for the test that compares with an
 * independent computation. */
WQ__STORE_API uint64_t wq__siphash13(uint64_t k0, uint64_t k1, const void *data,
                                     size_t len);

#endif
