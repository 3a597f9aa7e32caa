/* SPDX-License-Identifier: MIT */
/* test_memory_store.c: does each operation of the memory store do what
 * shared/engine.h and docs/semantics.md say? Through the seam alone, without
 * the shell.
 */
#include "support/store_inside.h" /* before a global that is called f */
#include "unit/store_fixture.h"

#include <poll.h>

#include "support/worker.h"

/* ---- adds ---------------------------------------------------------------- */

TEST(key_is_added_handed_out_and_finished)
{
    assert_int_equal(add(f.a, "foo"), WQ_ADDED_NEW);
    assert_int_equal(f.pulse.ready, 1);
    assert_int_equal(f.pulse.did.adds, 1);
    const struct got got = get(f.b, "foo");
    assert_int_equal(f.pulse.ready, 0);
    assert_int_equal(f.pulse.held, 1);
    assert_int_equal(f.pulse.did.gets, 1);
    assert_int_equal(f.pulse.did.adds, 0);
    assert_int_equal(finish(f.b, got, wq_result_done()), WQ_OK);
    assert_int_equal(f.pulse.held, 0);
    assert_int_equal(f.pulse.did.dones, 1);
    expect_nothing_to_get(f.a);
}

TEST(adds_of_all_sessions_merge)
{
    assert_int_equal(add(f.a, "foo"), WQ_ADDED_NEW);
    assert_int_equal(add(f.b, "foo"), WQ_ADDED_MERGED);
    assert_int_equal(f.pulse.did.merged, 1);
    const struct got got = get(f.a, "foo");
    assert_int_equal(add(f.b, "foo"), WQ_ADDED_DIRTY);
    assert_int_equal(f.pulse.dirty, 1);
    assert_int_equal(states(f.b, "foo"), WQ_STATE_HELD | WQ_STATE_DIRTY);
    assert_int_equal(finish(f.a, got, wq_result_done()), WQ_OK);
    (void)get(f.b, "foo");
}

TEST(keys_leave_by_priority_and_arrival)
{
    add(f.a, "low");
    add_with(f.b, "high", WQ_ADD(.priority = 2));
    add_with(f.a, "higher", WQ_ADD(.priority = 2));
    assert_int_equal(get(f.a, "high").priority, 2);
    (void)get(f.b, "higher");
    assert_int_equal(get(f.a, "low").priority, 0);
}

TEST(delayed_key_is_ready_at_its_deadline)
{
    assert_int_equal(add_with(f.a, "foo", WQ_ADD(.after_ns = 30)),
                     WQ_ADDED_SCHEDULED);
    assert_int_equal(f.pulse.next_ns, 30);
    pass(29);
    expect_nothing_to_get(f.b);
    pass(1);
    (void)get(f.b, "foo");
}

TEST(equal_deadlines_keep_the_order_of_adds)
{
    char key[16];

    for (int i = 0; i < 9; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        add_with(i % 2 ? f.a : f.b, key, WQ_ADD(.after_ns = 30));
    }
    pass(30);
    for (int i = 0; i < 9; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        (void)get(f.a, key);
    }
}

TEST(debounced_and_throttled_keys_wait)
{
    add_with(f.a, "bounce", WQ_ADD(.debounce_ns = 20));
    pass(10);
    assert_int_equal(add_with(f.b, "bounce", WQ_ADD(.debounce_ns = 20)),
                     WQ_ADDED_LATER);
    pass(19);
    expect_nothing_to_get(f.a);
    pass(1);
    assert_int_equal(finish(f.a, get(f.a, "bounce"), wq_result_done()), WQ_OK);
    add_with(f.a, "brake", WQ_ADD(.throttle_ns = 20));
    assert_int_equal(finish(f.b, get(f.b, "brake"), wq_result_done()), WQ_OK);
    assert_int_equal(add_with(f.a, "brake", WQ_ADD(.throttle_ns = 20)),
                     WQ_ADDED_SCHEDULED);
    assert_int_equal(f.pulse.next_ns, 50);
}

