/* SPDX-License-Identifier: MIT */
/* metrics.h: metrics of queues, and their text for Prometheus.
 *
 * A queue that has a name and a sink reports events to the sink: the events
 * that client-go reports to its MetricsProvider. The built-in sink is a
 * registry, which writes Prometheus' text with the names that Kubernetes uses,
 * so that dashboards and alerts made for Kubernetes work unchanged:
 *
 *     wq_registry *metrics;
 *     wq_registry_create(&metrics);
 *     wq_create(WQ_CONFIG(.name = "pods",
 *                         .metrics = wq_registry_sink(metrics)), &q);
 *     ...
 *     wq_registry_write(metrics, WQ_TEXT_PROMETHEUS, wq_write_file, stdout);
 *
 * The queue does not report values that can be read at any time (how many keys
 * are READY, the ages of the HELD ones): a sink reads them with wq_read_stats()
 * (inspect.h) when it needs them. So no thread has to refresh them, and they
 * are never out of date. The thread that causes an event (for example, it gets
 * a key) reports the event and its duration, without a lock.
 *
 * A queue without a name, or without a sink, does not read the clock for
 * metrics.
 */
#ifndef WQ_METRICS_H
#define WQ_METRICS_H

#include <wq/inspect.h>
#include <wq/wq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- a sink -- */

/* By how much the stats of a queue have changed: see wq_stats. */
typedef struct wq_change {
    size_t   size;  /* sizeof(wq_change) */
    int64_t  depth; /* ready + dirty: client-go's depth. May be below 0 */
    uint64_t adds;  /* as all below */
    uint64_t merged;
    uint64_t retries;
    uint64_t drops;
} wq_change;

/* A sink: callbacks that receive the events of a queue. Functions that are NULL
 * are not called. The struct is copied; what `self` points to must outlive the
 * queues.
 *
 * The threads that call the queue also call these functions, several at a time
 * and without a lock: they may call the functions of the queue that do not
 * block. The functions of inspect.h report nothing, so a sink may call them
 * while it holds its own locks. The reports of two threads may arrive in
 * another order than the events. When all calls have returned, the sums are
 * right, except for deadlines that have passed since: the thread that changes
 * the queue next reports them.
 */
struct wq_metrics {
    size_t size; /* sizeof(wq_metrics) */
    void  *self; /* first argument of open() */

    /* A queue is being created. *handle is NULL; the pointer that this function
     * stores there is the first argument of all others. `name` is valid until
     * close(). If this fails, wq_create() fails with its error. [M-06] */
    wq_err (*open)(void *self, wq_queue *q, const char *name, void **handle);
    /* The queue is being destroyed, and no other thread is in it. This is the
     * last time that wq_read_stats() can be called. */
    void (*close)(void *handle);

    /* Stats have changed; a field that did not change is 0. NULL for a sink
     * that calls wq_read_stats() instead. */
    void (*changed)(void *handle, const wq_change *change);
    /* A key was handed out, `ns` after it became READY or DIRTY: after the
     * first add that this run covers, or, if the key was WAITING, after
     * its deadline, even if the queue noticed the deadline later. [M-04] */
    void (*latency)(void *handle, int64_t ns);
    /* A loan has ended, `ns` after the key was handed out. [M-04] */
    void (*work)(void *handle, int64_t ns);
    /* The limiter gave a key a delay of `ns`. */
    void (*limited)(void *handle, int64_t ns);

    /* Another sink that receives the same events; NULL: none. It is copied
     * when a queue is created, and must exist until then. To add your sink to
     * one that you cannot change, copy that one and set `next` of the copy:
     * wq_metrics both = *wq_registry_sink(r); both.next = &mine. */
    const wq_metrics *next;
};

/* Set the default sink: the sink of queues that are created from now on with a
 * name and without wq_config.metrics. Queues that exist do not change. A
 * default sink cannot be replaced; NULL unsets it, for tests. The struct is
 * copied; what `self` and `next` point to must outlive the queues that use it.
 *
 * Returns WQ_OK;
 *   WQ_ESTATE  there is a default sink already, and it stays;
 *   WQ_EINVAL  a wrong `size` (rules: see wq_create()).
 * Threads: any.  Blocks: never.  Since: 0.1.  [M-07]
 */
