/* SPDX-License-Identifier: MIT */
/* test_workers_results.c: which verbs does a worker call, in which order, and
 * what does it do when they fail?
 *
 * The queue is a backend that writes down the verbs that matter here and fails
 * as told; the rest is passed on to a queue in memory.
 */
#include "support/wq_test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <wq/backend.h>
#include <wq/workers.h>

#include "support/stage.h"
#include "support/worker.h"

#define assert_err(actual, expected)                                           \
    assert_string_equal(wq_err_name((wq_err)(actual)), wq_err_name(expected))

struct tape {
    wq_queue  base;
    wq_queue *inner;

    pthread_mutex_t mutex; /* guards text */
    char            text[512];

    /* What to answer. */
    wq_err     add_err; /* to adds after the handler was called */
    unsigned   requeues;
    atomic_int get_failures, done_failures; /* how often still */
    wq_err     get_err, done_err;           /* and with what */
    atomic_int deaf;                        /* interrupts without effect */

    /* What came. */
    struct tally gets, dones, interrupts;
    wq_result    result; /* what the handler returns */

    atomic_bool handled; /* the handler was called */
};

static struct tape *
tape(wq_queue *q)
{
    return (struct tape *)(void *)q;
}

__attribute__((format(printf, 2, 3))) static void
write_down(struct tape *t, const char *format, ...)
{
    va_list numbers;

    (void)pthread_mutex_lock(&t->mutex);
    const size_t len = strlen(t->text);
    va_start(numbers, format);
    (void)vsnprintf(t->text + len, sizeof t->text - len, format, numbers);
    va_end(numbers);
    (void)pthread_mutex_unlock(&t->mutex);
}

/* An add from the handler's thread, which the inner queue does not see. */
static wq_err
tape_add(wq_queue *q, wq_key key)
{
    if (!tape(q)->handled)
        return wq_add(tape(q)->inner, key);
    write_down(tape(q), "add ");
    return tape(q)->add_err;
}

static wq_err
tape_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    tally_add(&tape(q)->gets, 1);
    if (atomic_fetch_sub(&tape(q)->get_failures, 1) > 0)
        return tape(q)->get_err;
    return wq_get_within(tape(q)->inner, timeout_ns, out);
}

static wq_err
tape_done(wq_queue *q, wq_item *item)
{
    wq_err err = tape(q)->done_err;

    write_down(tape(q), "done ");
    if (atomic_fetch_sub(&tape(q)->done_failures, 1) <= 0)
        err = wq_done(tape(q)->inner, item);
    tally_add(&tape(q)->dones, 1);
    return err;
}

static wq_err
tape_len(wq_queue *q, size_t *out)
{
    *out = wq_len(tape(q)->inner);
    return WQ_OK;
}

static void
tape_shutdown(wq_queue *q)
{
    wq_shutdown(tape(q)->inner);
}

static bool
tape_shutting_down(const wq_queue *q)
{
    return wq_shutting_down(tape((wq_queue *)q)->inner);
}

static void
tape_destroy(wq_queue *q)
{
    wq_destroy(tape(q)->inner);
}

static void
tape_interrupt(wq_queue *q)
{
    tally_add(&tape(q)->interrupts, 1);
    if (atomic_fetch_sub(&tape(q)->deaf, 1) <= 0)
        wq_interrupt(tape(q)->inner);
}

static wq_err
tape_add_after(wq_queue *q, wq_key key, int64_t delay_ns)
{
    (void)key;
    write_down(tape(q), "after:%lld ", (long long)delay_ns);
    return tape(q)->add_err;
}

static wq_err
tape_add_rate_limited(wq_queue *q, wq_key key)
{
    (void)key;
    write_down(tape(q), "limited ");
    return tape(q)->add_err;
}

static wq_err
tape_forget(wq_queue *q, wq_key key)
{
    (void)key;
    write_down(tape(q), "forget ");
    return WQ_OK;
}

static wq_err
tape_num_requeues(wq_queue *q, wq_key key, unsigned *out)
{
    (void)key;
    *out = tape(q)->requeues;
    return WQ_OK;
}

