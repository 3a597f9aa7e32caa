/* SPDX-License-Identifier: MIT */
/* hash.h: where in the index does a key belong?
 *
 * SipHash-1-3 with a random key per queue: whoever chooses the keys cannot
 * choose collisions, so a hostile producer cannot make the index slow. Cost:
 * one round for every eight bytes and four more.
 */
#ifndef WQ_CORE_HASH_H
#define WQ_CORE_HASH_H

#include <stdint.h>

#include <wq/wq.h>

/* A queue's secret. `mask` keeps only some bits of every hash: all of them in
 * real life; none in tests that want every key to collide. */
struct wq__hash_key {
    uint64_t k0, k1;
    uint32_t mask;
};

/* The secret made of 16 random bytes. */
static inline struct wq__hash_key
wq__hash_key_of(const uint64_t random[2])
{
    return (struct wq__hash_key){random[0], random[1], UINT32_MAX};
}

uint32_t wq__hash(const struct wq__hash_key *secret, wq_key key);

/* The whole 64 bits of SipHash-1-3, for the test that compares with an
 * independent computation. */
uint64_t wq__siphash13(uint64_t k0, uint64_t k1, const void *data, size_t len);

#endif
