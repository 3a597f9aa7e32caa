/* SPDX-License-Identifier: MIT */
/* test_workers_results.c: which verbs does a worker call, in which order, and
 * what does it do when they fail?
 *
 * The queue is one in memory whose verbs are replaced: they write down their
 * calls and fail when the test wants it.
 */
#include "support/wq_test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <wq/backend.h>
#include <wq/workers.h>

#include "support/checkpoint.h"
#include "support/worker.h"

#define LEN(array) (sizeof(array) / sizeof *(array))

static struct {
    wq_queue         *q;      /* in memory, with other verbs */
    const wq_backend *memory; /* its own verbs */
    wq_backend        verbs;  /* what workers see */

    pthread_mutex_t mutex; /* guards text */
    char            text[512];

    /* What to answer. */
    unsigned   requeues;
    atomic_int add_failures, get_failures, done_failures; /* how often still */
    wq_err     add_err; /* with what; adds: after the handler was called */
    wq_err     get_err, done_err;
    atomic_int deaf;   /* interrupts without effect */
    wq_result  result; /* what the handler returns */
    bool       leaves; /* it has the pool resized to nothing */

    /* What came. */
    struct tally gets, dones, interrupts;
    atomic_bool  handled; /* the handler was called */
    wq_workers  *pool;    /* of play() */
    wq_err       resize_err;
} t;

__attribute__((format(printf, 1, 2))) static void
write_down(const char *format, ...)
{
    va_list numbers;

    (void)pthread_mutex_lock(&t.mutex);
    const size_t len = strlen(t.text);
    va_start(numbers, format);
    (void)vsnprintf(t.text + len, sizeof t.text - len, format, numbers);
    va_end(numbers);
    (void)pthread_mutex_unlock(&t.mutex);
}

static wq_err
answer_add(void)
{
    return atomic_fetch_sub(&t.add_failures, 1) > 0 ? t.add_err : WQ_OK;
}

/* The queue in memory does not see adds of the handler's thread. */
static wq_err
tape_add(wq_queue *q, wq_key key)
{
    if (!t.handled)
        return t.memory->add(q, key);
    write_down("add ");
    return answer_add();
}

static wq_err
tape_get(wq_queue *q, int64_t timeout_ns, wq_item **out)
{
    tally_add(&t.gets, 1);
    if (atomic_fetch_sub(&t.get_failures, 1) > 0)
        return t.get_err;
    return t.memory->get(q, timeout_ns, out);
}

static wq_err
tape_done(wq_queue *q, wq_item *item)
{
    wq_err err = t.done_err;

    write_down("done ");
    if (atomic_fetch_sub(&t.done_failures, 1) <= 0)
        err = t.memory->done(q, item);
    tally_add(&t.dones, 1);
    return err;
}

static void
tape_interrupt(wq_queue *q)
{
    tally_add(&t.interrupts, 1);
    if (atomic_fetch_sub(&t.deaf, 1) <= 0)
        t.memory->interrupt(q);
}

static wq_err
tape_add_after(wq_queue *q, wq_key key, int64_t delay_ns)
{
    (void)q, (void)key;
    write_down("after:%lld ", (long long)delay_ns);
    return answer_add();
}

static wq_err
tape_add_rate_limited(wq_queue *q, wq_key key)
{
    (void)q, (void)key;
    write_down("limited ");
    return answer_add();
}

static wq_err
tape_forget(wq_queue *q, wq_key key)
{
    (void)q, (void)key;
    write_down("forget ");
    return WQ_OK;
}

static wq_err
tape_num_requeues(wq_queue *q, wq_key key, unsigned *out)
{
    (void)q, (void)key;
    *out = t.requeues;
    return WQ_OK;
}

static wq_err
tape_count_drops(wq_queue *q, uint64_t n)
{
    (void)q;
    write_down("count:%llu ", (unsigned long long)n);
    return WQ_OK;
}

