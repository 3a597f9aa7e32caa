/* SPDX-License-Identifier: MIT */
/* test_add_with.c: what does an add do that says how?
 *
 * Batches, delays, limits, and the four answers to a key that is WAITING
 * already. Numbers PQ are controller-runtime's, whose rule for such keys is
 * WQ_IF_WAITING_MERGE; where the default differs, that is shown beside it.
 */
#include "asked.h"

#include <stdio.h>

#include <wq/limiter.h>
#include <wq/metrics.h>

#define MERGE .waiting = WQ_IF_WAITING_MERGE
#define REPLACE .waiting = WQ_IF_WAITING_REPLACE
#define DROP .waiting = WQ_IF_WAITING_IGNORE

/* ---- batches ------------------------------------------------------------ */

/* O-50 O-56 */
TEST(keys_of_a_batch_become_ready_in_the_order_given)
{
    struct timed *t = *state;
    const wq_key  keys[] = {wq_str("c"), wq_str("a"), wq_str("b")};
    wq_added      what[3];

    add(t->q, "first");
    assert_err(wq_add_with(t->q, WQ_ADD(.results = what), keys, 3), WQ_OK);

    for (int i = 0; i < 3; i++)
        assert_added(what[i], WQ_ADDED_NEW);
    work_on(t->q, "first");
    work_on(t->q, "c");
    work_on(t->q, "a");
    work_on(t->q, "b");
    assert_none_due(t);
}

/* O-50: more than are handled without memory. */
TEST(batch_may_be_of_any_length)
{
    enum { MANY = 1000 };
    struct timed *t = *state;
    uint64_t      numbers[MANY];
    wq_key        keys[MANY];
    wq_added      what[MANY];

    for (size_t i = 0; i < MANY; i++) {
        numbers[i] = i * 7919;
        keys[i] = wq_u64(&numbers[i]);
    }
    assert_err(
        wq_add_with(t->q, WQ_ADD(.priority = 1, .results = what), keys, MANY),
        WQ_OK);
    assert_int_equal(wq_len(t->q), MANY);
    for (size_t i = 0; i < MANY; i++) {
        wq_item *item = take(t->q);
        assert_memory_equal(item->key.data, &numbers[i], sizeof numbers[i]);
        assert_int_equal(item->priority, 1);
        assert_added(what[i], WQ_ADDED_NEW);
        finish(t->q, item);
    }
    assert_none_due(t);
}

/* O-50 O-56 */
TEST(key_named_twice_in_a_batch_is_added_once)
{
    struct timed *t = *state;
    const wq_key  keys[] = {wq_str("a"), wq_str("b"), wq_str("a")};
    wq_added      what[3];

    assert_err(wq_add_with(t->q, WQ_ADD(.results = what), keys, 3), WQ_OK);
    assert_added(what[0], WQ_ADDED_NEW);
    assert_added(what[2], WQ_ADDED_MERGED);
    work_on(t->q, "a");
    work_on(t->q, "b");
    assert_none_due(t);
}

/* O-50 O-56: each for itself. */
TEST(batch_says_what_it_did_to_each_key)
{
    struct timed *t = *state;
    const wq_key  keys[] = {wq_str("new"), wq_str("ready"), wq_str("low"),
                            wq_str("held"), wq_str("dirty")};
    wq_added      what[5];

    add(t->q, "held");
    add(t->q, "dirty");
    (void)take_key(t->q, "held");
    (void)take_key(t->q, "dirty");
    add(t->q, "dirty");
    add_at(t->q, -1, "low");
    add(t->q, "ready");
    assert_err(wq_add_with(t->q, WQ_ADD(.results = what), keys, 5), WQ_OK);

    assert_added(what[0], WQ_ADDED_NEW);
    assert_added(what[1], WQ_ADDED_MERGED);
    assert_added(what[2], WQ_ADDED_RAISED);
    assert_added(what[3], WQ_ADDED_DIRTY);
    assert_added(what[4], WQ_ADDED_MERGED);
}

/* O-50 */
TEST(no_options_are_a_plain_add)
{
    struct timed *t = *state;
    const wq_key  keys[] = {wq_str("a"), wq_str("b")};

    assert_err(wq_add_with(t->q, NULL, keys, 2), WQ_OK);
    assert_err(wq_add_with(t->q, WQ_ADD(.priority = 0), keys, 2), WQ_OK);
    work_on_at(t->q, "a", 0);
    work_on_at(t->q, "b", 0);
    assert_none_due(t);
    assert_counts(t->q, 2, 0);
}

/* O-50 */
TEST(no_keys_at_all_are_all_right)
{
    struct timed *t = *state;

    assert_err(wq_add_with(t->q, NULL, NULL, 0), WQ_OK);
    assert_err(wq_add_with(t->q, WQ_ADD(.after_ns = S), NULL, 0), WQ_OK);
    assert_counts(t->q, 0, 0);
    wq_shutdown(t->q);
    assert_err(wq_add_with(t->q, NULL, NULL, 0), WQ_ESHUTDOWN);
}

