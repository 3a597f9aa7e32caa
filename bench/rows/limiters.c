/* SPDX-License-Identifier: MIT */
/* limiters.c: what does a failure cost? */
#include "bench.h"

enum { KEYS = 100000 };

/* A limiter alone: when of `n` keys, then forget of them all. */
static void
when_and_forget(const struct side *s, size_t n)
{
    const size_t keys = bench_scaled(n);
    int64_t      sum = 0;

    bench_need(s->limiter);
    bench_make_keys(keys);
    void *l = s->limiter();

    const double begin = bench_now_ns();
    for (size_t i = 0; i < keys; i++)
        sum += s->limiter_when(l, bench_key(i));
    for (size_t i = 0; i < keys; i++)
        s->limiter_forget(l, bench_key(i));
    bench_print("ns", (bench_now_ns() - begin) / (double)keys);
    must(sum == (int64_t)keys * 5000000, "first delay of each key");
    s->limiter_destroy(l);
}

static void
finish(const struct side *s, void *q)
{
    void *item;
    must(s->get(q, &item), "get");
    s->forget(q, s->key(item));
    s->done(q, item);
}

static double
time_all(const struct side *s, void *q, size_t keys)
{
    const double begin = bench_now_ns();
    for (size_t i = 0; i < keys; i++)
        s->add_rate_limited(q, bench_key(i));
    for (size_t i = 0; i < keys; i++)
        finish(s, q);
    return (bench_now_ns() - begin) / (double)keys;
}

static double
time_each(const struct side *s, void *q, size_t keys)
{
    const double begin = bench_now_ns();
    for (size_t i = 0; i < keys; i++) {
        s->add_rate_limited(q, bench_key(i));
        finish(s, q);
    }
    return (bench_now_ns() - begin) / (double)keys;
}

/* add_rate_limited of `n` keys, then get, forget and done of them all */
static void
all_limited(const struct side *s, size_t n)
{
    bench_need(s->create_limited);
    bench_print_timed(s, s->create_limited, bench_scaled(n), time_all);
}

/* the same, one key after the other: each waits for its nanosecond */
static void
each_limited(const struct side *s, size_t n)
{
    bench_need(s->create_limited);
    bench_print_timed(s, s->create_limited, bench_scaled(n), time_each);
}

const struct row rows_limiters[] = {
    {"limiter", when_and_forget, KEYS},
    {"limited", all_limited, KEYS},
    {"limited-each", each_limited, KEYS},
    {NULL, NULL, 0},
};