/* With the verbs that a backend must have. */
static void
open_bare(void)
{
    memset(&t, 0, sizeof t);
    t.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    t.gets = t.dones = t.interrupts = (struct tally)TALLY_INIT;
    assert_err(wq_create(NULL, &t.q), WQ_OK);
    t.memory = t.q->backend;
    t.verbs = (wq_backend){
        .size = sizeof t.verbs,
        .name = "tape",
        .destroy = t.memory->destroy,
        .add = tape_add,
        .get = tape_get,
        .done = tape_done,
        .len = t.memory->len,
        .shutdown = t.memory->shutdown,
        .shutting_down = t.memory->shutting_down,
    };
    assert_err(wq_backend_init(t.q, &t.verbs), WQ_OK);
}

/* And with those that workers use if they are there. */
static void
open_full(void)
{
    open_bare();
    t.verbs.interrupt = tape_interrupt;
    t.verbs.add_after = tape_add_after;
    t.verbs.add_rate_limited = tape_add_rate_limited;
    t.verbs.forget = tape_forget;
    t.verbs.num_requeues = tape_num_requeues;
    t.verbs.count_drops = tape_count_drops;
}

/* ---- the callbacks ------------------------------------------------------- */

static wq_result
answer(void *ctx, const wq_item *item)
{
    (void)ctx;
    write_down("%s ", item->key.len == 3 ? "handler" : "what?");
    t.handled = true;
    if (t.leaves)
        t.resize_err = wq_workers_resize(t.pool, 0);
    return t.result;
}

/* Writes down retries and error, and that it was called after done. */
static void
on_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    (void)ctx;
    write_down("%s:%u:%d ", key.len == 3 ? "drop" : "what?", retries, (int)why);
}

static wq_workers_config config = {
    .size = sizeof config, .handler = answer, .on_drop = on_drop};

static wq_workers *
start(unsigned threads)
{
    wq_workers *pool;

    config.threads = threads;
    assert_err(wq_workers_start(t.q, &config, &pool), WQ_OK);
    return pool;
}

static void
stop(wq_workers *pool)
{
    assert_err(wq_workers_destroy(pool), WQ_OK);
    wq_destroy(t.q);
}

static void
add(const char *key)
{
    assert_err(wq_add_str(t.q, key), WQ_OK);
}

/* "foo" through a pool until it is done; then the pool is gone. */
static wq_workers_stats
play(void)
{
    wq_workers_stats counts = {.size = sizeof counts};
    wq_workers      *pool = start(1);

    t.pool = pool;
    add("foo");
    tally_await(&t.dones, 1);
    assert_err(wq_workers_stop(pool), WQ_OK);
    assert_err(wq_workers_read_stats(pool, &counts), WQ_OK);
    stop(pool);
    return counts;
}

/* "foo" through wq_work_one(), which returns `err` and calls `verbs`. */
static void
expect_step(wq_err err, const char *verbs)
{
    add("foo");
    assert_err(wq_work_one(t.q, &config, 0), err);
    assert_string_equal(t.text, verbs);
}

static bool
ends_with(const char *text, const char *end)
{
    const size_t len = strlen(text), tail = strlen(end);

    return len >= tail && strcmp(text + len - tail, end) == 0;
}

/* ---- PQ-47 --------------------------------------------------------------- */

