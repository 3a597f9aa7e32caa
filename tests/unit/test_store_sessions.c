/* SPDX-License-Identifier: MIT */
/* test_store_sessions.c: what becomes of the holds of a session that ends, and
 * what does a call of the memory store do that fails?
 */
#include "unit/store_fixture.h"

/* ---- the end of a session ------------------------------------------------ */

/* S-03 */
TEST(session_ends_exactly_at_the_end_of_its_lease)
{
    add(f.a, "foo");
    (void)get(f.a, "foo");
    pass(60);
    assert_int_equal(renew(f.a), WQ_OK);
    assert_int_equal(renew(f.b), WQ_OK);
    pass(99);
    expect_nothing_to_get(f.b);
    assert_int_equal(f.pulse.next_ns, 160);
    assert_int_equal(renew(f.b), WQ_OK);
    pass(1);
    (void)get(f.b, "foo");
    assert_int_equal(f.pulse.did.expired, 1);
    assert_int_equal(f.pulse.did.dones, 0);
    assert_false(f.pulse.session_lost);
}

/* S-03 S-04 */
TEST(session_that_has_ended_is_never_revived)
{
    add(f.a, "foo");
    const struct got got = get(f.a, "foo");
    pass(LEASE);
    assert_int_equal(renew(f.a), WQ_ELOST);
    assert_int_equal(renew(f.a), WQ_ELOST);
    assert_int_equal(finish(f.a, got, wq_result_done()), WQ_ELOST);
    assert_true(f.pulse.session_lost);
    assert_int_equal(f.pulse.did.expired, 0);
    assert_int_equal(states(f.b, "foo"), WQ_STATE_READY);
    look_around(f.a);
    assert_false(f.pulse.session_lost);
    assert_int_equal(renew(f.a), WQ_OK);
    const struct got again = get(f.a, "foo");
    assert_in_range(again.fence, got.fence + 1, UINT64_MAX);
    assert_int_equal(finish(f.a, got, wq_result_done()), WQ_ELOST);
    assert_int_equal(finish(f.a, again, wq_result_done()), WQ_OK);
}

TEST(lost_holder_changes_nothing_of_the_new_holder)
{
    add_with(f.a, "foo", WQ_ADD(.rate_limited = true));
    pass(10);
    const struct got old = get(f.a, "foo");
    pass(LEASE);
    const struct got  got = get(f.b, "foo");
    const wq_key_info before = look(f.b, "foo");
    assert_int_equal(finish(f.a, old, wq_result_retry()), WQ_ELOST);
    const wq_key_info after = look(f.b, "foo");
    expect_same(&before, &after);
    assert_int_equal(finish(f.b, got, wq_result_done()), WQ_OK);
}

TEST(expired_keys_go_behind_ready_ones_in_order)
{
    add_with(f.a, "one", WQ_ADD(.priority = 0));
    add(f.a, "two");
    add(f.a, "three");
    (void)get(f.a, "one");
    (void)get(f.a, "two");
    assert_int_equal(finish(f.a, f.got[0], wq_result_back()), WQ_OK);
    (void)get(f.a, "three");
    (void)get(f.a, "two");
    add(f.b, "four");
    pass(LEASE);
    assert_int_equal(renew(f.b), WQ_ELOST);
    (void)get(f.b, "four");
    (void)get(f.b, "one");
    (void)get(f.b, "three");
    (void)get(f.b, "two");
}

TEST(dirty_key_of_an_ended_session_runs_once_more)
{
    add(f.a, "foo");
    (void)get(f.a, "foo");
    add_with(f.b, "foo", WQ_ADD(.priority = 7));
    pass(LEASE);
    assert_int_equal(get(f.b, "foo").priority, 7);
    expect_nothing_to_get(f.b);
}

/* S-13 */
TEST(key_that_expires_too_often_is_dead)
{
    REOPEN(.max_expiries = 3);
    add(f.a, "foo");
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(states(f.b, "foo"), WQ_STATE_DEAD);
        (void)get(i % 2 ? f.a : f.b, "foo");
        pass(LEASE);
    }
    assert_int_equal(states(f.b, "foo"), WQ_STATE_DEAD);
    assert_int_equal(stats(f.b).dead, 1);
    assert_int_equal(do_one(f.a, WQ__OP_REVIVE, "foo"), WQ_OK);
    (void)get(f.b, "foo");
    pass(LEASE);
    assert_int_equal(states(f.b, "foo"), WQ_STATE_READY);
}

