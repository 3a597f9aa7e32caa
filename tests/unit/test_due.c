/* SPDX-License-Identifier: MIT */
/* test_due.c: does a key that is debounced or throttled run when it should?
 *
 * Scenes with exact times. `now` is a number in the call.
 */
#include "unit/core_fixture.h"

static wq_added
debounce(const char *s, int64_t now, int64_t span, int64_t max_wait)
{
    return add_how(HOW(.kind = WQ__ADD_DEBOUNCE, .now = now, .span = span,
                       .max_wait = max_wait),
                   s, 0);
}

static wq_added
throttle(const char *s, int64_t now, int64_t span)
{
    return add_how(HOW(.kind = WQ__ADD_THROTTLE, .now = now, .span = span), s,
                   0);
}

/* Handed out and done, all at once. */
static void
run_at(int64_t now, const char *s)
{
    done_at(now, get_at(now, s));
}

/* It is not READY one moment before, and is then. */
static void
expect_due(const char *s, int64_t at)
{
    pass_to(at - 1);
    assert_false(look_at(s, at - 1).states & WQ_STATE_READY);
    pass_to(at);
    assert_true(look_at(s, at).states & WQ_STATE_READY);
}

/* ---- debounce ----------------------------------------------------------- */

/* O-53 */
TEST(debounced_key_runs_after_the_last_of_a_series)
{
    assert_int_equal(debounce("foo", 0, 10, 0), WQ_ADDED_SCHEDULED);
    assert_int_equal(debounce("foo", 5, 10, 0), WQ_ADDED_LATER);
    assert_int_equal(debounce("foo", 5, 10, 0), WQ_ADDED_KEPT);
    assert_int_equal(debounce("foo", 14, 10, 0), WQ_ADDED_LATER);
    assert_int_equal(debounce("foo", 14, 3, 0), WQ_ADDED_SOONER);
    assert_int_equal(debounce("foo", 14, 10, 0), WQ_ADDED_LATER);
    expect_due("foo", 24);
    assert_int_equal(debounce("foo", 30, 10, 0), WQ_ADDED_MERGED);
    run_at(30, "foo");
    expect_states("foo", 0);
    assert_int_equal(f.core.paces.live, 0);
}

/* O-53 */
TEST(debounced_key_runs_no_later_than_max_wait_after_the_first)
{
    assert_int_equal(debounce("foo", 0, 10, 25), WQ_ADDED_SCHEDULED);
    assert_int_equal(debounce("foo", 9, 10, 25), WQ_ADDED_LATER);
    assert_int_equal(debounce("foo", 18, 10, 25), WQ_ADDED_LATER);
    expect_deadline("foo", 25);
    assert_int_equal(debounce("foo", 24, 10, 25), WQ_ADDED_KEPT);
    expect_due("foo", 25);
    run_at(25, "foo");
    assert_int_equal(debounce("foo", 30, 10, 25), WQ_ADDED_SCHEDULED);
    expect_due("foo", 40);
}

TEST(max_wait_shorter_than_the_debounce_counts_at_once)
{
    assert_int_equal(debounce("foo", 0, 100, 20), WQ_ADDED_SCHEDULED);
    expect_due("foo", 20);
}

TEST(debounce_without_end_waits_for_ever)
{
    assert_int_equal(debounce("foo", 5, INT64_MAX, 0), WQ_ADDED_SCHEDULED);
    pass_to(INT64_MAX - 1);
    expect_states("foo", WQ_STATE_WAITING);
}

/* O-53: it has a deadline of its own beside the loan. */
TEST(debounced_key_that_is_held_runs_again)
{
    add("foo", 0, WQ_ADDED_NEW);
    wq_item *item = get("foo");
    assert_int_equal(debounce("foo", 0, 10, 0), WQ_ADDED_SCHEDULED);
    pass_to(10);
    expect_states("foo", WQ_STATE_HELD | WQ_STATE_DIRTY);
    done_at(10, item);
    run_at(10, "foo");
}

