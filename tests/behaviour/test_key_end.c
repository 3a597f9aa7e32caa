/* SPDX-License-Identifier: MIT */
/* test_key_end.c: can the bytes of a key be used as a string? A NUL byte follows
 * them wherever the queue shows a key of its own. */
#include "asked.h"

#include <wq/workers.h>

#include "support/checkpoint.h"

/* The bytes of all keys here: no NUL is near. */
static char text[WQ_KEY_MAX + 1];

static wq_key
key_of(size_t len)
{
    memset(text, 'x', sizeof text);
    return wq_bytes(text, len);
}

static bool
has_end(wq_key key)
{
    return ((const char *)key.data)[key.len] == '\0' &&
           memchr(key.data, '\0', key.len) == NULL;
}

static void
assert_end(wq_key key)
{
    if (!has_end(key))
        fail_msg("no NUL follows a key of %zu bytes", key.len);
}

static wq_key
first_byte(void *ctx, wq_key key)
{
    (void)ctx;
    return wq_bytes(key.data, 1);
}

static bool
visit(void *n, wq_key key, const wq_key_info *info)
{
    (void)info;
    *(size_t *)n += has_end(key);
    return true;
}

/* READY, visited and removed; HELD; DIRTY; worked on again. */
static void
assert_string_throughout(wq_queue *q, size_t len)
{
    size_t seen = 0;

    assert_err(wq_add(q, key_of(len)), WQ_OK);
    assert_err(wq_each(q, 0, visit, &seen), WQ_OK);
    assert_int_equal(seen, 1);
    assert_err(wq_remove(q, key_of(len)), WQ_OK);
    assert_err(wq_remove(q, key_of(len)), WQ_ENOTFOUND);
    assert_none_ready(q, WQ_ETIMEDOUT);
    assert_err(wq_add(q, key_of(len)), WQ_OK);
    wq_item *item = take(q);
    assert_int_equal(item->key.len, len);
    assert_end(item->key);
    assert_err(wq_add(q, key_of(len)), WQ_OK);
    finish(q, item);
    item = take(q);
    assert_end(item->key);
    finish(q, item);
}

/* O-88 O-57: keys of every length, in queues whose records have other parts. A
 * longer key was there before, and no rest of it shows. Long keys are outside
 * their records. */
TEST(nul_follows_the_key_of_an_item)
{
    const wq_config *const kinds[] = {
        WQ_CONFIG(.order = NULL),       WQ_CONFIG(.ages = true),
        WQ_CONFIG(.group = first_byte), WQ_CONFIG(.max_ready_ns = S),
        WQ_CONFIG(.max_bytes = 100000),
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct timed *t = timed_create(kinds[i]);

        assert_string_throughout(t->q, WQ_KEY_MAX);
        for (size_t len = 300; len > 0; len--)
            assert_string_throughout(t->q, len);
        assert_string_throughout(t->q, WQ_KEY_MAX - 1);
        timed_destroy(t);
    }
}

struct shown {
    struct tally drops;
    bool         in_handler, in_drop;
};

static wq_result
handle(void *ctx, const wq_item *item)
{
    struct shown *s = ctx;

    s->in_handler = has_end(item->key);
    return wq_result_drop();
}

static void
note_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    struct shown *s = ctx;

    (void)retries;
    (void)why;
    s->in_drop = has_end(key);
    tally_add(&s->drops, 1);
}

/* O-88 */
TEST(nul_follows_the_keys_of_a_pool)
{
    struct timed *t = *state;
    struct shown  s = {.drops = TALLY_INIT};
    wq_workers   *pool;

    assert_err(wq_workers_start(t->q,
                                WQ_WORKERS(.threads = 1, .handler = handle,
                                           .on_drop = note_drop, .ctx = &s),
                                &pool),
               WQ_OK);
    assert_err(wq_add(t->q, key_of(17)), WQ_OK);
    tally_await(&s.drops, 1);
    assert_err(wq_workers_destroy(pool), WQ_OK);
    assert_true(s.in_handler);
    assert_true(s.in_drop);
}

WQ_TESTS(test(nul_follows_the_key_of_an_item),
         with_time(nul_follows_the_keys_of_a_pool));
