/* SPDX-License-Identifier: MIT */
/* backend.h: how does your own queue get behind the wq_queue API?
 *
 * A wq_queue is a struct that begins with `struct wq_queue` and has a table of
 * verbs. The in-memory queue is one; a file, a server or a wrapper around
 * another queue can be others. Callers use all of them in the same way.
 *
 *     struct my_queue { wq_queue base; int socket; ... };
 *
 *     static const wq_backend my_backend = {
 *         .size = sizeof(wq_backend), .name = "mine", .add = my_add, ...
 *     };
 *
 *     wq_err my_open(..., wq_queue **out)
 *     {
 *         struct my_queue *mine = ...;
 *         wq_err err = wq_backend_init(&mine->base, &my_backend);
 *         ...
 *         *out = &mine->base;
 *     }
 *
 * Before it calls a verb, the library refuses NULL queues, items, keys and
 * out-parameters, empty and too long keys, negative timeouts. What a verb must
 * do is written at the function of the same name in wq.h and inspect.h.
 * Timeouts are relative nanoseconds, WQ_FOREVER for none. Every verb may be
 * called from any thread.
 */
#ifndef WQ_BACKEND_H
#define WQ_BACKEND_H

#include <wq/inspect.h>
#include <wq/wq.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define WQ_PRINTF(at, first) __attribute__((__format__(__printf__, at, first)))
#else
#define WQ_PRINTF(at, first)
#endif

/* Set the sentence of wq_last_error() in the calling thread, and return `err`:
 *
 *     return wq_fail(WQ_EIO, "my_open: %s: %s", path, engine_message());
 *
 * For functions of a backend, a sink or a limiter that make or start something.
 * The text is that of printf(); cut after 255 bytes, not within a UTF-8
 * character. wq_last_error() may be among the arguments, to say more than the
 * sentence before. errno stays as it is. No newline at the end.
 * Threads: any.  Blocks: never.  Since: 0.1.  [E-04]
 */
WQ_API wq_err wq_fail(wq_err err, const char *format, ...) WQ_PRINTF(2, 3);

/* The verbs. `size` is sizeof(wq_backend) of the header the backend was
 * compiled with; later releases append verbs. A required verb must not be NULL;
 * a function whose verb is missing returns WQ_ENOTSUP.
 */
typedef struct wq_backend {
    size_t      size;
    const char *name; /* required; for messages: "memory" */

    /* Required. */
    void (*destroy)(wq_queue *q);
    wq_err (*add)(wq_queue *q, wq_key key);
    wq_err (*get)(wq_queue *q, int64_t timeout_ns, wq_item **out);
    wq_err (*done)(wq_queue *q, wq_item *item);
    /* May fail, for example if a server does not answer; wq_len() is 0 then. */
    wq_err (*len)(wq_queue *q, size_t *out);
    void (*shutdown)(wq_queue *q);
    bool (*shutting_down)(const wq_queue *q);

    /* Or NULL. */
    wq_err (*done_key)(wq_queue *q, wq_key key);
    wq_err (*drain)(wq_queue *q, int64_t timeout_ns); /* shuts down, blocks.
                       NULL: callers shut down and wait for their workers */
    void (*interrupt)(wq_queue *q);                   /* NULL: no effect */
    wq_err (*add_after)(wq_queue *q, wq_key key, int64_t delay_ns);
    wq_err (*add_rate_limited)(wq_queue *q, wq_key key);
    wq_err (*forget)(wq_queue *q, wq_key key);
    wq_err (*num_requeues)(wq_queue *q, wq_key key, unsigned *out);
    /* add_rate_limited() counts a key that it gives up itself. */
    wq_err (*count_drops)(wq_queue *q, uint64_t n);
    /* `how` has this release's size, and its values are checked; so are the
     * keys, of which there is at least one. */
    wq_err (*add_with)(wq_queue *q, const wq_add_options *how,
                       const wq_key *keys, size_t n);
    wq_err (*remove)(wq_queue *q, wq_key key);
    wq_err (*cancel_after)(wq_queue *q, wq_key key);
    /* NULL: the library calls get() and done() instead, one by one. */
    wq_err (*get_many)(wq_queue *q, wq_item **out, size_t max,
                       int64_t timeout_ns, size_t *n);
    wq_err (*done_many)(wq_queue *q, wq_item **items, size_t n);
    wq_err (*next)(wq_queue *q, int64_t timeout_ns, wq_item **item);
    int (*fd)(wq_queue *q);
    /* *out has this release's size, and is zero. */
    wq_err (*stats)(wq_queue *q, wq_stats *out);
    wq_err (*depths)(wq_queue *q, wq_depth *out, size_t max, size_t *n);
    wq_err (*key_info)(wq_queue *q, wq_key key, wq_key_info *out);
    wq_err (*each)(wq_queue *q, unsigned states, wq_visit visit, void *ctx);
    const char *(*queue_name)(wq_queue *q); /* NULL: it has none */
    wq_err (*remove_wait)(wq_queue *q, wq_key key, int64_t timeout_ns);
    wq_err (*flush)(wq_queue *q, int64_t timeout_ns);
    wq_err (*flush_key)(wq_queue *q, wq_key key, int64_t timeout_ns);
    wq_err (*wait_idle)(wq_queue *q, int64_t timeout_ns);
    wq_err (*pause)(wq_queue *q);
    wq_err (*resume)(wq_queue *q);
} wq_backend;

