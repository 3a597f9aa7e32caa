/* SPDX-License-Identifier: MIT */
/* test_pace.c: what if a key is added all the time? Debounced, it runs when the
 * adds have ended; throttled, it runs now and then. */
#include "asked.h"

static wq_added
debounce(struct timed *t, int64_t quiet_ns, int64_t max_wait_ns)
{
    return add_how(t->q,
                   WQ_ADD(.debounce_ns = quiet_ns, .max_wait_ns = max_wait_ns),
                   "foo");
}

static wq_added
throttle(struct timed *t, int64_t span_ns)
{
    return add_how(t->q, WQ_ADD(.throttle_ns = span_ns), "foo");
}

/* ---- debounce ----------------------------------------------------------- */

/* O-53 O-56 */
TEST(debounced_key_runs_once_so_long_after_the_last_add)
{
    struct timed *t = *state;

    assert_added(debounce(t, 3 * S, 0), WQ_ADDED_SCHEDULED);
    for (int i = 0; i < 5; i++) {
        step(t, 2 * S);
        assert_none_due(t);
        assert_added(debounce(t, 3 * S, 0), WQ_ADDED_LATER);
    }
    assert_due_in(t, "foo", 3 * S);
    step(t, HOUR);
    assert_none_due(t);
    assert_counts(t->q, 1, 0);
}

/* O-53: two adds at one moment are one. */
TEST(debounced_key_added_twice_at_one_moment_keeps_its_time)
{
    struct timed *t = *state;

    (void)debounce(t, 3 * S, 0);
    assert_added(debounce(t, 3 * S, 0), WQ_ADDED_KEPT);
    assert_due_in(t, "foo", 3 * S);
}

/* O-53 */
TEST(debounced_key_runs_no_later_than_the_longest_wait_after_the_first)
{
    struct timed *t = *state;

    (void)debounce(t, 3 * S, 5 * S);
    step(t, 2 * S);
    assert_added(debounce(t, 3 * S, 5 * S), WQ_ADDED_LATER); /* 5 s: the end */
    step(t, 2 * S);
    assert_added(debounce(t, 3 * S, 5 * S), WQ_ADDED_KEPT);
    assert_due_in(t, "foo", S);
    step(t, HOUR);
    assert_none_due(t);
}

/* O-53: a new series has a new first. */
TEST(longest_wait_counts_from_the_first_of_each_series)
{
    struct timed *t = *state;

    for (int i = 0; i < 3; i++) {
        (void)debounce(t, 3 * S, 5 * S);
        step(t, 2 * S);
        (void)debounce(t, 3 * S, 5 * S);
        assert_due_in(t, "foo", 3 * S);
    }
}

/* O-53: a longest wait below the quiet time ends it. */
TEST(longest_wait_may_be_shorter_than_the_quiet_time)
{
    struct timed *t = *state;

    (void)debounce(t, 3 * S, S);
    assert_due_in(t, "foo", S);
}

/* O-53 */
TEST(debounce_of_a_ready_key_leaves_it_ready)
{
    struct timed *t = *state;

    add(t->q, "foo");
    assert_added(debounce(t, S, 0), WQ_ADDED_MERGED);
    assert_states(t->q, "foo", WQ_STATE_READY);
    work_on(t->q, "foo");
    step(t, HOUR);
    assert_none_due(t);
}

/* O-53: what it is due to is not lost. */
TEST(debounced_key_that_became_due_stays_so)
{
    struct timed *t = *state;

    (void)debounce(t, S, 0);
    step(t, S);
    assert_added(debounce(t, S, 0), WQ_ADDED_MERGED);
    work_on(t->q, "foo");
    step(t, HOUR);
    assert_none_due(t);
}

