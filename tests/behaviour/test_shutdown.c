/* SPDX-License-Identifier: MIT */
/* test_shutdown.c: what ends with wq_shutdown(), and what goes on? */
#include "fixture.h"

#include "support/worker.h"

/* */
TEST(shutdown_does_not_wait_for_held_items)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "bar");
    wq_item *foo = take(q);
    wq_item *bar = take(q);

    wq_shutdown(q); /* and is back */

    finish(q, foo);
    finish(q, bar);
}

/* */
TEST(key_that_is_ready_at_shutdown_is_still_handed_out)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_shutdown(q);

    assert_int_equal(wq_len(q), 1);
    work_on(q, "foo");
    assert_none_ready(q, WQ_ESHUTDOWN);
}

/* also for the get that could block. */
TEST(get_after_shutdown_does_not_block)
{
    wq_queue *q = *state;
    wq_item  *item;

    wq_shutdown(q);

    assert_err(wq_get(q, &item), WQ_ESHUTDOWN);
    assert_err(wq_get_within(q, LONG_NS, &item), WQ_ESHUTDOWN);
}

/* */
TEST(key_made_dirty_before_shutdown_is_handed_out_once_more)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);
    add(q, "foo");
    wq_shutdown(q);
    assert_none_ready(q, WQ_ESHUTDOWN);
    finish(q, item);

    work_on(q, "foo");
    assert_none_ready(q, WQ_ESHUTDOWN);
}

/* */
TEST(add_of_a_held_key_after_shutdown_is_refused)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);
    wq_shutdown(q);
    assert_err(wq_add_str(q, "foo"), WQ_ESHUTDOWN);
    finish(q, item);

    assert_none_ready(q, WQ_ESHUTDOWN);
}

/* */
TEST(add_of_a_new_key_after_shutdown_is_refused)
{
    wq_queue *q = *state;

    wq_shutdown(q);

    assert_err(wq_add_str(q, "foo"), WQ_ESHUTDOWN);
    assert_none_ready(q, WQ_ESHUTDOWN);
}

/* even though it would not change anything. */
TEST(add_of_a_ready_key_after_shutdown_is_refused)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_shutdown(q);

    assert_err(wq_add_str(q, "foo"), WQ_ESHUTDOWN);
    assert_int_equal(wq_len(q), 1);
    work_on(q, "foo");
    assert_none_ready(q, WQ_ESHUTDOWN);
}

/* */
TEST(shutdown_wakes_every_blocked_get)
{
    enum { GETTERS = 4 };
    wq_queue      *q = *state;
    struct worker *all[GETTERS];

    for (int i = 0; i < GETTERS; i++)
        all[i] = worker_get(q, NULL);
    worker_await_all_blocked(all, GETTERS);
    wq_shutdown(q);

    for (int i = 0; i < GETTERS; i++)
        assert_err(worker_join(all[i]), WQ_ESHUTDOWN);
}

/* */
TEST(second_shutdown_is_harmless)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_shutdown(q);
    wq_shutdown(q);

    assert_true(wq_shutting_down(q));
    work_on(q, "foo");
    assert_none_ready(q, WQ_ESHUTDOWN);
}

/* */
TEST(queue_tells_that_it_is_shutting_down)
{
    wq_queue *q = *state;

    assert_false(wq_shutting_down(q));
    wq_shutdown(q);
    assert_true(wq_shutting_down(q));
}

/* Q-13 Q-26: shutdown and a key at the same moment lose neither. */
TEST(key_added_just_before_shutdown_reaches_a_blocked_get)
{
    wq_queue *q = *state;
    wq_item  *item = NULL;

    struct worker *w = worker_get(q, &item);
    worker_await_blocked(w);
    add(q, "foo");
    wq_shutdown(q);

    assert_err(worker_join(w), WQ_OK);
    assert_key(item, "foo");
}

WQ_TESTS(with_queue(shutdown_does_not_wait_for_held_items),
         with_queue(key_that_is_ready_at_shutdown_is_still_handed_out),
         with_queue(get_after_shutdown_does_not_block),
         with_queue(key_made_dirty_before_shutdown_is_handed_out_once_more),
         with_queue(add_of_a_held_key_after_shutdown_is_refused),
         with_queue(add_of_a_new_key_after_shutdown_is_refused),
         with_queue(add_of_a_ready_key_after_shutdown_is_refused),
         with_queue(shutdown_wakes_every_blocked_get),
         with_queue(second_shutdown_is_harmless),
         with_queue(queue_tells_that_it_is_shutting_down),
         with_queue(key_added_just_before_shutdown_reaches_a_blocked_get));