TEST(rate_limited_add_asks_the_limiter_of_the_store)
{
    const wq_key  key = wq_str("foo");
    int64_t       delayed = 0;
    struct wq__op op = {.kind = WQ__OP_ADD,
                        .as.add = {.how = WQ_ADD(.rate_limited = true),
                                   .keys = &key,
                                   .n = 1,
                                   .delayed = &delayed}};

    assert_int_equal(run_one(f.a, &op), WQ_OK);
    assert_int_equal(delayed, 10);
    assert_int_equal(run_one(f.b, &op), WQ_OK);
    assert_int_equal(delayed, 20);
    assert_int_equal(requeues(f.a, "foo"), 2);
    assert_int_equal(states(f.a, "foo"), WQ_STATE_WAITING | WQ_STATE_BACKOFF);
    assert_int_equal(do_one(f.a, WQ__OP_FORGET, "foo"), WQ_OK);
    assert_int_equal(requeues(f.b, "foo"), 0);
}

TEST(policy_of_the_engine_decides_without_the_limiter)
{
    REOPEN(.retry = WQ_RETRY_ONCE | WQ_RETRY_FAILURES_ONLY);
    const wq_key  keys[] = {wq_str("idle"), wq_str("held"), wq_str("held")};
    wq_added      added[3];
    int64_t       delayed[3];
    struct wq__op op = {.kind = WQ__OP_ADD,
                        .as.add = {.how = WQ_ADD(.rate_limited = true),
                                   .keys = keys,
                                   .n = 3,
                                   .added = added,
                                   .delayed = delayed}};

    add(f.a, "held");
    (void)get(f.a, "held");
    assert_int_equal(run_one(f.a, &op), WQ_OK);
    assert_int_equal(added[0], WQ_ADDED_NEW);
    assert_int_equal(delayed[0], -1);
    assert_int_equal(delayed[1], 10);
    assert_int_equal(added[2], WQ_ADDED_KEPT);
    assert_int_equal(delayed[2], -1);
    assert_int_equal(requeues(f.a, "held"), 1);
}

TEST(add_of_many_keys_is_all_or_none)
{
    REOPEN(.max_len = 3);
    const wq_key  keys[] = {wq_str("a"), wq_str("b"), wq_str("c"), wq_str("d")};
    wq_added      added[4];
    struct wq__op op = {.kind = WQ__OP_ADD,
                        .as.add = {.how = WQ_ADD(.priority = 1),
                                   .keys = keys,
                                   .n = 4,
                                   .added = added}};

    assert_int_equal(run_one(f.a, &op), WQ_EFULL);
    assert_int_equal(f.pulse.ready, 0);
    op.as.add.n = 3;
    assert_int_equal(run_one(f.a, &op), WQ_OK);
    assert_int_equal(f.pulse.ready, 3);
    op.as.add.n = 0;
    assert_int_equal(run_one(f.a, &op), WQ_OK);
}

TEST(add_that_gives_a_key_up_adds_none)
{
    REOPEN(.max_retries = 1);
    const wq_key  keys[] = {wq_str("fresh"), wq_str("tired")};
    struct wq__op op = {
        .kind = WQ__OP_ADD,
        .as.add = {.how = WQ_ADD(.rate_limited = true), .keys = keys, .n = 2}};

    add_with(f.a, "tired", WQ_ADD(.rate_limited = true));
    assert_int_equal(run_one(f.b, &op), WQ_EGIVENUP);
    assert_int_equal(op.as.add.given_up, 1);
    assert_int_equal(op.as.add.retries, 1);
    assert_int_equal(f.pulse.did.drops, 1);
    assert_int_equal(states(f.a, "fresh"), 0);
    assert_int_equal(requeues(f.a, "fresh"), 0);
    assert_int_equal(requeues(f.a, "tired"), 0);
}

/* ---- gets ---------------------------------------------------------------- */

TEST(get_hands_out_up_to_its_maximum)
{
    struct wq__op *op = GET(2);

    add(f.a, "a");
    add(f.a, "b");
    add(f.a, "c");
    assert_int_equal(run_one(f.b, op), WQ_OK);
    assert_int_equal(op->as.get.n, 2);
    assert_string_equal(f.got[0].key, "a");
    assert_string_equal(f.got[1].key, "b");
    assert_in_range(f.got[1].fence, f.got[0].fence + 1, UINT64_MAX);
    assert_int_equal(f.pulse.ready, 1);
}