/* L5: the earlier deadline stays, and serves. */
TEST(debounce_does_not_put_off_a_deadline_that_is_none_of_its_own)
{
    add_at("foo", 20, WQ_ADDED_SCHEDULED);
    assert_int_equal(debounce("foo", 0, 30, 0), WQ_ADDED_KEPT);
    assert_int_equal(debounce("foo", 15, 30, 0), WQ_ADDED_KEPT);
    expect_due("foo", 20);
}

/* The series can be put off up to the deadline that was there before. */
TEST(debounce_before_a_later_deadline_is_a_series_up_to_that)
{
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(debounce("foo", 0, 10, 0), WQ_ADDED_SOONER);
    assert_int_equal(debounce("foo", 5, 10, 0), WQ_ADDED_LATER);
    expect_deadline("foo", 15);
    assert_int_equal(debounce("foo", 14, 100, 0), WQ_ADDED_LATER);
    expect_due("foo", 50);
}

/* L5: an add_after() that was served by a series' deadline goes on being. */
TEST(debounce_is_not_put_off_beyond_a_deadline_it_serves)
{
    assert_int_equal(debounce("foo", 0, 10, 0), WQ_ADDED_SCHEDULED);
    add_at("foo", 12, WQ_ADDED_KEPT);
    add_at("foo", 40, WQ_ADDED_KEPT);
    assert_int_equal(debounce("foo", 9, 10, 0), WQ_ADDED_LATER);
    expect_due("foo", 12);
}

/* O-16: its deadline was not set because it failed. */
TEST(debounce_takes_the_place_of_a_backoff)
{
    back_off("foo", 50);
    assert_int_equal(debounce("foo", 0, 10, 0), WQ_ADDED_SOONER);
    expect_states("foo", WQ_STATE_WAITING);
    expect_due("foo", 10);
}

/* O-16 O-53: while the key is HELD, too. */
TEST(debounce_leaves_a_respected_backoff_alone)
{
    f.core.respect = true;
    back_off("foo", 50);
    assert_int_equal(debounce("foo", 0, 10, 0), WQ_ADDED_KEPT);
    expect_states("foo", WQ_STATE_WAITING | WQ_STATE_BACKOFF);
    expect_due("foo", 50);
    pass_to(50);
    wq_item *item = get("foo");
    back_off("foo", 90);
    assert_int_equal(debounce("foo", 60, 10, 0), WQ_ADDED_KEPT);
    done(item);
    expect_states("foo", WQ_STATE_WAITING | WQ_STATE_BACKOFF);
    expect_due("foo", 90);
}

/* O-16 O-54 */
TEST(throttle_leaves_a_respected_backoff_alone)
{
    f.core.respect = true;
    assert_int_equal(throttle("foo", 0, 20), WQ_ADDED_NEW);
    wq_item *item = get("foo");
    back_off("foo", 50);
    done(item);
    assert_int_equal(throttle("foo", 5, 20), WQ_ADDED_KEPT);
    expect_states("foo", WQ_STATE_WAITING | WQ_STATE_BACKOFF);
    expect_due("foo", 50);
}

/* O-54: adds with the other option are not throttled. */
TEST(debounce_does_not_care_whether_the_key_is_left_alone)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    run_at(0, "foo");
    assert_int_equal(debounce("foo", 5, 10, 0), WQ_ADDED_SCHEDULED);
    expect_due("foo", 15);
    run_at(20, "foo");
    assert_int_equal(throttle("foo", 30, 100), WQ_ADDED_SCHEDULED);
    expect_due("foo", 100);
}

TEST(debounce_raises_the_priority_of_its_deadline)
{
    assert_int_equal(debounce("foo", 0, 10, 0), WQ_ADDED_SCHEDULED);
    assert_int_equal(
        add_how(HOW(.kind = WQ__ADD_DEBOUNCE, .span = 10, .priority = 3), "foo",
                0),
        WQ_ADDED_RAISED);
    pass_to(10);
    assert_int_equal(get_at(10, "foo")->priority, 3);
}

