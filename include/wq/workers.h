/* SPDX-License-Identifier: MIT */
/* workers.h: a pool of threads that work on a queue.
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
 * The pool ends the loan with that result, by wq_finish(): [PQ-47]
 *
 *     wq_result_done()     the key is done, and its failures are forgotten
 *     wq_result_retry()    it runs again after the delay of the limiter
 *     wq_result_after(d)   it runs again in d; its failures are forgotten
 *     wq_result_drop()     it is dropped: on_drop()
 *     wq_result_back()     it was not worked on, and is READY again
 *     wq_result_bury()     it is DEAD; a queue without DEAD keys drops it
 *
 * A key that runs again keeps its priority, unless the result has its own. If
 * the queue gives the key up (the maximum number of retries, a shutdown), the
 * pool calls on_drop() with the reason. If the queue cannot end the loan now (a
 * store does not answer, out of memory), the worker repeats it until it
 * succeeds or the pool stops. [PW-20]
 *
 * A shutdown, and so a drain, drops WAITING keys by default, without a call of
 * on_drop(). To have them handed out, create the queue with WQ_WAITING_FLUSH
 * (at once: the right choice for debounced keys) or WQ_WAITING_KEEP (at their
 * deadlines).
 *
 * A worker calls the handler for one key at a time, and two workers never call
 * it for the same key at the same time. The callbacks (handler, on_drop,
 * on_stuck, on_lost) are called without a lock. They may call
 * wq_workers_resize() and every function of the queue except these: wq_done()
 * and wq_finish() of their item, which the pool calls;
 * wq_shutdown_with_drain(), which would wait for that item; and wq_destroy().
 * In the handler, wq_flush() and wq_wait_idle() return WQ_ESTATE.
 * wq_workers_stop(), _stop_within(), _drain() and _destroy() return WQ_ESTATE
 * in a thread of their pool. [PW-09 PW-11]
 *
 * A handler must return. Do not leave it by longjmp() or pthread_exit(), and do
 * not cancel its thread: the key would never be done. The pool can report a
 * handler that takes too long (item_deadline_ns), but cannot end it.
 *
 * The queue must outlive the pool. Other pools, and your own gets, may take
 * keys from the same queue. A pool that stops or shrinks calls wq_interrupt():
 * if your own get returns WQ_EINTERRUPTED, call it again, as the workers of a
 * pool do. [PW-15]
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

/* ---------------------------------------------------------------- config -- */

/* How a pool is created, and what wq_work_one() does with a key. Zero means the
 * stated default. In C, WQ_WORKERS(.handler = f) sets `size`; in C++ set it by
 * hand. wq_workers_start() copies the struct, the name and the allocator;
 * everything else that the struct points to must outlive the pool.
 */
