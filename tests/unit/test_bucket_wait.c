/* SPDX-License-Identifier: MIT */
/* test_bucket_wait.c: how do threads wait for the tokens of a bucket?
 *
 * The bucket lives by a fake clock, which stands still until the test moves it.
 * At rate 10 a step of a tenth of a second brings one token.
 */
#include "support/wq_test.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include <wq/limiter.h>

#define SECOND INT64_C(1000000000)
#define D (SECOND / 10)    /* a step */
#define T0 (1000 * SECOND) /* some moment */
#define AT(k) (T0 + (k)*D) /* k steps later */

static wq_clock  *timer;
static wq_bucket *b;

static void
make(double limit, int64_t burst)
{
    wq_bucket_destroy(b);
    b = wq_bucket_create(limit, burst, timer);
    assert_non_null(b);
}

static int
open_bucket(void **state)
{
    (void)state;
    timer = wq_clock_fake_create(T0);
    make(10, 1);
    return 0;
}

static int
close_bucket(void **state)
{
    (void)state;
    wq_bucket_destroy(b);
    b = NULL;
    wq_clock_destroy(timer);
    return 0;
}

static void
expect_tokens(double tokens)
{
    assert_true(fabs(wq_bucket_tokens(b) - tokens) < 1e-9);
}

struct sleeper {
    pthread_t thread;
    int64_t   n;
    int64_t   timeout_ns;
    wq_err    err;     /* what wait returned */
    int64_t   ends_ns; /* and when */
};

static void *
sleep_in_bucket(void *arg)
{
    struct sleeper *s = arg;

    s->err = wq_bucket_wait_n(b, s->n, s->timeout_ns);
    s->ends_ns = wq_clock_now(timer);
    return NULL;
}

static void
start(struct sleeper *s, int64_t n, int64_t timeout_ns)
{
    *s = (struct sleeper){.n = n, .timeout_ns = timeout_ns};
    assert_int_equal(pthread_create(&s->thread, NULL, sleep_in_bucket, s), 0);
}

/* A thread that sleeps for `n` tokens, the `nth` to do so. */
static void
start_asleep(struct sleeper *s, int64_t n, int64_t timeout_ns, size_t nth)
{
    start(s, n, timeout_ns);
    wq_clock_fake_wait_for_waiters(timer, nth);
}

static void
expect_end(struct sleeper *s, wq_err err, int64_t ends_ns)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    assert_int_equal(s->err, err);
    assert_int_equal(s->ends_ns, ends_ns);
}

/* All functions that read the clock read the bucket's. */
TEST(bucket_lives_by_its_clock)
{
    wq_reservation r;

    make(10, 2);
    assert_true(wq_bucket_allow(b));
    assert_true(wq_bucket_allow_n(b, 1));
    assert_false(wq_bucket_allow(b));
    wq_clock_fake_step(timer, D);
    expect_tokens(1);
    assert_int_equal(wq_bucket_reserve_n(b, 2, &r), WQ_OK);
    assert_int_equal(wq_reservation_delay(&r), D);
    assert_int_equal(wq_bucket_reserve_n_within(b, 1, D, &r), WQ_ETIMEDOUT);
    wq_reservation_cancel(&r);
    expect_tokens(1);
    assert_int_equal(wq_bucket_reserve(b, &r), WQ_OK);
    assert_int_equal(r.time_to_act_ns, AT(1));
}

/* T-47 T-16: what is returned at once, and what is checked first. */
TEST(wait_returns_at_once_what_it_knows_at_once)
{
    make(10, 3);
    wq_bucket_interrupt(b);
    assert_int_equal(wq_bucket_wait_n(b, 4, WQ_FOREVER), WQ_EINVAL);
    assert_int_equal(wq_bucket_wait_n(b, 1, WQ_FOREVER), WQ_EINTERRUPTED);
    expect_tokens(3);
    assert_int_equal(wq_bucket_wait_n(b, 2, D), WQ_OK);
    assert_int_equal(wq_bucket_wait_n(b, 3, D), WQ_ETIMEDOUT);
    expect_tokens(1);
    assert_int_equal(wq_bucket_wait(b, 0), WQ_OK);
    assert_int_equal(wq_bucket_wait(b, 0), WQ_ETIMEDOUT);

    make(WQ_RATE_INF, 0); /* T-01 */
    assert_int_equal(wq_bucket_wait_n(b, 3, 0), WQ_OK);
    assert_int_equal(wq_bucket_wait_n(b, 3, WQ_FOREVER), WQ_OK);
}

