/* SPDX-License-Identifier: MIT */
/* test_queue.c: what do add, get and done mean to one another? */
#include "fixture.h"

#include "support/worker.h"

/* ---- counting and merging ----------------------------------------------- */

/* */
TEST(key_that_is_ready_is_not_counted_twice)
{
    wq_queue *q = *state;

    add(q, "foo");
    assert_int_equal(wq_len(q), 1);
    add(q, "bar");
    assert_int_equal(wq_len(q), 2);
    add(q, "foo");
    assert_int_equal(wq_len(q), 2);
}

/* Q-03 Q-16 */
TEST(key_added_twice_is_handed_out_once)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "foo");

    work_on(q, "foo");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* */
TEST(key_added_while_held_is_delivered_once_after_done)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take_key(q, "foo");
    add(q, "foo");
    finish(q, item);

    work_on(q, "foo");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* Q-04 Q-06 */
TEST(key_added_many_times_while_held_is_delivered_once_more)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take_key(q, "foo");
    for (int i = 0; i < 10; i++)
        add(q, "foo");
    finish(q, item);

    work_on(q, "foo");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* */
TEST(key_added_while_held_does_not_count_until_done)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);
    assert_int_equal(wq_len(q), 0);
    add(q, "foo");
    assert_int_equal(wq_len(q), 0);
    finish(q, item);
    assert_int_equal(wq_len(q), 1);
}

/* Q-04 Q-16 */
TEST(key_not_added_while_held_is_gone_after_done)
{
    wq_queue *q = *state;

    add(q, "foo");
    work_on(q, "foo");

    assert_none_ready(q, WQ_ETIMEDOUT);
    assert_err(wq_done_key(q, wq_str("foo")), WQ_ESTATE);
}

/* */
TEST(key_can_be_added_again_after_done)
{
    wq_queue *q = *state;

    for (int i = 0; i < 3; i++) {
        add(q, "foo");
        assert_int_equal(wq_len(q), 1);
        work_on(q, "foo");
    }
}

/* */
TEST(get_makes_a_key_held_and_no_longer_ready_in_one_step)
{
    wq_queue *q = *state;

    add(q, "foo");
    (void)take(q);

    assert_none_ready(q, WQ_ETIMEDOUT);
    assert_err(wq_done_key(q, wq_str("foo")), WQ_OK);
}

/* ---- order -------------------------------------------------------------- */

/* */
TEST(keys_leave_first_come_first_served)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "bar");
    add(q, "baz");

    work_on(q, "foo");
    work_on(q, "bar");
    work_on(q, "baz");
}

/* */
TEST(key_added_again_keeps_the_place_of_its_first_add)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "bar");
    add(q, "foo");

    work_on(q, "foo");
    work_on(q, "bar");
}

/* Q-18 Q-23 */
TEST(dirty_key_joins_the_tail_at_done_and_not_when_it_was_added)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take_key(q, "foo");
    add(q, "foo");
    add(q, "bar");
    finish(q, item);
    add(q, "baz");

    work_on(q, "bar");
    work_on(q, "foo");
    work_on(q, "baz");
}

/* */
TEST(held_keys_do_not_block_the_keys_behind_them)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "bar");
    wq_item *foo = take_key(q, "foo");
    add(q, "foo");

    work_on(q, "bar");
    finish(q, foo);
    work_on(q, "foo");
}

/* also when the queue's tables grow, shrink and are reused. */
TEST(order_survives_growing_and_shrinking)
{
    wq_queue      *q = *state;
    const uint64_t n = 5000;

    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < n; i++)
            assert_err(wq_add(q, wq_u64(&i)), WQ_OK);
        assert_int_equal(wq_len(q), n);
        for (uint64_t i = 0; i < n; i++) {
            wq_item *item = take(q);
            assert_int_equal(item->key.len, sizeof i);
            assert_memory_equal(item->key.data, &i, sizeof i);
            finish(q, item);
        }
    }
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* ---- loans -------------------------------------------------------------- */

