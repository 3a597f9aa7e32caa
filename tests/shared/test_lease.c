/* SPDX-License-Identifier: MIT */
/* test_lease.c: for how long does a handle hold its keys, and what if it loses
 * them? Holds end by time: LEASE after the last renewal. */
#include "shared/fixture.h"

#include <semaphore.h>
#include <stdatomic.h>

#include "shared/shared.h"

/* ---- how long ------------------------------------------------------------ */

/* The hold is certain for so long, ends well, and none was lost. */
static void
finish_certain_hold(wq_item *item, int64_t left_ns)
{
    assert_int_equal(wq_hold_left(f.a, item), left_ns);
    assert_err(wq_done(f.a, item), WQ_OK);
    assert_int_equal(count_lost(), 0);
}

/* S-03 */
TEST(hold_is_certain_for_a_lease)
{
    wq_item *item = hold(f.a, "k");

    assert_int_equal(wq_hold_left(f.a, item), LEASE);
    pass(LEASE - 1);
    assert_int_equal(wq_hold_left(f.a, item), 1);
    pass(1);
    assert_int_equal(wq_hold_left(f.a, item), 0);
    pass(1);
    assert_int_equal(wq_hold_left(f.a, item), 0);
    assert_err(wq_done(f.a, item), WQ_ELOST);
    assert_int_equal(wq_hold_left(f.a, item), 0);
}

/* S-03 */
TEST(renewal_begins_a_new_lease)
{
    wq_item *item = hold(f.a, "k");

    pass(LEASE - 1);
    assert_err(wq_renew(f.a), WQ_OK);
    assert_int_equal(wq_hold_left(f.a, item), LEASE);
    pass(LEASE - 1);
    finish_certain_hold(item, 1);
}

/* S-03: a get is no renewal. */
TEST(hold_counts_from_the_last_renewal)
{
    pass(500);
    wq_item *item = hold(f.a, "k");

    assert_int_equal(wq_hold_left(f.a, item), LEASE - 500);
}

/* S-03: the clock steps while the reply is under way. */
TEST(hold_counts_from_the_sending_of_a_renewal)
{
    wq_item *item = hold(f.a, "k");

    pass(100);
    memory_store_fail(f.store, STORE_JUMP, 1, 300);
    assert_err(wq_renew(f.a), WQ_OK);
    assert_int_equal(wq_hold_left(f.a, item), LEASE - 300);
}

/* S-03: the first renewal is that of the opening. */
TEST(hold_counts_from_the_sending_of_the_opening)
{
    const struct shared_queue_options options = {.lease_ns = LEASE,
                                                 .manual_renew = true};

    leave_with(&f.a);
    memory_store_fail(f.store, STORE_JUMP, 1, 300);
    f.a = join_with(0, &options, WQ_CONFIG(.ages = true));
    add(f.a, "k");
    assert_int_equal(wq_hold_left(f.a, take_key(f.a, "k")), LEASE - 300);
}

/* S-03: a new session begins with the batch that reports the loss. */
TEST(hold_of_a_new_session_counts_from_the_sending)
{
    add(f.a, "k");
    memory_store_end_session(f.engines[0]);
    pass(100);
    memory_store_fail(f.store, STORE_JUMP, 1, 300);
    assert_int_equal(wq_hold_left(f.a, take_key(f.a, "k")), LEASE - 300);
}

/* S-03: a reconcile can begin a session, too. */
TEST(hold_of_a_reconciled_session_counts_from_the_sending)
{
    add(f.a, "k");
    plan_at(0, STORE_EIO_BEFORE, 1, 0);
    assert_err(wq_forget(f.a, wq_str("k")), WQ_EIO);
    memory_store_end_session(f.engines[0]);
    memory_store_plan(f.store, (struct store_plan){.fault = STORE_JUMP,
                                                   .nth = 1,
                                                   .jump_ns = 300,
                                                   .calls = STORE_RECONCILE});
    assert_int_equal(wq_hold_left(f.a, take_key(f.a, "k")), LEASE - 300);
}