/* T-47 */
TEST(wait_ends_when_the_tokens_are_there)
{
    struct sleeper s;

    make(10, 3);
    assert_int_equal(wq_bucket_wait_n(b, 2, WQ_FOREVER), WQ_OK);
    start_asleep(&s, 3, 2 * D, 1);
    wq_clock_fake_step(timer, 2 * D - 1);
    assert_int_equal(wq_clock_fake_waiters(timer), 1);
    wq_clock_fake_step(timer, 1);
    expect_end(&s, WQ_OK, AT(2));
}

/* T-47 T-16 */
TEST(interrupted_wait_gives_its_tokens_back)
{
    struct sleeper s;

    make(10, 3);
    assert_int_equal(wq_bucket_wait_n(b, 2, WQ_FOREVER), WQ_OK);
    start_asleep(&s, 3, WQ_FOREVER, 1);
    wq_clock_fake_step(timer, D);
    expect_tokens(-1);
    wq_bucket_interrupt(b);
    expect_end(&s, WQ_EINTERRUPTED, AT(1));
    expect_tokens(2);
    assert_int_equal(wq_bucket_wait_n(b, 2, 0), WQ_OK);
}

/* T-61: all sleepers are woken, and then none is remembered; without a sleeper,
 * one is. */
TEST(interrupt_wakes_all_or_is_remembered_once)
{
    enum { SLEEPERS = 5 };
    struct sleeper s[SLEEPERS];

    assert_true(wq_bucket_allow(b));
    for (size_t i = 0; i < SLEEPERS; i++)
        start(&s[i], 1, WQ_FOREVER);
    wq_clock_fake_wait_for_waiters(timer, SLEEPERS);
    wq_bucket_interrupt(b);
    for (int i = 0; i < SLEEPERS; i++)
        expect_end(&s[i], WQ_EINTERRUPTED, T0);
    wq_clock_fake_step(timer, SECOND);
    assert_int_equal(wq_bucket_wait_n(b, 0, 0), WQ_OK);

    wq_bucket_interrupt(b);
    wq_bucket_interrupt(b);
    assert_int_equal(wq_bucket_wait_n(b, 0, 0), WQ_EINTERRUPTED);
    assert_int_equal(wq_bucket_wait_n(b, 0, 0), WQ_OK);
}

/* T-61: interrupts and ends of sleep meet; no sleeper is lost, none is touched
 * after it left. */
TEST(interrupts_and_time_may_meet)
{
    enum { ROUNDS = 300 };
    struct sleeper s;

    for (int i = 0; i < ROUNDS; i++) {
        (void)wq_bucket_allow(b);
        start(&s, 1, WQ_FOREVER);
        if (i % 2)
            wq_clock_fake_wait_for_waiters(timer, 1);
        wq_clock_fake_step(timer, D);
        wq_bucket_interrupt(b);
        wq_clock_fake_step(timer, D);
        assert_int_equal(pthread_join(s.thread, NULL), 0);
        assert_true(s.err == WQ_OK || s.err == WQ_EINTERRUPTED);
        /* Once more, in case the interrupt was remembered. */
        const wq_err err = wq_bucket_wait_n(b, 0, 0);
        assert_true(err == WQ_OK || err == WQ_EINTERRUPTED);
    }
}

/* T-46 T-15: the new rate counts for waits that begin after it. */
TEST(wait_after_a_rate_was_set_takes_that_rate)
{
    struct sleeper s;

    make(0, 1);
    assert_true(wq_bucket_allow(b));
    assert_false(wq_bucket_allow(b));
    assert_int_equal(wq_bucket_wait(b, 1000 * SECOND), WQ_ETIMEDOUT);
    assert_int_equal(wq_bucket_set_limit(b, 10), WQ_OK);
    start_asleep(&s, 1, WQ_FOREVER, 1);
    assert_int_equal(wq_bucket_set_limit(b, 1e9), WQ_OK);
    wq_clock_fake_step(timer, D - 1);
    assert_int_equal(wq_clock_fake_waiters(timer), 1);
    wq_clock_fake_step(timer, 1);
    expect_end(&s, WQ_OK, AT(1));
}