typedef struct wq_workers_config {
    size_t   size;    /* sizeof(wq_workers_config) */
    unsigned threads; /* 0: one for each usable processor. [PW-02] */
    /* Works on item->key. Required. `item` is valid until it returns. */
    wq_result (*handler)(void *ctx, const wq_item *item);
    void *ctx; /* first argument of all callbacks */
    /* The key was dropped after `retries` retries. `why` is
     *   WQ_EDROPPED   the handler returned wq_result_drop(); or
     *                 wq_result_bury(), and the queue keeps no DEAD keys;
     *   WQ_EGIVENUP   the queue gave the key up (wq_config.max_retries);
     *                 wq_config.on_drop was called first. A queue that keeps
     *                 DEAD keys has the key, with its failures; the limiter of
     *                 any other has forgotten it;
     *   WQ_ESHUTDOWN  the queue is shut down and refuses to keep the key;
     *   WQ_ENOTSUP, WQ_EINVAL  the queue cannot run the key again: a backend
     *                 without delays or limits;
     *   another       the error of wq_finish(), which failed until the pool
     *                 was stopped: the key is still on loan. Not WQ_EIO and
     *                 WQ_EAWAY. [PW-20]
     * Called by the worker after the loan has ended: the key is not HELD any
     * more (except with "another"), and another worker may hold it, if it was
     * added meanwhile. At most once for each hand-out. `key` is a copy, valid
     * until this returns; a NUL byte follows it. Not called for a key that was
     * lost. NULL: no callback; the key is only counted, in
     * wq_workers_stats.dropped and wq_stats.drops. [PW-06 PW-07 PW-08] */
    void (*on_drop)(void *ctx, wq_key key, unsigned retries, wq_err why);
    /* The threads are named "name-0", "name-1", ...; the name is cut if name
     * and number are longer than the system allows (Linux: 15 bytes). Numbers
     * are not reused. NULL: threads are not named. [PW-03] */
    const char *name;
    /* The pool calls on_stuck() for a handler that runs longer than this. 0:
     * never. [PW-18] */
    int64_t item_deadline_ns;
    /* The handler of `item` has been running for `running_ns`. Called at most
     * once for each hand-out, one call at a time, by the watchdog, a thread
     * that exists only if item_deadline_ns or on_lost is set. `item` is valid
     * until this returns: the pool ends that loan only after on_stuck() has
     * returned, so on_stuck() must not wait for that end. Required with
     * item_deadline_ns. [PW-17 PW-18] */
    void (*on_stuck)(void *ctx, const wq_item *item, int64_t running_ns);
    /* The clock for item_deadline_ns and on_lost. Not owned. NULL:
     * wq_clock_monotonic(). */
    wq_clock *clock;
    /* NULL: malloc and free. Called without a lock, by the threads that call
     * wq_workers_start(), _resize(), _stop(), _stop_within(), _drain() and
     * _destroy(); and by workers, for a copy of a key of more than 255 bytes
     * that on_drop() may need. */
    const wq_allocator *allocator;
    /* The hold of `item` is not certain any more (wq_hold_left() is 0) while
     * its handler runs: another worker may get the key. Make the handler stop.
     * Called at most once for each hand-out, by the watchdog, which looks once
     * a second, and when a hold may end. It exists if this or item_deadline_ns
     * is set, and does nothing for a queue whose holds do not end. `item` is
     * valid until this returns, as for on_stuck. NULL: no callback. [PW-27] */
    void (*on_lost)(void *ctx, const wq_item *item);
} wq_workers_config;

#ifndef __cplusplus
#define WQ_WORKERS(...)                                                        \
    (&(wq_workers_config){.size = sizeof(wq_workers_config), __VA_ARGS__})
#endif

/* ----------------------------------------------------------- life of a pool */

/* A pool of threads that wq_workers_start() makes. Opaque. */
typedef struct wq_workers wq_workers;

/* Start a pool that works on the keys of `q`.
 *
 * All threads start, or none: if this fails, no handler was called. The caller
 * owns *out and passes it to wq_workers_destroy() before destroying the queue.
 *
 * Once the queue is shut down and empty, the threads end; the pool stays until
 * it is destroyed. If a get fails (out of memory, a server that does not
 * answer), the worker repeats it every 10 ms. If the loan of a key cannot be
 * ended, it repeats that after 10 ms, 20 ms, 40 ms and so on, up to 1 s. With a
 * backend that cannot be interrupted, workers check every 50 ms whether the
 * pool stops.
 * [PW-16 PW-19 PW-20 PW-22]
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

/* Change the number of threads to `threads`.
 *
 * If the pool grows, all new threads start, or none. If it shrinks, idle
 * workers end at once and busy ones after their item; the call does not wait
 * for handlers. 0 pauses the pool: keys stay in the queue until the pool grows
 * again. Concurrent calls take turns; the last one counts.
 *
 * Returns WQ_OK;
 *   WQ_EINVAL  NULL pool;
 *   WQ_ESTATE  the pool is stopped, by wq_workers_stop() or by a drain that
 *              succeeded;
 *   WQ_ENOMEM, WQ_EIO  as wq_workers_start(); the number has not changed.
 * Threads: any, also a handler.  Blocks: while threads start, or until surplus
 * idle workers have ended; never for a handler.  Cost: O(threads).  Since: 0.1.
 * [PW-14]
 */