/* S-03 */
TEST(renewal_whose_reply_came_too_late_is_a_loss)
{
    wq_item *item = hold(f.a, "k");

    memory_store_fail(f.store, STORE_JUMP, 1, LEASE);
    assert_err(wq_renew(f.a), WQ_ELOST);
    assert_int_equal(count_lost_of("k", item->fence), 1);
    assert_err(wq_done(f.a, item), WQ_ELOST);
    work_on(f.a, "k");
}

/* S-03 */
TEST(holds_without_a_lease_do_not_end)
{
    wq_item *item = hold(f.a, "k");

    pass(WQ_SECONDS(100000));
    assert_true(wq_hold_left(f.a, item) == WQ_FOREVER);
    assert_err(wq_renew(f.a), WQ_OK);
    assert_err(wq_done(f.a, item), WQ_OK);
    assert_int_equal(wq_hold_left(f.a, item), 0);
}

/* S-03 */
TEST(hold_of_another_handle_is_not_certain)
{
    wq_item *item = hold(f.a, "k");

    assert_int_equal(wq_hold_left(f.b, item), 0);
    assert_int_equal(wq_hold_left(f.a, NULL), 0);
    assert_err(wq_done(f.b, item), WQ_ESTATE);
    assert_err(wq_done(f.a, item), WQ_OK);
}

/* ---- losing -------------------------------------------------------------- */

/* S-03 S-04 */
TEST(key_of_a_lost_hold_goes_to_another_handle)
{
    wq_item       *old = hold(f.a, "k");
    const uint64_t fence = old->fence;

    pass(LEASE);
    assert_err(wq_renew(f.b), WQ_ELOST); /* its time has passed, too */
    wq_item *new = take_key(f.b, "k");
    assert_in_range(new->fence, fence + 1, UINT64_MAX);
    assert_int_equal(wq_hold_left(f.a, old), 0);
    assert_true(wq_hold_left(f.b, new) > 0);

    const wq_key_info before = info_of(f.c, "k");
    assert_err(wq_finish(f.a, old, wq_result_retry()), WQ_ELOST);
    const wq_key_info after = info_of(f.c, "k");
    expect_same(&before, &after);
    assert_int_equal(count_lost_of("k", fence), 1);
    assert_err(wq_finish(f.a, old, wq_result_done()), WQ_ESTATE);
    assert_err(wq_done(f.b, new), WQ_OK);
    assert_int_equal(stats_of(f.a).lost, 1);
    assert_int_equal(stats_of(f.b).lost, 0);
    assert_int_equal(count_lost(), 1);
}

/* S-04: the store compares the fence: the handle believes in its hold. */
TEST(store_refuses_a_finish_of_a_session_that_ended)
{
    static const wq_outcome outcomes[] = {WQ_RESULT_DONE,  WQ_RESULT_RETRY,
                                          WQ_RESULT_AFTER, WQ_RESULT_DROP,
                                          WQ_RESULT_BACK,  WQ_RESULT_BURY};

    for (size_t i = 0; i < sizeof outcomes / sizeof *outcomes; i++) {
        add(f.a, "k");
        wq_item *old = take_key(f.a, "k");
        memory_store_end_session(f.engines[0]);
        wq_item *new = take_key(f.b, "k");
        assert_int_equal(wq_hold_left(f.a, old), LEASE);

        const wq_key_info before = info_of(f.c, "k");
        const uint64_t    fence = old->fence;
        assert_err(wq_finish(f.a, old, (wq_result){.outcome = outcomes[i]}),
                   WQ_ELOST);
        const wq_key_info after = info_of(f.c, "k");
        expect_same(&before, &after);
        assert_int_equal(count_lost_of("k", fence), 1);
        assert_err(wq_finish(f.b, new, wq_result_done()), WQ_OK);
        assert_int_equal(states(f.c, "k"), 0);
    }
}

