/* SPDX-License-Identifier: MIT */
/* workers.h: how do threads work on a queue, and what becomes of a key after?
 *
 * A pool takes keys from a queue and calls your handler with each, from several
 * threads. What the handler returns decides what becomes of the key:
 *
 *     static wq_result
 *     reconcile(void *ctx, const wq_item *item)
 *     {
 *         return look_after(ctx, item->key) ? wq_result_done()
 *                                           : wq_result_retry();
 *     }
 *
 *     wq_workers_start(q, WQ_WORKERS(.threads = 8, .handler = reconcile), &p);
 *     ...
 *     wq_workers_drain(p, 30 * SECOND);
 *     wq_workers_destroy(p);
 *     wq_destroy(q);
 *
 *     handler returns          the pool calls                          [PQ-47]
 *     wq_result_done()         wq_forget()
 *     wq_result_retry()        wq_add_rate_limited()
 *     wq_result_after(d)       wq_forget(), wq_add_after(d)
 *     wq_result_drop()         on_drop()
 *
 * and then, always last, wq_done(). A key that is to come back and cannot
 * (there is no memory, the queue is shut down, it was retried as often as
 * allowed) goes to on_drop() with the reason. One thing happens in silence, and
 * to the queue rather than the pool: unless it was made with WQ_WAITING_KEEP, a
 * shutdown (so a drain, too) drops keys that wait for a retry or a later time.
 * What is added again keeps the priority it came with.
 *
 * One worker calls the handler for one key at a time, and no two for the same
 * key: what the queue promises holds here. The callbacks (handler, on_drop,
 * on_stuck) are called without a lock held. They may call every function of the
 * queue but wq_done() for the item in hand, which is the pool's to call, and
 * wq_shutdown_with_drain(), which would wait for that item; they may call
 * wq_workers_resize(). wq_workers_stop(), _drain() and _destroy() of their own
 * pool would wait for the caller, and say WQ_ESTATE. [PW-09 PW-11]
 *
 * A handler must return. There is no way in C to catch one that does not:
 * leaving it by longjmp() or pthread_exit(), or having its thread cancelled, is
 * misuse, and its key is never done. A handler that takes too long can be
 * noticed (item_deadline_ns) but not ended.
 *
 * The queue must outlive the pool. Others may take keys from the same queue:
 * more pools, or gets of your own. When a pool stops or shrinks it calls
 * wq_interrupt(): a get of your own may then return WQ_EINTERRUPTED and should
 * just be called again, as the workers of a pool do. [PW-15]
 *
 * Threads. Every function may be called from any thread, except
 * wq_workers_destroy(): it must be the last call. The threads of a pool inherit
 * the signal mask of whoever started (or resized) it.
 *
 * wq_parallelize(), at the end, is for work that needs no queue.
 */
#ifndef WQ_WORKERS_H
#define WQ_WORKERS_H

#include <wq/clock.h>
#include <wq/wq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- results -- */

/* What shall become of a key. Any other number is taken for a retry. [PW-05] */
typedef enum wq_outcome {
    WQ_RESULT_DONE,  /* it went well: its failures are forgotten */
    WQ_RESULT_RETRY, /* it failed: again, when the queue's limiter says */
    WQ_RESULT_AFTER, /* it went well: again, after `after_ns` */
    WQ_RESULT_DROP   /* it failed, and trying again would not help */
} wq_outcome;

/* What a handler returns. Made by the functions below; all zero is done. */
typedef struct wq_result {
    wq_outcome outcome;
    int64_t    after_ns; /* for WQ_RESULT_AFTER */
} wq_result;

/* The key is in order. The limiter forgets its failures.  Since: 0.1.  [PQ-47]
 */
static inline wq_result
wq_result_done(void)
{
    wq_result result;
    result.outcome = WQ_RESULT_DONE;
    result.after_ns = 0;
    return result;
}

/* The work failed. The key comes back when the queue's limiter says, later each
 * time, unless it was retried `max_retries` times.  Since: 0.1.  [PQ-47 PW-06]
 */