/* O-53: held, it waits; it runs again after both the wait and done. */
TEST(debounce_of_a_held_key_waits_meanwhile)
{
    struct timed *t = *state;

    add(t->q, "foo");
    wq_item *foo = take_key(t->q, "foo");
    assert_added(debounce(t, S, 0), WQ_ADDED_SCHEDULED);
    assert_states(t->q, "foo", WQ_STATE_HELD | WQ_STATE_WAITING);
    step(t, S);
    assert_states(t->q, "foo", WQ_STATE_HELD | WQ_STATE_DIRTY);
    assert_added(debounce(t, S, 0), WQ_ADDED_MERGED);
    finish(t->q, foo);
    work_on(t->q, "foo");
}

/* O-53: a plain add does not wait, and the series goes on. */
TEST(plain_add_of_a_debounced_key_runs_it_now_and_again)
{
    struct timed *t = *state;

    (void)debounce(t, 3 * S, 0);
    add(t->q, "foo");
    work_on(t->q, "foo");
    step(t, 2 * S);
    assert_added(debounce(t, 3 * S, 0), WQ_ADDED_LATER);
    assert_due_in(t, "foo", 3 * S);
}

/* O-53: a deadline of another kind is not put off. */
TEST(debounce_does_not_put_off_a_deadline_asked_for_otherwise)
{
    struct timed *t = *state;

    add_after(t, "foo", 2 * S);
    assert_added(debounce(t, 3 * S, 0), WQ_ADDED_KEPT);
    step(t, S);
    assert_added(debounce(t, 3 * S, 0), WQ_ADDED_KEPT);
    assert_due_in(t, "foo", S);
}

/* O-53: but brought forward, as any deadline is (L5). */
TEST(debounce_that_ends_earlier_than_a_deadline_takes_its_place)
{
    struct timed *t = *state;

    add_after(t, "foo", 5 * S);
    assert_added(debounce(t, 3 * S, 0), WQ_ADDED_SOONER);
    assert_due_in(t, "foo", 3 * S);
    step(t, HOUR);
    assert_none_due(t);
}

/* O-53: and the other way round. */
TEST(deadline_earlier_than_a_debounce_takes_its_place)
{
    struct timed *t = *state;

    (void)debounce(t, 3 * S, 0);
    add_after(t, "foo", S);
    step(t, S / 2);
    assert_added(debounce(t, 3 * S, 0), WQ_ADDED_KEPT);
    assert_due_in(t, "foo", S / 2);
}

/* O-53 O-51 */
TEST(debounced_key_has_the_highest_priority_of_its_series)
{
    struct timed        *t = *state;
    const wq_add_options high = {
        .size = sizeof high, .priority = 4, .debounce_ns = S};

    (void)debounce(t, S, 0);
    (void)add_how(t->q, &high, "foo");
    (void)debounce(t, S, 0);
    step(t, S);
    work_on_at(t->q, "foo", 4);
}

/* O-53 O-57 O-58 */
TEST(debounced_key_can_be_taken_back)
{
    struct timed *t = *state;

    (void)debounce(t, S, 2 * S);
    assert_err(wq_remove(t->q, wq_str("foo")), WQ_OK);
    step(t, S);
    assert_none_due(t);
    (void)debounce(t, S, 2 * S);
    assert_err(wq_cancel_after(t->q, wq_str("foo")), WQ_OK);
    step(t, S);
    assert_none_due(t);
}

/* O-53: whoever sleeps learns of the new time. */
TEST(get_that_sleeps_until_a_debounced_key_sleeps_as_long_as_that)
{
    struct timed *t = *state;

    (void)debounce(t, 3 * S, 0);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    step(t, 2 * S);
    (void)debounce(t, 3 * S, 0);
    step(t, S);
    worker_await_blocked(w);
    await_sleepers(t, 1);
    step(t, 2 * S);
    assert_err(worker_join(w), WQ_OK);
}

/* ---- throttle ----------------------------------------------------------- */

