/* SPDX-License-Identifier: MIT */
/* report.h: what is reported to the sinks of metrics, and when?
 *
 * A thread reports a duration after it has left the queue, without a lock.
 * Changes of counts are computed under the lock, as the difference to what was
 * reported last, and reported after the lock is released: so each change is
 * reported exactly once, in whatever order the threads report.
 */
#ifndef WQ_MEMORY_REPORT_H
#define WQ_MEMORY_REPORT_H

#include "memory/memory.h"
#include "metrics/sinks.h"

/* Call open() of `metrics` and of all sinks linked behind it; NULL: none. On
 * error, the sinks that were opened are closed again. */
wq_err wq__report_open(struct wq__memory *m, const wq_metrics *metrics);
void   wq__report_close(struct wq__memory *m);

/* With the lock: *change is how the counts have changed since the last call.
 * False: not at all. */
bool wq__report_take(struct wq__memory *m, wq_change *change);

/* Without the lock. */
void wq__report_change(struct wq__memory *m, const wq_change *change);

/* How many sinks are there? */
static inline size_t
wq__report_sinks(struct wq__memory *m)
{
    return atomic_load_explicit(&m->sinks_len, memory_order_acquire);
}

/* To each sink that has the callback. Mostly there is one sink, the registry,
 * and it has the callback. */
static inline void
wq__report_duration(struct wq__memory *m, enum wq__duration what, int64_t ns)
{
    const size_t n = wq__report_sinks(m);

    if (n == 1 && wq__sink_callback(&m->sinks->to, what))
        wq__sink_callback(&m->sinks->to, what)(m->sinks->handle, ns);
    else if (n)
        wq__sinks_duration(m->sinks, n, what, ns);
}

#endif
