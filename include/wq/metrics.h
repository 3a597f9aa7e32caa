/* SPDX-License-Identifier: MIT */
/* metrics.h: how busy are the queues of this program?
 *
 * A queue that has a name and a sink tells the sink what happens: what
 * client-go's MetricsProvider is told. The built-in sink is a registry, which
 * writes Prometheus' text with the names Kubernetes uses, so that dashboards
 * and alerts made for Kubernetes work unchanged:
 *
 *     wq_registry *metrics;
 *     wq_registry_create(&metrics);
 *     wq_create(WQ_CONFIG(.name = "pods",
 *                         .metrics = wq_registry_sink(metrics)), &q);
 *     ...
 *     wq_registry_write(metrics, WQ_TEXT_PROMETHEUS, wq_write_file, stdout);
 *
 * What can be asked for at any time (how many keys are READY, how long the held
 * ones have been held) is not reported but asked for when it is wanted:
 * wq_read_stats() in inspect.h. So no thread is needed to keep it fresh, and it is
 * never out of date. What happens once (a key was handed out after so long)
 * is reported to the sink by the thread that made it happen, without any lock
 * held.
 *
 * A queue without a name, or without a sink, pays nothing: no clock is read.
 */
#ifndef WQ_METRICS_H
#define WQ_METRICS_H

#include <wq/inspect.h>
#include <wq/wq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- a sink -- */

/* By how much the counts of a queue have changed: see wq_stats. */
typedef struct wq_change {
    size_t   size;  /* sizeof(wq_change) */
    int64_t  depth; /* ready + dirty: client-go's depth. May be below 0 */
    uint64_t adds;  /* as all below */
    uint64_t merged;
    uint64_t retries;
    uint64_t drops;
} wq_change;

/* A sink: who wants to know. Functions that are NULL are not called. The struct
 * is copied; what `self` points to must outlive the queues.
 *
 * They are called from any thread that calls the queue, several at a time, and
 * without a lock: they may call the queue (of its verbs, those that do not
 * block). Functions of inspect.h tell nobody, so a sink may ask with locks of
 * its own held. Two threads' reports may arrive in another order than things
 * happened; when all calls have returned, the sums are right, but for deadlines
 * that have passed since: who changes something next, tells.
 */
struct wq_metrics {
    size_t size; /* sizeof(wq_metrics) */
    void  *self; /* first argument of open() */

    /* A queue was made. *handle, NULL so far, will be the first argument of all
     * others. `name` is valid until close(). Any error makes wq_create() fail
     * with it. [M-06] */
    wq_err (*open)(void *self, wq_queue *q, const char *name, void **handle);
    /* The queue is being destroyed, and no other thread is in it. It can be
     * asked for the last time, with wq_read_stats(). */
    void (*close)(void *handle);

    /* Counts have changed; what did not is 0. Who would rather ask than be told
     * leaves this NULL. */
    void (*changed)(void *handle, const wq_change *change);
    /* A key was handed out, `ns` after it had become READY (or DIRTY: from the
     * first add of those that this hand-out serves; a key that was WAITING:
     * from its deadline, whenever that was noticed). [M-04] */
    void (*latency)(void *handle, int64_t ns);
    /* A loan has ended, `ns` after the key was handed out. [M-04] */
    void (*work)(void *handle, int64_t ns);
    /* The limiter makes a key wait for `ns`. */
    void (*limited)(void *handle, int64_t ns);

    /* Another sink that hears the same; NULL: none. It is read when a queue is
     * made, and must be there until then. To add one to a sink that you did
     * not make, copy it: wq_metrics both = *wq_registry_sink(r); both.next =
     * &mine. */
    const wq_metrics *next;
};

/* The sink for queues that have a name and no `metrics` of their own, from now
 * on: queues that exist do not change. The first one wins; NULL takes it back,
 * for tests. It must outlive the queues made meanwhile.
 *
 * Returns WQ_OK;
 *   WQ_ESTATE  there is one already: it stays;
 *   WQ_EINVAL  a wrong `size` (rules: see wq_create()).
 * Threads: any.  Blocks: never.  Since: 0.1.  [M-07]
 */
WQ_API wq_err wq_metrics_set_default(const wq_metrics *metrics);

/* --------------------------------------------------------- the registry -- */

/* A sink that keeps what it is told, by queue name: queues of the same name are
 * added up. Threads that report do not disturb each other: each has numbers
 * of its own, which are added up when somebody asks.
 *
 * It offers Kubernetes' metrics, all with the one label `name`:
 *
 *     workqueue_depth                               keys READY or DIRTY
 *     workqueue_adds_total                          keys that became so
 *     workqueue_queue_duration_seconds              histogram: until handed out
 *     workqueue_work_duration_seconds               histogram: until done
 *     workqueue_unfinished_work_seconds             ages of the held keys
 *     workqueue_longest_running_processor_seconds   the largest of them
 *     workqueue_retries_total                       adds with a delay
 *
 * and what users miss there:
 *
 *     workqueue_waiting_keys             keys that have a deadline
 *     workqueue_paused_queues            queues that are paused: wq_pause()
 *     workqueue_merged_total             adds of keys that were queued already
 *     workqueue_drops_total              keys nobody will see
 *     workqueue_limiter_delay_seconds    histogram: what limiters decided
 *     workqueue_priority_depth           also by label `priority`. The first
 *                                        25 priorities of a name are told
 *                                        apart; others share the label "other"
 *
 * When a queue is destroyed its counters and histograms stay, its gauges go to
 * zero: a name is never forgotten, so do not invent new ones for ever. [M-09]
 */
typedef struct wq_registry wq_registry;

/* Make a registry. The caller owns it, and destroys it after the last queue
 * that reports to it.
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

/* How the text looks. */
typedef enum wq_text {
    WQ_TEXT_PROMETHEUS,  /* Prometheus' text format 0.0.4 */
    WQ_TEXT_OPENMETRICS, /* OpenMetrics 1.0.0 */
} wq_text;

/* What to answer in the HTTP header Content-Type.  Since: 0.1.  [O-41] */
WQ_API const char *wq_text_type(wq_text format);

/* Which of the two a client wants that sent this HTTP header Accept (NULL: it
 * sent none): OpenMetrics if it asks for that, else Prometheus.  Since: 0.1.
 * [O-41]
 */
WQ_API wq_text wq_text_accepted(const char *accept);

/* The whole text, as one string that the caller gives to free(). A queue name
 * with quotes, backslashes or newlines is escaped; bytes that are not UTF-8
 * become U+FFFD.
 *
 * Returns WQ_OK; WQ_EINVAL: NULL or an unknown format; WQ_ENOMEM.
 * Threads: any.  Blocks: never.  Cost: O(queues), and each one's lock is taken
 * for a moment.  Since: 0.1.  [O-41 M-09]
 */
WQ_API WQ_NODISCARD wq_err wq_registry_text(wq_registry *registry,
                                            wq_text format, char **out,
                                            size_t *len);

/* The same, to a wq_write(), in one call of it. Returns also what that
 * returned.  Since: 0.1.  [O-41]
 */
WQ_API wq_err wq_registry_write(wq_registry *registry, wq_text format,
                                wq_write write, void *ctx);

#ifdef __cplusplus
}
#endif

#endif
