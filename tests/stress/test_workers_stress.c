/* SPDX-License-Identifier: MIT */
/* test_workers_stress.c: does a pool keep the queue's promises while everything
 * around it changes?
 *
 * Producers add, pools are resized, stopped and started, gets are interrupted,
 * handlers fail, come back later and take too long. What must hold in the end:
 * no key was in two hands, no add went unseen, every run is in the stats, and
 * no thread or call got stuck. WQ_STRESS_SECONDS says how long; the default is
 * 1.
 */
#include "support/wq_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <wq/limiter.h>
#include <wq/workers.h>

#define assert_err(actual, expected)                                           \
    assert_string_equal(wq_err_name((wq_err)(actual)), wq_err_name(expected))

enum { KEYS = 50, PRODUCERS = 2, US = 1000 };

struct key {
    atomic_uint added;   /* times it was added */
    unsigned    seen;    /* of these, by the last run; its holder's */
    atomic_bool running; /* in somebody's hands */
};

struct storm {
    wq_queue    *q;
    wq_workers  *pool; /* the one that stays */
    struct key   keys[KEYS];
    atomic_ulong runs, overlaps, drops, errors, reports;
    atomic_bool  over;
};

static unsigned
draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1664525U + 1013904223U;
    return (*seed >> 8) % below;
}

static int64_t
duration_ms(void)
{
    const char  *text = getenv("WQ_STRESS_SECONDS");
    const double seconds = text ? strtod(text, NULL) : 1.0;
    return (int64_t)(seconds * 1000);
}

static int64_t
now_ms(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void
rest(unsigned microseconds)
{
    const struct timespec t = {.tv_nsec = (long)microseconds * 1000};
    (void)nanosleep(&t, NULL);
}

/* ---- the callbacks ------------------------------------------------------- */

static wq_result
handle(void *ctx, const wq_item *item)
{
    struct storm *storm = ctx;
    uint64_t      number;

    memcpy(&number, item->key.data, sizeof number);
    struct key *key = &storm->keys[number];
    if (atomic_exchange(&key->running, true))
        atomic_fetch_add(&storm->overlaps, 1);
    key->seen = atomic_load(&key->added);

    const unsigned long run = atomic_fetch_add(&storm->runs, 1);
    unsigned            seed = (unsigned)run;
    if (draw(&seed, 50) == 0)
        rest(200);
    if (draw(&seed, 400) == 0 &&
        wq_workers_resize(storm->pool, 1 + draw(&seed, 5)) == WQ_EINVAL)
        atomic_fetch_add(&storm->errors, 1);

    atomic_store(&key->running, false);
    switch (draw(&seed, 12)) {
    case 0:
        return wq_result_retry();
    case 1:
        return wq_result_after(1 + draw(&seed, 300 * US));
    case 2:
        return wq_result_drop();
    default:
        return wq_result_done();
    }
}

static void
on_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    struct storm *storm = ctx;

    (void)retries;
    atomic_fetch_add(&storm->drops, 1);
    if (key.len != sizeof(uint64_t) ||
        (why != WQ_EDROPPED && why != WQ_EGIVENUP && why != WQ_ESHUTDOWN))
        atomic_fetch_add(&storm->errors, 1);
}

static void
on_stuck(void *ctx, const wq_item *item, int64_t running_ns)
{
    struct storm *storm = ctx;

    atomic_fetch_add(&storm->reports, 1);
    if (item->key.len != sizeof(uint64_t) || running_ns < 100 * US)
        atomic_fetch_add(&storm->errors, 1);
}

static wq_workers *
start(struct storm *storm, unsigned threads)
{
    wq_workers *pool = NULL;

    assert_err(wq_workers_start(storm->q,
                                WQ_WORKERS(.threads = threads,
                                           .handler = handle, .ctx = storm,
                                           .name = "storm", .on_drop = on_drop,
                                           .item_deadline_ns = 100 * US,
                                           .on_stuck = on_stuck),
                                &pool),
               WQ_OK);
    return pool;
}

/* ---- the weather --------------------------------------------------------- */

static void *
produce(void *arg)
{
    struct storm *storm = arg;
    unsigned      seed = (unsigned)(uintptr_t)&seed;

    while (!atomic_load(&storm->over)) {
        const uint64_t number = draw(&seed, KEYS);

        atomic_fetch_add(&storm->keys[number].added, 1);
        if (wq_add(storm->q, wq_u64(&number)) != WQ_OK)
            atomic_fetch_add(&storm->errors, 1);
        if (draw(&seed, 100) == 0)
            rest(100);
    }
    return NULL;
}

