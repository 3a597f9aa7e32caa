/* SPDX-License-Identifier: MIT */
/* delay_facts.h: what does a delay mean, in whatever queue?
 *
 * Tests that use one thread and hold for every queue with wq_add_after(). They
 * find a struct timed in *state. Each file that includes this makes its kind of
 * queue and runs all of them:
 *
 *     WQ_TESTS(DELAY_FACTS(with_time), ...);
 */
#ifndef WQ_BEHAVIOUR_DELAY_FACTS_H
#define WQ_BEHAVIOUR_DELAY_FACTS_H

#include "timed.h"

/* ---- when ---------------------------------------------------------------- */

/* D-01 */
TEST(delayed_key_is_there_when_its_time_has_come_and_not_before)
{
    struct timed *t = *state;

    add_after(t, "foo", 50 * MS);
    assert_none_due(t);
    step(t, 60 * MS);

    assert_int_equal(wq_len(t->q), 1);
    work_on(t->q, "foo");
}

/* D-01 */
TEST(delayed_key_comes_once)
{
    struct timed *t = *state;

    add_after(t, "foo", 50 * MS);
    step(t, 60 * MS);
    work_on(t->q, "foo");
    step(t, 10 * S);

    assert_none_due(t);
}

/* D-08 */
TEST(deadline_has_come_at_the_nanosecond_and_not_one_before)
{
    struct timed *t = *state;

    add_after(t, "foo", 50 * MS);
    step(t, 50 * MS - 1);
    assert_none_due(t);
    step(t, 1);

    assert_int_equal(wq_len(t->q), 1);
}

/* D-08: the first verb to look is the get itself. */
TEST(get_alone_notices_what_is_due)
{
    struct timed *t = *state;

    add_after(t, "foo", 1);
    step(t, 1);

    work_on(t->q, "foo");
}

/* D-09 */
TEST(delay_counts_from_the_call)
{
    struct timed *t = *state;

    step(t, 7 * MS);
    add_after(t, "foo", 50 * MS);
    step(t, 3 * MS);
    add_after(t, "bar", 50 * MS);

    assert_due_in(t, "foo", 47 * MS);
    assert_due_in(t, "bar", 3 * MS);
}

/* D-07 */
TEST(delay_of_nothing_or_less_is_an_add)
{
    struct timed *t = *state;

    add_after(t, "zero", 0);
    add_after(t, "one", -1);
    add_after(t, "least", INT64_MIN);

    assert_int_equal(wq_len(t->q), 3);
    work_on(t->q, "zero");
    work_on(t->q, "one");
    work_on(t->q, "least");
    assert_none_due(t);
}

/* D-07: and waits for no time, not even for that which is gone. */
TEST(delay_of_less_than_nothing_is_no_deadline)
{
    struct timed *t = *state;

    add_after(t, "foo", -1);
    step(t, -HOUR);

    work_on(t->q, "foo");
}

/* D-08 C-01: a clock that goes back makes the wait longer, and takes nothing
 * back that is READY. */
TEST(clock_set_back_makes_waits_longer_and_leaves_ready_keys_alone)
{
    struct timed *t = *state;

    step(t, S);
    add_after(t, "foo", 10 * MS);
    add_after(t, "bar", 20 * MS);
    step(t, 10 * MS);
    assert_int_equal(wq_len(t->q), 1);
    wq_clock_fake_set(t->clock, 0);

    work_on(t->q, "foo");
    assert_due_in(t, "bar", S + 20 * MS);
}

/* D-08: no call saw that the deadline had passed. */
TEST(deadline_that_passed_unseen_is_in_force_after_going_back)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    step(t, 20 * MS);
    wq_clock_fake_set(t->clock, 0);
    assert_none_due(t);
    assert_due_in(t, "foo", 10 * MS);
    assert_none_due(t);
}

/* ---- which of two deadlines ---------------------------------------------- */

