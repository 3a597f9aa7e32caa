/* SPDX-License-Identifier: MIT */
/* test_priority.c: which key leaves first, and with which priority?
 *
 * Most of it is what controller-runtime's priority queue does, by its numbers;
 * where ours differs, the default's behaviour is shown and said to differ.
 */
#include "asked.h"

#include <limits.h>
#include <stdio.h>

/* ---- one level ---------------------------------------------------------- */

/* PQ-01 */
TEST(key_is_handed_out_with_priority_0)
{
    struct timed *t = *state;

    add(t->q, "foo");
    (void)take_at(t->q, "foo", 0);

    assert_int_equal(depth_at(t->q, 0), 0);
    assert_counts(t->q, 1, 0);
}

/* PQ-02 O-51 */
TEST(keys_of_one_priority_leave_first_come_first_served)
{
    struct timed *t = *state;

    add_at(t->q, 7, "foo");
    add_at(t->q, 7, "bar");
    (void)take_at(t->q, "foo", 7);
    (void)take_at(t->q, "bar", 7);

    assert_counts(t->q, 2, 0);
}

/* PQ-03 */
TEST(key_added_while_held_lets_others_pass)
{
    struct timed *t = *state;

    add(t->q, "foo");
    (void)take_at(t->q, "foo", 0);
    add(t->q, "foo");
    add(t->q, "bar");
    (void)take_at(t->q, "bar", 0);

    assert_int_equal(depth_at(t->q, 0), 1);
    assert_counts(t->q, 3, 0);
}

/* PQ-04 Q-23: at done it goes to the tail. */
TEST(key_added_while_held_goes_behind_those_that_came_before_done)
{
    struct timed *t = *state;

    add(t->q, "foo");
    wq_item *foo = take_at(t->q, "foo", 0);
    add(t->q, "foo");
    add(t->q, "bar");
    (void)take_at(t->q, "bar", 0);
    add(t->q, "baz");
    finish(t->q, foo);

    assert_int_equal(depth_at(t->q, 0), 2);
    (void)take_at(t->q, "baz", 0);
    (void)take_at(t->q, "foo", 0);
    assert_counts(t->q, 4, 0);
}

/* PQ-05 */
TEST(key_added_twice_counts_once)
{
    struct timed *t = *state;

    add(t->q, "foo");
    add(t->q, "foo");

    assert_int_equal(wq_len(t->q), 1);
    assert_int_equal(counts_of(t->q).held, 0);
    assert_int_equal(counts_of(t->q).merged, 1);
    assert_counts(t->q, 1, 0);
}

/* PQ-06 Q-12: it is in the depth, but not in wq_len(). */
TEST(dirty_key_is_in_the_depth_and_not_in_the_length)
{
    struct timed *t = *state;

    add(t->q, "foo");
    assert_int_equal(wq_len(t->q), 1);
    wq_item *foo = take_at(t->q, "foo", 0);
    add(t->q, "foo");
    assert_int_equal(wq_len(t->q), 0);
    assert_int_equal(depth_at(t->q, 0), 1);
    finish(t->q, foo);
    assert_int_equal(wq_len(t->q), 1);
    (void)take_at(t->q, "foo", 0);

    assert_int_equal(depth_at(t->q, 0), 0);
    assert_counts(t->q, 2, 0);
}

/* ---- several ------------------------------------------------------------ */

/* PQ-07 O-51 O-56 */
TEST(higher_priority_given_later_counts)
{
    struct timed *t = *state;

    add_at(t->q, 1, "foo");
    assert_added(add_how(t->q, WQ_ADD(.priority = 2), "foo"), WQ_ADDED_RAISED);
    assert_int_equal(depth_at(t->q, 1), 0);
    assert_int_equal(depth_at(t->q, 2), 1);
    (void)take_at(t->q, "foo", 2);

    assert_int_equal(wq_len(t->q), 0);
    assert_int_equal(depth_at(t->q, 2), 0);
    assert_counts(t->q, 1, 0);
}