/* O-54 O-56 */
TEST(throttled_key_runs_at_once_and_then_after_the_quiet_time)
{
    struct timed *t = *state;

    assert_added(throttle(t, 10 * S), WQ_ADDED_NEW);
    work_on(t->q, "foo");
    step(t, S);
    assert_added(throttle(t, 10 * S), WQ_ADDED_SCHEDULED);
    assert_added(throttle(t, 10 * S), WQ_ADDED_KEPT);
    step(t, S);
    assert_added(throttle(t, 10 * S), WQ_ADDED_KEPT);
    assert_due_in(t, "foo", 8 * S);
    step(t, HOUR);
    assert_none_due(t);
}

/* O-54: the time counts from the hand-out, not from the add. */
TEST(quiet_time_begins_with_the_hand_out)
{
    struct timed *t = *state;

    (void)throttle(t, 10 * S);
    step(t, 7 * S);
    wq_item *foo = take_key(t->q, "foo");
    step(t, 2 * S);
    finish(t->q, foo);
    assert_added(throttle(t, 10 * S), WQ_ADDED_SCHEDULED);
    assert_due_in(t, "foo", 8 * S);
}

/* O-54 */
TEST(throttled_key_runs_at_once_after_the_quiet_time)
{
    struct timed *t = *state;

    (void)throttle(t, 10 * S);
    work_on(t->q, "foo");
    step(t, 10 * S);
    assert_added(throttle(t, 10 * S), WQ_ADDED_NEW);
    work_on(t->q, "foo");
}

/* O-54: each hand-out begins a quiet time of its own. */
TEST(throttled_key_that_is_added_all_the_time_runs_once_in_each_time)
{
    struct timed *t = *state;
    int           runs = 0;

    for (int i = 0; i < 100; i++) {
        wq_item *item;
        (void)throttle(t, 10 * S);
        if (wq_get_within(t->q, 0, &item) == WQ_OK) {
            runs++;
            finish(t->q, item);
        }
        step(t, S);
    }
    assert_int_equal(runs, 10);
}

/* O-54 */
TEST(throttled_key_that_is_ready_is_not_throttled_again)
{
    struct timed *t = *state;

    (void)throttle(t, 10 * S);
    assert_added(throttle(t, 10 * S), WQ_ADDED_MERGED);
    work_on(t->q, "foo");
    step(t, HOUR);
    assert_none_due(t);
}

/* O-54: while it is held, it is quiet already. */
TEST(throttled_key_added_while_held_waits)
{
    struct timed *t = *state;

    (void)throttle(t, 10 * S);
    wq_item *foo = take_key(t->q, "foo");
    assert_added(throttle(t, 10 * S), WQ_ADDED_SCHEDULED);
    assert_states(t->q, "foo", WQ_STATE_HELD | WQ_STATE_WAITING);
    finish(t->q, foo);
    assert_due_in(t, "foo", 10 * S);
}

/* O-54: only adds with this option wait. */
TEST(plain_add_of_a_quiet_key_runs_it_now)
{
    struct timed *t = *state;

    (void)throttle(t, 10 * S);
    work_on(t->q, "foo");
    add(t->q, "foo");
    work_on(t->q, "foo");
}

/* O-54: each run of a plain add in the quiet time, and after it. */
TEST(plain_run_neither_prolongs_nor_begins_a_quiet_time)
{
    struct timed *t = *state;

    (void)throttle(t, 10 * S);
    work_on(t->q, "foo");
    for (int i = 1; i < 10; i++) {
        step(t, S);
        add(t->q, "foo");
        work_on(t->q, "foo");
    }
    assert_added(throttle(t, 10 * S), WQ_ADDED_SCHEDULED);
    assert_due_in(t, "foo", S);
    step(t, 10 * S);
    add(t->q, "foo");
    work_on(t->q, "foo");
    assert_added(throttle(t, 10 * S), WQ_ADDED_NEW);
}