/* D-02 */
TEST(later_of_two_deadlines_is_dropped)
{
    struct timed *t = *state;

    add_after(t, "foo", 50 * MS);
    add_after(t, "foo", 70 * MS);

    assert_due_in(t, "foo", 50 * MS);
    step(t, 30 * MS);
    assert_none_due(t);
}

/* D-03 */
TEST(earlier_of_two_deadlines_stays)
{
    struct timed *t = *state;

    add_after(t, "foo", 50 * MS);
    add_after(t, "foo", 30 * MS);

    assert_due_in(t, "foo", 30 * MS);
    step(t, 30 * MS);
    assert_none_due(t);
}

/* D-02 D-03: the time of asking does not matter, the time asked for does. */
TEST(deadlines_are_compared_and_not_delays)
{
    struct timed *t = *state;

    add_after(t, "foo", 50 * MS);
    step(t, 40 * MS);
    add_after(t, "foo", 20 * MS);

    assert_due_in(t, "foo", 10 * MS);
    step(t, HOUR);
    assert_none_due(t);
}

/* D-01 D-02: the key may wait again once it was handed out. */
TEST(key_that_was_due_may_wait_again)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    assert_due_in(t, "foo", 10 * MS);
    add_after(t, "foo", 20 * MS);

    assert_due_in(t, "foo", 20 * MS);
}

/* ---- order --------------------------------------------------------------- */

/* D-04 */
TEST(keys_come_by_deadline_while_others_join)
{
    struct timed *t = *state;

    add_after(t, "foo", S);
    add_after(t, "bar", 50 * MS);
    step(t, 60 * MS);
    (void)take_key(t->q, "bar");
    add_after(t, "baz", 2 * S);
    step(t, S);
    (void)take_key(t->q, "foo");
    step(t, 2 * S);
    (void)take_key(t->q, "baz");
}

/* D-05 */
TEST(keys_due_in_one_step_come_in_the_order_of_their_deadlines)
{
    struct timed *t = *state;

    add_after(t, "foo", S);
    add_after(t, "bar", 500 * MS);
    add_after(t, "baz", 250 * MS);
    step(t, 2 * S);

    assert_int_equal(wq_len(t->q), 3);
    work_on(t->q, "baz");
    work_on(t->q, "bar");
    work_on(t->q, "foo");
}

/* D-12 */
TEST(equal_deadlines_come_in_the_order_of_arrival)
{
    struct timed *t = *state;
    char          key[] = "a";

    for (key[0] = 'a'; key[0] <= 'z'; key[0]++)
        add_after(t, key, 10 * MS);
    step(t, 10 * MS);

    for (key[0] = 'a'; key[0] <= 'z'; key[0]++)
        work_on(t->q, key);
}

/* D-12: asking again for the same time, or a later one, is no new arrival. */
TEST(key_that_asks_again_keeps_its_place_among_equals)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    add_after(t, "bar", 10 * MS);
    add_after(t, "foo", 10 * MS);
    add_after(t, "foo", 20 * MS);
    step(t, 10 * MS);

    work_on(t->q, "foo");
    work_on(t->q, "bar");
}

/* D-12: and a deadline that was moved is one. */
TEST(key_moved_to_an_earlier_deadline_comes_after_its_equals)
{
    struct timed *t = *state;

    add_after(t, "foo", 20 * MS);
    add_after(t, "bar", 10 * MS);
    add_after(t, "foo", 10 * MS);
    step(t, 10 * MS);

    work_on(t->q, "bar");
    work_on(t->q, "foo");
}

/* D-05 Q-23 */
TEST(key_that_was_due_before_an_add_stands_before_it)
{
    struct timed *t = *state;

    add_after(t, "due", 10 * MS);
    step(t, 10 * MS);
    add(t->q, "late");

    work_on(t->q, "due");
    work_on(t->q, "late");
}

