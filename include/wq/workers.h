/* SPDX-License-Identifier: MIT */
/* workers.h: how do threads work on a queue, and what happens to a key then?
 *
 * A pool takes keys from a queue and calls your handler with each, from several
 * threads. The result of the handler decides what happens to the key:
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
 *     wq_workers_drain(p, WQ_SECONDS(30));
 *     wq_workers_destroy(p);
 *     wq_destroy(q);
 *
 *     handler returns          the pool calls                          [PQ-47]
 *     wq_result_done()         wq_forget()
 *     wq_result_retry()        wq_add_rate_limited()
 *     wq_result_after(d)       wq_forget(), wq_add_after(d); wq_add() if d <= 0
 *     wq_result_drop()         wq_count_drops(), on_drop()
 *
 * and then, always last, wq_done(). A key that cannot be added again (out of
 * memory, the queue is shut down, the key was retried as often as allowed) is
 * dropped: on_drop() is called with the reason. on_drop() is not called for
 * WAITING keys that the queue drops at a shutdown, so also at a drain. To have
 * them handed out, create the queue with WQ_WAITING_FLUSH (at once: the right
 * choice for debounced keys) or WQ_WAITING_KEEP (at their deadlines). A key
 * that is added again keeps its priority.
 *
 * A worker calls the handler for one key at a time, and no two workers do for
 * the same key: the promises of the queue hold here. The callbacks (handler,
 * on_drop, on_stuck) are called without a lock. They may call every function of
 * the queue except wq_done() of their item, which the pool calls, and
 * wq_shutdown_with_drain(), which would wait for that item; they may call
 * wq_workers_resize(). wq_workers_stop(), _drain() and _destroy() of their own
 * pool would wait for the caller, and return WQ_ESTATE. [PW-09 PW-11]
 *
 * A handler must return. Do not leave it by longjmp() or pthread_exit(), and do
 * not cancel its thread: the key would never be done. A handler that takes too
 * long can be noticed (item_deadline_ns) but not ended.
 *
 * The queue must outlive the pool. Other pools, and your own gets, may take
 * keys from the same queue. When a pool stops or shrinks it calls
 * wq_interrupt(): if a get of your own returns WQ_EINTERRUPTED, call it again,
 * as the workers of a pool do. [PW-15]
 *
 * Threads. Every function may be called from any thread, except
 * wq_workers_destroy(): it must be the last call. The threads of a pool inherit
 * the signal mask of the thread that started or resized it.
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

/* What to do with a key. Any other number is a retry. [PW-05] */
typedef enum wq_outcome {
    WQ_RESULT_DONE,  /* it succeeded: its failures are forgotten */
    WQ_RESULT_RETRY, /* it failed: again, after the delay of the limiter */
    WQ_RESULT_AFTER, /* it succeeded: again, after `after_ns` */
    WQ_RESULT_DROP   /* it failed, and a retry would not help */
} wq_outcome;

/* What a handler returns. Use the functions below; all zero is done. */
typedef struct wq_result {
    wq_outcome outcome;
    int64_t    after_ns; /* for WQ_RESULT_AFTER */
} wq_result;

/* The work succeeded. The limiter forgets the failures of the key.  Since: 0.1.
 * [PQ-47]
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
 * time, unless the queue gives it up (wq_config.max_retries).  Since: 0.1.
 * [PQ-47 PW-06]
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
 * its failures. 0 or less is now: the key is READY again after done, at the
 * tail. Asking to run again is not a failure, so nothing slows down a handler
 * that always returns 0: it runs without a pause.  Since: 0.1.  [PQ-47 PW-05]
 */
static inline wq_result
wq_result_after(int64_t after_ns)
{
    wq_result result;
    result.outcome = WQ_RESULT_AFTER;
    result.after_ns = after_ns;
    return result;
}

/* The work failed, and a retry would not help. The key is dropped: on_drop() is
 * called, and the key is not added again. Its failures are not forgotten, so
 * that its backoff goes on growing if it is added later and fails again. To
 * forget them, call wq_forget() in the handler.  Since: 0.1.  [PQ-47 PW-08]
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

/* How a pool is created, and what wq_work_one() does with a key. Zero means the
 * stated default; WQ_WORKERS(.handler = f) sets `size`. In C++ set it by hand.
 * The struct and the name are copied; everything else it points to must outlive
 * the pool.
 */