/* O-54: the throttled add waits on, and its run has a quiet time. */
TEST(plain_run_beside_a_throttled_wait_changes_nothing)
{
    struct timed *t = *state;

    (void)throttle(t, 10 * S);
    work_on(t->q, "foo");
    (void)throttle(t, 10 * S);
    step(t, S);
    add(t->q, "foo");
    work_on(t->q, "foo");
    assert_due_in(t, "foo", 9 * S);
    step(t, S);
    assert_added(throttle(t, 10 * S), WQ_ADDED_SCHEDULED);
    assert_due_in(t, "foo", 9 * S);
}

/* O-54: a failure of a throttled run. */
TEST(retry_of_a_throttled_key_does_not_prolong_its_quiet_time)
{
    struct timed *t = *state;

    (void)throttle(t, 10 * S);
    wq_item *foo = take_key(t->q, "foo");
    assert_err(wq_add_rate_limited(t->q, foo->key), WQ_OK);
    finish(t->q, foo);
    step(t, S);
    work_on(t->q, "foo");
    assert_added(throttle(t, 10 * S), WQ_ADDED_SCHEDULED);
    assert_due_in(t, "foo", 9 * S);
}

/* O-54: a key that nothing is asked for is not there for anybody to see. */
TEST(quiet_key_has_no_state)
{
    struct timed *t = *state;

    (void)throttle(t, 10 * S);
    work_on(t->q, "foo");
    assert_states(t->q, "foo", 0);
    assert_int_equal(counts_of(t->q).waiting, 0);
    assert_err(wq_remove(t->q, wq_str("foo")), WQ_ENOTFOUND);
    assert_err(wq_cancel_after(t->q, wq_str("foo")), WQ_ENOTFOUND);
    assert_added(throttle(t, 10 * S), WQ_ADDED_SCHEDULED); /* quiet as ever */
}

/* O-54 O-57: a hand-out that was taken back did not happen. */
TEST(throttled_key_that_is_removed_before_its_hand_out_is_not_quiet)
{
    struct timed *t = *state;

    (void)throttle(t, 10 * S);
    assert_err(wq_remove(t->q, wq_str("foo")), WQ_OK);
    assert_added(throttle(t, 10 * S), WQ_ADDED_NEW);
    work_on(t->q, "foo");
    assert_added(throttle(t, 10 * S), WQ_ADDED_SCHEDULED);
    assert_err(wq_remove(t->q, wq_str("foo")), WQ_OK);
    step(t, 5 * S);
    assert_added(throttle(t, 10 * S), WQ_ADDED_SCHEDULED);
    assert_due_in(t, "foo", 5 * S);
}

