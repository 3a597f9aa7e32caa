/* SPDX-License-Identifier: MIT */
/* test_api.c: what does a user see when the queue gets no memory?
 *
 * Every verb of wq.h, with every one of its allocations refused, once and for
 * good: the work is done or the answer is WQ_ENOMEM and nothing has changed
 * (L6). What was accepted before is still there (O-13). Calls for several keys
 * are in test_batches.c.
 */
#include "fault/queue_scene.h"

#include "support/look.h"

/* ---- create ------------------------------------------------------------- */

static const struct fixture no_queue_yet = {setup_nothing, teardown};

static void
no_queue(void)
{
    assert_null(ctx.q);
}

static void
queue_works(void)
{
    wq_item *item;

    assert_int_equal(wq_add_str(ctx.q, "foo"), WQ_OK);
    assert_int_equal(wq_get_within(ctx.q, 0, &item), WQ_OK);
    assert_int_equal(wq_done(ctx.q, item), WQ_OK);
}

/* O-01: the out-parameter is untouched. */
TEST(create_without_memory_makes_nothing)
{
    for (int plug_in = 0; plug_in < 2; plug_in++) {
        scene = (struct scene){.has_plug_in = plug_in};
        assert_fails_cleanly(&no_queue_yet, "create", create, no_queue,
                             queue_works);
    }
}

/* ---- add ---------------------------------------------------------------- */

static wq_err
op_add(void)
{
    return wq_add_str(ctx.q, "new");
}

static wq_err
op_add_long(void)
{
    return wq_add(ctx.q, long_key());
}

static wq_err
op_add_held(void)
{
    return wq_add_str(ctx.q, "held0");
}

/* O-13: what was handed over is merged first, and nobody loses it. */
static void
expect_failure_behind_others(const char *name, wq_err (*op)(void),
                             void (*done)(void))
{
    scene = (struct scene){.handed_over = 60};
    expect_failure(name, op, done);
}

TEST(first_add_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    expect_failure("first add", op_add, all_come_out);
}

TEST(add_of_a_long_key_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    for (scene.ready = 0; scene.ready < SIZES; scene.ready++)
        expect_failure("add of a long key", op_add_long, all_come_out);
}

TEST(add_behind_a_plug_in_without_memory_changes_nothing)
{
    scene = (struct scene){.has_plug_in = true};
    for (scene.ready = 0; scene.ready < SIZES; scene.ready++)
        expect_failure("add", op_add, all_come_out);
}

TEST(add_of_a_held_key_needs_no_memory)
{
    scene = (struct scene){.held = 3};
    expect_no_need("add of a held key", op_add_held, all_come_out);
}

/* O-13: the add is refused, and what was accepted before it is kept. */
TEST(add_behind_keys_handed_over_without_memory_loses_none)
{
    expect_failure_behind_others("add", op_add, all_come_out);
}

/* ---- get ---------------------------------------------------------------- */

static wq_err
op_get(void)
{
    return wq_get_within(ctx.q, 0, &ctx.out);
}

static void
all_but_the_first_come_out(void)
{
    expect_sound();
    assert_non_null(ctx.out);
    expect_all_in_order(1);
}

TEST(get_without_memory_keeps_the_key_first)
{
    scene = (struct scene){.ready = 3};
    expect_failure("first get", op_get, all_but_the_first_come_out);
}

TEST(get_behind_a_plug_in_without_memory_keeps_the_key_first)
{
    scene = (struct scene){.ready = 3, .has_plug_in = true};
    expect_failure("first get", op_get, all_but_the_first_come_out);
}

/* O-13 */
TEST(get_of_keys_handed_over_without_memory_loses_none)
{
    scene = (struct scene){.handed_over = 60};
    expect_failure("get of a key handed over", op_get,
                   all_but_the_first_come_out);
}