static wq_err
tape_count_drops(wq_queue *q, uint64_t n)
{
    write_down(tape(q), "count:%llu ", (unsigned long long)n);
    return WQ_OK;
}

#define BASE_VERBS                                                             \
    .size = sizeof(wq_backend), .name = "tape", .destroy = tape_destroy,       \
    .add = tape_add, .get = tape_get, .done = tape_done, .len = tape_len,      \
    .shutdown = tape_shutdown, .shutting_down = tape_shutting_down

static const wq_backend full = {
    BASE_VERBS,
    .interrupt = tape_interrupt,
    .add_after = tape_add_after,
    .add_rate_limited = tape_add_rate_limited,
    .forget = tape_forget,
    .num_requeues = tape_num_requeues,
    .count_drops = tape_count_drops,
};
static const wq_backend bare = {BASE_VERBS};

static void
open_tape(struct tape *t, const wq_backend *backend)
{
    *t = (struct tape){
        .mutex = PTHREAD_MUTEX_INITIALIZER,
        .gets = TALLY_INIT,
        .dones = TALLY_INIT,
        .interrupts = TALLY_INIT,
    };
    assert_err(wq_backend_init(&t->base, backend), WQ_OK);
    assert_err(wq_create(NULL, &t->inner), WQ_OK);
}

/* ---- the callbacks ------------------------------------------------------- */

static wq_result
answer(void *ctx, const wq_item *item)
{
    struct tape *t = ctx;

    write_down(t, "%s ", item->key.len == 3 ? "handler" : "what?");
    t->handled = true;
    return t->result;
}

/* Writes down retries and error, and that it was called before done. */
static void
on_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    write_down(ctx, "%s:%u:%d ", key.len == 3 ? "drop" : "what?", retries,
               (int)why);
}

/* One key through a pool with this config; then the pool is gone. */
static wq_workers_stats
play(struct tape *t, wq_workers_config *config)
{
    wq_workers      *pool;
    wq_workers_stats counts = {.size = sizeof counts};

    config->size = sizeof *config;
    config->threads = 1;
    config->handler = answer;
    config->ctx = t;
    assert_err(wq_workers_start(&t->base, config, &pool), WQ_OK);
    assert_err(wq_add_str(&t->base, "foo"), WQ_OK);
    tally_await(&t->dones, 1);
    assert_err(wq_workers_stop(pool), WQ_OK);
    assert_err(wq_workers_read_stats(pool, &counts), WQ_OK);
    assert_err(wq_workers_destroy(pool), WQ_OK);
    wq_destroy(&t->base);
    return counts;
}

/* ---- PQ-47 --------------------------------------------------------------- */

static const struct {
    wq_result   result;
    const char *verbs;
} contract[] = {
    {{WQ_RESULT_DONE, 0}, "handler forget done "},
    {{WQ_RESULT_DONE, 7}, "handler forget done "},
    {{WQ_RESULT_RETRY, 0}, "handler limited done "},
    {{WQ_RESULT_RETRY, 7}, "handler limited done "},
    {{WQ_RESULT_AFTER, 7}, "handler forget after:7 done "},
    {{WQ_RESULT_AFTER, WQ_FOREVER},
     "handler forget after:9223372036854775807 done "},
    /* PW-05 */
    {{WQ_RESULT_AFTER, 0}, "handler forget add done "},
    {{WQ_RESULT_AFTER, -1}, "handler forget add done "},
    {{WQ_RESULT_AFTER, INT64_MIN}, "handler forget add done "},
    {{(wq_outcome)99, 0}, "handler limited done "},
    {{(wq_outcome)-1, 7}, "handler limited done "},
    /* PW-08: retries 2, WQ_EDROPPED */
    {{WQ_RESULT_DROP, 0}, "handler count:1 drop:2:14 done "},
    {{WQ_RESULT_DROP, 7}, "handler count:1 drop:2:14 done "},
};

