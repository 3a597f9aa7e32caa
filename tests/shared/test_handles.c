/* SPDX-License-Identifier: MIT */
/* test_handles.c: what do two handles of one store have in common, and what has
 * each for itself? */
#include "shared/fixture.h"

#include "support/entries.h"

/* ---- shutdown ------------------------------------------------------------ */

/* S-05 */
TEST(shutdown_closes_one_handle)
{
    wq_item *item = NULL;

    add(f.a, "k");
    assert_err(wq_add_after_str(f.a, "later", 10), WQ_OK);
    wq_shutdown(f.a);
    assert_true(wq_shutting_down(f.a));
    assert_false(wq_shutting_down(f.b));
    assert_err(wq_add_str(f.a, "l"), WQ_ESHUTDOWN);
    assert_err(wq_add_after_str(f.a, "l", 5), WQ_ESHUTDOWN);
    assert_err(wq_pause(f.a), WQ_ESHUTDOWN);
    add(f.b, "l");
    work_on(f.a, "k"); /* gets of the closed handle go on */
    work_on(f.a, "l");
    assert_err(wq_get(f.a, &item), WQ_ESHUTDOWN);

    assert_int_equal(states(f.b, "later"), WQ_STATE_WAITING);
    pass(10);
    work_on(f.a, "later");
    assert_none_ready(f.b);
}

/* S-05 */
TEST(shutdown_wakes_the_gets_of_its_handle_only)
{
    wq_item       *item = NULL;
    struct worker *mine = worker_get(f.a, NULL);
    struct worker *theirs = worker_get(f.b, &item);

    worker_await_blocked(mine);
    worker_await_blocked(theirs);
    wq_shutdown(f.a);
    assert_err(worker_join(mine), WQ_ESHUTDOWN);
    expect_sleeps_until_add(theirs, f.b, &item);
}

/* S-14 S-05: the holder's retry is no add. */
TEST(retry_after_a_shutdown_keeps_the_key)
{
    add(f.a, "k");
    add(f.a, "l");
    wq_item *k = take_key(f.a, "k"), *l = take_key(f.a, "l");
    wq_shutdown(f.a);
    assert_err(wq_finish(f.a, k, wq_result_retry()), WQ_OK);
    assert_err(wq_finish(f.a, l, wq_result_after(500)), WQ_OK);
    assert_int_equal(states(f.b, "k"), WQ_STATE_WAITING | WQ_STATE_BACKOFF);
    assert_int_equal(wq_num_requeues_str(f.b, "k"), 1);
    assert_int_equal(states(f.b, "l"), WQ_STATE_WAITING);
    pass(10);
    work_on(f.b, "k");
    pass(490);
    work_on(f.b, "l");
    assert_int_equal(f.dropped.n, 0);
}

/* S-12 S-14 */
TEST(back_after_a_shutdown_makes_the_key_ready)
{
    wq_item *item = hold(f.a, "k");

    wq_shutdown(f.a);
    assert_err(wq_finish(f.a, item, wq_result_back()), WQ_OK);
    work_on(f.b, "k");
}

/* ---- drain --------------------------------------------------------------- */

/* S-06 */
TEST(drain_does_not_wait_for_other_handles)
{
    add(f.a, "k");
    wq_item *theirs = take_key(f.b, "k");
    add(f.a, "k"); /* DIRTY */

    assert_err(wq_shutdown_with_drain(f.a), WQ_OK);
    assert_int_equal(states(f.c, "k"), WQ_STATE_HELD | WQ_STATE_DIRTY);
    assert_err(wq_done(f.b, theirs), WQ_OK);
}

/* S-06 */
TEST(drain_waits_for_its_own_holds)
{
    wq_item       *mine = hold(f.a, "k");
    struct worker *w = worker_drain(f.a);

    worker_await_blocked(w);
    assert_err(wq_done(f.a, mine), WQ_OK);
    assert_err(worker_join(w), WQ_OK);
}

