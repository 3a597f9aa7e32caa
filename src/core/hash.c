/* SPDX-License-Identifier: MIT */
/* hash.c: SipHash-1-3 (Aumasson and Bernstein): one round per word of input,
 * three to finish. */
#include "core/hash.h"

#include <string.h>

struct state {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t
rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static inline void
sip_round(struct state *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 = rotate(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v2 = rotate(s->v2, 32);
}

static inline void
absorb(struct state *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

/* The eight bytes at `p` as the number whose lowest byte comes first, on any
 * host. */
static inline uint64_t
load(const unsigned char *p)
{
    uint64_t word = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&word, p, 8);
#else
    for (size_t i = 0; i < 8; i++)
        word |= (uint64_t)p[i] << (8 * i);
#endif
    return word;
}

/* The last `left` bytes, fewer than eight, of `len` that end before `end`.
 * Where there are eight, they are loaded at once and the others shifted out:
 * copying a number of bytes that varies is a call. */
static inline uint64_t
load_rest(const unsigned char *end, size_t len, size_t left)
{
    uint64_t word = 0;

    if (left == 0)
        return 0;
    if (len >= 8)
        return load(end - 8) >> (64 - 8 * left);
    for (size_t i = 0; i < left; i++)
        word |= (uint64_t)end[(ptrdiff_t)i - (ptrdiff_t)left] << (8 * i);
    return word;
}

uint64_t
wq__siphash13(uint64_t k0, uint64_t k1, const void *data, size_t len)
{
    const unsigned char *p = data;
    struct state         s = {
                .v0 = k0 ^ UINT64_C(0x736f6d6570736575),
                .v1 = k1 ^ UINT64_C(0x646f72616e646f6d),
                .v2 = k0 ^ UINT64_C(0x6c7967656e657261),
                .v3 = k1 ^ UINT64_C(0x7465646279746573),
    };

    size_t left = len;
    for (; left >= 8; left -= 8, p += 8)
        absorb(&s, load(p));
    absorb(&s, (uint64_t)len << 56 | load_rest(p + left, len, left));

    s.v2 ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint32_t
wq__hash(const struct wq__hash_key *secret, wq_key key)
{
    uint64_t h = wq__siphash13(secret->k0, secret->k1, key.data, key.len);
    return (uint32_t)(h ^ h >> 32) & secret->mask;
}
