/* SPDX-License-Identifier: MIT */
/* tokens.h: how many tokens are in a bucket, and when will there be n more?
 *
 * The arithmetic of a token bucket and nothing else: it takes `now` and knows
 * no clock and no lock. The rate is separate from the level, so that many
 * buckets of one rate take sixteen bytes each.
 *
 * Every number is a double, computed by the same operations in the same order
 * as in golang.org/x/time/rate, so that the results are the same to the
 * nanosecond. That is why each step is a statement of its own: an assignment
 * rounds, and a compiler may not fuse operations across it (T-04, T-05).
 *
 * Time does not go back: a `now` before the level's last change counts as that
 * time (T-17). All are O(1).
 */
#ifndef WQ_LIMIT_TOKENS_H
#define WQ_LIMIT_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/wq.h>

/* How fast tokens come, and how many there can be. */
struct wq__rate {
    double  limit; /* tokens a second; 0 or less: none. WQ_RATE_INF */
    int64_t burst; /* not negative */
};

/* How many there are. */
struct wq__fill {
    /* At `last_ns`; below 0: reserved ahead; above the burst: counts as the
     * burst. */
    double  tokens;
    int64_t last_ns; /* when `tokens` was last written; INT64_MIN: never */
};

/* Is `limit` finite? */
bool wq__rate_is_sound(double limit);

/* `ns` in seconds. */
double wq__seconds(int64_t ns);

/* How many tokens come in `ns`; how many ns `tokens` take, WQ_FOREVER if that
 * overflows. */
double  wq__rate_tokens(double limit, int64_t ns);
int64_t wq__rate_duration(double limit, double tokens);

/* A full bucket. */
struct wq__fill wq__fill_full(const struct wq__rate *rate);

/* `now`, or the level's last change if that is later. */
int64_t wq__fill_time(const struct wq__fill *level, int64_t now);

/* The tokens at `now`. */
double wq__fill_at(const struct wq__rate *rate, const struct wq__fill *level,
                   int64_t now);

/* Store the tokens at `now`. To be called before the rate changes. */
void wq__fill_settle(const struct wq__rate *rate, struct wq__fill *level,
                     int64_t now);

/* The result of wq__fill_take(). */
enum wq__take {
    WQ__TAKE_OK,
    WQ__TAKE_TOO_MANY, /* more than the bucket ever holds */
    WQ__TAKE_TOO_LATE, /* they come after `max_wait` */
};

/* Take `n` tokens, not negative, that are available after at most `max_wait`.
 * On success `*time_to_act` is when they are: at `now` or later. Otherwise
 * nothing changes. At WQ_RATE_INF nothing ever changes. */
enum wq__take wq__fill_take(const struct wq__rate *rate, struct wq__fill *level,
                            int64_t now, int64_t n, int64_t max_wait,
                            int64_t *time_to_act);

/* Put `tokens` back; those that exceed the burst are lost. */
void wq__fill_give(const struct wq__rate *rate, struct wq__fill *level,
                   int64_t now, double tokens);

#endif
