/* SPDX-License-Identifier: MIT */
/* test_remove_wait.c: when may what a key stands for be freed? wq_remove_wait()
 * returns when no worker holds the key, and none will. */
#include "waits.h"

#include <stdatomic.h>

#include <wq/limiter.h>
#include <wq/workers.h>

#include "support/stage.h"

static wq_err
remove_wait(struct timed *t, const char *key)
{
    return wq_remove_wait(t->q, wq_str(key), WQ_FOREVER);
}

/* A remover of "a", which this thread holds. */
static void
begin_removal(struct wait *w, struct timed *t)
{
    begin_wait(w, FOR_REMOVAL, t->q, "a");
}

static wq_item *
add_and_take(struct timed *t, const char *key)
{
    add(t->q, key);
    return take_key(t->q, key);
}

/* ---- nobody holds it ----------------------------------------------------- */

/* O-84 */
TEST(key_that_nobody_holds_is_removed_at_once)
{
    struct timed *t = *state;

    add(t->q, "a");
    add(t->q, "b");
    add_after(t, "a", S); /* READY and WAITING */
    assert_err(remove_wait(t, "a"), WQ_OK);
    assert_states(t->q, "a", 0);
    assert_int_equal(counts_of(t->q).removed, 1);
    add_after(t, "c", S); /* WAITING */
    assert_err(wq_remove_wait(t->q, wq_str("c"), 0), WQ_OK);
    step(t, S);
    work_on(t->q, "b");
    assert_none_due(t);
}

/* O-84 */
TEST(unknown_key_is_removed_already)
{
    struct timed *t = *state;

    assert_err(remove_wait(t, "a"), WQ_OK);
    assert_err(wq_remove_wait(t->q, wq_str("a"), 0), WQ_OK);
    wq_item *other =
        add_and_take(t, "b"); /* holding another key is no matter */
    assert_err(remove_wait(t, "a"), WQ_OK);
    finish(t->q, other);
    wq_shutdown(t->q);
    assert_err(remove_wait(t, "a"), WQ_OK);
}

/* O-84: a key that a producer handed over just before. */
TEST(key_handed_over_just_before_is_removed)
{
    struct timed *t = *state;

    have_another_getter(t->q);
    add(t->q, "a");
    assert_err(remove_wait(t, "a"), WQ_OK);
    assert_none_due(t);
}

/* O-84: a deadline that came and was not seen yet. */
TEST(key_that_became_due_is_removed)
{
    struct timed *t = *state;

    add_after(t, "a", S);
    step(t, S);
    assert_err(remove_wait(t, "a"), WQ_OK);
    assert_none_due(t);
    assert_int_equal(counts_of(t->q).removed, 1);
}

/* ---- a worker holds it --------------------------------------------------- */

/* O-84 */
TEST(removal_of_a_held_key_waits_for_done)
{
    struct timed *t = *state;
    struct wait   w;

    wq_item *item = add_and_take(t, "a");
    begin_removal(&w, t);
    assert_states(t->q, "a", WQ_STATE_HELD);
    finish(t->q, item);
    assert_ends(&w, WQ_OK);
    assert_states(t->q, "a", 0);
}

/* O-84: DIRTY and WAITING end at the call. */
TEST(removal_takes_back_what_was_asked_before)
{
    struct timed *t = *state;
    struct wait   w;

    wq_item *item = add_and_take(t, "a");
    add(t->q, "a");
    add_after(t, "a", S);
    begin_removal(&w, t);
    assert_states(t->q, "a", WQ_STATE_HELD);
    assert_int_equal(counts_of(t->q).waiting, 0);
    finish(t->q, item);
    assert_ends(&w, WQ_OK);
    step(t, S);
    assert_none_due(t);
}

/* O-84: in whichever way, and by whomever, it is asked for meanwhile. */
TEST(removal_takes_back_what_is_asked_while_it_waits)
{
    const wq_add_options *const hows[] = {
        WQ_ADD(.priority = 0),
        WQ_ADD(.priority = 5),
        WQ_ADD(.after_ns = S),
        WQ_ADD(.rate_limited = true),
        WQ_ADD(.debounce_ns = S),
        WQ_ADD(.throttle_ns = S),
        WQ_ADD(.debounce_ns = S, .max_wait_ns = 2 * S),
        WQ_ADD(.after_ns = S, .waiting = WQ_IF_WAITING_REPLACE),
    };
    struct timed *t = *state;

    for (size_t i = 0; i < sizeof hows / sizeof hows[0]; i++) {
        struct wait w;

        wq_item *item = add_and_take(t, "a");
        begin_removal(&w, t);
        (void)add_how(t->q, hows[i], "a");
        add(t->q, "a"); /* and DIRTY as well */
        assert_waits(&w);
        finish(t->q, item);
        assert_ends(&w, WQ_OK);
        assert_states(t->q, "a", 0);
        assert_int_equal(counts_of(t->q).waiting, 0);
        step(t, HOUR);
        assert_none_due(t);
    }
}