/* what is said done is the loan, not the oldest or newest one. */
TEST(items_may_be_done_in_any_order)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "bar");
    add(q, "baz");
    wq_item *foo = take(q);
    wq_item *bar = take(q);
    wq_item *baz = take(q);
    add(q, "bar");

    finish(q, baz);
    finish(q, bar);
    finish(q, foo);

    work_on(q, "bar");
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* the fence of a key's later hand-out is the larger one. */
TEST(fence_grows_with_every_hand_out_of_a_key)
{
    wq_queue *q = *state;
    uint64_t  last = 0;

    for (int i = 0; i < 5; i++) {
        add(q, "foo");
        wq_item *item = take_key(q, "foo");
        assert_true(item->fence > last);
        last = item->fence;
        finish(q, item);
    }
}

/* Q-04 Q-17: a dirty key's second hand-out is one, too. */
TEST(fence_grows_when_a_dirty_key_comes_again)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item       *item = take(q);
    const uint64_t first = item->fence;
    add(q, "foo");
    finish(q, item);

    assert_true(take_key(q, "foo")->fence > first);
}

struct loan {
    wq_queue *queue;
    wq_item  *item;
};

static int
say_done(struct worker *self)
{
    const struct loan *loan = self->arg;
    return (int)wq_done(loan->queue, loan->item);
}

/* */
TEST(item_may_be_done_by_another_thread)
{
    wq_queue *q = *state;

    add(q, "foo");
    struct loan loan = {.queue = q, .item = take(q)};
    assert_err(worker_join(worker_start(say_done, &loan)), WQ_OK);

    assert_err(wq_done(q, loan.item), WQ_ESTATE);
}

/* */
TEST(done_by_key_ends_the_loan)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);

    assert_err(wq_done_key(q, wq_str("foo")), WQ_OK);
    assert_err(wq_done(q, item), WQ_ESTATE);
    assert_none_ready(q, WQ_ETIMEDOUT);
}

/* Q-18 Q-21 */
TEST(done_by_key_makes_a_dirty_key_ready_again)
{
    wq_queue *q = *state;

    add(q, "foo");
    (void)take(q);
    add(q, "foo");
    assert_err(wq_done_key(q, wq_str("foo")), WQ_OK);

    work_on(q, "foo");
}

/* ---- blocking ----------------------------------------------------------- */

/* */
TEST(get_blocks_until_a_key_is_added)
{
    wq_queue *q = *state;
    wq_item  *item = NULL;

    struct worker *w = worker_get(q, &item);
    worker_await_blocked(w);
    add(q, "foo");

    assert_err(worker_join(w), WQ_OK);
    assert_key(item, "foo");
}

/* */
TEST(get_stays_blocked_while_the_only_key_is_held_and_dirty)
{
    wq_queue *q = *state;
    wq_item  *second = NULL;

    add(q, "foo");
    wq_item       *first = take_key(q, "foo");
    struct worker *w = worker_get(q, &second);
    worker_await_blocked(w);
    add(q, "foo");
    add(q, "foo");
    worker_await_blocked(w);
    finish(q, first);

    assert_err(worker_join(w), WQ_OK);
    assert_key(second, "foo");
    finish(q, second);
    assert_none_ready(q, WQ_ETIMEDOUT);
}

enum { GETTERS = 3 };

static void
start_getters(wq_queue *q, struct worker **all, wq_item **items)
{
    for (int i = 0; i < GETTERS; i++)
        all[i] = worker_get(q, &items[i]);
    worker_await_all_blocked(all, GETTERS);
}

/* Q-26 O-12: the others do not even look. */
TEST(one_key_wakes_one_of_several_blocked_gets)
{
    wq_queue      *q = *state;
    struct worker *all[GETTERS];
    wq_item       *items[GETTERS] = {NULL};
    int64_t        used_ns[GETTERS];

    start_getters(q, all, items);
    for (int i = 0; i < GETTERS; i++)
        used_ns[i] = worker_cpu_ns(all[i]);
    add(q, "foo");
    const size_t lucky = worker_await_any_ended(all, GETTERS);
    assert_err(worker_join(all[lucky]), WQ_OK);
    assert_key(items[lucky], "foo");

    all[lucky] = all[GETTERS - 1];
    used_ns[lucky] = used_ns[GETTERS - 1];
    worker_await_all_blocked(all, GETTERS - 1);
    for (int i = 0; i < GETTERS - 1; i++)
        assert_int_equal(worker_cpu_ns(all[i]), used_ns[i]);
    wq_shutdown(q);
    for (int i = 0; i < GETTERS - 1; i++)
        assert_err(worker_join(all[i]), WQ_ESHUTDOWN);
}

