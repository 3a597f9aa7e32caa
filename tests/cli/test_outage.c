/* SPDX-License-Identifier: MIT */
/* test_outage.c: when does the command report that a store does not answer?
 *
 * Without a store, since a cause is repeated after a minute only. test_redis.py
 * has a server that is away.
 */
#include "support/wq_test.h"

#include <string.h>

#include "run/outage.h"

#define SECONDS(n) (INT64_C(1000000000) * (n))

TEST(same_cause_is_reported_once_a_minute)
{
    struct outage outage = {0};
    int           reports = 0;

    for (int s = 1; s <= 180; s++)
        reports += outage_report(&outage, SECONDS(s), "refused");
    assert_int_equal(reports, 3);
}

TEST(another_cause_is_reported_at_once)
{
    struct outage outage = {0};

    assert_true(outage_report(&outage, SECONDS(1), "refused"));
    assert_true(outage_report(&outage, SECONDS(2), "asks for a password"));
    assert_false(outage_report(&outage, SECONDS(3), "refused"));
    assert_false(outage_report(&outage, SECONDS(4), "asks for a password"));
    assert_true(outage_report(&outage, SECONDS(61), "refused"));
    assert_false(outage_report(&outage, SECONDS(61), "asks for a password"));
}

TEST(calls_that_succeed_in_between_do_not_repeat_reports)
{
    struct outage outage = {0};

    assert_false(outage_end(&outage));
    assert_true(outage_report(&outage, SECONDS(1), "refused"));
    assert_true(outage_end(&outage));
    for (int s = 2; s <= 60; s++) {
        assert_false(outage_report(&outage, SECONDS(s), "refused"));
        assert_false(outage_end(&outage));
    }
    assert_true(outage_report(&outage, SECONDS(61), "refused"));
    assert_true(outage_end(&outage));
}

TEST(reports_of_a_minute_are_limited)
{
    struct outage outage = {0};
    char          cause[] = "node 0";
    int           reports = 0;

    for (int ms = 1; ms < 60000; ms++) {
        cause[5] = (char)('0' + ms % 50);
        reports += outage_report(&outage, SECONDS(1) + ms, cause);
    }
    assert_int_equal(reports, OUTAGE_CAUSES);
}

TEST(long_causes_are_told_apart_by_their_beginnings)
{
    struct outage outage = {0};
    char          cause[OUTAGE_CAUSE + 100];

    memset(cause, 'x', sizeof cause);
    cause[sizeof cause - 1] = '\0';
    assert_true(outage_report(&outage, SECONDS(1), cause));
    assert_false(outage_report(&outage, SECONDS(2), cause));
    *cause = 'y';
    assert_true(outage_report(&outage, SECONDS(3), cause));
}

WQ_TESTS(test(same_cause_is_reported_once_a_minute),
         test(another_cause_is_reported_at_once),
         test(calls_that_succeed_in_between_do_not_repeat_reports),
         test(reports_of_a_minute_are_limited),
         test(long_causes_are_told_apart_by_their_beginnings));
