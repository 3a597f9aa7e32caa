/* SPDX-License-Identifier: MIT */
/* report.h: what do the metrics' sinks hear, and when?
 *
 * What happens once is reported by the thread that made it happen, after it
 * left the queue: no lock is held. Changes of counts are put together under the
 * lock, as the difference to what was told last, and told after it; so nothing
 * is told twice or not at all, whatever order the threads arrive in.
 */
#ifndef WQ_MEMORY_REPORT_H
#define WQ_MEMORY_REPORT_H

#include "memory/memory.h"

/* Call open() of `metrics` and those behind it; NULL: there are none. On error
 * all that were opened are closed again. */
wq_err wq__report_open(struct wq__memory *m, const wq_metrics *metrics);
void   wq__report_close(struct wq__memory *m);

/* With the lock: by how much have the counts changed since this was asked last?
 * False: not at all. */
bool wq__report_take(struct wq__memory *m, wq_change *change);

/* Without the lock. */
void wq__report_change(struct wq__memory *m, const wq_change *change);
void wq__report_each_latency(struct wq__memory *m, int64_t ns);
void wq__report_each_work(struct wq__memory *m, int64_t ns);
void wq__report_each_limited(struct wq__memory *m, int64_t ns);

/* How many sinks are there? */
static inline size_t
wq__report_sinks(struct wq__memory *m)
{
    return atomic_load_explicit(&m->sinks_len, memory_order_acquire);
}

/* Mostly there is one, the registry, and it wants to know. */
static inline void
wq__report_latency(struct wq__memory *m, int64_t ns)
{
    const size_t n = wq__report_sinks(m);

    if (n == 1 && m->sinks->to.latency)
        m->sinks->to.latency(m->sinks->handle, ns);
    else if (n)
        wq__report_each_latency(m, ns);
}

static inline void
wq__report_work(struct wq__memory *m, int64_t ns)
{
    const size_t n = wq__report_sinks(m);

    if (n == 1 && m->sinks->to.work)
        m->sinks->to.work(m->sinks->handle, ns);
    else if (n)
        wq__report_each_work(m, ns);
}

static inline void
wq__report_limited(struct wq__memory *m, int64_t ns)
{
    if (wq__report_sinks(m))
        wq__report_each_limited(m, ns);
}

#endif