/* PQ-47 PW-05 PW-08 */
TEST(result_decides_which_verbs_are_called_and_done_is_last)
{
    for (size_t i = 0; i < sizeof contract / sizeof contract[0]; i++) {
        struct tape t;

        open_tape(&t, &full);
        t.result = contract[i].result;
        t.requeues = 2;
        (void)play(&t, &(wq_workers_config){.on_drop = on_drop});
        assert_string_equal(t.text, contract[i].verbs);
    }
}

/* PQ-47: the makers make what they say. */
TEST(makers_of_results_fill_in_both_fields)
{
    assert_int_equal(wq_result_done().outcome, WQ_RESULT_DONE);
    assert_int_equal(wq_result_done().after_ns, 0);
    assert_int_equal(wq_result_retry().outcome, WQ_RESULT_RETRY);
    assert_int_equal(wq_result_retry().after_ns, 0);
    assert_int_equal(wq_result_after(5).outcome, WQ_RESULT_AFTER);
    assert_int_equal(wq_result_after(5).after_ns, 5);
    assert_int_equal(wq_result_drop().outcome, WQ_RESULT_DROP);
    assert_int_equal(wq_result_drop().after_ns, 0);
    assert_int_equal(((wq_result){0}).outcome, WQ_RESULT_DONE);
}

/* PW-06: the queue forgets it and counts it; 13 is WQ_EGIVENUP. */
TEST(key_that_the_queue_gives_up_goes_to_on_drop)
{
    struct tape t;

    open_tape(&t, &full);
    t.result = wq_result_retry();
    t.add_err = WQ_EGIVENUP;
    t.requeues = 3;
    (void)play(&t, &(wq_workers_config){.on_drop = on_drop});
    assert_string_equal(t.text, "handler limited drop:3:13 done ");
}

/* PW-25: the same contract without a pool. */
TEST(one_step_of_a_worker_calls_the_same_verbs)
{
    for (size_t i = 0; i < sizeof contract / sizeof contract[0]; i++) {
        struct tape t;

        open_tape(&t, &full);
        t.result = contract[i].result;
        t.requeues = 2;
        assert_err(wq_add_str(&t.base, "foo"), WQ_OK);
        assert_err(wq_work_one(&t.base,
                               WQ_WORKERS(.handler = answer, .ctx = &t,
                                          .on_drop = on_drop),
                               0),
                   WQ_OK);
        assert_string_equal(t.text, contract[i].verbs);
        wq_destroy(&t.base);
    }
}

/* PW-25 */
TEST(one_step_of_a_worker_returns_the_error_of_get)
{
    static const wq_err errors[] = {WQ_ENOMEM, WQ_EIO, WQ_EINTERRUPTED,
                                    WQ_ESHUTDOWN};

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct tape t;

        open_tape(&t, &full);
        assert_err(wq_add_str(&t.base, "foo"), WQ_OK);
        t.get_failures = 1;
        t.get_err = errors[i];
        assert_err(
            wq_work_one(&t.base, WQ_WORKERS(.handler = answer, .ctx = &t), 0),
            errors[i]);
        assert_string_equal(t.text, "");
        wq_destroy(&t.base);
    }
}

/* PW-25: and does not try again. Where the key stays on loan it is dropped. */
TEST(one_step_of_a_worker_returns_the_error_of_done)
{
    static const struct {
        wq_err      err;
        const char *verbs;
    } answers[] = {
        {WQ_ENOMEM, "handler forget done count:1 drop:0:2 "},
        {WQ_EIO, "handler forget done count:1 drop:0:9 "},
        {WQ_EFULL, "handler forget done count:1 drop:0:5 "},
        {WQ_ESTATE, "handler forget done "},
        {WQ_EINVAL, "handler forget done "},
        {WQ_ELOST, "handler forget done "},
    };

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        struct tape t;

        open_tape(&t, &full);
        assert_err(wq_add_str(&t.base, "foo"), WQ_OK);
        t.done_failures = 1;
        t.done_err = answers[i].err;
        assert_err(wq_work_one(&t.base,
                               WQ_WORKERS(.handler = answer, .ctx = &t,
                                          .on_drop = on_drop),
                               0),
                   answers[i].err);
        assert_string_equal(t.text, answers[i].verbs);
        wq_destroy(&t.base);
    }
}