/* S-04: the same handle may get the key again: another hold. */
TEST(lost_item_does_not_end_the_next_hold_of_its_handle)
{
    wq_item *old = hold(f.a, "k");
    memory_store_end_session(f.engines[0]);
    wq_item *new = take_key(f.a, "k");

    assert_ptr_not_equal(old, new);
    assert_int_equal(count_lost_of("k", old->fence), 1);
    assert_err(wq_done(f.a, old), WQ_ELOST);
    assert_int_equal(states(f.c, "k"), WQ_STATE_HELD);
    assert_err(wq_done(f.a, new), WQ_OK);
    assert_int_equal(states(f.c, "k"), 0);
}

/* S-03: never revived. */
TEST(renewal_does_not_revive_lost_holds)
{
    wq_item *item = hold(f.a, "k");

    pass(LEASE);
    assert_err(wq_renew(f.a), WQ_ELOST);
    assert_int_equal(count_lost_of("k", item->fence), 1);
    assert_err(wq_renew(f.a), WQ_ELOST);
    assert_int_equal(count_lost(), 1);
    assert_int_equal(wq_hold_left(f.a, item), 0);
    add(f.a, "other"); /* begins a new session */
    assert_err(wq_renew(f.a), WQ_OK);
    assert_int_equal(wq_hold_left(f.a, item), 0);
    assert_err(wq_done(f.a, item), WQ_ELOST);
    assert_int_equal(count_lost(), 1);
}

/* S-03: all holds together, each is reported once. */
TEST(session_that_ends_loses_all_holds_once)
{
    wq_item *items[3];
    size_t   n;

    add(f.a, "x");
    add(f.a, "y");
    add(f.a, "z");
    assert_err(wq_get_many(f.a, items, 3, 0, &n), WQ_OK);
    assert_int_equal(n, 3);
    memory_store_end_session(f.engines[0]);
    assert_int_equal(wq_len(f.a), 3);
    assert_int_equal(count_lost(), 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(f.lost.at[i].handle, 0);
        assert_true(f.lost.at[i].ended_by_nul);
        assert_int_equal(wq_hold_left(f.a, items[i]), 0);
    }
    assert_err(wq_done_many(f.a, items, 3), WQ_ELOST);
    assert_int_equal(count_lost(), 3);
    assert_int_equal(stats_of(f.a).lost, 3);
    assert_int_equal(stats_of(f.a).holders, 0);
}

/* S-03 */
TEST(hold_that_is_done_is_not_lost)
{
    add(f.a, "k");
    work_on(f.a, "k");
    pass(LEASE);
    assert_err(wq_renew(f.a), WQ_ELOST);
    assert_int_equal(count_lost(), 0);
}

/* After half of it a renewal reaches the store, but its reply does not reach the
 * handle. */
static void
pass_lease_without_reply(void)
{
    pass(LEASE / 2);
    plan_at(0, STORE_EIO_AFTER, 1, STORE_RENEW);
    assert_err(wq_renew(f.a), WQ_EIO);
    pass(LEASE / 2);
}

/* S-03: the handle gives its holds up by its own clock, although a renewal
 * without a reply has reached the store. The store gives them back then, and the
 * handle works on. */
TEST(handle_works_on_after_renewals_without_replies)
{
    wq_item *item = hold(f.a, "k");

    pass_lease_without_reply();
    assert_int_equal(wq_hold_left(f.a, item), 0);
    assert_err(wq_renew(f.a), WQ_ELOST);
    assert_int_equal(count_lost_of("k", item->fence), 1);
    assert_err(wq_done(f.a, item), WQ_ELOST);

    item = take_key(f.a, "k");
    assert_int_equal(wq_hold_left(f.a, item), LEASE);
    assert_err(wq_renew(f.a), WQ_OK);
    assert_err(wq_done(f.a, item), WQ_OK);
    assert_int_equal(count_lost(), 1);
}

/* S-03: the same without a look at the hold between. */
TEST(get_after_the_lease_gives_a_hold_that_is_certain)
{
    pass_lease_without_reply();
    add(f.b, "k");
    wq_item *item = take_key(f.a, "k");
    finish_certain_hold(item, LEASE);
}