/* ---- throttle ----------------------------------------------------------- */

/* O-54: from the hand-out, not from the add. */
TEST(throttled_key_is_left_alone_from_the_hand_out_on)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    assert_int_equal(throttle("foo", 10, 100), WQ_ADDED_MERGED);
    run_at(50, "foo");
    expect_states("foo", 0);
    assert_int_equal(throttle("foo", 60, 100), WQ_ADDED_SCHEDULED);
    assert_int_equal(throttle("foo", 70, 100), WQ_ADDED_KEPT);
    expect_due("foo", 150);
    run_at(170, "foo");
    assert_int_equal(throttle("foo", 269, 100), WQ_ADDED_SCHEDULED);
    expect_due("foo", 270);
    run_at(270, "foo");
    pass_to(370);
    assert_int_equal(f.core.recs.live, 0);
    assert_int_equal(f.core.paces.live, 0);
    assert_int_equal(throttle("foo", 370, 100), WQ_ADDED_NEW);
}

/* O-54 */
TEST(throttled_key_that_is_held_waits_too)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    wq_item *item = get_at(0, "foo");
    assert_int_equal(throttle("foo", 10, 100), WQ_ADDED_SCHEDULED);
    expect_states("foo", WQ_STATE_HELD | WQ_STATE_WAITING);
    done_at(20, item);
    expect_due("foo", 100);
}

TEST(throttled_key_held_for_longer_is_dirty_at_once)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    wq_item *item = get_at(0, "foo");
    pass_to(100);
    assert_int_equal(throttle("foo", 110, 100), WQ_ADDED_DIRTY);
    done_at(120, item);
    run_at(130, "foo");
    assert_int_equal(throttle("foo", 140, 100), WQ_ADDED_SCHEDULED);
    expect_due("foo", 230);
}

/* O-54: other adds do not wait, and their runs do not prolong the time. */
TEST(other_adds_of_a_throttled_key_are_not_throttled)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    run_at(0, "foo");
    add("foo", 0, WQ_ADDED_NEW);
    run_at(10, "foo");
    assert_int_equal(throttle("foo", 20, 100), WQ_ADDED_SCHEDULED);
    expect_due("foo", 100);
}

/* O-54: whether it is handed out before the time is over, or after. */
TEST(run_of_another_add_begins_no_quiet_time)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    run_at(0, "foo");
    add("foo", 0, WQ_ADDED_NEW);
    assert_int_equal(wq__core_next_deadline(&f.core), 100);
    pass_to(100);
    assert_int_equal(f.core.paces.live, 0);
    run_at(200, "foo");
    assert_int_equal(f.core.recs.live, 0);
    assert_int_equal(throttle("foo", 210, 100), WQ_ADDED_NEW);
}

TEST(run_of_a_dirty_key_begins_no_quiet_time)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    wq_item *item = get_at(0, "foo");
    add("foo", 0, WQ_ADDED_DIRTY);
    pass_to(150);
    done_at(160, item);
    run_at(200, "foo");
    assert_int_equal(throttle("foo", 210, 100), WQ_ADDED_NEW);
}

/* O-54: one run serves both adds. */
TEST(run_that_serves_a_throttled_add_too_begins_a_quiet_time)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    run_at(0, "foo");
    add("foo", 0, WQ_ADDED_NEW);
    assert_int_equal(throttle("foo", 20, 100), WQ_ADDED_MERGED);
    run_at(50, "foo");
    assert_int_equal(throttle("foo", 60, 100), WQ_ADDED_SCHEDULED);
    expect_due("foo", 150);
}

/* O-54 D-11: the throttled run waits on, and has a quiet time of its own. */
TEST(run_of_another_add_leaves_a_throttled_run_waiting)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    run_at(0, "foo");
    assert_int_equal(throttle("foo", 10, 100), WQ_ADDED_SCHEDULED);
    add("foo", 0, WQ_ADDED_NEW);
    run_at(20, "foo");
    expect_due("foo", 100);
    run_at(100, "foo");
    assert_int_equal(throttle("foo", 110, 100), WQ_ADDED_SCHEDULED);
    expect_due("foo", 200);
}

