/* SPDX-License-Identifier: MIT */
/* test_bucket.c: is the token bucket the one that docs/semantics.md describes?
 *
 * Nearly all tests give the time themselves. Those that wait use a clock that
 * stands still until it is told to move. At the end the bucket is held against
 * a model that reckons in whole numbers.
 */
#include "support/wq_test.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <wq/limiter.h>

#include "limit/bucket.h"
#include "limit/tokens.h"

#define SECOND INT64_C(1000000000)
#define D (SECOND / 10) /* the step of most tests: one token at 10 a second */
#define T0 (1000 * SECOND) /* some moment */
#define AT(k) (T0 + (k)*D) /* k steps later */

static wq_bucket *
bucket(double limit, int64_t burst)
{
    wq_bucket *b = wq_bucket_create(limit, burst, NULL);
    assert_non_null(b);
    return b;
}

static void
assert_near(double is, double should, const char *what, size_t row)
{
    if (fabs(is - should) > 1e-9)
        fail_msg("%s %zu: %.12g, not %.12g", what, row, is, should);
}

/* ---- rates --------------------------------------------------------------- */

/* T-30 */
TEST(no_rate_that_is_a_number_of_events_is_without_limit)
{
    assert_true(10.0 != WQ_RATE_INF);
    assert_true(wq_rate_every(1) != WQ_RATE_INF);
}