/* D-05 Q-23 */
TEST(key_that_was_due_before_a_done_stands_before_the_dirty_one)
{
    struct timed *t = *state;

    add(t->q, "dirty");
    wq_item *item = take_key(t->q, "dirty");
    add(t->q, "dirty");
    add_after(t, "due", 10 * MS);
    step(t, 10 * MS);
    finish(t->q, item);

    work_on(t->q, "due");
    work_on(t->q, "dirty");
}

static uint64_t
draw(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407U;
    return *seed >> 33;
}

/* D-06 D-05 D-12: keys are numbered as they arrive. */
TEST(many_keys_with_random_delays_all_come_in_order)
{
    enum { KEYS = 2000 };
    struct timed *t = *state;
    uint64_t      seed = 1;
    int64_t       delay_ns[KEYS];

    for (uint64_t i = 0; i < KEYS; i++) {
        delay_ns[i] = (int64_t)(draw(&seed) % 600 + 1) * S;
        assert_err(wq_add_after(t->q, wq_u64(&i), delay_ns[i]), WQ_OK);
    }
    assert_none_due(t);
    step(t, 660 * S);
    assert_int_equal(wq_len(t->q), KEYS);

    uint64_t last = 0, now = 0;
    for (int n = 0; n < KEYS; n++, last = now) {
        wq_item *item = take(t->q);

        memcpy(&now, item->key.data, sizeof now);
        assert_true(n == 0 || delay_ns[last] < delay_ns[now] ||
                    (delay_ns[last] == delay_ns[now] && last < now));
        finish(t->q, item);
    }
    assert_none_due(t);
}

/* ---- a deadline is a matter of its own ----------------------------------- */

/* D-10 */
TEST(deadline_that_comes_while_held_hands_the_key_out_after_done)
{
    struct timed *t = *state;

    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");
    add_after(t, "foo", 10 * MS);
    step(t, 10 * MS);
    assert_none_due(t);
    finish(t->q, item);

    assert_int_equal(wq_len(t->q), 1);
    work_on(t->q, "foo");
    assert_none_due(t);
}

/* D-10: done itself is the first to notice. */
TEST(done_notices_that_the_key_is_due)
{
    struct timed *t = *state;

    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");
    add_after(t, "foo", 10 * MS);
    step(t, 10 * MS);
    finish(t->q, item);

    work_on(t->q, "foo");
    assert_none_due(t);
}

/* D-10 */
TEST(deadline_that_comes_while_ready_changes_nothing)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    add(t->q, "foo");
    assert_int_equal(wq_len(t->q), 1);
    step(t, 10 * MS);
    assert_int_equal(wq_len(t->q), 1);

    work_on(t->q, "foo");
    assert_none_due(t);
}

/* D-10 */
TEST(deadline_that_comes_while_dirty_changes_nothing)
{
    struct timed *t = *state;

    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");
    add(t->q, "foo");
    add_after(t, "foo", 10 * MS);
    step(t, 10 * MS);
    finish(t->q, item);

    work_on(t->q, "foo");
    assert_none_due(t);
}

/* D-11 */
TEST(add_does_not_end_the_wait)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    add(t->q, "foo");
    work_on(t->q, "foo");
    assert_none_due(t);

    assert_due_in(t, "foo", 10 * MS);
}

/* D-11 D-07 */
TEST(delay_of_nothing_does_not_end_the_wait)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    add_after(t, "foo", 0);
    work_on(t->q, "foo");

    assert_due_in(t, "foo", 10 * MS);
}

/* D-11 */
TEST(done_does_not_end_the_wait)
{
    struct timed *t = *state;

    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");
    add_after(t, "foo", 10 * MS);
    finish(t->q, item);
    assert_none_due(t);

    assert_due_in(t, "foo", 10 * MS);
}

/* ---- keys ---------------------------------------------------------------- */

/* D-01 O-04 */
TEST(delayed_key_is_copied)
{
    struct timed *t = *state;
    char          mine[] = "foo";

    add_after(t, mine, 10 * MS);
    memset(mine, '!', sizeof mine);

    assert_due_in(t, "foo", 10 * MS);
}