TEST(key_that_cannot_be_taken_stays_first)
{
    struct wq__op *op = GET(2);

    add(f.a, "a");
    add(f.a, "b");
    f.refuse = 2;
    assert_int_equal(run_one(f.a, op), WQ_OK);
    assert_int_equal(op->as.get.n, 1);
    f.refuse = 1;
    assert_int_equal(run_one(f.a, op), WQ_ENOMEM);
    assert_int_equal(op->as.get.n, 0);
    add(f.a, "c");
    (void)get(f.a, "b");
}

TEST(get_depends_on_the_finish_before_it)
{
    REOPEN(.max_retries = 1);
    struct got    got;
    struct wq__op done, next = *GET(1);

    add(f.a, "foo");
    got = get(f.a, "foo");
    add_with(f.a, "bar", WQ_ADD(.priority = 0));
    assert_int_equal(finish(f.a, got, wq_result_retry()), WQ_OK);
    pass(10);
    (void)get(f.a, "bar");
    got = get(f.a, "foo");
    add(f.a, "baz");
    done = finish_op(&got, wq_result_retry());
    done.next = &next;
    next.as.get.unless_failed = &done;
    assert_int_equal(run(f.a, &done), WQ_OK);
    assert_int_equal(done.err, WQ_EGIVENUP);
    assert_int_equal(next.err, WQ_OK);
    assert_int_equal(next.as.get.n, 1);
    assert_string_equal(f.got[f.n_got - 1].key, "baz");
    add(f.a, "qux");
    assert_int_equal(run(f.a, &done), WQ_OK); /* a second time it is lost */
    assert_int_equal(done.err, WQ_ELOST);
    assert_int_equal(next.err, WQ_OK);
    assert_int_equal(next.as.get.n, 0);
}

TEST(ages_are_kept_if_the_first_engine_asks)
{
    add(f.a, "foo");
    assert_int_equal(get(f.a, "foo").waited_ns, -1);
    REOPEN(.ages = true);
    add(f.a, "foo");
    pass(7);
    assert_int_equal(get(f.b, "foo").waited_ns, 7);
    pass(5);
    assert_int_equal(look(f.a, "foo").held_ns, 5);
}

/* ---- finishes ------------------------------------------------------------ */

/* A key that `e` has got, with one failure. */
static struct got
get_failed(struct wq__engine *e, const char *key)
{
    add_with(e, key, WQ_ADD(.priority = 3, .rate_limited = true));
    pass(10);
    const struct got got = get(e, key);
    assert_int_equal(got.requeues, 1);
    return got;
}

/* S-14 */
TEST(done_forgets_failures)
{
    assert_int_equal(finish(f.a, get_failed(f.a, "foo"), wq_result_done()),
                     WQ_OK);
    assert_int_equal(requeues(f.a, "foo"), 0);
    assert_int_equal(states(f.a, "foo"), 0);
}

/* S-14 */
TEST(retry_waits_for_the_limiter_with_its_priority)
{
    const struct got got = get_failed(f.a, "foo");
    struct wq__op    op = finish_op(&got, wq_result_retry());

    assert_int_equal(run_one(f.a, &op), WQ_OK);
    assert_int_equal(op.as.finish.delayed, 20);
    assert_int_equal(f.pulse.did.dones, 1);
    assert_int_equal(requeues(f.a, "foo"), 2);
    assert_int_equal(states(f.a, "foo"), WQ_STATE_WAITING | WQ_STATE_BACKOFF);
    pass(20);
    assert_int_equal(get(f.b, "foo").priority, 3);
}

TEST(any_other_outcome_is_a_retry)
{
    const wq_result odd = {.outcome = (wq_outcome)77};

    assert_int_equal(finish(f.a, get_failed(f.a, "foo"), odd), WQ_OK);
    assert_int_equal(requeues(f.a, "foo"), 2);
}

