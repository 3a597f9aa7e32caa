/* SPDX-License-Identifier: MIT */
/* test_work_one.c: what does one step of a worker do, without a pool?
 *
 * No thread is started, and time moves when the test says: wq_work_one() makes
 * a handler testable. Which verbs it calls is in unit/test_workers_results.c.
 */
#include "timed.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <wq/limiter.h>
#include <wq/workers.h>

#include "asked.h"

/* What the callbacks saw, and what the handler returns. */
struct shift {
    wq_queue *q;
    wq_result result;
    char      keys[64]; /* that were handled, each followed by a space */
    int       nested;   /* steps to take inside the handler */
    int       drops;
    unsigned  retries; /* of the last drop */
    wq_err    why;     /* likewise */
};

static atomic_int reports; /* calls of on_stuck() */

static wq_err one_step(struct shift *s, int64_t timeout_ns);

static wq_result
handle(void *ctx, const wq_item *item)
{
    struct shift *s = ctx;
    const size_t  at = strlen(s->keys);

    (void)snprintf(s->keys + at, sizeof s->keys - at, "%.*s ",
                   (int)item->key.len, (const char *)item->key.data);
    if (s->nested-- > 0)
        assert_err(one_step(s, 0), WQ_OK);
    return s->result;
}

static void
on_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    struct shift *s = ctx;

    (void)key;
    s->drops++;
    s->retries = retries;
    s->why = why;
}

static void
on_stuck(void *ctx, const wq_item *item, int64_t running_ns)
{
    (void)ctx, (void)item, (void)running_ns;
    atomic_fetch_add(&reports, 1);
}

static wq_err
one_step(struct shift *s, int64_t timeout_ns)
{
    return wq_work_one(
        s->q, WQ_WORKERS(.handler = handle, .ctx = s, .on_drop = on_drop),
        timeout_ns);
}

static void
take_step(struct shift *s)
{
    assert_err(one_step(s, 0), WQ_OK);
}

/* ---- one key ------------------------------------------------------------- */

/* PW-25 PQ-47 */
TEST(step_works_on_one_key_and_leaves_the_rest)
{
    struct timed *t = *state;
    struct shift  s = {.q = t->q, .result = wq_result_done()};

    add(t->q, "foo");
    add(t->q, "bar");
    take_step(&s);
    assert_string_equal(s.keys, "foo ");
    assert_states(t->q, "foo", 0);
    work_on(t->q, "bar");
}

/* PW-25 O-05 */
TEST(step_without_a_key_returns_what_the_get_returned)
{
    struct timed *t = *state;
    struct shift  s = {.q = t->q};

    assert_err(one_step(&s, 0), WQ_ETIMEDOUT);
    wq_interrupt(t->q);
    assert_err(one_step(&s, WQ_FOREVER), WQ_EINTERRUPTED);
    wq_shutdown(t->q);
    assert_err(one_step(&s, WQ_FOREVER), WQ_ESHUTDOWN);
    assert_string_equal(s.keys, "");
}

static int
step_within_a_second(struct worker *self)
{
    return (int)one_step(self->arg, S);
}

/* PW-25 O-05 */
TEST(step_waits_for_a_key_as_long_as_asked)
{
    struct timed *t = *state;
    struct shift  s = {.q = t->q, .result = wq_result_done()};

    struct worker *w = worker_start(step_within_a_second, &s);
    await_sleepers(t, 1);
    step(t, S - 1);
    worker_await_blocked(w);
    step(t, 1);
    assert_err(worker_join(w), WQ_ETIMEDOUT);

    w = worker_start(step_within_a_second, &s);
    await_sleepers(t, 1);
    add(t->q, "foo");
    assert_err(worker_join(w), WQ_OK);
    assert_string_equal(s.keys, "foo ");
}

/* PW-25 */
TEST(handler_may_work_on_another_key_meanwhile)
{
    struct timed *t = *state;
    struct shift  s = {.q = t->q, .result = wq_result_done(), .nested = 2};

    add(t->q, "a");
    add(t->q, "b");
    add(t->q, "c");
    take_step(&s);
    assert_string_equal(s.keys, "a b c ");
    assert_int_equal(counts_of(t->q).dones, 3);
    assert_none_due(t);
}

/* PW-25 PW-01 */
TEST(step_refuses_what_makes_no_pool)
{
    struct timed *t = *state;
    struct shift  s = {.q = t->q, .result = wq_result_done()};

    add(t->q, "foo");
    assert_err(wq_work_one(NULL, WQ_WORKERS(.handler = handle), 0), WQ_EINVAL);
    assert_err(wq_work_one(t->q, NULL, 0), WQ_EINVAL);
    assert_err(wq_work_one(t->q, WQ_WORKERS(.ctx = &s), 0), WQ_EINVAL);
    assert_err(wq_work_one(t->q, &(wq_workers_config){.handler = handle}, 0),
               WQ_EINVAL);
    assert_err(wq_work_one(t->q,
                           WQ_WORKERS(.handler = handle, .item_deadline_ns = 1),
                           0),
               WQ_EINVAL);
    assert_err(one_step(&s, -1), WQ_EINVAL);
    assert_int_equal(wq_len(t->q), 1);
    assert_string_equal(s.keys, "");
}

