/* SPDX-License-Identifier: MIT */
/* backend.h: how to put a queue of your own behind the wq_queue API.
 *
 * A backend implements a queue: a struct that begins with `struct wq_queue`,
 * and a table of functions, its verbs. The in-memory queue is one backend; a
 * file, a server or a wrapper around another queue can be others. Callers use
 * all of them in the same way.
 *
 *     struct my_queue { wq_queue base; int socket; };
 *
 *     static const wq_backend my_backend = {
 *         .size = sizeof(wq_backend), .name = "mine",
 *         .destroy = my_destroy, .add = my_add, .get = my_get,
 *         .done = my_done, .len = my_len, .shutdown = my_shutdown,
 *         .shutting_down = my_shutting_down,
 *     };
 *
 *     static wq_err
 *     my_init(struct my_queue *mine, int socket, wq_queue **out)
 *     {
 *         wq_err err = wq_backend_init(&mine->base, &my_backend);
 *         if (err)
 *             return err;
 *         mine->socket = socket;
 *         *out = &mine->base;
 *         return WQ_OK;
 *     }
 *
 * Before it calls a verb, the library refuses NULL queues, items, keys and
 * out-parameters, empty keys, keys that are too long, and negative timeouts. A
 * verb must do what wq.h and inspect.h say about the function of the same name.
 * Timeouts are relative nanoseconds; WQ_FOREVER is no limit. Every verb may be
 * called from any thread.
 */
#ifndef WQ_BACKEND_H
#define WQ_BACKEND_H

#include <wq/inspect.h>
#include <wq/wq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Internal: an attribute of wq_fail(). */
#if defined(__GNUC__) || defined(__clang__)
#define WQ_PRINTF(at, first) __attribute__((__format__(__printf__, at, first)))
#else
#define WQ_PRINTF(at, first)
#endif

/* Set the sentence of wq_last_error() in the calling thread, and return `err`:
 *
 *     return wq_fail(WQ_EIO, "my_open: %s: %s", path, engine_message());
 *
 * For functions of a backend, a sink or a limiter that create or start
 * something. The arguments are those of printf(). A text of more than 255 bytes
 * is cut, not within a UTF-8 character. Do not end it with a newline.
 * wq_last_error() may be among the arguments, to extend the sentence before.
 * errno does not change.
 * Threads: any.  Blocks: never.  Since: 0.1.  [E-04]
 */
WQ_API wq_err wq_fail(wq_err err, const char *format, ...) WQ_PRINTF(2, 3);

/* The verbs. `size` is sizeof(wq_backend) of the header that the backend was
 * compiled with; later releases append verbs. A required verb must not be NULL.
 * If an optional verb is NULL, its function returns WQ_ENOTSUP unless stated
 * otherwise.
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

    /* Optional. */
    wq_err (*done_key)(wq_queue *q, wq_key key);
    /* Shuts down, then blocks. NULL: callers must shut down and wait for their
     * workers. */
    wq_err (*drain)(wq_queue *q, int64_t timeout_ns);
    void (*interrupt)(wq_queue *q); /* NULL: no effect */
    wq_err (*add_after)(wq_queue *q, wq_key key, int64_t delay_ns);
    wq_err (*add_rate_limited)(wq_queue *q, wq_key key);
    wq_err (*forget)(wq_queue *q, wq_key key);
    wq_err (*num_requeues)(wq_queue *q, wq_key key, unsigned *out);
    /* Not called for a key that add_rate_limited() gives up: that verb must
     * count it. */
    wq_err (*count_drops)(wq_queue *q, uint64_t n);
    /* The library has checked `how`, which has this release's size, and the
     * keys. n is at least 1. */
    wq_err (*add_with)(wq_queue *q, const wq_add_options *how,
                       const wq_key *keys, size_t n);
    wq_err (*remove)(wq_queue *q, wq_key key);
    wq_err (*cancel_after)(wq_queue *q, wq_key key);
    /* These three; NULL: the library calls get() and done(), one by one. */
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
    const char *(*queue_name)(wq_queue *q); /* NULL: no name */
    wq_err (*remove_wait)(wq_queue *q, wq_key key, int64_t timeout_ns);
    wq_err (*flush)(wq_queue *q, int64_t timeout_ns);
    wq_err (*flush_key)(wq_queue *q, wq_key key, int64_t timeout_ns);
    wq_err (*wait_idle)(wq_queue *q, int64_t timeout_ns);
    wq_err (*pause)(wq_queue *q);
    wq_err (*resume)(wq_queue *q);
    /* wq_finish_many(): sets errs[i], and items[i] to NULL if its loan has
     * ended, or if it is not on loan. Returns what the function returns. n is
     * at least 1; `results` and `errs` may be NULL. NULL: the library calls
     * forget, the adds and done; then an item that is not on loan is noticed
     * only after the add. */
    wq_err (*finish)(wq_queue *q, wq_item **items, const wq_result *results,
                     wq_err *errs, size_t n);
    /* *item is not NULL. A key that was lost: the verb may return WQ_ELOST
     * with *item NULL before the get; the library then calls get. NULL: the
     * library calls finish, then get. */
    wq_err (*next_with)(wq_queue *q, wq_result result, int64_t timeout_ns,
                        wq_item **item);
    int64_t (*hold_left)(wq_queue *q, const wq_item *item); /* NULL: forever */
    wq_err (*renew)(wq_queue *q);                           /* NULL: WQ_OK */
    wq_err (*revive)(wq_queue *q, wq_key key);
    wq_err (*check)(wq_queue *q, wq_problem problem, void *ctx);
} wq_backend;