/* PQ-08 O-51 O-56 */
TEST(lower_priority_given_later_does_not_count)
{
    struct timed *t = *state;

    add_at(t->q, 2, "foo");
    assert_added(add_how(t->q, WQ_ADD(.priority = 1), "foo"), WQ_ADDED_MERGED);
    add(t->q, "foo"); /* with 0 */
    (void)take_at(t->q, "foo", 2);

    assert_int_equal(depth_at(t->q, 2), 0);
    assert_int_equal(depth_at(t->q, 1), 0);
    assert_counts(t->q, 1, 0);
}

/* PQ-09 O-51 */
TEST(raised_key_leaves_before_those_in_front_of_it)
{
    struct timed *t = *state;

    add(t->q, "foo");
    add(t->q, "bar");
    add(t->q, "baz");
    add_at(t->q, 1, "baz");
    (void)take_at(t->q, "baz", 1);

    assert_int_equal(wq_len(t->q), 2);
    assert_int_equal(depth_at(t->q, 0), 2);
    assert_int_equal(depth_at(t->q, 1), 0);
    assert_counts(t->q, 3, 0);
}

/* PQ-16 O-51 */
TEST(raised_key_goes_to_the_end_of_its_new_level)
{
    struct timed *t = *state;

    add(t->q, "foo");
    add_at(t->q, 1, "bar");
    add_at(t->q, 1, "foo");

    (void)take_at(t->q, "bar", 1);
    (void)take_at(t->q, "foo", 1);
}

/* PQ-44 O-51 */
TEST(key_added_again_with_the_same_priority_keeps_its_place)
{
    struct timed *t = *state;

    add_at(t->q, 3, "foo");
    add_at(t->q, 3, "bar");
    add_at(t->q, 3, "foo");
    add_at(t->q, 2, "foo");

    (void)take_at(t->q, "foo", 3);
    (void)take_at(t->q, "bar", 3);
}

/* O-51: any int will do. */
TEST(priorities_reach_from_the_least_int_to_the_greatest)
{
    struct timed *t = *state;

    add_at(t->q, INT_MIN, "last");
    add_at(t->q, -1, "fourth");
    add(t->q, "third");
    add_at(t->q, 1, "second");
    add_at(t->q, INT_MAX, "first");

    work_on_at(t->q, "first", INT_MAX);
    work_on_at(t->q, "second", 1);
    work_on_at(t->q, "third", 0);
    work_on_at(t->q, "fourth", -1);
    work_on_at(t->q, "last", INT_MIN);
    assert_int_equal(counts_of(t->q).adds, 5);
}

/* ---- until it is handed out --------------------------------------------- */

/* PQ-42 O-51 */
TEST(priority_is_not_inherited_by_what_is_added_while_held)
{
    struct timed *t = *state;

    add_at(t->q, 5, "foo");
    wq_item *foo = take_at(t->q, "foo", 5);
    add(t->q, "foo");
    finish(t->q, foo);

    work_on_at(t->q, "foo", 0);
}

/* PQ-42 */
TEST(plain_add_raises_a_priority_below_0)
{
    struct timed *t = *state;

    add_at(t->q, -5, "foo");
    add(t->q, "foo");

    work_on_at(t->q, "foo", 0);
}

/* PQ-42 O-51: what a worker does that retries. */
TEST(key_added_again_with_the_priority_it_was_got_with_keeps_it)
{
    struct timed *t = *state;

    add_at(t->q, 5, "foo");
    wq_item *foo = take_at(t->q, "foo", 5);
    add_at(t->q, foo->priority, "foo");
    finish(t->q, foo);

    work_on_at(t->q, "foo", 5);
}