/* S-03: at the latest when the next call reaches the store. */
TEST(expired_hold_is_given_back_without_an_expiry)
{
    wq_item *item = hold(f.a, "k");

    pass_lease_without_reply();
    assert_int_equal(states(f.a, "k"), WQ_STATE_READY);
    assert_int_equal(count_lost_of("k", item->fence), 1);
    assert_int_equal(stats_of(f.b).expired, 0);
}

/* S-03: a second session may have begun while the answer that the first one has
 * ended was under way. */
static struct {
    const struct wq__engine_ops *ops;
    struct wq__engine_ops        hooked;
    wq_item                     *item;
} late;

static wq_err
renew_late(struct wq__engine *e)
{
    const wq_err err = late.ops->renew(e);

    e->ops = late.ops;
    if (wq_get_within(f.a, 0, &late.item))
        return WQ_EIO;
    return err;
}

/* S-03 */
TEST(late_loss_of_an_old_session_leaves_the_new_one)
{
    add(f.a, "k");
    late.ops = f.engines[0]->ops;
    late.hooked = *late.ops;
    late.hooked.renew = renew_late;
    memory_store_end_session(f.engines[0]);
    f.engines[0]->ops = &late.hooked;
    assert_err(wq_renew(f.a), WQ_OK);
    assert_int_equal(wq_hold_left(f.a, late.item), LEASE);
    assert_int_equal(count_lost(), 0);
    assert_err(wq_done(f.a, late.item), WQ_OK);
}

/* S-13 */
TEST(key_whose_holders_are_lost_becomes_dead)
{
    add(f.a, "k");
    for (int i = 0; i < 3; i++) {
        wq_item *item = take_key(f.a, "k");
        memory_store_end_session(f.engines[0]);
        assert_int_equal(wq_len(f.b), i < 2);
        assert_err(wq_done(f.a, item), WQ_ELOST);
    }
    assert_int_equal(states(f.b, "k"), WQ_STATE_DEAD);
    assert_int_equal(stats_of(f.b).expired, 3);
    assert_err(wq_revive_str(f.b, "k"), WQ_OK);
    work_on(f.b, "k");
}

/* S-03 S-07: what a handle gives back is no expiry. */
TEST(handle_that_is_destroyed_counts_no_expiry)
{
    add(f.a, "k");
    for (int i = 0; i < 5; i++) {
        (void)take_key(f.b, "k");
        leave_with(&f.b);
        f.b = join_with(1,
                        &(struct shared_queue_options){.lease_ns = LEASE,
                                                       .manual_renew = true},
                        WQ_CONFIG(.ages = true));
        assert_int_equal(states(f.a, "k"), WQ_STATE_READY);
    }
    assert_int_equal(count_lost(), 0);
}

/* ---- callbacks ----------------------------------------------------------- */

static void
use_handle(void *ctx, wq_key key, uint64_t fence)
{
    wq_queue *q = *(wq_queue **)ctx;

    assert_err(wq_add_str(q, "from on_lost"), WQ_OK);
    assert_int_equal(wq_len(q) > 0, 1);
    (void)wq_renew(q);
    note_lost(handle_names, key, fence);
}

/* S-03: without a lock. */
TEST(callback_of_a_loss_may_use_the_handle)
{
    const struct shared_queue_options options = {.lease_ns = LEASE,
                                                 .manual_renew = true};
    wq_queue                         *q = NULL;
    struct wq__engine                *e;

    assert_err(
        shared_queue_join(
            f.store, &options,
            WQ_CONFIG(.clock = f.clock, .on_lost = use_handle, .lost_ctx = &q),
            &e, &q),
        WQ_OK);
    add(q, "k");
    wq_item *item = take_key(q, "k");
    memory_store_end_session(e);
    assert_in_range(wq_len(q), 1, 2);
    assert_err(wq_done(q, item), WQ_ELOST);
    assert_int_equal(count_lost(), 1);

    item = take_key(q, "k");
    pass(LEASE);
    assert_err(wq_renew(q), WQ_ELOST);
    assert_err(wq_done(q, item), WQ_ELOST);
    assert_int_equal(count_lost(), 2);

    item = take_key(q, "from on_lost");
    pass(LEASE);
    assert_err(wq_done(q, item), WQ_ELOST);
    assert_int_equal(count_lost(), 3);
    wq_destroy(q);
}