static const struct {
    wq_result   result;
    const char *verbs;
} contract[] = {
    {{.outcome = WQ_RESULT_DONE, .after_ns = 0}, "handler forget done "},
    {{.outcome = WQ_RESULT_DONE, .after_ns = 7}, "handler forget done "},
    {{.outcome = WQ_RESULT_RETRY, .after_ns = 0}, "handler limited done "},
    {{.outcome = WQ_RESULT_RETRY, .after_ns = 7}, "handler limited done "},
    {{.outcome = WQ_RESULT_AFTER, .after_ns = 7},
     "handler after:7 forget done "},
    {{.outcome = WQ_RESULT_AFTER, .after_ns = WQ_FOREVER},
     "handler after:9223372036854775807 forget done "},
    /* PW-05 */
    {{.outcome = WQ_RESULT_AFTER, .after_ns = 0}, "handler add forget done "},
    {{.outcome = WQ_RESULT_AFTER, .after_ns = -1}, "handler add forget done "},
    {{.outcome = WQ_RESULT_AFTER, .after_ns = INT64_MIN},
     "handler add forget done "},
    {{.outcome = (wq_outcome)99}, "handler limited done "},
    {{.outcome = (wq_outcome)-1, .after_ns = 7}, "handler limited done "},
    /* PW-08: retries 2, WQ_EDROPPED */
    {{.outcome = WQ_RESULT_DROP, .after_ns = 0},
     "handler done count:1 drop:2:14 "},
    {{.outcome = WQ_RESULT_DROP, .after_ns = 7},
     "handler done count:1 drop:2:14 "},
    {{.outcome = WQ_RESULT_BURY}, "handler done count:1 drop:2:14 "},
    {{.outcome = WQ_RESULT_BACK}, "handler add done "},
};

/* PQ-47 PW-05 PW-08; PW-25: the same contract without a pool. */
TEST(result_decides_which_verbs_are_called_and_done_is_last)
{
    for (size_t i = 0; i < LEN(contract); i++)
        for (int alone = 0; alone < 2; alone++) {
            open_full();
            t.result = contract[i].result;
            t.requeues = 2;
            if (alone) {
                expect_step(WQ_OK, contract[i].verbs);
                wq_destroy(t.q);
            } else {
                (void)play();
                assert_string_equal(t.text, contract[i].verbs);
            }
        }
}

/* PQ-47 */
TEST(result_functions_fill_in_both_fields)
{
    const struct {
        wq_result  result;
        wq_outcome outcome;
        int64_t    after_ns;
    } rows[] = {
        {wq_result_done(), WQ_RESULT_DONE, 0},
        {wq_result_retry(), WQ_RESULT_RETRY, 0},
        {wq_result_after(5), WQ_RESULT_AFTER, 5},
        {wq_result_drop(), WQ_RESULT_DROP, 0},
        {{0}, WQ_RESULT_DONE, 0},
    };

    for (size_t i = 0; i < LEN(rows); i++) {
        assert_int_equal(rows[i].result.outcome, rows[i].outcome);
        assert_int_equal(rows[i].result.after_ns, rows[i].after_ns);
    }
}

/* PW-25 */
TEST(one_step_of_a_worker_returns_the_error_of_get)
{
    static const wq_err errors[] = {WQ_ENOMEM, WQ_EIO, WQ_EINTERRUPTED,
                                    WQ_ESHUTDOWN};

    for (size_t i = 0; i < LEN(errors); i++) {
        open_full();
        t.get_failures = 1;
        t.get_err = errors[i];
        expect_step(errors[i], "");
        wq_destroy(t.q);
    }
}

/* PW-25: and does not try again. Where the key stays on loan it is dropped,
 * unless it comes back by itself. */
TEST(one_step_of_a_worker_returns_the_error_of_done)
{
    static const struct {
        wq_err      err;
        const char *verbs;
    } answers[] = {
        {WQ_ENOMEM, "handler forget done count:1 drop:0:2 "},
        {WQ_EIO, "handler forget done "}, /* the hold ends by itself */
        {WQ_EAWAY, "handler forget done "},
        {WQ_EFULL, "handler forget done count:1 drop:0:5 "},
        {WQ_ESTATE, "handler forget done "},
        {WQ_EINVAL, "handler forget done "},
        {WQ_ELOST, "handler forget done "},
    };

    for (size_t i = 0; i < LEN(answers); i++) {
        open_full();
        t.done_failures = 1;
        t.done_err = answers[i].err;
        expect_step(answers[i].err, answers[i].verbs);
        wq_destroy(t.q);
    }
}