/* O-84: a deadline that comes while the remover waits. */
TEST(removal_takes_back_a_deadline_that_comes)
{
    struct timed *t = *state;
    struct wait   w;

    wq_item *item = add_and_take(t, "a");
    begin_removal(&w, t);
    add_after(t, "a", S);
    step(t, 2 * S);
    assert_int_equal(wq_len(t->q), 0);
    assert_states(t->q, "a", WQ_STATE_HELD | WQ_STATE_DIRTY);
    finish(t->q, item);
    assert_ends(&w, WQ_OK);
    assert_none_due(t);
    assert_int_equal(counts_of(t->q).removed, 1);
}

/* O-84: the worker ends its loan in any way. */
TEST(removal_ends_with_every_kind_of_done)
{
    struct timed *t = *state;
    struct wait   w;

    wq_item *item = add_and_take(t, "a");
    begin_removal(&w, t);
    add(t->q, "a");
    assert_err(wq_done_key(t->q, wq_str("a")), WQ_OK);
    assert_ends(&w, WQ_OK);

    item = add_and_take(t, "a");
    begin_removal(&w, t);
    add(t->q, "a");
    assert_err(wq_done_many(t->q, &item, 1), WQ_OK);
    assert_ends(&w, WQ_OK);

    item = add_and_take(t, "a");
    begin_removal(&w, t);
    add(t->q, "a");
    assert_err(wq_next(t->q, 0, &item), WQ_ETIMEDOUT);
    assert_ends(&w, WQ_OK);
    assert_none_due(t);
}

/* O-84: an add after the done is a later one, though the remover sleeps on. */
TEST(add_after_the_done_stands)
{
    struct timed *t = *state;
    struct wait   w;

    wq_item *item = add_and_take(t, "a");
    begin_removal(&w, t);
    freeze(&w);
    finish(t->q, item);
    add(t->q, "a");
    item = take_key(t->q, "a");
    thaw();
    assert_ends(&w, WQ_OK);
    assert_states(t->q, "a", WQ_STATE_HELD);
    finish(t->q, item);
    close_ice();
}

/* O-84 O-54: the time after a throttled run goes on, whatever the clock says. */
TEST(removal_does_not_end_the_time_after_a_throttled_run)
{
    const wq_add_options *throttled = WQ_ADD(.throttle_ns = HOUR);
    struct timed         *t = timed_begin(-100 * HOUR);
    struct wait           w;

    assert_err(wq_create(WQ_CONFIG(.clock = t->clock), &t->q), WQ_OK);
    assert_added(add_how(t->q, throttled, "a"), WQ_ADDED_NEW);
    wq_item *item = take_key(t->q, "a");
    begin_removal(&w, t);
    assert_added(add_how(t->q, throttled, "a"), WQ_ADDED_SCHEDULED);
    finish(t->q, item);
    assert_ends(&w, WQ_OK);
    assert_states(t->q, "a", 0);
    assert_added(add_how(t->q, throttled, "a"), WQ_ADDED_SCHEDULED);
    assert_due_in(t, "a", HOUR);
    timed_destroy(t);
}

/* O-84 O-57: what the limiter knows stays. */
TEST(removal_leaves_the_limiter_alone)
{
    struct timed *t =
        timed_create(WQ_CONFIG(.limiter = wq_limiter_exponential(S, HOUR)));
    struct wait w;

    for (unsigned i = 0; i < 2; i++) {
        wq_item *item = add_and_take(t, "a");
        begin_removal(&w, t);
        assert_err(wq_add_rate_limited(t->q, wq_str("a")), WQ_OK);
        finish(t->q, item);
        assert_ends(&w, WQ_OK);
        assert_int_equal(wq_num_requeues(t->q, wq_str("a")), i + 1);
    }
    assert_err(wq_add_rate_limited(t->q, wq_str("a")), WQ_OK);
    assert_due_in(t, "a", 4 * S);
    timed_destroy(t);
}