/* O-13 */
TEST(get_of_keys_handed_over_to_a_plug_in_without_memory_loses_none)
{
    scene = (struct scene){.handed_over = 20, .has_plug_in = true};
    expect_failure("get of a key handed over", op_get,
                   all_but_the_first_come_out);
}

/* ---- done --------------------------------------------------------------- */

static wq_err
op_done(void)
{
    return wq_done(ctx.q, ctx.item);
}

static wq_err
op_done_key(void)
{
    return wq_done_key(ctx.q, wq_str("held0"));
}

static void
one_is_done(void)
{
    expect_sound();
    assert_int_equal(inside()->core.loans.live, scene.held - 1);
    assert_int_equal(wq_len(ctx.q), scene.dirty ? 1 : 0);
}

TEST(done_needs_no_memory)
{
    for (int dirty = 0; dirty < 2; dirty++) {
        scene = (struct scene){.held = 50, .dirty = dirty};
        expect_no_need("done", op_done, one_is_done);
        expect_no_need("done by key", op_done_key, one_is_done);
    }
}

TEST(done_that_the_plug_in_has_no_memory_for_keeps_the_loan)
{
    scene = (struct scene){.held = 5, .dirty = true, .has_plug_in = true};
    expect_failure("done", op_done, one_is_done);
    expect_failure("done by key", op_done_key, one_is_done);
}

/* ---- finish ------------------------------------------------------------- */

static wq_result finished; /* the result under test */

static wq_err
op_finish(void)
{
    const wq_err err = wq_finish(ctx.q, ctx.item, finished);
    return err == WQ_EDROPPED ? WQ_OK : err;
}

/* Still on loan, and the failure that was counted is taken back. */
static void
unchanged_and_on_loan(void)
{
    unchanged();
    assert_int_equal(inside()->core.loans.live, scene.held);
    assert_int_equal(wq_num_requeues(ctx.q, ctx.item->key), 0);
}

/* The key is where the result has put it. */
static void
is_finished(void)
{
    const size_t waits =
        finished.outcome == WQ_RESULT_RETRY ||
        (finished.outcome == WQ_RESULT_AFTER && finished.after_ns > 0);
    const bool again = finished.outcome == WQ_RESULT_BACK ||
                       (finished.outcome == WQ_RESULT_AFTER && !waits);

    expect_sound();
    assert_int_equal(inside()->core.loans.live, scene.held - 1);
    assert_int_equal(inside()->core.waiting.len, waits);
    assert_int_equal(wq_len(ctx.q), again || scene.dirty);
}

static void
sweep_finish(wq_result result, bool needs_none)
{
    finished = result;
    if (needs_none)
        assert_needs_no_memory(&queue_fixture, "finish", op_finish,
                               is_finished);
    else
        assert_fails_cleanly(&queue_fixture, "finish", op_finish,
                             unchanged_and_on_loan, is_finished);
}

static wq_result
at_priority(wq_result result, int priority)
{
    result.prioritized = true;
    result.priority = priority;
    return result;
}

/* S-14 S-12: the item stays on loan, and a second finish succeeds. */
TEST(finish_without_memory_keeps_the_loan)
{
    for (int dirty = 0; dirty < 2; dirty++) {
        scene = (struct scene){.held = 5, .dirty = dirty, .has_limiter = true};
        sweep_finish(wq_result_retry(), false);
        sweep_finish(at_priority(wq_result_retry(), -3), false);
        sweep_finish(wq_result_after(hour), false);
        sweep_finish(at_priority(wq_result_after(0), 3), false);
        sweep_finish(at_priority(wq_result_back(), 3), false);
    }
}

/* S-14 */
TEST(finish_that_adds_nothing_needs_no_memory)
{
    for (int dirty = 0; dirty < 2; dirty++) {
        scene = (struct scene){.held = 5, .dirty = dirty, .has_limiter = true};
        sweep_finish(wq_result_done(), true);
        sweep_finish(wq_result_drop(), true);
        sweep_finish(wq_result_bury(), true);
        sweep_finish(wq_result_back(), true);
    }
}