/* ---- PW-07 --------------------------------------------------------------- */

/* PW-06 PW-07; O-62: the queue itself counts the keys that it gives up. */
TEST(key_that_cannot_come_back_goes_to_on_drop)
{
    static const struct {
        wq_err      err;
        const char *retry, *after; /* the verbs behind the handler */
    } rows[] = {
        {WQ_ESHUTDOWN, "limited done count:1 drop:4:3 ",
         "after:7 forget done count:1 drop:4:3 "},
        {WQ_EGIVENUP, "limited done drop:4:13 ", "after:7 done drop:4:13 "},
        {WQ_ENOTSUP, "limited done count:1 drop:4:11 ",
         "after:7 done count:1 drop:4:11 "},
        {WQ_EINVAL, "limited done count:1 drop:4:1 ",
         "after:7 done count:1 drop:4:1 "},
    };

    for (size_t i = 0; i < LEN(rows); i++)
        for (size_t way = 0; way < 2; way++) {
            char verbs[64];

            open_full();
            t.result = way == 0 ? wq_result_retry() : wq_result_after(7);
            t.add_failures = INT32_MAX;
            t.add_err = rows[i].err;
            t.requeues = 4;
            const wq_workers_stats counts = play();
            (void)snprintf(verbs, sizeof verbs, "handler %s",
                           way == 0 ? rows[i].retry : rows[i].after);
            assert_string_equal(t.text, verbs);
            assert_int_equal(counts.dropped, 1);
            assert_int_equal(counts.retried + counts.delayed + counts.lost, 0);
            assert_int_equal(counts.errors, 0);
        }
}

/* PW-20: the key is not lost because one add of it has failed. */
TEST(add_that_fails_is_tried_again)
{
    static const wq_err errors[] = {WQ_ENOMEM, WQ_EFULL, WQ_EIO, WQ_EAWAY};

    for (size_t i = 0; i < LEN(errors); i++)
        for (size_t way = 0; way < 2; way++) {
            open_full();
            t.result = way == 0 ? wq_result_retry() : wq_result_after(7);
            t.add_failures = 2;
            t.add_err = errors[i];
            const wq_workers_stats counts = play();
            assert_string_equal(
                t.text, way == 0
                            ? "handler limited limited limited done "
                            : "handler after:7 after:7 after:7 forget done ");
            assert_int_equal(counts.retried + counts.delayed, 1);
            assert_int_equal(counts.dropped, 0);
            assert_int_equal(counts.errors, 2);
        }
}

/* PW-07: a backend that knows neither delays nor limits. */
TEST(backend_without_rate_limits_drops_with_enotsup)
{
    open_bare();
    t.result = wq_result_retry();
    (void)play();
    assert_string_equal(t.text, "handler done drop:0:11 ");
}

/* PW-07 PW-21 */
TEST(drops_are_counted_without_a_callback)
{
    open_full();
    t.result = wq_result_drop();
    config.on_drop = NULL;
    assert_int_equal(play().dropped, 1);
    config.on_drop = on_drop;
    assert_string_equal(t.text, "handler done count:1 ");
}

/* ---- verbs that fail ----------------------------------------------------- */

/* PW-19 */
TEST(get_that_fails_is_tried_again)
{
    static const wq_err errors[] = {WQ_ENOMEM, WQ_EIO, WQ_ENOTSUP, WQ_EINVAL};

    for (size_t i = 0; i < LEN(errors); i++) {
        open_full();
        t.get_failures = 3;
        t.get_err = errors[i];
        const wq_workers_stats counts = play();
        assert_int_equal(counts.errors, 3);
        assert_int_equal(counts.done, 1);
    }
}