/* O-50 O-56 */
TEST(batch_with_a_bad_key_adds_none)
{
    static char   bytes[WQ_KEY_MAX + 1];
    struct timed *t = *state;
    const wq_key  empty[] = {wq_str("a"), wq_str(""), wq_str("b")};
    const wq_key  longer[] = {wq_str("a"), {bytes, sizeof bytes}};
    wq_added      what[3] = {WQ_ADDED_LATER, WQ_ADDED_LATER, WQ_ADDED_LATER};

    assert_err(wq_add_with(t->q, WQ_ADD(.results = what), empty, 3), WQ_EINVAL);
    assert_err(wq_add_with(t->q, WQ_ADD(.results = what), longer, 2),
               WQ_ETOOLONG);
    assert_added(what[0], WQ_ADDED_LATER);
    assert_none_due(t);
    assert_counts(t->q, 0, 0);
}

/* O-50 D-13: nor is it a retry. */
TEST(batch_after_shutdown_adds_none)
{
    struct timed *t = *state;

    wq_shutdown(t->q);
    assert_err(try_how(t->q, WQ_ADD(.priority = 1), "a"), WQ_ESHUTDOWN);
    assert_err(try_how(t->q, WQ_ADD(.after_ns = S), "a"), WQ_ESHUTDOWN);
    assert_err(try_how(t->q, WQ_ADD(.rate_limited = true), "a"), WQ_ESHUTDOWN);
    assert_err(try_how(t->q, WQ_ADD(.debounce_ns = S), "a"), WQ_ESHUTDOWN);
    assert_err(try_how(t->q, WQ_ADD(.throttle_ns = S), "a"), WQ_ESHUTDOWN);
    assert_int_equal(wq_num_requeues(t->q, wq_str("a")), 0);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    assert_counts(t->q, 0, 0);
}

/* ---- now and later ------------------------------------------------------ */

/* PQ-10 */
TEST(delay_for_a_ready_key_merges_into_it)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(MERGE), "foo");
    assert_added(add_how(t->q, WQ_ADD(MERGE, .after_ns = HOUR), "foo"),
                 WQ_ADDED_MERGED);
    work_on(t->q, "foo");

    assert_states(t->q, "foo", 0);
    assert_int_equal(counts_of(t->q).adds, 1);
}

/* PQ-10 D-11: the default runs it now, and again then. */
TEST(delay_for_a_ready_key_is_a_matter_of_its_own_unless_merged)
{
    struct timed *t = *state;

    add(t->q, "foo");
    assert_added(add_how(t->q, WQ_ADD(.after_ns = HOUR), "foo"),
                 WQ_ADDED_SCHEDULED);
    work_on(t->q, "foo");
    assert_due_in(t, "foo", HOUR);

    assert_int_equal(counts_of(t->q).adds, 2);
}

/* PQ-11 */
TEST(waiting_keys_are_not_in_the_depth)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(.after_ns = 60 * S), "foo");
    add(t->q, "baz");
    (void)add_how(t->q, WQ_ADD(.after_ns = 60 * S), "bar");
    add(t->q, "bal");

    assert_int_equal(wq_len(t->q), 2);
    assert_int_equal(depth_at(t->q, 0), 2);
    assert_int_equal(counts_of(t->q).waiting, 2);
}

/* PQ-12 PQ-45 Q-13: what is READY can still be taken. */
TEST(ready_keys_outlive_the_shutdown_and_delays_after_it_are_refused)
{
    struct timed *t = *state;

    add(t->q, "baz");
    wq_shutdown(t->q);
    assert_err(try_how(t->q, WQ_ADD(.after_ns = S), "foo"), WQ_ESHUTDOWN);
    work_on(t->q, "baz");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* PQ-44 PQ-45 Q-19 Q-20 Q-21: a second shutdown is harmless, a drain drains,
 * and done of what is not held is an error. */
TEST(queue_with_priorities_drains_and_shuts_down_twice)
{
    struct timed *t = *state;

    add_at(t->q, 2, "foo");
    assert_err(wq_done_key(t->q, wq_str("foo")), WQ_ESTATE);
    assert_err(wq_done_key(t->q, wq_str("bar")), WQ_ESTATE);
    assert_err(wq_shutdown_with_drain_within(t->q, 0), WQ_ETIMEDOUT);
    work_on_at(t->q, "foo", 2);
    wq_shutdown(t->q);
    wq_shutdown(t->q);
    assert_err(wq_shutdown_with_drain_within(t->q, 0), WQ_OK);
}

/* PQ-14 O-52 */
TEST(plain_add_ends_the_deadline_it_merges_with)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(MERGE, .after_ns = HOUR), "foo");
    assert_int_equal(wq_len(t->q), 0);
    assert_int_equal(depth_of(t->q), 0);
    assert_added(add_how(t->q, WQ_ADD(MERGE), "foo"), WQ_ADDED_NEW);
    assert_int_equal(wq_len(t->q), 1);
    assert_int_equal(depth_at(t->q, 0), 1);
    assert_states(t->q, "foo", WQ_STATE_READY);
    work_on(t->q, "foo");

    assert_int_equal(wq_len(t->q), 0);
    assert_int_equal(depth_of(t->q), 0);
    step(t, HOUR);
    assert_none_due(t);
    assert_counts(t->q, 1, 1);
}

