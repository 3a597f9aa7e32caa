/* SPDX-License-Identifier: MIT */
/* test_hash.c: is the hash SipHash-1-3, keyed, and maskable?
 *
 * Compared with a second implementation, written the slow way: bytes, one at a
 * time, in the words of the paper. It is anchored itself: with two rounds per
 * word and four to finish it must give the paper's own vector of SipHash-2-4.
 */
#include "support/wq_test.h"

#include <string.h>

#include "core/hash.h"

/* ---- the slow way ------------------------------------------------------- */

static uint64_t
rotl(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

static void
rounds(uint64_t v[4], int n)
{
    while (n-- > 0) {
        v[0] += v[1];
        v[1] = rotl(v[1], 13);
        v[1] ^= v[0];
        v[0] = rotl(v[0], 32);
        v[2] += v[3];
        v[3] = rotl(v[3], 16);
        v[3] ^= v[2];
        v[0] += v[3];
        v[3] = rotl(v[3], 21);
        v[3] ^= v[0];
        v[2] += v[1];
        v[1] = rotl(v[1], 17);
        v[1] ^= v[2];
        v[2] = rotl(v[2], 32);
    }
}

/* The eight bytes from `from` on of the padded message: zeroes after its end,
 * and its length in the very last byte. */
static uint64_t
word_at(const unsigned char *data, size_t len, size_t from)
{
    uint64_t word = 0;

    for (size_t i = 0; i < 8; i++)
        if (from + i < len)
            word += (uint64_t)data[from + i] << (8 * i);
    if (from + 8 > len)
        word += (uint64_t)(len % 256) << 56;
    return word;
}

static uint64_t
slow_siphash(int per_word, int to_finish, uint64_t k0, uint64_t k1,
             const unsigned char *data, size_t len)
{
    static const char *const words[4] = {"somepseu", "dorandom", "lygenera",
                                         "tedbytes"};
    uint64_t                 v[4];

    for (size_t i = 0; i < 4; i++) {
        v[i] = i % 2 ? k1 : k0;
        for (int c = 0; c < 8; c++)
            v[i] ^= (uint64_t)words[i][c] << (56 - 8 * c);
    }
    for (size_t from = 0; from <= len; from += 8) {
        const uint64_t word = word_at(data, len, from);
        v[3] ^= word;
        rounds(v, per_word);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    rounds(v, to_finish);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

enum { VECTORS = 64 };
static const uint64_t K0 = UINT64_C(0x0706050403020100);
static const uint64_t K1 = UINT64_C(0x0f0e0d0c0b0a0908);

static void
count_up(unsigned char *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        data[i] = (unsigned char)i;
}

/* ---- the tests ---------------------------------------------------------- */

/* The last vector of the paper's appendix: 15 bytes, 00 to 0e. */
TEST(slow_way_gives_the_vector_of_the_paper)
{
    unsigned char data[15];

    count_up(data, sizeof data);
    assert_int_equal(slow_siphash(2, 4, K0, K1, data, sizeof data),
                     UINT64_C(0xa129ca6149be45e5));
}

TEST(every_length_to_64_hashes_as_the_slow_way_does)
{
    unsigned char data[VECTORS];

    count_up(data, sizeof data);
    for (size_t len = 0; len <= VECTORS; len++)
        assert_int_equal(wq__siphash13(K0, K1, data, len),
                         slow_siphash(1, 3, K0, K1, data, len));
}

TEST(unaligned_bytes_hash_alike)
{
    unsigned char data[VECTORS + 8];

    for (size_t shift = 0; shift < 8; shift++) {
        count_up(data + shift, VECTORS);
        assert_int_equal(wq__siphash13(K0, K1, data + shift, VECTORS),
                         slow_siphash(1, 3, K0, K1, data + shift, VECTORS));
    }
}

TEST(longest_key_hashes_as_the_slow_way_does)
{
    static unsigned char data[WQ_KEY_MAX];

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 31);
    assert_int_equal(wq__siphash13(7, 9, data, sizeof data),
                     slow_siphash(1, 3, 7, 9, data, sizeof data));
}

/* Secret 0, 0. Two other programs say so too: CPython 3.11 with
 * PYTHONHASHSEED=0, hash(b"..."), and Rust's DefaultHasher::new() written to
 * once. */
TEST(hashes_are_what_other_programs_say)
{
    static const struct {
        const char *key;
        uint64_t    hash;
    } known[] = {
        {"a", UINT64_C(0x407448d2b89b1813)},
        {"default/web", UINT64_C(0xb228769609eed531)},
        {"kube-system/coredns-5d78c9869d", UINT64_C(0x63e85af6dd5d9156)},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_int_equal(
            wq__siphash13(0, 0, known[i].key, strlen(known[i].key)),
            known[i].hash);
}

/* O-11: without the secret nobody can tell which keys collide. */
TEST(another_secret_gives_other_hashes)
{
    const struct wq__hash_key a = {.k0 = 1, .k1 = 2, .mask = UINT32_MAX};
    const struct wq__hash_key b = {.k0 = 1, .k1 = 3, .mask = UINT32_MAX};
    const struct wq__hash_key c = {.k0 = 2, .k1 = 2, .mask = UINT32_MAX};
    const wq_key              key = wq_str("default/web");

    assert_int_not_equal(wq__hash(&a, key), wq__hash(&b, key));
    assert_int_not_equal(wq__hash(&a, key), wq__hash(&c, key));
}

TEST(hash_folds_both_halves_of_the_64_bits)
{
    const struct wq__hash_key secret = {.k0 = 5, .k1 = 6, .mask = UINT32_MAX};
    const wq_key              key = wq_str("default/web");
    const uint64_t            whole = wq__siphash13(5, 6, key.data, key.len);

    assert_int_equal(wq__hash(&secret, key),
                     (uint32_t)whole ^ (uint32_t)(whole >> 32));
}

/* O-11: how tests make every key collide. */
TEST(mask_keeps_only_its_bits)
{
    const struct wq__hash_key whole = {.k0 = 5, .k1 = 6, .mask = UINT32_MAX};
    static const uint32_t     masks[] = {0, 1, 3, 0xff};
    const wq_key              key = wq_str("default/web");

    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        struct wq__hash_key masked = whole;
        masked.mask = masks[i];
        assert_int_equal(wq__hash(&masked, key),
                         wq__hash(&whole, key) & masks[i]);
    }
}

WQ_TESTS(test(slow_way_gives_the_vector_of_the_paper),
         test(every_length_to_64_hashes_as_the_slow_way_does),
         test(unaligned_bytes_hash_alike),
         test(longest_key_hashes_as_the_slow_way_does),
         test(hashes_are_what_other_programs_say),
         test(another_secret_gives_other_hashes),
         test(hash_folds_both_halves_of_the_64_bits),
         test(mask_keeps_only_its_bits));
