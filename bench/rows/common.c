/* SPDX-License-Identifier: MIT */
/* common.c: keys, time, random numbers and figures for all rows and sides. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"

static char  *keys;
static size_t key_len = KEY_LEN;

void
must(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "bench: %s failed; no figure is valid\n", what);
    exit(1);
}

void
bench_need(bool has)
{
    if (!has)
        exit(3);
}

/* ---- keys --------------------------------------------------------------- */

/* Without printf(), which would allocate in the rows that measure memory. */
void
bench_write_key(char text[KEY_LEN + 1], size_t i)
{
    memcpy(text, "namespace-0000/pod-000000000000", KEY_LEN + 1);
    for (size_t n = i % 1000, at = 13; n; n /= 10)
        text[at--] = (char)('0' + n % 10);
    for (size_t n = i, at = KEY_LEN - 1; n; n /= 10)
        text[at--] = (char)('0' + n % 10);
}

void
bench_make_keys(size_t n)
{
    bench_make_long_keys(n, KEY_LEN);
}

/* The short key is the end of the long one. */
void
bench_make_long_keys(size_t n, size_t len)
{
    keys = malloc(n * (len + 1));
    must(keys != NULL, "malloc");
    memset(keys, 'x', n * (len + 1));
    key_len = len;
    for (size_t i = 0; i < n; i++)
        bench_write_key(keys + i * (len + 1) + len - KEY_LEN, i);
}

wq_key
bench_key(size_t i)
{
    return (wq_key){keys + i * (key_len + 1), key_len};
}

size_t
bench_key_number(wq_key key)
{
    const char *text = key.data;
    size_t      n = 0;

    for (size_t at = KEY_LEN - 12; at < KEY_LEN; at++)
        n = n * 10 + (size_t)(text[at] - '0');
    return n;
}

/* ---- time and random numbers -------------------------------------------- */

double
bench_clock_ns(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double
bench_now_ns(void)
{
    return bench_clock_ns(CLOCK_MONOTONIC);
}

void
bench_sleep_ns(int64_t ns)
{
    const struct timespec t = {(time_t)(ns / 1000000000),
                               (long)(ns % 1000000000)};
    if (ns > 0)
        (void)nanosleep(&t, NULL);
}

/* Knuth's linear congruential generator; its upper half. */
uint64_t
bench_random(uint64_t *state)
{
    *state =
        *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 32;
}

/* ---- figures ------------------------------------------------------------ */

void
bench_print(const char *name, double value)
{
    printf("%s %.3f\n", name, value);
}

void
bench_print_timed(const struct side *s, void *(*create)(void), size_t n,
                  double (*time)(const struct side *s, void *q, size_t n))
{
    bench_make_keys(n);
    void *q = create();
    bench_print("ns", time(s, q, n));
    s->destroy(q);
}

static int
ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double
bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, ascending);
    return values[n / 2];
}

void
bench_print_spread(double *ns, size_t n)
{
    qsort(ns, n, sizeof *ns, ascending);
    bench_print("p50_ns", ns[n / 2]);
    bench_print("p99_ns", ns[n * 99 / 100]);
    bench_print("max_ns", ns[n - 1]);
}