/* PQ-14 D-11 O-52: the default leaves the deadline alone. */
TEST(plain_add_leaves_the_deadline_alone_unless_merged)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(.after_ns = HOUR), "foo");
    assert_added(add_how(t->q, WQ_ADD(.priority = 0), "foo"), WQ_ADDED_NEW);
    assert_states(t->q, "foo", WQ_STATE_READY | WQ_STATE_WAITING);
    work_on(t->q, "foo");
    assert_due_in(t, "foo", HOUR);
    assert_counts(t->q, 2, 1);
}

/* PQ-15 */
TEST(add_that_merges_with_a_deadline_brings_its_priority)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(MERGE, .after_ns = HOUR), "foo");
    assert_int_equal(depth_of(t->q), 0);
    (void)add_how(t->q, WQ_ADD(MERGE, .priority = 1), "foo");
    assert_int_equal(wq_len(t->q), 1);
    assert_int_equal(depth_at(t->q, 1), 1);
    work_on_at(t->q, "foo", 1);
    assert_int_equal(depth_of(t->q), 0);
    step(t, HOUR);
    assert_none_due(t);
}

/* PQ-15 O-51: and so does the deadline. */
TEST(deadline_that_is_merged_brings_its_priority)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(.priority = 4, .after_ns = HOUR), "foo");
    (void)add_how(t->q, WQ_ADD(MERGE, .priority = 1), "foo");
    work_on_at(t->q, "foo", 4);
}

/* PQ-15 D-11: the default has two runs, each with its own. */
TEST(priorities_of_a_run_now_and_of_one_later_are_their_own)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(.priority = 4, .after_ns = HOUR), "foo");
    add_at(t->q, 1, "foo");
    work_on_at(t->q, "foo", 1);
    step(t, HOUR);
    work_on_at(t->q, "foo", 4);
}

/* PQ-19 D-08 */
TEST(delayed_key_comes_at_its_time_and_not_before)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(.after_ns = S), "foo");
    assert_int_equal(counts_of(t->q).next_ns, S);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    step(t, S - 1);
    worker_await_blocked(w);
    step(t, 1);
    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
    assert_counts(t->q, 1, 1);
}

/* PQ-21 */
TEST(get_that_sleeps_is_woken_by_an_add_with_options)
{
    struct timed  *t = *state;
    struct worker *w = get_in_time(t, WQ_FOREVER);

    worker_await_blocked(w);
    add_at(t->q, -3, "foo");
    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
    assert_int_equal(t->item->priority, -3);
}

/* PQ-22 */
TEST(get_that_sleeps_is_not_woken_by_a_delay_but_by_what_merges_with_it)
{
    struct timed  *t = *state;
    struct worker *w = get_in_time(t, WQ_FOREVER);

    worker_await_blocked(w);
    (void)add_how(t->q, WQ_ADD(MERGE, .after_ns = 60 * S), "foo");
    await_sleepers(t, 1);
    worker_await_blocked(w);
    (void)add_how(t->q, WQ_ADD(MERGE), "foo");
    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
    assert_int_equal(counts_of(t->q).adds, 1);
    assert_int_equal(counts_of(t->q).waiting, 0);
}

/* PQ-23 D-05 */
TEST(deadlines_passed_in_one_step_come_in_their_order)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(.after_ns = S), "foo");
    (void)add_how(t->q, WQ_ADD(.after_ns = 200 * MS), "bar");
    step(t, S);
    work_on(t->q, "bar");
    work_on(t->q, "foo");
}

/* PQ-24 */
TEST(get_that_sleeps_is_sent_home_by_shutdown)
{
    struct timed  *t = *state;
    struct worker *w = get_in_time(t, WQ_FOREVER);

    worker_await_blocked(w);
    wq_shutdown(t->q);
    assert_err(worker_join(w), WQ_ESHUTDOWN);
    assert_null(t->item);
}

/* PQ-25 */
TEST(depth_grows_when_deadlines_pass_and_shrinks_again)
{
    struct timed *t = *state;

    for (int round = 0; round < 2; round++) {
        (void)add_how(t->q, WQ_ADD(.after_ns = 500 * MS), "foo");
        (void)add_how(t->q, WQ_ADD(.after_ns = 500 * MS), "bar");
        add(t->q, "baz");
        add(t->q, "bal");
        assert_int_equal(wq_len(t->q), 2);
        assert_int_equal(depth_at(t->q, 0), 2);
        step(t, S);
        assert_int_equal(wq_len(t->q), 4);
        assert_int_equal(depth_at(t->q, 0), 4);
        for (int i = 0; i < 4; i++)
            finish(t->q, take(t->q));
        assert_int_equal(wq_len(t->q), 0);
        assert_int_equal(depth_at(t->q, 0), 0);
    }
}

/* PQ-26 */
TEST(add_of_a_key_that_has_become_due_merges)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(MERGE, .after_ns = 50 * MS), "foo");
    step(t, 50 * MS);
    assert_int_equal(wq_len(t->q), 1);
    assert_int_equal(depth_at(t->q, 0), 1);
    assert_added(add_how(t->q, WQ_ADD(MERGE), "foo"), WQ_ADDED_MERGED);
    assert_int_equal(wq_len(t->q), 1);
    assert_int_equal(depth_at(t->q, 0), 1);
    work_on(t->q, "foo");
    assert_int_equal(depth_at(t->q, 0), 0);
    assert_int_equal(counts_of(t->q).adds, 1);
}