static inline wq_result
wq_result_retry(void)
{
    wq_result result;
    result.outcome = WQ_RESULT_RETRY;
    result.after_ns = 0;
    return result;
}

/* The key is in order for now: look again in `after_ns`. The limiter forgets
 * its failures. A time of 0 or less is a retry, so that a delay which was
 * computed, and came out as nothing, does not make a worker spin.  Since: 0.1.
 * [PQ-47 PW-05]
 */
static inline wq_result
wq_result_after(int64_t after_ns)
{
    wq_result result;
    result.outcome = WQ_RESULT_AFTER;
    result.after_ns = after_ns;
    return result;
}

/* The key cannot be helped. It is handed to on_drop() and not added again; its
 * failures are not forgotten, so that a key which is added anew and fails anew
 * goes on backing off. A handler that wants them forgotten calls wq_forget().
 * Since: 0.1.  [PQ-47 PW-08]
 */
static inline wq_result
wq_result_drop(void)
{
    wq_result result;
    result.outcome = WQ_RESULT_DROP;
    result.after_ns = 0;
    return result;
}

/* ---------------------------------------------------------------- config -- */

/* How a pool is made. Zero means the stated default; WQ_WORKERS(.handler = f)
 * sets `size`. In C++ set it by hand. The struct is copied, and so is the name;
 * whatever else it points to must outlive the pool.
 */
typedef struct wq_workers_config {
    size_t   size;    /* sizeof(wq_workers_config) */
    unsigned threads; /* 0: as many as processors may be used. [PW-02] */
    /* How often a key is retried before on_drop(), by wq_num_requeues(); 0:
     * without end. A limiter that does not count never gets there. The
     * queue's own limit (wq_config.max_retries) holds too. [PW-06] */
    unsigned max_retries;
    /* Work on item->key. Required. `item` is valid until it returns. */
    wq_result (*handler)(void *ctx, const wq_item *item);
    void *ctx; /* first argument of all callbacks */
    /* `key` is not coming back, after `retries` retries, because
     *   WQ_OK         the handler said wq_result_drop();
     *   WQ_EGIVENUP   it was retried as often as allowed: forgotten, too;
     *   WQ_ESHUTDOWN  the queue takes no adds any more;
     *   another       the error of wq_add_rate_limited() or wq_add_after();
     *   WQ_ENOMEM     also: wq_done() failed so until the pool was stopped,
     *                 and the key is still on loan (only with a wq_order of
     *                 your own; all the rest was done with it). [PW-20]
     * Called by the worker, which still holds the key; the bytes are valid
     * until it returns. NULL: such keys are only counted.
     * [PW-06 PW-07 PW-08] */
    void (*on_drop)(void *ctx, wq_key key, unsigned retries, wq_err why);
    /* Begins the name of each thread: "name-0", "name-1", ..., cut so that the
     * number fits into what the system allows (Linux: 15 bytes). The number of
     * a thread is never used again. NULL: threads are not named. [PW-03] */
    const char *name;
    /* A handler that runs longer is reported to on_stuck(). 0: none is.
     * [PW-18] */
    int64_t item_deadline_ns;
    /* The handler of `item` has been running for `running_ns`. Called once for
     * each hand-out, by a thread which exists for this alone and only if
     * item_deadline_ns is set; one call at a time. `item` is valid until it
     * returns: until then wq_done() of that item waits, so do not wait for
     * that. Required with item_deadline_ns. [PW-17 PW-18] */
    void (*on_stuck)(void *ctx, const wq_item *item, int64_t running_ns);
    /* For item_deadline_ns. Not owned. NULL: wq_clock_monotonic(). */
    wq_clock *clock;
    /* NULL: malloc and free. Copied. Called without a lock, from the threads
     * that start, resize, stop and destroy. */
    const wq_allocator *allocator;
} wq_workers_config;

#ifndef __cplusplus
#define WQ_WORKERS(...)                                                        \
    (&(wq_workers_config){.size = sizeof(wq_workers_config), __VA_ARGS__})
#endif

/* ----------------------------------------------------------- life of a pool */

typedef struct wq_workers wq_workers; /* opaque */

