/* SPDX-License-Identifier: MIT */
/* test_limit_delay.c: is the arithmetic of backoff right for every factor?
 *
 * Against client-go's formula for the factor 2, and against n multiplications
 * of long doubles for the others.
 */
#include "support/wq_test.h"

#include <float.h>
#include <stdbool.h>
#include <stdlib.h>

#include "dice.h"
#include "limit/delay.h"

#define SECOND INT64_C(1000000000)

/* The counts of failures that tests look at: all small ones, and those around
 * the powers of 2. */
static uint32_t
next_count(uint32_t n)
{
    if (n <= 4096)
        return n + 1;
    return n % 4 == 1 ? 2 * n - 4 : n + 1; /* 8190 to 8193, 16382 to 16385 */
}

enum { LAST_COUNT = INT32_MAX };

/* What client-go computes, where that is defined (L-04, L-05). */
static int64_t
doubling(int64_t base_ns, int64_t max_ns, uint32_t n)
{
    if (base_ns == 0)
        return n < 1024 ? 0 : max_ns;
    if (n >= 63)
        return max_ns;
    const double product = (double)base_ns * (double)(UINT64_C(1) << n);
    if (product >= 9223372036854775808.0 || (int64_t)product > max_ns)
        return max_ns;
    return (int64_t)product;
}

/* L-01 L-02 L-04 L-05 L-32 */
TEST(factor_of_2_doubles_exactly)
{
    const int64_t times[] = {0,
                             1,
                             3,
                             5000000,
                             1000 * SECOND,
                             INT64_C(9007199254740993),
                             INT64_MAX - 1,
                             INT64_MAX};
    enum { TIMES = sizeof times / sizeof *times };

    for (size_t b = 0; b < TIMES; b++)
        for (size_t m = 0; m < TIMES; m++)
            for (uint32_t n = 0; n <= LAST_COUNT; n = next_count(n))
                assert_int_equal(
                    wq__delay_exponential(times[b], times[m], 2, n),
                    doubling(times[b], times[m], n));
}

/* L-32: of 3^0, 3^1 and so on, as long as an int64_t has all their digits and
 * a double, too. */
TEST(whole_factor_is_exact_while_a_double_is)
{
    int64_t exact = 1;

    for (uint32_t n = 0; n <= 33; n++, exact *= 3)
        assert_int_equal(wq__delay_exponential(1, INT64_MAX, 3, n), exact);
    assert_int_equal(wq__delay_exponential(7, 5000, 10, 2), 700);
    assert_int_equal(wq__delay_exponential(7, 5000, 10, 3), 5000);
}

static const double factors[] = {1,
                                 1 + DBL_EPSILON,
                                 1 + 2 * DBL_EPSILON,
                                 1 + 3 * DBL_EPSILON,
                                 1 + 1e-12,
                                 1 + 1e-9,
                                 1 + 1e-7,
                                 1.001,
                                 1.1,
                                 1.5,
                                 1.9999999999999998,
                                 2.0000000000000004,
                                 3,
                                 10,
                                 1e9,
                                 DBL_MAX};

static void
expect_growth(int64_t base_ns, int64_t max_ns, double factor)
{
    int64_t last = 0;

    for (uint32_t n = 0; n <= LAST_COUNT; n = next_count(n)) {
        const int64_t delay = wq__delay_exponential(base_ns, max_ns, factor, n);
        if (delay < last || delay > max_ns)
            fail_msg("factor %.17g, count %u: %lld after %lld", factor, n,
                     (long long)delay, (long long)last);
        last = delay;
    }
}

/* L-02 L-32: also where the errors of rounding exceed the growth. */
TEST(delay_never_decreases_with_the_count)
{
    struct dice dice = dice_seeded("delay_never_decreases_with_the_count");

    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        expect_growth(5000000, 1000 * SECOND, factors[i]);
        expect_growth(INT64_MAX / 3, INT64_MAX, factors[i]);
        expect_growth(0, INT64_MAX, factors[i]);
    }
    for (int i = 0; i < 500; i++) {
        const double small = (double)(1 + dice_roll(&dice, 1000)) /
                             (double)(UINT64_C(1) << dice_roll(&dice, 60));
        expect_growth(INT64_C(1) << dice_roll(&dice, 62), INT64_MAX, 1 + small);
    }
}

/* L-32 */
TEST(delay_is_as_exact_as_multiplications)
{
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
        long double exact = 1e6L;

        for (uint32_t n = 0; n < 3000; n++, exact *= factors[i]) {
            const int64_t delay =
                wq__delay_exponential(1000000, INT64_MAX, factors[i], n);
            const long double bound =
                1 + exact * (long double)(n + 2) * DBL_EPSILON;

            if (exact > 9e18L)
                break;
            assert_true((long double)delay >= exact - bound);
            assert_true((long double)delay <= exact + bound);
        }
    }
}

/* L-02 L-04 L-32 */
TEST(delay_ends_at_the_maximum)
{
    for (size_t i = 7; i < sizeof factors / sizeof *factors; i++) {
        assert_int_equal(
            wq__delay_exponential(1, INT64_MAX, factors[i], UINT32_MAX),
            INT64_MAX);
        assert_int_equal(wq__delay_exponential(0, 7, factors[i], UINT32_MAX),
                         7);
        assert_int_equal(wq__delay_exponential(9, 7, factors[i], 0), 7);
    }
    assert_int_equal(wq__delay_exponential(5, 7, 1, UINT32_MAX), 5);
    assert_int_equal(wq__delay_exponential(0, 7, 1, UINT32_MAX), 0);
}

/* L-20: the smallest and the largest number of each range. */
TEST(jitter_reaches_both_ends_of_its_range)
{
    assert_int_equal(wq__delay_jitter(9, WQ_JITTER_NONE, 5), 9);
    assert_int_equal(wq__delay_jitter(9, WQ_JITTER_FULL, 0), 0);
    assert_int_equal(wq__delay_jitter(9, WQ_JITTER_FULL, 9), 9);
    assert_int_equal(wq__delay_jitter(9, WQ_JITTER_FULL, 10), 0);
    assert_int_equal(wq__delay_jitter(9, WQ_JITTER_EQUAL, 0), 4);
    assert_int_equal(wq__delay_jitter(9, WQ_JITTER_EQUAL, 5), 9);
    assert_int_equal(wq__delay_jitter(9, WQ_JITTER_EQUAL, 6), 4);
    assert_int_equal(wq__delay_jitter(0, WQ_JITTER_FULL, UINT64_MAX), 0);
    assert_int_equal(wq__delay_jitter(INT64_MAX, WQ_JITTER_FULL, INT64_MAX),
                     INT64_MAX);
    assert_int_equal(wq__delay_jitter(INT64_MAX, WQ_JITTER_FULL, UINT64_MAX),
                     INT64_MAX);
}

WQ_TESTS(test(factor_of_2_doubles_exactly),
         test(whole_factor_is_exact_while_a_double_is),
         test(delay_never_decreases_with_the_count),
         test(delay_is_as_exact_as_multiplications),
         test(delay_ends_at_the_maximum),
         test(jitter_reaches_both_ends_of_its_range));