/* PQ-26: by default, too, since the deadline has passed. */
TEST(add_of_a_key_that_has_become_due_finds_no_deadline)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(.after_ns = 50 * MS), "foo");
    step(t, 50 * MS);
    assert_added(add_how(t->q, WQ_ADD(.priority = 0), "foo"), WQ_ADDED_MERGED);
    work_on(t->q, "foo");
    step(t, HOUR);
    assert_none_due(t);
}

/* PQ-29 C-07: nobody sleeps until a time that has passed, and with MERGE a key
 * is READY or WAITING and never both. */
TEST(no_sleep_is_for_nothing_and_no_key_is_there_twice)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(MERGE, .after_ns = S), "foo");
    assert_states(t->q, "foo", WQ_STATE_WAITING);
    step(t, 2 * S);
    wq_item *foo = NULL;
    assert_err(wq_get_within(t->q, WQ_FOREVER, &foo), WQ_OK);
    assert_int_equal(wq_clock_fake_waiters(t->clock), 0);
    (void)add_how(t->q, WQ_ADD(MERGE, .after_ns = S), "foo");
    assert_states(t->q, "foo", WQ_STATE_HELD | WQ_STATE_WAITING);
    (void)add_how(t->q, WQ_ADD(MERGE), "foo");
    assert_states(t->q, "foo", WQ_STATE_HELD | WQ_STATE_DIRTY);
    (void)add_how(t->q, WQ_ADD(MERGE, .after_ns = S), "foo");
    finish(t->q, foo);
    assert_states(t->q, "foo", WQ_STATE_READY);
    (void)add_how(t->q, WQ_ADD(MERGE, .after_ns = S), "foo");
    assert_states(t->q, "foo", WQ_STATE_READY);
}

/* PQ-43 Q-23: it goes to the tail. */
TEST(waiting_key_made_ready_goes_behind_those_that_are)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(MERGE, .after_ns = HOUR), "w");
    add(t->q, "a");
    add(t->q, "b");
    (void)add_how(t->q, WQ_ADD(MERGE), "w");

    work_on(t->q, "a");
    work_on(t->q, "b");
    work_on(t->q, "w");
}

/* PQ-43: those that become due do so by time, then by priority. */
TEST(due_keys_of_one_moment_leave_by_priority)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(.after_ns = S), "a");
    (void)add_how(t->q, WQ_ADD(.after_ns = S, .priority = 1), "b");
    (void)add_how(t->q, WQ_ADD(.after_ns = S), "c");
    step(t, S);
    work_on_at(t->q, "b", 1);
    work_on(t->q, "a");
    work_on(t->q, "c");
}

/* ---- the four policies -------------------------------------------------- */

static wq_added
add_then(struct timed *t, wq_if_waiting policy, int64_t after_ns)
{
    return add_how(t->q, WQ_ADD(.waiting = policy, .after_ns = after_ns),
                   "foo");
}

/* O-52 O-56 D-02 D-03: KEEP and MERGE: the earlier stays. */
TEST(of_two_deadlines_the_earlier_stays)
{
    static const wq_if_waiting policies[] = {WQ_IF_WAITING_KEEP,
                                             WQ_IF_WAITING_MERGE};

    for (int i = 0; i < 2; i++) {
        struct timed *t = timed_create(WQ_CONFIG(.order = NULL));

        assert_added(add_then(t, policies[i], 5 * S), WQ_ADDED_SCHEDULED);
        assert_added(add_then(t, policies[i], 9 * S), WQ_ADDED_KEPT);
        assert_added(add_then(t, policies[i], 5 * S), WQ_ADDED_KEPT);
        assert_added(add_then(t, policies[i], 3 * S), WQ_ADDED_SOONER);
        assert_due_in(t, "foo", 3 * S);
        step(t, HOUR);
        assert_none_due(t);
        timed_destroy(t);
    }
}

/* O-52 O-56 */
TEST(deadline_that_is_replaced_may_be_earlier_or_later)
{
    struct timed *t = *state;

    assert_added(add_then(t, WQ_IF_WAITING_REPLACE, 5 * S), WQ_ADDED_SCHEDULED);
    assert_added(add_then(t, WQ_IF_WAITING_REPLACE, 9 * S), WQ_ADDED_LATER);
    assert_int_equal(info_of(t->q, "foo").wait_ns, 9 * S);
    assert_added(add_then(t, WQ_IF_WAITING_REPLACE, 9 * S), WQ_ADDED_KEPT);
    assert_added(add_then(t, WQ_IF_WAITING_REPLACE, 2 * S), WQ_ADDED_SOONER);
    assert_due_in(t, "foo", 2 * S);
    step(t, HOUR);
    assert_none_due(t);
}

/* O-52 D-16: whoever slept until the earlier one sleeps on. */
TEST(get_that_sleeps_until_a_deadline_that_is_put_off_sleeps_on)
{
    struct timed *t = *state;

    (void)add_then(t, WQ_IF_WAITING_REPLACE, 5 * S);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    (void)add_then(t, WQ_IF_WAITING_REPLACE, 9 * S);
    step(t, 5 * S);
    worker_await_blocked(w);
    await_sleepers(t, 1);
    step(t, 4 * S);
    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "foo");
}