/* T-15: a sleeper keeps its time, though others come sooner. */
TEST(wait_that_begins_after_the_rate_rose_may_end_first)
{
    struct sleeper early, late;

    make(1, 1);
    assert_true(wq_bucket_allow(b));
    start_asleep(&early, 1, WQ_FOREVER, 1);
    assert_int_equal(wq_bucket_set_limit(b, 100), WQ_OK);
    start_asleep(&late, 1, WQ_FOREVER, 2);
    wq_clock_fake_step(timer, SECOND / 50);
    expect_end(&late, WQ_OK, T0 + SECOND / 50);
    wq_clock_fake_set(timer, T0 + SECOND);
    expect_end(&early, WQ_OK, T0 + SECOND);
}

/* T-61: at rate 0 a wait has no end but an interrupt. */
TEST(wait_without_end_can_be_interrupted)
{
    struct sleeper s;

    make(0, 1);
    assert_true(wq_bucket_allow(b));
    start(&s, 1, WQ_FOREVER);
    /* Whether it sleeps by now cannot be seen; a remembered interrupt does. */
    wq_bucket_interrupt(b);
    expect_end(&s, WQ_EINTERRUPTED, T0);
    expect_tokens(0);
}

/* ---- many threads -------------------------------------------------------- */

static atomic_int allowed;

static void
run_crowd(int threads, void *(*run)(void *), void *arg)
{
    enum { MOST = 15 };
    pthread_t ids[MOST];

    assert_true(threads <= MOST);
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, run, arg), 0);
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_join(ids[i], NULL), 0);
}

static void *
try_often(void *tries)
{
    for (int i = 0; i < *(const int *)tries; i++)
        if (wq_bucket_allow(b))
            atomic_fetch_add(&allowed, 1);
    return NULL;
}

/* T-35 */
TEST(crowd_gets_as_many_as_there_are)
{
    static struct {
        int threads, tries, burst;
    } rows[] = {{15, 1, 5}, {4, 5000, 9999}};

    for (size_t i = 0; i < 2; i++) {
        make(1, rows[i].burst);
        atomic_store(&allowed, 0);
        run_crowd(rows[i].threads, try_often, &rows[i].tries);
        assert_int_equal(allowed, rows[i].burst);
    }
}

static void *
reserve_and_cancel(void *unused)
{
    for (int i = 0; i < 2000; i++) {
        wq_reservation r;
        if (wq_bucket_reserve_n_within(b, 1 + i % 3, SECOND, &r) == WQ_OK)
            wq_reservation_cancel(&r);
        (void)wq_bucket_tokens(b);
        (void)wq_bucket_set_burst(b, 10 + i % 2);
    }
    return unused;
}

/* T-62: what is cancelled in any order never makes more than the burst. */
TEST(crowd_that_cancels_mints_nothing)
{
    make(10, 10);
    run_crowd(4, reserve_and_cancel, NULL);
    assert_true(wq_bucket_tokens(b) <= 10);
}

#define wait_test(name) test_with(name, open_bucket, close_bucket)

WQ_TESTS(wait_test(bucket_lives_by_its_clock),
         wait_test(wait_returns_at_once_what_it_knows_at_once),
         wait_test(wait_ends_when_the_tokens_are_there),
         wait_test(interrupted_wait_gives_its_tokens_back),
         wait_test(interrupt_wakes_all_or_is_remembered_once),
         wait_test(interrupts_and_time_may_meet),
         wait_test(wait_after_a_rate_was_set_takes_that_rate),
         wait_test(wait_that_begins_after_the_rate_rose_may_end_first),
         wait_test(wait_without_end_can_be_interrupted),
         wait_test(crowd_gets_as_many_as_there_are),
         wait_test(crowd_that_cancels_mints_nothing));