/* S-06 */
TEST(drain_waits_until_others_have_taken_ready_keys)
{
    add(f.a, "k");
    add(f.a, "l");
    struct worker *w = worker_drain(f.a);

    worker_await_blocked(w);
    wq_item *k = take_key(f.b, "k");
    worker_await_blocked(w);
    wq_item *l = take_key(f.c, "l");
    assert_err(worker_join(w), WQ_OK);
    assert_err(wq_done(f.b, k), WQ_OK);
    assert_err(wq_done(f.c, l), WQ_OK);
}

/* S-06 */
TEST(shutdown_of_the_handle_ends_its_drain)
{
    add(f.a, "k");
    struct worker *w = worker_drain(f.a);

    worker_await_blocked(w);
    wq_shutdown(f.b);
    worker_await_blocked(w);
    wq_shutdown(f.a);
    assert_err(worker_join(w), WQ_EINTERRUPTED);
}

/* S-06 S-04 */
TEST(drain_ends_when_a_lost_key_is_given_up)
{
    wq_item       *mine = hold(f.a, "k");
    struct worker *w = worker_drain(f.a);

    worker_await_blocked(w);
    memory_store_end_session(f.engines[0]);
    work_on(f.b, "k");
    assert_err(wq_done(f.a, mine), WQ_ELOST);
    assert_err(worker_join(w), WQ_OK);
}

/* ---- destroy ------------------------------------------------------------- */

/* S-07 */
TEST(destroy_gives_the_keys_back)
{
    add(f.a, "k");
    add(f.a, "l");
    assert_err(wq_add_after_str(f.a, "later", 10), WQ_OK);
    (void)take_key(f.a, "k");
    (void)take_key(f.a, "l");
    add(f.b, "l"); /* DIRTY */
    leave_with(&f.a);
    assert_int_equal(states(f.b, "k"), WQ_STATE_READY);
    assert_int_equal(states(f.b, "l"), WQ_STATE_READY);
    assert_int_equal(states(f.b, "later"), WQ_STATE_WAITING);
    assert_int_equal(wq_num_requeues_str(f.b, "k"), 0);
    assert_int_equal(stats_of(f.b).expired, 0);
    assert_int_equal(stats_of(f.b).held, 0);
    assert_int_equal(count_lost(), 0);
    work_on(f.b, "k");
    work_on(f.b, "l");
    assert_none_ready(f.b);
}

/* S-07 */
TEST(destroy_wakes_a_sleeping_get_of_another_handle)
{
    wq_item *item = NULL;

    add(f.a, "k");
    (void)take_key(f.a, "k");
    struct worker *w = worker_get(f.b, &item);
    worker_await_blocked(w);
    leave_with(&f.a);
    assert_err(worker_join(w), WQ_OK);
    assert_err(wq_done(f.b, item), WQ_OK);
}

/* S-07: the answer to a get was lost, and the handle has no time to reconcile. */
TEST(destroy_gives_back_what_the_handle_does_not_know)
{
    wq_item *item = NULL;

    add(f.a, "k");
    plan_at(0, STORE_EIO_AFTER, 1, 0);
    plan_at(0, STORE_AWAY, 2, 0);
    assert_err(wq_get_within(f.a, 0, &item), WQ_EIO);
    leave_with(&f.a);
    work_on(f.b, "k");
}

/* S-07 */
TEST(destroy_ends_sleepers_of_every_kind)
{
    wq_item       *held = hold(f.b, "k");
    struct worker *getter = worker_get(f.a, NULL);

    worker_await_blocked(getter);
    leave_with(&f.a);
    assert_err(worker_join(getter), WQ_ESHUTDOWN);
    assert_err(wq_done(f.b, held), WQ_OK);
}

/* ---- what can be seen ---------------------------------------------------- */

static bool
count_key(void *ctx, wq_key key, const wq_key_info *info)
{
    int *n = ctx;

    (void)info;
    assert_int_equal(key.len, 1);
    n[((const char *)key.data)[0] - 'a']++;
    return true;
}

