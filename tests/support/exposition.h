/* SPDX-License-Identifier: MIT */
/* exposition.h: can a scraper read this text, and what does it say?
 *
 * A reader of Prometheus' text format 0.0.4 and of OpenMetrics 1.0.0 that is
 * stricter than any scraper. Beyond the formats it wants what we promise: a
 * HELP and a TYPE for every family, no time stamps, exact decimal values, a
 * histogram's buckets in order and then its sum and count, and in the first
 * format names that promtool does not complain about.
 */
#ifndef WQ_TEST_EXPOSITION_H
#define WQ_TEST_EXPOSITION_H

#include <wq/metrics.h>

/* NULL, or what is wrong, with the number of the line. (A buffer of the
 * thread.) */
const char *exposition_check(const char *text, size_t len, wq_text format);

/* The value of a series, written as in the text: name{label="value"}. NULL: it
 * is not there. (A buffer of the thread.) */
const char *exposition_value(const char *text, const char *series);

/* The same as a whole number; -1: it is not there, or is none. */
long long exposition_count(const char *text, const char *series);

#endif