/* S-13 */
TEST(key_without_retries_left_is_dead)
{
    REOPEN(.max_retries = 1);
    const struct got got = get_failed(f.a, "foo");
    struct wq__op    op = finish_op(&got, wq_result_retry());

    add(f.b, "foo");
    assert_int_equal(run_one(f.a, &op), WQ_EGIVENUP);
    assert_int_equal(op.as.finish.retries, 1);
    assert_int_equal(f.pulse.did.drops, 1);
    assert_int_equal(states(f.a, "foo"), WQ_STATE_DEAD);
    assert_int_equal(requeues(f.a, "foo"), 1);
    assert_int_equal(do_one(f.b, WQ__OP_REMOVE, "foo"), WQ_OK);
    assert_int_equal(requeues(f.a, "foo"), 0);
}

TEST(after_forgets_and_runs_again)
{
    assert_int_equal(finish(f.a, get_failed(f.a, "foo"), wq_result_after(5)),
                     WQ_OK);
    assert_int_equal(states(f.a, "foo"), WQ_STATE_WAITING);
    assert_int_equal(requeues(f.a, "foo"), 0);
    pass(5);
    const struct got got = get(f.a, "foo");
    assert_int_equal(got.priority, 3);
    assert_int_equal(finish(f.a, got, wq_result_after(0)), WQ_OK);
    (void)get(f.a, "foo");
}

/* S-12 */
TEST(back_makes_a_key_ready_at_the_tail)
{
    const struct got got = get_failed(f.a, "foo");

    add_with(f.a, "bar", WQ_ADD(.priority = 3));
    assert_int_equal(finish(f.a, got, wq_result_back()), WQ_OK);
    assert_int_equal(requeues(f.a, "foo"), 1);
    (void)get(f.b, "bar");
    assert_int_equal(get(f.b, "foo").priority, 3);
}

TEST(prioritized_result_runs_with_its_own_priority)
{
    wq_result result = wq_result_back();

    result.prioritized = true;
    result.priority = -4;
    assert_int_equal(finish(f.a, get_failed(f.a, "foo"), result), WQ_OK);
    assert_int_equal(get(f.a, "foo").priority, -4);
}

TEST(drop_only_ends_the_hold)
{
    const struct got got = get_failed(f.a, "foo");

    assert_int_equal(finish(f.a, got, wq_result_drop()), WQ_OK);
    assert_int_equal(states(f.a, "foo"), 0);
    assert_int_equal(requeues(f.a, "foo"), 1);
    add(f.a, "foo");
    const struct got again = get(f.a, "foo");
    add(f.a, "foo");
    assert_int_equal(finish(f.a, again, wq_result_drop()), WQ_OK);
    assert_int_equal(states(f.a, "foo"), WQ_STATE_READY);
}

/* S-04 */
TEST(finish_of_another_session_or_fence_is_lost)
{
    wq_key_info before;
    struct got  got, old;

    add(f.a, "foo");
    old = get(f.a, "foo");
    assert_int_equal(finish(f.a, old, wq_result_back()), WQ_OK);
    got = get(f.a, "foo");
    add_with(f.a, "foo", WQ_ADD(.after_ns = 50));
    before = look(f.a, "foo");
    for (wq_outcome o = WQ_RESULT_DONE; o <= WQ_RESULT_BURY; o++) {
        const wq_result result = {.outcome = o, .after_ns = 1};
        assert_int_equal(finish(f.b, got, result), WQ_ELOST);
        assert_int_equal(finish(f.a, old, result), WQ_ELOST);
        assert_int_equal(f.pulse.did.dones, 0);
    }
    const wq_key_info after = look(f.a, "foo");
    expect_same(&before, &after);
    assert_int_equal(finish(f.a, got, wq_result_done()), WQ_OK);
    assert_int_equal(finish(f.a, got, wq_result_done()), WQ_ELOST);
}

/* ---- DEAD keys ----------------------------------------------------------- */

static void
bury(const char *key)
{
    add_with(f.a, key, WQ_ADD(.priority = 5));
    assert_int_equal(finish(f.a, get(f.a, key), wq_result_bury()), WQ_OK);
}