static void
finish_inside(void *ctx, wq_key key, uint64_t fence)
{
    wq_item **item = ctx;

    assert_err(wq_done(f.a, *item), WQ_ELOST);
    assert_int_equal(wq_remove_str(f.a, "k"), WQ_OK);
    for (int i = 0; i < 20; i++) { /* items are used again */
        add(f.a, "x");
        work_on(f.a, "x");
    }
    assert_int_equal(key.len, 1);
    assert_memory_equal(key.data, "k", 2); /* still its bytes */
    note_lost(handle_names, key, fence);
}

/* S-03 S-04 */
TEST(item_may_be_done_while_its_loss_is_reported)
{
    const struct shared_queue_options options = {.lease_ns = LEASE,
                                                 .manual_renew = true};
    wq_item                          *item = NULL;

    leave_with(&f.a);
    assert_err(
        shared_queue_join(f.store, &options,
                          WQ_CONFIG(.clock = f.clock, .on_lost = finish_inside,
                                    .lost_ctx = &item),
                          &f.engines[0], &f.a),
        WQ_OK);
    add(f.a, "k");
    item = take_key(f.a, "k");
    memory_store_end_session(f.engines[0]);
    (void)wq_len(f.a);
    assert_int_equal(count_lost(), 1);
    assert_err(wq_done(f.a, item), WQ_ESTATE);
    add(f.a, "k");
    work_on(f.a, "k");
}

/* ---- next ---------------------------------------------------------------- */

/* S-04 */
TEST(next_goes_on_after_a_loss)
{
    wq_item *item;

    add(f.a, "k");
    item = take_key(f.a, "k");
    const uint64_t fence = item->fence;
    memory_store_end_session(f.engines[0]);
    (void)take_key(f.b, "k");
    add(f.b, "next");
    assert_err(wq_next(f.a, 0, &item), WQ_OK);
    assert_memory_equal(item->key.data, "next", 5);
    assert_int_equal(count_lost_of("k", fence), 1);

    memory_store_end_session(f.engines[0]);
    (void)take_key(f.b, "next");
    add(f.b, "third");
    assert_err(wq_next_with(f.a, wq_result_retry(), 0, &item), WQ_OK);
    assert_memory_equal(item->key.data, "third", 6);
    assert_int_equal(count_lost(), 2);

    pass(LEASE); /* the handle knows by itself */
    add(f.b, "fourth");
    (void)take_key(f.b, "k");
    assert_err(wq_next_with(f.a, wq_result_done(), 0, &item), WQ_OK);
    assert_int_equal(count_lost(), 5); /* two of b */
    assert_int_equal(stats_of(f.a).lost, 3);
}

/* ---- the thread ---------------------------------------------------------- */

/* S-03 */
TEST(thread_renews_after_a_third_of_the_lease)
{
    wq_item *item = hold(f.a, "k");

    for (int i = 0; i < 10; i++) {
        await_sleepers(THREADS_OF_LEASES);
        pass(LEASE / 3 - 1);
        await_sleepers(THREADS_OF_LEASES);
        assert_int_equal(wq_hold_left(f.a, item), LEASE - LEASE / 3 + 1);
        pass(1);
        await_sleepers(THREADS_OF_LEASES);
        assert_int_equal(wq_hold_left(f.a, item), LEASE);
    }
    assert_err(wq_done(f.a, item), WQ_OK);
    assert_int_equal(count_lost(), 0);
}

/* S-03: whenever the thread is scheduled for the first time. */
TEST(first_renewal_counts_from_the_opening)
{
    struct shared_queue_options options = {.lease_ns = LEASE};

    for (int i = 0; i < 20; i++) {
        leave_with(&f.a);
        f.a = join_with(0, &options, WQ_CONFIG(.ages = true));
        pass(LEASE / 3);
        await_sleepers(THREADS_OF_LEASES);
        const unsigned calls = memory_store_calls(f.store);
        assert_in_range(calls, 1, 1000);
        add(f.a, "k");
        wq_item *item = take_key(f.a, "k");
        assert_int_equal(wq_hold_left(f.a, item), LEASE);
        assert_err(wq_done(f.a, item), WQ_OK);
    }
}