/* O-52 */
TEST(add_without_delay_that_replaces_runs_the_key_now_and_not_again)
{
    struct timed *t = *state;

    (void)add_then(t, WQ_IF_WAITING_KEEP, 5 * S);
    assert_added(add_then(t, WQ_IF_WAITING_REPLACE, 0), WQ_ADDED_NEW);
    work_on(t->q, "foo");
    step(t, HOUR);
    assert_none_due(t);
}

/* O-52: one run, when the last add says. */
TEST(delay_that_replaces_puts_off_a_ready_key)
{
    struct timed *t = *state;

    add(t->q, "foo");
    assert_added(add_then(t, WQ_IF_WAITING_REPLACE, 5 * S), WQ_ADDED_LATER);
    assert_none_due(t);
    assert_due_in(t, "foo", 5 * S);
}

/* O-52 O-56: it was READY, so its run is later than it was. */
TEST(key_that_is_put_off_is_later_whatever_its_deadline_was)
{
    struct timed *t = *state;

    for (int64_t delay_ns = 4 * S; delay_ns <= 6 * S; delay_ns += S) {
        add_after(t, "foo", 5 * S);
        add(t->q, "foo");
        assert_added(add_then(t, WQ_IF_WAITING_REPLACE, delay_ns),
                     WQ_ADDED_LATER);
        assert_none_due(t);
        assert_due_in(t, "foo", delay_ns);
        step(t, HOUR);
        assert_none_due(t);
    }
}

/* O-52 O-56 */
TEST(waiting_key_can_be_left_alone)
{
    struct timed *t = *state;

    assert_added(add_how(t->q, WQ_ADD(DROP, .after_ns = 5 * S), "foo"),
                 WQ_ADDED_SCHEDULED);
    assert_added(add_how(t->q, WQ_ADD(DROP), "foo"), WQ_ADDED_KEPT);
    assert_added(add_how(t->q, WQ_ADD(DROP, .after_ns = S), "foo"),
                 WQ_ADDED_KEPT);
    assert_added(add_how(t->q, WQ_ADD(DROP, .priority = 9), "foo"),
                 WQ_ADDED_KEPT);
    step(t, 5 * S - 1);
    assert_none_due(t);
    step(t, 1);
    work_on_at(t->q, "foo", 0);
}

/* O-52: of keys that do not wait, it says nothing. */
TEST(keys_that_do_not_wait_are_added_whatever_the_policy)
{
    static const wq_if_waiting all[] = {WQ_IF_WAITING_KEEP, WQ_IF_WAITING_MERGE,
                                        WQ_IF_WAITING_REPLACE,
                                        WQ_IF_WAITING_IGNORE};

    for (int i = 0; i < 4; i++) {
        struct timed *t = timed_create(WQ_CONFIG(.order = NULL));

        assert_added(add_then(t, all[i], 0), WQ_ADDED_NEW);
        assert_added(add_then(t, all[i], 0), WQ_ADDED_MERGED);
        wq_item *foo = take_key(t->q, "foo");
        assert_added(add_then(t, all[i], 0), WQ_ADDED_DIRTY);
        assert_added(add_then(t, all[i], 0), WQ_ADDED_MERGED);
        finish(t->q, foo);
        work_on(t->q, "foo");
        assert_none_due(t);
        timed_destroy(t);
    }
}

/* O-52: a held key that waits; ended, it comes again at done. */
TEST(held_key_that_waits_is_dirty_when_its_deadline_is_merged)
{
    struct timed *t = *state;

    add(t->q, "foo");
    wq_item *foo = take_key(t->q, "foo");
    (void)add_then(t, WQ_IF_WAITING_MERGE, HOUR);
    assert_added(add_then(t, WQ_IF_WAITING_MERGE, 0), WQ_ADDED_DIRTY);
    assert_states(t->q, "foo", WQ_STATE_HELD | WQ_STATE_DIRTY);
    finish(t->q, foo);
    work_on(t->q, "foo");
    step(t, HOUR);
    assert_none_due(t);
}

/* O-51 O-56: a deadline that serves may be worth more from now on. */
TEST(deadline_that_is_kept_can_be_raised)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(.after_ns = S), "foo");
    assert_added(add_how(t->q, WQ_ADD(.after_ns = HOUR, .priority = 3), "foo"),
                 WQ_ADDED_RAISED);
    step(t, S);
    work_on_at(t->q, "foo", 3);
    step(t, HOUR);
    assert_none_due(t);
}

/* ---- limits ------------------------------------------------------------- */

static struct timed *
create_limited(unsigned retry, unsigned max_retries)
{
    return timed_create(
        WQ_CONFIG(.limiter = wq_limiter_exponential(5 * MS, 1000 * S),
                  .retry = retry, .max_retries = max_retries));
}

static void
fail_often(struct timed *t, const char *key, int times)
{
    for (int i = 0; i < times; i++)
        (void)add_how(t->q, WQ_ADD(.rate_limited = true), key);
}

/* PQ-27 */
TEST(each_key_of_a_batch_waits_as_long_as_its_own_failures_say)
{
    struct timed *t = create_limited(0, 0);
    const wq_key  keys[] = {wq_str("foo"), wq_str("bar")};

    fail_often(t, "bar", 7);
    assert_err(wq_remove(t->q, wq_str("bar")), WQ_OK);
    assert_err(wq_add_with(t->q, WQ_ADD(.rate_limited = true), keys, 2), WQ_OK);
    assert_int_equal(counts_of(t->q).retries, 7 + 2);
    assert_due_in(t, "foo", 5 * MS);
    assert_due_in(t, "bar", 635 * MS);
    assert_int_equal(counts_of(t->q).adds, 2);
    timed_destroy(t);
}

