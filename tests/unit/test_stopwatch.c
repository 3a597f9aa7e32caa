/* SPDX-License-Identifier: MIT */
/* test_stopwatch.c: does the cheap time keep close to the expensive one?
 *
 * The line and the pace are tested with made-up moments; the stopwatch is
 * compared with the clock that it imitates.
 */
#include "support/wq_test.h"

#include <wq/clock.h>

#include "clock/clock.h"
#include "port/stopwatch.h"
#include "port/ticks.h"
#include "port/time.h"
#include "support/worker.h"

#define MS INT64_C(1000000)
#define SLOPE_HALF (UINT64_C(1) << 31) /* 2 GHz */
#define SLOPE_ONE (UINT64_C(1) << 32)  /* 1 GHz */

/* ---- the line ------------------------------------------------------------- */

TEST(tick_of_a_moment_is_known_unless_interrupted)
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

static struct wq__line line;

static void
begin_line(uint64_t ticks, int64_t ns, uint64_t slope)
{
    line = (struct wq__line){0};
    assert_int_equal(wq__line_anchor(&line, ticks, ns, slope), ns);
}

static void
expect_follows(uint64_t ticks, int64_t expected_ns)
{
    int64_t now_ns = -1;

    assert_true(wq__line_follow(&line, ticks, &now_ns));
    assert_int_equal(now_ns, expected_ns);
}

static void
expect_lost(uint64_t ticks)
{
    int64_t now_ns = -1;

    assert_false(wq__line_follow(&line, ticks, &now_ns));
    assert_int_equal(now_ns, -1);
}

TEST(line_is_followed_from_its_anchor_through_its_window)
{
    begin_line(100, 5000, 0);
    expect_lost(0);
    expect_lost(100); /* the slope is not known yet */

    begin_line(100, 5000, SLOPE_HALF);
    expect_lost(0); /* the counter went back */
    expect_lost(99);
    expect_follows(100, 5000);
    expect_follows(101, 5000); /* rounded down */
    expect_follows(102, 5001);
    expect_follows(100 + WQ__TICKS_WINDOW - 2, 5000 + WQ__TICKS_WINDOW / 2 - 1);
    expect_lost(100 + WQ__TICKS_WINDOW);
    expect_lost(UINT64_MAX / 2);

    begin_line(UINT64_MAX - 9, 5000, SLOPE_ONE); /* the counter wraps around */
    expect_follows(10, 5020);
    begin_line(0, 0, 16 * SLOPE_ONE); /* the steepest slope */
    expect_follows(WQ__TICKS_WINDOW - 1, INT64_C(16) * (WQ__TICKS_WINDOW - 1));
}

/* A line that was too steep is ahead of the clock when it ends. The next one
 * starts from the clock all the same, so that the error does not add up; until
 * it has caught up, time stands still. */
TEST(answers_never_go_back)
{
    begin_line(0, 5000, SLOPE_ONE);
    expect_follows(1000, 6000);
    expect_follows(990, 6000); /* the counter goes back a little */
    expect_follows(1000, 6000);
    assert_int_equal(wq__line_anchor(&line, 1100, 5900, SLOPE_ONE), 6000);
    expect_follows(1150, 6000);
    expect_follows(1201, 6001);
}

/* ---- the pace ------------------------------------------------------------- */

/* Anchors at 1 GHz, the first at 1 ms. */
static uint64_t
learn_at(struct wq__tick_rate *p, int64_t ns)
{
    return wq__tick_rate_learn(p, (uint64_t)ns + 77, ns);
}

/* Another thread's anchor, read earlier and used later, is ignored. */
TEST(slope_is_known_once_it_was_measured_long_enough)
{
    struct wq__tick_rate p = {0};

    assert_int_equal(learn_at(&p, 1000 * MS), 0);
    assert_int_equal(learn_at(&p, 1000 * MS), 0);
    assert_int_equal(learn_at(&p, 999 * MS), 0);
    assert_int_equal(learn_at(&p, 1001 * MS - 1), 0);
    assert_int_equal(learn_at(&p, 1001 * MS), SLOPE_ONE);

    /* A little more time for the ticks; not yet twice as long, then so. */
    assert_int_equal(wq__tick_rate_learn(&p, 1002 * MS, 1002 * MS - 1),
                     SLOPE_ONE);
    const uint64_t better = wq__tick_rate_learn(&p, 1002 * MS, 1002 * MS);
    assert_true(better > SLOPE_ONE && better < SLOPE_ONE + SLOPE_ONE / 1000);
}

TEST(slope_does_not_change_once_it_is_good)
{
    struct wq__tick_rate p = {0};

    (void)learn_at(&p, 1000 * MS);
    assert_int_equal(learn_at(&p, 1129 * MS), SLOPE_ONE);
    for (int64_t ms = 1130; ms < 5000; ms += 7) /* at another pace */
        assert_int_equal(
            wq__tick_rate_learn(&p, (uint64_t)(2 * ms * MS), ms * MS),
            SLOPE_ONE);
}

/* The machine may have been suspended: the counter went on, or began anew. */
TEST(measuring_begins_again_after_a_long_pause)
{
    struct wq__tick_rate p = {0};

    (void)learn_at(&p, 1000 * MS);
    assert_int_equal(wq__tick_rate_learn(&p, 12345678901, 1257 * MS), 0);
    assert_int_equal(wq__tick_rate_learn(&p, 12345678901 + 2000000, 1258 * MS),
                     SLOPE_HALF);
}

TEST(measuring_begins_again_at_an_impossible_rate)
{
    const uint64_t impossible[] = {
        0, 62499, 16000001, UINT64_MAX, /* the last: it went back */
    };

    for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
        const uint64_t       ticks = 1000 + impossible[i];
        struct wq__tick_rate p = {0};

        (void)wq__tick_rate_learn(&p, 1000, 1000 * MS);
        assert_int_equal(wq__tick_rate_learn(&p, ticks, 1001 * MS), 0);
        assert_int_equal(wq__tick_rate_learn(&p, ticks + 2000000, 1002 * MS),
                         SLOPE_HALF);
    }
}

TEST(fastest_and_slowest_counter_are_believed)
{
    assert_int_equal(wq__tick_rate_of(62500, MS), 16 * SLOPE_ONE);
    assert_int_equal(wq__tick_rate_of(16000000, MS), SLOPE_ONE / 16);
    assert_int_equal(wq__tick_rate_of(16 * 256000000ULL, 256 * MS),
                     SLOPE_ONE / 16);
}

/* ---- the stopwatch -------------------------------------------------------- */

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

/* One thread alone, then some that start together. */
TEST(stopwatch_keeps_close_to_the_clock_and_never_goes_back)
{
    enum { THREADS = 4 };
    struct worker *workers[THREADS];

    assert_int_equal(worker_join(worker_start(compare, NULL)), 0);
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
        return; /* this system has none: C-10 */
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

WQ_TESTS(test(tick_of_a_moment_is_known_unless_interrupted),
         test(line_is_followed_from_its_anchor_through_its_window),
         test(answers_never_go_back),
         test(slope_is_known_once_it_was_measured_long_enough),
         test(slope_does_not_change_once_it_is_good),
         test(measuring_begins_again_after_a_long_pause),
         test(measuring_begins_again_at_an_impossible_rate),
         test(fastest_and_slowest_counter_are_believed),
         test(stopwatch_keeps_close_to_the_clock_and_never_goes_back),
         test(stopwatch_keeps_close_after_pauses),
         test(stopwatch_of_the_boottime_clock_shows_its_time),
         test(stopwatch_of_a_fake_clock_is_exact));
