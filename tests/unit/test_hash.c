/* SPDX-License-Identifier: MIT */
/* test_hash.c: is the hash correct, keyed, maskable, and even?
 *
 * Compared with second implementations, written the slow way: bytes, one at a
 * time, in the words of the papers. That of SipHash is anchored itself: with
 * two rounds per word and four to finish it must give the paper's own vector of
 * SipHash-2-4. That of NH multiplies as one does on paper.
 */
#include "support/wq_test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "unit/dice.h"

/* ---- SipHash, the slow way ---------------------------------------------- */

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

/* ---- NH, the slow way --------------------------------------------------- */

/* A number of 128 bits: its digits to the base 256, the lowest first. */
struct wide {
    unsigned char digits[16];
};

/* Add `value` times 256^place; what does not fit is lost. */
static void
add_digit(struct wide *to, size_t place, unsigned value)
{
    for (; value && place < 16; place++) {
        value += to->digits[place];
        to->digits[place] = (unsigned char)(value % 256);
        value /= 256;
    }
}

static unsigned
digit(uint64_t x, size_t place)
{
    return (unsigned)(x >> (8 * place)) & 0xff;
}

/* Add the product of two numbers: every digit of one by every digit of the
 * other. */
static void
add_product(struct wide *to, uint64_t a, uint64_t b)
{
    for (size_t i = 0; i < 8; i++)
        for (size_t k = 0; k < 8; k++)
            add_digit(to, i + k, digit(a, i) * digit(b, k));
}

/* The eight digits from `place` on. */
static uint64_t
half(const struct wide *w, size_t place)
{
    uint64_t x = 0;

    for (size_t i = 8; i-- > 0;)
        x = x * 256 + w->digits[place + i];
    return x;
}

/* Up to eight bytes, the lowest first. */
static uint64_t
number_at(const unsigned char *data, size_t n)
{
    uint64_t x = 0;

    for (size_t i = n; i-- > 0;)
        x = x * 256 + data[i];
    return x;
}

/* Where the words of a short key begin. Pairs of words, sixteen bytes, one
 * behind the other; the last word, or if there are several pairs the last pair,
 * ends where the key does. Returns how many words there are: an even number. */
static size_t
words_of(size_t len, size_t at[8])
{
    if (len <= 16) {
        at[0] = 0;
        at[1] = len - 8; /* unless there are no eight: see slow_nh() */
        return 2;
    }
    const size_t pairs = (len + 15) / 16;
    for (size_t i = 0; i < pairs; i++) {
        at[2 * i] = i < pairs - 1 ? 16 * i : len - 16;
        at[2 * i + 1] = at[2 * i] + 8;
    }
    return 2 * pairs;
}

static struct wide
slow_sum(const uint64_t *n, const unsigned char *data, size_t len)
{
    struct wide sum = {{0}};
    size_t      at[8];
    const bool  tiny = len < 8; /* a word, and none */

    add_product(&sum, n[0] + len, n[1]);
    for (size_t i = 0, words = words_of(len, at); i < words; i += 2)
        add_product(&sum, n[4 + i] + number_at(data + at[i], tiny ? len : 8),
                    n[5 + i] + (tiny ? 0 : number_at(data + at[i + 1], 8)));
    return sum;
}

static uint64_t
slow_nh(const uint64_t *n, const unsigned char *data, size_t len)
{
    const struct wide sum = slow_sum(n, data, len);
    struct wide       mixed = {{0}};

    add_product(&mixed, half(&sum, 0) ^ n[2], half(&sum, 8) ^ n[3]);
    return half(&mixed, 0) ^ half(&mixed, 8);
}