/* ---- PW-07 --------------------------------------------------------------- */

/* PW-07 */
TEST(key_that_cannot_come_back_goes_to_on_drop_with_the_reason)
{
    static const wq_err errors[] = {WQ_ENOMEM,  WQ_ESHUTDOWN, WQ_EGIVENUP,
                                    WQ_ENOTSUP, WQ_EFULL,     WQ_EIO};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        for (size_t way = 0; way < 2; way++) {
            struct tape t;
            char        verbs[64];

            open_tape(&t, &full);
            t.result = way == 0 ? wq_result_retry() : wq_result_after(7);
            t.add_err = errors[i];
            t.requeues = 4;
            const wq_workers_stats counts =
                play(&t, &(wq_workers_config){.on_drop = on_drop});
            /* O-62: the queue counts the keys that it gives up. */
            (void)snprintf(verbs, sizeof verbs, "handler %s%sdrop:4:%d done ",
                           way == 0 ? "limited " : "forget after:7 ",
                           errors[i] == WQ_EGIVENUP ? "" : "count:1 ",
                           (int)errors[i]);
            assert_string_equal(t.text, verbs);
            assert_int_equal(counts.dropped, 1);
            assert_int_equal(counts.retried + counts.delayed, 0);
        }
}

/* PW-07: a backend that knows neither delays nor limits. */
TEST(backend_without_rate_limits_drops_with_enotsup)
{
    struct tape t;

    open_tape(&t, &bare);
    t.result = wq_result_retry();
    (void)play(&t, &(wq_workers_config){.on_drop = on_drop});
    assert_string_equal(t.text, "handler drop:0:11 done ");
}

/* PW-07 PW-21 */
TEST(drops_are_counted_even_if_nobody_wants_to_know)
{
    struct tape t;

    open_tape(&t, &full);
    t.result = wq_result_drop();
    const wq_workers_stats counts = play(&t, &(wq_workers_config){0});
    assert_string_equal(t.text, "handler count:1 done ");
    assert_int_equal(counts.dropped, 1);
}

/* ---- verbs that fail ----------------------------------------------------- */

/* PW-19 */
TEST(get_that_fails_is_tried_again)
{
    static const wq_err errors[] = {WQ_ENOMEM, WQ_EIO, WQ_ENOTSUP, WQ_EINVAL};

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct tape t;

        open_tape(&t, &full);
        t.get_failures = 3;
        t.get_err = errors[i];
        const wq_workers_stats counts = play(&t, &(wq_workers_config){0});
        assert_int_equal(counts.errors, 3);
        assert_int_equal(counts.done, 1);
    }
}

/* PW-19: and a pool that gets nothing but errors can be stopped. */
TEST(pool_whose_gets_always_fail_stops)
{
    struct tape t;
    wq_workers *pool;

    open_tape(&t, &full);
    t.get_failures = INT32_MAX;
    t.get_err = WQ_EIO;
    assert_err(
        wq_workers_start(&t.base,
                         WQ_WORKERS(.threads = 3, .handler = answer, .ctx = &t),
                         &pool),
        WQ_OK);
    tally_await(&t.gets, 4);
    assert_err(wq_workers_destroy(pool), WQ_OK);
    wq_destroy(&t.base);
}

/* The item is still on loan after these: from a wq_order or a backend. */
static const wq_err on_loan[] = {WQ_ENOMEM, WQ_EIO, WQ_EFULL, WQ_ENOTSUP};

static wq_workers *
start_to_drop(struct tape *t)
{
    wq_workers *pool;

    assert_err(wq_workers_start(&t->base,
                                WQ_WORKERS(.threads = 1, .handler = answer,
                                           .ctx = t, .on_drop = on_drop),
                                &pool),
               WQ_OK);
    return pool;
}