/* O-54 */
TEST(shutdown_is_not_held_up_by_quiet_keys)
{
    struct timed *t = timed_create(WQ_CONFIG(.waiting = WQ_WAITING_KEEP));

    (void)throttle(t, 10 * S);
    work_on(t->q, "foo");
    assert_err(wq_shutdown_with_drain_within(t->q, 0), WQ_OK);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* O-54 O-15: but what such a key was asked for meanwhile is kept. */
TEST(throttled_key_that_waits_outlives_the_shutdown_if_told_to)
{
    struct timed *t = timed_create(WQ_CONFIG(.waiting = WQ_WAITING_KEEP));

    (void)throttle(t, 10 * S);
    work_on(t->q, "foo");
    (void)throttle(t, 10 * S);
    assert_err(wq_shutdown_with_drain_within(t->q, 0), WQ_ETIMEDOUT);
    step(t, 10 * S);
    work_on(t->q, "foo");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* O-54: with ages kept, time is read in another way. */
TEST(throttle_works_where_ages_are_kept)
{
    struct timed *t = timed_create(WQ_CONFIG(.ages = true));

    step(t, S);
    (void)throttle(t, 10 * S);
    work_on(t->q, "foo");
    (void)throttle(t, 10 * S);
    assert_due_in(t, "foo", 10 * S);
    timed_destroy(t);
}

/* O-54 O-52: a plain add that merges ends the deadline, and the key is quiet
 * as before after the hand-out. */
TEST(throttled_key_that_is_merged_runs_now_and_is_quiet_again)
{
    struct timed *t = *state;

    (void)throttle(t, 10 * S);
    work_on(t->q, "foo");
    step(t, S);
    (void)throttle(t, 10 * S);
    (void)add_how(t->q, WQ_ADD(.waiting = WQ_IF_WAITING_MERGE), "foo");
    step(t, S);
    work_on(t->q, "foo");
    assert_none_due(t);
    assert_added(throttle(t, 10 * S), WQ_ADDED_SCHEDULED);
    assert_due_in(t, "foo", 10 * S);
}

/* O-54 O-52 O-15: a run that serves other adds only does not end it. */
TEST(quiet_time_lasts_on_a_clock_below_zero)
{
    wq_clock *clock = wq_clock_fake_create(-1000 * S);
    wq_queue *q = NULL;

    assert_non_null(clock);
    assert_err(wq_create(WQ_CONFIG(.clock = clock), &q), WQ_OK);
    assert_added(add_how(q, WQ_ADD(.throttle_ns = 10 * S), "foo"),
                 WQ_ADDED_NEW);
    work_on(q, "foo");
    assert_err(wq_add_after_str(q, "foo", 5 * S), WQ_OK);
    assert_added(add_how(q, WQ_ADD(.waiting = WQ_IF_WAITING_MERGE), "foo"),
                 WQ_ADDED_NEW);
    work_on(q, "foo");
    assert_added(add_how(q, WQ_ADD(.throttle_ns = 10 * S), "foo"),
                 WQ_ADDED_SCHEDULED);
    wq_destroy(q);
    wq_clock_destroy(clock);
}

WQ_TESTS(
    with_time(debounced_key_runs_once_so_long_after_the_last_add),
    with_time(debounced_key_added_twice_at_one_moment_keeps_its_time),
    with_time(
        debounced_key_runs_no_later_than_the_longest_wait_after_the_first),
    with_time(longest_wait_counts_from_the_first_of_each_series),
    with_time(longest_wait_may_be_shorter_than_the_quiet_time),
    with_time(debounce_of_a_ready_key_leaves_it_ready),
    with_time(debounced_key_that_became_due_stays_so),
    with_time(debounce_of_a_held_key_waits_meanwhile),
    with_time(plain_add_of_a_debounced_key_runs_it_now_and_again),
    with_time(debounce_does_not_put_off_a_deadline_asked_for_otherwise),
    with_time(debounce_that_ends_earlier_than_a_deadline_takes_its_place),
    with_time(deadline_earlier_than_a_debounce_takes_its_place),
    with_time(debounced_key_has_the_highest_priority_of_its_series),
    with_time(debounced_key_can_be_taken_back),
    with_time(get_that_sleeps_until_a_debounced_key_sleeps_as_long_as_that),
    with_time(throttled_key_runs_at_once_and_then_after_the_quiet_time),
    with_time(quiet_time_begins_with_the_hand_out),
    with_time(throttled_key_runs_at_once_after_the_quiet_time),
    with_time(throttled_key_that_is_added_all_the_time_runs_once_in_each_time),
    with_time(throttled_key_that_is_ready_is_not_throttled_again),
    with_time(throttled_key_added_while_held_waits),
    with_time(plain_add_of_a_quiet_key_runs_it_now),
    with_time(plain_run_neither_prolongs_nor_begins_a_quiet_time),
    with_time(plain_run_beside_a_throttled_wait_changes_nothing),
    with_time(retry_of_a_throttled_key_does_not_prolong_its_quiet_time),
    with_time(quiet_key_has_no_state),
    with_time(throttled_key_that_is_removed_before_its_hand_out_is_not_quiet),
    test(shutdown_is_not_held_up_by_quiet_keys),
    test(throttled_key_that_waits_outlives_the_shutdown_if_told_to),
    test(throttle_works_where_ages_are_kept),
    with_time(throttled_key_that_is_merged_runs_now_and_is_quiet_again),
    test(quiet_time_lasts_on_a_clock_below_zero));