/* PW-19 */
TEST(pool_whose_gets_always_fail_stops)
{
    open_full();
    t.get_failures = INT32_MAX;
    t.get_err = WQ_EIO;
    wq_workers *pool = start(3);
    tally_await(&t.gets, 4);
    stop(pool);
}

/* PW-20: the item is still on loan after these errors, of a wq_order or of a
 * backend. A done that fails twice is tried again, with the result; one that
 * always fails ends in on_drop, unless the hold ends by itself. */
TEST(done_that_fails_on_loan_is_tried_again_or_drops)
{
    static const wq_err on_loan[] = {WQ_ENOMEM, WQ_EIO, WQ_EAWAY, WQ_EFULL,
                                     WQ_ENOTSUP};

    for (size_t i = 0; i < LEN(on_loan); i++)
        for (int always = 0; always < 2; always++) {
            const bool left = on_loan[i] == WQ_EIO || on_loan[i] == WQ_EAWAY;
            char       end[64] = "handler forget done forget done forget done ";
            wq_workers_stats counts = {.size = sizeof counts};

            open_full();
            t.done_failures = always ? INT32_MAX : 2;
            t.done_err = on_loan[i];
            add("foo");
            wq_workers *pool = start(1);
            tally_await(&t.dones, always ? 2 : 3);
            assert_err(wq_workers_stop(pool), WQ_OK);
            if (always && !left)
                (void)snprintf(end, sizeof end, "done count:1 drop:0:%d ",
                               (int)on_loan[i]);
            assert_true(ends_with(t.text, always && left ? "done " : end));
            assert_err(wq_workers_read_stats(pool, &counts), WQ_OK);
            assert_int_equal(counts.done, always ? 0 : 1);
            assert_int_equal(counts.dropped, always && !left ? 1 : 0);
            assert_int_equal(counts.errors, always ? tally_read(&t.dones) : 2);
            assert_err(t.memory->done_key(t.q, wq_str("foo")),
                       always ? WQ_OK : WQ_ESTATE); /* is it on loan? */
            stop(pool);
        }
}

/* PW-20: a key that cannot be given back is reported once, with the error of
 * the done, whatever its result. */
TEST(key_is_dropped_once_if_done_never_succeeds)
{
    static const struct {
        wq_result   result;
        wq_err      add_err;
        const char *verbs;
    } rows[] = {
        {{.outcome = WQ_RESULT_DROP}, WQ_OK, "handler done "},
        {{.outcome = WQ_RESULT_RETRY}, WQ_EGIVENUP, "handler limited done "},
        {{.outcome = WQ_RESULT_AFTER, .after_ns = 7},
         WQ_ESHUTDOWN,
         "handler after:7 forget done "},
    };

    for (size_t i = 0; i < LEN(rows); i++) {
        wq_workers_stats counts = {.size = sizeof counts};
        char             verbs[64];

        open_full();
        t.result = rows[i].result;
        t.add_failures = INT32_MAX;
        t.add_err = rows[i].add_err;
        t.done_failures = INT32_MAX;
        t.done_err = WQ_ENOMEM;
        (void)snprintf(verbs, sizeof verbs, "%scount:1 drop:0:2 ",
                       rows[i].verbs);
        expect_step(WQ_ENOMEM, verbs);

        t.handled = false;
        add("bar");
        wq_workers *pool = start(1);
        tally_await(&t.dones, 3);
        assert_err(wq_workers_stop(pool), WQ_OK);
        assert_err(wq_workers_read_stats(pool, &counts), WQ_OK);
        assert_int_equal(counts.dropped, 1);
        assert_true(ends_with(t.text, "done count:1 drop:0:2 "));
        stop(pool);
    }
}

/* PW-20 PW-08 */
TEST(worker_drops_one_key_after_the_other)
{
    open_full();
    t.result = wq_result_drop();
    add("foo");
    add("bar");
    wq_workers *pool = start(1);
    tally_await(&t.dones, 2);
    stop(pool);
    assert_string_equal(t.text, "handler done count:1 drop:0:14 "
                                "handler done count:1 drop:0:14 ");
}