/* D-01 O-04 */
TEST(delayed_keys_of_all_lengths_come_back_whole)
{
    const size_t  lengths[] = {1, 113, 5000, WQ_KEY_MAX};
    struct timed *t = *state;
    char         *bytes = malloc(WQ_KEY_MAX);

    assert_non_null(bytes);
    for (size_t i = 0; i < WQ_KEY_MAX; i++)
        bytes[i] = (char)(i * 7 + i / 251);
    for (size_t i = 0; i < 4; i++)
        assert_err(wq_add_after(t->q, (wq_key){bytes, lengths[i]}, MS), WQ_OK);
    step(t, MS);
    for (size_t i = 0; i < 4; i++) {
        wq_item *item = take(t->q);
        assert_int_equal(item->key.len, lengths[i]);
        assert_memory_equal(item->key.data, bytes, lengths[i]);
        finish(t->q, item);
    }
    free(bytes);
}

/* D-01 O-14 */
TEST(bad_keys_cannot_wait)
{
    struct timed *t = *state;
    char         *bytes = calloc(1, WQ_KEY_MAX + 1);

    assert_non_null(bytes);
    for (int64_t delay_ns = -1; delay_ns <= 1; delay_ns++) {
        assert_err(wq_add_after(NULL, wq_str("foo"), delay_ns), WQ_EINVAL);
        assert_err(wq_add_after(t->q, wq_str(""), delay_ns), WQ_EINVAL);
        assert_err(wq_add_after(t->q, (wq_key){NULL, 3}, delay_ns), WQ_EINVAL);
        assert_err(
            wq_add_after(t->q, (wq_key){bytes, WQ_KEY_MAX + 1}, delay_ns),
            WQ_ETOOLONG);
    }
    free(bytes);
    step(t, HOUR);

    assert_none_due(t);
}

/* ---- the ends of time ---------------------------------------------------- */

/* O-15 */
TEST(delay_without_end_ends_with_time_itself)
{
    struct timed *t = *state;

    step(t, 1);
    add_after(t, "foo", WQ_FOREVER);
    wq_clock_fake_set(t->clock, WQ_FOREVER - 1);
    assert_none_due(t);
    wq_clock_fake_set(t->clock, WQ_FOREVER);

    work_on(t->q, "foo");
}

/* O-15 */
TEST(delay_beyond_the_end_of_time_ends_there)
{
    struct timed *t = *state;

    wq_clock_fake_set(t->clock, WQ_FOREVER - 10);
    add_after(t, "inside", 9);
    add_after(t, "at", 10);
    add_after(t, "beyond", 11);
    add_after(t, "far", WQ_FOREVER);
    assert_due_in(t, "inside", 9);
    step(t, 1);

    work_on(t->q, "at");
    work_on(t->q, "beyond");
    work_on(t->q, "far");
}

/* O-15 */
TEST(earlier_deadline_replaces_one_without_end)
{
    struct timed *t = *state;

    add_after(t, "foo", WQ_FOREVER);
    add_after(t, "foo", 10 * MS);

    assert_due_in(t, "foo", 10 * MS);
}

/* O-15 */
TEST(delays_can_be_told_when_time_is_below_zero)
{
    struct timed *t = *state;

    wq_clock_fake_set(t->clock, INT64_MIN);
    add_after(t, "foo", 10);
    add_after(t, "bar", WQ_FOREVER);
    assert_due_in(t, "foo", 10);
    wq_clock_fake_set(t->clock, -2);
    assert_none_due(t);
    wq_clock_fake_set(t->clock, -1); /* INT64_MIN + WQ_FOREVER */

    work_on(t->q, "bar");
}

/* ---- shutdown ------------------------------------------------------------ */

/* D-13 */
TEST(shutdown_drops_what_waits)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    wq_shutdown(t->q);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    step(t, 10 * MS);

    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* D-13 */