/* Start working on the keys of `q`.
 *
 * All threads start, or none: when it fails, no handler was called. The caller
 * owns *out and gives it to wq_workers_destroy(), before the queue goes.
 *
 * Once the queue is shut down and empty, the threads end by themselves; the
 * pool stays until it is destroyed. A get that fails (no memory, a server that
 * does not answer) is tried again every 10 ms, and so is a wq_done() for which
 * there was no memory. With a backend that cannot be
 * interrupted, threads look up from their gets every 50 ms. [PW-16 PW-19
 * PW-20 PW-22]
 *
 * Returns WQ_OK; else wq_last_error() names the field and the reason:
 *   WQ_EINVAL  `q`, `config` or `out` is NULL; no handler; item_deadline_ns is
 *              negative, or set without on_stuck; an allocator lacks a
 *              function; a `size` is wrong (rules: see wq_create());
 *   WQ_ENOMEM  no memory, or no more threads allowed;
 *   WQ_EIO     the system refused a thread for another reason.
 * Threads: any.  Blocks: while threads start.  Cost: O(threads).  Since: 0.1.
 * [PW-01 PW-02 PW-03 PW-04]
 */
WQ_API WQ_NODISCARD wq_err wq_workers_start(wq_queue                *q,
                                            const wq_workers_config *config,
                                            wq_workers             **out);

/* Work with `threads` threads from now on.
 *
 * More: they start, all or none. Fewer: the surplus leaves; idle workers at
 * once, busy ones after their item. Does not wait for handlers. 0 pauses: keys
 * stay in the queue until the pool grows again. Several at a time take turns;
 * the last one counts.
 *
 * Returns WQ_OK;
 *   WQ_EINVAL  NULL pool;
 *   WQ_ESTATE  wq_workers_stop(), or a drain that succeeded, came before;
 *   WQ_ENOMEM, WQ_EIO  as wq_workers_start(); the size is what it was.
 * Threads: any, also a handler.  Blocks: while threads start, or until idle
 * workers have taken note; never for a handler.  Cost: O(threads).  Since: 0.1.
 * [PW-14]
 */
WQ_API WQ_NODISCARD wq_err wq_workers_resize(wq_workers *pool,
                                             unsigned    threads);

/* Stop: every worker finishes the item in hand and leaves. Keys that were not
 * taken stay in the queue, which is not shut down. For good: a stopped pool is
 * not resized. A second call is harmless.
 *
 * Returns WQ_OK      all threads of the pool have ended;
 *         WQ_EINVAL  NULL pool;
 *         WQ_ESTATE  called from a thread of this pool: nothing was done.
 * Threads: any but the pool's own.  Blocks: until all handlers have returned.
 * Since: 0.1.  [PW-10 PW-11 PW-15]
 */
WQ_API wq_err wq_workers_stop(wq_workers *pool);

/* wq_shutdown_with_drain_within() of the queue, then wq_workers_stop(): all
 * that is READY, held or dirty is worked on; what fails meanwhile cannot be
 * retried any more and goes to on_drop(). Keys that were waiting already are
 * dropped, or with WQ_WAITING_KEEP worked on at their time.
 *
 * If it ends with an error but WQ_ENOTSUP, the queue is shut down and the
 * workers go on: threads cannot be killed, and a handler that hangs hangs.
 * Drain again to wait longer; stop, and only the items in hand are waited for.
 * A pool paused by wq_workers_resize() does not drain.
 *
 * Returns WQ_OK            that work is done and all threads have ended;
 *         WQ_ETIMEDOUT     work remains after `timeout_ns` (queue's clock);
 *         WQ_EINTERRUPTED  wq_shutdown() was called meanwhile. Work remains;
 *         WQ_ENOTSUP       the backend cannot drain: nothing was done;
 *         WQ_EINVAL        NULL pool or negative timeout;
 *         WQ_ESTATE        called from a thread of this pool: nothing was done.
 * Threads: any but the pool's own.  Blocks: at most `timeout_ns`, plus what a
 * stop then takes, which is short unless a handler called wq_done() itself.
 * Since: 0.1.  [PW-11 PW-12 PW-13]
 */
