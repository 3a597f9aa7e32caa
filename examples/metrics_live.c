/* SPDX-License-Identifier: MIT */
/* metrics_live.c: how do metrics change while a controller works?
 *
 *     metrics_live [SECONDS]
 *
 * Two workers, bursts of events, and runs that take a moment and fail now and
 * then. Ten times a second the program prints the time and the text that a
 * server would return. scripts/picture.sh draws the dashboard from it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <wq/limiter.h>
#include <wq/metrics.h>
#include <wq/workers.h>

static void
pause_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

static wq_result
reconcile(void *ctx, const wq_item *item)
{
    const unsigned n = (unsigned)item->fence * 2654435761U >> 16;

    (void)ctx;
    pause_ms(1 + n % 4);
    return n % 7 == 0 ? wq_result_retry() : wq_result_done();
}

/* Add some keys, a few of them urgent; more in the first half of every
 * second. */
static int
burst(wq_queue *q, int tick)
{
    for (int i = 0; i < (tick % 10 < 5 ? 90 : 20); i++) {
        const uint64_t id = (uint64_t)(rand() % 300);
        if (wq_add_one(q, wq_u64(&id), WQ_ADD(.priority = i % 10 ? 0 : 5)))
            return 1;
    }
    return 0;
}

int
main(int argc, char **argv)
{
    const int    ticks = (int)((argc > 1 ? atof(argv[1]) : 1) * 10);
    wq_registry *metrics;
    wq_queue    *q;
    wq_workers  *pool;

    if (wq_registry_create(&metrics) ||
        wq_create(
            WQ_CONFIG(.name = "pods",
                      .limiter = wq_limiter_exponential(WQ_MS(20), WQ_MS(500)),
                      .metrics = wq_registry_sink(metrics)),
            &q) ||
        wq_workers_start(q, WQ_WORKERS(.threads = 2, .handler = reconcile),
                         &pool))
        return 1;
    for (int tick = 0; tick < ticks; tick++) {
        if (burst(q, tick))
            return 1;
        pause_ms(100);
        printf("# TIME %d\n", (tick + 1) * 100);
        if (wq_registry_write(metrics, WQ_TEXT_PROMETHEUS, wq_write_file,
                              stdout))
            return 1;
    }
    if (wq_workers_destroy(pool))
        return 1;
    wq_destroy(q);
    wq_registry_destroy(metrics);
    return 0;
}
