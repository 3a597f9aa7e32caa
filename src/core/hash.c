/* SPDX-License-Identifier: MIT */
/* hash.c: NH for short keys, SipHash-1-3 for long ones; see hash.h. */
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

/* The eight bytes at `p` as a little-endian number, on any host. */
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

/* The last `left` bytes, fewer than eight, of the `len` bytes before `end`. If
 * there are eight, all are loaded and the others shifted out: copying a
 * variable number of bytes would be a call. */
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

/* ---- short keys --------------------------------------------------------- */

/* Without products of 128 bits, SipHash hashes all keys. */
#if defined(__SIZEOF_INT128__)
#define HAVE_PRODUCTS 1
__extension__ typedef unsigned __int128 product;
#else
#define HAVE_PRODUCTS 0
#endif

#if HAVE_PRODUCTS

/* Which secret number is for what; those for the words of the key follow. */
enum { FOR_LEN, FOR_LEN_TOO, FOR_MIXING, FOR_MIXING_TOO, FOR_WORDS };

static inline product
multiply(uint64_t a, uint64_t b)
{
    return (product)a * b;
}

/* Sixteen bytes, with the two numbers at `n`. */
static inline product
pair(const uint64_t *n, const unsigned char *p)
{
    return multiply(load(p) + n[0], load(p + 8) + n[1]);
}

/* The sum over all words. The last pair ends where the key ends, and may
 * overlap the pair before: the length is part of the sum, so this is as good as
 * padding. */
static inline product
add_up(const uint64_t *n, const unsigned char *p, size_t len)
{
    const unsigned char *const end = p + len;
    product                    sum = multiply(n[FOR_LEN] + len, n[FOR_LEN_TOO]);

    n += FOR_WORDS;
    if (len > 16) {
        sum += pair(n, p);
        for (; len > 32; len -= 16)
            sum += pair(n += 2, p += 16);
        return sum + pair(n + 2, end - 16);
    }
    if (len >= 8)
        return sum + multiply(load(p) + n[0], load(end - 8) + n[1]);
    return sum + multiply(load_rest(end, len, len) + n[0], n[1]);
}

static inline uint64_t
hash_short(const uint64_t *n, const void *data, size_t len)
{
    const product sum = add_up(n, data, len);
    const product mixed = multiply((uint64_t)sum ^ n[FOR_MIXING],
                                   (uint64_t)(sum >> 64) ^ n[FOR_MIXING_TOO]);

    return (uint64_t)mixed ^ (uint64_t)(mixed >> 64);
}

#endif

/* ---- interface ---------------------------------------------------------- */

struct wq__hasher
wq__hasher_of(struct wq__hash_key secret)
{
    struct wq__hasher h = {.secret = secret};

    for (uint64_t i = 0; i < WQ__HASH_WORDS; i++)
        h.numbers[i] = wq__siphash13(secret.k0, secret.k1, &i, sizeof i);
    return h;
}

static inline uint64_t
hash_all_bits(const struct wq__hasher *h, wq_key key)
{
#if HAVE_PRODUCTS
    if (key.len <= WQ__HASH_SHORT)
        return hash_short(h->numbers, key.data, key.len);
#endif
    return wq__siphash13(h->secret.k0, h->secret.k1, key.data, key.len);
}

uint32_t
wq__hash(const struct wq__hasher *h, wq_key key)
{
    const uint64_t hash = hash_all_bits(h, key);

    return (uint32_t)(hash ^ hash >> 32) & h->secret.mask;
}