TEST(success_forgets_expiries_and_failure_does_not)
{
    REOPEN(.max_expiries = 2);
    const wq_result results[] = {wq_result_done(), wq_result_after(0),
                                 wq_result_back(), wq_result_retry()};

    for (size_t i = 0; i < 4; i++) {
        char key[] = "k0";

        key[1] = (char)('0' + i);
        add(f.a, key);
        (void)get(f.a, key);
        pass(LEASE);
        assert_int_equal(finish(f.b, get(f.b, key), results[i]), WQ_OK);
        add(f.b, key);
        (void)get(f.b, key);
        pass(LEASE);
        assert_int_equal(states(f.a, key) & WQ_STATE_DEAD,
                         i < 2 ? 0U : (unsigned)WQ_STATE_DEAD);
        assert_int_equal(do_one(f.a, WQ__OP_REMOVE, key), WQ_OK);
    }
}

TEST(session_that_ended_is_given_back_in_parts)
{
    char key[16];

    for (int i = 0; i < 5; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        add(f.a, key);
        (void)get(f.a, key);
    }
    const struct got last = f.got[0];
    memory_store_give_back_at_most(f.store, 2);
    pass(LEASE);
    look_around(f.b);
    assert_int_equal(f.pulse.ready, 2);
    assert_int_equal(f.pulse.held, 3);
    assert_int_equal(f.pulse.next_ns, LEASE); /* there is more to do */
    assert_int_equal(finish(f.a, last, wq_result_done()), WQ_ELOST);
    assert_int_equal(f.pulse.ready, 4);
    look_around(f.a);
    assert_int_equal(f.pulse.ready, 5);
    assert_int_equal(f.pulse.held, 0);
}

TEST(two_sessions_never_hold_one_key)
{
    add(f.a, "foo");
    (void)get(f.a, "foo");
    expect_nothing_to_get(f.b);
    add(f.b, "foo");
    expect_nothing_to_get(f.b);
}

TEST(new_session_and_its_end_wake_others)
{
    look_around(f.b);
    assert_int_equal(f.pulse.next_ns, LEASE); /* of the other session */
    pass(50);
    struct wq__engine *e = open_engine(LEASE);
    f.b->ops->wait(f.b, WQ_FOREVER); /* returns */
    close_engine(&e);
    close_engine(&f.a);
    look_around(f.b);
    assert_int_equal(f.pulse.next_ns, WQ_FOREVER);
}

/* ---- close --------------------------------------------------------------- */

/* S-07 */
TEST(close_gives_keys_back_without_an_expiry)
{
    REOPEN(.max_expiries = 1);
    add(f.a, "foo");
    (void)get(f.a, "foo");
    look_around(f.b);
    close_engine(&f.a);
    f.b->ops->wait(f.b, WQ_FOREVER); /* returns */
    (void)get(f.b, "foo");
    assert_int_equal(f.pulse.did.expired, 0);
}

TEST(session_without_a_lease_ends_by_close_alone)
{
    struct wq__engine *e = open_engine(0);

    assert_null(e->ops->renew);
    add(e, "foo");
    (void)get(e, "foo");
    pass(WQ_SECONDS(1000));
    expect_nothing_to_get(f.b);
    close_engine(&e);
    (void)get(f.b, "foo");
}

/* S-09 */
TEST(close_in_a_child_leaves_the_session_alone)
{
    add(f.a, "foo");
    (void)get(f.a, "foo");
    f.a->ops->close(f.a, true);
    f.a = NULL;
    assert_int_equal(states(f.b, "foo"), WQ_STATE_HELD);
    pass(LEASE);
    (void)get(f.b, "foo");
}

TEST(session_left_by_a_child_is_freed_with_the_store)
{
    struct wq__engine *e = open_engine(0);

    add(e, "foo");
    (void)get(e, "foo");
    e->ops->close(e, true);
    assert_int_equal(states(f.b, "foo"), WQ_STATE_HELD);
}

/* ---- reconcile ----------------------------------------------------------- */

TEST(reconcile_gives_back_what_is_not_known)
{
    REOPEN(.max_expiries = 1);
    struct got held[3];

    add(f.a, "one");
    add(f.a, "two");
    add(f.a, "three");
    held[0] = get(f.a, "one");
    held[1] = get(f.a, "two");
    held[2] = get(f.b, "three");
    const struct wq__known known[] = {
        {wq_str("one"), held[0].fence},
        {wq_str("two"), held[1].fence + 100}, /* another hold */
        {wq_str("three"), held[2].fence}};
    assert_false(reconcile(f.a, known, 3));
    assert_int_equal(states(f.b, "one"), WQ_STATE_HELD);
    assert_int_equal(states(f.b, "two"), WQ_STATE_READY);
    assert_int_equal(states(f.b, "three"), WQ_STATE_HELD);
    assert_int_equal(finish(f.a, held[0], wq_result_done()), WQ_OK);
    assert_int_equal(finish(f.b, held[2], wq_result_done()), WQ_OK);
}

