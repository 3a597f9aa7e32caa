/* SPDX-License-Identifier: MIT */
/* test_stopwatch.c: does the cheap time keep close to the dear one?
 *
 * The line and the pace are asked about moments that the test makes up; the
 * stopwatch is held against the clock it imitates.
 */
#include "support/wq_test.h"

#include <stdatomic.h>

#include <wq/clock.h>

#include "clock/clock.h"
#include "port/stopwatch.h"
#include "port/ticks.h"
#include "port/time.h"
#include "support/worker.h"

#define MS INT64_C(1000000)
#define SLOPE_HALF (UINT64_C(1) << 31) /* 2 GHz */
#define SLOPE_ONE (UINT64_C(1) << 32)  /* 1 GHz */

/* ---- the line -------------------------------------------------------------
 */

static void
expect_follows(struct wq__line *l, uint64_t ticks, int64_t expected_ns)
{
    int64_t now_ns = -1;

    assert_true(wq__line_follow(l, ticks, &now_ns));
    assert_int_equal(now_ns, expected_ns);
}

static void
expect_lost(struct wq__line *l, uint64_t ticks)
{
    int64_t now_ns = -1;

    assert_false(wq__line_follow(l, ticks, &now_ns));
    assert_int_equal(now_ns, -1);
}

TEST(tick_of_a_moment_is_told_only_if_nobody_interrupted)
{
    uint64_t ticks = 0;

    assert_true(wq__ticks_between(1000, 1100, &ticks));
    assert_int_equal(ticks, 1050);
    assert_true(wq__ticks_between(UINT64_MAX, 1, &ticks));
    assert_int_equal(ticks, 0);
    assert_true(wq__ticks_between(0, WQ__TICKS_SLACK, &ticks));
    assert_false(wq__ticks_between(0, WQ__TICKS_SLACK + 1, &ticks));
    assert_false(wq__ticks_between(1000, 999, &ticks));
}

TEST(no_line_is_followed_before_there_is_one)
{
    struct wq__line l = {0};

    expect_lost(&l, 0);
    assert_int_equal(wq__line_anchor(&l, 100, 5000, 0), 5000);
    expect_lost(&l, 100);
}

TEST(line_is_followed_from_its_anchor_to_the_end_of_its_window)
{
    struct wq__line l = {0};

    assert_int_equal(wq__line_anchor(&l, 100, 5000, SLOPE_HALF), 5000);
    expect_follows(&l, 100, 5000);
    expect_follows(&l, 101, 5000); /* rounded down */
    expect_follows(&l, 102, 5001);
    expect_follows(&l, 100 + WQ__TICKS_WINDOW - 2,
                   5000 + WQ__TICKS_WINDOW / 2 - 1);
    expect_lost(&l, 100 + WQ__TICKS_WINDOW);
    expect_lost(&l, UINT64_MAX / 2);
}

TEST(counter_that_went_back_is_not_followed)
{
    struct wq__line l = {0};

    (void)wq__line_anchor(&l, 100, 5000, SLOPE_HALF);
    expect_lost(&l, 99);
    expect_lost(&l, 0);
}

TEST(counter_that_wraps_around_is_followed)
{
    struct wq__line l = {0};

    (void)wq__line_anchor(&l, UINT64_MAX - 9, 5000, SLOPE_ONE);
    expect_follows(&l, 10, 5020);
}

TEST(steepest_slope_does_not_overflow)
{
    struct wq__line l = {0};

    (void)wq__line_anchor(&l, 0, 0, 16 * SLOPE_ONE);
    expect_follows(&l, WQ__TICKS_WINDOW - 1,
                   INT64_C(16) * (WQ__TICKS_WINDOW - 1));
}

/* A line that was too steep is ahead of the clock when it ends. The next one
 * starts from the clock all the same, so that the error does not add up; until
 * it has caught up, time stands still. */
TEST(answers_never_go_back_when_a_line_begins_before_the_last_ended)
{
    struct wq__line l = {0};

    (void)wq__line_anchor(&l, 0, 5000, SLOPE_ONE);
    expect_follows(&l, 1000, 6000);
    assert_int_equal(wq__line_anchor(&l, 1100, 5900, SLOPE_ONE), 6000);
    expect_follows(&l, 1150, 6000);
    expect_follows(&l, 1201, 6001);
}

