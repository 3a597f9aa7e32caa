/* SPDX-License-Identifier: MIT */
/* test_remove.c: can what was asked for be taken back? wq_remove() takes back
 * all of it, wq_cancel_after() the deadline alone. */
#include "asked.h"

#include <wq/limiter.h>

static wq_err
take_back(struct timed *t, const char *key)
{
    return wq_remove(t->q, wq_str(key));
}

static wq_err
cancel(struct timed *t, const char *key)
{
    return wq_cancel_after(t->q, wq_str(key));
}

/* ---- remove ------------------------------------------------------------- */

/* O-57 */
TEST(removed_key_is_not_handed_out_and_the_others_keep_their_places)
{
    struct timed *t = *state;

    add(t->q, "a");
    add(t->q, "b");
    add_at(t->q, 5, "high");
    add(t->q, "c");
    assert_err(take_back(t, "b"), WQ_OK);
    assert_err(take_back(t, "high"), WQ_OK);

    assert_int_equal(wq_len(t->q), 2);
    assert_int_equal(depth_at(t->q, 5), 0);
    assert_int_equal(counts_of(t->q).removed, 2);
    assert_states(t->q, "b", 0);
    work_on(t->q, "a");
    work_on(t->q, "c");
    assert_none_due(t);
}

/* O-57 */
TEST(removed_key_can_be_added_again_at_the_tail)
{
    struct timed *t = *state;

    add(t->q, "a");
    add(t->q, "b");
    assert_err(take_back(t, "a"), WQ_OK);
    add(t->q, "a");
    work_on(t->q, "b");
    work_on(t->q, "a");
}

/* O-57 */
TEST(key_that_is_not_there_cannot_be_removed)
{
    struct timed *t = *state;

    assert_err(take_back(t, "nobody"), WQ_ENOTFOUND);
    add(t->q, "a");
    assert_err(take_back(t, "a"), WQ_OK);
    assert_err(take_back(t, "a"), WQ_ENOTFOUND);
    add(t->q, "a");
    work_on(t->q, "a");
    assert_err(take_back(t, "a"), WQ_ENOTFOUND);
    assert_int_equal(counts_of(t->q).removed, 1);
}

/* O-57 */
TEST(waiting_key_that_is_removed_does_not_come)
{
    struct timed *t = *state;

    add_after(t, "a", S);
    assert_err(take_back(t, "a"), WQ_OK);
    assert_states(t->q, "a", 0);
    assert_int_equal(counts_of(t->q).waiting, 0);
    assert_int_equal(counts_of(t->q).removed, 0); /* it never became READY */
    step(t, S);
    assert_none_due(t);
}

/* O-57: all at once. */
TEST(ready_key_that_waits_too_is_removed_as_a_whole)
{
    struct timed *t = *state;

    add_after(t, "a", S);
    add(t->q, "a");
    assert_err(take_back(t, "a"), WQ_OK);
    assert_none_due(t);
    step(t, S);
    assert_none_due(t);
    assert_int_equal(counts_of(t->q).removed, 1);
}

/* O-57 */
TEST(held_key_cannot_be_removed)
{
    struct timed *t = *state;

    add(t->q, "a");
    wq_item *a = take_key(t->q, "a");
    assert_err(take_back(t, "a"), WQ_ESTATE);
    finish(t->q, a);
    assert_none_due(t);
}

/* O-57 */
TEST(dirty_key_that_is_removed_does_not_come_again)
{
    struct timed *t = *state;

    add(t->q, "a");
    wq_item *a = take_key(t->q, "a");
    add_at(t->q, 3, "a");
    add_after(t, "a", S);
    assert_err(take_back(t, "a"), WQ_OK);
    assert_states(t->q, "a", WQ_STATE_HELD);
    assert_err(take_back(t, "a"), WQ_ESTATE);
    assert_key(a, "a");
    finish(t->q, a);
    assert_none_due(t);
    step(t, S);
    assert_none_due(t);
    assert_int_equal(counts_of(t->q).removed, 1);
}

/* O-57: it can be asked for once more before done. */
TEST(dirty_key_that_is_removed_can_be_added_again)
{
    struct timed *t = *state;

    add(t->q, "a");
    wq_item *a = take_key(t->q, "a");
    add_at(t->q, 3, "a");
    assert_err(take_back(t, "a"), WQ_OK);
    add(t->q, "a");
    finish(t->q, a);
    work_on_at(t->q, "a", 0);
    assert_none_due(t);
}

/* O-57 */
TEST(limiter_remembers_a_key_that_is_removed)
{
    struct timed *t = *state;

    assert_err(wq_add_rate_limited(t->q, wq_str("a")), WQ_OK);
    assert_err(take_back(t, "a"), WQ_OK);
    assert_int_equal(wq_num_requeues(t->q, wq_str("a")), 1);
    assert_err(wq_forget(t->q, wq_str("a")), WQ_OK);
    assert_int_equal(wq_num_requeues(t->q, wq_str("a")), 0);
}

/* O-57: a key whose time has come is READY, whether anybody looked or not. */
TEST(key_that_has_become_due_is_removed_like_any_ready_one)
{
    struct timed *t = *state;

    add_after(t, "a", S);
    step(t, S);
    assert_err(cancel(t, "a"), WQ_ENOTFOUND);
    assert_err(take_back(t, "a"), WQ_OK);
    assert_none_due(t);
    assert_int_equal(counts_of(t->q).removed, 1);
}