TEST(reconcile_reports_a_lost_session)
{
    add(f.a, "foo");
    const struct got       got = get(f.a, "foo");
    const struct wq__known known = {wq_str("foo"), got.fence};

    pass(LEASE);
    assert_true(reconcile(f.a, &known, 1));
    assert_false(reconcile(f.a, NULL, 0));
    assert_int_equal(states(f.b, "foo"), WQ_STATE_READY);
    look_around(f.a);
    assert_false(f.pulse.session_lost);
}

/* ---- faults -------------------------------------------------------------- */

static struct wq__op
add_op(const wq_key *key, wq_added *added)
{
    static const wq_add_options plain = {.size = sizeof plain};

    return (struct wq__op){
        .kind = WQ__OP_ADD,
        .err = WQ_ETIMEDOUT, /* to be seen if it is not written */
        .as.add = {.how = &plain, .keys = key, .n = 1, .added = added}};
}

TEST(store_that_is_away_does_nothing)
{
    const enum store_fault faults[] = {STORE_AWAY, STORE_EIO_BEFORE};
    const wq_key           key = wq_str("foo");
    wq_added               added = WQ_ADDED_LATER;
    struct wq__op          op = add_op(&key, &added);
    bool                   lost = false;

    for (size_t i = 0; i < 2; i++) {
        const wq_err err = i ? WQ_EIO : WQ_EAWAY;

        memory_store_fail_always(f.store, faults[i]);
        assert_int_equal(run(f.a, &op), err);
        assert_int_equal(renew(f.b), err);
        assert_int_equal(f.a->ops->reconcile(f.a, NULL, 0, &lost), err);
        memory_store_heal(f.store);
        assert_int_equal(op.err, WQ_ETIMEDOUT);
        assert_int_equal(added, WQ_ADDED_LATER);
        assert_int_equal(states(f.b, "foo"), 0);
    }
    pass(LEASE);
    look_around(f.b);
    assert_true(f.pulse.session_lost); /* the renewals did not happen */
}

/* S-02 */
TEST(batch_whose_reply_is_lost_has_its_effect_unheard)
{
    const wq_key  keys[] = {wq_str("foo"), wq_str("bar")};
    wq_added      added = WQ_ADDED_LATER;
    wq_key_info   info = {.size = sizeof info, .priority = 77};
    struct wq__op ops[5] = {add_op(&keys[0], &added), add_op(&keys[1], &added),
                            *GET(1)};

    add(f.a, "held");
    const struct got got = get(f.a, "held");
    ops[3] = finish_op(&got, wq_result_done());
    ops[4] = (struct wq__op){.kind = WQ__OP_KEY_INFO,
                             .as.one = {.key = keys[0], .info = &info}};
    for (int i = 0; i < 4; i++)
        ops[i].next = &ops[i + 1];
    f.n_got = 0;
    memory_store_fail(f.store, STORE_EIO_AFTER, 1, 0);
    f.pulse.next_ns = 4242;
    assert_int_equal(run(f.a, ops), WQ_EIO);
    assert_int_equal(f.pulse.next_ns, 4242);
    assert_int_equal(f.n_got, 0);
    assert_int_equal(ops[0].err, WQ_ETIMEDOUT);
    assert_int_equal(added, WQ_ADDED_LATER);
    assert_int_equal(info.priority, 77);
    assert_int_equal(states(f.b, "foo"), WQ_STATE_HELD);
    assert_int_equal(states(f.b, "bar"), WQ_STATE_READY);
    assert_int_equal(states(f.b, "held"), 0);
    assert_false(reconcile(f.a, NULL, 0));
    assert_int_equal(states(f.b, "foo"), WQ_STATE_READY);
}

TEST(unheard_get_depends_on_the_unheard_finish)
{
    add(f.a, "foo");
    const struct got old = get(f.a, "foo");
    assert_int_equal(finish(f.a, old, wq_result_back()), WQ_OK);
    struct wq__op done = finish_op(&old, wq_result_done()), next = *GET(1);
    done.err = WQ_ETIMEDOUT;
    done.next = &next;
    next.as.get.unless_failed = &done;
    memory_store_fail(f.store, STORE_EIO_AFTER, 1, 0);
    assert_int_equal(run(f.a, &done), WQ_EIO);
    assert_int_equal(states(f.b, "foo"), WQ_STATE_READY); /* WQ_ELOST: no get */
}

TEST(renewal_whose_reply_is_lost_has_happened)
{
    pass(50);
    memory_store_fail(f.store, STORE_EIO_AFTER, 1, 0);
    assert_int_equal(renew(f.a), WQ_EIO);
    pass(99);
    assert_int_equal(renew(f.a), WQ_OK);
}

