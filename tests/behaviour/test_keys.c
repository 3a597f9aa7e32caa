/* SPDX-License-Identifier: MIT */
/* test_keys.c: what can be a key, and when are two keys the same? */
#include "fixture.h"

#include <stdlib.h>

#include <wq/inspect.h>

/* Add `key`, get it back, and say done. */
static void
assert_comes_back(wq_queue *q, wq_key key)
{
    assert_err(wq_add(q, key), WQ_OK);
    wq_item *item = take(q);
    assert_int_equal(item->key.len, key.len);
    assert_memory_equal(item->key.data, key.data, key.len);
    finish(q, item);
}

/* O-04 */
TEST(key_may_hold_any_byte)
{
    wq_queue     *q = *state;
    unsigned char every[256];

    for (int i = 0; i < 256; i++)
        every[i] = (unsigned char)i;
    assert_comes_back(q, (wq_key){every, sizeof every});
    for (int i = 0; i < 256; i++)
        assert_comes_back(q, (wq_key){&every[i], 1});
}

/* O-04 */
TEST(keys_differ_when_a_byte_after_a_nul_differs)
{
    wq_queue *q = *state;

    assert_err(wq_add(q, (wq_key){"a\0b", 3}), WQ_OK);
    assert_err(wq_add(q, (wq_key){"a\0c", 3}), WQ_OK);

    assert_int_equal(wq_len(q), 2);
}

/* O-04 */
TEST(keys_differ_when_one_is_the_beginning_of_the_other)
{
    wq_queue *q = *state;

    assert_err(wq_add(q, (wq_key){"a", 1}), WQ_OK);
    assert_err(wq_add(q, (wq_key){"a\0", 2}), WQ_OK);
    add(q, "ab");

    assert_int_equal(wq_len(q), 3);
    work_on(q, "a");
}

/* O-04 */
TEST(keys_are_the_same_wherever_their_bytes_are)
{
    wq_queue  *q = *state;
    const char here[] = "foo", there[] = {'f', 'o', 'o', 'd'};

    assert_err(wq_add(q, wq_str(here)), WQ_OK);
    assert_err(wq_add(q, (wq_key){there, 3}), WQ_OK);

    assert_int_equal(wq_len(q), 1);
}

/* O-04 */
TEST(key_is_copied_on_add)
{
    wq_queue *q = *state;
    char      short_key[] = "foo";
    char      long_key[1000];

    memset(long_key, 'x', sizeof long_key);
    assert_err(wq_add(q, wq_str(short_key)), WQ_OK);
    assert_err(wq_add(q, (wq_key){long_key, sizeof long_key}), WQ_OK);
    memset(short_key, '!', sizeof short_key);
    memset(long_key, '!', sizeof long_key);

    work_on(q, "foo");
    wq_item *item = take(q);
    assert_int_equal(item->key.len, sizeof long_key);
    for (size_t i = 0; i < sizeof long_key; i++)
        assert_int_equal(((const char *)item->key.data)[i], 'x');
}

/* O-04: it stays readable while others come and go. */
TEST(key_of_an_item_stays_valid_until_done)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);
    add(q, "foo");
    for (uint64_t i = 0; i < 1000; i++)
        assert_err(wq_add(q, wq_u64(&i)), WQ_OK);
    for (int i = 0; i < 1000; i++)
        finish(q, take(q));

    assert_key(item, "foo");
}

/* O-04: around every size at which the queue might keep keys differently. */
TEST(keys_of_every_length_come_back_whole)
{
    wq_queue *q = *state;
    char      bytes[1100];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)('a' + i % 23);
    for (size_t len = 1; len <= sizeof bytes; len++)
        assert_err(wq_add(q, (wq_key){bytes, len}), WQ_OK);
    assert_int_equal(wq_len(q), sizeof bytes);
    for (size_t len = 1; len <= sizeof bytes; len++) {
        wq_item *item = take(q);
        assert_int_equal(item->key.len, len);
        assert_memory_equal(item->key.data, bytes, len);
        finish(q, item);
    }
}

/* O-04: which lengths are told apart only by the last byte. */
TEST(long_keys_are_compared_to_the_last_byte)
{
    wq_queue *q = *state;
    char      bytes[1000];

    memset(bytes, 'x', sizeof bytes);
    assert_err(wq_add(q, (wq_key){bytes, sizeof bytes}), WQ_OK);
    bytes[sizeof bytes - 1] = 'y';
    assert_err(wq_add(q, (wq_key){bytes, sizeof bytes}), WQ_OK);
    assert_err(wq_add(q, (wq_key){bytes, sizeof bytes}), WQ_OK);

    assert_int_equal(wq_len(q), 2);
}

