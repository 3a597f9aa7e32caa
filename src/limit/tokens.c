/* SPDX-License-Identifier: MIT */
/* tokens.c: the arithmetic of a token bucket; see tokens.h. */
#include "limit/tokens.h"

#include <math.h>

#include <wq/limiter.h>

#include "core/span.h"

enum { NS_A_SECOND = 1000000000 };

/* The smallest double above INT64_MAX, which itself is no double. */
static const double beyond_int64 = 9223372036854775808.0;

bool
wq__rate_is_sound(double limit)
{
    return isfinite(limit);
}

double
wq__seconds(int64_t ns)
{
    const int64_t whole = ns / NS_A_SECOND;
    const double  part = (double)(ns % NS_A_SECOND) / 1e9;

    return (double)whole + part;
}

double
wq__rate_tokens(double limit, int64_t ns)
{
    return limit <= 0 ? 0 : wq__seconds(ns) * limit;
}

int64_t
wq__rate_duration(double limit, double tokens)
{
    if (limit <= 0)
        return WQ_FOREVER;
    const double seconds = tokens / limit;
    const double ns = seconds * 1e9;
    return ns >= beyond_int64 ? WQ_FOREVER : (int64_t)ns;
}

double
wq_rate_every(int64_t interval_ns)
{
    return interval_ns <= 0 ? WQ_RATE_INF : 1 / wq__seconds(interval_ns);
}

struct wq__fill
wq__fill_full(const struct wq__rate *rate)
{
    return (struct wq__fill){(double)rate->burst, INT64_MIN};
}

int64_t
wq__fill_time(const struct wq__fill *level, int64_t now)
{
    return now > level->last_ns ? now : level->last_ns;
}

double
wq__fill_at(const struct wq__rate *rate, const struct wq__fill *level,
            int64_t now)
{
    const int64_t time = wq__fill_time(level, now);
    const int64_t elapsed = wq__span_sub(time, level->last_ns);
    const double  gained = wq__rate_tokens(rate->limit, elapsed);
    const double  tokens = level->tokens + gained;
    const double  most = (double)rate->burst;

    return tokens > most ? most : tokens;
}

void
wq__fill_settle(const struct wq__rate *rate, struct wq__fill *level,
                int64_t now)
{
    level->tokens = wq__fill_at(rate, level, now);
    level->last_ns = wq__fill_time(level, now);
}

enum wq__take
wq__fill_take(const struct wq__rate *rate, struct wq__fill *level, int64_t now,
              int64_t n, int64_t max_wait, int64_t *time_to_act)
{
    if (rate->limit == WQ_RATE_INF) {
        *time_to_act = now;
        return WQ__TAKE_OK;
    }

    const int64_t time = wq__fill_time(level, now);
    const double  left = wq__fill_at(rate, level, now) - (double)n;
    const int64_t wait = left < 0 ? wq__rate_duration(rate->limit, -left) : 0;
    if (n > rate->burst)
        return WQ__TAKE_TOO_MANY;
    if (wait > max_wait)
        return WQ__TAKE_TOO_LATE;

    *level = (struct wq__fill){left, time};
    *time_to_act = wq__span_add(time, wait);
    /* The sum above is less than WQ_FOREVER on a clock with negative times. */
    if (wait == WQ_FOREVER)
        *time_to_act = WQ_FOREVER;
    return WQ__TAKE_OK;
}

void
wq__fill_give(const struct wq__rate *rate, struct wq__fill *level, int64_t now,
              double tokens)
{
    level->tokens = wq__fill_at(rate, level, now) + tokens;
    level->last_ns = wq__fill_time(level, now);
}