/* S-03 */
TEST(two_renewals_may_fail)
{
    wq_item *item = hold(f.a, "k");

    await_sleepers(THREADS_OF_LEASES);
    plan_at(0, STORE_AWAY, 1, STORE_RENEW);
    plan_at(0, STORE_EIO_BEFORE, 2, STORE_RENEW);
    pass(LEASE / 3);
    await_sleepers(THREADS_OF_LEASES);
    assert_int_equal(wq_hold_left(f.a, item), LEASE * 2 / 3);
    pass(LEASE / 3);
    await_sleepers(THREADS_OF_LEASES);
    assert_int_equal(wq_hold_left(f.a, item), LEASE / 3);
    pass(LEASE / 3 - 1);
    await_sleepers(THREADS_OF_LEASES);
    finish_certain_hold(item, LEASE);
}

/* S-03 */
TEST(third_failed_renewal_loses_the_holds)
{
    wq_item *item = hold(f.a, "k");

    memory_store_plan(f.store, (struct store_plan){.fault = STORE_AWAY,
                                                   .engine = f.engines[0],
                                                   .calls = STORE_RENEW});
    for (int i = 0; i < 3; i++) {
        assert_int_equal(count_lost(), 0);
        await_sleepers(THREADS_OF_LEASES);
        pass(LEASE / 3);
    }
    await_sleepers(THREADS_OF_LEASES); /* the thread reports it, not a call */
    assert_int_equal(count_lost_of("k", item->fence), 1);
    memory_store_heal(f.store);
    work_on(f.b, "k");
    assert_err(wq_done(f.a, item), WQ_ELOST);
    assert_int_equal(count_lost(), 1);
}

/* The store does not answer the calls of handle a. */
static struct {
    const struct wq__engine_ops *inner;
    struct wq__engine_ops        ops;
    sem_t                        called, answered;
} hanging;

static void
hang(void)
{
    (void)sem_post(&hanging.called);
    while (sem_wait(&hanging.answered))
        ;
}

static wq_err
renew_when_answered(struct wq__engine *e)
{
    hang();
    return hanging.inner->renew(e);
}

static wq_err
reconcile_when_answered(struct wq__engine *e, const struct wq__known *known,
                        size_t n, bool *lost)
{
    hang();
    return hanging.inner->reconcile(e, known, n, lost);
}

static void
begin_to_hang(void)
{
    hanging.inner = f.engines[0]->ops;
    hanging.ops = *hanging.inner;
    hanging.ops.renew = renew_when_answered;
    hanging.ops.reconcile = reconcile_when_answered;
    (void)sem_init(&hanging.called, 0, 0);
    (void)sem_init(&hanging.answered, 0, 0);
    f.engines[0]->ops = &hanging.ops;
}

/* Handle a holds the item; its thread that renews is called by the store. */
static void
expect_report_of_loss(wq_item *item)
{
    pass(LEASE / 3);
    while (sem_wait(&hanging.called))
        ;
    await_sleepers(THREADS_OF_LEASES - 1);
    pass(LEASE - LEASE / 3 - 1);
    await_sleepers(THREADS_OF_LEASES - 1);
    assert_int_equal(count_lost(), 0);
    pass(1);
    await_sleepers(THREADS_OF_LEASES - 1); /* it sleeps again */
    assert_int_equal(count_lost_of("k", item->fence), 1);
    f.engines[0]->ops = hanging.inner;
    (void)sem_post(&hanging.answered);
    await_sleepers(THREADS_OF_LEASES);
    assert_err(wq_done(f.a, item), WQ_ELOST);
    assert_int_equal(count_lost(), 1);
    work_on(f.b, "k");
}

/* S-03 */
TEST(loss_is_reported_while_a_renewal_waits_for_the_store)
{
    wq_item *item = hold(f.a, "k");

    await_sleepers(THREADS_OF_LEASES);
    begin_to_hang();
    expect_report_of_loss(item);
}