/* O-84 O-16: a backoff that the queue respects is taken back, too. */
TEST(removal_takes_back_a_backoff_that_is_respected)
{
    struct timed *t =
        timed_create(WQ_CONFIG(.retry = WQ_RETRY_RESPECT,
                               .limiter = wq_limiter_exponential(S, S)));
    struct wait w;

    wq_item *item = add_and_take(t, "a");
    begin_removal(&w, t);
    add(t->q, "a");
    assert_err(wq_add_rate_limited(t->q, wq_str("a")), WQ_OK);
    finish(t->q, item);
    assert_ends(&w, WQ_OK);
    assert_states(t->q, "a", 0);
    step(t, HOUR);
    assert_none_due(t);
    timed_destroy(t);
}

/* ---- a pool's retry ------------------------------------------------------ */

struct retries {
    struct stage stage;
    wq_result    result;
};

static wq_result
handle(void *ctx, const wq_item *item)
{
    struct retries *r = ctx;

    (void)item;
    stage_pass(&r->stage);
    return r->result;
}

/* O-84 PQ-47: what the handler's result asks for. */
TEST(removal_takes_back_the_retry_of_a_pool)
{
    const wq_result results[] = {wq_result_retry(), wq_result_after(MS)};

    for (size_t i = 0; i < 2; i++) {
        struct timed  *t = timed_create(WQ_CONFIG(.order = NULL));
        struct retries r = {.stage = STAGE_INIT, .result = results[i]};
        wq_workers    *pool;
        struct wait    w;

        assert_err(wq_workers_start(
                       t->q,
                       WQ_WORKERS(.threads = 2, .handler = handle, .ctx = &r),
                       &pool),
                   WQ_OK);
        add(t->q, "a");
        tally_await(&r.stage.begun, 1);
        begin_removal(&w, t);
        tally_add(&r.stage.allowed, STAGE_OPEN);
        assert_ends(&w, WQ_OK);
        assert_states(t->q, "a", 0);
        step(t, HOUR);
        assert_err(wq_workers_drain(pool, WQ_FOREVER), WQ_OK);
        assert_int_equal(tally_read(&r.stage.begun), 1);
        assert_err(wq_workers_destroy(pool), WQ_OK);
        timed_destroy(t);
    }
}

static wq_result
remove_itself(void *ctx, const wq_item *item)
{
    struct timed *t = ctx;

    t->timeout_ns = wq_remove_wait(t->q, item->key, WQ_FOREVER);
    return wq_result_done();
}

/* O-84: nor may the handler of a pool wait for its own key. */
TEST(handler_that_removes_its_own_key_is_refused)
{
    struct timed *t = *state;
    wq_workers   *pool;

    t->timeout_ns = WQ_OK;
    assert_err(wq_workers_start(
                   t->q,
                   WQ_WORKERS(.threads = 1, .handler = remove_itself, .ctx = t),
                   &pool),
               WQ_OK);
    add(t->q, "a");
    assert_err(wq_workers_drain(pool, WQ_FOREVER), WQ_OK);
    assert_err(t->timeout_ns, WQ_ESTATE);
    assert_err(wq_workers_destroy(pool), WQ_OK);
}

/* ---- errors: nothing happened, or what is said ---------------------------- */

/* O-84 */
TEST(holder_that_removes_its_own_key_is_refused)
{
    struct timed *t = *state;

    wq_item *item = add_and_take(t, "a");
    add(t->q, "a");
    add_after(t, "a", S);
    assert_err(remove_wait(t, "a"), WQ_ESTATE);
    assert_states(t->q, "a", WQ_STATE_HELD | WQ_STATE_DIRTY | WQ_STATE_WAITING);
    finish(t->q, item);
    work_on(t->q, "a");
    assert_due_in(t, "a", S);
}

/* O-84: what was asked before is taken back, later requests stand. */
TEST(removal_that_times_out_leaves_later_requests)
{
    struct timed *t = *state;
    struct wait   w;

    wq_item *item = add_and_take(t, "a");
    add(t->q, "a");
    assert_err(elsewhere(FOR_REMOVAL, t->q, "a", 0), WQ_ETIMEDOUT);
    assert_states(t->q, "a", WQ_STATE_HELD);
    add(t->q, "a");
    finish(t->q, item);
    item = take_key(t->q, "a");

    start_wait(&w, FOR_REMOVAL, t->q, "a", S);
    await_sleepers(t, 1);
    step(t, S - 1);
    assert_waits(&w);
    step(t, 1);
    assert_ends(&w, WQ_ETIMEDOUT);
    add(t->q, "a");
    finish(t->q, item);
    work_on(t->q, "a");
}

