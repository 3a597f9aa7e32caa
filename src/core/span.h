/* SPDX-License-Identifier: MIT */
/* span.h: what are the sum and the difference of two times, without overflow?
 *
 * They stop at the ends of int64_t instead of wrapping. A few instructions
 * each.
 */
#ifndef WQ_CORE_SPAN_H
#define WQ_CORE_SPAN_H

#include <stdint.h>

static inline int64_t
wq__span_add(int64_t a, int64_t b)
{
    if (b > 0 && a > INT64_MAX - b)
        return INT64_MAX;
    if (b < 0 && a < INT64_MIN - b)
        return INT64_MIN;
    return a + b;
}

static inline int64_t
wq__span_sub(int64_t a, int64_t b)
{
    if (b < 0 && a > INT64_MAX + b)
        return INT64_MAX;
    if (b > 0 && a < INT64_MIN + b)
        return INT64_MIN;
    return a - b;
}

/* The time from one moment to a later one; 0 if it is not later. */
static inline int64_t
wq__span_between(int64_t from, int64_t to)
{
    return to > from ? wq__span_sub(to, from) : 0;
}

/* The time until a deadline; WQ_FOREVER stays WQ_FOREVER. */
static inline int64_t
wq__span_until(int64_t now, int64_t at)
{
    return at == INT64_MAX ? at : wq__span_between(now, at);
}

#endif