/* PQ-40 */
TEST(of_a_delay_and_a_limit_the_shorter_counts)
{
    struct timed *t = create_limited(0, 0);

    (void)add_how(t->q, WQ_ADD(.rate_limited = true, .after_ns = HOUR), "a");
    (void)add_how(t->q, WQ_ADD(.rate_limited = true, .after_ns = MS), "b");
    (void)add_how(t->q, WQ_ADD(.rate_limited = true, .after_ns = 0), "c");
    assert_int_equal(info_of(t->q, "a").wait_ns, 5 * MS);
    assert_int_equal(info_of(t->q, "b").wait_ns, MS);
    assert_int_equal(info_of(t->q, "c").wait_ns, 5 * MS);
    assert_int_equal(wq_num_requeues(t->q, wq_str("b")), 1);
    assert_states(t->q, "a", WQ_STATE_WAITING | WQ_STATE_BACKOFF);
    timed_destroy(t);
}

/* PQ-40: a delay that is over is shorter than any; the limiter counts. */
TEST(negative_delay_with_a_limit_is_now)
{
    struct timed *t = create_limited(0, 0);

    for (unsigned i = 1; i <= 3; i++) {
        assert_added(
            add_how(t->q, WQ_ADD(.rate_limited = true, .after_ns = -S), "a"),
            WQ_ADDED_NEW);
        assert_states(t->q, "a", WQ_STATE_READY);
        assert_int_equal(wq_num_requeues(t->q, wq_str("a")), i);
        work_on(t->q, "a");
        assert_states(t->q, "a", 0);
    }
    assert_counts(t->q, 3, 3);
    timed_destroy(t);
}

/* PQ-41 R-03 */
TEST(limiter_is_asked_although_the_key_is_ready)
{
    struct timed *t = create_limited(0, 0);

    add(t->q, "k");
    for (int i = 0; i < 2; i++)
        assert_added(add_how(t->q, WQ_ADD(MERGE, .rate_limited = true), "k"),
                     WQ_ADDED_MERGED);
    assert_int_equal(wq_len(t->q), 1);
    assert_int_equal(wq_num_requeues(t->q, wq_str("k")), 2);
    assert_counts(t->q, 1, 2);
    work_on(t->q, "k");
    assert_states(t->q, "k", 0);
    timed_destroy(t);
}

/* PQ-46 L-12: the default limiter has a bucket besides. */
TEST(hundred_and_first_failure_at_one_moment_waits_for_the_bucket)
{
    struct timed *t = *state;
    char          text[16];

    for (int i = 0; i < 101; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        (void)add_how(t->q, WQ_ADD(.rate_limited = true), text);
    }
    assert_int_equal(info_of(t->q, "99").wait_ns, 5 * MS);
    assert_int_equal(info_of(t->q, "100").wait_ns, 100 * MS);
}

static wq_err
count_open(void *self, wq_queue *q, const char *name, void **handle)
{
    (void)q, (void)name, (void)handle;
    ++*(int *)self;
    return WQ_OK;
}

/* PQ-46 M-06 */
TEST(queue_without_a_name_has_no_metrics)
{
    int              opened = 0;
    const wq_metrics sink = {
        .size = sizeof sink, .self = &opened, .open = count_open};
    wq_queue *q = NULL;

    assert_err(wq_create(WQ_CONFIG(.metrics = &sink), &q), WQ_OK);
    wq_destroy(q);
    assert_err(wq_create(WQ_CONFIG(.metrics = &sink, .name = ""), &q), WQ_OK);
    wq_destroy(q);
    assert_int_equal(opened, 0);
    assert_err(wq_create(WQ_CONFIG(.metrics = &sink, .name = "test"), &q),
               WQ_OK);
    wq_destroy(q);
    assert_int_equal(opened, 1);
}

/* PQ-46: there may be any number of priorities. */
TEST(depths_are_told_for_every_priority_in_use)
{
    struct timed *t = *state;
    char          text[16];

    for (int i = 1; i <= 60; i++) {
        (void)snprintf(text, sizeof text, "%d", i);
        add_at(t->q, i, text);
    }
    for (int i = 1; i <= 60; i++)
        assert_int_equal(depth_at(t->q, i), 1);
}

/* O-50 O-17: all or none, and the limiter knows of none but the one that was
 * given up. */
TEST(batch_with_a_key_that_is_given_up_adds_none)
{
    struct timed *t = create_limited(0, 2);
    const wq_key  keys[] = {wq_str("a"), wq_str("b"), wq_str("c")};
    wq_added      what[3] = {WQ_ADDED_LATER, WQ_ADDED_LATER, WQ_ADDED_LATER};

    fail_often(t, "a", 1);
    fail_often(t, "b", 2);
    step(t, S);
    work_on(t->q, "a");
    work_on(t->q, "b");
    assert_err(wq_add_with(t->q, WQ_ADD(.rate_limited = true, .results = what),
                           keys, 3),
               WQ_EGIVENUP);
    assert_added(what[0], WQ_ADDED_LATER);
    assert_int_equal(wq_num_requeues(t->q, keys[0]), 1);
    assert_int_equal(wq_num_requeues(t->q, keys[1]), 0);
    assert_int_equal(wq_num_requeues(t->q, keys[2]), 0);
    assert_int_equal(counts_of(t->q).waiting, 0);
    assert_int_equal(counts_of(t->q).retries, 3);
    assert_int_equal(counts_of(t->q).drops, 1);
    timed_destroy(t);
}