/* PW-20 PW-21: there is nothing to try again when the item is not on loan. */
TEST(done_that_fails_otherwise_is_counted_only)
{
    static const wq_err    errors[] = {WQ_ESTATE, WQ_ELOST, WQ_EINVAL};
    static const wq_result results[] = {{.outcome = WQ_RESULT_DONE},
                                        {.outcome = WQ_RESULT_DROP},
                                        {.outcome = WQ_RESULT_BACK},
                                        {.outcome = WQ_RESULT_RETRY}};

    for (size_t i = 0; i < LEN(errors); i++)
        for (size_t r = 0; r < LEN(results); r++) {
            open_full();
            t.result = results[r];
            t.done_failures = INT32_MAX;
            t.done_err = errors[i];
            const wq_workers_stats counts = play();
            assert_int_equal(counts.errors, errors[i] != WQ_ELOST);
            assert_int_equal(counts.lost, 1);
            assert_int_equal(counts.done + counts.dropped + counts.returned +
                                 counts.retried,
                             0);
            assert_null(strstr(t.text, "drop"));
        }
}

/* ---- stopping ------------------------------------------------------------ */

/* PW-14: whether the done succeeds or not. */
TEST(worker_that_must_leave_gives_its_key_back_first)
{
    static const wq_err errors[] = {WQ_OK, WQ_ESTATE};

    for (size_t i = 0; i < LEN(errors); i++) {
        open_full();
        t.leaves = true;
        t.done_failures = errors[i] != WQ_OK;
        t.done_err = errors[i];
        assert_int_equal(play().errors, errors[i] != WQ_OK);
        assert_string_equal(t.text, "handler forget done ");
        assert_err(t.resize_err, WQ_OK);
    }
}

/* PW-15: another get takes an interrupt that was meant for a worker. PW-22: a
 * backend without interrupt. */
TEST(stop_ends_when_every_worker_has_noticed)
{
    for (int interrupts = 0; interrupts < 2; interrupts++) {
        interrupts ? open_full() : open_bare();
        t.deaf = 3;
        wq_workers *pool = start(2);
        tally_await(&t.gets, 2);
        assert_err(wq_workers_stop(pool), WQ_OK);
        assert_true(tally_read(&t.interrupts) >= (interrupts ? 4 : 0));
        stop(pool);
    }
}

/* PW-12 */
TEST(drain_on_a_backend_without_drain_does_nothing)
{
    open_full();
    wq_workers *pool = start(2);
    assert_err(wq_workers_drain(pool, WQ_FOREVER), WQ_ENOTSUP);
    assert_false(wq_shutting_down(t.q));
    assert_err(wq_workers_resize(pool, 3), WQ_OK);
    stop(pool);
}

WQ_TESTS(test(result_decides_which_verbs_are_called_and_done_is_last),
         test(result_functions_fill_in_both_fields),
         test(one_step_of_a_worker_returns_the_error_of_get),
         test(one_step_of_a_worker_returns_the_error_of_done),
         test(key_that_cannot_come_back_goes_to_on_drop),
         test(add_that_fails_is_tried_again),
         test(backend_without_rate_limits_drops_with_enotsup),
         test(drops_are_counted_without_a_callback),
         test(get_that_fails_is_tried_again),
         test(pool_whose_gets_always_fail_stops),
         test(done_that_fails_on_loan_is_tried_again_or_drops),
         test(key_is_dropped_once_if_done_never_succeeds),
         test(worker_drops_one_key_after_the_other),
         test(done_that_fails_otherwise_is_counted_only),
         test(worker_that_must_leave_gives_its_key_back_first),
         test(stop_ends_when_every_worker_has_noticed),
         test(drain_on_a_backend_without_drain_does_nothing));