WQ_API wq_err wq_workers_drain(wq_workers *pool, int64_t timeout_ns);

/* wq_workers_stop(), then give everything back. NULL is allowed.
 *
 * Returns WQ_OK; WQ_ESTATE when called from a thread of this pool: the pool is
 * still there.
 * Threads: one, once.  Blocks: until all handlers have returned.  Since: 0.1.
 * [PW-10 PW-11]
 */
WQ_API wq_err wq_workers_destroy(wq_workers *pool);

/* How many threads the pool is to have: what wq_workers_start() or the last
 * wq_workers_resize() set, 0 once stopped; how many there are just now is in
 * wq_workers_read_stats(). 0 for NULL.
 * Threads: any.  Blocks: never.  Since: 0.1.  [PW-02 PW-14]
 */
WQ_API unsigned wq_workers_count(const wq_workers *pool);

/* What a pool is doing, and has done since it was started. */
typedef struct wq_workers_stats {
    size_t   size;      /* sizeof(wq_workers_stats); set by the caller */
    size_t   threads;   /* workers there are */
    size_t   busy;      /* of these, how many are working on a key */
    uint64_t done;      /* results: done */
    uint64_t retried;   /* retry, and the key was added */
    uint64_t postponed; /* after, and the key was added */
    uint64_t dropped;   /* keys that went to on_drop(), whatever the result */
    uint64_t errors;    /* gets and dones that failed, each attempt */
} wq_workers_stats;

/* Fill in *out, as far as out->size reaches. Every handler that returned is in
 * one of done, retried, postponed and dropped. The numbers are taken one after
 * the other while the workers work on.
 *
 *     wq_workers_stats counts = {.size = sizeof counts};
 *
 * Returns WQ_OK; WQ_EINVAL: NULL, or a wrong `size` (rules: see wq_create()).
 * Threads: any.  Blocks: never.  Cost: O(threads).  Since: 0.1.  [PW-21]
 */
WQ_API wq_err wq_workers_read_stats(const wq_workers *pool,
                                    wq_workers_stats *out);

/* ---------------------------------------------------------- without a queue */

/* Choices for wq_parallelize(). Zero means the stated default. */
typedef struct wq_parallel_options {
    size_t size;  /* sizeof(wq_parallel_options) */
    size_t chunk; /* pieces a thread takes at a time; 0: 1. [P-02] */
    /* Shall no further piece begin? Asked before every piece, from all threads,
     * with the ctx of wq_parallelize(). NULL: never. [P-02] */
    bool (*cancelled)(void *ctx);
    const wq_allocator *allocator; /* NULL: malloc and free */
} wq_parallel_options;

#ifndef __cplusplus
#define WQ_PARALLEL(...)                                                       \
    (&(wq_parallel_options){.size = sizeof(wq_parallel_options), __VA_ARGS__})
#endif

/* Call work(ctx, piece) once for each piece from 0 to `pieces` - 1, in up to
 * `workers` threads, the calling one among them. In C:
 *
 *     wq_parallelize(8, n, resize_image, images, NULL);
 *     wq_parallelize(8, n, add, sums, WQ_PARALLEL(.chunk = 100));
 *
 * No more threads are started than there are chunks. Threads or memory that the
 * system refuses are done without: in the end the calling thread does it all.
 * `options` may be NULL: all defaults.
 *
 * Returns WQ_OK            every piece was worked on (also: there was none);
 *         WQ_EINTERRUPTED  cancelled: some pieces were not begun;
 *         WQ_EINVAL        `workers` is less than 1; `work` is NULL; an
 *                          allocator lacks a function; a `size` is wrong
 *                          (rules: see wq_create()).
 * Threads: any, also a handler or `work` itself.  Blocks: until every piece
 * that was begun has ended.  Since: 0.1.  [P-01 P-02 P-03 PW-23 PW-24]
 */
WQ_API WQ_NODISCARD wq_err wq_parallelize(int workers, size_t pieces,
                                          void (*work)(void *ctx, size_t piece),
                                          void                      *ctx,
                                          const wq_parallel_options *options);

#ifdef __cplusplus
}
#endif

#endif