/* The part of a queue that the library sees. First member of a backend's own
 * struct.
 */
struct wq_queue {
    const wq_backend *backend; /* set by wq_backend_init() */
};

/* Put `backend`, which must outlive the queue, behind `q`.
 *
 * Returns WQ_OK; WQ_EINVAL if either is NULL, `size` does not fit any release
 * up to this one, or a required verb is missing: wq_last_error() says which.
 * Since: 0.1.  [O-09]
 */
WQ_API WQ_NODISCARD wq_err wq_backend_init(wq_queue         *q,
                                           const wq_backend *backend);

/* Layers: they add delays and rate limits to a backend that has none.
 *
 * wq_delaying_wrap() adds wq_add_after() to a backend that has only the
 * required verbs; wq_rate_limiting_wrap() then adds wq_add_rate_limited(),
 * wq_forget() and wq_num_requeues(). This is the counterpart of injecting a
 * queue in client-go's configs. On success `inner` belongs to the new queue:
 * use and destroy only that one. On error it is the caller's as before. The
 * second takes the limiter of the config over in every case, as wq_create()
 * does; the first does not look at it, so one config serves both.
 *
 * Both layers pass on: add, get, done, done_key, len, shutdown, shutting_down,
 * drain, interrupt, count_drops; the second also add_after, and it counts the
 * keys that it gives up in `inner`. wq_get_many(), wq_done_many()
 * and wq_next() go one by one through get and done. All other verbs return
 * WQ_ENOTSUP, whether `inner` has them or not: add_with, remove, cancel_after,
 * remove_wait, flush, flush_key, wait_idle, pause, resume, stats, depths,
 * key_info, each; fd (-1 and ENOSYS). wq_delaying_wrap() also returns
 * WQ_ENOTSUP for add_rate_limited and forget. A layer has no queue_name.
 *
 * The first adds due keys to `inner` at the start of its verbs, all but
 * interrupt, shutting_down and count_drops, and that must not block. A backend
 * whose add can block must have add_with, and that must return WQ_EFULL at once
 * for `nowait`. A backend without add_with, or whose add_with returns
 * WQ_ENOTSUP for that, is given the key by add: then these verbs block
 * for as long as add does. The layers themselves have no add_with: do not put
 * delays around a layer around a queue that blocks. A due key that `inner`
 * refuses is offered again by later verbs, and every 10 ms while a get sleeps;
 * a shutdown drops it, and may drop one that another thread is just offering.
 *
 * wq_destroy() of a layer needs a `shutdown` of `inner` that ends every blocked
 * add, get and drain, and a `destroy` that waits for them, as wq.h says.
 *
 * Of `config` (NULL: all defaults) they use the allocator and the clock, which
 * must be the clock by which the inner queue measures its timeouts. Timeouts
 * are durations: if a fake clock is stepped after a layer has read it and
 * before the inner queue sleeps, that sleep misses the step. The second layer
 * also uses `limiter`, `max_retries` and `on_drop`. They start no thread. A
 * get that sleeps in an inner queue without `interrupt` notices a new, earlier
 * deadline within 10 ms.
 *
 * Returns WQ_OK; else wq_last_error() names the field and the reason:
 *   WQ_EINVAL   NULL inner or out; a bad config; a limiter that has an owner;
 *   WQ_ENOTSUP  the config sets `order`, `waiting`, `retry`, `name`, `metrics`,
 *               `ages`, `max_len`, `max_bytes`, `group`, `max_ready_ns` or
 *               `real_time`; for the second: `inner` has no add_after;
 *   WQ_ENOMEM, WQ_EIO  as wq_create(); the second also: the error of a failed
 *               limiter.
 * Threads: any.  Blocks: never.  Since: 0.1.  [D-17 O-18 O-19]
 */
WQ_API WQ_NODISCARD wq_err wq_delaying_wrap(wq_queue        *inner,
                                            const wq_config *config,
                                            wq_queue       **out);
WQ_API WQ_NODISCARD wq_err wq_rate_limiting_wrap(wq_queue        *inner,
                                                 const wq_config *config,
                                                 wq_queue       **out);

#ifdef __cplusplus
}
#endif

#endif
