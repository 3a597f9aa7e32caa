/* SPDX-License-Identifier: MIT */
/* metrics.c: a queue with a name has metrics, which are written as Prometheus
 * text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/clock.h>
#include <wq/metrics.h>

/* Two keys; one is READY for 20 ms and then HELD for 50 ms. */
static wq_err
work(wq_queue *q, wq_clock *clock)
{
    wq_item *item;
    wq_err   err = wq_add_str(q, "default/nginx");

    if (!err)
        err = wq_add_str(q, "default/redis");
    wq_clock_fake_step(clock, WQ_MS(20));
    if (!err)
        err = wq_get_within(q, 0, &item);
    wq_clock_fake_step(clock, WQ_MS(50));
    return err ? err : wq_done(q, item);
}

static int
has(const char *text, const char *line)
{
    return strstr(text, line) != NULL;
}

/* begin: main */
int
main(void)
{
    wq_clock    *clock = wq_clock_fake_create(0); /* a real program has none */
    wq_registry *metrics;
    wq_queue    *q;
    char        *text;
    size_t       len;

    if (!clock || wq_registry_create(&metrics) ||
        wq_create(WQ_CONFIG(.name = "pods", .clock = clock,
                            .metrics = wq_registry_sink(metrics)),
                  &q))
        return 1;
    if (work(q, clock) ||
        wq_registry_text(metrics, WQ_TEXT_PROMETHEUS, &text, &len))
        return 1;
    fwrite(text, 1, len, stdout); /* the answer to GET /metrics */

    const int right =
        has(text, "\nworkqueue_adds_total{name=\"pods\"} 2\n") &&
        has(text, "\nworkqueue_depth{name=\"pods\"} 1\n") &&
        has(text, "\nworkqueue_queue_duration_seconds_sum{name=\"pods\"} "
                  "0.02\n") &&
        has(text, "\nworkqueue_work_duration_seconds_sum{name=\"pods\"} "
                  "0.05\n");
    free(text);
    wq_destroy(q); /* before the registry it reports to */
    wq_registry_destroy(metrics);
    wq_clock_destroy(clock);
    return right ? 0 : 1;
}
/* end: main */