/* */
TEST(every_blocked_get_is_woken_by_a_key_of_its_own)
{
    wq_queue      *q = *state;
    struct worker *all[GETTERS];
    wq_item       *items[GETTERS] = {NULL};

    start_getters(q, all, items);
    add(q, "a");
    add(q, "b");
    add(q, "c");

    unsigned seen = 0;
    for (int i = 0; i < GETTERS; i++) {
        assert_err(worker_join(all[i]), WQ_OK);
        seen |= 1U << (*(const char *)items[i]->key.data - 'a');
    }
    assert_int_equal(seen, 7);
}

/* Q-18 Q-26: by key, too. */
TEST(done_of_a_dirty_key_wakes_a_blocked_get)
{
    wq_queue *q = *state;
    wq_item  *again = NULL;

    add(q, "foo");
    (void)take(q);
    add(q, "foo");
    struct worker *w = worker_get(q, &again);
    worker_await_blocked(w);
    assert_err(wq_done_key(q, wq_str("foo")), WQ_OK);

    assert_err(worker_join(w), WQ_OK);
    assert_key(again, "foo");
}

/* a get that was woken but finds its key taken goes on waiting. */
TEST(blocked_gets_share_keys_with_gets_that_do_not_block)
{
    wq_queue *q = *state;

    for (int round = 0; round < 200; round++) {
        wq_item       *theirs = NULL, *ours = NULL;
        struct worker *w = worker_get(q, &theirs);

        add(q, "foo");
        const bool stolen = wq_get_within(q, 0, &ours) == WQ_OK;
        if (stolen)
            add(q, "bar");
        assert_err(worker_join(w), WQ_OK);
        assert_key(theirs, stolen ? "bar" : "foo");
        finish(q, theirs);
        if (stolen)
            finish(q, ours);
        assert_none_ready(q, WQ_ETIMEDOUT);
    }
}

WQ_TESTS(with_queue(key_that_is_ready_is_not_counted_twice),
         with_queue(key_added_twice_is_handed_out_once),
         with_queue(key_added_while_held_is_delivered_once_after_done),
         with_queue(key_added_many_times_while_held_is_delivered_once_more),
         with_queue(key_added_while_held_does_not_count_until_done),
         with_queue(key_not_added_while_held_is_gone_after_done),
         with_queue(key_can_be_added_again_after_done),
         with_queue(get_makes_a_key_held_and_no_longer_ready_in_one_step),
         with_queue(keys_leave_first_come_first_served),
         with_queue(key_added_again_keeps_the_place_of_its_first_add),
         with_queue(dirty_key_joins_the_tail_at_done_and_not_when_it_was_added),
         with_queue(held_keys_do_not_block_the_keys_behind_them),
         with_queue(order_survives_growing_and_shrinking),
         with_queue(items_may_be_done_in_any_order),
         with_queue(fence_grows_with_every_hand_out_of_a_key),
         with_queue(fence_grows_when_a_dirty_key_comes_again),
         with_queue(item_may_be_done_by_another_thread),
         with_queue(done_by_key_ends_the_loan),
         with_queue(done_by_key_makes_a_dirty_key_ready_again),
         with_queue(get_blocks_until_a_key_is_added),
         with_queue(get_stays_blocked_while_the_only_key_is_held_and_dirty),
         with_queue(one_key_wakes_one_of_several_blocked_gets),
         with_queue(every_blocked_get_is_woken_by_a_key_of_its_own),
         with_queue(done_of_a_dirty_key_wakes_a_blocked_get),
         with_queue(blocked_gets_share_keys_with_gets_that_do_not_block));
