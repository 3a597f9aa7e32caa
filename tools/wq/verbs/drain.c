/* SPDX-License-Identifier: MIT */
/* drain.c: what does `wq drain` do? It waits until all work is done. */
#include <wq/inspect.h>

#include "base/report.h"
#include "queue/open.h"
#include "verbs/verbs.h"

int
verb_drain(const struct options *options)
{
    wq_stats  stats = {.size = sizeof stats};
    wq_queue *q;

    if (!queue_open(options, WQ_CONFIG(.ages = true), &q))
        return STATUS_ERROR;
    const wq_err err = wq_wait_idle(q, options->wait_ns);
    if (err == WQ_ETIMEDOUT && wq_read_stats(q, &stats) == WQ_OK)
        report("drain: timed out: %zu READY, %zu HELD", stats.ready,
               stats.held);
    else if (err)
        queue_fail(options, "wait for the queue", err);
    wq_destroy(q);
    return err == WQ_OK          ? STATUS_OK
           : err == WQ_ETIMEDOUT ? STATUS_STOPPED
                                 : STATUS_ERROR;
}