/* T-03 */
TEST(interval_between_events_gives_their_rate)
{
    static const struct {
        int64_t interval_ns;
        double  rate;
    } rows[] = {
        {1, 1e9},
        {1000, 1e6},
        {1000000, 1e3},
        {SECOND / 100, 100},
        {SECOND / 10, 10},
        {SECOND, 1},
        {2 * SECOND, 0.5},
        {5 * SECOND / 2, 0.4},
        {4 * SECOND, 0.25},
        {10 * SECOND, 0.1},
        {INT64_MAX, 1e9 / 9223372036854775807.0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_near(wq_rate_every(rows[i].interval_ns) / rows[i].rate, 1, "row",
                    i);
    assert_true(wq_rate_every(0) == WQ_RATE_INF);
    assert_true(wq_rate_every(-1) == WQ_RATE_INF);
    assert_true(wq_rate_every(INT64_MIN) == WQ_RATE_INF);
}

/* T-04 */
TEST(tokens_come_by_seconds_times_limit)
{
    assert_true(wq__seconds(2500000000) == 2.5);
    assert_true(wq__seconds(INT64_MAX) == 9223372036.0 + 854775807 / 1e9);
    assert_true(wq__rate_tokens(10, D) == 0.1 * 10);
    assert_true(wq__rate_tokens(3, 1333333333) == (1 + 333333333 / 1e9) * 3);
    assert_true(wq__rate_tokens(0, SECOND) == 0);
    assert_true(wq__rate_tokens(-1, SECOND) == 0);
}

/* T-05: the wait is cut off, not rounded. */
TEST(waits_are_truncated_to_the_nanosecond)
{
    static const struct {
        double  limit;
        int64_t waits[3];
    } rows[] = {
        {3, {333333333, 666666666, 1000000000}},
        {7, {142857142, 285714285, 428571428}},
        {3e9, {0, 0, 1}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        wq_bucket *b = bucket(rows[i].limit, 1);
        assert_true(wq_bucket_allow_n_at(b, T0, 1));
        for (int k = 0; k < 3; k++) {
            wq_reservation r;
            assert_int_equal(wq_bucket_reserve_n_at(b, T0, 1, &r), WQ_OK);
            assert_int_equal(wq_reservation_delay_from(&r, T0),
                             rows[i].waits[k]);
        }
        wq_bucket_destroy(b);
    }
    assert_int_equal(wq__rate_duration(0, 1), WQ_FOREVER);
    assert_int_equal(wq__rate_duration(-1, 1), WQ_FOREVER);
    assert_int_equal(wq__rate_duration(1e-10, 1), WQ_FOREVER);
}

/* T-05: 438 tokens at 200/7 a second take 15.33 s. A processor that computes
 * with more bits than a double has (x87) and rounds at the end is a nanosecond
 * off. */
TEST(every_step_rounds_once_to_a_double)
{
    const volatile double limit = 0x1.c924924924925p+4; /* 200/7 */

    assert_int_equal(wq__rate_duration(limit, 438), 15330000000);
    assert_int_equal(wq__rate_duration(limit / 4, 219), 30660000000);
    assert_int_equal(wq__rate_duration(limit * 4, 438), 3832500000);
}

/* T-20: the promised time may be cut off by a nanosecond, but by no more. */
TEST(event_a_nanosecond_after_the_promised_time_is_not_refused)
{
    static const double limits[] = {10.0 / 13, 1.0 / 3, 1e-3, 7, 12345.678};

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        wq_bucket *b = bucket(limits[i], 1);
        int64_t    now = T0;
        for (int k = 0; k < 1000; k++) {
            if (!wq_bucket_allow_n_at(b, now, 1))
                fail_msg("limit %g, event %d", limits[i], k);
            wq_reservation r;
            assert_int_equal(wq_bucket_reserve_n_at(b, now, 1, &r), WQ_OK);
            wq_reservation_cancel_at(&r, now);
            now = r.time_to_act_ns + 1;
        }
        wq_bucket_destroy(b);
    }
}

/* ---- now or not at all --------------------------------------------------- */

struct allow {
    int     at;     /* in steps */
    double  tokens; /* before */
    int64_t n;
    bool    allowed;
};

static void
check_allow(double limit, int64_t burst, const struct allow *rows, size_t len)
{
    wq_bucket *b = bucket(limit, burst);

    for (size_t i = 0; i < len; i++) {
        const int64_t now = AT(rows[i].at);
        assert_near(wq_bucket_tokens_at(b, now), rows[i].tokens, "tokens", i);
        if (wq_bucket_allow_n_at(b, now, rows[i].n) != rows[i].allowed)
            fail_msg("row %zu: allowed is not %d", i, rows[i].allowed);
    }
    wq_bucket_destroy(b);
}
#define CHECK_ALLOW(limit, burst, rows)                                        \
    check_allow(limit, burst, rows, sizeof rows / sizeof *rows)

/* T-31 */
TEST(bucket_of_one_lets_one_pass_a_step)
{
    static const struct allow rows[] = {
        {0, 1, 1, true},  {0, 0, 1, false}, {0, 0, 1, false},
        {1, 1, 1, true},  {1, 0, 1, false}, {1, 0, 1, false},
        {2, 1, 2, false}, {2, 1, 1, true},  {2, 0, 1, false},
    };
    CHECK_ALLOW(10, 1, rows);
}

/* T-32, T-07: a refusal changes nothing. */
TEST(bucket_of_three_fills_up_to_three)
{
    static const struct allow rows[] = {
        {0, 3, 2, true},  {0, 1, 2, false}, {0, 1, 1, true},  {0, 0, 1, false},
        {1, 1, 4, false}, {2, 2, 1, true},  {3, 2, 1, true},  {4, 2, 1, true},
        {4, 1, 1, true},  {4, 0, 1, false}, {4, 0, 1, false}, {9, 3, 3, true},
        {9, 0, 0, true},
    };
    CHECK_ALLOW(10, 3, rows);
}

/* T-33, T-06: an earlier time counts as the last one. Elsewhere the first row
 * at step 1 after the way back finds a token. */
TEST(time_that_goes_back_takes_and_brings_no_tokens)
{
    static const struct allow rows[] = {
        {1, 3, 1, true},  {0, 2, 1, true},  {0, 1, 1, true},  {0, 0, 1, false},
        {0, 0, 1, false}, {1, 0, 1, false}, {1, 0, 1, false}, {2, 1, 1, true},
        {2, 0, 1, false}, {2, 0, 1, false},
    };
    CHECK_ALLOW(10, 3, rows);
}

/* T-17: twenty calls, forward and back; elsewhere all twenty pass. */
TEST(time_that_swings_mints_no_tokens)
{
    wq_bucket *b = bucket(10, 3);
    int        allowed = 0;

    for (int i = 0; i < 20; i++)
        allowed += wq_bucket_allow_n_at(b, i % 2 ? AT(0) : AT(2), 1);
    assert_int_equal(allowed, 3);
    wq_bucket_destroy(b);
}

/* T-06: far apart times do not overflow, and reading does not write. */
TEST(reading_tokens_changes_nothing)
{
    wq_bucket *b = bucket(10, 3);

    assert_true(wq_bucket_allow_n_at(b, INT64_MIN, 3));
    assert_near(wq_bucket_tokens_at(b, INT64_MAX), 3, "tokens", 0);
    assert_near(wq_bucket_tokens_at(b, INT64_MIN), 0, "tokens", 1);
    assert_near(wq_bucket_tokens_at(b, INT64_MIN + D), 1, "tokens", 2);
    wq_bucket_destroy(b);
}

/* T-34 */
TEST(first_event_passes_at_a_rate_no_double_holds)
{
    wq_bucket *b = bucket(0.7692307692307693, 1);

    assert_true(wq_bucket_allow(b));
    wq_bucket_destroy(b);
}

/* T-36 */
TEST(steady_tries_get_what_the_rate_promises)
{
    wq_bucket *b = bucket(100, 100);
    int        allowed = 0;

    for (int64_t ns = 0; ns <= 5 * SECOND; ns += 2000000)
        allowed += wq_bucket_allow_n_at(b, T0 + ns, 1);
    const double ideal = 100 + 100 * 5.0;
    assert_true(allowed <= ideal + 1);
    assert_true(allowed >= 0.999 * ideal);
    wq_bucket_destroy(b);
}

/* T-02 */
TEST(bucket_starts_full_and_an_empty_one_gives_nothing_but_nothing)
{
    wq_bucket *b = bucket(10, 5);
    assert_near(wq_bucket_tokens_at(b, T0), 5, "tokens", 0);
    wq_bucket_destroy(b);

    b = bucket(0, 0);
    assert_false(wq_bucket_allow_n_at(b, T0, 1));
    assert_true(wq_bucket_allow_n_at(b, T0, 0));
    wq_bucket_destroy(b);
}

/* T-08, T-45: allow is a reservation that may not wait. */
TEST(reservation_that_may_not_wait_is_an_allow)
{
    wq_bucket     *b = bucket(10, 1);
    wq_reservation r;

    assert_int_equal(wq_bucket_reserve_n_within_at(b, T0, 1, 0, &r), WQ_OK);
    assert_int_equal(wq_bucket_reserve_n_within_at(b, T0, 1, 0, &r),
                     WQ_ETIMEDOUT);
    assert_false(wq_bucket_allow_n_at(b, T0, 1));
    assert_int_equal(wq_bucket_reserve_n_at(b, T0, 1, &r), WQ_OK);
    assert_int_equal(r.time_to_act_ns, AT(1));
    wq_bucket_destroy(b);
}

/* T-09 */
TEST(no_tokens_can_be_had_while_none_are_owed_and_fewer_never)
{
    wq_bucket     *b = bucket(10, 1);
    wq_reservation r = {.n = 77};

    assert_true(wq_bucket_allow_n_at(b, T0, 1));
    assert_true(wq_bucket_allow_n_at(b, T0, 0));
    assert_false(wq_bucket_allow_n_at(b, T0, -1));
    assert_false(wq_bucket_allow_n(b, INT64_MIN));
    assert_int_equal(wq_bucket_reserve_n_at(b, T0, -1, &r), WQ_EINVAL);
    assert_int_equal(wq_bucket_reserve_n(b, -1, &r), WQ_EINVAL);
    assert_int_equal(wq_bucket_wait_n(b, -1, 0), WQ_EINVAL);
    assert_int_equal(r.n, 77);
    assert_near(wq_bucket_tokens_at(b, T0), 0, "tokens", 0);

    assert_int_equal(wq_bucket_reserve_n_at(b, T0, 1, &r), WQ_OK);
    assert_false(wq_bucket_allow_n_at(b, T0, 0));
    assert_int_equal(wq_bucket_reserve_n_at(b, T0, 0, &r), WQ_OK);
    assert_int_equal(r.time_to_act_ns, AT(1));
    wq_bucket_destroy(b);
}

/* ---- without limit, and without rate ------------------------------------- */

/* T-01 */
TEST(without_limit_everything_passes_and_nothing_is_counted)
{
    wq_bucket     *b = bucket(WQ_RATE_INF, 0);
    wq_reservation r;

    assert_true(wq_bucket_allow_n_at(b, T0, 1000000));
    assert_int_equal(wq_bucket_reserve_n_at(b, T0, 7, &r), WQ_OK);
    assert_int_equal(wq_reservation_delay_from(&r, T0), 0);
    assert_near(wq_bucket_tokens_at(b, T0), 0, "tokens", 0);
    wq_reservation_cancel_at(&r, T0);
    assert_near(wq_bucket_tokens_at(b, T0), 0, "tokens", 1);
    assert_int_equal(wq_bucket_wait_n(b, 3, 0), WQ_OK);
    wq_bucket_destroy(b);

    b = bucket(WQ_RATE_INF, 4);
    assert_true(wq_bucket_allow_n_at(b, T0, 1000000));
    assert_near(wq_bucket_tokens_at(b, AT(1)), 4, "tokens", 2);
    wq_bucket_destroy(b);
}

/* T-62: elsewhere the cancel brings three tokens. */
TEST(what_took_no_tokens_gives_none_back)
{
    wq_bucket     *b = bucket(WQ_RATE_INF, 5);
    wq_reservation r;

    assert_int_equal(wq_bucket_reserve_n_at(b, AT(0), 3, &r), WQ_OK);
    assert_int_equal(wq_bucket_set_limit_at(b, AT(0), 10), WQ_OK);
    assert_true(wq_bucket_allow_n_at(b, AT(0), 5));
    wq_reservation_cancel_at(&r, AT(0));
    assert_near(wq_bucket_tokens_at(b, AT(0)), 0, "tokens", 0);
    wq_bucket_destroy(b);
}

/* T-01: what passed without limit is no promise that others wait for. */
TEST(what_passed_without_limit_leaves_earlier_promises_alone)
{
    wq_bucket     *b = bucket(10, 2);
    wq_reservation r, free_one;

    assert_true(wq_bucket_allow_n_at(b, AT(0), 2));
    assert_int_equal(wq_bucket_reserve_n_at(b, AT(0), 2, &r), WQ_OK);
    assert_int_equal(wq_bucket_set_limit_at(b, AT(0), WQ_RATE_INF), WQ_OK);
    assert_int_equal(wq_bucket_reserve_n_at(b, AT(0), 1, &free_one), WQ_OK);
    assert_int_equal(wq_bucket_set_limit_at(b, AT(0), 10), WQ_OK);
    wq_reservation_cancel_at(&r, AT(0));
    assert_near(wq_bucket_tokens_at(b, AT(0)), 0, "tokens", 0);
    wq_bucket_destroy(b);
}

/* T-11, T-12, T-10 */
TEST(at_rate_zero_or_less_only_the_burst_passes)
{
    static const double limits[] = {0, -1, -WQ_RATE_INF};

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        wq_bucket     *b = bucket(limits[i], 2);
        wq_reservation r;

        assert_true(wq_bucket_allow_n_at(b, AT(0), 1));
        assert_true(wq_bucket_allow_n_at(b, AT(0), 1));
        assert_false(wq_bucket_allow_n_at(b, AT(1000), 1));
        assert_int_equal(wq_bucket_reserve_n_at(b, AT(0), 1, &r), WQ_OK);
        assert_true(wq_reservation_ok(&r));
        assert_int_equal(wq_reservation_delay_from(&r, AT(0)), WQ_FOREVER);
        assert_int_equal(wq_reservation_delay_from(&r, AT(99)), WQ_FOREVER);
        wq_bucket_destroy(b);
    }
}

/* T-18: elsewhere the second passes at once. T-63: on a clock that shows less
 * than zero, too. */
TEST(wait_of_exactly_all_time_is_for_ever)
{
    static const int64_t nows[] = {0, T0, -1, INT64_MIN};

    for (size_t i = 0; i < sizeof nows / sizeof *nows; i++) {
        wq_bucket     *b = bucket(1e9 / 9223372036854775807.0, 1);
        wq_reservation r;

        assert_true(wq_bucket_allow_n_at(b, nows[i], 1));
        assert_false(wq_bucket_allow_n_at(b, nows[i], 1));
        assert_int_equal(wq_bucket_reserve_n_at(b, nows[i], 1, &r), WQ_OK);
        assert_int_equal(r.time_to_act_ns, WQ_FOREVER);
        assert_int_equal(wq_reservation_delay_from(&r, nows[i]), WQ_FOREVER);
        wq_bucket_destroy(b);
    }
}

/* T-63 */
TEST(time_beyond_all_time_is_for_ever)
{
    wq_bucket     *b = bucket(1, 1);
    wq_reservation r;

    assert_true(wq_bucket_allow_n_at(b, INT64_MAX - 1, 1));
    assert_int_equal(wq_bucket_reserve_n_at(b, INT64_MAX - 1, 1, &r), WQ_OK);
    assert_int_equal(r.time_to_act_ns, WQ_FOREVER);
    assert_int_equal(wq_reservation_delay_from(&r, 0), WQ_FOREVER);
    wq_bucket_destroy(b);
}

/* ---- later --------------------------------------------------------------- */

enum what { RESERVE, REFUSED, TOO_LATE, CANCEL, YES, NO, LIMIT, BURST };

struct step {
    enum what what;
    int       at;  /* in steps */
    int64_t   n;   /* tokens; CANCEL: of which row; LIMIT, BURST: the new one */
    int       act; /* RESERVE: expected time to act, in steps */
    int       max; /* longest wait, in steps; 0: any */
};

/* Rows of a table of steps. */
static struct step
step(enum what what, int at, int64_t n)
{
    return (struct step){.what = what, .at = at, .n = n};
}

static struct step
reserves(int at, int64_t n, int act)
{
    return (struct step){.what = RESERVE, .at = at, .n = n, .act = act};
}

static struct step
within(int max, struct step s)
{
    s.max = max;
    return s;
}

static wq_err
reserve(wq_bucket *b, const struct step *s, wq_reservation *r)
{
    const int64_t now = AT(s->at);

    if (s->max)
        return wq_bucket_reserve_n_within_at(b, now, s->n, s->max * D, r);
    return wq_bucket_reserve_n_at(b, now, s->n, r);
}

static void
check_steps(double limit, int64_t burst, const struct step *steps, size_t len)
{
    wq_reservation made[16] = {{0}};
    wq_bucket     *b = bucket(limit, burst);

    assert_true(len <= sizeof made / sizeof *made);
    for (size_t i = 0; i < len; i++) {
        const struct step *s = &steps[i];
        const int64_t      now = AT(s->at);

        switch (s->what) {
        case RESERVE:
            assert_int_equal(reserve(b, s, &made[i]), WQ_OK);
            if ((made[i].time_to_act_ns - T0 + D / 2) / D != s->act)
                fail_msg("step %zu: acts at %" PRId64 " ns, not %d steps", i,
                         made[i].time_to_act_ns - T0, s->act);
            break;
        case REFUSED:
        case TOO_LATE: {
            const double before = wq_bucket_tokens_at(b, now);
            assert_int_equal(reserve(b, s, &made[i]),
                             s->what == REFUSED ? WQ_EINVAL : WQ_ETIMEDOUT);
            assert_false(wq_reservation_ok(&made[i]));
            assert_true(wq_bucket_tokens_at(b, now) == before);
            break;
        }
        case CANCEL:
            wq_reservation_cancel_at(&made[s->n], now);
            break;
        case YES:
        case NO:
            if (wq_bucket_allow_n_at(b, now, s->n) != (s->what == YES))
                fail_msg("step %zu: allow is wrong", i);
            break;
        case LIMIT:
            assert_int_equal(wq_bucket_set_limit_at(b, now, (double)s->n),
                             WQ_OK);
            break;
        case BURST:
            assert_int_equal(wq_bucket_set_burst_at(b, now, s->n), WQ_OK);
            break;
        }
    }
    wq_bucket_destroy(b);
}
#define CHECK_STEPS(limit, burst, ...)                                         \
    do {                                                                       \
        const struct step steps[] = {__VA_ARGS__};                             \
        check_steps(limit, burst, steps, sizeof steps / sizeof *steps);        \
    } while (0)

/* T-37 */
TEST(reservations_line_up)
{
    CHECK_STEPS(10, 2, reserves(0, 2, 0), reserves(0, 2, 2), reserves(3, 2, 4));
}

/* T-38 */
TEST(reservations_and_tries_share_the_tokens)
{
    CHECK_STEPS(10, 2, step(REFUSED, 0, 3), reserves(0, 2, 0), step(NO, 1, 2),
                reserves(1, 2, 2), step(NO, 1, 1), step(YES, 3, 1));

    wq_bucket     *b = bucket(10, 2);
    wq_reservation r;
    assert_int_equal(wq_bucket_reserve_n_at(b, AT(0), 2, &r), WQ_OK);
    assert_near(wq_bucket_tokens_at(b, AT(1)), 1, "tokens", 0);
    assert_int_equal(wq_bucket_reserve_n_at(b, AT(1), 2, &r), WQ_OK);
    assert_near(wq_bucket_tokens_at(b, AT(1)), -1, "tokens", 1);
    assert_near(wq_bucket_tokens_at(b, AT(3)), 1, "tokens", 2);
    wq_bucket_destroy(b);
}

/* T-39 */
TEST(cancelling_a_refused_one_does_nothing_and_the_last_one_everything)
{
    CHECK_STEPS(10, 2, reserves(0, 2, 0), step(REFUSED, 0, 3),
                step(CANCEL, 0, 1), reserves(0, 2, 2));
    CHECK_STEPS(10, 2, reserves(0, 2, 0), reserves(0, 2, 2), step(CANCEL, 1, 1),
                reserves(1, 2, 2));
}

/* T-40 */
TEST(cancelling_too_late_gives_nothing_back)
{
    CHECK_STEPS(10, 2, reserves(0, 2, 0), reserves(0, 2, 2), step(CANCEL, 3, 1),
                reserves(3, 2, 4));
    /* All of it was taken into account by the one that came after. */
    CHECK_STEPS(10, 2, reserves(0, 2, 0), reserves(0, 1, 1), reserves(0, 1, 2),
                step(CANCEL, 0, 1), reserves(0, 1, 3));
}

/* T-41, T-13 */
TEST(cancelling_gives_back_what_nobody_waits_for)
{
    CHECK_STEPS(10, 2, reserves(0, 2, 0), reserves(0, 2, 2), reserves(0, 1, 3),
                step(CANCEL, 2, 1), reserves(2, 2, 4));
}

/* T-42, T-13 */
TEST(cancelling_the_last_makes_the_one_before_the_last)
{
    CHECK_STEPS(10, 4, reserves(0, 4, 0), reserves(0, 3, 3), reserves(0, 1, 4),
                reserves(0, 1, 5), step(CANCEL, 1, 3), step(CANCEL, 1, 1),
                reserves(1, 3, 5));
    /* Also when the one before is for this very moment. */
    CHECK_STEPS(10, 2, reserves(0, 2, 0), reserves(0, 2, 2), step(CANCEL, 0, 1),
                step(CANCEL, 0, 0), reserves(0, 2, 0));
}

/* T-43, T-17: as T-33. Elsewhere the acts are at 1, 3, 4, 5, and at 4. */
TEST(reservations_line_up_though_time_goes_back)
{
    CHECK_STEPS(10, 2, reserves(1, 2, 1), reserves(0, 1, 2), reserves(2, 2, 4),
                step(REFUSED, 0, 3), reserves(2, 1, 5),
                within(1, step(TOO_LATE, 0, 2)), reserves(2, 1, 6));
    CHECK_STEPS(10, 2, reserves(1, 2, 1), reserves(1, 2, 3), reserves(1, 1, 4),
                step(CANCEL, 0, 1), reserves(1, 2, 5));
}

/* T-44, T-15; the second row's last time is before the one before: elsewhere it
 * acts at 9. */
TEST(change_of_limit_or_burst_counts_from_then_on)
{
    CHECK_STEPS(5, 2, reserves(0, 2, 0), reserves(0, 2, 4), step(LIMIT, 2, 10),
                reserves(2, 1, 4));
    CHECK_STEPS(5, 2, reserves(0, 2, 0), reserves(0, 2, 4), step(BURST, 3, 4),
                reserves(0, 4, 12));
    CHECK_STEPS(5, 2, reserves(0, 2, 0), reserves(0, 2, 4), step(LIMIT, 2, 10),
                step(CANCEL, 2, 1), reserves(2, 2, 3));
}

/* T-45 */
TEST(reservation_that_takes_too_long_is_refused)
{
    CHECK_STEPS(10, 2, within(1, reserves(0, 2, 0)),
                within(1, reserves(0, 1, 1)), within(1, step(TOO_LATE, 0, 1)));
}

/* T-15 */
TEST(more_burst_brings_no_tokens_and_less_takes_them)
{
    wq_bucket *b = bucket(10, 5);

    assert_int_equal(wq_bucket_set_burst_at(b, AT(0), 10), WQ_OK);
    assert_near(wq_bucket_tokens_at(b, AT(0)), 5, "tokens", 0);
    assert_near(wq_bucket_tokens_at(b, AT(10)), 10, "tokens", 1);
    assert_int_equal(wq_bucket_burst(b), 10);
    wq_bucket_destroy(b);

    b = bucket(10, 5);
    assert_int_equal(wq_bucket_set_burst_at(b, AT(0), 2), WQ_OK);
    assert_near(wq_bucket_tokens_at(b, AT(0)), 2, "tokens", 2);
    assert_int_equal(wq_bucket_set_limit_at(b, AT(0), 3), WQ_OK);
    assert_true(wq_bucket_limit(b) == 3);
    assert_int_equal(wq_bucket_set_limit(b, 4), WQ_OK);
    assert_int_equal(wq_bucket_set_burst(b, 6), WQ_OK);
    assert_true(wq_bucket_limit(b) == 4);
    assert_int_equal(wq_bucket_burst(b), 6);
    wq_bucket_destroy(b);
}

/* T-14: elsewhere the second cancel brings five more. */
TEST(cancelling_twice_gives_back_once)
{
    wq_bucket     *b = bucket(10, 20);
    wq_reservation r;

    assert_true(wq_bucket_allow_n_at(b, T0, 10));
    assert_int_equal(wq_bucket_reserve_n_at(b, T0, 5, &r), WQ_OK);
    wq_reservation_cancel_at(&r, T0);
    assert_near(wq_bucket_tokens_at(b, T0), 10, "tokens", 0);
    wq_reservation_cancel_at(&r, T0);
    assert_near(wq_bucket_tokens_at(b, T0), 10, "tokens", 1);
    wq_bucket_destroy(b);
}

/* T-13: at the very time to act it can still be cancelled. */
TEST(reservation_can_be_cancelled_until_its_time)
{
    wq_bucket     *b = bucket(10, 2);
    wq_reservation r;

    assert_true(wq_bucket_allow_n_at(b, AT(0), 2));
    assert_int_equal(wq_bucket_reserve_n_at(b, AT(0), 1, &r), WQ_OK);
    wq_reservation_cancel_at(&r, AT(1));
    assert_near(wq_bucket_tokens_at(b, AT(1)), 1, "tokens", 0);

    /* Not while there is no limit. */
    assert_true(wq_bucket_allow_n_at(b, AT(1), 1));
    assert_int_equal(wq_bucket_reserve_n_at(b, AT(1), 1, &r), WQ_OK);
    assert_int_equal(wq_bucket_set_limit_at(b, AT(1), WQ_RATE_INF), WQ_OK);
    wq_reservation_cancel_at(&r, AT(1));
    assert_near(wq_bucket_tokens_at(b, AT(1)), -1, "tokens", 1);
    wq_bucket_destroy(b);
}

/* T-64: elsewhere the first cancel, of one made at rate 0, moves the last
 * promise to the end of time, and the second brings nothing. */
TEST(cancel_of_one_made_at_rate_zero_voids_no_other)
{
    wq_bucket     *b = bucket(0, 5);
    wq_reservation three, one;

    assert_int_equal(wq_bucket_reserve_n_at(b, T0, 3, &three), WQ_OK);
    assert_int_equal(wq_bucket_set_limit_at(b, T0, 10), WQ_OK);
    assert_int_equal(wq_bucket_reserve_n_at(b, T0, 1, &one), WQ_OK);
    wq_reservation_cancel_at(&three, T0);
    assert_near(wq_bucket_tokens_at(b, T0), 4, "tokens", 0);
    wq_reservation_cancel_at(&one, T0);
    assert_near(wq_bucket_tokens_at(b, T0), 5, "tokens", 1);
    wq_bucket_destroy(b);
}

/* T-19 */
TEST(cancel_gives_back_less_than_it_took_when_others_came_after)
{
    wq_bucket     *b = bucket(10, 20);
    wq_reservation ten, two;

    assert_true(wq_bucket_allow_n_at(b, AT(0), 15));
    assert_int_equal(wq_bucket_reserve_n_at(b, AT(1), 10, &ten), WQ_OK);
    assert_int_equal(wq_bucket_reserve_n_at(b, AT(2), 2, &two), WQ_OK);
    wq_reservation_cancel_at(&ten, AT(3));
    assert_near(wq_bucket_tokens_at(b, AT(3)), 4, "tokens", 0);
    wq_bucket_destroy(b);
}

/* T-10 */
TEST(delay_is_what_is_left_and_for_ever_if_refused)
{
    const wq_reservation refused = {0};
    wq_bucket           *b = bucket(10, 1);
    wq_reservation       r;

    assert_true(wq_bucket_allow_n_at(b, AT(0), 1));
    assert_int_equal(wq_bucket_reserve_n_at(b, AT(0), 1, &r), WQ_OK);
    assert_true(wq_reservation_ok(&r));
    assert_int_equal(wq_reservation_delay_from(&r, AT(0)), D);
    assert_int_equal(wq_reservation_delay_from(&r, AT(0) + 1), D - 1);
    assert_int_equal(wq_reservation_delay_from(&r, AT(1)), 0);
    assert_int_equal(wq_reservation_delay_from(&r, AT(9)), 0);
    assert_int_equal(wq_reservation_delay_from(&refused, AT(9)), WQ_FOREVER);
    assert_int_equal(wq_reservation_delay(&refused), WQ_FOREVER);
    assert_int_equal(wq_reservation_delay(NULL), WQ_FOREVER);
    assert_false(wq_reservation_ok(&refused));
    assert_false(wq_reservation_ok(NULL));
    wq_bucket_destroy(b);
}

/* T-46 */
TEST(tiny_and_no_rates_let_the_burst_pass)
{
    static const double limits[] = {1e-10, 0};

    for (size_t i = 0; i < 2; i++) {
        wq_bucket *b = bucket(limits[i], 1);
        assert_true(wq_bucket_allow(b));
        assert_false(wq_bucket_allow(b));
        wq_bucket_destroy(b);
    }
}

/* T-60 */
TEST(bucket_refuses_what_makes_no_sense)
{
    wq_bucket     *b = bucket(10, 1);
    wq_reservation r = {.n = 77};

    errno = 0;
    assert_null(wq_bucket_create(NAN, 1, NULL));
    assert_int_equal(errno, EINVAL);
    assert_null(wq_bucket_create(HUGE_VAL, 1, NULL));
    assert_null(wq_bucket_create(-HUGE_VAL, 1, NULL));
    assert_null(wq_bucket_create(1, -1, NULL));
    assert_int_equal(wq_bucket_set_limit(b, NAN), WQ_EINVAL);
    assert_int_equal(wq_bucket_set_limit_at(b, T0, HUGE_VAL), WQ_EINVAL);
    assert_int_equal(wq_bucket_set_burst(b, -1), WQ_EINVAL);
    assert_true(wq_bucket_limit(b) == 10);
    assert_int_equal(wq_bucket_burst(b), 1);
    assert_int_equal(wq_bucket_reserve(b, NULL), WQ_EINVAL);
    assert_int_equal(wq_bucket_reserve_n_within(b, 1, -1, &r), WQ_EINVAL);
    assert_int_equal(wq_bucket_wait(b, -1), WQ_EINVAL);
    assert_int_equal(r.n, 77);

    assert_false(wq_bucket_allow(NULL));
    assert_int_equal(wq_bucket_reserve(NULL, &r), WQ_EINVAL);
    assert_int_equal(wq_bucket_wait(NULL, 0), WQ_EINVAL);
    assert_int_equal(wq_bucket_set_limit(NULL, 1), WQ_EINVAL);
    assert_int_equal(wq_bucket_set_burst(NULL, 1), WQ_EINVAL);
    assert_true(wq_bucket_tokens(NULL) == 0);
    assert_true(wq_bucket_limit(NULL) == 0);
    assert_int_equal(wq_bucket_burst(NULL), 0);
    wq_bucket_interrupt(NULL);
    wq_reservation_cancel(NULL);
    wq_bucket_destroy(NULL);
    wq_bucket_destroy(b);
}

static void *
no_memory(void *ctx, size_t n)
{
    (void)ctx;
    (void)n;
    return NULL;
}

/* T-60 */
TEST(no_memory_makes_no_bucket)
{
    const wq_allocator none = {.size = sizeof none, .alloc = no_memory};

    errno = 0;
    assert_null(wq__bucket_create(&none, 1, 1, NULL));
    assert_int_equal(errno, ENOMEM);
}

/* ---- with a clock -------------------------------------------------------- */

struct sleeper {
    pthread_t  thread;
    wq_bucket *bucket;
    wq_clock  *clock;
    int64_t    n;
    int64_t    timeout_ns;
    wq_err     err;     /* what wait said */
    int64_t    ends_ns; /* and when */
};

static void *
sleep_in_bucket(void *arg)
{
    struct sleeper *s = arg;

    s->err = wq_bucket_wait_n(s->bucket, s->n, s->timeout_ns);
    s->ends_ns = wq_clock_now(s->clock);
    return NULL;
}

static void
start(struct sleeper *s, wq_bucket *b, wq_clock *clock, int64_t n,
      int64_t timeout_ns)
{
    *s = (struct sleeper){
        .bucket = b, .clock = clock, .n = n, .timeout_ns = timeout_ns};
    assert_int_equal(pthread_create(&s->thread, NULL, sleep_in_bucket, s), 0);
}

static void
join(struct sleeper *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
}

/* All functions that read the clock read the bucket's. */
TEST(bucket_lives_by_its_clock)
{
    wq_clock      *clock = wq_clock_fake_create(T0);
    wq_bucket     *b = wq_bucket_create(10, 2, clock);
    wq_reservation r;

    assert_true(wq_bucket_allow(b));
    assert_true(wq_bucket_allow_n(b, 1));
    assert_false(wq_bucket_allow(b));
    wq_clock_fake_step(clock, D);
    assert_near(wq_bucket_tokens(b), 1, "tokens", 0);
    assert_int_equal(wq_bucket_reserve_n(b, 2, &r), WQ_OK);
    assert_int_equal(wq_reservation_delay(&r), D);
    assert_int_equal(wq_bucket_reserve_n_within(b, 1, D, &r), WQ_ETIMEDOUT);
    wq_reservation_cancel(&r);
    assert_near(wq_bucket_tokens(b), 1, "tokens", 1);
    assert_int_equal(wq_bucket_reserve(b, &r), WQ_OK);
    assert_int_equal(r.time_to_act_ns, AT(1));
    wq_bucket_destroy(b);
    wq_clock_destroy(clock);
}

/* T-47, T-16: what is said at once, and in which order. */
TEST(wait_says_at_once_what_it_knows_at_once)
{
    wq_clock  *clock = wq_clock_fake_create(T0);
    wq_bucket *b = wq_bucket_create(10, 3, clock);

    wq_bucket_interrupt(b);
    assert_int_equal(wq_bucket_wait_n(b, 4, WQ_FOREVER), WQ_EINVAL);
    assert_int_equal(wq_bucket_wait_n(b, 1, WQ_FOREVER), WQ_EINTERRUPTED);
    assert_near(wq_bucket_tokens(b), 3, "tokens", 0);
    assert_int_equal(wq_bucket_wait_n(b, 2, D), WQ_OK);
    assert_int_equal(wq_bucket_wait_n(b, 3, D), WQ_ETIMEDOUT);
    assert_near(wq_bucket_tokens(b), 1, "tokens", 1);
    assert_int_equal(wq_bucket_wait(b, 0), WQ_OK);
    assert_int_equal(wq_bucket_wait(b, 0), WQ_ETIMEDOUT);
    wq_bucket_destroy(b);

    b = wq_bucket_create(WQ_RATE_INF, 0, clock);
    assert_int_equal(wq_bucket_wait_n(b, 3, WQ_FOREVER), WQ_OK);
    wq_bucket_destroy(b);
    wq_clock_destroy(clock);
}

/* T-47 */
TEST(wait_ends_when_the_tokens_are_there)
{
    wq_clock      *clock = wq_clock_fake_create(T0);
    wq_bucket     *b = wq_bucket_create(10, 3, clock);
    struct sleeper s;

    assert_int_equal(wq_bucket_wait_n(b, 2, WQ_FOREVER), WQ_OK);
    start(&s, b, clock, 3, 2 * D);
    wq_clock_fake_wait_for_waiters(clock, 1);
    wq_clock_fake_step(clock, 2 * D - 1);
    assert_int_equal(wq_clock_fake_waiters(clock), 1);
    wq_clock_fake_step(clock, 1);
    join(&s);
    assert_int_equal(s.err, WQ_OK);
    assert_int_equal(s.ends_ns, AT(2));
    wq_bucket_destroy(b);
    wq_clock_destroy(clock);
}

/* T-47, T-16 */
TEST(interrupted_wait_gives_its_tokens_back)
{
    wq_clock      *clock = wq_clock_fake_create(T0);
    wq_bucket     *b = wq_bucket_create(10, 3, clock);
    struct sleeper s;

    assert_int_equal(wq_bucket_wait_n(b, 2, WQ_FOREVER), WQ_OK);
    start(&s, b, clock, 3, WQ_FOREVER);
    wq_clock_fake_wait_for_waiters(clock, 1);
    wq_clock_fake_step(clock, D);
    assert_near(wq_bucket_tokens(b), -1, "tokens", 0);
    wq_bucket_interrupt(b);
    join(&s);
    assert_int_equal(s.err, WQ_EINTERRUPTED);
    assert_int_equal(s.ends_ns, AT(1));
    assert_near(wq_bucket_tokens(b), 2, "tokens", 1);
    assert_int_equal(wq_bucket_wait_n(b, 2, 0), WQ_OK);
    wq_bucket_destroy(b);
    wq_clock_destroy(clock);
}

/* T-61: all who sleep are woken, and then none is remembered; when nobody
 * sleeps, one is. */
TEST(interrupt_wakes_all_or_is_remembered_once)
{
    enum { SLEEPERS = 5 };
    wq_clock      *clock = wq_clock_fake_create(T0);
    wq_bucket     *b = wq_bucket_create(10, 1, clock);
    struct sleeper s[SLEEPERS];

    assert_true(wq_bucket_allow(b));
    for (int i = 0; i < SLEEPERS; i++)
        start(&s[i], b, clock, 1, WQ_FOREVER);
    wq_clock_fake_wait_for_waiters(clock, SLEEPERS);
    wq_bucket_interrupt(b);
    for (int i = 0; i < SLEEPERS; i++) {
        join(&s[i]);
        assert_int_equal(s[i].err, WQ_EINTERRUPTED);
    }
    wq_clock_fake_step(clock, SECOND);
    assert_int_equal(wq_bucket_wait_n(b, 0, 0), WQ_OK);

    wq_bucket_interrupt(b);
    wq_bucket_interrupt(b);
    assert_int_equal(wq_bucket_wait_n(b, 0, 0), WQ_EINTERRUPTED);
    assert_int_equal(wq_bucket_wait_n(b, 0, 0), WQ_OK);
    wq_bucket_destroy(b);
    wq_clock_destroy(clock);
}

/* T-61: interrupts and ends of sleep meet; no sleeper is lost, none is touched
 * after it left. */
TEST(interrupts_and_time_may_meet)
{
    enum { ROUNDS = 300 };
    wq_clock      *clock = wq_clock_fake_create(T0);
    wq_bucket     *b = wq_bucket_create(10, 1, clock);
    struct sleeper s;

    for (int i = 0; i < ROUNDS; i++) {
        (void)wq_bucket_allow(b);
        start(&s, b, clock, 1, WQ_FOREVER);
        if (i % 2)
            wq_clock_fake_wait_for_waiters(clock, 1);
        wq_clock_fake_step(clock, D);
        wq_bucket_interrupt(b);
        wq_clock_fake_step(clock, D);
        join(&s);
        assert_true(s.err == WQ_OK || s.err == WQ_EINTERRUPTED);
        /* Once more, in case the interrupt was remembered. */
        const wq_err err = wq_bucket_wait_n(b, 0, 0);
        assert_true(err == WQ_OK || err == WQ_EINTERRUPTED);
    }
    wq_bucket_destroy(b);
    wq_clock_destroy(clock);
}

/* T-46, T-15: the new rate counts for those who come after it. */
TEST(wait_after_a_rate_was_set_takes_that_rate)
{
    wq_clock      *clock = wq_clock_fake_create(T0);
    wq_bucket     *b = wq_bucket_create(0, 1, clock);
    struct sleeper s;

    assert_true(wq_bucket_allow(b));
    assert_false(wq_bucket_allow(b));
    assert_int_equal(wq_bucket_wait(b, 1000 * SECOND), WQ_ETIMEDOUT);
    assert_int_equal(wq_bucket_set_limit(b, 10), WQ_OK);
    start(&s, b, clock, 1, WQ_FOREVER);
    wq_clock_fake_wait_for_waiters(clock, 1);
    assert_int_equal(wq_bucket_set_limit(b, 1e9), WQ_OK);
    wq_clock_fake_step(clock, D - 1);
    assert_int_equal(wq_clock_fake_waiters(clock), 1);
    wq_clock_fake_step(clock, 1);
    join(&s);
    assert_int_equal(s.err, WQ_OK);
    assert_int_equal(s.ends_ns, AT(1));
    wq_bucket_destroy(b);
    wq_clock_destroy(clock);
}

/* T-15: who sleeps already keeps his time, though others come sooner. */
TEST(who_comes_after_the_rate_rose_may_be_served_first)
{
    wq_clock      *clock = wq_clock_fake_create(T0);
    wq_bucket     *b = wq_bucket_create(1, 1, clock);
    struct sleeper early, late;

    assert_true(wq_bucket_allow(b));
    start(&early, b, clock, 1, WQ_FOREVER);
    wq_clock_fake_wait_for_waiters(clock, 1);
    assert_int_equal(wq_bucket_set_limit(b, 100), WQ_OK);
    start(&late, b, clock, 1, WQ_FOREVER);
    wq_clock_fake_wait_for_waiters(clock, 2);
    wq_clock_fake_step(clock, SECOND / 50);
    join(&late);
    wq_clock_fake_set(clock, T0 + SECOND);
    join(&early);
    assert_int_equal(late.err, WQ_OK);
    assert_int_equal(late.ends_ns, T0 + SECOND / 50);
    assert_int_equal(early.err, WQ_OK);
    assert_int_equal(early.ends_ns, T0 + SECOND);
    wq_bucket_destroy(b);
    wq_clock_destroy(clock);
}

/* T-61: at rate 0 a wait has no end but an interrupt. */
TEST(wait_for_what_never_comes_can_be_interrupted)
{
    wq_clock      *clock = wq_clock_fake_create(T0);
    wq_bucket     *b = wq_bucket_create(0, 1, clock);
    struct sleeper s;

    assert_true(wq_bucket_allow(b));
    start(&s, b, clock, 1, WQ_FOREVER);
    /* Whether it sleeps by now cannot be seen; a remembered interrupt does. */
    wq_bucket_interrupt(b);
    join(&s);
    assert_int_equal(s.err, WQ_EINTERRUPTED);
    assert_near(wq_bucket_tokens(b), 0, "tokens", 0);
    wq_bucket_destroy(b);
    wq_clock_destroy(clock);
}

/* ---- many threads -------------------------------------------------------- */

struct crowd {
    wq_bucket *bucket;
    int        tries; /* of each */
    atomic_int allowed;
};

static void *
try_often(void *arg)
{
    struct crowd *c = arg;

    for (int i = 0; i < c->tries; i++)
        if (wq_bucket_allow(c->bucket))
            atomic_fetch_add(&c->allowed, 1);
    return NULL;
}

static int
allowed_by_crowd(int threads, int tries, int64_t burst)
{
    enum { MOST = 15 };
    pthread_t    ids[MOST];
    wq_clock    *clock = wq_clock_fake_create(T0);
    struct crowd c = {.bucket = wq_bucket_create(1, burst, clock),
                      .tries = tries};

    assert_true(threads <= MOST);
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, try_often, &c), 0);
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_join(ids[i], NULL), 0);
    wq_bucket_destroy(c.bucket);
    wq_clock_destroy(clock);
    return c.allowed;
}