/* O-51 O-56: of what is added while it is held the highest counts, too. */
TEST(dirty_key_comes_with_the_highest_of_the_priorities_it_was_added_with)
{
    struct timed *t = *state;

    add(t->q, "foo");
    wq_item *foo = take_at(t->q, "foo", 0);
    assert_added(add_how(t->q, WQ_ADD(.priority = 2), "foo"), WQ_ADDED_DIRTY);
    assert_added(add_how(t->q, WQ_ADD(.priority = 9), "foo"), WQ_ADDED_RAISED);
    assert_added(add_how(t->q, WQ_ADD(.priority = 4), "foo"), WQ_ADDED_MERGED);
    assert_int_equal(info_of(t->q, "foo").priority, 9);
    assert_int_equal(foo->priority, 0);
    add_at(t->q, 8, "bar");
    finish(t->q, foo);

    work_on_at(t->q, "foo", 9);
    work_on_at(t->q, "bar", 8);
}

/* O-51: done does not skip the line of its level. */
TEST(dirty_key_goes_to_the_tail_of_its_level)
{
    struct timed *t = *state;

    add(t->q, "foo");
    wq_item *foo = take_at(t->q, "foo", 0);
    add_at(t->q, 2, "foo");
    add_at(t->q, 2, "bar");
    add_at(t->q, 1, "baz");
    finish(t->q, foo);

    work_on_at(t->q, "bar", 2);
    work_on_at(t->q, "foo", 2);
    work_on_at(t->q, "baz", 1);
}

/* ---- with time ---------------------------------------------------------- */

/* PQ-20: two keys, of which the one that comes later is worth more. */
TEST(key_that_becomes_due_overtakes_one_of_lower_priority)
{
    struct timed *t = *state;

    add_at(t->q, -100, "foo");
    (void)add_how(t->q, WQ_ADD(.after_ns = S), "bar");
    step(t, S);
    (void)take_at(t->q, "bar", 0);

    assert_int_equal(depth_at(t->q, -100), 1);
    assert_int_equal(depth_at(t->q, 0), 0);
    assert_counts(t->q, 2, 1);
}

/* O-51: a deadline brings its own priority along. */
TEST(due_key_has_the_priority_of_its_deadline)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(.priority = 3, .after_ns = S), "foo");
    assert_int_equal(info_of(t->q, "foo").priority, 3);
    add_at(t->q, 2, "bar");
    step(t, S);

    work_on_at(t->q, "foo", 3);
    work_on_at(t->q, "bar", 2);
}

/* O-51: and raises a key that is READY when it comes. */
TEST(deadline_raises_the_ready_key_it_meets)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(.priority = 3, .after_ns = S), "foo");
    add(t->q, "bar");
    add(t->q, "foo");
    assert_int_equal(info_of(t->q, "foo").priority, 0);
    step(t, S);

    work_on_at(t->q, "foo", 3);
    work_on_at(t->q, "bar", 0);
    assert_none_due(t);
}

static void
add_many(struct timed *t, int priority, int64_t after_ns)
{
    char text[32];

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(text, sizeof text, "%d/%d", priority, i);
        (void)add_how(t->q, WQ_ADD(.priority = priority, .after_ns = after_ns),
                      text);
    }
}

static void
work_on_many(struct timed *t, int priority)
{
    char text[32];

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(text, sizeof text, "%d/%d", priority, i);
        work_on_at(t->q, text, priority);
    }
}

/* PQ-18 O-51: only a delay above 0 is a retry. */
TEST(thousands_of_keys_leave_by_priority_and_then_as_they_came)
{
    static const int     priorities[] = {10, 5, 0, -5, -10};
    static const int64_t delays[] = {-S, 0, S};

    for (int d = 0; d < 3; d++) {
        struct timed *t = timed_create(WQ_CONFIG(.order = NULL));

        for (int p = 4; p >= 0; p--)
            add_many(t, priorities[p], delays[d]);
        step(t, S);
        for (int p = 0; p < 5; p++)
            work_on_many(t, priorities[p]);
        assert_none_due(t);
        assert_int_equal(depth_of(t->q), 0);
        assert_counts(t->q, 5000, delays[d] > 0 ? 5000 : 0);
        timed_destroy(t);
    }
}