WQ_API WQ_NODISCARD wq_err wq_workers_resize(wq_workers *pool,
                                             unsigned    threads);

/* Stop the pool: every worker finishes its item and ends. The queue is not shut
 * down, and keys that were not handed out stay in it. A stopped pool cannot be
 * started again, or resized. A second call is harmless.
 *
 * Returns WQ_OK      all threads of the pool have ended;
 *         WQ_EINVAL  NULL pool;
 *         WQ_ESTATE  called from a thread of this pool: the pool is not
 *                    stopped.
 * Threads: any but the pool's own.  Blocks: until all handlers have returned.
 * Since: 0.1.  [PW-10 PW-11 PW-15]
 */
WQ_API wq_err wq_workers_stop(wq_workers *pool);

/* wq_workers_stop() that blocks for at most `timeout_ns` of real (monotonic)
 * time (0: checks once). For a process that must end soon, for example after
 * SIGTERM: stop within 20 seconds, then exit, whatever the result; keys of a
 * shared queue that are still HELD then become READY for other workers.
 *
 * After WQ_ETIMEDOUT the pool goes on stopping: a worker ends after its item.
 * Call this function again, or wq_workers_stop() or wq_workers_destroy(), to
 * wait longer.
 *
 * Returns WQ_OK         all threads of the pool have ended;
 *         WQ_ETIMEDOUT  handlers still run, or a get of the queue does not
 *                       return;
 *         WQ_EINVAL     NULL pool or negative timeout;
 *         WQ_ESTATE     as wq_workers_stop().
 * Threads: any but the pool's own.  Blocks: at most `timeout_ns`.
 * Since: 0.1.  [PW-11 PW-26]
 */
WQ_API wq_err wq_workers_stop_within(wq_workers *pool, int64_t timeout_ns);

/* Drain: wq_shutdown_with_drain_within() of the queue, then wq_workers_stop().
 * The workers work on all keys that are READY, HELD or DIRTY; a key that fails
 * meanwhile cannot be retried, so the pool drops it (on_drop()). By default the
 * queue drops WAITING keys; with WQ_WAITING_FLUSH it makes them READY at once,
 * and with WQ_WAITING_KEEP at their deadlines.
 *
 * After WQ_ETIMEDOUT and WQ_EINTERRUPTED the queue is shut down and the workers
 * continue: a handler that hangs cannot be ended. Drain again to wait longer,
 * or stop to wait only for the items that are HELD. A pool that is paused by
 * wq_workers_resize() does not drain.
 *
 * Returns WQ_OK            all that work is done and all threads have ended;
 *         WQ_ETIMEDOUT     work remains after `timeout_ns` (queue's clock);
 *         WQ_EINTERRUPTED  another thread called wq_shutdown() during the
 *                          drain. Work remains;
 *         WQ_ENOTSUP       the backend cannot drain: nothing has changed;
 *         WQ_EINVAL        NULL pool or negative timeout;
 *         WQ_ESTATE        called from a thread of this pool: nothing has
 *                          changed.
 * Threads: any but the pool's own.  Blocks: at most `timeout_ns`, plus the time
 * of wq_workers_stop(), which is short unless a handler called wq_done()
 * itself.
 * Since: 0.1.  [PW-11 PW-12 PW-13]
 */
WQ_API wq_err wq_workers_drain(wq_workers *pool, int64_t timeout_ns);

/* wq_workers_stop(), then free the pool. NULL is allowed.
 *
 * Returns WQ_OK; WQ_ESTATE: called from a thread of this pool; the pool is not
 * stopped or freed.
 * Threads: one, once.  Blocks: until all handlers have returned.  Since: 0.1.
 * [PW-10 PW-11]
 */
WQ_API wq_err wq_workers_destroy(wq_workers *pool);

