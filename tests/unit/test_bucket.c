/* SPDX-License-Identifier: MIT */
/* test_bucket.c: is the token bucket the one that docs/semantics.md describes?
 *
 * All tests give the time themselves: in scripts it is counted in steps of a
 * tenth of a second, in which a rate of 10 brings one token. At the end the
 * bucket is compared with a model in whole numbers. How threads wait for tokens
 * is in test_bucket_wait.c.
 */
#include "unit/script.h"

#include <errno.h>
#include <math.h>

#include <wq/limiter.h>

#include "limit/bucket.h"
#include "limit/tokens.h"
#include "support/counting.h"
#include "unit/dice.h"

#define SECOND INT64_C(1000000000)
#define D (SECOND / 10)    /* a step */
#define T0 (1000 * SECOND) /* some moment */
#define AT(k) (T0 + (k)*D) /* k steps later */

static wq_bucket *
bucket(double limit, int64_t burst)
{
    wq_bucket *b = wq_bucket_create(limit, burst, NULL);
    assert_non_null(b);
    return b;
}

/* ---- rates --------------------------------------------------------------- */

/* T-30 */
TEST(no_rate_in_numbers_is_without_limit)
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
    for (size_t i = 0; i < LEN(rows); i++)
        if (fabs(wq_rate_every(rows[i].interval_ns) / rows[i].rate - 1) > 1e-9)
            fail_msg("every %" PRId64 " ns: %g", rows[i].interval_ns,
                     wq_rate_every(rows[i].interval_ns));
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
    for (size_t i = 0; i < LEN(rows); i++) {
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

    for (size_t i = 0; i < LEN(limits); i++) {
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

/* ---- scenes -------------------------------------------------------------- */

enum { NAMES = 8 };

static wq_bucket     *shown;       /* the bucket of the script */
static wq_reservation made[NAMES]; /* those that it names a, b, ... */

static double
limit_of(const char *word)
{
    const double sign = *word == '-' ? -1 : 1;

    if (strstr(word, "inf"))
        return sign * WQ_RATE_INF;
    return (double)number(word);
}

/* reserve NAME N STEP|never [within STEPS]: OK, and acts then.
 * refuse NAME N: more than the burst. late NAME N within STEPS: too long. */
static void
act_reserve(const char *const *word, int64_t now)
{
    const bool      ok = is(word[0], "reserve");
    wq_reservation *r = &made[*word[1] - 'a'];
    const int64_t   n = number(word[2]);
    const char     *max = is(word[3 + ok], "within") ? word[4 + ok] : NULL;
    const double    before = wq_bucket_tokens_at(shown, now);
    const wq_err    err =
        max ? wq_bucket_reserve_n_within_at(shown, now, n, number(max) * D, r)
               : wq_bucket_reserve_n_at(shown, now, n, r);

    expect_err(err, ok ? "OK" : is(word[0], "refuse") ? "EINVAL" : "ETIMEDOUT");
    assert_int_equal(wq_reservation_ok(r), ok);
    if (!ok) {
        assert_true(wq_bucket_tokens_at(shown, now) == before);
    } else if (is(word[3], "never")) {
        assert_int_equal(r->time_to_act_ns, WQ_FOREVER);
        assert_int_equal(wq_reservation_delay_from(r, now), WQ_FOREVER);
        assert_int_equal(wq_reservation_delay_from(r, now + 99), WQ_FOREVER);
    } else {
        expect_number((r->time_to_act_ns - T0 + D / 2) / D, word[3]);
    }
}

/* bucket LIMIT BURST; has TOKENS; yes N and no N: is it allowed? limit LIMIT;
 * burst BURST; cancel NAME; and those above. */
static bool
act(const char *const *word)
{
    const int64_t now = AT(script.now);

    if (is(word[0], "bucket")) {
        memset(made, 0, sizeof made);
        wq_bucket_destroy(shown);
        shown = bucket(limit_of(word[1]), number(word[2]));
    } else if (is(word[0], "has")) {
        const double tokens = wq_bucket_tokens_at(shown, now);
        if (fabs(tokens - (double)number(word[1])) > 1e-9)
            fail_msg("%s: \"%s\": %.12g", script.scene, script.step, tokens);
    } else if (is(word[0], "yes") || is(word[0], "no")) {
        expect_word(wq_bucket_allow_n_at(shown, now, number(word[1])) ? "yes"
                                                                      : "no",
                    word[0]);
    } else if (is(word[0], "limit")) {
        expect_err(wq_bucket_set_limit_at(shown, now, limit_of(word[1])), "OK");
    } else if (is(word[0], "burst")) {
        expect_err(wq_bucket_set_burst_at(shown, now, number(word[1])), "OK");
    } else if (is(word[0], "cancel")) {
        wq_reservation_cancel_at(&made[*word[1] - 'a'], now);
    } else if (is(word[0], "reserve") || is(word[0], "refuse") ||
               is(word[0], "late")) {
        act_reserve(word, now);
    } else {
        return false;
    }
    return true;
}

static void
run_scenes(const struct scene *scenes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        script_run(&scenes[i], act, NULL);
    wq_bucket_destroy(shown);
    shown = NULL;
}

static const struct scene allows[] = {
    /* T-31 */
    {"a bucket of one lets one pass a step",
     "bucket 10 1; has 1; yes 1; has 0; no 1; no 1; has 0; 1: has 1; yes 1; "
     "has 0; no 1; has 0; no 1; 2: has 1; no 2; has 1; yes 1; has 0; no 1"},
    /* T-32 T-07: a refusal changes nothing. */
    {"a bucket of three fills up to three",
     "bucket 10 3; has 3; yes 2; has 1; no 2; has 1; yes 1; has 0; no 1; "
     "1: has 1; no 4; 2: has 2; yes 1; 3: has 2; yes 1; 4: has 2; yes 1; "
     "has 1; yes 1; has 0; no 1; has 0; no 1; 9: has 3; yes 3; has 0; yes 0"},
    /* T-33 T-06: an earlier time counts as the last one. Elsewhere the first
     * try at step 1 after the way back finds a token. */
    {"time that goes back takes and brings no tokens",
     "bucket 10 3; 1: has 3; yes 1; 0: has 2; yes 1; has 1; yes 1; has 0; "
     "no 1; has 0; no 1; 1: has 0; no 1; has 0; no 1; 2: has 1; yes 1; has 0; "
     "no 1; has 0; no 1"},
    /* T-02 */
    {"a bucket starts full", "bucket 10 5; has 5"},
    {"an empty bucket lets only n = 0 pass", "bucket 0 0; no 1; yes 0"},
    /* T-08 T-45 */
    {"a reservation that may not wait is an allow",
     "bucket 10 1; reserve a 1 0 within 0; late b 1 within 0; no 1; "
     "reserve c 1 1"},
    /* T-09 */
    {"n = 0 succeeds unless the bucket is in debt",
     "bucket 10 1; yes 1; yes 0; no -1; refuse a -1; has 0; reserve b 1 1; "
     "no 0; reserve c 0 1"},
    /* T-01 */
    {"without limit everything passes and nothing is counted",
     "bucket inf 0; yes 1000000; reserve a 7 0; has 0; cancel a; has 0; "
     "bucket inf 4; yes 1000000; 1: has 4"},
    /* T-62: elsewhere the cancel brings three tokens. */
    {"what took no tokens gives none back",
     "bucket inf 5; reserve a 3 0; limit 10; yes 5; cancel a; has 0"},
    /* T-01: what passed without limit is no promise that others wait for. */
    {"what passed without limit does not change earlier promises",
     "bucket 10 2; yes 2; reserve a 2 2; limit inf; reserve b 1 0; limit 10; "
     "cancel a; has 0"},
    /* T-11 T-12 T-10 */
    {"at rate 0 only the burst passes",
     "bucket 0 2; yes 1; yes 1; 1000: no 1; 0: reserve a 1 never"},
    {"at a rate below 0 only the burst passes",
     "bucket -1 2; yes 1; yes 1; 1000: no 1; 0: reserve a 1 never"},
    {"at the rate -inf only the burst passes",
     "bucket -inf 2; yes 1; yes 1; 1000: no 1; 0: reserve a 1 never"},
};

TEST(bucket_allows_as_many_as_it_has)
{
    run_scenes(allows, LEN(allows));
}

static const struct scene reservations[] = {
    /* T-37 */
    {"reservations line up",
     "bucket 10 2; reserve a 2 0; reserve b 2 2; 3: reserve c 2 4"},
    /* T-38 */
    {"reservations and tries share the tokens",
     "bucket 10 2; refuse a 3; reserve b 2 0; 1: no 2; reserve c 2 2; no 1; "
     "3: yes 1; bucket 10 2; 0: reserve a 2 0; 1: has 1; reserve b 2 2; "
     "has -1; 3: has 1"},
    /* T-39 */
    {"cancelling a refused one does nothing",
     "bucket 10 2; reserve a 2 0; refuse b 3; cancel b; reserve c 2 2"},
    {"cancelling the last one gives all back",
     "bucket 10 2; reserve a 2 0; reserve b 2 2; 1: cancel b; reserve c 2 2"},
    /* T-40: in the second, the later one took all of it into account. */
    {"cancelling too late gives nothing back",
     "bucket 10 2; reserve a 2 0; reserve b 2 2; 3: cancel b; reserve c 2 4; "
     "bucket 10 2; 0: reserve a 2 0; reserve b 1 1; reserve c 1 2; cancel b; "
     "reserve d 1 3"},
    /* T-41 T-13 */
    {"cancelling gives back what no one waits for",
     "bucket 10 2; reserve a 2 0; reserve b 2 2; reserve c 1 3; 2: cancel b; "
     "reserve d 2 4"},
    /* T-42 T-13: in the second, the one before is for this very moment. */
    {"cancelling the last makes the one before the last",
     "bucket 10 4; reserve a 4 0; reserve b 3 3; reserve c 1 4; reserve d 1 5; "
     "1: cancel d; cancel b; reserve e 3 5; bucket 10 2; 0: reserve a 2 0; "
     "reserve b 2 2; cancel b; cancel a; reserve c 2 0"},
    /* T-43 T-17: as T-33. Elsewhere the acts are at 1, 3, 4, 5, and at 4. */
    {"reservations line up though time goes back",
     "bucket 10 2; 1: reserve a 2 1; 0: reserve b 1 2; 2: reserve c 2 4; "
     "0: refuse d 3; 2: reserve e 1 5; 0: late f 2 within 1; 2: reserve g 1 6; "
     "bucket 10 2; 1: reserve a 2 1; reserve b 2 3; reserve c 1 4; "
     "0: cancel b; 1: reserve d 2 5"},
    /* T-44 T-15: in the second, the last time is before the one before:
     * elsewhere it acts at 9. */
    {"a change of limit or burst counts from then on",
     "bucket 5 2; reserve a 2 0; reserve b 2 4; 2: limit 10; reserve c 1 4; "
     "bucket 5 2; 0: reserve a 2 0; reserve b 2 4; 3: burst 4; "
     "0: reserve c 4 12; bucket 5 2; 0: reserve a 2 0; reserve b 2 4; "
     "2: limit 10; cancel b; reserve c 2 3"},
    /* T-45 */
    {"a reservation that takes too long is refused",
     "bucket 10 2; reserve a 2 0 within 1; reserve b 1 1 within 1; "
     "late c 1 within 1"},
    /* T-15 */
    {"more burst brings no tokens and less takes them",
     "bucket 10 5; burst 10; has 5; 10: has 10; bucket 10 5; 0: burst 2; "
     "has 2"},
    /* T-14: elsewhere the second cancel brings five more. */
    {"cancelling twice gives back once",
     "bucket 10 20; yes 10; reserve a 5 0; cancel a; has 10; cancel a; has 10"},
    /* T-13: at the very time to act; but not while there is no limit. */
    {"a reservation can be cancelled until its time",
     "bucket 10 2; yes 2; reserve a 1 1; 1: cancel a; has 1; yes 1; "
     "reserve b 1 2; limit inf; cancel b; has -1"},
    /* T-64: elsewhere the first cancel, of one made at rate 0, moves the last
     * promise to the end of time, and the second brings nothing. */
    {"cancelling one made at rate 0 voids no other",
     "bucket 0 5; reserve a 3 0; limit 10; reserve b 1 0; cancel a; has 4; "
     "cancel b; has 5"},
    /* T-19 */
    {"cancelling gives back less when others came after",
     "bucket 10 20; yes 15; 1: reserve a 10 5; 2: reserve b 2 7; 3: cancel a; "
     "has 4"},
};

TEST(reservations_take_tokens_and_cancelling_gives_them_back)
{
    run_scenes(reservations, LEN(reservations));
}

/* ---- times and rates at the ends ----------------------------------------- */

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
    assert_true(wq_bucket_tokens_at(b, INT64_MAX) == 3);
    assert_true(wq_bucket_tokens_at(b, INT64_MIN) == 0);
    assert_true(fabs(wq_bucket_tokens_at(b, INT64_MIN + D) - 1) < 1e-9);
    wq_bucket_destroy(b);
}

/* T-34 T-46 */
TEST(first_event_passes_at_any_rate)
{
    static const double limits[] = {1e-10, 0, 0.7692307692307693};

    for (size_t i = 0; i < LEN(limits); i++) {
        wq_bucket *b = bucket(limits[i], 1);
        assert_true(wq_bucket_allow(b));
        assert_true(!wq_bucket_allow(b) || limits[i] > 0.5);
        wq_bucket_destroy(b);
    }
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

/* T-18: elsewhere the second passes at once. T-63: on a clock that shows less
 * than zero, too; and a time beyond all time is for ever. */
TEST(wait_of_all_time_or_more_is_for_ever)
{
    static const double all_time = 1e9 / 9223372036854775807.0;
    const struct {
        double  limit;
        int64_t now, from;
    } rows[] = {
        {all_time, 0, 0},      {all_time, T0, T0},
        {all_time, -1, -1},    {all_time, INT64_MIN, INT64_MIN},
        {1, INT64_MAX - 1, 0},
    };

    for (size_t i = 0; i < LEN(rows); i++) {
        wq_bucket     *b = bucket(rows[i].limit, 1);
        wq_reservation r;

        assert_true(wq_bucket_allow_n_at(b, rows[i].now, 1));
        assert_false(wq_bucket_allow_n_at(b, rows[i].now, 1));
        assert_int_equal(wq_bucket_reserve_n_at(b, rows[i].now, 1, &r), WQ_OK);
        assert_int_equal(r.time_to_act_ns, WQ_FOREVER);
        assert_int_equal(wq_reservation_delay_from(&r, rows[i].from),
                         WQ_FOREVER);
        wq_bucket_destroy(b);
    }
}

/* T-15 */
TEST(limit_and_burst_can_be_set_and_read)
{
    wq_bucket *b = bucket(10, 5);

    assert_int_equal(wq_bucket_set_limit_at(b, AT(0), 3), WQ_OK);
    assert_int_equal(wq_bucket_set_burst_at(b, AT(0), 2), WQ_OK);
    assert_true(wq_bucket_limit(b) == 3);
    assert_int_equal(wq_bucket_burst(b), 2);
    assert_int_equal(wq_bucket_set_limit(b, 4), WQ_OK);
    assert_int_equal(wq_bucket_set_burst(b, 6), WQ_OK);
    assert_true(wq_bucket_limit(b) == 4);
    assert_int_equal(wq_bucket_burst(b), 6);
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

/* T-60 */
TEST(bucket_refuses_invalid_arguments)
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
    assert_false(wq_bucket_allow_n(b, INT64_MIN)); /* T-09 */
    assert_int_equal(wq_bucket_reserve_n_at(b, T0, -1, &r), WQ_EINVAL);
    assert_int_equal(wq_bucket_reserve_n(b, -1, &r), WQ_EINVAL);
    assert_int_equal(wq_bucket_wait_n(b, -1, 0), WQ_EINVAL);
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

/* T-60 */
TEST(no_memory_makes_no_bucket)
{
    struct counting mem;

    counting_init(&mem);
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    errno = 0;
    assert_null(wq__bucket_create(&mem.allocator, 1, 1, NULL));
    assert_int_equal(errno, ENOMEM);
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

/* Random operations from `seed`, on both: 0, or the number of the first that
 * differs. The rate changes only in runs without cancel: else a promise may
 * fall between two units. */
static int
first_difference(uint64_t seed)
{
    struct dice    dice = dice_from(seed);
    const bool     cancels = dice_roll(&dice, 2);
    struct model   m = {.log2_limit = (int)dice_roll(&dice, 10),
                        .burst = (int64_t)dice_roll(&dice, 6)};
    struct promise promises[KEPT] = {{0}};
    wq_reservation rs[KEPT] = {{0}};
    int64_t        now = 1000;

    wq_bucket *b = bucket((double)(1 << m.log2_limit), m.burst);
    m.tokens = m.burst * UNITS;
    int differs = 0;
    for (int i = 1; i <= OPERATIONS && !differs; i++) {
        const int64_t n = (int64_t)dice_roll(&dice, 7);
        const size_t  k = dice_roll(&dice, KEPT);
        bool          same = true;

        if (dice_roll(&dice, 2))
            now +=
                (int64_t)dice_roll(&dice, 40) - (dice_roll(&dice, 8) ? 0 : 60);
        switch (dice_roll(&dice, 6)) {
        case 0: {
            struct promise p;
            same = wq_bucket_allow_n_at(b, now * UNIT_NS, n) ==
                   model_take(&m, now, n, 0, &p);
            break;
        }
        case 1:
        case 2: {
            const int64_t max = dice_roll(&dice, 2) ? WQ_FOREVER : 50 * UNIT_NS;
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
                m.log2_limit = (int)dice_roll(&dice, 10);
                (void)wq_bucket_set_limit_at(b, now * UNIT_NS,
                                             (double)(1 << m.log2_limit));
            }
            break;
        case 4:
            if (n < 2) {
                model_write(&m, now, model_tokens(&m, now));
                m.burst = (int64_t)dice_roll(&dice, 8);
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

/* T-06 T-07 T-13 T-15 */
TEST(bucket_does_what_a_model_in_whole_numbers_does)
{
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        const int differs = first_difference(seed);
        if (differs)
            fail_msg("seed %" PRIu64 ": operation %d differs", seed, differs);
    }
}

WQ_TESTS(test(no_rate_in_numbers_is_without_limit),
         test(interval_between_events_gives_their_rate),
         test(tokens_come_by_seconds_times_limit),
         test(waits_are_truncated_to_the_nanosecond),
         test(every_step_rounds_once_to_a_double),
         test(event_a_nanosecond_after_the_promised_time_is_not_refused),
         test(bucket_allows_as_many_as_it_has),
         test(reservations_take_tokens_and_cancelling_gives_them_back),
         test(time_that_swings_mints_no_tokens),
         test(reading_tokens_changes_nothing),
         test(first_event_passes_at_any_rate),
         test(steady_tries_get_what_the_rate_promises),
         test(wait_of_all_time_or_more_is_for_ever),
         test(limit_and_burst_can_be_set_and_read),
         test(delay_is_what_is_left_and_for_ever_if_refused),
         test(bucket_refuses_invalid_arguments),
         test(no_memory_makes_no_bucket),
         test(bucket_does_what_a_model_in_whole_numbers_does));