/* T-35 */
TEST(crowd_gets_as_many_as_there_are)
{
    assert_int_equal(allowed_by_crowd(15, 1, 5), 5);
    assert_int_equal(allowed_by_crowd(4, 5000, 9999), 9999);
}

static void *
reserve_and_cancel(void *arg)
{
    wq_bucket *b = arg;

    for (int i = 0; i < 2000; i++) {
        wq_reservation r;
        if (wq_bucket_reserve_n_within(b, 1 + i % 3, SECOND, &r) == WQ_OK)
            wq_reservation_cancel(&r);
        (void)wq_bucket_tokens(b);
        (void)wq_bucket_set_burst(b, 10 + i % 2);
    }
    return NULL;
}

/* T-62: what is cancelled in any order never makes more than the burst. */
TEST(crowd_that_cancels_mints_nothing)
{
    pthread_t  ids[4];
    wq_clock  *clock = wq_clock_fake_create(T0);
    wq_bucket *b = wq_bucket_create(10, 10, clock);

    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, reserve_and_cancel, b),
                         0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(ids[i], NULL), 0);
    assert_true(wq_bucket_tokens(b) <= 10);
    wq_bucket_destroy(b);
    wq_clock_destroy(clock);
}

/* ---- against a model --------------------------------------------------------
 *
 * Time is counted in units of 1/512 s, which is a whole number of nanoseconds;
 * rates are powers of two; tokens are counted in units of 1/512. So everything
 * is a whole number, in the model exactly and in the bucket's doubles, too.
 */