WQ_API wq_err wq_metrics_set_default(const wq_metrics *metrics);

/* --------------------------------------------------------- the registry -- */

/* A sink that keeps sums by queue name: it adds up queues of the same name.
 * Threads that report do not block each other: each has its own counters, which
 * the registry adds up when it writes the text.
 *
 * It has Kubernetes' metrics, all with the one label `name`:
 *
 *     workqueue_depth                               keys READY or DIRTY
 *     workqueue_adds_total                          keys that became so
 *     workqueue_queue_duration_seconds              histogram: add to hand-out
 *     workqueue_work_duration_seconds               histogram: hand-out to done
 *     workqueue_unfinished_work_seconds             ages of the HELD keys
 *     workqueue_longest_running_processor_seconds   the largest of them
 *     workqueue_retries_total                       adds with a delay
 *
 * and metrics of wq:
 *
 *     workqueue_waiting_keys             keys WAITING
 *     workqueue_paused_queues            queues that are paused: wq_pause()
 *     workqueue_merged_total             adds that needed no run of their own
 *     workqueue_drops_total              keys dropped: wq_stats.drops
 *     workqueue_limiter_delay_seconds    histogram: delays given by limiters
 *     workqueue_priority_depth           depth, also by label `priority`. The
 *                                        first 25 priorities of a name have
 *                                        labels of their own; others share the
 *                                        label "other"
 *
 * When a queue is destroyed its counters and histograms stay, its gauges become
 * 0. The registry never forgets a name: use a bounded number of names. [M-09]
 */
typedef struct wq_registry wq_registry;

/* Create a registry. The caller owns it and passes it to wq_registry_destroy(),
 * which accepts NULL, after the last queue that reports to it is destroyed.
 *
 * Returns WQ_OK; WQ_EINVAL: NULL; WQ_ENOMEM.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-40]
 */
WQ_API WQ_NODISCARD wq_err wq_registry_create(wq_registry **out);
WQ_API void                wq_registry_destroy(wq_registry *registry);

/* The registry as a sink, for wq_config.metrics or wq_metrics_set_default().
 * Valid as long as the registry. NULL for NULL.  Since: 0.1.  [O-40]
 */
WQ_API const wq_metrics *wq_registry_sink(wq_registry *registry);

/* The format of the text. */
typedef enum wq_text {
    WQ_TEXT_PROMETHEUS,  /* Prometheus' text format 0.0.4 */
    WQ_TEXT_OPENMETRICS, /* OpenMetrics 1.0.0 */
} wq_text;

/* The value of the HTTP header Content-Type.  Since: 0.1.  [O-41] */
WQ_API const char *wq_text_type(wq_text format);

/* The format for a client that sent this HTTP header Accept (NULL: it sent
 * none): OpenMetrics if the client accepts it, else Prometheus.  Since: 0.1.
 * [O-41]
 */
WQ_API wq_text wq_text_accepted(const char *accept);

/* Write the whole text into a new string *out, of *len bytes and a NUL, which
 * the caller passes to free(). Quotes, backslashes and newlines in a queue name
 * are escaped; bytes that are not UTF-8 become U+FFFD.
 *
 * Returns WQ_OK; WQ_EINVAL: NULL or an unknown format; WQ_ENOMEM.
 * Threads: any.  Blocks: never.  Cost: O(queues); it takes the lock of each for
 * a short time.  Since: 0.1.  [O-41 M-09]
 */
WQ_API WQ_NODISCARD wq_err wq_registry_text(wq_registry *registry,
                                            wq_text format, char **out,
                                            size_t *len);

/* wq_registry_text() that passes the text to write(), in one call. Returns as
 * wq_registry_text(), or the error of write().  Since: 0.1.  [O-41]
 */
WQ_API wq_err wq_registry_write(wq_registry *registry, wq_text format,
                                wq_write write, void *ctx);

#ifdef __cplusplus
}
#endif

#endif