/* PW-20 */
TEST(done_that_fails_on_loan_is_tried_again)
{
    for (size_t i = 0; i < sizeof on_loan / sizeof on_loan[0]; i++) {
        struct tape t;

        open_tape(&t, &full);
        t.done_failures = 2;
        t.done_err = on_loan[i];
        assert_err(wq_add_str(&t.base, "foo"), WQ_OK);
        wq_workers *pool = start_to_drop(&t);
        tally_await(&t.dones, 3);
        assert_err(wq_workers_destroy(pool), WQ_OK);
        assert_string_equal(t.text, "handler forget done done done ");
        assert_err(wq_done_key(t.inner, wq_str("foo")), WQ_ESTATE); /* done */
        wq_destroy(&t.base);
    }
}

/* PW-20 */
TEST(done_that_always_fails_ends_in_on_drop)
{
    for (size_t i = 0; i < sizeof on_loan / sizeof on_loan[0]; i++) {
        struct tape t;
        char        end[32];

        open_tape(&t, &full);
        t.done_failures = INT32_MAX;
        t.done_err = on_loan[i];
        assert_err(wq_add_str(&t.base, "foo"), WQ_OK);
        wq_workers *pool = start_to_drop(&t);
        tally_await(&t.dones, 2);
        assert_err(wq_workers_stop(pool), WQ_OK);
        const int    len = snprintf(end, sizeof end, "done count:1 drop:0:%d ",
                                    (int)on_loan[i]);
        const size_t from = strlen(t.text) - (size_t)len;
        assert_string_equal(t.text + from, end);
        assert_err(wq_done_key(t.inner, wq_str("foo")), WQ_OK); /* on loan */
        assert_err(wq_workers_destroy(pool), WQ_OK);
        wq_destroy(&t.base);
    }
}

/* PW-20: the handler dropped the key, or it could not be added again. */
TEST(key_that_was_dropped_is_not_dropped_again)
{
    static const struct {
        wq_result   result;
        wq_err      add_err;
        const char *verbs;
    } rows[] = {
        {{WQ_RESULT_DROP, 0}, WQ_OK, "handler count:1 drop:0:14 done "},
        {{WQ_RESULT_RETRY, 0}, WQ_EGIVENUP, "handler limited drop:0:13 done "},
        {{WQ_RESULT_AFTER, 7},
         WQ_EFULL,
         "handler forget after:7 count:1 drop:0:5 done "},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct tape      t;
        wq_workers_stats counts = {.size = sizeof counts};

        open_tape(&t, &full);
        t.result = rows[i].result;
        t.add_err = rows[i].add_err;
        t.done_failures = INT32_MAX;
        t.done_err = WQ_EIO;
        assert_err(wq_add_str(&t.base, "foo"), WQ_OK);
        assert_err(wq_work_one(&t.base,
                               WQ_WORKERS(.handler = answer, .ctx = &t,
                                          .on_drop = on_drop),
                               0),
                   WQ_EIO);
        assert_string_equal(t.text, rows[i].verbs);

        t.handled = false;
        assert_err(wq_add_str(&t.base, "bar"), WQ_OK);
        wq_workers *pool = start_to_drop(&t);
        tally_await(&t.dones, 3);
        assert_err(wq_workers_stop(pool), WQ_OK);
        assert_err(wq_workers_read_stats(pool, &counts), WQ_OK);
        assert_int_equal(counts.dropped, 1);
        assert_string_equal(t.text + strlen(t.text) - 5, "done ");
        assert_err(wq_workers_destroy(pool), WQ_OK);
        wq_destroy(&t.base);
    }
}

/* PW-20 PW-08 */
TEST(worker_drops_one_key_after_the_other)
{
    struct tape t;

    open_tape(&t, &full);
    t.result = wq_result_drop();
    assert_err(wq_add_str(&t.base, "foo"), WQ_OK);
    assert_err(wq_add_str(&t.base, "bar"), WQ_OK);
    wq_workers *pool = start_to_drop(&t);
    tally_await(&t.dones, 2);
    assert_err(wq_workers_destroy(pool), WQ_OK);
    assert_string_equal(t.text, "handler count:1 drop:0:14 done "
                                "handler count:1 drop:0:14 done ");
    wq_destroy(&t.base);
}

