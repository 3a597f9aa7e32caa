/* SPDX-License-Identifier: MIT */
/* pool.h: what do tests of worker pools do so often that it has a name?
 *
 * with_pool(...) makes a queue for a test, in `pool`, and ends the workers that
 * the test has started. Handlers and on_stuck() wait until the test lets them
 * return:
 *
 *     start_busy(2, "foo bar");         two handlers run
 *     let(1);                           one of them returns
 *     ...
 *     end();                            all return, and the workers are gone
 *     assert_int_equal(pool.last.done, 2);
 */
#ifndef WQ_BEHAVIOUR_POOL_H
#define WQ_BEHAVIOUR_POOL_H

#include "timed.h"

#include <stdatomic.h>

#include <wq/limiter.h>
#include <wq/workers.h>

#include "support/checkpoint.h"

static struct {
    struct timed *t; /* a fake clock; only use_limiter() gives it the queue */
    wq_queue     *q; /* t->q */
    wq_workers   *workers;               /* NULL: not started, or ended */
    struct checkpoint handlers, reports; /* reports are calls of on_stuck() */
    wq_result         result;            /* of handlers */
    struct tally      drops;             /* calls of on_drop() */
    atomic_int        drop_why;          /* of the last one */
    atomic_uint       drop_retries;      /* likewise */
    atomic_llong      running_ns;        /* of the last report */
    atomic_int        now, most; /* handlers that run; most at the same time */
    atomic_int        wrong;     /* a callback found an error: its line */
    wq_workers_stats  last;      /* when the workers ended */
} pool;

/* ---- callbacks: ctx is &pool --------------------------------------------- */

static inline wq_result
handle(void *ctx, const wq_item *item)
{
    const int now = atomic_fetch_add(&pool.now, 1) + 1;
    int       most = atomic_load(&pool.most);

    if (ctx != &pool || !item->key.len)
        pool.wrong = __LINE__;
    while (now > most && !atomic_compare_exchange_weak(&pool.most, &most, now))
        ;
    checkpoint_pass(&pool.handlers);
    atomic_fetch_sub(&pool.now, 1);
    return pool.result;
}

static inline void
note_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    if (ctx != &pool || !key.len)
        pool.wrong = __LINE__;
    pool.drop_why = (int)why;
    pool.drop_retries = retries;
    tally_add(&pool.drops, 1);
}

static inline void
note_stuck(void *ctx, const wq_item *item, int64_t running_ns)
{
    pool.running_ns = running_ns;
    checkpoint_pass(&pool.reports);
    /* The handler may have returned meanwhile; the key is still valid. */
    if (ctx != &pool || item->key.len != 3)
        pool.wrong = __LINE__;
}

/* ---- workers ------------------------------------------------------------- */

/* Start the workers; the default handler is handle(). */
static inline void
start(wq_workers_config *config)
{
    config->ctx = &pool;
    if (!config->handler)
        config->handler = handle;
    assert_err(wq_workers_start(pool.q, config, &pool.workers), WQ_OK);
    assert_non_null(pool.workers);
}

/* Spaces separate the keys. */
static inline void
add_keys(const char *keys)
{
    for (size_t len; *keys; keys += len + (keys[len] == ' ')) {
        len = strcspn(keys, " ");
        assert_err(wq_add(pool.q, wq_bytes(keys, len)), WQ_OK);
    }
}

/* `n` handlers have begun since the start. */
static inline void
await_begun(unsigned n)
{
    tally_await(&pool.handlers.begun, n);
}

static inline unsigned
begun(void)
{
    return tally_read(&pool.handlers.begun);
}

/* Start `threads` workers and add keys. Returns when all workers, or workers for
 * all keys, are in their handlers. */
static inline void
start_busy(unsigned threads, const char *keys)
{
    unsigned n = 1;

    for (const char *at = keys; *at; at++)
        n += *at == ' ';
    start(WQ_WORKERS(.threads = threads));
    add_keys(keys);
    await_begun(n < threads ? n : threads);
}

/* `n` more handlers may return. */
static inline void
let(unsigned n)
{
    tally_add(&pool.handlers.allowed, n);
}

/* Handlers return without waiting. */
static inline void
let_all(void)
{
    let(CHECKPOINT_OPEN);
}