TEST(delay_after_shutdown_is_refused)
{
    struct timed *t = *state;

    wq_shutdown(t->q);

    assert_err(wq_add_after(t->q, wq_str("foo"), 10 * MS), WQ_ESHUTDOWN);
    assert_err(wq_add_after(t->q, wq_str("foo"), 0), WQ_ESHUTDOWN);
    step(t, 10 * MS);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* D-13 Q-13: even if nobody had looked yet. */
TEST(key_that_was_due_before_the_shutdown_is_handed_out)
{
    struct timed *t = *state;

    add_after(t, "due", 10 * MS);
    add_after(t, "not yet", 11 * MS);
    step(t, 10 * MS);
    wq_shutdown(t->q);
    step(t, 10 * MS);

    work_on(t->q, "due");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* D-13 Q-13: the deadline goes, the key stays. */
TEST(ready_key_outlives_the_deadline_that_is_dropped)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    add(t->q, "foo");
    wq_shutdown(t->q);
    step(t, 10 * MS);

    work_on(t->q, "foo");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* D-13 */
TEST(held_key_whose_deadline_was_dropped_is_gone_after_done)
{
    struct timed *t = *state;

    add(t->q, "foo");
    wq_item *item = take_key(t->q, "foo");
    add_after(t, "foo", 10 * MS);
    wq_shutdown(t->q);
    step(t, 10 * MS);
    finish(t->q, item);

    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* D-16 */
TEST(second_shutdown_finds_nothing_that_waits)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    add(t->q, "bar");
    wq_shutdown(t->q);
    wq_shutdown(t->q);
    step(t, 10 * MS);

    work_on(t->q, "bar");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* D-15 */
TEST(drain_drops_what_waits_and_does_not_wait_for_it)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);

    assert_err(wq_shutdown_with_drain(t->q), WQ_OK);
    assert_err(wq_add_after(t->q, wq_str("foo"), 10 * MS), WQ_ESHUTDOWN);
    step(t, 10 * MS);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* D-14 */
TEST(any_number_of_keys_can_wait_without_anyone_blocking)
{
    enum { KEYS = 20000 };
    struct timed *t = *state;

    for (uint64_t i = 0; i < KEYS; i++)
        assert_err(wq_add_after(t->q, wq_u64(&i), S), WQ_OK);
    assert_int_equal(wq_len(t->q), 0);
    step(t, S);

    assert_int_equal(wq_len(t->q), KEYS);
}

/* ---- a get that sleeps --------------------------------------------------- */

/* D-01 C-08 */
TEST(get_sleeps_until_a_key_is_due)
{
    struct timed *t = *state;

    add_after(t, "foo", HOUR);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    step(t, HOUR - 1);
    worker_await_blocked(w);
    step(t, 1);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
    assert_int_equal(wq_clock_fake_waiters(t->clock), 0);
}

/* D-03 D-09 */
TEST(get_that_sleeps_learns_of_an_earlier_deadline)
{
    struct timed *t = *state;

    add_after(t, "later", HOUR);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    add_after(t, "sooner", S);
    worker_await_blocked(w);
    step(t, S);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "sooner");
}

/* D-03: the same key, moved forward. */
TEST(get_that_sleeps_learns_that_its_deadline_was_moved)
{
    struct timed *t = *state;

    add_after(t, "foo", HOUR);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    add_after(t, "foo", S);
    worker_await_blocked(w);
    step(t, S);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
}

/* D-01 */
TEST(get_that_sleeps_without_limit_learns_of_a_first_deadline)
{
    struct timed *t = *state;

    struct worker *w = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(w);
    add_after(t, "foo", S);
    await_sleepers(t, 1);
    step(t, S);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
}

/* D-11 */
TEST(add_wakes_a_get_that_sleeps_until_a_deadline)
{
    struct timed *t = *state;

    add_after(t, "later", HOUR);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    add(t->q, "now");

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "now");
}