enum { UNITS = 512, KEPT = 8, OPERATIONS = 400 };
#define UNIT_NS INT64_C(1953125)

struct model {
    int     log2_limit;
    int64_t burst;
    int64_t tokens; /* in units */
    int64_t last;   /* in units of time */
    int64_t last_event_ns;
};

struct promise {
    int64_t n, act_ns;
    bool    live;
};

static int64_t
model_tokens(const struct model *m, int64_t now)
{
    const int64_t gained = now > m->last ? (now - m->last) << m->log2_limit : 0;
    const int64_t sum = m->tokens + gained;
    return sum < m->burst * UNITS ? sum : m->burst * UNITS;
}

static void
model_write(struct model *m, int64_t now, int64_t tokens)
{
    m->tokens = tokens;
    m->last = now > m->last ? now : m->last;
}

static bool
model_take(struct model *m, int64_t now, int64_t n, int64_t max_ns,
           struct promise *out)
{
    const int64_t left = model_tokens(m, now) - n * UNITS;
    const int64_t wait_ns = left < 0 ? -left * UNIT_NS >> m->log2_limit : 0;

    if (n > m->burst || wait_ns > max_ns)
        return false;
    model_write(m, now, left);
    *out = (struct promise){n, m->last * UNIT_NS + wait_ns, true};
    m->last_event_ns = out->act_ns;
    return true;
}