/* S-13 */
TEST(dead_key_stays_dead_until_revived)
{
    add_with(f.a, "foo", WQ_ADD(.throttle_ns = 1000));
    const struct got got = get(f.a, "foo");
    add(f.a, "foo");
    add_with(f.a, "foo", WQ_ADD(.after_ns = 50));
    assert_int_equal(finish(f.a, got, wq_result_bury()), WQ_OK);
    assert_int_equal(states(f.a, "foo"), WQ_STATE_DEAD);
    assert_int_equal(add(f.b, "foo"), WQ_ADDED_DEAD);
    assert_int_equal(add_with(f.b, "foo", WQ_ADD(.rate_limited = true)),
                     WQ_ADDED_DEAD);
    assert_int_equal(requeues(f.b, "foo"), 0);
    pass(60);
    expect_nothing_to_get(f.b);
    assert_int_equal(do_one(f.b, WQ__OP_REVIVE, "foo"), WQ_OK);
    assert_int_equal(states(f.a, "foo"), WQ_STATE_READY);
    assert_int_equal(do_one(f.b, WQ__OP_REVIVE, "foo"), WQ_ENOTFOUND);
    (void)get(f.b, "foo");
}

TEST(revived_key_has_no_failures_and_its_priority)
{
    assert_int_equal(finish(f.a, get_failed(f.a, "foo"), wq_result_bury()),
                     WQ_OK);
    assert_int_equal(look(f.a, "foo").requeues, 1);
    assert_int_equal(do_one(f.a, WQ__OP_REVIVE, "foo"), WQ_OK);
    const struct got got = get(f.a, "foo");
    assert_int_equal(got.requeues, 0);
    assert_int_equal(got.priority, 3);
}

TEST(dead_key_can_be_removed_but_not_cancelled)
{
    bury("foo");
    assert_int_equal(do_one(f.b, WQ__OP_CANCEL, "foo"), WQ_ENOTFOUND);
    assert_int_equal(do_one(f.b, WQ__OP_REMOVE, "foo"), WQ_OK);
    assert_int_equal(f.pulse.did.removed, 0);
    assert_int_equal(do_one(f.b, WQ__OP_REMOVE, "foo"), WQ_ENOTFOUND);
    assert_int_equal(add(f.b, "foo"), WQ_ADDED_NEW);
}

TEST(dead_keys_count_as_known)
{
    REOPEN(.max_len = 2);
    const wq_key  key = wq_str("third");
    struct wq__op op = {
        .kind = WQ__OP_ADD,
        .as.add = {.how = WQ_ADD(.priority = 0), .keys = &key, .n = 1}};

    bury("one");
    bury("two");
    assert_int_equal(stats(f.a).known, 2);
    assert_int_equal(stats(f.a).dead, 2);
    assert_int_equal(add(f.a, "two"), WQ_ADDED_DEAD);
    assert_int_equal(run_one(f.a, &op), WQ_EFULL);
    assert_int_equal(do_one(f.a, WQ__OP_REVIVE, "one"), WQ_OK);
    assert_int_equal(run_one(f.a, &op), WQ_EFULL);
    assert_int_equal(do_one(f.a, WQ__OP_REMOVE, "two"), WQ_OK);
    assert_int_equal(run_one(f.a, &op), WQ_OK);
}

/* ---- looking ------------------------------------------------------------- */

TEST(keys_are_removed_and_deadlines_cancelled)
{
    add(f.a, "foo");
    assert_int_equal(do_one(f.b, WQ__OP_REMOVE, "foo"), WQ_OK);
    assert_int_equal(f.pulse.did.removed, 1);
    assert_int_equal(do_one(f.b, WQ__OP_REMOVE, "foo"), WQ_ENOTFOUND);
    add_with(f.a, "foo", WQ_ADD(.after_ns = 5));
    assert_int_equal(do_one(f.b, WQ__OP_CANCEL, "foo"), WQ_OK);
    assert_int_equal(do_one(f.b, WQ__OP_CANCEL, "foo"), WQ_ENOTFOUND);
    add(f.a, "foo");
    (void)get(f.a, "foo");
    assert_int_equal(do_one(f.b, WQ__OP_REMOVE, "foo"), WQ_ESTATE);
}