/* O-15 */
TEST(get_sleeps_without_limit_when_a_key_waits_for_ever)
{
    struct timed *t = *state;

    add_after(t, "never", WQ_FOREVER);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    worker_await_blocked(w);
    step(t, HOUR);
    worker_await_blocked(w);
    add(t->q, "now");

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "now");
}

/* O-05 */
TEST(get_gives_up_at_its_time_on_the_queues_clock)
{
    struct timed *t = *state;

    struct worker *w = get_in_time(t, 10 * MS);
    await_sleepers(t, 1);
    step(t, 10 * MS - 1);
    worker_await_blocked(w);
    step(t, 1);

    assert_err(worker_join(w), WQ_ETIMEDOUT);
    assert_null(t->item);
}

/* O-05 D-01 */
TEST(get_gives_up_before_a_later_deadline_which_stays)
{
    struct timed *t = *state;

    add_after(t, "foo", 20 * MS);
    struct worker *w = get_in_time(t, 10 * MS);
    await_sleepers(t, 1);
    step(t, 10 * MS);

    assert_err(worker_join(w), WQ_ETIMEDOUT);
    assert_due_in(t, "foo", 10 * MS);
}

/* O-05 D-08 */
TEST(key_due_at_the_moment_a_get_would_give_up_is_handed_out)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    struct worker *w = get_in_time(t, 10 * MS);
    await_sleepers(t, 1);
    step(t, 10 * MS);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
}

/* O-05 D-05: time may have jumped over both. */
TEST(key_due_when_time_has_jumped_over_a_timeout_is_handed_out)
{
    struct timed *t = *state;

    add_after(t, "foo", 20 * MS);
    struct worker *w = get_in_time(t, 10 * MS);
    await_sleepers(t, 1);
    step(t, 30 * MS);

    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
}

/* O-05 O-15 */
TEST(timeout_beyond_the_end_of_time_does_not_end_at_once)
{
    struct timed *t = *state;

    wq_clock_fake_set(t->clock, WQ_FOREVER - 10);
    struct worker *w = get_in_time(t, 20);
    worker_await_blocked(w);
    add(t->q, "foo");

    assert_err(worker_join(w), WQ_OK);
}

/* D-13 Q-19 */
TEST(shutdown_wakes_a_get_that_sleeps_until_a_deadline)
{
    struct timed *t = *state;

    add_after(t, "foo", HOUR);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    wq_shutdown(t->q);

    assert_err(worker_join(w), WQ_ESHUTDOWN);
}

/* O-08 C-03 */
TEST(interrupt_ends_a_get_that_sleeps_until_a_deadline)
{
    struct timed *t = *state;

    add_after(t, "foo", 10 * MS);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    wq_interrupt(t->q);
    assert_err(worker_join(w), WQ_EINTERRUPTED);

    assert_int_equal(wq_clock_fake_waiters(t->clock), 0);
    assert_due_in(t, "foo", 10 * MS);
}

/* O-03 */
TEST(destroy_sends_a_get_home_that_sleeps_until_a_deadline)
{
    struct timed *t = *state;

    add_after(t, "foo", HOUR);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    wq_destroy(t->q);
    t->q = NULL;

    assert_err(worker_join(w), WQ_ESHUTDOWN);
}

/* D-04: the next deadline is watched after the first has come. */
TEST(each_deadline_wakes_a_get_of_its_own)
{
    struct timed *t = *state;
    char          key[] = "a";

    for (key[0] = 'e'; key[0] >= 'a'; key[0]--)
        add_after(t, key, (key[0] - 'a' + 1) * S);
    for (key[0] = 'a'; key[0] <= 'e'; key[0]++) {
        struct worker *w = get_in_time(t, WQ_FOREVER);
        await_sleepers(t, 1);
        step(t, S);
        assert_err(worker_join(w), WQ_OK);
        assert_key(t->item, key);
    }
}