/* O-50 O-16: WQ_RETRY_ONCE is asked for each key. */
TEST(batch_leaves_keys_alone_that_back_off_already)
{
    struct timed *t = create_limited(WQ_RETRY_ONCE, 0);
    const wq_key  keys[] = {wq_str("a"), wq_str("b")};
    wq_added      what[2];

    fail_often(t, "a", 1);
    assert_err(wq_add_with(t->q, WQ_ADD(.rate_limited = true, .results = what),
                           keys, 2),
               WQ_OK);
    assert_added(what[0], WQ_ADDED_KEPT);
    assert_added(what[1], WQ_ADDED_SCHEDULED);
    assert_int_equal(wq_num_requeues(t->q, keys[0]), 1);
    assert_int_equal(wq_num_requeues(t->q, keys[1]), 1);
    timed_destroy(t);
}

/* O-50 O-16: WQ_RETRY_FAILURES_ONLY, too. */
TEST(batch_asks_the_limiter_about_held_keys_only)
{
    struct timed *t = create_limited(WQ_RETRY_FAILURES_ONLY, 0);
    const wq_key  keys[] = {wq_str("a"), wq_str("b")};
    wq_added      what[2];

    add(t->q, "b");
    (void)take_key(t->q, "b");
    assert_err(wq_add_with(t->q, WQ_ADD(.rate_limited = true, .results = what),
                           keys, 2),
               WQ_OK);
    assert_added(what[0], WQ_ADDED_NEW);
    assert_added(what[1], WQ_ADDED_SCHEDULED);
    assert_int_equal(wq_num_requeues(t->q, keys[0]), 0);
    assert_int_equal(wq_num_requeues(t->q, keys[1]), 1);
    timed_destroy(t);
}

/* O-16 O-51: RESPECT holds for adds with options, and raises the backoff. */
TEST(add_with_a_priority_respects_a_backoff)
{
    struct timed *t = create_limited(WQ_RETRY_RESPECT, 0);

    fail_often(t, "a", 1);
    assert_added(add_how(t->q, WQ_ADD(.priority = 3), "a"), WQ_ADDED_RAISED);
    assert_added(add_how(t->q, WQ_ADD(.priority = 1), "a"), WQ_ADDED_KEPT);
    step(t, 5 * MS - 1);
    assert_none_due(t);
    step(t, 1);
    work_on_at(t->q, "a", 3);
    timed_destroy(t);
}

/* What a limiter was asked: + when, - undo, ! forget, and the key. */
struct spy {
    char log[64];
};

static void
spy_note(void *self, char what, wq_key key)
{
    struct spy  *spy = self;
    const size_t at = strlen(spy->log);

    (void)snprintf(spy->log + at, sizeof spy->log - at, "%c%.*s", what,
                   (int)key.len, (const char *)key.data);
}

static int64_t
spy_when(void *self, wq_key key)
{
    spy_note(self, '+', key);
    return 5 * MS;
}

static void
spy_undo(void *self, wq_key key)
{
    spy_note(self, '-', key);
}

static void
spy_forget(void *self, wq_key key)
{
    spy_note(self, '!', key);
}

/* One key fails again and again. */
static unsigned
spy_num_requeues(void *self, wq_key key)
{
    (void)self;
    return *(const char *)key.data == 'x' ? 5 : 0;
}

static struct timed *
create_spied(struct spy *spy, const wq_config *config)
{
    const wq_limiter_ops ops = {
        .size = sizeof ops,
        .when = spy_when,
        .undo = spy_undo,
        .forget = spy_forget,
        .num_requeues = spy_num_requeues,
    };
    wq_config mine = *config;

    *spy = (struct spy){.log = ""};
    mine.limiter = wq_limiter_create(&ops, spy);
    assert_err(wq_limiter_error(mine.limiter), WQ_OK);
    return timed_create(&mine);
}

/* O-50 O-17: what was asked before is taken back, the one given up is not. */
TEST(limiter_hears_what_was_asked_in_vain_before_one_was_given_up)
{
    struct spy    spy;
    struct timed *t = create_spied(&spy, WQ_CONFIG(.max_retries = 2));
    const wq_key  keys[] = {wq_str("a"), wq_str("x"), wq_str("c")};

    assert_err(wq_add_with(t->q, WQ_ADD(.rate_limited = true), keys, 3),
               WQ_EGIVENUP);
    assert_string_equal(spy.log, "+a!x-a");
    timed_destroy(t);
}