static wq_result
take_an_hour(void *ctx, const wq_item *item)
{
    (void)item;
    step(ctx, HOUR);
    return wq_result_done();
}

/* PW-25 */
TEST(step_has_no_watchdog)
{
    struct timed *t = *state;

    add(t->q, "foo");
    assert_err(
        wq_work_one(t->q,
                    WQ_WORKERS(.handler = take_an_hour, .ctx = t, .threads = 7,
                               .name = "nobody", .item_deadline_ns = 1,
                               .on_stuck = on_stuck, .clock = t->clock),
                    0),
        WQ_OK);
    assert_int_equal(reports, 0);
}

/* ---- what becomes of it -------------------------------------------------- */

/* PW-25 PQ-47 R-01 */
TEST(key_that_fails_in_a_step_waits_for_its_backoff)
{
    struct timed *t =
        timed_create(WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S)));
    struct shift s = {.q = t->q, .result = wq_result_retry()};

    add(t->q, "foo");
    take_step(&s);
    assert_err(one_step(&s, 0), WQ_ETIMEDOUT);
    step(t, MS);
    s.result = wq_result_done();
    take_step(&s);
    assert_string_equal(s.keys, "foo foo ");
    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 0);
    timed_destroy(t);
}

/* PW-05: at the tail, and without end: it is no failure. */
TEST(key_that_runs_again_now_is_ready_and_not_given_up)
{
    struct timed *t = timed_create(
        WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S), .max_retries = 1));
    struct shift s = {.q = t->q, .result = wq_result_after(0)};

    add(t->q, "a");
    add(t->q, "b");
    for (int i = 0; i < 5; i++)
        take_step(&s);
    assert_string_equal(s.keys, "a b a b a ");
    assert_int_equal(s.drops, 0);
    assert_int_equal(wq_num_requeues(t->q, wq_str("a")), 0);
    assert_states(t->q, "a", WQ_STATE_READY);
    s.result = wq_result_after(-1);
    take_step(&s);
    assert_states(t->q, "b", WQ_STATE_READY);
    timed_destroy(t);
}

/* PW-05: failures before are forgotten. */
TEST(running_again_now_forgets_failures)
{
    struct timed *t =
        timed_create(WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S)));
    struct shift s = {.q = t->q, .result = wq_result_retry()};

    add(t->q, "foo");
    take_step(&s);
    step(t, MS);
    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 1);
    s.result = wq_result_after(0);
    take_step(&s);
    assert_int_equal(wq_num_requeues(t->q, wq_str("foo")), 0);
    timed_destroy(t);
}

/* PW-05 PQ-47 */
TEST(key_that_runs_again_now_keeps_its_priority)
{
    struct timed *t = *state;
    struct shift  s = {.q = t->q, .result = wq_result_after(0)};

    add_at(t->q, 7, "foo");
    add(t->q, "bar");
    take_step(&s);
    take_step(&s);
    assert_string_equal(s.keys, "foo foo ");
}

/* PW-06 PW-08 O-62: given up by the queue, dropped by the handler, refused. */
TEST(every_key_that_a_step_drops_counts_once)
{
    struct timed *t = timed_create(
        WQ_CONFIG(.limiter = wq_limiter_exponential(MS, S), .max_retries = 1));
    struct shift s = {.q = t->q, .result = wq_result_retry()};

    add(t->q, "foo");
    take_step(&s);
    step(t, MS);
    take_step(&s);
    assert_err(s.why, WQ_EGIVENUP);
    assert_int_equal(s.retries, 1);
    assert_int_equal(counts_of(t->q).drops, 1);

    add(t->q, "bar");
    s.result = wq_result_drop();
    take_step(&s);
    assert_err(s.why, WQ_EDROPPED);
    assert_int_equal(counts_of(t->q).drops, 2);

    add(t->q, "baz");
    wq_shutdown(t->q);
    s.result = wq_result_after(0);
    take_step(&s);
    assert_err(s.why, WQ_ESHUTDOWN);
    assert_int_equal(counts_of(t->q).drops, 3);
    assert_int_equal(s.drops, 3);
    assert_err(one_step(&s, 0), WQ_ESHUTDOWN);
    timed_destroy(t);
}

WQ_TESTS(with_time(step_works_on_one_key_and_leaves_the_rest),
         with_time(step_without_a_key_returns_what_the_get_returned),
         with_time(step_waits_for_a_key_as_long_as_asked),
         with_time(handler_may_work_on_another_key_meanwhile),
         with_time(step_refuses_what_makes_no_pool),
         with_time(step_has_no_watchdog),
         test(key_that_fails_in_a_step_waits_for_its_backoff),
         test(key_that_runs_again_now_is_ready_and_not_given_up),
         test(running_again_now_forgets_failures),
         with_time(key_that_runs_again_now_keeps_its_priority),
         test(every_key_that_a_step_drops_counts_once));