static void *
interrupt(void *arg)
{
    struct storm *storm = arg;

    while (!atomic_load(&storm->over)) {
        wq_interrupt(storm->q);
        rest(70);
    }
    return NULL;
}

/* A worker of the user's own, beside the pools. */
static void *
work_alone(void *arg)
{
    struct storm *storm = arg;
    wq_item      *item;
    wq_err        err;

    while ((err = wq_get(storm->q, &item)) != WQ_ESHUTDOWN) {
        if (err == WQ_EINTERRUPTED)
            continue;
        (void)handle(storm, item);
        atomic_fetch_sub(&storm->runs, 1); /* no pool counts it */
        if (wq_done(storm->q, item) != WQ_OK)
            atomic_fetch_add(&storm->errors, 1);
    }
    return NULL;
}

static void *
resize(void *arg)
{
    struct storm *storm = arg;
    unsigned      seed = 1;

    while (!atomic_load(&storm->over)) {
        if (wq_workers_resize(storm->pool, draw(&seed, 7)) != WQ_OK)
            atomic_fetch_add(&storm->errors, 1);
        if (wq_workers_count(storm->pool) > 6)
            atomic_fetch_add(&storm->errors, 1);
        if (draw(&seed, 4) == 0)
            rest(300);
    }
    return NULL;
}

static uint64_t
count_results(const wq_workers *pool)
{
    wq_workers_stats counts = {.size = sizeof counts};

    assert_err(wq_workers_read_stats(pool, &counts), WQ_OK);
    assert_int_equal(counts.busy, 0);
    assert_int_equal(counts.threads, 0);
    assert_int_equal(counts.errors, 0);
    return counts.done + counts.retried + counts.delayed + counts.dropped;
}

static void
assert_calm(struct storm *storm)
{
    for (int i = 0; i < KEYS; i++)
        if (storm->keys[i].seen != storm->keys[i].added)
            fail_msg("key %d: expected %u adds to be seen, got %u", i,
                     storm->keys[i].added, storm->keys[i].seen);
    assert_int_equal(storm->overlaps, 0);
    assert_int_equal(storm->errors, 0);
}

static void
begin(struct storm *storm)
{
    memset(storm, 0, sizeof *storm);
    /* Waiting keys are worked on, too: what is dropped was seen. */
    assert_err(
        wq_create(WQ_CONFIG(.waiting = WQ_WAITING_KEEP,
                            .limiter = wq_limiter_exponential(US, 100 * US),
                            .max_retries = 3),
                  &storm->q),
        WQ_OK);
    storm->pool = start(storm, 3);
}

/* PW-14 PW-15 PW-18 PW-21 */
TEST(resizes_and_interrupts_lose_nothing)
{
    static struct storm storm;
    pthread_t           threads[PRODUCERS + 3];
    int                 n = 0;

    begin(&storm);
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&threads[n++], NULL, produce, &storm),
                         0);
    assert_int_equal(pthread_create(&threads[n++], NULL, interrupt, &storm), 0);
    assert_int_equal(pthread_create(&threads[n++], NULL, resize, &storm), 0);
    assert_int_equal(pthread_create(&threads[n++], NULL, work_alone, &storm),
                     0);

    const int64_t end = now_ms() + duration_ms();
    while (now_ms() < end)
        rest(1000);
    atomic_store(&storm.over, true);
    for (int i = 0; i < n - 1; i++)
        (void)pthread_join(threads[i], NULL);
    assert_err(wq_workers_resize(storm.pool, 3), WQ_OK);
    assert_err(wq_workers_drain(storm.pool, WQ_FOREVER), WQ_OK);
    (void)pthread_join(threads[n - 1], NULL);

    assert_calm(&storm);
    assert_int_equal(count_results(storm.pool), storm.runs);
    assert_err(wq_workers_destroy(storm.pool), WQ_OK);
    wq_destroy(storm.q);
}