/* O-50 O-16: nor is it asked about a key that backs off. */
TEST(limiter_is_not_asked_about_keys_of_a_batch_that_back_off)
{
    struct spy    spy;
    struct timed *t = create_spied(&spy, WQ_CONFIG(.retry = WQ_RETRY_ONCE));
    const wq_key  keys[] = {wq_str("a"), wq_str("b")};

    assert_err(wq_add_rate_limited(t->q, keys[0]), WQ_OK);
    assert_err(wq_add_with(t->q, WQ_ADD(.rate_limited = true), keys, 2), WQ_OK);
    assert_string_equal(spy.log, "+a+b");
    timed_destroy(t);
}

/* O-50 O-55: all that was asked for a batch that did not fit. */
TEST(limiter_hears_that_a_batch_did_not_fit)
{
    struct spy    spy;
    struct timed *t = create_spied(&spy, WQ_CONFIG(.max_len = 1));
    const wq_key  keys[] = {wq_str("a"), wq_str("b")};

    assert_err(wq_add_with(t->q, WQ_ADD(.rate_limited = true), keys, 2),
               WQ_EFULL);
    assert_string_equal(spy.log, "+a+b-a-b");
    timed_destroy(t);
}

/* O-15 O-50 */
TEST(delay_that_ends_beyond_all_time_is_accepted)
{
    struct timed *t = *state;

    step(t, S);
    assert_added(add_then(t, WQ_IF_WAITING_KEEP, WQ_FOREVER),
                 WQ_ADDED_SCHEDULED);
    step(t, HOUR);
    assert_none_due(t);
    assert_added(add_then(t, WQ_IF_WAITING_KEEP, S), WQ_ADDED_SOONER);
    assert_due_in(t, "foo", S);
}

WQ_TESTS(
    with_time(keys_of_a_batch_become_ready_in_the_order_given),
    with_time(batch_may_be_of_any_length),
    with_time(key_named_twice_in_a_batch_is_added_once),
    with_time(batch_says_what_it_did_to_each_key),
    with_time(no_options_are_a_plain_add),
    with_time(no_keys_at_all_are_all_right),
    with_time(batch_with_a_bad_key_adds_none),
    with_time(batch_after_shutdown_adds_none),
    with_time(delay_for_a_ready_key_merges_into_it),
    with_time(delay_for_a_ready_key_is_a_matter_of_its_own_unless_merged),
    with_time(waiting_keys_are_not_in_the_depth),
    with_time(ready_keys_outlive_the_shutdown_and_delays_after_it_are_refused),
    with_time(queue_with_priorities_drains_and_shuts_down_twice),
    with_time(plain_add_ends_the_deadline_it_merges_with),
    with_time(plain_add_leaves_the_deadline_alone_unless_merged),
    with_time(add_that_merges_with_a_deadline_brings_its_priority),
    with_time(deadline_that_is_merged_brings_its_priority),
    with_time(priorities_of_a_run_now_and_of_one_later_are_their_own),
    with_time(delayed_key_comes_at_its_time_and_not_before),
    with_time(get_that_sleeps_is_woken_by_an_add_with_options),
    with_time(
        get_that_sleeps_is_not_woken_by_a_delay_but_by_what_merges_with_it),
    with_time(deadlines_passed_in_one_step_come_in_their_order),
    with_time(get_that_sleeps_is_sent_home_by_shutdown),
    with_time(depth_grows_when_deadlines_pass_and_shrinks_again),
    with_time(add_of_a_key_that_has_become_due_merges),
    with_time(add_of_a_key_that_has_become_due_finds_no_deadline),
    with_time(no_sleep_is_for_nothing_and_no_key_is_there_twice),
    with_time(waiting_key_made_ready_goes_behind_those_that_are),
    with_time(due_keys_of_one_moment_leave_by_priority),
    test(of_two_deadlines_the_earlier_stays),
    with_time(deadline_that_is_replaced_may_be_earlier_or_later),
    with_time(get_that_sleeps_until_a_deadline_that_is_put_off_sleeps_on),
    with_time(add_without_delay_that_replaces_runs_the_key_now_and_not_again),
    with_time(delay_that_replaces_puts_off_a_ready_key),
    with_time(key_that_is_put_off_is_later_whatever_its_deadline_was),
    with_time(waiting_key_can_be_left_alone),
    test(keys_that_do_not_wait_are_added_whatever_the_policy),
    with_time(held_key_that_waits_is_dirty_when_its_deadline_is_merged),
    with_time(deadline_that_is_kept_can_be_raised),
    test(each_key_of_a_batch_waits_as_long_as_its_own_failures_say),
    test(of_a_delay_and_a_limit_the_shorter_counts),
    test(negative_delay_with_a_limit_is_now),
    test(limiter_is_asked_although_the_key_is_ready),
    with_time(hundred_and_first_failure_at_one_moment_waits_for_the_bucket),
    test(queue_without_a_name_has_no_metrics),
    with_time(depths_are_told_for_every_priority_in_use),
    test(batch_with_a_key_that_is_given_up_adds_none),
    test(batch_leaves_keys_alone_that_back_off_already),
    test(batch_asks_the_limiter_about_held_keys_only),
    test(add_with_a_priority_respects_a_backoff),
    test(limiter_hears_what_was_asked_in_vain_before_one_was_given_up),
    test(limiter_is_not_asked_about_keys_of_a_batch_that_back_off),
    test(limiter_hears_that_a_batch_did_not_fit),
    with_time(delay_that_ends_beyond_all_time_is_accepted));