/* The whole hash. */
static uint32_t
slow_hash(struct wq__hash_key secret, const unsigned char *data, size_t len)
{
    uint64_t numbers[WQ__HASH_WORDS];
    uint64_t all;

    for (uint64_t i = 0; i < WQ__HASH_WORDS; i++) {
        unsigned char bytes[sizeof i];
        memcpy(bytes, &i, sizeof i);
        numbers[i] =
            slow_siphash(1, 3, secret.k0, secret.k1, bytes, sizeof bytes);
    }
#if defined(__SIZEOF_INT128__)
    const bool is_short = len <= WQ__HASH_SHORT;
#else
    const bool is_short = false; /* see hash.c */
#endif
    all = is_short ? slow_nh(numbers, data, len)
                   : slow_siphash(1, 3, secret.k0, secret.k1, data, len);
    return ((uint32_t)all ^ (uint32_t)(all >> 32)) & secret.mask;
}

/* ---- the tests: SipHash ------------------------------------------------- */

/* The last vector of the paper's appendix: 15 bytes, 00 to 0e. */
TEST(slow_way_gives_the_vector_of_the_paper)
{
    unsigned char data[15];

    count_up(data, sizeof data);
    assert_int_equal(slow_siphash(2, 4, K0, K1, data, sizeof data),
                     UINT64_C(0xa129ca6149be45e5));
}

static void
expect_siphash(const unsigned char *data, size_t len)
{
    assert_int_equal(wq__siphash13(K0, K1, data, len),
                     slow_siphash(1, 3, K0, K1, data, len));
}

/* Of every length to 64, at every alignment, and the longest. */
TEST(siphash_agrees_with_the_slow_way)
{
    static unsigned char data[WQ_KEY_MAX];

    for (size_t shift = 0; shift < 8; shift++) {
        count_up(data + shift, VECTORS);
        for (size_t len = 0; len <= VECTORS; len++)
            expect_siphash(data + shift, len);
    }
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 31);
    expect_siphash(data, sizeof data);
}

/* Secret 0, 0. The programs are CPython 3.11 with PYTHONHASHSEED=0,
 * hash(b"..."), and Rust's DefaultHasher::new() written to once. */
TEST(hashes_agree_with_other_programs)
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

/* ---- the tests: the hash of a key ---------------------------------------- */

static const struct wq__hash_key secrets[] = {
    {.k0 = 0, .k1 = 0, .mask = UINT32_MAX},
    {.k0 = 5, .k1 = 6, .mask = UINT32_MAX},
    {.k0 = UINT64_MAX, .k1 = UINT64_MAX, .mask = UINT32_MAX},
    {.k0 = UINT64_C(0x0706050403020100),
     .k1 = UINT64_C(0x0f0e0d0c0b0a0908),
     .mask = UINT32_MAX},
};
enum { SECRETS = sizeof secrets / sizeof secrets[0] };

enum { LENGTHS = 2 * WQ__HASH_SHORT + 2 };

static uint32_t
hash_of(const struct wq__hasher *h, const void *data, size_t len)
{
    return wq__hash(h, (wq_key){data, len});
}

static void
expect_as_the_slow_way(size_t which, const unsigned char *data, size_t len)
{
    const struct wq__hasher h = wq__hasher_of(secrets[which]);
    const uint32_t          hash = hash_of(&h, data, len);
    const uint32_t          slow = slow_hash(secrets[which], data, len);

    if (hash != slow)
        fail_msg("%zu bytes, secret %zu: %08x, the slow way %08x", len, which,
                 hash, slow);
}

/* Random bytes, and those whose sums carry most. */
TEST(key_of_every_length_hashes_as_the_slow_way_does)
{
    unsigned char data[LENGTHS];
    struct dice   dice = dice_seeded("keys");

    for (size_t which = 0; which < SECRETS; which++)
        for (size_t len = 1; len <= LENGTHS; len++) {
            memset(data, 0xff, len);
            expect_as_the_slow_way(which, data, len);
            memset(data, 0, len);
            expect_as_the_slow_way(which, data, len);
            for (size_t i = 0; i < len; i++)
                data[i] = (unsigned char)dice_bits(&dice);
            expect_as_the_slow_way(which, data, len);
        }
}