/* S-14 Q-24 */
TEST(finish_that_the_plug_in_has_no_memory_for_keeps_the_loan)
{
    scene = (struct scene){.held = 5, .dirty = true, .has_plug_in = true};
    sweep_finish(wq_result_done(), false);
    sweep_finish(wq_result_drop(), false);
    sweep_finish(wq_result_bury(), false);
}

/* ---- length and shutdown ------------------------------------------------ */

static wq_err
op_len(void)
{
    const size_t len = wq_len(ctx.q);
    assert_int_equal(len, ctx.pending);
    return WQ_OK;
}

/* O-13 */
TEST(length_is_right_without_memory)
{
    scene = (struct scene){.ready = 3, .handed_over = 60};
    expect_no_need("len", op_len, all_come_out);
}

/* A call that timed out had all the memory that it needs. */
static wq_err
accept_timeout(wq_err err)
{
    return err == WQ_ETIMEDOUT ? WQ_OK : err;
}

static wq_err
op_shutdown(void)
{
    wq_shutdown(ctx.q);
    return WQ_OK;
}

static wq_err
op_drain(void)
{
    return accept_timeout(wq_shutdown_with_drain_within(ctx.q, 0));
}

static void
all_come_out_and_no_more_go_in(void)
{
    wq_item *item;

    assert_true(wq_shutting_down(ctx.q));
    assert_int_equal(wq_add_str(ctx.q, "late"), WQ_ESHUTDOWN);
    all_come_out();
    assert_int_equal(wq_get_within(ctx.q, 0, &item), WQ_ESHUTDOWN);
    assert_int_equal(wq_shutdown_with_drain_within(ctx.q, 0), WQ_OK);
}

/* O-13 Q-13 */
TEST(shutdown_without_memory_loses_nothing)
{
    scene = (struct scene){.ready = 3, .handed_over = 60};
    expect_no_need("shutdown", op_shutdown, all_come_out_and_no_more_go_in);
    expect_no_need("drain", op_drain, all_come_out_and_no_more_go_in);
}

TEST(destroy_needs_no_memory)
{
    scene = (struct scene){.ready = 20, .held = 20, .handed_over = 60};
    assert_ends_without_memory(&queue_fixture);
}

/* ---- taking back -------------------------------------------------------- */

static wq_err
op_remove(void)
{
    return wq_remove(ctx.q, wq_str("handed3"));
}

static wq_err
op_remove_wait(void)
{
    return wq_remove_wait(ctx.q, wq_str("handed3"), WQ_FOREVER);
}

static void
one_is_removed(void)
{
    expect_sound();
    const wq_stats c = stats_of(ctx.q);
    assert_int_equal(c.removed, 1);
    assert_int_equal(c.ready, ctx.pending - 1);
}

/* O-57 O-13 */
TEST(remove_behind_keys_handed_over_without_memory_removes_nothing)
{
    expect_failure_behind_others("remove", op_remove, one_is_removed);
}

/* O-84 O-13 */
TEST(removal_behind_keys_handed_over_without_memory_removes_nothing)
{
    expect_failure_behind_others("remove_wait", op_remove_wait, one_is_removed);
}

/* ---- waits and pauses --------------------------------------------------- */

static wq_err
op_flush(void)
{
    return accept_timeout(wq_flush(ctx.q, 0));
}

static wq_err
op_wait_idle(void)
{
    return accept_timeout(wq_wait_idle(ctx.q, 0));
}

static wq_err
op_flush_key(void)
{
    return accept_timeout(wq_flush_key(ctx.q, wq_str("handed3"), 0));
}

/* O-81 O-82 O-83 O-13: what was handed over counts, or nobody waits. */
TEST(waits_behind_keys_handed_over_without_memory_fail)
{
    scene = (struct scene){.ready = 3, .handed_over = 60};
    expect_failure("flush", op_flush, all_come_out);
    expect_failure("wait_idle", op_wait_idle, all_come_out);
    expect_failure("flush_key", op_flush_key, all_come_out);
}