static void
model_cancel(struct model *m, int64_t now, struct promise *p)
{
    const int64_t time = now > m->last ? now : m->last;
    const int64_t later = (m->last_event_ns - p->act_ns) / UNIT_NS;
    const int64_t back = p->n * UNITS - later * (INT64_C(1) << m->log2_limit);

    if (!p->live || p->n == 0 || p->act_ns < time * UNIT_NS || back <= 0) {
        p->live = false;
        return;
    }
    p->live = false;
    const int64_t sum = model_tokens(m, now) + back;
    model_write(m, now, sum < m->burst * UNITS ? sum : m->burst * UNITS);
    if (p->act_ns == m->last_event_ns) {
        const int64_t before =
            p->act_ns - (p->n * UNITS * UNIT_NS >> m->log2_limit);
        if (before >= time * UNIT_NS)
            m->last_event_ns = before;
    }
}

static uint64_t
dice(uint64_t *state, uint64_t sides)
{
    *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (*state >> 33) % sides;
}

/* Random operations from `seed`, on both: 0, or the number of the first that
 * differs. The rate changes only in runs without cancel: else a promise may
 * fall between two units. */
static int
first_difference(uint64_t seed)
{
    uint64_t       state = seed;
    const bool     cancels = dice(&state, 2);
    struct model   m = {.log2_limit = (int)dice(&state, 10),
                        .burst = (int64_t)dice(&state, 6)};
    struct promise promises[KEPT] = {{0}};
    wq_reservation rs[KEPT] = {{0}};
    int64_t        now = 1000;

    wq_bucket *b = bucket((double)(1 << m.log2_limit), m.burst);
    m.tokens = m.burst * UNITS;
    int differs = 0;
    for (int i = 1; i <= OPERATIONS && !differs; i++) {
        const int64_t n = (int64_t)dice(&state, 7);
        const size_t  k = (size_t)dice(&state, KEPT);
        bool          same = true;

        if (dice(&state, 2))
            now += (int64_t)dice(&state, 40) - (dice(&state, 8) ? 0 : 60);
        switch (dice(&state, 6)) {
        case 0: {
            struct promise p;
            same = wq_bucket_allow_n_at(b, now * UNIT_NS, n) ==
                   model_take(&m, now, n, 0, &p);
            break;
        }
        case 1:
        case 2: {
            const int64_t max = dice(&state, 2) ? WQ_FOREVER : 50 * UNIT_NS;
            const bool    ok = model_take(&m, now, n, max, &promises[k]);
            const wq_err  err =
                wq_bucket_reserve_n_within_at(b, now * UNIT_NS, n, max, &rs[k]);
            same = (err == WQ_OK) == ok &&
                   (!ok || rs[k].time_to_act_ns == promises[k].act_ns);
            break;
        }
        case 3:
            if (cancels) {
                model_cancel(&m, now, &promises[k]);
                wq_reservation_cancel_at(&rs[k], now * UNIT_NS);
            } else if (n < 2) {
                model_write(&m, now, model_tokens(&m, now));
                m.log2_limit = (int)dice(&state, 10);
                (void)wq_bucket_set_limit_at(b, now * UNIT_NS,
                                             (double)(1 << m.log2_limit));
            }
            break;
        case 4:
            if (n < 2) {
                model_write(&m, now, model_tokens(&m, now));
                m.burst = (int64_t)dice(&state, 8);
                (void)wq_bucket_set_burst_at(b, now * UNIT_NS, m.burst);
            }
            break;
        default:
            break;
        }
        if (!same || wq_bucket_tokens_at(b, now * UNIT_NS) * UNITS !=
                         (double)model_tokens(&m, now))
            differs = i;
    }
    wq_bucket_destroy(b);
    return differs;
}