/* All of them, as entries of WQ_TESTS(). */
#define DELAY_FACTS(with)                                                      \
    with(delayed_key_is_there_when_its_time_has_come_and_not_before),          \
        with(delayed_key_comes_once),                                          \
        with(deadline_has_come_at_the_nanosecond_and_not_one_before),          \
        with(get_alone_notices_what_is_due), with(delay_counts_from_the_call), \
        with(delay_of_nothing_or_less_is_an_add),                              \
        with(delay_of_less_than_nothing_is_no_deadline),                       \
        with(clock_set_back_makes_waits_longer_and_leaves_ready_keys_alone),   \
        with(deadline_that_passed_unseen_is_in_force_after_going_back),        \
        with(later_of_two_deadlines_is_dropped),                               \
        with(earlier_of_two_deadlines_stays),                                  \
        with(deadlines_are_compared_and_not_delays),                           \
        with(key_that_was_due_may_wait_again),                                 \
        with(keys_come_by_deadline_while_others_join),                         \
        with(keys_due_in_one_step_come_in_the_order_of_their_deadlines),       \
        with(equal_deadlines_come_in_the_order_of_arrival),                    \
        with(key_that_asks_again_keeps_its_place_among_equals),                \
        with(key_moved_to_an_earlier_deadline_comes_after_its_equals),         \
        with(key_that_was_due_before_an_add_stands_before_it),                 \
        with(key_that_was_due_before_a_done_stands_before_the_dirty_one),      \
        with(many_keys_with_random_delays_all_come_in_order),                  \
        with(deadline_that_comes_while_held_hands_the_key_out_after_done),     \
        with(done_notices_that_the_key_is_due),                                \
        with(deadline_that_comes_while_ready_changes_nothing),                 \
        with(deadline_that_comes_while_dirty_changes_nothing),                 \
        with(add_does_not_end_the_wait),                                       \
        with(delay_of_nothing_does_not_end_the_wait),                          \
        with(done_does_not_end_the_wait), with(delayed_key_is_copied),         \
        with(delayed_keys_of_all_lengths_come_back_whole),                     \
        with(bad_keys_cannot_wait),                                            \
        with(delay_without_end_ends_with_time_itself),                         \
        with(delay_beyond_the_end_of_time_ends_there),                         \
        with(earlier_deadline_replaces_one_without_end),                       \
        with(delays_can_be_told_when_time_is_below_zero),                      \
        with(shutdown_drops_what_waits),                                       \
        with(delay_after_shutdown_is_refused),                                 \
        with(key_that_was_due_before_the_shutdown_is_handed_out),              \
        with(ready_key_outlives_the_deadline_that_is_dropped),                 \
        with(held_key_whose_deadline_was_dropped_is_gone_after_done),          \
        with(second_shutdown_finds_nothing_that_waits),                        \
        with(drain_drops_what_waits_and_does_not_wait_for_it),                 \
        with(any_number_of_keys_can_wait_without_anyone_blocking),             \
        with(get_sleeps_until_a_key_is_due),                                   \
        with(get_that_sleeps_learns_of_an_earlier_deadline),                   \
        with(get_that_sleeps_learns_that_its_deadline_was_moved),              \
        with(get_that_sleeps_without_limit_learns_of_a_first_deadline),        \
        with(add_wakes_a_get_that_sleeps_until_a_deadline),                    \
        with(get_sleeps_without_limit_when_a_key_waits_for_ever),              \
        with(get_gives_up_at_its_time_on_the_queues_clock),                    \
        with(get_gives_up_before_a_later_deadline_which_stays),                \
        with(key_due_at_the_moment_a_get_would_give_up_is_handed_out),         \
        with(key_due_when_time_has_jumped_over_a_timeout_is_handed_out),       \
        with(timeout_beyond_the_end_of_time_does_not_end_at_once),             \
        with(shutdown_wakes_a_get_that_sleeps_until_a_deadline),               \
        with(interrupt_ends_a_get_that_sleeps_until_a_deadline),               \
        with(destroy_sends_a_get_home_that_sleeps_until_a_deadline),           \
        with(each_deadline_wakes_a_get_of_its_own)

#endif