/* M-08: wq_add_after() counts every call, as client-go does. */
TEST(delays_of_0_count_as_retries_by_one_name_and_not_by_the_other)
{
    struct timed *t = *state;

    add_after(t, "a", 0);
    add_after(t, "b", -S);
    add(t->q, "c");
    add_after(t, "d", S);
    assert_counts(t->q, 3, 3);
    assert_int_equal(depth_of(t->q), 3);

    (void)add_how(t->q, WQ_ADD(.after_ns = 0), "e");
    (void)add_how(t->q, WQ_ADD(.after_ns = -S), "f");
    assert_counts(t->q, 5, 3);
}

/* ---- a wq_order --------------------------------------------------------- */

/* What a wq_order was told last. */
struct heard {
    wq_key key; /* the one key it holds, if any */
    size_t len;
    int    pushed, raised; /* with which priority */
    int    pushes, raises, touches, removes;
};

static wq_err
hear_push(void *self, wq_key key, int priority)
{
    struct heard *h = self;

    if (h->len)
        return WQ_EFULL;
    h->key = key;
    h->len = 1;
    h->pushed = priority;
    h->pushes++;
    return WQ_OK;
}

static void
hear_touch(void *self, wq_key key)
{
    (void)key;
    ((struct heard *)self)->touches++;
}

static bool
hear_pop(void *self, wq_key *out)
{
    struct heard *h = self;

    *out = h->key;
    return h->len && h->len--;
}

static size_t
hear_len(void *self)
{
    return ((struct heard *)self)->len;
}

static void
hear_raise(void *self, wq_key key, int priority)
{
    struct heard *h = self;

    assert_ptr_equal(key.data, h->key.data);
    h->raised = priority;
    h->raises++;
}

static void
hear_remove(void *self, wq_key key)
{
    struct heard *h = self;

    assert_ptr_equal(key.data, h->key.data);
    h->len = 0;
    h->removes++;
}

static wq_queue *
create_heard(struct heard *h, bool all)
{
    const wq_order order = {
        .size = sizeof order,
        .self = h,
        .push = hear_push,
        .touch = hear_touch,
        .pop = hear_pop,
        .len = hear_len,
        .raise = all ? hear_raise : NULL,
        .remove = all ? hear_remove : NULL,
    };
    wq_queue *q = NULL;

    *h = (struct heard){0};
    assert_err(wq_create(WQ_CONFIG(.order = &order), &q), WQ_OK);
    return q;
}

/* O-51 Q-24 */
TEST(order_is_told_the_priority_and_when_it_is_raised)
{
    struct heard h;
    wq_queue    *q = create_heard(&h, true);

    add_at(q, 3, "foo");
    assert_int_equal(h.pushed, 3);
    assert_added(add_how(q, WQ_ADD(.priority = 2), "foo"), WQ_ADDED_MERGED);
    assert_int_equal(h.touches, 1);
    assert_added(add_how(q, WQ_ADD(.priority = 8), "foo"), WQ_ADDED_RAISED);
    assert_int_equal(h.raised, 8);
    assert_int_equal(h.touches, 1);
    work_on_at(q, "foo", 8);
    assert_int_equal(h.raises, 1);
    wq_destroy(q);
}

/* O-51 Q-05 */
TEST(order_without_raise_is_touched)
{
    struct heard h;
    wq_queue    *q = create_heard(&h, false);

    add_at(q, 3, "foo");
    add_at(q, 8, "foo");
    assert_int_equal(h.touches, 1);
    work_on_at(q, "foo", 8);
    wq_destroy(q);
}

