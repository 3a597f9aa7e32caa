/* SPDX-License-Identifier: MIT */
/* test_registry_reader.c: would the reader that judges our text notice?
 *
 * Other tests rely on support/exposition.h. Each line below is wrong in one
 * way.
 */
#include "support/wq_test.h"

#include <string.h>

#include "support/exposition.h"

#define GAUGE "# HELP a Some.\n# TYPE a gauge\n"
#define SECONDS                                                                \
    "# HELP a_seconds S.\n# TYPE a_seconds gauge\n# UNIT a_seconds seconds\n"
#define COUNTER "# HELP a_total Some.\n# TYPE a_total counter\n"
#define HISTOGRAM "# HELP h Some.\n# TYPE h histogram\n"
#define BUCKETS                                                                \
    "h_bucket{n=\"x\",le=\"1\"} 1\nh_bucket{n=\"x\",le=\"+Inf\"} 3\n"
#define REST "h_sum{n=\"x\"} 0.5\nh_count{n=\"x\"} 3\n"

static const char *const good[] = {
    "",
    GAUGE "a{n=\"x\"} 1\na{n=\"y\"} 0.25\n",
    GAUGE "a{n=\"\\\\ \\\" \\n\xc3\xbc\"} 1\n",
    COUNTER "a_total{n=\"x\"} 1\n",
    HISTOGRAM BUCKETS                                REST,
    COUNTER "a_total{n=\"x\"} 1\n" HISTOGRAM BUCKETS REST,
};

static const char *const bad[] = {
    GAUGE,                                                /* no sample */
    GAUGE "a{n=\"x\"} 1",                                 /* no end */
    GAUGE "\na{n=\"x\"} 1\n",                             /* an empty line */
    "a{n=\"x\"} 1\n",                                     /* no family */
    "# TYPE a gauge\na{n=\"x\"} 1\n",                     /* no HELP */
    "# HELP a Some.\na{n=\"x\"} 1\n",                     /* no TYPE */
    "# TYPE a odd\n",                                     /* unknown */
    "# a comment\n",                                      /* not ours */
    GAUGE "# HELP a Some.\na{n=\"x\"} 1\n",               /* twice */
    GAUGE "# TYPE a gauge\na{n=\"x\"} 1\n",               /* twice */
    GAUGE "a{n=\"x\"} 1\n# HELP a Some.\n",               /* late */
    GAUGE "a{n=\"x\"} 1\n" COUNTER "a_total{n=\"x\"} 1\n" /* mixed */
          "a{n=\"y\"} 1\n",
    GAUGE "a{n=\"x\"} 1\n" COUNTER "a_total{n=\"x\"} 1\n" GAUGE
          "a{n=\"y\"} 1\n",                               /* in two parts */
    GAUGE "a{n=\"x\"} 1\na{n=\"x\"} 2\n",                 /* the same series */
    GAUGE "a{n=\"x\",m=\"y\"} 1\na{m=\"y\",n=\"x\"} 2\n", /* in other order */
    GAUGE "a{n=\"x\",n=\"y\"} 1\n",                       /* a label twice */
    GAUGE "a{1=\"x\"} 1\n",                               /* no name */
    GAUGE "a{n=\"x\"y\"} 1\n",                            /* a quote */
    GAUGE "a{n=\"\\x\"} 1\n",                             /* an escape */
    GAUGE "a{n=\"\xff\"} 1\n",                            /* not UTF-8 */
    GAUGE "a{n=\"x\n\"} 1\n",                             /* a newline */
    GAUGE "a{n=\"x\"}1\n",                                /* no space */
    GAUGE "a{n=\"x\"} \n",                                /* no value */
    GAUGE "a{n=\"x\"} 1 1\n",                             /* a time stamp */
    GAUGE "a{n=\"x\"} 0,5\n",                             /* a comma */
    GAUGE "a{n=\"x\"} 1.\n",                              /* no decimals */
    GAUGE "a{n=\"x\"} 01\n",                              /* a zero */
    GAUGE "a_total{n=\"x\"} 1\n",                         /* another name */
    COUNTER "a_total{n=\"x\"} 1.5\n",                     /* a fraction */
    "# HELP a Some.\n# TYPE a counter\na{n=\"x\"} 1\n",   /* no _total */
    "# HELP a_total Some.\n# TYPE a_total gauge\na_total{n=\"x\"} 1\n",
    HISTOGRAM BUCKETS,                                          /* no sum */
    HISTOGRAM BUCKETS "h_sum{n=\"x\"} 1\n",                     /* no count */
    HISTOGRAM BUCKETS "h_count{n=\"x\"} 3\n",                   /* no sum */
    HISTOGRAM BUCKETS "h_sum{n=\"x\"} 1\nh_count{n=\"x\"} 4\n", /* not 3 */
    HISTOGRAM BUCKETS "h_sum{n=\"y\"} 1\nh_count{n=\"y\"} 3\n", /* mixed */
    HISTOGRAM "h_bucket{n=\"x\",le=\"1\"} 1\n" REST,            /* no +Inf */
    HISTOGRAM "h_bucket{n=\"x\",le=\"1\"} 4\n"
              "h_bucket{n=\"x\",le=\"+Inf\"} 3\n" REST, /* it falls */
    HISTOGRAM "h_bucket{n=\"x\",le=\"2\"} 1\n"
              "h_bucket{n=\"x\",le=\"1\"} 1\n"
              "h_bucket{n=\"x\",le=\"+Inf\"} 3\n" REST,      /* out of order */
    HISTOGRAM "h_bucket{n=\"x\"} 3\n" REST,                  /* no bound */
    HISTOGRAM BUCKETS REST "h_bucket{n=\"y\",le=\"1\"} 1\n", /* half of it */
    SECONDS "a_seconds{n=\"x\"} 1\n",                        /* OpenMetrics' */
    "# EOF\n",
};