/* T-06, T-07, T-13, T-15, all at once. */
TEST(bucket_does_what_a_model_in_whole_numbers_does)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        const int differs = first_difference(seed);
        if (differs)
            fail_msg("seed %" PRIu64 ": operation %d differs", seed, differs);
    }
}

WQ_TESTS(
    test(no_rate_that_is_a_number_of_events_is_without_limit),
    test(interval_between_events_gives_their_rate),
    test(tokens_come_by_seconds_times_limit),
    test(waits_are_truncated_to_the_nanosecond),
    test(every_step_rounds_once_to_a_double),
    test(event_a_nanosecond_after_the_promised_time_is_not_refused),
    test(bucket_of_one_lets_one_pass_a_step),
    test(bucket_of_three_fills_up_to_three),
    test(time_that_goes_back_takes_and_brings_no_tokens),
    test(time_that_swings_mints_no_tokens),
    test(reading_tokens_changes_nothing),
    test(first_event_passes_at_a_rate_no_double_holds),
    test(steady_tries_get_what_the_rate_promises),
    test(bucket_starts_full_and_an_empty_one_gives_nothing_but_nothing),
    test(reservation_that_may_not_wait_is_an_allow),
    test(no_tokens_can_be_had_while_none_are_owed_and_fewer_never),
    test(without_limit_everything_passes_and_nothing_is_counted),
    test(what_took_no_tokens_gives_none_back),
    test(what_passed_without_limit_leaves_earlier_promises_alone),
    test(at_rate_zero_or_less_only_the_burst_passes),
    test(wait_of_exactly_all_time_is_for_ever),
    test(time_beyond_all_time_is_for_ever), test(reservations_line_up),
    test(reservations_and_tries_share_the_tokens),
    test(cancelling_a_refused_one_does_nothing_and_the_last_one_everything),
    test(cancelling_too_late_gives_nothing_back),
    test(cancelling_gives_back_what_nobody_waits_for),
    test(cancelling_the_last_makes_the_one_before_the_last),
    test(reservations_line_up_though_time_goes_back),
    test(change_of_limit_or_burst_counts_from_then_on),
    test(reservation_that_takes_too_long_is_refused),
    test(more_burst_brings_no_tokens_and_less_takes_them),
    test(cancelling_twice_gives_back_once),
    test(reservation_can_be_cancelled_until_its_time),
    test(cancel_of_one_made_at_rate_zero_voids_no_other),
    test(cancel_gives_back_less_than_it_took_when_others_came_after),
    test(delay_is_what_is_left_and_for_ever_if_refused),
    test(tiny_and_no_rates_let_the_burst_pass),
    test(bucket_refuses_what_makes_no_sense), test(no_memory_makes_no_bucket),
    test(bucket_lives_by_its_clock),
    test(wait_says_at_once_what_it_knows_at_once),
    test(wait_ends_when_the_tokens_are_there),
    test(interrupted_wait_gives_its_tokens_back),
    test(interrupt_wakes_all_or_is_remembered_once),
    test(interrupts_and_time_may_meet),
    test(wait_after_a_rate_was_set_takes_that_rate),
    test(who_comes_after_the_rate_rose_may_be_served_first),
    test(wait_for_what_never_comes_can_be_interrupted),
    test(crowd_gets_as_many_as_there_are),
    test(crowd_that_cancels_mints_nothing),
    test(bucket_does_what_a_model_in_whole_numbers_does));