typedef struct wq_workers_config {
    size_t   size;    /* sizeof(wq_workers_config) */
    unsigned threads; /* 0: one for each usable processor. [PW-02] */
    /* Work on item->key. Required. `item` is valid until it returns. */
    wq_result (*handler)(void *ctx, const wq_item *item);
    void *ctx; /* first argument of all callbacks */
    /* `key` was dropped after `retries` retries. `why` is
     *   WQ_EDROPPED   the handler returned wq_result_drop();
     *   WQ_EGIVENUP   the queue gave it up (wq_config.max_retries); its limiter
     *                 has forgotten the key, and wq_config.on_drop was called
     *                 first;
     *   WQ_ESHUTDOWN  the queue is shut down and refuses adds;
     *   another       the error of wq_add_rate_limited(), wq_add_after() or
     *                 wq_add(); or that of wq_done(), which failed until the
     *                 pool was stopped: the key is still on loan (only with
     *                 a wq_order or a backend of your own). [PW-20]
     * Called by the worker while the key is HELD, at most once for each
     * hand-out; the bytes are valid until it returns. NULL: no callback; such
     * keys are only counted, here and in wq_stats.drops.
     * [PW-06 PW-07 PW-08] */
    void (*on_drop)(void *ctx, wq_key key, unsigned retries, wq_err why);
    /* The threads are named "name-0", "name-1", ...; the name is cut so that
     * the number fits into what the system allows (Linux: 15 bytes). Numbers
     * are not reused. NULL: threads are not named. [PW-03] */
    const char *name;
    /* on_stuck() is called for a handler that runs longer. 0: never.
     * [PW-18] */
    int64_t item_deadline_ns;
    /* The handler of `item` has been running for `running_ns`. Called once for
     * each hand-out, one call at a time, by a thread that exists only for this
     * and only if item_deadline_ns is set. `item` is valid until it returns:
     * the pool does not call wq_done() of that item before, so do not wait for
     * it here. Required with item_deadline_ns. [PW-17 PW-18] */
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

/* Start a pool that works on the keys of `q`.
 *
 * All threads start, or none: if it fails, no handler was called. The caller
 * owns *out and passes it to wq_workers_destroy() before destroying the queue.
 *
 * Once the queue is shut down and empty, the threads end; the pool stays until
 * it is destroyed. A get that fails (out of memory, a server that does not
 * answer) is repeated every 10 ms, and so is a wq_done() that fails while the
 * item is still on loan. With a backend that cannot be interrupted, gets time
 * out every 50 ms to see whether the pool stops. [PW-16 PW-19 PW-20 PW-22]
 *
 * Returns WQ_OK; else wq_last_error() names the field and the reason:
 *   WQ_EINVAL  `q`, `config` or `out` is NULL; no handler; item_deadline_ns is
 *              negative, or set without on_stuck; an allocator lacks a
 *              function; a `size` is wrong (rules: see wq_create());
 *   WQ_ENOMEM  out of memory, or no more threads allowed;
 *   WQ_EIO     the system refused a thread for another reason.
 * Threads: any.  Blocks: while threads start.  Cost: O(threads).  Since: 0.1.
 * [PW-01 PW-02 PW-03 PW-04]
 */
WQ_API WQ_NODISCARD wq_err wq_workers_start(wq_queue                *q,
                                            const wq_workers_config *config,
                                            wq_workers             **out);

/* Work with `threads` threads from now on.
 *
 * More: they start, all or none. Fewer: the surplus ends; idle workers at once,
 * busy ones after their item. Does not wait for handlers. 0 pauses the pool:
 * keys stay in the queue until the pool grows again. Concurrent calls take
 * turns; the last one counts.
 *
 * Returns WQ_OK;
 *   WQ_EINVAL  NULL pool;
 *   WQ_ESTATE  wq_workers_stop(), or a drain that succeeded, came before;
 *   WQ_ENOMEM, WQ_EIO  as wq_workers_start(); the size is what it was.
 * Threads: any, also a handler.  Blocks: while threads start, or until surplus
 * idle workers have ended; never for a handler.  Cost: O(threads).  Since: 0.1.
 * [PW-14]
 */
WQ_API WQ_NODISCARD wq_err wq_workers_resize(wq_workers *pool,
                                             unsigned    threads);

/* Stop: every worker finishes its item and ends. The queue is not shut down,
 * and keys that were not handed out stay in it. A stopped pool cannot be
 * started again, or resized. A second call is harmless.
 *
 * Returns WQ_OK      all threads of the pool have ended;
 *         WQ_EINVAL  NULL pool;
 *         WQ_ESTATE  called from a thread of this pool: nothing was done.
 * Threads: any but the pool's own.  Blocks: until all handlers have returned.
 * Since: 0.1.  [PW-10 PW-11 PW-15]
 */
WQ_API wq_err wq_workers_stop(wq_workers *pool);

/* Drain: wq_shutdown_with_drain_within() of the queue, then wq_workers_stop().
 * The workers work on all keys that are READY, HELD or DIRTY; a key that fails
 * meanwhile cannot be retried, and is dropped: on_drop(). WAITING keys are
 * dropped by the queue or worked on: at once with WQ_WAITING_FLUSH, at their
 * deadlines with WQ_WAITING_KEEP.
 *
 * After an error other than WQ_ENOTSUP the queue is shut down and the workers
 * go on: a handler that hangs cannot be ended. Drain again to wait longer, or
 * stop to wait only for the items that are HELD. A pool that is paused by
 * wq_workers_resize() does not drain.
 *
 * Returns WQ_OK            all that work is done and all threads have ended;
 *         WQ_ETIMEDOUT     work remains after `timeout_ns` (queue's clock);
 *         WQ_EINTERRUPTED  wq_shutdown() was called meanwhile. Work remains;
 *         WQ_ENOTSUP       the backend cannot drain: nothing was done;
 *         WQ_EINVAL        NULL pool or negative timeout;
 *         WQ_ESTATE        called from a thread of this pool: nothing was done.
 * Threads: any but the pool's own.  Blocks: at most `timeout_ns`, plus the time
 * of wq_workers_stop(), which is short unless a handler called wq_done()
 * itself.
 * Since: 0.1.  [PW-11 PW-12 PW-13]
 */
WQ_API wq_err wq_workers_drain(wq_workers *pool, int64_t timeout_ns);

/* wq_workers_stop(), then free the pool. NULL is allowed.
 *
 * Returns WQ_OK; WQ_ESTATE when called from a thread of this pool: the pool is
 * still there.
 * Threads: one, once.  Blocks: until all handlers have returned.  Since: 0.1.
 * [PW-10 PW-11]
 */
WQ_API wq_err wq_workers_destroy(wq_workers *pool);

/* How many threads the pool should have: what wq_workers_start() or the last
 * wq_workers_resize() set; 0 once stopped. How many there are now is in
 * wq_workers_read_stats(). 0 for NULL.
 * Threads: any.  Blocks: never.  Since: 0.1.  [PW-02 PW-14]
 */
WQ_API unsigned wq_workers_count(const wq_workers *pool);

/* The stats of a pool: this moment, and counts since it was started. */
typedef struct wq_workers_stats {
    size_t   size;    /* sizeof(wq_workers_stats); set by the caller */
    size_t   threads; /* workers that exist now */
    size_t   busy;    /* of these, how many are working on a key */
    uint64_t done;    /* results done */
    uint64_t retried; /* results retry, if the key was added */
    uint64_t delayed; /* results after, if the key was added */
    uint64_t dropped; /* keys dropped (on_drop()), whatever the result */
    uint64_t errors;  /* gets and dones that failed, each attempt */
} wq_workers_stats;

/* Read the stats into *out, as far as out->size reaches. Every handler that has
 * returned is counted in one of done, retried, delayed and dropped. It is not a
 * snapshot: workers go on while the numbers are read one after the other.
 *
 *     wq_workers_stats stats = {.size = sizeof stats};
 *     wq_err           err = wq_workers_read_stats(pool, &stats);
 *
 * Returns WQ_OK; WQ_EINVAL: NULL, or a wrong `size` (rules: see wq_create()).
 * Threads: any.  Blocks: never.  Cost: O(threads).  Since: 0.1.  [PW-21]
 */
WQ_API wq_err wq_workers_read_stats(const wq_workers *pool,
                                    wq_workers_stats *out);

/* ----------------------------------------------------------- without a pool */

/* Work on one key in the calling thread: what a worker of a pool does between a
 * get and a done. For event loops (wq_fd()) and for tests:
 *
 *     while ((err = wq_work_one(q, &config, 0)) == WQ_OK)
 *         ;
 *
 * Gets a key within `timeout_ns`, calls the handler, does what the result says,
 * and calls wq_done(). `config` as for wq_workers_start(), and checked in the
 * same way; `threads`, `name`, `item_deadline_ns`, `on_stuck`, `clock` and
 * `allocator` have no effect. A handler may call wq_work_one() itself.
 *
 * Returns WQ_OK      one key was worked on, whatever the handler returned;
 *         WQ_EINVAL  NULL queue or config, a negative timeout, or a config that
 *                    wq_workers_start() refuses;
 *         what wq_get_within() returned (WQ_ETIMEDOUT, WQ_ESHUTDOWN,
 *         WQ_EINTERRUPTED, ...): the handler was not called;
 *         what wq_done() returned: the handler was called. With WQ_ESTATE,
 *         WQ_EINVAL and WQ_ELOST the item was not on loan any more. With any
 *         other error (from a wq_order or a backend of your own) the key is
 *         still on loan, and on_drop() was called with that error, unless the
 *         key was dropped before.
 * Threads: any.  Blocks: at most `timeout_ns`, and for the handler.
 * Since: 0.1.  [PW-25]
 */
WQ_API WQ_NODISCARD wq_err wq_work_one(wq_queue                *q,
                                       const wq_workers_config *config,
                                       int64_t                  timeout_ns);

/* ---------------------------------------------------------- without a queue */

/* Options of wq_parallelize(). Zero means the stated default. */
typedef struct wq_parallel_options {
    size_t size;  /* sizeof(wq_parallel_options) */
    size_t chunk; /* pieces a thread takes at a time; 0: 1. [P-02] */
    /* Return true to begin no further piece. Called before every piece, by all
     * threads, with the ctx of wq_parallelize(). NULL: never. [P-02] */
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
 * It starts no more threads than there are chunks. If the system refuses memory
 * or threads, it works with fewer, in the end with the calling thread alone.
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