/* S-08 */
TEST(stats_and_depths_describe_the_whole_store)
{
    wq_depth      depths[4];
    size_t        n = 0;
    struct wq__op op = {.kind = WQ__OP_DEPTHS,
                        .as.depths = {.out = depths, .max = 4, .n = &n}};

    add(f.a, "one");
    add(f.a, "two");
    (void)get(f.a, "one");
    (void)get(f.b, "two");
    add_with(f.b, "three", WQ_ADD(.priority = 2));
    add_with(f.b, "four", WQ_ADD(.after_ns = 40));
    const wq_stats s = stats(f.a);
    assert_int_equal(s.ready, 1);
    assert_int_equal(s.held, 2);
    assert_int_equal(s.waiting, 1);
    assert_int_equal(s.known, 4);
    assert_int_equal(s.holders, 2);
    assert_int_equal(s.next_ns, 40);
    assert_int_equal(s.adds, 0);
    assert_int_equal(run_one(f.a, &op), WQ_OK);
    assert_int_equal(n, 2);
}

struct visits {
    size_t n, space;
    bool   seen[600];
};

static bool
visit(void *ctx, wq_key key, const wq_key_info *info)
{
    struct visits *v = ctx;
    unsigned       i = 0;

    if (v->space == 0)
        return false;
    v->space--;
    v->n++;
    for (size_t k = 1; k < key.len; k++)
        i = i * 10 + (unsigned)(((const char *)key.data)[k] - '0');
    assert_in_range(i, 0, 599);
    assert_false(v->seen[i]);
    v->seen[i] = true;
    assert_int_equal(info->states,
                     i % 2 ? (unsigned)WQ_STATE_READY : WQ_STATE_DEAD);
    return true;
}

/* In steps of `space` keys. */
static size_t
walk(unsigned which, size_t space)
{
    struct visits v = {0};
    struct wq__op op = {
        .kind = WQ__OP_WALK,
        .as.walk = {.states = which, .found = visit, .ctx = &v}};

    for (int i = 0; !op.as.walk.ended; i++) {
        v.space = space;
        assert_int_equal(run_one(f.b, &op), WQ_OK);
        assert_in_range(i, 0, 10000);
    }
    return v.n;
}

TEST(walk_visits_every_key_once_however_it_is_cut)
{
    char key[16];

    for (int i = 0; i < 600; i++) {
        (void)snprintf(key, sizeof key, "k%d", i);
        if (i % 2)
            continue;
        add(f.a, key);
        assert_int_equal(finish(f.a, get(f.a, key), wq_result_bury()), WQ_OK);
    }
    for (int i = 1; i < 600; i += 2) {
        (void)snprintf(key, sizeof key, "k%d", i);
        add(f.a, key);
    }
    assert_int_equal(walk(63, 1), 600);
    assert_int_equal(walk(63, 7), 600);
    assert_int_equal(walk(63, 1000), 600);
    assert_int_equal(walk(WQ_STATE_DEAD, 7), 300);
    assert_int_equal(walk(WQ_STATE_READY, 7), 300);
    assert_int_equal(walk(WQ_STATE_HELD, 7), 0);
}

/* ---- waking -------------------------------------------------------------- */

/* Has B to know of something since its last call? */
static bool
concerns_b(void)
{
    const bool changed = ((struct memory_engine *)(void *)f.b)->changed;

    look_around(f.b);
    return changed;
}

TEST(other_sessions_learn_what_a_sleeper_must_know)
{
    look_around(f.b);
    add(f.a, "foo");
    assert_true(concerns_b());
    add(f.a, "foo");
    assert_false(concerns_b());
    struct got got = get(f.a, "foo"); /* no key is READY */
    assert_true(concerns_b());
    add(f.a, "foo"); /* DIRTY */
    assert_false(concerns_b());
    assert_int_equal(finish(f.a, got, wq_result_done()), WQ_OK);
    assert_true(concerns_b());
    got = get(f.a, "foo");
    (void)concerns_b();
    assert_int_equal(finish(f.a, got, wq_result_done()), WQ_OK);
    assert_true(concerns_b()); /* no key is HELD */
    add_with(f.a, "bar", WQ_ADD(.after_ns = 50));
    assert_true(concerns_b());
    add_with(f.a, "baz", WQ_ADD(.after_ns = 60));
    assert_false(concerns_b());
    pass(50);
    look_around(f.a);
    assert_true(concerns_b());
}