static inline void
let_reports(void)
{
    tally_add(&pool.reports.allowed, CHECKPOINT_OPEN);
}

static inline void
pass(int64_t ns)
{
    step(pool.t, ns);
}

/* The handler of "foo" returns while a report on it, made after 10 ms, is in
 * progress. */
static inline void
end_handler_while_it_is_reported(void)
{
    add_keys("foo");
    await_begun(1);
    await_sleepers(pool.t, 1);
    pass(10 * MS);
    tally_await(&pool.reports.begun, 1);
    let(1);
    tally_await(&pool.handlers.ended, 1);
}

static inline void
resize(unsigned threads)
{
    assert_err(wq_workers_resize(pool.workers, threads), WQ_OK);
}

static inline wq_err
drain_within(int64_t timeout_ns)
{
    return wq_workers_drain(pool.workers, timeout_ns);
}

/* Stop the workers and destroy them. */
static inline void
end(void)
{
    let_all();
    let_reports();
    assert_err(wq_workers_stop(pool.workers), WQ_OK);
    pool.last.size = sizeof pool.last;
    assert_err(wq_workers_read_stats(pool.workers, &pool.last), WQ_OK);
    assert_err(wq_workers_destroy(pool.workers), WQ_OK);
    pool.workers = NULL;
    assert_int_equal(pool.wrong, 0);
}

/* ---- the fixture --------------------------------------------------------- */

/* An entry of WQ_TESTS() for a test of a pool. */
#define with_pool(name) test_with(name, pool_setup, pool_teardown)

static inline int
pool_setup(void **state)
{
    (void)state;
    memset(&pool, 0, sizeof pool);
    pool.t = timed_begin(0);
    pool.q = pool.t->q = open_queue(NULL);
    pool.handlers = pool.reports = (struct checkpoint)CHECKPOINT_INIT;
    pool.drops = (struct tally)TALLY_INIT;
    return 0;
}

static inline int
pool_teardown(void **state)
{
    (void)state;
    if (pool.workers)
        end();
    timed_destroy(pool.t);
    return 0;
}

/* Replace the queue by one with this config; it may use the fake clock. */
static inline void
use_queue(wq_config *config)
{
    wq_destroy(pool.q);
    pool.q = pool.t->q = open_queue(config);
}

/* The delays of retries are 5 ms, 10 ms, ... on the fake clock. */
static inline void
use_limiter(unsigned max_retries)
{
    use_queue(WQ_CONFIG(.clock = pool.t->clock, .max_retries = max_retries,
                        .limiter = wq_limiter_exponential(5 * MS, 1000 * MS)));
}

/* ---- what can be seen ---------------------------------------------------- */

static inline wq_workers_stats
stats_of(const wq_workers *workers)
{
    wq_workers_stats counts = {.size = sizeof counts};

    assert_err(wq_workers_read_stats(workers, &counts), WQ_OK);
    return counts;
}

static inline wq_workers_stats
pool_stats(void)
{
    return stats_of(pool.workers);
}

static inline void
assert_threads(size_t threads, size_t busy)
{
    assert_int_equal(pool_stats().threads, threads);
    assert_int_equal(pool_stats().busy, busy);
}

static inline bool
threads_are(void *n)
{
    return pool_stats().threads == *(size_t *)n;
}

static inline void
await_threads(size_t n)
{
    await_that(threads_are, &n, "workers have ended");
}

static inline bool
is_idle(void *unused)
{
    (void)unused;
    return pool_stats().busy == 0;
}

static inline void
await_idle(void)
{
    await_that(is_idle, NULL, "all keys are done");
}

/* ---- other threads ------------------------------------------------------- */

static inline int
run_stop(struct worker *self)
{
    (void)self;
    return (int)wq_workers_stop(pool.workers);
}

static inline int
run_drain(struct worker *self)
{
    (void)self;
    return (int)drain_within(WQ_FOREVER);
}

/* run_stop or run_drain in a thread of its own, which is blocked. */
static inline struct worker *
start_blocked(int (*run)(struct worker *self))
{
    struct worker *w = worker_start(run, NULL);

    worker_await_blocked(w);
    return w;
}

#endif
