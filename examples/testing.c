/* SPDX-License-Identifier: MIT */
/* testing.c: how is a controller tested without sleeping? On a clock that the
 * test moves, by questions to the queue. */
#include <stdatomic.h>
#include <stdio.h>

#include <wq/clock.h>
#include <wq/inspect.h>
#include <wq/limiter.h>
#include <wq/workers.h>

#define S INT64_C(1000000000)

/* begin: controller */
/* What the program has anyway. It is given its clock: NULL in production. */
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
        return wq_result_after(600 * S); /* in order; look again then */
    atomic_fetch_sub(&c->outages, 1);
    return wq_result_retry();
}

static wq_err
start(struct controller *c, wq_clock *clock)
{
    const wq_err err =
        wq_create(WQ_CONFIG(.clock = clock,
                            .limiter = wq_limiter_exponential(1 * S, 60 * S)),
                  &c->q);

    if (err)
        return err;
    return wq_workers_start(
        c->q, WQ_WORKERS(.threads = 1, .handler = reconcile, .ctx = c),
        &c->pool);
}
/* end: controller */

/* begin: ask */
/* Does the node wait as it should, and was it run so often? */
static int
expect(wq_queue *q, unsigned states, int64_t wait_ns, uint64_t runs)
{
    wq_key_info node = {.size = sizeof node};
    wq_stats    all = {.size = sizeof all};

    if (wq_read_key(q, wq_str("node-1"), &node) || wq_read_stats(q, &all))
        return 0;
    printf("run %llu times; comes in %lld s, %u failures\n",
           (unsigned long long)all.gets, (long long)(node.wait_ns / S),
           node.requeues);
    return node.state == states && node.wait_ns == wait_ns && all.gets == runs;
}
/* end: ask */

/* begin: test */
static int
test_backs_off_and_recovers(struct controller *c, wq_clock *clock)
{
    const unsigned failed = WQ_STATE_WAITING | WQ_STATE_BACKOFF;

    atomic_store(&c->outages, 2);
    if (wq_add_str(c->q, "node-1"))
        return 0;
    wq_clock_fake_wait_for_waiters(clock, 1); /* it ran, and now sleeps */
    if (!expect(c->q, failed, 1 * S, 1))
        return 0;
    wq_clock_fake_step(clock, 1 * S);
    wq_clock_fake_wait_for_waiters(clock, 1);
    if (!expect(c->q, failed, 2 * S, 2))
        return 0;
    wq_clock_fake_step(clock, 2 * S - 1); /* not a nanosecond too early */
    if (!expect(c->q, failed, 1, 2))
        return 0;
    wq_clock_fake_step(clock, 1);
    wq_clock_fake_wait_for_waiters(clock, 1);
    if (!expect(c->q, WQ_STATE_WAITING, 600 * S, 3))
        return 0;
    if (wq_add_str(c->q, "node-1")) /* an event comes meanwhile */
        return 0;
    wq_clock_fake_wait_for_waiters(clock, 1);
    return expect(c->q, WQ_STATE_WAITING, 600 * S, 4);
}
/* end: test */

int
main(void)
{
    wq_clock         *clock = wq_clock_fake_create(0);
    struct controller c = {.outages = 0};

    if (!clock || start(&c, clock))
        return 1;
    const int right = test_backs_off_and_recovers(&c, clock);
    wq_workers_destroy(c.pool);
    wq_destroy(c.q);
    wq_clock_destroy(clock);
    return right ? 0 : 1;
}
