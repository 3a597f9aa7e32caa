/* SPDX-License-Identifier: MIT */
/* test_inbox.c: is a key that another thread will take out treated as any other?
 *
 * The queue may leave such a key in the inbox. Here are the tests that need long
 * keys or a lack of memory; the others are in scenarios/inbox.scenario.
 */
#include "waits.h"

#include "support/counting.h"

/* Another thread takes the next key, which must be this one. */
static void
assert_other_gets(wq_queue *q, wq_key key)
{
    wq_item       *item = NULL;
    struct worker *w = worker_get(q, &item);

    assert_err(worker_join(w), WQ_OK);
    assert_int_equal(item->key.len, key.len);
    assert_memory_equal(item->key.data, key.data, key.len);
    finish(q, item);
}

/* in whichever way they were added. */
TEST(keys_added_in_many_ways_stay_in_order)
{
    static char          text[WQ_KEY_MAX];
    const wq_add_options options = {.size = sizeof options};
    const wq_key         large = {text, sizeof text};
    const wq_key         many[] = {wq_str("m1"), wq_str("m2")};
    wq_queue            *q = *state;

    memset(text, 'x', sizeof text);
    have_another_getter(q);
    add(q, "a");
    assert_err(wq_add_one_str(q, "with", &options), WQ_OK);
    add(q, "b");
    assert_err(wq_add(q, large), WQ_OK); /* does not fit the inbox */
    add(q, "c");
    assert_err(wq_add_with(q, &options, many, 2), WQ_OK);
    add(q, "d");
    assert_err(wq_add_after(q, wq_str("e"), 0), WQ_OK);
    const wq_key expected[] = {wq_str("a"),  wq_str("with"), wq_str("b"),
                               large,        wq_str("c"),    wq_str("m1"),
                               wq_str("m2"), wq_str("d"),    wq_str("e")};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_other_gets(q, expected[i]);
}

/* O-13 */
TEST(accepted_key_survives_a_lack_of_memory)
{
    static const char name[] = "a name of another length than any before it";
    struct counting   mem;

    counting_init(&mem);
    wq_queue *q = open_queue(WQ_CONFIG(.allocator = &mem.allocator));
    have_another_getter(q);
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    const wq_err err = wq_add_str(q, name);
    counting_heal(&mem);
    if (err)
        assert_err(err, WQ_ENOMEM);
    else
        assert_other_gets(q, wq_str(name));
    assert_none_ready(q, WQ_ETIMEDOUT);
    wq_destroy(q);
    assert_int_equal(mem.bytes, 0);
}

WQ_TESTS(with_queue(keys_added_in_many_ways_stay_in_order),
         test(accepted_key_survives_a_lack_of_memory));