static wq_err
op_pause_and_resume(void)
{
    const wq_err err = wq_pause(ctx.q);
    return err ? err : wq_resume(ctx.q);
}

/* O-85 */
TEST(pauses_need_no_memory)
{
    scene = (struct scene){.ready = 3, .handed_over = 60};
    expect_no_need("pause", op_pause_and_resume, all_come_out);
}

/* ---- giving up ---------------------------------------------------------- */

static void
setup_retried(struct counting *mem)
{
    setup_nothing(mem);
    assert_int_equal(create(), WQ_OK);
    assert_int_equal(wq_add_rate_limited(ctx.q, long_key()), WQ_OK);
    note_before();
}

static const struct fixture retried_key = {setup_retried, teardown};

static wq_err
op_give_up(void)
{
    const wq_err err = wq_add_rate_limited(ctx.q, long_key());
    return err == WQ_EGIVENUP ? WQ_OK : err;
}

static void
unchanged_and_not_given_up(void)
{
    unchanged();
    assert_int_equal(wq_num_requeues(ctx.q, long_key()), 1);
    assert_int_equal(ctx.dropped, 0);
}

static void
was_given_up(void)
{
    expect_sound();
    assert_int_equal(wq_num_requeues(ctx.q, long_key()), 0);
    assert_int_equal(ctx.dropped, 1);
}

/* O-17 */
TEST(long_key_without_memory_is_not_given_up)
{
    scene = (struct scene){.has_limiter = true, .gives_up = true};
    assert_fails_cleanly(&retried_key, "give up", op_give_up,
                         unchanged_and_not_given_up, was_given_up);
}

/* ---- walks -------------------------------------------------------------- */

static wq_err
op_each(void)
{
    return wq_each(ctx.q, 0, count_visit, &ctx.visited);
}

static void
unchanged_and_none_visited(void)
{
    unchanged();
    assert_int_equal(ctx.visited, 0);
}

static void
all_were_visited(void)
{
    assert_int_equal(ctx.visited, scene.ready + scene.held);
    all_come_out();
}

/* O-33 */
TEST(walk_without_memory_visits_nothing)
{
    scene = (struct scene){.ready = 200, .held = 5};
    assert_fails_cleanly(&queue_fixture, "each", op_each,
                         unchanged_and_none_visited, all_were_visited);
}

WQ_TESTS(test(create_without_memory_makes_nothing),
         test(first_add_without_memory_changes_nothing),
         test(add_of_a_long_key_without_memory_changes_nothing),
         test(add_behind_a_plug_in_without_memory_changes_nothing),
         test(add_of_a_held_key_needs_no_memory),
         test(add_behind_keys_handed_over_without_memory_loses_none),
         test(get_without_memory_keeps_the_key_first),
         test(get_behind_a_plug_in_without_memory_keeps_the_key_first),
         test(get_of_keys_handed_over_without_memory_loses_none),
         test(get_of_keys_handed_over_to_a_plug_in_without_memory_loses_none),
         test(done_needs_no_memory),
         test(done_that_the_plug_in_has_no_memory_for_keeps_the_loan),
         test(finish_without_memory_keeps_the_loan),
         test(finish_that_adds_nothing_needs_no_memory),
         test(finish_that_the_plug_in_has_no_memory_for_keeps_the_loan),
         test(length_is_right_without_memory),
         test(shutdown_without_memory_loses_nothing),
         test(destroy_needs_no_memory),
         test(remove_behind_keys_handed_over_without_memory_removes_nothing),
         test(removal_behind_keys_handed_over_without_memory_removes_nothing),
         test(waits_behind_keys_handed_over_without_memory_fail),
         test(pauses_need_no_memory),
         test(long_key_without_memory_is_not_given_up),
         test(walk_without_memory_visits_nothing));
