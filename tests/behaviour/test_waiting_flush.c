/* SPDX-License-Identifier: MIT */
/* test_waiting_flush.c: what becomes of WAITING keys at a shutdown, with
 * WQ_WAITING_FLUSH and WQ_WAITING_FLUSH_ALL?
 */
#include "asked.h"

#include <wq/backend.h>
#include <wq/limiter.h>

static struct timed *
create_flushing(wq_waiting waiting, unsigned retry)
{
    return timed_create(
        WQ_CONFIG(.waiting = waiting, .retry = retry,
                  .limiter = wq_limiter_exponential(S, 1000 * S)));
}

static int
flushing_setup(void **state)
{
    *state = create_flushing(WQ_WAITING_FLUSH, 0);
    return 0;
}

static int
flushing_all_setup(void **state)
{
    *state = create_flushing(WQ_WAITING_FLUSH_ALL, 0);
    return 0;
}

#define with_flush(name) test_with(name, flushing_setup, timed_teardown)
#define with_flush_all(name) test_with(name, flushing_all_setup, timed_teardown)

static void
set_back(struct timed *t, const char *key)
{
    assert_err(wq_add_rate_limited(t->q, wq_str(key)), WQ_OK);
}

/* O-86 */
TEST(flushed_keys_leave_in_the_order_of_their_deadlines)
{
    struct timed *t = *state;

    add_after(t, "never", WQ_FOREVER);
    add_after(t, "third", 3 * S);
    add_after(t, "first", S);
    add_after(t, "third too", 3 * S);
    add_after(t, "second", 2 * S);
    add(t->q, "ready");
    step(t, S / 2);
    wq_shutdown(t->q);
    assert_int_equal(wq_len(t->q), 6);
    assert_int_equal(counts_of(t->q).waiting, 0);
    work_on(t->q, "ready");
    work_on(t->q, "first");
    work_on(t->q, "second");
    work_on(t->q, "third");
    work_on(t->q, "third too");
    work_on(t->q, "never");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    assert_int_equal(counts_of(t->q).drops, 0);
}

/* O-86 O-51 */
TEST(flushed_keys_have_the_priorities_they_wait_with)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(.priority = -5, .after_ns = S), "low");
    (void)add_how(t->q, WQ_ADD(.priority = 5, .after_ns = 9 * S), "high");
    add_after(t, "zero", 2 * S);
    wq_shutdown(t->q);
    work_on_at(t->q, "high", 5);
    work_on_at(t->q, "zero", 0);
    work_on_at(t->q, "low", -5);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* O-86 O-53 O-54 */
TEST(debounced_and_throttled_keys_are_flushed)
{
    struct timed *t = *state;

    (void)add_how(t->q, WQ_ADD(.debounce_ns = 2 * S), "debounced");
    (void)add_how(t->q, WQ_ADD(.throttle_ns = S), "throttled");
    work_on(t->q, "throttled");
    assert_added(add_how(t->q, WQ_ADD(.throttle_ns = S), "throttled"),
                 WQ_ADDED_SCHEDULED);
    (void)add_how(t->q, WQ_ADD(.throttle_ns = S), "quiet");
    work_on(t->q, "quiet"); /* nothing is asked for it */
    wq_shutdown(t->q);
    work_on(t->q, "throttled");
    work_on(t->q, "debounced");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    assert_int_equal(counts_of(t->q).known, 0);
}