/* O-84: what was asked while it waited stands, too, once it has given up. */
TEST(request_made_before_the_time_out_stands)
{
    struct timed *t = *state;
    struct wait   w;

    wq_item *item = add_and_take(t, "a");
    start_wait(&w, FOR_REMOVAL, t->q, "a", S);
    await_sleepers(t, 1);
    add(t->q, "a");
    step(t, S);
    assert_ends(&w, WQ_ETIMEDOUT);
    finish(t->q, item);
    work_on(t->q, "a");
}

/* O-84: one gives up, the other still removes. */
TEST(remover_that_times_out_does_not_stop_another)
{
    struct timed *t = *state;

    for (int first = 0; first < 2; first++) {
        struct wait patient, brief;

        wq_item *item = add_and_take(t, "a");
        if (first)
            begin_removal(&patient, t);
        start_wait(&brief, FOR_REMOVAL, t->q, "a", S);
        await_sleepers(t, 1);
        if (!first)
            begin_removal(&patient, t);
        step(t, S);
        assert_ends(&brief, WQ_ETIMEDOUT);
        assert_waits(&patient);
        add(t->q, "a");
        finish(t->q, item);
        assert_ends(&patient, WQ_OK);
        assert_states(t->q, "a", 0);
        assert_none_due(t);
    }
}

/* O-84: the last one that gives up takes the mark away. */
TEST(last_remover_that_times_out_leaves_later_requests)
{
    struct timed *t = *state;
    struct wait   w[2];

    wq_item *item = add_and_take(t, "a");
    start_wait(&w[0], FOR_REMOVAL, t->q, "a", S);
    start_wait(&w[1], FOR_REMOVAL, t->q, "a", 2 * S);
    await_sleepers(t, 2);
    step(t, S);
    assert_ends(&w[0], WQ_ETIMEDOUT);
    step(t, S);
    assert_ends(&w[1], WQ_ETIMEDOUT);
    add(t->q, "a");
    finish(t->q, item);
    work_on(t->q, "a");
}

/* O-84: the removers of other keys do not matter. */
TEST(removers_of_two_keys_do_not_meddle)
{
    struct timed *t = *state;
    struct wait   a, b;

    wq_item *item_a = add_and_take(t, "a");
    wq_item *item_b = add_and_take(t, "b");
    begin_wait(&b, FOR_REMOVAL, t->q, "b");
    start_wait(&a, FOR_REMOVAL, t->q, "a", S);
    await_sleepers(t, 1);
    step(t, S);
    assert_ends(&a, WQ_ETIMEDOUT);
    add(t->q, "a");
    add(t->q, "b");
    finish(t->q, item_a);
    finish(t->q, item_b);
    assert_ends(&b, WQ_OK);
    work_on(t->q, "a");
    assert_none_due(t);
}

/* O-84: a remover whose loan has ended does not count, though it sleeps on. */
TEST(remover_that_is_over_does_not_mark_a_later_loan)
{
    struct timed *t = *state;
    struct wait   w;

    wq_item *item = add_and_take(t, "a");
    begin_removal(&w, t);
    freeze(&w);
    finish(t->q, item);
    item = add_and_take(t, "a");
    assert_err(elsewhere(FOR_REMOVAL, t->q, "a", 0), WQ_ETIMEDOUT);
    thaw();
    assert_ends(&w, WQ_OK);
    add(t->q, "a");
    finish(t->q, item);
    work_on(t->q, "a");
    close_ice();
}

/* O-84 */
TEST(every_remover_of_a_key_is_woken)
{
    enum { REMOVERS = 4 };
    struct timed *t = *state;
    struct wait   all[REMOVERS];

    wq_item *item = add_and_take(t, "a");
    for (int i = 0; i < REMOVERS; i++)
        begin_removal(&all[i], t);
    finish(t->q, item);
    for (int i = 0; i < REMOVERS; i++)
        assert_ends(&all[i], WQ_OK);
}