static const char *const good_open[] = {
    "# EOF\n",
    "# HELP a Some.\n# TYPE a counter\na_total{n=\"x\"} 1\n# EOF\n",
    SECONDS "a_seconds{n=\"x\"} 1\n# EOF\n",
};

static const char *const bad_open[] = {
    "",
    GAUGE "a{n=\"x\"} 1\n",                /* no EOF */
    "# EOF\n# EOF\n",                      /* two */
    "# EOF\n" GAUGE "a{n=\"x\"} 1\n",      /* too early */
    COUNTER "a_total{n=\"x\"} 1\n# EOF\n", /* a family with _total */
    "# HELP a Some.\n# TYPE a counter\na{n=\"x\"} 1\n# EOF\n",
    GAUGE "# UNIT a seconds\na{n=\"x\"} 1\n# EOF\n", /* not in its name */
};

#define EACH(list, format, expected)                                           \
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)                  \
        if ((exposition_check(list[i], strlen(list[i]), format) == NULL) !=    \
            (expected))                                                        \
    fail_msg("%s\nshould%s be accepted: %s", list[i],                          \
             (expected) ? "" : " not",                                         \
             exposition_check(list[i], strlen(list[i]), format))

/* O-41 */
TEST(reader_accepts_what_is_right_and_nothing_else)
{
    EACH(good, WQ_TEXT_PROMETHEUS, true);
    EACH(bad, WQ_TEXT_PROMETHEUS, false);
    EACH(good_open, WQ_TEXT_OPENMETRICS, true);
    EACH(bad_open, WQ_TEXT_OPENMETRICS, false);
}

TEST(reader_finds_values)
{
    const char *text = GAUGE "a{n=\"x\"} 1\na{n=\"y\"} 0.25\n";

    assert_string_equal(exposition_value(text, "a{n=\"y\"}"), "0.25");
    assert_null(exposition_value(text, "a{n=\"z\"}"));
    assert_null(exposition_value(text, "a"));
    assert_int_equal(exposition_count(text, "a{n=\"x\"}"), 1);
    assert_int_equal(exposition_count(text, "a{n=\"y\"}"), -1);
}

WQ_TESTS(test(reader_accepts_what_is_right_and_nothing_else),
         test(reader_finds_values));
