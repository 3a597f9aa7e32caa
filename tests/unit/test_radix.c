/* SPDX-License-Identifier: MIT */
/* test_radix.c: are deadlines sorted, whatever they are, and is none lost?
 *
 * Entries carry their number, so that it is seen that each stays whole.
 */
#include "support/wq_test.h"

#include <stdlib.h>

#include "core/radix.h"
#include "unit/dice.h"

enum { MOST = 5000 };

static struct wq__wait sorted[MOST], expected[MOST];

static int
compare(const void *left, const void *right)
{
    return wq__wait_before(left, right) ? -1 : 1;
}

/* Arrival numbers are all different, and in no order. */
static void
set(size_t i, int64_t at)
{
    expected[i] = (struct wq__wait){
        .at = at,
        .seq = (i * 2654435761U) % 4294967291U + 1,
        .ref = (wq__ref)i + 1,
        .level = (uint32_t)i * 3,
    };
}

static void
expect_sorted(size_t n)
{
    memcpy(sorted, expected, sizeof sorted);
    wq__radix_sort(sorted, n);
    qsort(expected, n, sizeof *expected, compare);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(sorted[i].at, expected[i].at);
        assert_int_equal(sorted[i].seq, expected[i].seq);
        assert_int_equal(sorted[i].ref, expected[i].ref);
        assert_int_equal(sorted[i].level, expected[i].level);
    }
}

/* L4 */
TEST(deadlines_of_every_range_are_sorted)
{
    struct dice dice = dice_seeded("radix");

    for (unsigned bits = 1; bits <= 64; bits++)
        for (size_t n = 0; n < 300; n = n * 2 + 1) {
            for (size_t i = 0; i < n; i++)
                set(i, (int64_t)((uint64_t)dice_roll(&dice, UINT32_MAX) << 32 |
                                 dice_roll(&dice, UINT32_MAX)) >>
                           (64 - bits));
            expect_sorted(n);
        }
}

TEST(equal_deadlines_are_sorted_by_arrival)
{
    for (size_t i = 0; i < MOST; i++)
        set(i, 7);
    expect_sorted(MOST);
    for (size_t i = 0; i < MOST; i++)
        set(i, (int64_t)(i % 3));
    expect_sorted(MOST);
}

TEST(deadlines_at_both_ends_of_time_are_sorted)
{
    for (size_t i = 0; i < MOST; i++)
        set(i, i % 3 == 0   ? INT64_MIN + (int64_t)(i % 5)
               : i % 3 == 1 ? INT64_MAX - (int64_t)(i % 7)
                            : (int64_t)(i % 11) - 5);
    expect_sorted(MOST);
}

TEST(sorted_and_reversed_deadlines_are_sorted)
{
    for (size_t i = 0; i < MOST; i++)
        set(i, (int64_t)i * 1000);
    expect_sorted(MOST);
    for (size_t i = 0; i < MOST; i++)
        set(i, -(int64_t)i * 1000);
    expect_sorted(MOST);
}

/* Each is half of the one before: every pass separates only one. */
TEST(deadlines_that_crowd_together_are_sorted)
{
    for (size_t i = 0; i < 64; i++)
        set(i, (int64_t)(UINT64_MAX >> 1 >> i));
    expect_sorted(64);
}

WQ_TESTS(test(deadlines_of_every_range_are_sorted),
         test(equal_deadlines_are_sorted_by_arrival),
         test(deadlines_at_both_ends_of_time_are_sorted),
         test(sorted_and_reversed_deadlines_are_sorted),
         test(deadlines_that_crowd_together_are_sorted));