/* O-86 */
TEST(keys_that_failed_are_dropped_and_counted)
{
    struct timed *t = *state;

    set_back(t, "failed");
    add_after(t, "later", HOUR);
    add(t->q, "held");
    wq_item *item = take_key(t->q, "held");
    set_back(t, "held");
    wq_shutdown(t->q);
    assert_int_equal(counts_of(t->q).drops, 2);
    assert_states(t->q, "failed", 0);
    assert_states(t->q, "held", WQ_STATE_HELD);
    work_on(t->q, "later");
    finish(t->q, item);
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* O-86 D-07: by what it waits for, not by what it was. */
TEST(key_whose_earlier_deadline_is_no_backoff_is_flushed)
{
    struct timed *t = *state;

    set_back(t, "a");
    add_after(t, "a", S / 2); /* sooner, and no backoff */
    wq_shutdown(t->q);
    work_on(t->q, "a");
    assert_int_equal(counts_of(t->q).drops, 0);
}

/* O-86: one deadline serves both, and the delay was no failure. */
TEST(delayed_key_that_fails_is_flushed)
{
    struct timed *t = *state;

    add_after(t, "a", 60 * S);
    set_back(t, "a"); /* sooner */
    wq_shutdown(t->q);
    work_on(t->q, "a");
    assert_int_equal(counts_of(t->q).drops, 0);
}

/* O-86 O-16 O-52: an add that a backoff serves is not dropped with it. */
TEST(add_that_waits_for_a_backoff_is_flushed)
{
    const wq_add_options *const hows[] = {
        WQ_ADD(.priority = 0),
        WQ_ADD(.after_ns = 100 * S),
        WQ_ADD(.debounce_ns = S),
        WQ_ADD(.throttle_ns = S),
        WQ_ADD(.waiting = WQ_IF_WAITING_IGNORE),
        WQ_ADD(.waiting = WQ_IF_WAITING_IGNORE, .after_ns = S),
    };

    for (size_t i = 0; i < sizeof hows / sizeof hows[0]; i++) {
        struct timed *t = create_flushing(WQ_WAITING_FLUSH, WQ_RETRY_RESPECT);

        set_back(t, "a");
        set_back(t, "b");
        assert_err(wq_add_one_str(t->q, "a", hows[i]), WQ_OK);
        set_back(t, "b"); /* failures only */
        assert_states(t->q, "a", WQ_STATE_WAITING | WQ_STATE_BACKOFF);
        wq_shutdown(t->q);
        work_on(t->q, "a");
        assert_none_ready(t->q, WQ_ESHUTDOWN);
        assert_int_equal(counts_of(t->q).drops, 1);
        timed_destroy(t);
    }
}

/* O-86 O-30: the run that is owed serves it. */
TEST(ready_key_that_loses_its_backoff_is_not_dropped)
{
    struct timed *t = *state;

    add(t->q, "a");
    set_back(t, "a");
    wq_shutdown(t->q);
    work_on(t->q, "a");
    assert_int_equal(counts_of(t->q).drops, 0);
}

/* O-86 O-17: what was asked for while it was HELD stays, its backoff goes. */
TEST(dirty_key_loses_its_backoff_and_runs_again)
{
    struct timed *t = create_flushing(WQ_WAITING_FLUSH, WQ_RETRY_RESPECT);

    add(t->q, "a");
    wq_item *item = take_key(t->q, "a");
    set_back(t, "a");
    add(t->q, "a");
    assert_states(t->q, "a",
                  WQ_STATE_HELD | WQ_STATE_DIRTY | WQ_STATE_WAITING |
                      WQ_STATE_BACKOFF);
    wq_shutdown(t->q);
    finish(t->q, item);
    work_on(t->q, "a");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* O-86 */
TEST(flush_of_all_keeps_keys_that_failed)
{
    struct timed *t = *state;

    add_after(t, "later", 2 * S);
    set_back(t, "failed");
    add(t->q, "held");
    wq_item *item = take_key(t->q, "held");
    set_back(t, "held");
    wq_shutdown(t->q);
    assert_int_equal(counts_of(t->q).drops, 0);
    work_on(t->q, "failed");
    work_on(t->q, "later");
    assert_none_ready(t->q, WQ_ESHUTDOWN); /* DIRTY: as ever */
    finish(t->q, item);
    work_on(t->q, "held");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* O-86 D-10 */
TEST(deadline_of_a_ready_or_held_key_adds_no_run)
{
    struct timed *t = *state;

    add(t->q, "held");
    wq_item *item = take_key(t->q, "held");
    add_after(t, "held", S);
    add(t->q, "ready");
    add_after(t, "ready", S);
    wq_shutdown(t->q);
    work_on(t->q, "ready");
    assert_none_ready(t->q, WQ_ESHUTDOWN); /* DIRTY: as ever */
    finish(t->q, item);
    work_on(t->q, "held");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* O-86 D-13 */
TEST(second_shutdown_changes_nothing)
{
    struct timed *t = *state;

    add_after(t, "a", S);
    add_after(t, "b", 2 * S);
    wq_shutdown(t->q);
    assert_err(wq_add_after(t->q, wq_str("c"), S), WQ_ESHUTDOWN);
    work_on(t->q, "a");
    wq_shutdown(t->q);
    work_on(t->q, "b");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* O-86 */
TEST(get_that_sleeps_until_a_deadline_gets_the_flushed_key)
{
    struct timed *t = *state;

    add_after(t, "a", HOUR);
    struct worker *w = get_in_time(t, WQ_FOREVER);
    await_sleepers(t, 1);
    wq_shutdown(t->q);
    assert_err(worker_join(w), WQ_OK);
    assert_key(t->item, "a");
}

/* O-86 Q-20 */
TEST(drain_waits_for_flushed_keys)
{
    struct timed *t = *state;

    add_after(t, "a", HOUR);
    set_back(t, "failed");
    struct worker *drain = worker_drain(t->q);
    worker_await_blocked(drain);
    wq_item *item = take_key(t->q, "a");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    worker_await_blocked(drain);
    finish(t->q, item);
    assert_err(worker_join(drain), WQ_OK);
}

/* ---- an order that refuses ---------------------------------------------- */

/* First come, first served, and the first `refuses` keys are refused. */
struct fifo {
    wq_key keys[16];
    size_t first, last;
    int    refuses;
    char   offered[32]; /* the first letters of all keys that were pushed */
};

static wq_err
fifo_push(void *self, wq_key key, int priority)
{
    struct fifo *f = self;

    (void)priority;
    f->offered[strlen(f->offered)] = *(const char *)key.data;
    if (f->refuses && f->refuses--)
        return WQ_ENOMEM;
    f->keys[f->last++] = key;
    return WQ_OK;
}

static bool
fifo_pop(void *self, wq_key *out)
{
    struct fifo *f = self;

    if (f->first == f->last)
        return false;
    *out = f->keys[f->first++];
    return true;
}

static size_t
fifo_len(void *self)
{
    const struct fifo *f = self;

    return f->last - f->first;
}

/* O-86 O-15: 10 ms later, in the order of their deadlines. */
TEST(key_that_an_order_refuses_is_offered_again)
{
    struct fifo    f = {.refuses = 3};
    const wq_order order = {.size = sizeof order,
                            .self = &f,
                            .push = fifo_push,
                            .pop = fifo_pop,
                            .len = fifo_len};
    struct timed  *t = timed_create(
         WQ_CONFIG(.order = &order, .waiting = WQ_WAITING_FLUSH_ALL));

    add_after(t, "never", WQ_FOREVER);
    add_after(t, "d", 4 * S);
    add_after(t, "b", 2 * S);
    add_after(t, "c", 3 * S);
    add_after(t, "a", S);
    wq_shutdown(t->q);
    assert_string_equal(f.offered, "abcdn"); /* each of them once */
    work_on(t->q, "d"); /* not held up by those before it */
    work_on(t->q, "never");
    assert_none_ready(t->q, WQ_ETIMEDOUT);
    assert_int_equal(info_of(t->q, "a").wait_ns, 10 * MS);
    assert_due_in(t, "a", 10 * MS);
    work_on(t->q, "b");
    work_on(t->q, "c");
    assert_none_ready(t->q, WQ_ESHUTDOWN);
    timed_destroy(t);
}

/* O-18 */
TEST(layer_does_not_flush)
{
    wq_queue *inner = NULL, *out = NULL;

    assert_err(wq_create(NULL, &inner), WQ_OK);
    for (int w = WQ_WAITING_FLUSH; w <= WQ_WAITING_FLUSH_ALL; w++) {
        const wq_config config = {.size = sizeof config,
                                  .waiting = (wq_waiting)w};
        assert_err(wq_delaying_wrap(inner, &config, &out), WQ_ENOTSUP);
        assert_err(wq_rate_limiting_wrap(inner, &config, &out), WQ_ENOTSUP);
    }
    wq_destroy(inner);
}

WQ_TESTS(with_flush(flushed_keys_leave_in_the_order_of_their_deadlines),
         with_flush(flushed_keys_have_the_priorities_they_wait_with),
         with_flush(debounced_and_throttled_keys_are_flushed),
         with_flush(keys_that_failed_are_dropped_and_counted),
         with_flush(key_whose_earlier_deadline_is_no_backoff_is_flushed),
         with_flush(delayed_key_that_fails_is_flushed),
         test(add_that_waits_for_a_backoff_is_flushed),
         with_flush(ready_key_that_loses_its_backoff_is_not_dropped),
         test(dirty_key_loses_its_backoff_and_runs_again),
         with_flush_all(flush_of_all_keeps_keys_that_failed),
         with_flush(deadline_of_a_ready_or_held_key_adds_no_run),
         with_flush(second_shutdown_changes_nothing),
         with_flush(get_that_sleeps_until_a_deadline_gets_the_flushed_key),
         with_flush(drain_waits_for_flushed_keys),
         test(key_that_an_order_refuses_is_offered_again),
         test(layer_does_not_flush));
