/* SPDX-License-Identifier: MIT */
/* test_workers.c: does a pool keep the queue's promises while everything around
 * it changes?
 *
 * Producers add, pools are resized, stopped and started, gets are interrupted,
 * handlers fail, return later and take too long. In the end no key was HELD
 * twice, no add was missed, the stats count every run, and no thread or call
 * hangs.
 */
#include "stress/tracking.h"

#include <wq/limiter.h>
#include <wq/workers.h>

enum { KEYS = 50, PRODUCERS = 2 };

static wq_queue      *q;
static wq_workers    *lasting; /* the pool that stays */
static struct tracked known[KEYS];
static atomic_ulong   runs; /* of pools */

/* ---- the callbacks ------------------------------------------------------- */

/* Random choices of a run, which may happen in any thread. */
static struct dice
dice_of_run(void)
{
    return dice_from(atomic_fetch_add(&runs, 1));
}

static wq_result
handle(void *ctx, const wq_item *item)
{
    struct tracked *key = &known[number_of(item->key)];
    struct dice     dice = dice_of_run();

    (void)ctx;
    begin_loan(key, item);
    if (dice_roll(&dice, 50) == 0)
        nap_ns(200 * US);
    if (dice_roll(&dice, 400) == 0 &&
        wq_workers_resize(lasting, 1 + (unsigned)dice_roll(&dice, 5)) ==
            WQ_EINVAL)
        broken("resize in a handler: %s", wq_err_name(WQ_EINVAL));
    end_loan(key);
    switch (dice_roll(&dice, 12)) {
    case 0:
        return wq_result_retry();
    case 1:
        return wq_result_after(1 + (int64_t)dice_roll(&dice, 300 * US));
    case 2:
        return wq_result_drop();
    default:
        return wq_result_done();
    }
}

static void
on_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    (void)ctx;
    (void)retries;
    expect_equal("length of a dropped key", sizeof(uint64_t), key.len);
    if (why != WQ_EDROPPED && why != WQ_EGIVENUP && why != WQ_ESHUTDOWN)
        broken("on_drop: %s", wq_err_name(why));
}

static void
on_stuck(void *ctx, const wq_item *item, int64_t running_ns)
{
    (void)ctx;
    expect_equal("length of a stuck key", sizeof(uint64_t), item->key.len);
    expect(running_ns >= 100 * US, "on_stuck: at least", 100 * US,
           (uint64_t)running_ns);
}

static wq_workers *
start_pool(unsigned threads)
{
    wq_workers *pool = NULL;

    expect_err(
        "start", WQ_OK,
        wq_workers_start(q,
                         WQ_WORKERS(.threads = threads, .handler = handle,
                                    .name = "stress", .on_drop = on_drop,
                                    .item_deadline_ns = 100 * US,
                                    .on_stuck = on_stuck),
                         &pool));
    return pool;
}

/* ---- other threads ------------------------------------------------------- */

static void *
produce(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        const uint64_t number = dice_roll(&dice, KEYS);
        const uint64_t version = want(&known[number]);

        expect_err("add", WQ_OK, wq_add(q, wq_u64(&number)));
        accept(&known[number], version);
        if (dice_roll(&dice, 100) == 0)
            nap_ns(100 * US);
    }
    return unused;
}

static void *
interrupt(void *unused)
{
    while (!atomic_load(&stop)) {
        wq_interrupt(q);
        nap_ns(70 * US);
    }
    return unused;
}

/* A worker thread of the program, in addition to the pools. */
static void *
work_alone(void *unused)
{
    wq_item *item;
    wq_err   err;

    while ((err = wq_get(q, &item)) != WQ_ESHUTDOWN) {
        if (err == WQ_EINTERRUPTED)
            continue;
        (void)handle(NULL, item);
        atomic_fetch_sub(&runs, 1); /* no pool counts it */
        expect_err("done", WQ_OK, wq_done(q, item));
    }
    return unused;
}

static void *
resize(void *unused)
{
    struct dice dice = own_dice();

    while (!atomic_load(&stop)) {
        expect_err("resize", WQ_OK,
                   wq_workers_resize(lasting, (unsigned)dice_roll(&dice, 7)));
        expect_at_most("threads", 6, wq_workers_count(lasting));
        if (dice_roll(&dice, 4) == 0)
            nap_ns(300 * US);
    }
    return unused;
}

static uint64_t
count_results(const wq_workers *pool)
{
    wq_workers_stats counts = {.size = sizeof counts};

    expect_err("stats", WQ_OK, wq_workers_read_stats(pool, &counts));
    expect_equal("busy", 0, counts.busy);
    expect_equal("threads", 0, counts.threads);
    expect_equal("errors", 0, counts.errors);
    return counts.done + counts.retried + counts.delayed + counts.dropped;
}

static void
open_run(void)
{
    memset(known, 0, sizeof known);
    atomic_store(&runs, 0);
    atomic_store(&stop, false);
    /* WAITING keys are worked on, too: a key is not dropped unseen. */
    expect_err(
        "create", WQ_OK,
        wq_create(WQ_CONFIG(.waiting = WQ_WAITING_KEEP,
                            .limiter = wq_limiter_exponential(US, 100 * US),
                            .max_retries = 3),
                  &q));
    lasting = start_pool(3);
}