/* S-08 */
TEST(stats_describe_the_store_and_count_the_handle)
{
    add(f.a, "a");
    add(f.a, "b");
    add(f.b, "b");
    add(f.b, "c");
    assert_err(wq_add_after_str(f.b, "d", 10), WQ_OK);
    (void)take_key(f.a, "a");
    wq_item       *held = take_key(f.b, "b");
    const wq_stats x = stats_of(f.a), y = stats_of(f.b);

    assert_int_equal(x.ready, 1);
    assert_int_equal(y.ready, 1);
    assert_int_equal(x.held, 2);
    assert_int_equal(y.held, 2);
    assert_int_equal(x.waiting, 1);
    assert_int_equal(x.known, 4);
    assert_int_equal(x.holders, 2);
    assert_int_equal(x.adds, 2);
    assert_int_equal(y.adds, 1);
    assert_int_equal(x.merged, 0);
    assert_int_equal(y.merged, 1);
    assert_int_equal(x.gets, 1);
    assert_int_equal(y.gets, 1);
    assert_int_equal(x.retries, 0);
    assert_int_equal(y.retries, 1);
    assert_int_equal(wq_len(f.c), 1);
    assert_int_equal(stats_of(f.c).gets, 0);
    assert_int_equal(states(f.c, "b"), WQ_STATE_HELD);
    assert_int_equal(info_of(f.c, "b").fence, held->fence);
}