/* Each copy has memory of its own, exactly as long: a sanitizer sees if bytes
 * beside the key are read; and whatever is beside it does not count. */
TEST(key_hashes_alike_wherever_it_lies)
{
    const struct wq__hasher h = wq__hasher_of(secrets[1]);
    unsigned char           data[LENGTHS];

    count_up(data, sizeof data);
    for (size_t len = 1; len <= LENGTHS; len++)
        for (size_t shift = 0; shift < 8; shift++) {
            unsigned char *copy = malloc(shift + len);
            assert_non_null(copy);
            memset(copy, (int)(shift + len), shift);
            memcpy(copy + shift, data, len);
            assert_int_equal(hash_of(&h, copy + shift, len),
                             hash_of(&h, data, len));
            free(copy);
        }
}

/* Their words are the same, where they overlap; what differs is the length. */
TEST(keys_of_equal_bytes_and_different_lengths_hash_differently)
{
    static const int fillings[] = {0, 'a', 0xff};

    for (size_t which = 0; which < SECRETS; which++)
        for (size_t f = 0; f < sizeof fillings / sizeof fillings[0]; f++) {
            const struct wq__hasher h = wq__hasher_of(secrets[which]);
            unsigned char           data[LENGTHS];
            uint32_t                hashes[LENGTHS + 1];

            memset(data, fillings[f], sizeof data);
            for (size_t len = 1; len <= LENGTHS; len++) {
                hashes[len] = hash_of(&h, data, len);
                for (size_t other = 1; other < len; other++)
                    assert_int_not_equal(hashes[len], hashes[other]);
            }
        }
}

TEST(every_bit_of_a_key_counts)
{
    for (size_t len = 1; len <= LENGTHS; len++) {
        const struct wq__hasher h = wq__hasher_of(secrets[len % SECRETS]);
        unsigned char           data[LENGTHS];

        count_up(data, len);
        const uint32_t hash = hash_of(&h, data, len);
        for (size_t bit = 0; bit < 8 * len; bit++) {
            data[bit / 8] ^= (unsigned char)(1U << bit % 8);
            if (hash_of(&h, data, len) == hash)
                fail_msg("bit %zu of %zu bytes does not count", bit, len);
            data[bit / 8] ^= (unsigned char)(1U << bit % 8);
        }
    }
}

/* Two words that change places give another product only if each has a number
 * of its own. */
TEST(every_word_of_a_key_has_its_place)
{
    const struct wq__hasher h = wq__hasher_of(secrets[1]);
    unsigned char           data[WQ__HASH_SHORT];

    for (size_t a = 0; a < sizeof data; a += 8)
        for (size_t b = 0; b < a; b += 8) {
            memset(data, 0, sizeof data);
            data[a] = 1;
            const uint32_t one = hash_of(&h, data, sizeof data);
            data[a] = 0;
            data[b] = 1;
            assert_int_not_equal(one, hash_of(&h, data, sizeof data));
        }
}

/* O-11: without the secret nobody can know which keys collide. */
TEST(another_secret_gives_other_hashes)
{
    static const char *const keys[] = {
        "a",
        "default/web",
        "kube-system/coredns-5d78c9869d",
        "kube-system/a-name-that-is-longer-than-64-bytes-all-in-all-or-so",
    };
    static const struct wq__hash_key others[] = {
        {1, 2, UINT32_MAX}, {1, 3, UINT32_MAX}, {2, 2, UINT32_MAX}};
    const struct wq__hasher h = wq__hasher_of(others[0]);

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        for (size_t k = 1; k < 3; k++) {
            const struct wq__hasher other = wq__hasher_of(others[k]);
            assert_int_not_equal(wq__hash(&h, wq_str(keys[i])),
                                 wq__hash(&other, wq_str(keys[i])));
        }
}

