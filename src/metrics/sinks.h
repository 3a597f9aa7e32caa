/* SPDX-License-Identifier: MIT */
/* sinks.h: how are the sinks of a queue's metrics opened, called and closed?
 *
 * For every queue that reports to sinks, in memory or shared. All calls are
 * made without a lock.
 */
#ifndef WQ_METRICS_SINKS_H
#define WQ_METRICS_SINKS_H

#include <stddef.h>

#include <wq/metrics.h>

/* A sink of metrics, and its handle of this queue. */
struct wq__sink {
    wq_metrics to;
    void      *handle;
};

/* Allocate and open the sinks of the list, which is valid
 * (wq__metrics_check()); NULL: *n is 0. On error, those that were opened are
 * closed again. `who` names the caller in the message of WQ_ENOMEM. */
wq_err wq__sinks_open(const wq_allocator *mem, const wq_metrics *metrics,
                      wq_queue *q, const char *name, const char *who,
                      struct wq__sink **sinks, size_t *n);
void wq__sinks_free(const wq_allocator *mem, struct wq__sink *sinks, size_t n);
void wq__sinks_close(const struct wq__sink *sinks, size_t n);

/* Has one of them a callback for changes? Call those. */
bool wq__sinks_want_changes(const struct wq__sink *sinks, size_t n);
void wq__sinks_change(const struct wq__sink *sinks, size_t n,
                      const wq_change *change);

/* What is reported once for each key, by the name of its callback. */
enum wq__duration { WQ__REPORT_LATENCY, WQ__REPORT_WORK, WQ__REPORT_LIMITED };

typedef void wq__on_duration(void *handle, int64_t ns);

static inline wq__on_duration *
wq__sink_callback(const wq_metrics *sink, enum wq__duration what)
{
    return what == WQ__REPORT_LATENCY ? sink->latency
           : what == WQ__REPORT_WORK  ? sink->work
                                      : sink->limited;
}

/* To each sink that has the callback. */
void wq__sinks_duration(const struct wq__sink *sinks, size_t n,
                        enum wq__duration what, int64_t ns);

#endif