/* All adds were seen, and all pools together report all runs; those that are
 * gone reported `results`. */
static void
close_run(struct crowd *producers, struct crowd *workers, uint64_t results)
{
    atomic_store(&stop, true);
    crowd_join(producers);
    expect_err("resize", WQ_OK, wq_workers_resize(lasting, 3));
    expect_err("drain", WQ_OK, wq_workers_drain(lasting, WQ_FOREVER));
    crowd_join(workers);
    expect_all_seen(known, KEYS);
    expect_equal("results", runs, results + count_results(lasting));
    expect_err("destroy", WQ_OK, wq_workers_destroy(lasting));
    wq_destroy(q);
}

/* PW-14 PW-15 PW-18 PW-21 */
TEST(resizes_and_interrupts_lose_nothing)
{
    struct crowd others = {.n = 0}, workers = {.n = 0};

    open_run();
    crowd_start(&others, PRODUCERS, produce, NULL);
    crowd_start(&others, 1, interrupt, NULL);
    crowd_start(&others, 1, resize, NULL);
    crowd_start(&workers, 1, work_alone, NULL);
    nap_ns(share_or_ns(SECOND));
    close_run(&others, &workers, 0);
}

static uint64_t results; /* of pools that are gone */

static void
start_and_stop_pool(struct dice *dice)
{
    wq_workers *pool = start_pool(1 + (unsigned)dice_roll(dice, 4));

    if (dice_roll(dice, 2))
        nap_ns((int64_t)dice_roll(dice, 500) * US);
    expect_err("stop", WQ_OK, wq_workers_stop(pool));
    results += count_results(pool);
    expect_err("destroy", WQ_OK, wq_workers_destroy(pool));
}

/* PW-10 PW-15 PW-21 */
TEST(pools_that_come_and_go_lose_nothing)
{
    struct crowd producers = {.n = 0}, none = {.n = 0};

    open_run();
    results = 0;
    crowd_start(&producers, PRODUCERS, produce, NULL);
    (void)repeat(start_and_stop_pool);
    close_run(&producers, &none, results);
}

/* ---- a resize between a handler and the next get ------------------------- */

static atomic_bool handled;
static wq_workers *shrinking;

static wq_result
set_handled(void *ctx, const wq_item *item)
{
    (void)ctx;
    (void)item;
    atomic_store(&handled, true);
    return wq_result_done();
}

static size_t
count_threads(const wq_workers *pool)
{
    wq_workers_stats counts = {.size = sizeof counts};

    (void)wq_workers_read_stats(pool, &counts);
    return counts.threads;
}

static void
shrink_after_handler(struct dice *dice)
{
    atomic_store(&handled, false);
    expect_err("resize", WQ_OK, wq_workers_resize(shrinking, 1));
    expect_err("add", WQ_OK, wq_add_str(q, "foo"));
    while (!atomic_load(&handled))
        ;
    for (volatile size_t i = dice_roll(dice, 400); i > 0; i--)
        ;
    expect_err("resize", WQ_OK, wq_workers_resize(shrinking, 0));
    while (count_threads(shrinking) > 0) /* the watchdog ends it */
        ;
}

/* PW-14: the order of phase and epoch (src/workers/pool.h). A worker goes from
 * its handler to its next get while the pool shrinks: either the worker sees
 * that, or the pool sees the worker. */
TEST(pool_that_shrinks_before_the_next_get_ends_the_worker)
{
    expect_err("create", WQ_OK, wq_create(NULL, &q));
    expect_err(
        "start", WQ_OK,
        wq_workers_start(q, WQ_WORKERS(.threads = 1, .handler = set_handled),
                         &shrinking));
    (void)repeat(shrink_after_handler);
    expect_err("destroy", WQ_OK, wq_workers_destroy(shrinking));
    wq_destroy(q);
}

/* ---- parallelize --------------------------------------------------------- */

enum { PIECES_MAX = 500 };

static atomic_uint visits[PIECES_MAX];

static void
visit(void *ctx, size_t piece)
{
    (void)ctx;
    atomic_fetch_add(&visits[piece], 1);
}

static void
visit_pieces(struct dice *dice)
{
    const size_t pieces = dice_roll(dice, PIECES_MAX + 1);
    const size_t chunk = dice_roll(dice, 20);
    const int    workers = 1 + (int)dice_roll(dice, 6);

    expect_err("parallelize", WQ_OK,
               wq_parallelize(workers, pieces, visit, NULL,
                              WQ_PARALLEL(.chunk = chunk)));
    for (size_t i = 0; i < PIECES_MAX; i++)
        expect_equal("visits of a piece", i < pieces,
                     atomic_exchange(&visits[i], 0));
}

/* P-01 */
REPEAT(parallelize_visits_each_piece_once, visit_pieces)

WQ_TESTS(test(resizes_and_interrupts_lose_nothing),
         test(pools_that_come_and_go_lose_nothing),
         test(pool_that_shrinks_before_the_next_get_ends_the_worker),
         test(parallelize_visits_each_piece_once));