/* S-08 */
TEST(walk_visits_the_keys_of_all_handles)
{
    int      n[5] = {0};
    wq_depth depths[4];
    size_t   len = 0;

    add(f.a, "a");
    add(f.b, "b");
    assert_err(wq_add_one_str(f.b, "c", WQ_ADD(.priority = 7)), WQ_OK);
    assert_err(wq_add_after_str(f.a, "d", 10), WQ_OK);
    (void)take_key(f.b, "c");
    add(f.b, "e");
    wq_item *item = take_key(f.a, "a");
    assert_err(wq_finish(f.a, item, wq_result_bury()), WQ_OK);
    assert_err(wq_each(f.c, 0, count_key, n), WQ_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(n[i], 1);
    assert_err(wq_each(f.c, WQ_STATE_DEAD, count_key, n), WQ_OK);
    assert_int_equal(n[0], 2);
    assert_int_equal(n[1], 1);
    assert_err(wq_read_depths(f.c, depths, 4, &len), WQ_OK);
    assert_in_range(len, 1, 2);
}

/* S-08 */
TEST(stats_of_losses_are_those_of_the_handle)
{
    add(f.a, "k");
    (void)take_key(f.a, "k");
    memory_store_end_session(f.engines[0]);
    work_on(f.b, "k");
    assert_int_equal(stats_of(f.a).lost, 1);
    assert_int_equal(stats_of(f.b).lost, 0);
    assert_int_equal(stats_of(f.a).expired, 0);
    assert_int_equal(stats_of(f.b).expired, 1);
}

/* S-08 S-14: a drop is counted once, whichever verb says so. */
TEST(drops_are_counted_once)
{
    wq_item *item;

    add(f.a, "k");
    item = take_key(f.a, "k");
    assert_err(wq_finish(f.a, item, wq_result_drop()), WQ_OK);
    assert_int_equal(stats_of(f.a).drops, 1);
    add(f.a, "k");
    add(f.a, "l");
    item = take_key(f.a, "k");
    assert_err(wq_next_with(f.a, wq_result_drop(), 0, &item), WQ_OK);
    assert_int_equal(stats_of(f.a).drops, 2);
    assert_err(wq_next(f.a, 0, &item), WQ_ETIMEDOUT);
    assert_int_equal(stats_of(f.a).drops, 2);
    assert_int_equal(stats_of(f.b).drops, 0);
}

/* ---- config -------------------------------------------------------------- */

static wq_err
never_push(void *self, wq_key key, int priority)
{
    (void)self, (void)key, (void)priority;
    return WQ_OK;
}

static bool
never_pop(void *self, wq_key *out)
{
    (void)self, (void)out;
    return false;
}

static size_t
no_len(void *self)
{
    (void)self;
    return 0;
}

static void *
no_alloc(void *ctx, size_t n)
{
    (void)ctx, (void)n;
    return NULL;
}

static void
no_free(void *ctx, void *p, size_t n)
{
    (void)ctx, (void)p, (void)n;
}

static int64_t
no_delay(void *self, wq_key key)
{
    (void)self, (void)key;
    return 0;
}

/* S-10 */
TEST(config_refuses_what_a_store_cannot_do)
{
    static const wq_order     order = {.size = sizeof order,
                                       .push = never_push,
                                       .pop = never_pop,
                                       .len = no_len};
    static const wq_allocator allocator = {
        .size = sizeof allocator, .alloc = no_alloc, .free = no_free};
    const struct {
        const char *field;
        wq_config   config;
    } all[] = {
        {"order", {.order = &order}},
        {"allocator", {.allocator = &allocator}},
        {"group", {.group = wq_group_before_slash}},
        {"max_ready_ns", {.max_ready_ns = 5}},
        {"real_time", {.real_time = true}},
        {"max_bytes", {.max_bytes = 5}},
        {"overflow", {.max_len = 5, .overflow = WQ_OVERFLOW_BLOCK}},
        {"overflow", {.max_len = 5, .overflow = WQ_OVERFLOW_DROP_OLDEST}},
        {"waiting", {.waiting = WQ_WAITING_KEEP}},
        {"waiting", {.waiting = WQ_WAITING_FLUSH}},
        {"waiting", {.waiting = WQ_WAITING_FLUSH_ALL}},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        wq_config config = all[i].config;
        wq_queue *q = NULL;
        char      sentence[128];

        config.size = sizeof config;
        (void)snprintf(sentence, sizeof sentence,
                       "wq_config.%s is not supported by a shared queue",
                       all[i].field);
        assert_err(shared_queue_join(f.store, NULL, &config, NULL, &q),
                   WQ_ENOTSUP);
        assert_string_equal(wq_last_error(), sentence);
        assert_null(q);
    }
    expect_sound();
}

/* S-10 */
TEST(config_refuses_a_limiter_of_the_program)
{
    const wq_limiter_ops ops = {.size = sizeof ops, .when = no_delay};
    wq_queue            *q = NULL;

    assert_err(
        shared_queue_join(f.store, NULL,
                          WQ_CONFIG(.limiter = wq_limiter_create(&ops, NULL)),
                          NULL, &q),
        WQ_ENOTSUP);
    assert_non_null(strstr(wq_last_error(), "limiter"));
    assert_null(q);
}

/* S-10 S-05 */
TEST(config_accepts_the_choice_of_shared_queues)
{
    wq_queue *q = NULL;

    assert_err(
        shared_queue_join(f.store, NULL,
                          WQ_CONFIG(.waiting = WQ_WAITING_LEAVE, .max_len = 3,
                                    .max_retries = 2, .retry = WQ_RETRY_RESPECT,
                                    .name = "n", .ages = true),
                          NULL, &q),
        WQ_OK);
    wq_destroy(q);
}

/* ---- DEAD keys ----------------------------------------------------------- */

/* S-13 */
TEST(buried_key_is_dead_for_all_handles)
{
    wq_added added;

    wq_item *item = hold(f.a, "k");
    add(f.b, "k"); /* DIRTY: DEAD only */
    assert_err(wq_finish(f.a, item, wq_result_bury()), WQ_OK);
    assert_int_equal(states(f.b, "k"), WQ_STATE_DEAD);
    assert_none_ready(f.b);
    assert_int_equal(stats_of(f.b).dead, 1);
    assert_int_equal(stats_of(f.b).known, 1);
    assert_err(wq_add_one_str(f.b, "k", WQ_ADD(.results = &added)), WQ_OK);
    assert_int_equal(added, WQ_ADDED_DEAD);
    assert_err(wq_add_after_str(f.b, "k", 10), WQ_OK);
    assert_err(wq_add_rate_limited_str(f.b, "k"), WQ_OK);
    assert_int_equal(states(f.b, "k"), WQ_STATE_DEAD);

    assert_err(wq_revive_str(f.b, "k"), WQ_OK);
    assert_err(wq_revive_str(f.a, "k"), WQ_ENOTFOUND);
    assert_int_equal(wq_num_requeues_str(f.a, "k"), 0);
    work_on(f.a, "k");
    assert_err(wq_revive_str(f.a, "k"), WQ_ENOTFOUND);
}

/* S-13 */
TEST(dead_key_can_be_removed)
{
    wq_item *item = hold(f.a, "k");

    assert_err(wq_finish(f.a, item, wq_result_bury()), WQ_OK);
    assert_err(wq_remove_str(f.b, "k"), WQ_OK);
    assert_err(wq_remove_str(f.a, "k"), WQ_ENOTFOUND);
    add(f.a, "k");
    work_on(f.b, "k");
}

/* S-13 */
TEST(key_that_fails_too_often_is_dead)
{
    REOPEN({.lease_ns = 0}, .max_retries = 2);
    add(f.a, "k");
    for (int i = 0; i < 2; i++) {
        wq_item *item = take_key(f.b, "k");
        assert_err(wq_finish(f.b, item, wq_result_retry()), WQ_OK);
        pass(1000);
    }
    assert_int_equal(f.dropped.n, 0);
    wq_item *item = take_key(f.a, "k");
    assert_err(wq_finish(f.a, item, wq_result_retry()), WQ_EGIVENUP);
    assert_int_equal(f.dropped.n, 1);
    assert_string_equal(f.dropped.at[0].key, "k");
    assert_int_equal(f.dropped.at[0].number, 2);
    assert_int_equal(f.dropped.at[0].handle, 0);
    assert_int_equal(f.dropped.at[0].why, WQ_EGIVENUP);
    assert_true(f.dropped.at[0].ended_by_nul);
    assert_int_equal(states(f.b, "k"), WQ_STATE_DEAD);
    assert_int_equal(info_of(f.b, "k").requeues, 2);
    assert_int_equal(wq_num_requeues_str(f.b, "k"), 2);
    assert_int_equal(stats_of(f.a).drops, 1);
    assert_int_equal(stats_of(f.b).drops, 0);
}

/* S-13 */
TEST(dead_key_that_is_removed_has_no_failures)
{
    REOPEN({.lease_ns = 0}, .max_retries = 1);
    wq_item *item = hold(f.a, "k");
    assert_err(wq_finish(f.a, item, wq_result_retry()), WQ_OK);
    pass(1000);
    item = take_key(f.a, "k");
    assert_err(wq_finish(f.a, item, wq_result_retry()), WQ_EGIVENUP);
    assert_int_equal(wq_num_requeues_str(f.b, "k"), 1);
    assert_err(wq_remove_str(f.b, "k"), WQ_OK);
    assert_int_equal(wq_num_requeues_str(f.b, "k"), 0);
    item = hold(f.a, "k");
    assert_err(wq_finish(f.a, item, wq_result_retry()), WQ_OK);
}

/* S-13 S-14 */
TEST(next_with_goes_on_after_a_key_was_given_up)
{
    REOPEN({.lease_ns = 0}, .max_retries = 1);
    wq_item *item = hold(f.a, "k");
    assert_err(wq_finish(f.a, item, wq_result_retry()), WQ_OK);
    pass(1000);
    item = take_key(f.a, "k");
    add(f.a, "l");
    assert_err(wq_next_with(f.a, wq_result_retry(), 0, &item), WQ_OK);
    assert_memory_equal(item->key.data, "l", 2);
    assert_int_equal(states(f.b, "k"), WQ_STATE_DEAD);
}

/* S-13: the key of on_drop ends with a NUL byte, as wq.h says. */
TEST(key_given_up_by_an_add_ends_with_nul)
{
    char big[300];

    REOPEN({.lease_ns = 0}, .max_retries = 1);
    memset(big, 'x', sizeof big);
    const wq_key keys[] = {wq_bytes("ky", 1), wq_bytes(big, 299)};
    for (size_t i = 0; i < 2; i++) {
        assert_err(wq_add_rate_limited(f.a, keys[i]), WQ_OK);
        assert_err(wq_add_rate_limited(f.a, keys[i]), WQ_EGIVENUP);
        assert_int_equal(f.dropped.n, i + 1);
        assert_int_equal(f.dropped.at[i].number, 1);
        assert_true(f.dropped.at[i].ended_by_nul);
    }
    assert_string_equal(f.dropped.at[0].key, "k");
}

/* ---- finishing ----------------------------------------------------------- */

/* S-04: the memory of an item is used again as late as possible. */
TEST(stale_done_does_not_end_the_next_loan)
{
    wq_item *old = hold(f.a, "k");
    assert_err(wq_done(f.a, old), WQ_OK);
    for (int i = 0; i < 6; i++) {
        add(f.a, "l");
        wq_item *item = take_key(f.a, "l");
        assert_ptr_not_equal(item, old);
        assert_err(wq_done(f.a, old), WQ_ESTATE);
        assert_err(wq_finish(f.a, old, wq_result_retry()), WQ_ESTATE);
        assert_int_equal(wq_hold_left(f.a, old), 0);
        assert_err(wq_done(f.a, item), WQ_OK);
    }
    wq_item copy = *old;
    assert_err(wq_done(f.a, &copy), WQ_ESTATE);
}

/* S-01 */
TEST(done_key_is_for_keys_of_the_handle)
{
    add(f.a, "k");
    (void)take_key(f.a, "k");
    assert_err(wq_done_key_str(f.b, "k"), WQ_ESTATE);
    assert_int_equal(states(f.b, "k"), WQ_STATE_HELD);
    assert_err(wq_done_key_str(f.a, "k"), WQ_OK);
    assert_err(wq_done_key_str(f.a, "k"), WQ_ESTATE);
}

/* S-14 */
TEST(next_with_works_through_the_keys_of_all_handles)
{
    wq_item *item = NULL;

    add(f.a, "1");
    add(f.b, "2");
    add(f.c, "3");
    assert_err(wq_next_with(f.a, wq_result_done(), 0, &item), WQ_OK);
    assert_memory_equal(item->key.data, "1", 2);
    assert_err(wq_next_with(f.a, wq_result_retry(), 0, &item), WQ_OK);
    assert_memory_equal(item->key.data, "2", 2);
    assert_err(wq_next_with(f.a, wq_result_after(5), 0, &item), WQ_OK);
    assert_memory_equal(item->key.data, "3", 2);
    assert_err(wq_next_with(f.a, wq_result_bury(), 0, &item), WQ_ETIMEDOUT);
    assert_null(item);
    assert_int_equal(states(f.b, "1"), WQ_STATE_WAITING | WQ_STATE_BACKOFF);
    assert_int_equal(states(f.b, "2"), WQ_STATE_WAITING);
    assert_int_equal(states(f.b, "3"), WQ_STATE_DEAD);
}

/* ---- pause and interrupt ------------------------------------------------- */

/* S-01 */
TEST(pause_and_interrupt_are_those_of_the_handle)
{
    wq_item *item = NULL;

    assert_err(wq_pause(f.a), WQ_OK);
    add(f.a, "k");
    assert_err(wq_get_within(f.a, 0, &item), WQ_ETIMEDOUT);
    struct worker *mine = worker_get(f.a, &item);
    worker_await_blocked(mine);
    work_on(f.b, "k");
    add(f.b, "l");
    worker_await_blocked(mine);
    assert_err(wq_resume(f.b), WQ_OK);
    worker_await_blocked(mine);
    assert_err(wq_resume(f.a), WQ_OK);
    assert_err(worker_join(mine), WQ_OK);
    assert_err(wq_done(f.a, item), WQ_OK);

    mine = worker_get(f.a, NULL);
    struct worker *theirs = worker_get(f.b, NULL);
    worker_await_blocked(mine);
    worker_await_blocked(theirs);
    wq_interrupt(f.b);
    assert_err(worker_join(theirs), WQ_EINTERRUPTED);
    worker_await_blocked(mine);
    wq_interrupt(f.a);
    assert_err(worker_join(mine), WQ_EINTERRUPTED);
}

/* S-02: paused gets do not look, whatever is in doubt, and do not spin. */
TEST(paused_get_sleeps_while_an_answer_is_in_doubt)
{
    wq_item *item = NULL;

    assert_err(wq_pause(f.a), WQ_OK);
    struct worker *w = worker_get(f.a, &item);
    worker_await_blocked(w);
    plan_at(0, STORE_EIO_AFTER, 1, 0);
    assert_err(wq_add_str(f.a, "k"), WQ_EIO);
    worker_await_blocked(w);
    assert_err(wq_resume(f.a), WQ_OK);
    assert_err(worker_join(w), WQ_OK);
    assert_err(wq_done(f.a, item), WQ_OK);
}

/* ---- nothing is left over ------------------------------------------------ */

/* How many descriptors are open; 0 where that cannot be seen. */
static size_t
count_descriptors(void)
{
    return entries_of("/proc/self/fd");
}

/* S-07: of 10,000 handles that end while they hold a key. */
TEST(handles_that_end_leave_nothing)
{
    const size_t descriptors = count_descriptors();

    add(f.b, "k");
    for (int i = 0; i < 10000; i++) {
        const struct shared_queue_options options = {
            .lease_ns = i % 20 ? 0 : 1000}; /* some with a thread */

        leave_with(&f.a);
        f.a = join_with(0, &options, WQ_CONFIG(.name = NULL));
        (void)wq_fd(f.a);
        (void)take_key(f.a, "k");
    }
    leave_with(&f.a);
    assert_int_equal(count_descriptors(), descriptors);
    assert_int_equal(stats_of(f.b).held, 0);
    work_on(f.b, "k");
    expect_sound();
}

/* S-03: of 10,000 sessions that end under one handle. */
TEST(sessions_that_end_leave_nothing)
{
    const size_t descriptors = count_descriptors();

    add(f.b, "k");
    for (int i = 0; i < 10000; i++) {
        wq_item *item = take_key(f.a, "k");

        memory_store_end_session(f.engines[0]);
        assert_err(wq_finish(f.a, item, wq_result_done()), WQ_ELOST);
        wq_forget_str(f.b, "k");
    }
    assert_int_equal(count_descriptors(), descriptors);
    assert_int_equal(stats_of(f.b).held, 0);
    assert_int_equal(stats_of(f.b).ready, 1);
    assert_int_equal(stats_of(f.b).connects, 1);
    assert_int_equal(stats_of(f.a).connects, 10001);
    expect_sound();
}

WQ_TESTS(with_handles(handles_that_end_leave_nothing),
         with_handles(sessions_that_end_leave_nothing),
         with_handles(shutdown_closes_one_handle),
         with_handles(shutdown_wakes_the_gets_of_its_handle_only),
         with_handles(retry_after_a_shutdown_keeps_the_key),
         with_handles(back_after_a_shutdown_makes_the_key_ready),
         with_handles(drain_does_not_wait_for_other_handles),
         with_handles(drain_waits_for_its_own_holds),
         with_handles(drain_waits_until_others_have_taken_ready_keys),
         with_handles(shutdown_of_the_handle_ends_its_drain),
         with_leases(drain_ends_when_a_lost_key_is_given_up),
         with_handles(destroy_gives_the_keys_back),
         with_handles(destroy_wakes_a_sleeping_get_of_another_handle),
         with_handles(destroy_gives_back_what_the_handle_does_not_know),
         with_handles(destroy_ends_sleepers_of_every_kind),
         with_handles(stats_describe_the_store_and_count_the_handle),
         with_handles(walk_visits_the_keys_of_all_handles),
         with_leases(stats_of_losses_are_those_of_the_handle),
         with_handles(drops_are_counted_once),
         with_handles(config_refuses_what_a_store_cannot_do),
         with_handles(config_refuses_a_limiter_of_the_program),
         with_handles(config_accepts_the_choice_of_shared_queues),
         with_handles(buried_key_is_dead_for_all_handles),
         with_handles(dead_key_can_be_removed),
         with_handles(key_that_fails_too_often_is_dead),
         with_handles(dead_key_that_is_removed_has_no_failures),
         with_handles(next_with_goes_on_after_a_key_was_given_up),
         with_handles(key_given_up_by_an_add_ends_with_nul),
         with_handles(stale_done_does_not_end_the_next_loan),
         with_handles(done_key_is_for_keys_of_the_handle),
         with_handles(next_with_works_through_the_keys_of_all_handles),
         with_handles(pause_and_interrupt_are_those_of_the_handle),
         with_handles(paused_get_sleeps_while_an_answer_is_in_doubt));
