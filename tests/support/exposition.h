/* SPDX-License-Identifier: MIT */
/* exposition.h: can a scraper read this text, and which values does it have?
 *
 * A reader of Prometheus' text format 0.0.4 and of OpenMetrics 1.0.0 that is
 * stricter than any scraper. Beyond the formats it checks what wq promises: a
 * HELP and a TYPE for every family, no timestamps, exact decimal values, a
 * histogram's buckets in order and then its sum and count, and in the first
 * format names that promtool accepts.
 */
#ifndef WQ_TEST_EXPOSITION_H
#define WQ_TEST_EXPOSITION_H

#include <wq/metrics.h>

/* Returns NULL, or an error message with a line number (a thread-local
 * buffer). */
const char *exposition_check(const char *text, size_t len, wq_text format);

/* The value of a series, written as in the text: name{label="value"}; NULL if
 * it is missing (a thread-local buffer). */
const char *exposition_value(const char *text, const char *series);

/* The same as a whole number; -1 if it is missing or not a number. */
long long exposition_count(const char *text, const char *series);

#endif