/* The number of threads that wq_workers_start() or the last wq_workers_resize()
 * set; 0 once stopped. wq_workers_read_stats() reads how many exist now. 0 for
 * NULL.
 * Threads: any.  Blocks: never.  Since: 0.1.  [PW-02 PW-14]
 */
WQ_API unsigned wq_workers_count(const wq_workers *pool);

/* The stats of a pool: its threads now, and counts since it was started. */
typedef struct wq_workers_stats {
    size_t   size;    /* sizeof(wq_workers_stats); set by the caller */
    size_t   threads; /* workers that exist now */
    size_t   busy;    /* of these, how many are working on a key */
    uint64_t done;    /* results "done" */
    uint64_t retried; /* results "retry", if the key runs again */
    uint64_t delayed; /* results "after", if the key runs again */
    uint64_t dropped; /* keys that were dropped (on_drop()) */
    uint64_t errors;  /* gets and ends of loans that failed, each attempt */
    /* Loans that had ended before the worker could end them: the queue lost the
     * key (WQ_ELOST), or the handler called wq_done(). */
    uint64_t lost;
    uint64_t returned; /* results "back", if the key is READY again */
    uint64_t buried;   /* results "bury", if the key is DEAD */
} wq_workers_stats;

/* Read the stats into *out, as far as out->size reaches. Every handler that has
 * returned is counted in one of done, retried, delayed, dropped, lost, returned
 * and buried, unless the end of its loan failed, and was repeated, until the
 * pool was stopped: then it is only in errors. A "done" is counted before the
 * queue has confirmed it, and is taken back if it fails. It is not a snapshot:
 * workers run while the numbers are read one after the other.
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

/* Work on one key in the calling thread, as a worker of a pool does. For event
 * loops (wq_fd()) and for tests:
 *
 *     while ((err = wq_work_one(q, &config, 0)) == WQ_OK)
 *         ;
 *
 * Gets a key within `timeout_ns`, calls the handler, and ends the loan with the
 * result. `config` as for wq_workers_start(), and checked in the same way;
 * `threads`, `name`, `item_deadline_ns`, `on_stuck`, `on_lost` and `clock` have
 * no effect. A handler may call wq_work_one() itself.
 *
 * Returns WQ_OK      one key was worked on, whatever the handler returned;
 *         WQ_EINVAL  NULL queue or config, a negative timeout, or a config that
 *                    wq_workers_start() refuses;
 *         the error of wq_get_within(): the handler was not called;
 *                    WQ_ETIMEDOUT, WQ_ESHUTDOWN, WQ_EINTERRUPTED, ...;
 *         the error of wq_finish(): the handler was called. With WQ_ESTATE,
 *                    WQ_EINVAL and WQ_ELOST the item was not on loan any more.
 *                    With any other error it is still on loan, and this
 *                    function does not repeat the attempt: wq_done_key() ends
 *                    the loan. on_drop() was called with that error, except
 *                    with WQ_EIO and WQ_EAWAY.
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
    size_t chunk; /* how many pieces a thread takes at a time; 0: 1. [P-02] */
    /* Return true to begin no further piece. Called before every piece, by all
     * threads, with the ctx of wq_parallelize(). NULL: no callback. [P-02] */
    bool (*cancelled)(void *ctx);
    const wq_allocator *allocator; /* NULL: malloc and free */
} wq_parallel_options;

#ifndef __cplusplus
#define WQ_PARALLEL(...)                                                       \
    (&(wq_parallel_options){.size = sizeof(wq_parallel_options), __VA_ARGS__})
#endif

/* Call work(ctx, piece) once for each piece from 0 to `pieces` - 1, in up to
 * `workers` threads, including the calling one. In C:
 *
 *     wq_parallelize(8, n, resize_image, images, NULL);
 *     wq_parallelize(8, n, add, sums, WQ_PARALLEL(.chunk = 100));
 *
 * It starts no more threads than there are chunks. If the system refuses memory
 * or threads, it works with fewer threads, at least with the calling one.
 * `options` may be NULL: all defaults.
 *
 * Returns WQ_OK            every piece was worked on (also for pieces = 0);
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
