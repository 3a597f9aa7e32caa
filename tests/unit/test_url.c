/* SPDX-License-Identifier: MIT */
/* test_url.c: which durations does the URL of a store accept, and are they exact? */
#include "support/wq_test.h"

#include "shared/url.h"

static void
accepted(const char *text, int64_t ns)
{
    int64_t got = -7;

    if (!wq__url_duration(text, &got) || got != ns)
        fail_msg("'%s' is %lld ns instead of %lld", text, (long long)got,
                 (long long)ns);
}

static void
refused(const char *text)
{
    int64_t got = -7;

    if (wq__url_duration(text, &got) || got != -7)
        fail_msg("'%s' is accepted, or changes the value: %lld", text,
                 (long long)got);
}

TEST(durations_have_all_units_and_may_be_sums)
{
    (void)state;
    accepted("7ns", 7);
    accepted("7us", 7000);
    accepted("200ms", 200000000);
    accepted("30s", INT64_C(30000000000));
    accepted("2m", INT64_C(120000000000));
    accepted("3h", INT64_C(10800000000000));
    accepted("1d", INT64_C(86400000000000));
    accepted("1h30m", INT64_C(5400000000000));
    accepted("1h1h", INT64_C(7200000000000)); /* as in the options of wq */
    accepted("1s0ms5ns", INT64_C(1000000005));
}

TEST(number_without_a_unit_is_seconds)
{
    (void)state;
    accepted("5", INT64_C(5000000000));
    accepted("1.5", INT64_C(1500000000));
    accepted("0.000000001", 1);
    accepted("5.", INT64_C(5000000000));
    accepted(".5", INT64_C(500000000));
    refused("1h30");
    refused("30 ");
}

TEST(decimals_are_exact_to_the_nanosecond)
{
    (void)state;
    accepted("1.5s", INT64_C(1500000000));
    accepted("0.1s", INT64_C(100000000));
    accepted("1.000000001s", INT64_C(1000000001));
    accepted("9007199.254740993s", INT64_C(9007199254740993)); /* 2^53 + 1 */
    accepted("0.00000000001d", 864);
    accepted("1.0000000000000s", INT64_C(1000000000));
    accepted("1.0ns", 1);
    accepted("1.5h0.5m", INT64_C(5430000000000));
    refused("1.5ns");
    refused("1.0000000001s");
    refused("0.0000000000001");
    refused("0.000000000001d");
    refused("0.00000000000001d"); /* the unit has no digit left to divide */
}

TEST(longest_duration_is_that_of_64_bits)
{
    (void)state;
    accepted("9223372036854775807ns", INT64_MAX);
    accepted("9223372036.854775807s", INT64_MAX);
    accepted("106751d23h47m16.854775807s", INT64_MAX);
    accepted("00000000000000000000000001s", INT64_C(1000000000));
    refused("9223372036854775808ns");
    refused("9223372036.854775808s");
    refused("9223372036854775807ns1ns");
    refused("9223372037s");
    refused("106752d");
    refused("99999999999999999999999999999999s");
}

TEST(text_that_is_no_duration_is_refused)
{
    static const char *const texts[] = {
        "",      "0",   "0s",    "0.0h",  "-1s",  "+1s", " 1s",  "1 s", "s",
        ".",     ".s",  "1.2.3", "1x",    "1sx",  "1S",  "1min", "1hm", "1e3s",
        "0x1p3", "inf", "nan",   "1s-1s", "1,5s", "1s,", "1s1"};

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        refused(texts[i]);
}

WQ_TESTS(test(durations_have_all_units_and_may_be_sums),
         test(number_without_a_unit_is_seconds),
         test(decimals_are_exact_to_the_nanosecond),
         test(longest_duration_is_that_of_64_bits),
         test(text_that_is_no_duration_is_refused));
