/* SPDX-License-Identifier: MIT */
/* testing.c: how is a controller tested without sleeping? With a clock that the
 * test moves, and queries to the queue. */
#include <stdatomic.h>
#include <stdio.h>

#include <wq/clock.h>
#include <wq/inspect.h>
#include <wq/limiter.h>
#include <wq/workers.h>

/* begin: controller */
/* The program. The clock is a parameter: NULL in production. */
struct controller {
    wq_queue   *q;
    wq_workers *pool;
    atomic_int  outages; /* how many more runs fail */
};

static wq_result
reconcile(void *ctx, const wq_item *item)
{
    struct controller *c = ctx;

    (void)item;
    if (atomic_load(&c->outages) == 0)
        return wq_result_after(WQ_SECONDS(600)); /* success; run again then */
    atomic_fetch_sub(&c->outages, 1);
    return wq_result_retry();
}

static wq_err
create(struct controller *c, wq_clock *clock)
{
    return wq_create(
        WQ_CONFIG(.clock = clock, .limiter = wq_limiter_exponential(
                                      WQ_SECONDS(1), WQ_SECONDS(60))),
        &c->q);
}

static wq_err
start(struct controller *c)
{
    return wq_workers_start(
        c->q, WQ_WORKERS(.threads = 1, .handler = reconcile, .ctx = c),
        &c->pool);
}
/* end: controller */

/* begin: query */
/* Is the node in these states, and did it run so often? */
static int
expect(wq_queue *q, unsigned states, int64_t wait_ns, uint64_t runs)
{
    wq_key_info node = {.size = sizeof node};
    wq_stats    all = {.size = sizeof all};

    if (wq_read_key(q, wq_str("node-1"), &node) || wq_read_stats(q, &all))
        return 0;
    printf("run %llu times; comes in %lld s, %u failures\n",
           (unsigned long long)all.gets,
           (long long)(node.wait_ns / WQ_SECONDS(1)), node.requeues);
    return node.states == states && node.wait_ns == wait_ns && all.gets == runs;
}
/* end: query */

/* begin: test */
static int
test_backs_off_and_recovers(struct controller *c, wq_clock *clock)
{
    const unsigned failed = WQ_STATE_WAITING | WQ_STATE_BACKOFF;

    atomic_store(&c->outages, 2);
    if (wq_add_str(c->q, "node-1"))
        return 0;
    wq_clock_fake_wait_for_waiters(clock, 1); /* it ran, and now sleeps */
    if (!expect(c->q, failed, WQ_SECONDS(1), 1))
        return 0;
    wq_clock_fake_step(clock, WQ_SECONDS(1));
    wq_clock_fake_wait_for_waiters(clock, 1);
    if (!expect(c->q, failed, WQ_SECONDS(2), 2))
        return 0;
    wq_clock_fake_step(clock,
                       WQ_SECONDS(2) - 1); /* not a nanosecond too early */
    if (!expect(c->q, failed, 1, 2))
        return 0;
    wq_clock_fake_step(clock, 1);
    wq_clock_fake_wait_for_waiters(clock, 1);
    if (!expect(c->q, WQ_STATE_WAITING, WQ_SECONDS(600), 3))
        return 0;
    if (wq_add_str(c->q, "node-1")) /* added again before that */
        return 0;
    wq_clock_fake_wait_for_waiters(clock, 1);
    return expect(c->q, WQ_STATE_WAITING, WQ_SECONDS(600), 4);
}
/* end: test */

/* begin: steps */
/* The same without a thread: wq_work_one() is one step of a worker. */
static int
test_step_by_step(struct controller *c, wq_clock *clock)
{
    const wq_workers_config config = {
        .size = sizeof config, .handler = reconcile, .ctx = c};

    atomic_store(&c->outages, 1);
    if (wq_add_str(c->q, "node-1") || wq_work_one(c->q, &config, 0))
        return 0;
    if (!expect(c->q, WQ_STATE_WAITING | WQ_STATE_BACKOFF, WQ_SECONDS(1), 1))
        return 0;
    if (wq_work_one(c->q, &config, 0) != WQ_ETIMEDOUT) /* nothing is due */
        return 0;
    wq_clock_fake_step(clock, WQ_SECONDS(1));
    if (wq_work_one(c->q, &config, 0))
        return 0;
    return expect(c->q, WQ_STATE_WAITING, WQ_SECONDS(600), 2);
}
/* end: steps */

static int
with_threads(wq_clock *clock)
{
    struct controller c = {.outages = 0};
    int               right = 0;

    if (create(&c, clock))
        return 0;
    if (!start(&c)) {
        right = test_backs_off_and_recovers(&c, clock);
        wq_workers_destroy(c.pool);
    }
    wq_destroy(c.q);
    return right;
}

static int
without_threads(wq_clock *clock)
{
    struct controller c = {.outages = 0};

    if (create(&c, clock))
        return 0;
    const int right = test_step_by_step(&c, clock);
    wq_destroy(c.q);
    return right;
}

int
main(void)
{
    wq_clock *clock = wq_clock_fake_create(0);

    if (!clock)
        return 1;
    const int right = with_threads(clock) && without_threads(clock);
    wq_clock_destroy(clock);
    return right ? 0 : 1;
}
