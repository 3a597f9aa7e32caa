/* SPDX-License-Identifier: MIT */
/* recipe_idle.c: how does a test know that its controller has finished? The test
 * moves the clock, and waits until the queue is idle. */
#include <stdatomic.h>
#include <stdio.h>

#include <wq/clock.h>
#include <wq/limiter.h>
#include <wq/workers.h>

static atomic_int runs;

/* The first run fails; later ones succeed. */
static wq_result
reconcile(void *ctx, const wq_item *item)
{
    (void)ctx;
    (void)item;
    return atomic_fetch_add(&runs, 1) == 0 ? wq_result_retry()
                                           : wq_result_done();
}

/* begin: after */
/* Move the clock, and let the workers do all that is due: when this returns, no
 * key is READY or HELD, and no handler runs. */
static bool
runs_after(wq_queue *q, wq_clock *clock, int64_t step_ns, int expected)
{
    wq_clock_fake_step(clock, step_ns);
    if (wq_wait_idle(q, WQ_FOREVER)) /* the test runner limits the time */
        return false;
    const int found = atomic_load(&runs);
    printf("after %lld s: %d runs\n", (long long)(step_ns / WQ_SECONDS(1)),
           found);
    return found == expected;
}

static bool
test(wq_queue *q, wq_clock *clock)
{
    if (wq_add_after_str(q, "lease", WQ_SECONDS(600)))
        return false;
    return runs_after(q, clock, WQ_SECONDS(599), 0) && /* too early */
           runs_after(q, clock, WQ_SECONDS(1), 1) &&   /* it fails */
           runs_after(q, clock, WQ_SECONDS(29), 1) &&  /* in BACKOFF */
           runs_after(q, clock, WQ_SECONDS(1), 2);     /* it succeeds */
}
/* end: after */

int
main(void)
{
    wq_clock   *clock = wq_clock_fake_create(0);
    wq_queue   *q;
    wq_workers *pool;

    if (!clock ||
        wq_create(WQ_CONFIG(.clock = clock,
                            .limiter = wq_limiter_exponential(WQ_SECONDS(30),
                                                              WQ_SECONDS(300))),
                  &q) ||
        wq_workers_start(q, WQ_WORKERS(.threads = 2, .handler = reconcile),
                         &pool))
        return 1;
    const bool passed = test(q, clock);
    wq_workers_destroy(pool);
    wq_destroy(q);
    wq_clock_destroy(clock);
    return passed ? 0 : 1;
}
