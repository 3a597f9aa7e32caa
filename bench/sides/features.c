/* SPDX-License-Identifier: MIT */
/* features.c: what does a feature cost, or save?
 *
 * Each row does the same work without and with a feature, in turn, round after
 * round; the ratio of the medians is the cost. One thread.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include <wq/metrics.h>

enum { KEYS = 100000, LAPS = 10, MOST = 101 };

static wq_registry *registry;

static void
add(wq_queue *q, size_t i)
{
    must(wq_add(q, bench_key(i)) == WQ_OK, "wq_add");
}

static void
get_and_done(wq_queue *q)
{
    wq_item *item;

    must(wq_get(q, &item) == WQ_OK, "wq_get");
    must(wq_done(q, item) == WQ_OK, "wq_done");
}

static void
fill(wq_queue *q)
{
    for (size_t i = 0; i < KEYS; i++)
        add(q, i);
}

static void
drain(wq_queue *q)
{
    for (size_t i = 0; i < KEYS; i++)
        get_and_done(q);
}

/* ---- one cycle after the other ------------------------------------------ */

static void
cycles(wq_queue *q)
{
    for (size_t i = 0; i < (size_t)KEYS * LAPS; i++) {
        add(q, i % 1000);
        get_and_done(q);
    }
}

static wq_queue *
plain(void)
{
    return bench_create(NULL);
}

static wq_queue *
measured(void)
{
    return bench_create(
        WQ_CONFIG(.name = "bench", .metrics = wq_registry_sink(registry)));
}

static wq_queue *
bounded(void)
{
    return bench_create(WQ_CONFIG(.max_len = KEYS));
}

/* ---- fill and drain ----------------------------------------------------- */

static void
fifo(wq_queue *q)
{
    for (int lap = 0; lap < LAPS; lap++) {
        fill(q);
        drain(q);
    }
}

/* Inlined, so that `levels` is a constant. */
static inline void
fill_with_priorities(wq_queue *q, size_t levels)
{
    for (int lap = 0; lap < LAPS; lap++) {
        for (size_t i = 0; i < KEYS; i++) {
            const wq_key key = bench_key(i);
            must(
                !wq_add_with(q, WQ_ADD(.priority = (int)(i % levels)), &key, 1),
                "wq_add_with");
        }
        drain(q);
    }
}

static void
one_priority(wq_queue *q)
{
    fill_with_priorities(q, 1);
}

static void
five_priorities(wq_queue *q)
{
    fill_with_priorities(q, 5);
}

static void
next(wq_queue *q)
{
    for (int lap = 0; lap < LAPS; lap++) {
        wq_item *item = NULL;

        fill(q);
        while (wq_next(q, 0, &item) == WQ_OK)
            ;
    }
}

static void
batches(wq_queue *q)
{
    for (int lap = 0; lap < LAPS; lap++) {
        for (size_t i = 0; i < KEYS; i += BATCH) {
            wq_key keys[BATCH];
            for (size_t k = 0; k < BATCH; k++)
                keys[k] = bench_key(i + k);
            must(!wq_add_with(q, NULL, keys, BATCH), "wq_add_with");
        }
        wq_item *items[BATCH];
        size_t   n;
        while (wq_get_many(q, items, BATCH, 0, &n) == WQ_OK)
            must(wq_done_many(q, items, n) == WQ_OK, "wq_done_many");
    }
}

/* ---- rows --------------------------------------------------------------- */

/* Without the feature: a plain queue and `base`. With it: `create` and `run`. */
static const struct feature {
    const char *name, *without, *with;
    void (*base)(wq_queue *q);
    wq_queue *(*create)(void);
    void (*run)(wq_queue *q);
} rows[] = {
    {"add, get, done: metrics", "off", "on", cycles, measured, cycles},
    {"add, get, done: bound", "none", "max_len", cycles, bounded, cycles},
    {"fill and drain 100 k: order", "FIFO", "5 priorities", fifo, plain,
     five_priorities},
    {"fill and drain 100 k: add", "wq_add", "wq_add_with", fifo, plain,
     one_priority},
    {"fill and drain 100 k: loop", "get, done", "wq_next", fifo, plain, next},
    {"fill and drain 100 k: keys at a time", "1", "32", fifo, plain, batches},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static double figures[ROWS][2][MOST];

static void
run_side(size_t r, size_t s, size_t round)
{
    wq_queue *q = s ? rows[r].create() : plain();

    const double begin = bench_now_ns();
    if (s)
        rows[r].run(q);
    else
        rows[r].base(q);
    figures[r][s][round] = (bench_now_ns() - begin) / (KEYS * LAPS);
    wq_destroy(q);
}

void
bench_features(size_t rounds)
{
    bench_make_keys(KEYS);
    must(rounds <= MOST && !wq_registry_create(&registry), "registry");
    for (size_t round = 0; round < rounds; round++)
        for (size_t r = 0; r < ROWS; r++)
            for (size_t s = 0; s < 2; s++)
                run_side(r, (s + round) % 2, round);

    printf("ns per key, medians of %zu rounds; the ratio is the cost "
           "of the second\n\n| row | without | with | ratio "
           "|\n|---|---|---|---|\n",
           rounds);
    for (size_t r = 0; r < ROWS; r++) {
        const double a = bench_median(figures[r][0], rounds);
        const double b = bench_median(figures[r][1], rounds);
        printf("| %-36s | %s: %.0f | %s: %.0f | %.2f |\n", rows[r].name,
               rows[r].without, a, rows[r].with, b, b / a);
    }
    wq_registry_destroy(registry);
}