/* O-57: shutdown changes nothing about it, and the drain learns of it. */
TEST(drain_ends_when_the_last_ready_key_is_removed)
{
    struct timed *t = *state;

    add(t->q, "a");
    struct worker *w = worker_drain(t->q);
    worker_await_blocked(w);
    assert_err(take_back(t, "a"), WQ_OK);
    assert_err(worker_join(w), WQ_OK);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* O-57 O-15: the gets that wait for what waits learn of it, too. */
TEST(gets_go_home_when_the_last_waiting_key_is_removed_after_shutdown)
{
    struct timed *t = timed_create(WQ_CONFIG(.waiting = WQ_WAITING_KEEP));

    add_after(t, "a", S);
    wq_shutdown(t->q);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    assert_err(take_back(t, "a"), WQ_OK);
    assert_err(worker_join(w), WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* O-57: long keys are not inside their records. */
TEST(long_keys_can_be_removed)
{
    static char   bytes[WQ_KEY_MAX];
    struct timed *t = *state;
    const wq_key  key = {bytes, sizeof bytes};

    assert_err(wq_add(t->q, key), WQ_OK);
    assert_err(wq_remove(t->q, key), WQ_OK);
    assert_err(wq_remove(t->q, key), WQ_ENOTFOUND);
    assert_none_due(t);
}

/* ---- cancel ------------------------------------------------------------- */

/* O-58 */
TEST(cancelled_deadline_does_not_come)
{
    struct timed *t = *state;

    add_after(t, "a", S);
    add_after(t, "b", 2 * S);
    assert_err(cancel(t, "a"), WQ_OK);
    assert_err(cancel(t, "a"), WQ_ENOTFOUND);
    assert_states(t->q, "a", 0);
    assert_due_in(t, "b", 2 * S);
    assert_none_due(t);
}

/* O-58 */
TEST(cancel_leaves_a_ready_key_ready)
{
    struct timed *t = *state;

    add_after(t, "a", S);
    add(t->q, "a");
    assert_err(cancel(t, "a"), WQ_OK);
    assert_states(t->q, "a", WQ_STATE_READY);
    work_on(t->q, "a");
    step(t, S);
    assert_none_due(t);
    assert_int_equal(counts_of(t->q).removed, 0);
}

/* O-58 */
TEST(cancel_leaves_a_held_key_held_and_dirty)
{
    struct timed *t = *state;

    add(t->q, "a");
    wq_item *a = take_key(t->q, "a");
    add(t->q, "a");
    add_after(t, "a", S);
    assert_err(cancel(t, "a"), WQ_OK);
    assert_states(t->q, "a", WQ_STATE_HELD | WQ_STATE_DIRTY);
    finish(t->q, a);
    work_on(t->q, "a");
    step(t, S);
    assert_none_due(t);
}

/* O-58 */
TEST(key_without_a_deadline_has_nothing_to_cancel)
{
    struct timed *t = *state;

    assert_err(cancel(t, "nobody"), WQ_ENOTFOUND);
    add(t->q, "a");
    assert_err(cancel(t, "a"), WQ_ENOTFOUND);
    wq_item *a = take_key(t->q, "a");
    assert_err(cancel(t, "a"), WQ_ENOTFOUND);
    add(t->q, "a");
    assert_err(cancel(t, "a"), WQ_ENOTFOUND);
    finish(t->q, a);
    work_on(t->q, "a");
}

/* O-58: a backoff is a deadline; the limiter still counts it. */
TEST(backoff_can_be_cancelled)
{
    struct timed *t = *state;

    assert_err(wq_add_rate_limited(t->q, wq_str("a")), WQ_OK);
    assert_err(cancel(t, "a"), WQ_OK);
    assert_int_equal(wq_num_requeues(t->q, wq_str("a")), 1);
    step(t, HOUR);
    assert_none_due(t);
}

/* O-58 D-16: whoever slept until it sleeps on, without limit. */
TEST(get_that_sleeps_until_a_deadline_that_is_cancelled_sleeps_on)
{
    struct timed *t = *state;

    add_after(t, "a", S);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    assert_err(cancel(t, "a"), WQ_OK);
    step(t, S);
    worker_await_blocked(w);
    add(t->q, "b");
    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "b");
}

WQ_TESTS(
    with_time(removed_key_is_not_handed_out_and_the_others_keep_their_places),
    with_time(removed_key_can_be_added_again_at_the_tail),
    with_time(key_that_is_not_there_cannot_be_removed),
    with_time(waiting_key_that_is_removed_does_not_come),
    with_time(ready_key_that_waits_too_is_removed_as_a_whole),
    with_time(held_key_cannot_be_removed),
    with_time(dirty_key_that_is_removed_does_not_come_again),
    with_time(dirty_key_that_is_removed_can_be_added_again),
    with_time(limiter_remembers_a_key_that_is_removed),
    with_time(key_that_has_become_due_is_removed_like_any_ready_one),
    with_time(drain_ends_when_the_last_ready_key_is_removed),
    test(gets_go_home_when_the_last_waiting_key_is_removed_after_shutdown),
    with_time(long_keys_can_be_removed),
    with_time(cancelled_deadline_does_not_come),
    with_time(cancel_leaves_a_ready_key_ready),
    with_time(cancel_leaves_a_held_key_held_and_dirty),
    with_time(key_without_a_deadline_has_nothing_to_cancel),
    with_time(backoff_can_be_cancelled),
    with_time(get_that_sleeps_until_a_deadline_that_is_cancelled_sleeps_on));
