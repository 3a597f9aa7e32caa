/* SPDX-License-Identifier: MIT */
/* report.h: what is reported to the sinks of metrics, and when?
 *
 * As by a queue in memory (memory/report.h): durations once for each key, and
 * changes of counts as differences to what was reported last. Without the lock,
 * and never by a thread that leads: a sink may query the queue.
 */
#ifndef WQ_SHARED_REPORT_H
#define WQ_SHARED_REPORT_H

#include "shared/shared.h"

/* Open the sinks; NULL: none. */
wq_err wq__shared_report_open(struct wq__shared *s, const wq_metrics *metrics);
/* `calls`: the sinks hear of it; false in a child of fork(). */
void wq__shared_report_close(struct wq__shared *s, bool calls);

/* Report what has changed. */
void wq__shared_report_changes(struct wq__shared *s);

static inline void
wq__shared_report_work(struct wq__shared *s, int64_t ns)
{
    if (s->sinks_len)
        wq__sinks_duration(s->sinks, s->sinks_len, WQ__REPORT_WORK, ns);
}

static inline void
wq__shared_report_latency(struct wq__shared *s, int64_t ns)
{
    if (s->sinks_len)
        wq__sinks_duration(s->sinks, s->sinks_len, WQ__REPORT_LATENCY, ns);
}

static inline void
wq__shared_report_limited(struct wq__shared *s, int64_t ns)
{
    if (s->sinks_len)
        wq__sinks_duration(s->sinks, s->sinks_len, WQ__REPORT_LIMITED, ns);
}

/* The time, if durations are measured. */
static inline int64_t
wq__shared_stamp(struct wq__shared *s)
{
    return s->times ? s->clock->stopwatch(s->clock) : 0;
}

#endif