/* O-04 */
TEST(longest_key_is_accepted_and_a_longer_one_is_not)
{
    wq_queue *q = *state;
    char     *bytes = calloc(1, WQ_KEY_MAX + 1);

    assert_non_null(bytes);
    assert_comes_back(q, (wq_key){bytes, WQ_KEY_MAX});
    assert_err(wq_add(q, (wq_key){bytes, WQ_KEY_MAX + 1}), WQ_ETOOLONG);
    assert_none_ready(q, WQ_ETIMEDOUT);
    free(bytes);
}

/* O-04: the bytes need not even exist. */
TEST(absurdly_long_key_is_refused_unread)
{
    wq_queue *q = *state;

    assert_err(wq_add(q, (wq_key){"foo", SIZE_MAX}), WQ_ETOOLONG);
    assert_err(wq_done_key(q, (wq_key){"foo", SIZE_MAX}), WQ_ETOOLONG);
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* O-04 */
TEST(empty_key_is_refused)
{
    wq_queue *q = *state;

    assert_err(wq_add(q, (wq_key){"foo", 0}), WQ_EINVAL);
    assert_err(wq_add_str(q, ""), WQ_EINVAL);
    assert_err(wq_done_key(q, wq_str("")), WQ_EINVAL);
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* O-04 */
TEST(key_words_make_the_key_they_say)
{
    const uint64_t n = 0x0102030405060708;

    assert_int_equal(wq_str("foo").len, 3);
    assert_int_equal(wq_str(NULL).len, 0);
    assert_int_equal(wq_u64(&n).len, 8);
    assert_memory_equal(wq_u64(&n).data, &n, 8);
    assert_int_equal(wq_u64(NULL).len, 0);
    assert_int_equal(wq_bytes(&n, 3).len, 3);
    assert_ptr_equal(wq_bytes(&n, 3).data, &n);
}

/* O-04: each verb with a string is the verb with its bytes. */
TEST(verbs_with_a_string_mean_its_bytes)
{
    wq_queue *q = *state;
    wq_added  what = WQ_ADDED_NEW;

    assert_err(wq_add_after_str(q, "foo", WQ_SECONDS(3600)), WQ_OK);
    assert_err(wq_cancel_after_str(q, "foo"), WQ_OK);
    assert_err(wq_cancel_after_str(q, "foo"), WQ_ENOTFOUND);
    assert_err(wq_add_rate_limited_str(q, "foo"), WQ_OK);
    assert_int_equal(wq_num_requeues_str(q, "foo"), 1);
    assert_err(wq_forget_str(q, "foo"), WQ_OK);
    assert_int_equal(wq_num_requeues(q, wq_str("foo")), 0);
    assert_err(wq_remove_str(q, "foo"), WQ_OK);
    assert_err(wq_add_str(q, "foo"), WQ_OK);
    assert_err(wq_add_one_str(q, "foo", WQ_ADD(.results = &what)), WQ_OK);
    assert_int_equal(what, WQ_ADDED_MERGED);
    assert_err(wq_flush_key_str(q, "foo", 0), WQ_ETIMEDOUT);
    (void)take_key(q, "foo");
    assert_err(wq_remove_wait_str(q, "foo", 0), WQ_ESTATE);
    assert_err(wq_done_key_str(q, "foo"), WQ_OK);
    assert_err(wq_done_key_str(q, NULL), WQ_EINVAL);
}

/* In constant expressions, of either sign, of any integer type. */
static const int64_t times[] = {WQ_MS(1500), WQ_SECONDS(-2), WQ_MS(3U)};

/* O-15 */
TEST(times_are_whole_nanoseconds)
{
    assert_int_equal(times[0], INT64_C(1500000000));
    assert_int_equal(times[1], INT64_C(-2000000000));
    assert_int_equal(times[2], INT64_C(3000000));
    assert_int_equal(WQ_SECONDS(1 + 1), 2 * WQ_SECONDS(1));
    assert_true(WQ_SECONDS(9223372036) < WQ_FOREVER);
    assert_true(WQ_MS(9223372036854) < WQ_FOREVER);
}

/* ---- the NUL behind a key ----------------------------------------------- */

/* Is there one? Reads one byte more than the key has. */
static bool
ends_with_nul(wq_key key)
{
    return ((const char *)key.data)[key.len] == '\0';
}

/* Lengths around every size at which a key is kept differently. */
static const size_t lengths[] = {1,   7,    8,    9,         31,  32,
                                 33,  180,  200,  255,       256, 257,
                                 500, 1000, 5000, WQ_KEY_MAX};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static char many[WQ_KEY_MAX + 1]; /* no NUL */

static wq_key
key_of_length(size_t i)
{
    memset(many, 'x', sizeof many);
    return (wq_key){many, lengths[i]};
}

static bool
count_nuls(void *ctx, wq_key key, const wq_key_info *info)
{
    (void)info;
    *(size_t *)ctx += ends_with_nul(key);
    return true;
}

/* O-88 O-33 */
TEST(nul_follows_the_key_of_a_visit)
{
    wq_queue *q = *state;
    size_t    seen = 0;

    for (size_t i = 0; i < LENGTHS; i++)
        assert_err(wq_add(q, key_of_length(i)), WQ_OK);
    assert_err(wq_each(q, 0, count_nuls, &seen), WQ_OK);
    assert_int_equal(seen, LENGTHS);
}

struct nuls {
    wq_key keys[LENGTHS]; /* what the order was given */
    size_t len;
    size_t seen; /* keys that were followed by a NUL */
};

static wq_err
push_nul(void *self, wq_key key, int priority)
{
    struct nuls *n = self;

    (void)priority;
    n->seen += ends_with_nul(key);
    n->keys[n->len++] = key;
    return WQ_OK;
}

static void
touch_nul(void *self, wq_key key)
{
    ((struct nuls *)self)->seen += ends_with_nul(key);
}

static bool
pop_nul(void *self, wq_key *out)
{
    struct nuls *n = self;

    if (!n->len)
        return false;
    *out = n->keys[--n->len];
    return true;
}

static size_t
len_nul(void *self)
{
    return ((struct nuls *)self)->len;
}

/* O-88 Q-24 */
TEST(nul_follows_the_key_an_order_gets)
{
    struct nuls    n = {.len = 0};
    const wq_order order = {.size = sizeof order,
                            .self = &n,
                            .push = push_nul,
                            .touch = touch_nul,
                            .pop = pop_nul,
                            .len = len_nul};
    wq_queue      *q = NULL;

    q = open_queue(WQ_CONFIG(.order = &order));
    for (size_t i = 0; i < LENGTHS; i++) {
        assert_err(wq_add(q, key_of_length(i)), WQ_OK);
        assert_err(wq_add(q, key_of_length(i)), WQ_OK); /* touches */
    }
    assert_int_equal(n.seen, 2 * LENGTHS);
    wq_destroy(q);
}

static void
count_dropped(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    (void)retries, (void)why;
    *(size_t *)ctx += ends_with_nul(key);
}

/* O-88 O-55 */
TEST(nul_follows_the_key_of_an_overflow)
{
    size_t    seen = 0;
    wq_queue *q = open_queue(WQ_CONFIG(.max_len = 1, .on_drop = count_dropped,
                                       .drop_ctx = &seen,
                                       .overflow = WQ_OVERFLOW_DROP_OLDEST));

    for (size_t i = 0; i < LENGTHS; i++)
        assert_err(wq_add(q, key_of_length(i)), WQ_OK);
    assert_int_equal(seen, LENGTHS - 1);
    wq_destroy(q);
}

/* O-88 O-17: also where none follows the bytes that the caller passed. */
TEST(nul_follows_the_key_that_is_given_up)
{
    size_t    seen = 0;
    wq_queue *q =
        open_queue(WQ_CONFIG(.max_retries = 1, .on_drop = count_dropped,
                             .drop_ctx = &seen));

    for (size_t i = 0; i < LENGTHS; i++) {
        assert_err(wq_add_rate_limited(q, key_of_length(i)), WQ_OK);
        assert_err(wq_add_rate_limited(q, key_of_length(i)), WQ_EGIVENUP);
    }
    assert_int_equal(seen, LENGTHS);
    wq_destroy(q);
}

WQ_TESTS(with_queue(key_may_hold_any_byte),
         with_queue(keys_differ_when_a_byte_after_a_nul_differs),
         with_queue(keys_differ_when_one_is_the_beginning_of_the_other),
         with_queue(keys_are_the_same_wherever_their_bytes_are),
         with_queue(key_is_copied_on_add),
         with_queue(key_of_an_item_stays_valid_until_done),
         with_queue(keys_of_every_length_come_back_whole),
         with_queue(long_keys_are_compared_to_the_last_byte),
         with_queue(longest_key_is_accepted_and_a_longer_one_is_not),
         with_queue(absurdly_long_key_is_refused_unread),
         with_queue(empty_key_is_refused),
         test(key_words_make_the_key_they_say),
         with_queue(verbs_with_a_string_mean_its_bytes),
         test(times_are_whole_nanoseconds),
         with_queue(nul_follows_the_key_of_a_visit),
         test(nul_follows_the_key_an_order_gets),
         test(nul_follows_the_key_of_an_overflow),
         test(nul_follows_the_key_that_is_given_up));