/* PW-20: there is nothing to try again when the item is not ours. */
TEST(done_that_fails_otherwise_is_counted_only)
{
    static const wq_err errors[] = {WQ_ESTATE, WQ_ELOST, WQ_EINVAL};

    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        struct tape t;

        open_tape(&t, &full);
        t.done_failures = 1;
        t.done_err = errors[i];
        const wq_workers_stats counts =
            play(&t, &(wq_workers_config){.on_drop = on_drop});
        assert_string_equal(t.text, "handler forget done ");
        assert_int_equal(counts.errors, 1);
    }
}

/* ---- stopping ------------------------------------------------------------ */

static int
run_stop(struct worker *self)
{
    return (int)wq_workers_stop(self->arg);
}

/* PW-15: somebody else's get takes an interrupt that was meant for us. */
TEST(stop_interrupts_until_every_worker_has_noticed)
{
    struct tape t;
    wq_workers *pool;

    open_tape(&t, &full);
    t.deaf = 3;
    assert_err(
        wq_workers_start(&t.base,
                         WQ_WORKERS(.threads = 2, .handler = answer, .ctx = &t),
                         &pool),
        WQ_OK);
    tally_await(&t.gets, 2);
    assert_err(worker_join(worker_start(run_stop, pool)), WQ_OK);
    assert_true(tally_read(&t.interrupts) >= 4);
    assert_err(wq_workers_destroy(pool), WQ_OK);
    wq_destroy(&t.base);
}

/* PW-22 */
TEST(pool_on_a_backend_without_interrupt_stops)
{
    struct tape t;
    wq_workers *pool;

    open_tape(&t, &bare);
    assert_err(
        wq_workers_start(&t.base,
                         WQ_WORKERS(.threads = 2, .handler = answer, .ctx = &t),
                         &pool),
        WQ_OK);
    tally_await(&t.gets, 2);
    assert_err(worker_join(worker_start(run_stop, pool)), WQ_OK);
    assert_err(wq_workers_destroy(pool), WQ_OK);
    wq_destroy(&t.base);
}

/* PW-12 */
TEST(drain_on_a_backend_without_drain_does_nothing)
{
    struct tape t;
    wq_workers *pool;

    open_tape(&t, &full);
    assert_err(
        wq_workers_start(&t.base,
                         WQ_WORKERS(.threads = 2, .handler = answer, .ctx = &t),
                         &pool),
        WQ_OK);
    assert_err(wq_workers_drain(pool, WQ_FOREVER), WQ_ENOTSUP);
    assert_false(wq_shutting_down(&t.base));
    assert_err(wq_workers_resize(pool, 3), WQ_OK);
    assert_err(wq_workers_destroy(pool), WQ_OK);
    wq_destroy(&t.base);
}

WQ_TESTS(test(result_decides_which_verbs_are_called_and_done_is_last),
         test(makers_of_results_fill_in_both_fields),
         test(key_that_the_queue_gives_up_goes_to_on_drop),
         test(one_step_of_a_worker_calls_the_same_verbs),
         test(one_step_of_a_worker_returns_the_error_of_get),
         test(one_step_of_a_worker_returns_the_error_of_done),
         test(key_that_cannot_come_back_goes_to_on_drop_with_the_reason),
         test(backend_without_rate_limits_drops_with_enotsup),
         test(drops_are_counted_even_if_nobody_wants_to_know),
         test(get_that_fails_is_tried_again),
         test(pool_whose_gets_always_fail_stops),
         test(done_that_fails_on_loan_is_tried_again),
         test(done_that_always_fails_ends_in_on_drop),
         test(key_that_was_dropped_is_not_dropped_again),
         test(worker_drops_one_key_after_the_other),
         test(done_that_fails_otherwise_is_counted_only),
         test(stop_interrupts_until_every_worker_has_noticed),
         test(pool_on_a_backend_without_interrupt_stops),
         test(drain_on_a_backend_without_drain_does_nothing));