/* O-54 O-58 */
TEST(cancelled_throttled_run_begins_no_quiet_time)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    run_at(0, "foo");
    assert_int_equal(throttle("foo", 10, 100), WQ_ADDED_SCHEDULED);
    add("foo", 0, WQ_ADDED_NEW);
    assert_int_equal(cancel("foo", 20), WQ_OK);
    run_at(30, "foo");
    pass_to(100);
    assert_int_equal(throttle("foo", 100, 100), WQ_ADDED_NEW);
}

/* O-54: the deadline was asked for by another add. */
TEST(run_of_a_plain_deadline_begins_no_quiet_time)
{
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    assert_int_equal(throttle("foo", 0, 30), WQ_ADDED_NEW);
    run_at(0, "foo");
    assert_int_equal(throttle("foo", 10, 30), WQ_ADDED_SOONER);
    expect_due("foo", 30);
    run_at(30, "foo");
    add_at("foo", 50, WQ_ADDED_SCHEDULED);
    expect_due("foo", 50);
    run_at(50, "foo");
    pass_to(60);
    assert_int_equal(throttle("foo", 60, 30), WQ_ADDED_NEW);
}

/* O-52 O-54: the run that is put off serves the throttled add. */
TEST(throttled_run_that_is_put_off_begins_its_quiet_time_then)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    assert_int_equal(
        add_how(HOW(.kind = WQ__ADD_AT, .waiting = WQ_IF_WAITING_REPLACE),
                "foo", 50),
        WQ_ADDED_LATER);
    expect_due("foo", 50);
    run_at(60, "foo");
    assert_int_equal(throttle("foo", 70, 100), WQ_ADDED_SCHEDULED);
    expect_due("foo", 160);
}

/* O-16 O-54: so does the one that a respected backoff puts off. */
TEST(throttled_run_that_backs_off_begins_its_quiet_time_then)
{
    f.core.respect = true;
    add("foo", 0, WQ_ADDED_NEW);
    wq_item *item = get_at(0, "foo");
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_DIRTY);
    back_off("foo", 50);
    done_at(10, item);
    expect_due("foo", 50);
    run_at(60, "foo");
    assert_int_equal(throttle("foo", 70, 100), WQ_ADDED_SCHEDULED);
    expect_due("foo", 160);
}

/* O-16 O-54: it runs when the backoff ends, and is left alone from then on. */
TEST(throttle_is_remembered_while_a_respected_backoff_lasts)
{
    f.core.respect = true;
    back_off("foo", 50);
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_KEPT);
    pass_to(50);
    run_at(60, "foo");
    assert_int_equal(throttle("foo", 70, 100), WQ_ADDED_SCHEDULED);
    expect_due("foo", 160);
}

/* O-58: what was scheduled is cancelled; the key is still to be left alone. */
TEST(cancelled_throttle_leaves_the_key_alone_nevertheless)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    run_at(0, "foo");
    assert_int_equal(throttle("foo", 10, 100), WQ_ADDED_SCHEDULED);
    assert_int_equal(cancel("foo", 20), WQ_OK);
    expect_states("foo", 0);
    assert_int_equal(cancel("foo", 20), WQ_ENOTFOUND);
    assert_int_equal(take_back("foo", 20), WQ_ENOTFOUND);
    assert_int_equal(throttle("foo", 30, 100), WQ_ADDED_SCHEDULED);
    expect_due("foo", 100);
}