TEST(answers_never_go_back_when_the_counter_does_so_a_little)
{
    struct wq__line l = {0};

    (void)wq__line_anchor(&l, 0, 5000, SLOPE_ONE);
    expect_follows(&l, 1000, 6000);
    expect_follows(&l, 990, 6000);
    expect_follows(&l, 1001, 6001);
}

/* ---- the pace -------------------------------------------------------------
 */

/* Anchors at 1 GHz, the first at 1 ms. */
static uint64_t
learn_at(struct wq__pace *p, int64_t ns)
{
    return wq__pace_learn(p, (uint64_t)ns + 77, ns);
}

TEST(slope_is_known_once_it_was_measured_long_enough)
{
    struct wq__pace p = {0};

    assert_int_equal(learn_at(&p, 1000 * MS), 0);
    assert_int_equal(learn_at(&p, 1000 * MS), 0);
    assert_int_equal(learn_at(&p, 1001 * MS - 1), 0);
    assert_int_equal(learn_at(&p, 1001 * MS), SLOPE_ONE);
}

TEST(slope_is_made_better_whenever_the_length_has_doubled)
{
    struct wq__pace p = {0};

    (void)learn_at(&p, 1000 * MS);
    (void)learn_at(&p, 1001 * MS);
    /* A little more time for the ticks; not yet twice as long, then so. */
    assert_int_equal(wq__pace_learn(&p, 1002 * MS, 1002 * MS - 1), SLOPE_ONE);
    const uint64_t better = wq__pace_learn(&p, 1002 * MS, 1002 * MS);
    assert_true(better > SLOPE_ONE && better < SLOPE_ONE + SLOPE_ONE / 1000);
}

TEST(slope_is_left_alone_once_it_is_good)
{
    struct wq__pace p = {0};

    (void)learn_at(&p, 1000 * MS);
    assert_int_equal(learn_at(&p, 1129 * MS), SLOPE_ONE);
    for (int64_t ms = 1130; ms < 5000; ms += 7) /* at another pace */
        assert_int_equal(wq__pace_learn(&p, (uint64_t)(2 * ms * MS), ms * MS),
                         SLOPE_ONE);
}

/* The machine may have been suspended: the counter went on, or began anew. */
TEST(measuring_begins_again_after_a_long_pause)
{
    struct wq__pace p = {0};

    (void)learn_at(&p, 1000 * MS);
    assert_int_equal(wq__pace_learn(&p, 12345678901, 1257 * MS), 0);
    assert_int_equal(wq__pace_learn(&p, 12345678901 + 2000000, 1258 * MS),
                     SLOPE_HALF);
}

TEST(measuring_begins_again_when_no_counter_can_be_that_fast_or_slow)
{
    const uint64_t impossible[] = {
        0, 62499, 16000001, UINT64_MAX, /* the last: it went back */
    };

    for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
        const uint64_t  ticks = 1000 + impossible[i];
        struct wq__pace p = {0};

        (void)wq__pace_learn(&p, 1000, 1000 * MS);
        assert_int_equal(wq__pace_learn(&p, ticks, 1001 * MS), 0);
        assert_int_equal(wq__pace_learn(&p, ticks + 2000000, 1002 * MS),
                         SLOPE_HALF);
    }
}

TEST(fastest_and_slowest_counter_are_believed)
{
    assert_int_equal(wq__pace_of(62500, MS), 16 * SLOPE_ONE);
    assert_int_equal(wq__pace_of(16000000, MS), SLOPE_ONE / 16);
    assert_int_equal(wq__pace_of(16 * 256000000ULL, 256 * MS), SLOPE_ONE / 16);
}

/* Another thread's anchor, read earlier and told later. */
TEST(anchor_from_before_the_first_is_ignored)
{
    struct wq__pace p = {0};

    (void)learn_at(&p, 1000 * MS);
    assert_int_equal(learn_at(&p, 999 * MS), 0);
    assert_int_equal(learn_at(&p, 1001 * MS), SLOPE_ONE);
}