/* S-03: else the shell would renew a session that does not have its holds. */
TEST(session_that_began_unheard_is_lost_until_reported)
{
    add(f.a, "foo");
    const struct got       got = get(f.a, "foo");
    const struct wq__known known = {wq_str("foo"), got.fence};

    pass(LEASE);
    memory_store_fail(f.store, STORE_EIO_AFTER, 1, 0);
    assert_int_equal(run(f.a, GET(1)), WQ_EIO);
    assert_int_equal(states(f.b, "foo"), WQ_STATE_HELD);
    pass(LEASE - 1);
    assert_int_equal(renew(f.a), WQ_ELOST);
    memory_store_fail(f.store, STORE_AWAY, 1, 0);
    assert_int_equal(run(f.a, NULL), WQ_EAWAY);
    assert_true(reconcile(f.a, &known, 1));
    assert_int_equal(states(f.b, "foo"), WQ_STATE_READY);
    pass(LEASE - 1); /* the lease counts from the reconcile */
    assert_int_equal(renew(f.a), WQ_OK);
}

TEST(session_ends_on_command)
{
    struct wq__engine *e = open_engine(0);

    add(e, "foo");
    (void)get(e, "foo");
    memory_store_fail(f.store, STORE_END_SESSION, 1, 0);
    look_around(e);
    assert_true(f.pulse.session_lost);
    (void)get(e, "foo");
    look_around(f.b);
    memory_store_end_session(e);
    memory_store_end_session(e);
    f.b->ops->wait(f.b, WQ_FOREVER); /* returns */
    (void)get(f.b, "foo");
    assert_int_equal(f.pulse.did.expired, 1);
    memory_store_fail(f.store, STORE_END_SESSION, 1, 0);
    assert_int_equal(renew(f.b), WQ_ELOST);
    close_engine(&e);
}

TEST(clock_jumps_after_the_store_has_stamped)
{
    memory_store_fail(f.store, STORE_JUMP, 1, 40);
    assert_int_equal(renew(f.a), WQ_OK);
    assert_int_equal(wq_clock_now(f.clock), 40);
    pass(59);
    assert_int_equal(renew(f.a), WQ_OK);
    memory_store_fail(f.store, STORE_JUMP, 1, 5);
    add_with(f.a, "foo", WQ_ADD(.after_ns = 10));
    assert_int_equal(wq_clock_now(f.clock), 104);
    assert_int_equal(look(f.a, "foo").wait_ns, 5);
}

TEST(plan_names_the_call_and_the_engine)
{
    const unsigned calls = memory_store_calls(f.store);

    memory_store_plan(f.store, (struct store_plan){.fault = STORE_AWAY,
                                                   .nth = 2,
                                                   .engine = f.a,
                                                   .calls = STORE_RENEW});
    memory_store_fail(f.store, STORE_EIO_BEFORE, 6, 0);
    assert_int_equal(renew(f.a), WQ_OK);
    assert_int_equal(renew(f.b), WQ_OK);
    look_around(f.a);
    assert_int_equal(renew(f.b), WQ_OK);
    assert_int_equal(renew(f.a), WQ_EAWAY);
    assert_int_equal(renew(f.a), WQ_EIO);
    assert_int_equal(renew(f.a), WQ_OK);
    assert_int_equal(memory_store_calls(f.store), calls + 7);
}

WQ_TESTS(store_test(session_ends_exactly_at_the_end_of_its_lease),
         store_test(session_that_has_ended_is_never_revived),
         store_test(lost_holder_changes_nothing_of_the_new_holder),
         store_test(expired_keys_go_behind_ready_ones_in_order),
         store_test(dirty_key_of_an_ended_session_runs_once_more),
         store_test(key_that_expires_too_often_is_dead),
         store_test(success_forgets_expiries_and_failure_does_not),
         store_test(session_that_ended_is_given_back_in_parts),
         store_test(two_sessions_never_hold_one_key),
         store_test(new_session_and_its_end_wake_others),
         store_test(close_gives_keys_back_without_an_expiry),
         store_test(session_without_a_lease_ends_by_close_alone),
         store_test(close_in_a_child_leaves_the_session_alone),
         store_test(session_left_by_a_child_is_freed_with_the_store),
         store_test(reconcile_gives_back_what_is_not_known),
         store_test(reconcile_reports_a_lost_session),
         store_test(store_that_is_away_does_nothing),
         store_test(batch_whose_reply_is_lost_has_its_effect_unheard),
         store_test(unheard_get_depends_on_the_unheard_finish),
         store_test(renewal_whose_reply_is_lost_has_happened),
         store_test(session_that_began_unheard_is_lost_until_reported),
         store_test(session_ends_on_command),
         store_test(clock_jumps_after_the_store_has_stamped),
         store_test(plan_names_the_call_and_the_engine));
