/* SPDX-License-Identifier: MIT */
/* test_memory.c: what does a queue keep of a key it has forgotten?
 *
 * Asked through an allocator that counts.
 */
#include "fixture.h"

#include "support/counting.h"

static wq_queue *
create_counted(struct counting *c)
{
    counting_init(c);
    return open_queue(WQ_CONFIG(.allocator = &c->allocator));
}

enum {
    LONG = 60000, /* bytes of a key that cannot hide in any table */
    SLACK = 4096, /* what an empty queue may keep to be ready for more */
};

static wq_key
long_key(void)
{
    static char bytes[LONG];

    return (wq_key){bytes, sizeof bytes};
}

/* */
TEST(key_copy_is_given_back_at_done)
{
    struct counting c;
    wq_queue       *q = create_counted(&c);
    const size_t    before = c.bytes;

    assert_err(wq_add(q, long_key()), WQ_OK);
    assert_true(c.bytes >= before + LONG);
    wq_item *item = take(q);
    assert_true(c.bytes >= before + LONG);
    finish(q, item);

    assert_true(c.bytes <= before + SLACK);
    wq_destroy(q);
}

/* not as long as it is to come again. */
TEST(key_copy_of_a_dirty_key_is_kept_until_the_last_done)
{
    struct counting c;
    wq_queue       *q = create_counted(&c);
    const size_t    before = c.bytes;

    assert_err(wq_add(q, long_key()), WQ_OK);
    wq_item *item = take(q);
    assert_err(wq_add(q, long_key()), WQ_OK);
    assert_true(c.bytes < before + 2 * LONG); /* one copy */
    finish(q, item);
    assert_true(c.bytes >= before + LONG);
    finish(q, take(q));

    assert_true(c.bytes <= before + SLACK);
    wq_destroy(q);
}

/* short keys, too, one after the other, for as long as one likes. */
TEST(memory_does_not_grow_with_the_number_of_keys_ever_seen)
{
    struct counting c;
    wq_queue       *q = create_counted(&c);

    for (uint64_t i = 0; i < 100000; i++) {
        assert_err(wq_add(q, wq_u64(&i)), WQ_OK);
        finish(q, take(q));
    }

    assert_true(c.peak <= 64 * 1024);
    wq_destroy(q);
}

/* Q-03 Q-11: an add that merges takes no memory. */
TEST(key_added_again_is_not_copied_again)
{
    struct counting c;
    wq_queue       *q = create_counted(&c);

    assert_err(wq_add(q, long_key()), WQ_OK);
    const size_t before = c.bytes;
    for (int i = 0; i < 100; i++)
        assert_err(wq_add(q, long_key()), WQ_OK);

    assert_int_equal(c.bytes, before);
    wq_destroy(q);
}

/* O-03 */
TEST(destroy_gives_everything_back_whatever_is_inside)
{
    struct counting c;
    wq_queue       *q = create_counted(&c);

    for (uint64_t i = 0; i < 1000; i++)
        assert_err(wq_add(q, wq_u64(&i)), WQ_OK);
    assert_err(wq_add(q, long_key()), WQ_OK);
    for (uint64_t i = 0; i < 500; i++) {
        (void)take(q);
        if (i % 2)
            assert_err(wq_add(q, wq_u64(&i)), WQ_OK);
    }
    wq_destroy(q);

    assert_int_equal(c.bytes, 0);
    assert_int_equal(c.blocks, 0);
}

/* O-02: `free` gets the size that was asked for; the allocator ends the program
 * if it gets another. */
TEST(blocks_are_given_back_with_the_size_that_was_asked_for)
{
    struct counting c;
    wq_queue       *q = create_counted(&c);

    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < 2000; i++)
            assert_err(wq_add(q, wq_u64(&i)), WQ_OK);
        assert_err(wq_add(q, long_key()), WQ_OK);
        for (uint64_t i = 0; i < 2001; i++)
            finish(q, take(q));
    }
    wq_destroy(q);

    assert_int_equal(c.blocks, 0);
}

/* O-10: the small cousin of the test with a million keys. */
TEST(memory_of_a_burst_is_given_back)
{
    struct counting c;
    wq_queue       *q = create_counted(&c);

    for (uint64_t i = 0; i < 20000; i++)
        assert_err(wq_add(q, wq_u64(&i)), WQ_OK);
    for (uint64_t i = 0; i < 20000; i++)
        finish(q, take(q));

    assert_true(c.bytes < c.peak / 4);
    wq_destroy(q);
}

/* The default limiter included. Programs have a queue for each of very many
 * things. */
TEST(queue_with_one_key_takes_less_than_five_kilobytes)
{
    struct counting c;
    wq_queue       *q = create_counted(&c);

    assert_err(wq_add(q, wq_str("namespace-0000/pod-000000000000")), WQ_OK);
    print_message("one key: %zu bytes\n", (size_t)c.bytes);
    assert_true(c.bytes < 5000);
    wq_destroy(q);
}

WQ_TESTS(test(key_copy_is_given_back_at_done),
         test(key_copy_of_a_dirty_key_is_kept_until_the_last_done),
         test(memory_does_not_grow_with_the_number_of_keys_ever_seen),
         test(key_added_again_is_not_copied_again),
         test(destroy_gives_everything_back_whatever_is_inside),
         test(blocks_are_given_back_with_the_size_that_was_asked_for),
         test(memory_of_a_burst_is_given_back),
         test(queue_with_one_key_takes_less_than_five_kilobytes));