/* S-03: the thread that renews has to reconcile first. */
TEST(loss_is_reported_while_the_handle_reconciles)
{
    wq_item *item = hold(f.a, "k");

    await_sleepers(THREADS_OF_LEASES);
    plan_at(0, STORE_EIO_BEFORE, 1, STORE_RUN);
    assert_err(wq_add_str(f.a, "x"), WQ_EIO);
    begin_to_hang();
    expect_report_of_loss(item);
}

static wq_err
run_when_answered(struct wq__engine *e, struct wq__op *batch,
                  struct wq__pulse *pulse)
{
    hang();
    return hanging.inner->run(e, batch, pulse);
}

static int
add_x(struct worker *self)
{
    return (int)wq_add_str(self->arg, "x");
}

/* S-03: although the handle has to reconcile, which the call does that hangs. */
TEST(renewals_go_on_while_a_call_waits_for_the_store)
{
    wq_item           *item = hold(f.a, "k");
    struct wq__shared *s = wq__shared_of(f.a);

    await_sleepers(THREADS_OF_LEASES);
    begin_to_hang();
    hanging.ops.renew = hanging.inner->renew;
    hanging.ops.run = run_when_answered;
    struct worker *w = worker_start(add_x, f.a);
    while (sem_wait(&hanging.called))
        ;
    wq__shared_enter(s);
    s->in_doubt = true; /* as after a renewal that has found too many holds */
    wq__lock_release(&s->lock);
    for (int i = 0; i < 4; i++) {
        pass(LEASE / 3);
        await_sleepers(THREADS_OF_LEASES);
        assert_int_equal(wq_hold_left(f.a, item), LEASE);
    }
    f.engines[0]->ops = hanging.inner;
    (void)sem_post(&hanging.answered);
    assert_err(worker_join(w), WQ_OK);
    assert_err(wq_done(f.a, item), WQ_OK);
}

/* S-03: a handle that was lost, and goes on, is watched again. */
TEST(losses_of_the_next_session_are_reported_too)
{
    for (size_t i = 0; i < 3; i++) {
        wq_item *item = hold(f.a, "k");

        await_sleepers(THREADS_OF_LEASES);
        plan_at(0, STORE_AWAY, 0, STORE_RENEW | STORE_RECONCILE);
        pass(LEASE);
        await_sleepers(THREADS_OF_LEASES);
        assert_int_equal(count_lost(), i + 1);
        memory_store_heal(f.store);
        assert_err(wq_done(f.a, item), WQ_ELOST);
        work_on(f.a, "k");
    }
}

/* S-03 */
TEST(handle_without_a_callback_is_not_watched)
{
    const struct shared_queue_options options = {.lease_ns = LEASE};
    wq_queue                         *q = NULL;

    leave_with(&f.a);
    assert_err(shared_queue_join(f.store, &options, WQ_CONFIG(.clock = f.clock),
                                 &f.engines[0], &q),
               WQ_OK);
    await_sleepers(THREADS_OF_LEASES - 1);
    for (int i = 0; i < 6; i++) {
        pass(LEASE / 3);
        await_sleepers(THREADS_OF_LEASES - 1);
        assert_int_equal(wq_clock_fake_waiters(f.clock), THREADS_OF_LEASES - 1);
    }
    wq_destroy(q);
}

/* ---- sleepers ------------------------------------------------------------ */

/* Only one handle is left. It holds a key, and sleeps in a get. */
static struct worker *
hold_and_sleep(wq_item **held, wq_item **item)
{
    leave_with(&f.b);
    leave_with(&f.c);
    add(f.a, "k");
    *held = take_key(f.a, "k");
    struct worker *w = worker_get(f.a, item);

    worker_await_blocked(w);
    return w;
}

/* S-03: the only handle sleeps in a get when it learns that it has lost a key.
 * No other handle gives the key back. */