/* O-11: how tests make every key collide. */
TEST(mask_keeps_only_its_bits)
{
    const struct wq__hasher whole = wq__hasher_of(secrets[1]);
    static const uint32_t   masks[] = {0, 1, 3, 0xff};
    const wq_key            key = wq_str("default/web");

    for (size_t i = 0; i < sizeof masks / sizeof masks[0]; i++) {
        struct wq__hash_key secret = secrets[1];
        secret.mask = masks[i];
        const struct wq__hasher masked = wq__hasher_of(secret);
        assert_int_equal(wq__hash(&masked, key),
                         wq__hash(&whole, key) & masks[i]);
    }
}

/* ---- the tests: are buckets filled evenly? ------------------------------- */

enum { SAMPLES = 100000, BUCKET_BITS = 17, BUCKETS = 1 << BUCKET_BITS };

static size_t
name_pod(char *text, size_t size, int i)
{
    return (size_t)snprintf(text, size, "namespace-%04d/pod-%012d", i % 50, i);
}

static size_t
name_short(char *text, size_t size, int i)
{
    return (size_t)snprintf(text, size, "k%05d", i);
}

static size_t
name_long(char *text, size_t size, int i)
{
    return (size_t)snprintf(text, size, "%064d/%d", 0, i);
}

/* A number, as wq_u64() makes a key of it. */
static size_t
name_number(char *text, size_t size, int i)
{
    const uint64_t n = (uint64_t)i;

    (void)size;
    memcpy(text, &n, sizeof n);
    return sizeof n;
}

/* Chi-square: how far the buckets are from what is expected of each. */
static double
unevenness(const struct wq__hasher *h, size_t (*name)(char *, size_t, int),
           int                      shift)
{
    static uint32_t buckets[BUCKETS];
    const double    expected = (double)SAMPLES / BUCKETS;
    double          sum = 0;
    char            text[128];

    memset(buckets, 0, sizeof buckets);
    for (int i = 0; i < SAMPLES; i++) {
        const wq_key key = {text, name(text, sizeof text, i)};
        buckets[(wq__hash(h, key) >> shift) % BUCKETS]++;
    }
    for (size_t i = 0; i < BUCKETS; i++)
        sum += (buckets[i] - expected) * (buckets[i] - expected) / expected;
    return sum;
}

/* For a random function the mean is the number of buckets, less one, and the
 * standard deviation the root of twice that, 512. Too even is no better: it
 * would mean that names show through. */
TEST(names_that_count_up_fill_buckets_as_if_at_random)
{
    static size_t (*const names[])(char *, size_t, int) = {
        name_pod, name_short, name_long, name_number};
    enum { KINDS = sizeof names / sizeof names[0], SIX_SIGMA = 6 * 512 };

    for (size_t kind = 0; kind < KINDS; kind++)
        for (size_t which = 0; which < SECRETS; which++) {
            const struct wq__hasher h = wq__hasher_of(secrets[which]);
            const double            low = unevenness(&h, names[kind], 0);
            const double high = unevenness(&h, names[kind], 32 - BUCKET_BITS);
            if (low < BUCKETS - SIX_SIGMA || low > BUCKETS + SIX_SIGMA ||
                high < BUCKETS - SIX_SIGMA || high > BUCKETS + SIX_SIGMA)
                fail_msg("names %zu, secret %zu: low bits %.0f, high %.0f",
                         kind, which, low, high);
        }
}

WQ_TESTS(test(slow_way_gives_the_vector_of_the_paper),
         test(siphash_agrees_with_the_slow_way),
         test(hashes_agree_with_other_programs),
         test(key_of_every_length_hashes_as_the_slow_way_does),
         test(key_hashes_alike_wherever_it_lies),
         test(keys_of_equal_bytes_and_different_lengths_hash_differently),
         test(every_bit_of_a_key_counts),
         test(every_word_of_a_key_has_its_place),
         test(another_secret_gives_other_hashes),
         test(mask_keeps_only_its_bits),
         test(names_that_count_up_fill_buckets_as_if_at_random));