/* PW-10 PW-15 PW-21 */
TEST(pools_that_come_and_go_lose_nothing)
{
    static struct storm storm;
    pthread_t           producers[PRODUCERS];
    uint64_t            results = 0;
    unsigned            seed = 7;

    begin(&storm);
    for (int i = 0; i < PRODUCERS; i++)
        assert_int_equal(pthread_create(&producers[i], NULL, produce, &storm),
                         0);
    const int64_t end = now_ms() + duration_ms();
    while (now_ms() < end) {
        wq_workers *pool = start(&storm, 1 + draw(&seed, 4));

        if (draw(&seed, 2))
            rest(draw(&seed, 500));
        assert_err(wq_workers_stop(pool), WQ_OK);
        results += count_results(pool);
        assert_err(wq_workers_destroy(pool), WQ_OK);
    }
    atomic_store(&storm.over, true);
    for (int i = 0; i < PRODUCERS; i++)
        (void)pthread_join(producers[i], NULL);
    assert_err(wq_workers_resize(storm.pool, 3), WQ_OK);
    assert_err(wq_workers_drain(storm.pool, WQ_FOREVER), WQ_OK);

    assert_calm(&storm);
    assert_int_equal(results + count_results(storm.pool), storm.runs);
    assert_err(wq_workers_destroy(storm.pool), WQ_OK);
    wq_destroy(storm.q);
}

/* ---- one moment, again and again ------------------------------------------- */

static wq_result
raise_flag(void *ctx, const wq_item *item)
{
    (void)item;
    atomic_store((atomic_bool *)ctx, true);
    return wq_result_done();
}

static size_t
count_threads(const wq_workers *pool)
{
    wq_workers_stats counts = {.size = sizeof counts};

    (void)wq_workers_read_stats(pool, &counts);
    return counts.threads;
}

/* PW-14: the order of phase and epoch (src/workers/pool.h). A worker goes from
 * its handler to its next get while the pool shrinks: it must see that, or be
 * seen. */
TEST(shrinking_between_a_handler_and_the_next_get_is_not_missed)
{
    atomic_bool  flag;
    wq_queue    *q;
    wq_workers  *pool;
    unsigned     seed = 3;
    volatile int idle = 0;

    assert_err(wq_create(NULL, &q), WQ_OK);
    assert_err(wq_workers_start(q,
                                WQ_WORKERS(.threads = 1, .ctx = &flag,
                                           .handler = raise_flag),
                                &pool),
               WQ_OK);
    const int64_t end = now_ms() + duration_ms();
    while (now_ms() < end) {
        atomic_store(&flag, false);
        assert_err(wq_workers_resize(pool, 1), WQ_OK);
        assert_err(wq_add_str(q, "foo"), WQ_OK);
        while (!atomic_load(&flag))
            ;
        for (unsigned n = draw(&seed, 400); n > 0; n--)
            idle++;
        assert_err(wq_workers_resize(pool, 0), WQ_OK);
        const int64_t limit = now_ms() + 10000;
        while (count_threads(pool) > 0)
            if (now_ms() > limit)
                fail_msg("a worker waited 10 s for nothing");
    }
    assert_err(wq_workers_destroy(pool), WQ_OK);
    wq_destroy(q);
}

static void
visit(void *ctx, size_t piece)
{
    atomic_fetch_add(&((atomic_uint *)ctx)[piece], 1);
}

/* P-01 */
TEST(parallelize_visits_each_piece_once_however_it_is_cut)
{
    enum { MOST = 500 };
    static atomic_uint visits[MOST];
    unsigned           seed = 11, rounds = 0;
    const int64_t      end = now_ms() + duration_ms();

    while (now_ms() < end) {
        const size_t pieces = draw(&seed, MOST + 1);
        const size_t chunk = draw(&seed, 20);
        const int    workers = 1 + (int)draw(&seed, 6);

        assert_err(wq_parallelize(workers, pieces, visit, visits,
                                  WQ_PARALLEL(.chunk = chunk)),
                   WQ_OK);
        rounds++;
        for (size_t i = 0; i < MOST; i++) {
            const unsigned got = atomic_exchange(&visits[i], 0);
            if (got != (i < pieces))
                fail_msg("round %u, piece %zu of %zu: expected %d, got %u",
                         rounds, i, pieces, i < pieces, got);
        }
    }
}

WQ_TESTS(test(resizes_and_interrupts_lose_nothing),
         test(pools_that_come_and_go_lose_nothing),
         test(shrinking_between_a_handler_and_the_next_get_is_not_missed),
         test(parallelize_visits_each_piece_once_however_it_is_cut));