/* O-57 */
TEST(removed_throttled_key_is_forgotten_when_its_time_is_over)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    assert_int_equal(take_back("foo", 10), WQ_OK);
    assert_int_equal(f.core.recs.live, 0); /* it was never handed out */
    assert_int_equal(throttle("foo", 20, 100), WQ_ADDED_NEW);
    run_at(20, "foo");
    add("foo", 0, WQ_ADDED_NEW);
    assert_int_equal(take_back("foo", 30), WQ_OK);
    assert_int_equal(throttle("foo", 40, 100), WQ_ADDED_SCHEDULED);
    expect_due("foo", 120);
}

TEST(earlier_deadline_takes_the_place_of_a_throttled_one)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    run_at(0, "foo");
    assert_int_equal(throttle("foo", 10, 100), WQ_ADDED_SCHEDULED);
    add_at("foo", 50, WQ_ADDED_SOONER);
    add_at("foo", 120, WQ_ADDED_KEPT);
    expect_due("foo", 50);
}

/* A throttled add may change how long. */
TEST(last_throttle_says_how_long)
{
    assert_int_equal(throttle("foo", 0, 100), WQ_ADDED_NEW);
    assert_int_equal(throttle("foo", 0, 30), WQ_ADDED_MERGED);
    run_at(0, "foo");
    assert_int_equal(throttle("foo", 10, 7), WQ_ADDED_SCHEDULED);
    expect_due("foo", 30);
    run_at(30, "foo");
    pass_to(37);
    assert_int_equal(f.core.recs.live, 0);
}

/* there will be no add to throttle. */
TEST(shutdown_forgets_who_is_left_alone)
{
    char name[2] = "a";

    for (; name[0] < 'q'; name[0]++) {
        assert_int_equal(throttle(name, 0, 100 - name[0] % 7), WQ_ADDED_NEW);
        if (name[0] % 3)
            run_at(0, name);
        else
            assert_int_equal(take_back(name, 0), WQ_OK);
        if (name[0] % 4 == 0)
            add_at(name, 50 + name[0] % 5, WQ_ADDED_SCHEDULED);
    }
    const size_t waiting = wq__core_waiting(&f.core);
    assert_int_not_equal(f.core.quiet, 0);
    wq__core_shut_down(&f.core);
    expect_sound();
    assert_int_equal(f.core.quiet, 0);
    assert_int_equal(wq__core_waiting(&f.core), waiting);
    wq__core_drop_waiting(&f.core);
    assert_int_equal(counts_at(0).drops, waiting);
    assert_int_equal(f.core.recs.live, 0);
}

/* O-30: who is left alone has no deadline. */
TEST(end_of_a_quiet_time_is_an_event_but_no_deadline)
{
    char name[2] = "a";

    for (; name[0] < 'k'; name[0]++) {
        assert_int_equal(throttle(name, 0, 10 + name[0]), WQ_ADDED_NEW);
        run_at(0, name);
    }
    assert_int_equal(wq__core_next_deadline(&f.core), 10 + 'a');
    assert_int_equal(counts_at(0).next_ns, WQ_FOREVER);
    assert_int_equal(counts_at(0).waiting, 0);
    assert_true(wq__core_empty(&f.core));
    add_at("y", 300, WQ_ADDED_SCHEDULED);
    add_at("z", 200, WQ_ADDED_SCHEDULED);
    assert_int_equal(counts_at(0).next_ns, 200);
    assert_int_equal(counts_at(60).next_ns, 140);
    assert_int_equal(wq__core_next_deadline(&f.core), 10 + 'a');
}

/* ---- ages --------------------------------------------------------------- */

