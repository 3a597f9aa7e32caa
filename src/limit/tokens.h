/* SPDX-License-Identifier: MIT */
/* tokens.h: how many tokens are there at a time, and when are there n more?
 *
 * The arithmetic of a token bucket and nothing else: it takes `now` and knows
 * no clock and no lock. The rate is apart from the level, so that many buckets
 * of one rate take sixteen bytes each.
 *
 * Every number is a double, computed by the same operations in the same order
 * as in golang.org/x/time/rate, so that the results are the same to the
 * nanosecond. That is why the steps stand in statements of their own: an
 * assignment rounds, and no compiler may fuse across it (T-04, T-05).
 *
 * Time does not go back: a `now` before the level's last change counts as that
 * time (T-17). All are O(1).
 */
#ifndef WQ_LIMIT_TOKENS_H
#define WQ_LIMIT_TOKENS_H

#include <stdbool.h>
#include <stdint.h>

/* How fast tokens come, and how many there can be. */
struct wq__rate {
    double  limit; /* tokens a second; 0 or less: none. WQ_RATE_INF */
    int64_t burst; /* not negative */
};

/* How many there are. */
struct wq__level {
    double  tokens;  /* at `last_ns`; below zero: reserved ahead; more than the
                        burst: as good as the burst */
    int64_t last_ns; /* when `tokens` was last written; INT64_MIN: never */
};

/* Is `limit` a number to reckon with? */
bool wq__rate_is_sound(double limit);

/* `ns` in seconds. */
double wq__seconds(int64_t ns);

/* How many tokens come in `ns`, and how many ns `tokens` take; WQ_FOREVER when
 * that is beyond all time. */
double  wq__rate_tokens(double limit, int64_t ns);
int64_t wq__rate_duration(double limit, double tokens);

/* A full bucket. */
struct wq__level wq__level_full(const struct wq__rate *rate);

/* `now`, or the level's last change if that is later. */
int64_t wq__level_time(const struct wq__level *level, int64_t now);

/* The tokens at `now`. */
double wq__level_at(const struct wq__rate *rate, const struct wq__level *level,
                    int64_t now);

/* Write down the tokens at `now`, before the rate changes. */
void wq__level_settle(const struct wq__rate *rate, struct wq__level *level,
                      int64_t now);

/* What became of a wish for tokens. */
enum wq__take {
    WQ__TAKE_OK,
    WQ__TAKE_TOO_MANY, /* more than the bucket ever holds */
    WQ__TAKE_TOO_LATE, /* they come, but after `max_wait` */
};

/* Take `n` tokens, not negative, that are there after at most `max_wait`. On
 * success `*time_to_act` says when they are: at `now` or later. Otherwise
 * nothing changes. At WQ_RATE_INF nothing ever changes. */
enum wq__take wq__level_take(const struct wq__rate *rate,
                             struct wq__level *level, int64_t now, int64_t n,
                             int64_t max_wait, int64_t *time_to_act);

/* Put `tokens` back; those that do not fit are not seen again. */
void wq__level_give(const struct wq__rate *rate, struct wq__level *level,
                    int64_t now, double tokens);

#endif