static int
sleep_on_b(struct worker *self)
{
    const int64_t *until_ns = self->arg;

    f.b->ops->wait(f.b, *until_ns);
    return 0;
}

TEST(wait_ends_by_another_session_time_or_kick)
{
    int64_t until_ns = WQ_FOREVER;

    look_around(f.b);
    struct worker *w = worker_start(sleep_on_b, &until_ns);
    worker_await_blocked(w);
    add(f.a, "foo");
    worker_join(w);
    f.b->ops->wait(f.b, WQ_FOREVER); /* changed already */

    look_around(f.b);
    w = worker_start(sleep_on_b, &until_ns);
    worker_await_blocked(w);
    add(f.b, "bar"); /* its shell knows: it sleeps on */
    worker_await_blocked(w);
    f.b->ops->kick(f.b);
    worker_join(w);

    until_ns = 30;
    w = worker_start(sleep_on_b, &until_ns);
    wq_clock_fake_wait_for_waiters(f.clock, 1);
    pass(30);
    worker_join(w);

    f.b->ops->kick(f.b);
    f.b->ops->wait(f.b, WQ_FOREVER); /* the kick is not lost */
}

static bool
is_readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

TEST(descriptor_shows_changes_of_other_sessions)
{
    const int fd = f.b->ops->fd(f.b);

#if !WQ__HAVE_FUTEX
    assert_int_equal(fd, -1); /* the system has no beacons */
    return;
#endif
    look_around(f.b);
    assert_false(is_readable(fd));
    add(f.b, "foo");
    assert_false(is_readable(fd));
    add(f.a, "bar");
    assert_true(is_readable(fd));
    look_around(f.b);
    assert_false(is_readable(fd));
    add(f.b, "baz");
    assert_true(is_readable(f.a->ops->fd(f.a)));
}

WQ_TESTS(store_test(key_is_added_handed_out_and_finished),
         store_test(adds_of_all_sessions_merge),
         store_test(keys_leave_by_priority_and_arrival),
         store_test(delayed_key_is_ready_at_its_deadline),
         store_test(equal_deadlines_keep_the_order_of_adds),
         store_test(debounced_and_throttled_keys_wait),
         store_test(rate_limited_add_asks_the_limiter_of_the_store),
         store_test(policy_of_the_engine_decides_without_the_limiter),
         store_test(add_of_many_keys_is_all_or_none),
         store_test(add_that_gives_a_key_up_adds_none),
         store_test(get_hands_out_up_to_its_maximum),
         store_test(key_that_cannot_be_taken_stays_first),
         store_test(get_depends_on_the_finish_before_it),
         store_test(ages_are_kept_if_the_first_engine_asks),
         store_test(done_forgets_failures),
         store_test(retry_waits_for_the_limiter_with_its_priority),
         store_test(any_other_outcome_is_a_retry),
         store_test(key_without_retries_left_is_dead),
         store_test(after_forgets_and_runs_again),
         store_test(back_makes_a_key_ready_at_the_tail),
         store_test(prioritized_result_runs_with_its_own_priority),
         store_test(drop_only_ends_the_hold),
         store_test(finish_of_another_session_or_fence_is_lost),
         store_test(dead_key_stays_dead_until_revived),
         store_test(revived_key_has_no_failures_and_its_priority),
         store_test(dead_key_can_be_removed_but_not_cancelled),
         store_test(dead_keys_count_as_known),
         store_test(keys_are_removed_and_deadlines_cancelled),
         store_test(stats_and_depths_describe_the_whole_store),
         store_test(walk_visits_every_key_once_however_it_is_cut),
         store_test(other_sessions_learn_what_a_sleeper_must_know),
         store_test(wait_ends_by_another_session_time_or_kick),
         store_test(descriptor_shows_changes_of_other_sessions));