/* O-30 O-32 */
TEST(ages_are_exact)
{
    wq__core_fini(&f.core);
    open_with(NULL);
    wq__core_keep_ages(&f.core);
    assert_int_equal(add_how(HOW(.now = 10), "a", 0), WQ_ADDED_NEW);
    assert_int_equal(add_how(HOW(.now = 15), "a", 0), WQ_ADDED_MERGED);
    assert_int_equal(look_at("a", 30).ready_ns, 20);
    assert_int_equal(look_at("a", 30).held_ns, -1);
    wq_item *a = get_at(40, "a");
    assert_int_equal(wq__core_latency(a), 30);
    add_at("b", 50, WQ_ADDED_SCHEDULED);
    pass_to(70);
    assert_int_equal(look_at("b", 70).ready_ns, 20); /* since it was due */
    wq_item *b = get_at(80, "b");
    assert_int_equal(wq__core_latency(b), 30);
    assert_int_equal(add_how(HOW(.now = 90), "a", 0), WQ_ADDED_DIRTY);
    assert_int_equal(look_at("a", 100).ready_ns, 10);
    assert_int_equal(look_at("a", 100).held_ns, 60);
    assert_int_equal(counts_at(100).unfinished_ns, 60 + 20);
    assert_int_equal(counts_at(100).longest_ns, 60);

    int64_t work = 0;
    assert_int_equal(wq__core_done(&f.core, a, 110, &work), WQ_OK);
    assert_int_equal(work, 70);
    assert_int_equal(counts_at(110).longest_ns, 30);
    assert_int_equal(wq__core_latency(get_at(120, "a")), 30);
    done_at(120, b);
    assert_int_equal(counts_at(130).unfinished_ns, 10);
}

TEST(without_ages_nothing_is_said_of_them)
{
    add("a", 0, WQ_ADDED_NEW);
    get("a");
    add("b", 0, WQ_ADDED_NEW);
    assert_int_equal(look_at("a", 9).held_ns, -1);
    assert_int_equal(look_at("b", 9).ready_ns, -1);
    assert_int_equal(counts_at(9).unfinished_ns, -1);
    assert_int_equal(counts_at(9).longest_ns, -1);
}

WQ_TESTS(
    core_test(debounced_key_runs_after_the_last_of_a_series),
    core_test(debounced_key_runs_no_later_than_max_wait_after_the_first),
    core_test(max_wait_shorter_than_the_debounce_counts_at_once),
    core_test(debounce_without_end_waits_for_ever),
    core_test(debounced_key_that_is_held_runs_again),
    core_test(debounce_does_not_put_off_a_deadline_that_is_none_of_its_own),
    core_test(debounce_before_a_later_deadline_is_a_series_up_to_that),
    core_test(debounce_is_not_put_off_beyond_a_deadline_it_serves),
    core_test(debounce_takes_the_place_of_a_backoff),
    core_test(debounce_leaves_a_respected_backoff_alone),
    core_test(throttle_leaves_a_respected_backoff_alone),
    core_test(debounce_does_not_care_whether_the_key_is_left_alone),
    core_test(debounce_raises_the_priority_of_its_deadline),
    core_test(throttled_key_is_left_alone_from_the_hand_out_on),
    core_test(throttled_key_that_is_held_waits_too),
    core_test(throttled_key_held_for_longer_is_dirty_at_once),
    core_test(other_adds_of_a_throttled_key_are_not_throttled),
    core_test(run_of_another_add_begins_no_quiet_time),
    core_test(run_of_a_dirty_key_begins_no_quiet_time),
    core_test(run_that_serves_a_throttled_add_too_begins_a_quiet_time),
    core_test(run_of_another_add_leaves_a_throttled_run_waiting),
    core_test(cancelled_throttled_run_begins_no_quiet_time),
    core_test(run_of_a_plain_deadline_begins_no_quiet_time),
    core_test(throttled_run_that_is_put_off_begins_its_quiet_time_then),
    core_test(throttled_run_that_backs_off_begins_its_quiet_time_then),
    core_test(throttle_is_remembered_while_a_respected_backoff_lasts),
    core_test(cancelled_throttle_leaves_the_key_alone_nevertheless),
    core_test(removed_throttled_key_is_forgotten_when_its_time_is_over),
    core_test(earlier_deadline_takes_the_place_of_a_throttled_one),
    core_test(last_throttle_says_how_long),
    core_test(shutdown_forgets_who_is_left_alone),
    core_test(end_of_a_quiet_time_is_an_event_but_no_deadline),
    core_test(ages_are_exact), core_test(without_ages_nothing_is_said_of_them));