/* O-57 */
TEST(order_is_told_of_a_key_that_is_removed)
{
    struct heard h;
    wq_queue    *q = create_heard(&h, true);

    add_at(q, 3, "foo");
    assert_err(wq_remove(q, wq_str("foo")), WQ_OK);
    assert_int_equal(h.removes, 1);
    assert_none_ready(q, WQ_ETIMEDOUT);
    add(q, "foo");
    work_on_at(q, "foo", 0);
    wq_destroy(q);
}

/* O-57: only what is READY is the order's. */
TEST(order_without_remove_keeps_its_ready_keys)
{
    struct heard h;
    wq_queue    *q = create_heard(&h, false);

    add_at(q, 3, "foo");
    assert_err(wq_add_after(q, wq_str("foo"), HOUR), WQ_OK);
    assert_err(wq_remove(q, wq_str("foo")), WQ_ENOTSUP);
    assert_states(q, "foo", WQ_STATE_READY | WQ_STATE_WAITING);
    assert_err(wq_cancel_after(q, wq_str("foo")), WQ_OK);
    assert_err(wq_add_after(q, wq_str("bar"), HOUR), WQ_OK);
    assert_err(wq_remove(q, wq_str("bar")), WQ_OK);
    wq_item *foo = take_at(q, "foo", 3);
    add(q, "foo");
    assert_err(wq_remove(q, wq_str("foo")), WQ_OK);
    finish(q, foo);
    assert_none_ready(q, WQ_ETIMEDOUT);
    wq_destroy(q);
}

/* O-50: the header says so: with an order, add one at a time. */
TEST(order_that_refuses_in_the_middle_keeps_what_was_before)
{
    struct heard h;
    wq_queue    *q = create_heard(&h, true);
    const wq_key keys[] = {wq_str("a"), wq_str("b"), wq_str("c")};

    assert_err(wq_add_with(q, WQ_ADD(.priority = 1), keys, 3), WQ_EFULL);
    assert_int_equal(wq_len(q), 1);
    assert_states(q, "b", 0);
    assert_states(q, "c", 0);
    work_on_at(q, "a", 1);
    assert_none_ready(q, WQ_ETIMEDOUT);
    wq_destroy(q);
}

WQ_TESTS(
    with_time(key_is_handed_out_with_priority_0),
    with_time(keys_of_one_priority_leave_first_come_first_served),
    with_time(key_added_while_held_lets_others_pass),
    with_time(key_added_while_held_goes_behind_those_that_came_before_done),
    with_time(key_added_twice_counts_once),
    with_time(dirty_key_is_in_the_depth_and_not_in_the_length),
    with_time(higher_priority_given_later_counts),
    with_time(lower_priority_given_later_does_not_count),
    with_time(raised_key_leaves_before_those_in_front_of_it),
    with_time(raised_key_goes_to_the_end_of_its_new_level),
    with_time(key_added_again_with_the_same_priority_keeps_its_place),
    with_time(priorities_reach_from_the_least_int_to_the_greatest),
    with_time(priority_is_not_inherited_by_what_is_added_while_held),
    with_time(plain_add_raises_a_priority_below_0),
    with_time(key_added_again_with_the_priority_it_was_got_with_keeps_it),
    with_time(
        dirty_key_comes_with_the_highest_of_the_priorities_it_was_added_with),
    with_time(dirty_key_goes_to_the_tail_of_its_level),
    with_time(key_that_becomes_due_overtakes_one_of_lower_priority),
    with_time(due_key_has_the_priority_of_its_deadline),
    with_time(deadline_raises_the_ready_key_it_meets),
    test(thousands_of_keys_leave_by_priority_and_then_as_they_came),
    with_time(delays_of_0_count_as_retries_by_one_name_and_not_by_the_other),
    test(order_is_told_the_priority_and_when_it_is_raised),
    test(order_without_raise_is_touched),
    test(order_is_told_of_a_key_that_is_removed),
    test(order_without_remove_keeps_its_ready_keys),
    test(order_that_refuses_in_the_middle_keeps_what_was_before));