/* O-84: it waits for the worker that goes on, as ever. */
TEST(shutdown_does_not_end_a_removal)
{
    struct timed *t = *state;
    struct wait   w;

    wq_item *item = add_and_take(t, "a");
    add(t->q, "a");
    begin_removal(&w, t);
    wq_shutdown(t->q);
    assert_waits(&w);
    finish(t->q, item);
    assert_ends(&w, WQ_OK);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* O-84: a drain has nothing to wait for when the key is taken back. */
TEST(removal_lets_a_drain_end)
{
    struct timed *t = *state;

    add(t->q, "a");
    struct worker *drain = worker_drain(t->q);
    worker_await_blocked(drain);
    assert_err(remove_wait(t, "a"), WQ_OK);
    assert_err(worker_join(drain), WQ_OK);
}

/* O-84: a key that is not there any more makes room. */
TEST(removal_makes_room)
{
    struct timed *t = timed_create(WQ_CONFIG(.max_len = 1));
    struct wait   w;

    add(t->q, "a");
    assert_err(wq_add_str(t->q, "b"), WQ_EFULL);
    assert_err(remove_wait(t, "a"), WQ_OK);
    wq_item *item = add_and_take(t, "a");
    begin_removal(&w, t);
    add(t->q, "a");
    finish(t->q, item);
    add(t->q, "b");
    assert_ends(&w, WQ_OK);
    work_on(t->q, "b");
    timed_destroy(t);
}

/* ---- a wq_order ----------------------------------------------------------- */

enum { PLACES = 8 };

/* The last key first. It cannot remove. */
static struct {
    wq_key keys[PLACES];
    size_t len;
} pile;

static wq_err
push(void *self, wq_key key, int priority)
{
    (void)self;
    (void)priority;
    if (pile.len == PLACES)
        return WQ_ENOMEM;
    pile.keys[pile.len++] = key;
    return WQ_OK;
}

static bool
pop(void *self, wq_key *out)
{
    (void)self;
    if (!pile.len)
        return false;
    *out = pile.keys[--pile.len];
    return true;
}

static size_t
len(void *self)
{
    (void)self;
    return pile.len;
}

/* O-84 O-57: a READY key is an error; others need no removal by the order. */
TEST(order_that_cannot_remove_is_said_so)
{
    const wq_order order = {
        .size = sizeof order, .push = push, .pop = pop, .len = len};
    struct timed *t = timed_create(WQ_CONFIG(.order = &order));
    struct wait   w;

    add(t->q, "a");
    assert_err(remove_wait(t, "a"), WQ_ENOTSUP);
    assert_states(t->q, "a", WQ_STATE_READY);
    add_after(t, "b", S);
    assert_err(remove_wait(t, "b"), WQ_OK);
    wq_item *item = take_key(t->q, "a");
    begin_removal(&w, t);
    add(t->q, "a");
    finish(t->q, item);
    assert_ends(&w, WQ_OK);
    assert_none_due(t);
    timed_destroy(t);
}

/* O-84 */
TEST(bad_arguments_are_refused)
{
    static char   large[WQ_KEY_MAX + 1];
    const wq_key  too_long = {large, sizeof large};
    struct timed *t = *state;

    add(t->q, "a");
    assert_err(wq_remove_wait(NULL, wq_str("a"), 0), WQ_EINVAL);
    assert_err(wq_remove_wait(t->q, wq_str("a"), -1), WQ_EINVAL);
    assert_err(wq_remove_wait(t->q, wq_str(""), 0), WQ_EINVAL);
    assert_err(wq_remove_wait(t->q, wq_str(NULL), 0), WQ_EINVAL);
    assert_err(wq_remove_wait(t->q, too_long, 0), WQ_ETOOLONG);
    work_on(t->q, "a");
}

WQ_TESTS(with_time(key_that_nobody_holds_is_removed_at_once),
         with_time(unknown_key_is_removed_already),
         with_time(key_handed_over_just_before_is_removed),
         with_time(key_that_became_due_is_removed),
         with_time(removal_of_a_held_key_waits_for_done),
         with_time(removal_takes_back_what_was_asked_before),
         with_time(removal_takes_back_what_is_asked_while_it_waits),
         with_time(removal_takes_back_a_deadline_that_comes),
         with_time(removal_ends_with_every_kind_of_done),
         with_time(add_after_the_done_stands),
         test(removal_does_not_end_the_time_after_a_throttled_run),
         test(removal_leaves_the_limiter_alone),
         test(removal_takes_back_a_backoff_that_is_respected),
         test(removal_takes_back_the_retry_of_a_pool),
         with_time(handler_that_removes_its_own_key_is_refused),
         with_time(holder_that_removes_its_own_key_is_refused),
         with_time(removal_that_times_out_leaves_later_requests),
         with_time(request_made_before_the_time_out_stands),
         with_time(remover_that_times_out_does_not_stop_another),
         with_time(last_remover_that_times_out_leaves_later_requests),
         with_time(removers_of_two_keys_do_not_meddle),
         with_time(remover_that_is_over_does_not_mark_a_later_loan),
         with_time(every_remover_of_a_key_is_woken),
         with_time(shutdown_does_not_end_a_removal),
         with_time(removal_lets_a_drain_end), test(removal_makes_room),
         test(order_that_cannot_remove_is_said_so),
         with_time(bad_arguments_are_refused));