/* ---- the stopwatch --------------------------------------------------------
 */

/* Twice what stopwatch.h says, and some for a machine that is busy. */
enum { TOLERANCE_NS = 10000 };

/* The stopwatch read between two readings of the clock. Whoever interrupts us
 * makes those two move apart. */
static bool
is_close(wq_clock *clock)
{
    const int64_t before = wq__time_now();
    const int64_t shown = clock->stopwatch(clock);
    const int64_t after = wq__time_now();

    if (shown >= before - TOLERANCE_NS && shown <= after + TOLERANCE_NS)
        return true;
    print_error("%lld is not between %lld and %lld\n", (long long)shown,
                (long long)before, (long long)after);
    return false;
}

static int
compare(struct worker *self)
{
    wq_clock     *clock = wq_clock_monotonic();
    const int64_t until = wq__time_now() + 500 * MS;
    int64_t       last = 0;

    (void)self;
    while (last < until) {
        if (!is_close(clock))
            return 1;
        const int64_t now = wq__stopwatch_now();
        if (now < last)
            return 2;
        last = now;
    }
    return 0;
}

TEST(stopwatch_keeps_close_to_the_clock_and_never_goes_back)
{
    assert_int_equal(worker_join(worker_start(compare, NULL)), 0);
}

TEST(stopwatches_of_threads_that_start_together_all_keep_close)
{
    enum { THREADS = 4 };
    struct worker *workers[THREADS];

    for (int i = 0; i < THREADS; i++)
        workers[i] = worker_start(compare, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(worker_join(workers[i]), 0);
}

/* Pauses longer than the window, so that every reading is an anchor. */
TEST(stopwatch_keeps_close_after_pauses)
{
    for (int i = 0; i < 20; i++) {
        const int64_t until = wq__time_now() + 3 * MS;
        while (wq__time_now() < until)
            ;
        assert_true(is_close(wq_clock_monotonic()));
        assert_true(is_close(wq_clock_monotonic()));
    }
}

TEST(stopwatch_of_the_boottime_clock_shows_its_time)
{
    wq_clock *clock = wq_clock_boottime();

    if (!clock)
        return; /* this system has none, and says so: C-10 */
    const int64_t before = clock->now(clock);
    const int64_t shown = clock->stopwatch(clock);
    assert_in_range(shown, before, clock->now(clock));
}

TEST(stopwatch_of_a_fake_clock_is_exact)
{
    wq_clock *clock = wq_clock_fake_create(42);

    assert_non_null(clock);
    assert_int_equal(clock->stopwatch(clock), 42);
    wq_clock_fake_step(clock, 1);
    assert_int_equal(clock->stopwatch(clock), 43);
    wq_clock_fake_set(clock, -5);
    assert_int_equal(clock->stopwatch(clock), -5);
    wq_clock_destroy(clock);
}

WQ_TESTS(test(tick_of_a_moment_is_told_only_if_nobody_interrupted),
         test(no_line_is_followed_before_there_is_one),
         test(line_is_followed_from_its_anchor_to_the_end_of_its_window),
         test(counter_that_went_back_is_not_followed),
         test(counter_that_wraps_around_is_followed),
         test(steepest_slope_does_not_overflow),
         test(answers_never_go_back_when_a_line_begins_before_the_last_ended),
         test(answers_never_go_back_when_the_counter_does_so_a_little),
         test(slope_is_known_once_it_was_measured_long_enough),
         test(slope_is_made_better_whenever_the_length_has_doubled),
         test(slope_is_left_alone_once_it_is_good),
         test(measuring_begins_again_after_a_long_pause),
         test(measuring_begins_again_when_no_counter_can_be_that_fast_or_slow),
         test(fastest_and_slowest_counter_are_believed),
         test(anchor_from_before_the_first_is_ignored),
         test(stopwatch_keeps_close_to_the_clock_and_never_goes_back),
         test(stopwatches_of_threads_that_start_together_all_keep_close),
         test(stopwatch_keeps_close_after_pauses),
         test(stopwatch_of_the_boottime_clock_shows_its_time),
         test(stopwatch_of_a_fake_clock_is_exact));