/* The part of a queue that the library sees. First member of a backend's own
 * struct.
 */
struct wq_queue {
    const wq_backend *backend; /* set by wq_backend_init() */
};

/* Has the backend of `q` this optional verb? Its table may be that of an older
 * release, and end before the verb: use this before you call an optional verb
 * of another queue directly. [O-09]
 */
#define WQ_HAS_VERB(q, verb)                                                   \
    (offsetof(wq_backend, verb) + sizeof(q)->backend->verb <=                  \
         (q)->backend->size &&                                                 \
     (q)->backend->verb)

/* Make `backend` the backend of `q`. It must outlive the queue.
 *
 * Returns WQ_OK; WQ_EINVAL if either is NULL, `size` is less than the required
 * verbs need or more than this release knows, or a required verb is missing:
 * wq_last_error() says which.
 * Since: 0.1.  [O-09]
 */
WQ_API WQ_NODISCARD wq_err wq_backend_init(wq_queue         *q,
                                           const wq_backend *backend);

/* Layers: they add delays and rate limits to a backend that has none.
 *
 * The delaying layer (wq_delaying_wrap()) adds wq_add_after() to a backend that
 * has only the required verbs. The rate-limiting layer
 * (wq_rate_limiting_wrap()) adds wq_add_rate_limited(), wq_forget() and
 * wq_num_requeues() to a backend that has delays. They correspond to the custom
 * queues in client-go's configs. On success `inner` belongs to the new queue:
 * use and destroy only the new queue. On error `inner` still belongs to the
 * caller. The rate-limiting layer takes ownership of the limiter of the config
 * in every case, as wq_create() does; the delaying layer ignores the limiter,
 * so that both can be given the same config.
 *
 * The other verbs do what `inner` does: a layer passes them on, and returns
 * WQ_ENOTSUP (wq_fd(): -1 with errno ENOSYS) if `inner` has no such verb.
 * wq_cancel_after() of the delaying layer needs no verb of `inner`; wq_each()
 * needs `each` and `key_info`. The delaying layer returns WQ_ENOTSUP for
 * wq_add_rate_limited() and wq_forget(), whether `inner` has them or not.
 *
 * The delaying layer stores the deadlines; `inner` gets no adds with a delay.
 * What the layer combines:
 *
 *   wq_add_with()     An add without a delay goes to `inner`, with its options;
 *                     a delay sets a deadline of the layer. A key with a
 *                     deadline that MERGE or REPLACE ends is not refused if
 *                     `inner` is full: it is due. With debounce_ns or a
 *                     `waiting` policy other than KEEP, one key in a call. A
 *                     debounce, and a delay with MERGE or REPLACE, need
 *                     `key_info`, REPLACE also `remove`; if another thread
 *                     gets the key at that moment, it may run once more than
 *                     necessary. No throttle_ns, no rate_limited. If `inner`
 *                     has no add_with: no priority; without a delay one key, no
 *                     `nowait`, max_block_ns or `results`. All these:
 *                     WQ_ENOTSUP, and wq_last_error() says why.
 *   wq_remove(), wq_remove_wait(), wq_cancel_after()
 *                     They also remove the deadline. wq_remove_wait() also
 *                     removes a deadline that is set between the done and its
 *                     return. wq_remove() and wq_cancel_after() do not stop a
 *                     thread that is adding the due key to `inner`.
 *   wq_read_key(), wq_each(), wq_dump()
 *                     Each key with the states of both. A key that moves from
 *                     one to the other during a walk may be visited twice or
 *                     not at all.
 *   wq_read_stats()   `waiting`, `next_ns`, `merged`, `retries`, `deferred` and
 *                     `drops` of both; not one snapshot. `known` counts a key
 *                     twice if both know it. `drops` also counts READY keys
 *                     that lose a deadline at a shutdown.
 *   wq_fd()           Also readable when a deadline of the layer has passed.
 *
 * `inner` does not know the WAITING keys of the layer: max_len, max_bytes,
 * wq_stats.groups, wq_read_depths() and metrics do not count them, adds with a
 * delay are never refused, a key that `inner` displaces keeps its deadline, and
 * the age of a key begins when the layer adds it to `inner`. wq_flush() and
 * wq_wait_idle() do not wait for due keys that `inner` refuses.
 *
 * The rate-limiting layer keeps the failures: wq_read_key(), wq_each() and
 * wq_dump() show those of its limiter. It counts the keys that it gives up in
 * `inner`. wq_add_with() with rate_limited takes several keys only if `inner`
 * is a delaying layer; those without a delay are due then, even if the queue is
 * full. Only around a delaying layer is a retry WQ_STATE_BACKOFF; in any other
 * queue it is WAITING.
 *
 * Every verb of the delaying layer, except interrupt, shutting_down,
 * count_drops and queue_name, first adds due keys to `inner`; this must not
 * block. So a backend whose add can block must have add_with, and add_with must
 * return WQ_EFULL at once for `nowait`. If `inner` has no add_with, or add_with
 * returns WQ_ENOTSUP for `nowait`, the layer calls add, and its verbs block for
 * as long as add does. If `inner` refuses a due key, the key is WAITING with a
 * wait_ns of 0: later verbs offer it again, and so does a get that sleeps,
 * every 10 ms; a shutdown drops it, and may drop a key that another thread is
 * offering at that moment.
 *
 * wq_destroy() of a layer requires that `shutdown` of `inner` ends every
 * blocked add, get and drain, that `destroy` ends every other blocked call, and
 * that it waits for all of them, as wq.h says.
 *
 * Of `config` (NULL: all defaults) both layers use the allocator and the clock,
 * which must be the clock by which the inner queue measures its timeouts. The
 * rate-limiting layer also uses `limiter`, `max_retries` and `on_drop`. The
 * layers start no thread. A get that sleeps in an inner queue without
 * `interrupt` notices a new, earlier deadline within 10 ms. A layer passes
 * timeouts as durations: if a fake clock is stepped after the layer has read it
 * and before the inner queue sleeps, that sleep misses the step.
 *
 * Returns WQ_OK; else wq_last_error() names the field and the reason:
 *   WQ_EINVAL   NULL inner or out; a bad config; a limiter that has an owner;
 *   WQ_ENOTSUP  the config sets `order`, `waiting`, `retry`, `name`, `metrics`,
 *               `ages`, `max_len`, `max_bytes`, `group`, `max_ready_ns` or
 *               `real_time`; rate-limiting layer: `inner` has no add_after;
 *   WQ_ENOMEM, WQ_EIO  as wq_create(); rate-limiting layer: also the error of a
 *               failed limiter.
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