TEST(lost_key_is_handed_to_a_sleeping_get_of_its_handle)
{
    wq_item       *old, *item = NULL;
    struct worker *w = hold_and_sleep(&old, &item);

    memory_store_end_session(f.engines[0]);
    assert_err(wq_renew(f.a), WQ_ELOST);
    assert_err(worker_join(w), WQ_OK);
    assert_in_range(item->fence, old->fence + 1, UINT64_MAX);
    assert_err(wq_done(f.a, old), WQ_ELOST);
    assert_err(wq_done(f.a, item), WQ_OK);
}

/* S-03: by its own clock. */
TEST(expired_key_is_handed_to_a_sleeping_get_of_its_handle)
{
    wq_item       *old, *item = NULL;
    struct worker *w = hold_and_sleep(&old, &item);

    pass(LEASE);
    assert_int_equal(wq_hold_left(f.a, old), 0);
    assert_err(worker_join(w), WQ_OK);
    assert_err(wq_done(f.a, old), WQ_ELOST);
    assert_err(wq_done(f.a, item), WQ_OK);
}

/* S-03: nobody calls anything: the other handle wakes up at the end of the
 * session. */
TEST(key_of_a_dead_holder_wakes_a_sleeping_get)
{
    wq_item *item = NULL;

    leave_with(&f.c);
    add(f.a, "k");
    (void)take_key(f.a, "k");
    struct worker *w = worker_get(f.b, &item);

    worker_await_blocked(w);
    await_sleepers(1);
    pass(LEASE - 1);
    worker_await_blocked(w);
    await_sleepers(1);
    pass(1);
    assert_err(worker_join(w), WQ_OK);
    assert_err(wq_done(f.b, item), WQ_OK);
}

WQ_TESTS(with_leases(hold_is_certain_for_a_lease),
         with_leases(renewal_begins_a_new_lease),
         with_leases(hold_counts_from_the_last_renewal),
         with_leases(hold_counts_from_the_sending_of_a_renewal),
         with_leases(hold_counts_from_the_sending_of_the_opening),
         with_leases(hold_of_a_new_session_counts_from_the_sending),
         with_leases(hold_of_a_reconciled_session_counts_from_the_sending),
         with_leases(renewal_whose_reply_came_too_late_is_a_loss),
         with_handles(holds_without_a_lease_do_not_end),
         with_leases(hold_of_another_handle_is_not_certain),
         with_leases(key_of_a_lost_hold_goes_to_another_handle),
         with_leases(store_refuses_a_finish_of_a_session_that_ended),
         with_leases(lost_item_does_not_end_the_next_hold_of_its_handle),
         with_leases(renewal_does_not_revive_lost_holds),
         with_leases(session_that_ends_loses_all_holds_once),
         with_leases(hold_that_is_done_is_not_lost),
         with_leases(handle_works_on_after_renewals_without_replies),
         with_leases(get_after_the_lease_gives_a_hold_that_is_certain),
         with_leases(expired_hold_is_given_back_without_an_expiry),
         with_leases(late_loss_of_an_old_session_leaves_the_new_one),
         with_leases(key_whose_holders_are_lost_becomes_dead),
         with_leases(handle_that_is_destroyed_counts_no_expiry),
         with_leases(callback_of_a_loss_may_use_the_handle),
         with_leases(item_may_be_done_while_its_loss_is_reported),
         with_leases(next_goes_on_after_a_loss),
         with_threads(thread_renews_after_a_third_of_the_lease),
         with_threads(first_renewal_counts_from_the_opening),
         with_threads(two_renewals_may_fail),
         with_threads(third_failed_renewal_loses_the_holds),
         with_threads(loss_is_reported_while_a_renewal_waits_for_the_store),
         with_threads(loss_is_reported_while_the_handle_reconciles),
         with_threads(renewals_go_on_while_a_call_waits_for_the_store),
         with_threads(losses_of_the_next_session_are_reported_too),
         with_threads(handle_without_a_callback_is_not_watched),
         with_leases(lost_key_is_handed_to_a_sleeping_get_of_its_handle),
         with_leases(expired_key_is_handed_to_a_sleeping_get_of_its_handle),
         with_leases(key_of_a_dead_holder_wakes_a_sleeping_get));
