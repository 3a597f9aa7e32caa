/* SPDX-License-Identifier: MIT */
/* wq.h: the queue. This header is the manual.
 *
 * A wq_queue holds keys that need work. Producers add keys; workers get a key,
 * work on it, and say done. Three things make it different from a plain FIFO:
 *
 *   - a key that is READY already is not queued twice;
 *   - two workers never hold the same key at the same time;
 *   - a key that is added while a worker holds it is handed out once more after
 *     that worker says done. No add is lost, no key runs twice at once.
 *
 *                 add            get            done
 *       absent ────────► READY ────────► HELD ────────► absent
 *                          ▲              │
 *                          │ done         │ add
 *                          │              ▼
 *                          └───────── HELD+DIRTY      (further adds: no change)
 *
 * A key may also be WAITING, alone or together with these states: it has a
 * deadline. When the deadline passes, that acts as an add.
 *
 * A worker reads:
 *
 *     wq_item *item;
 *     while (wq_get(q, &item) == WQ_OK) {
 *         reconcile(item->key);
 *         wq_done(q, item);
 *     }
 *
 * Threads. Every function may be called from any thread at any time, except
 * wq_destroy(): it must be the last call (see there).
 *
 * Signals and fork. No function may be called from a signal handler; set a flag
 * there, or write to a pipe. Signals do not wake threads that sleep in a queue.
 * A process with one thread may fork, and the child may use its copy of the
 * queue, but not the descriptor of wq_fd(). If the process has several threads,
 * the child must not use the queue. [O-71 O-72]
 *
 * Cancellation. No function is a cancellation point, including those that
 * block: a thread that is cancelled inside the library ends at its first
 * cancellation point after the call has returned. A callback or sink must not
 * end its thread by cancellation (pthread_setcancelstate()), and must not leave
 * by longjmp() or an exception. Asynchronous cancellation is not supported.
 * [O-73]
 *
 * Errors. A function that can fail returns wq_err; on any error the queue is
 * exactly as it was and out-parameters are untouched. A NULL queue is
 * WQ_EINVAL, never a crash. wq_last_error() says in a sentence what was wrong
 * with the arguments of a function that makes or starts something.
 *
 * Words. A key is dropped when it needed work, leaves without it, and nobody
 * asked for that. The queue gives a key up when it was retried as often as
 * allowed; a READY key is displaced when it makes room for another: both are
 * dropped. wq_remove() takes a key back, which is not a drop.
 *
 * Numbers in brackets ([Q-03], [O-02]) name the behaviours in
 * docs/semantics.md; the tests cite the same numbers. Words such as READY, drop
 * and defer have one meaning each: see the table at the top of that document.
 */
#ifndef WQ_WQ_H
#define WQ_WQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <wq/version.h>

#if defined(__GNUC__) || defined(__clang__)
#define WQ_API __attribute__((visibility("default")))
#define WQ_NODISCARD __attribute__((warn_unused_result))
#else
#define WQ_API
#define WQ_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------- errors -- */

/* Every error: name, number, message. Numbers are never reused. */
#define WQ_ERRORS(X)                                                           \
    X(WQ_OK, 0, "success")                                                     \
    X(WQ_EINVAL, 1, "invalid argument")                                        \
    X(WQ_ENOMEM, 2, "out of memory; nothing was changed")                      \
    X(WQ_ESHUTDOWN, 3, "the queue is shut down")                               \
    X(WQ_ETIMEDOUT, 4, "timed out")                                            \
    X(WQ_EFULL, 5, "the queue is full")                                        \
    X(WQ_ESTATE, 6, "not allowed in this state (for example, not HELD)")       \
    X(WQ_ENOTFOUND, 7, "no such key")                                          \
    X(WQ_EINTERRUPTED, 8, "the wait was interrupted")                          \
    X(WQ_EIO, 9, "input/output error")                                         \
    X(WQ_ELOST, 10, "the key was taken over by another worker")                \
    X(WQ_ENOTSUP, 11, "not supported by this backend")                         \
    X(WQ_ETOOLONG, 12, "the key is longer than WQ_KEY_MAX bytes")              \
    X(WQ_EGIVENUP, 13, "the key was retried as often as allowed")              \
    X(WQ_EDROPPED, 14, "the handler dropped the key")

#define WQ__ERROR_ENUM(name, number, message) name = number,
typedef enum wq_err { WQ_ERRORS(WQ__ERROR_ENUM) } wq_err;
#undef WQ__ERROR_ENUM

/* The message for an error: a static string, never NULL, also for numbers that
 * this release does not know.
 * Threads: any.  Blocks: never.  Since: 0.1.  [E-01]
 */
WQ_API const char *wq_strerror(wq_err err);

/* The name of an error ("WQ_EINVAL"), for logs: a static string, never NULL.
 * Threads: any.  Blocks: never.  Since: 0.1.  [E-01]
 */
WQ_API const char *wq_err_name(wq_err err);

/* Why the calling thread's last create, start or open failed: a sentence that
 * names the field or argument and the reason, for people:
 *
 *     "wq_config.overflow needs max_len or max_bytes"
 *     "wq_limiter_exponential: base_ns is negative (-5)"
 *
 * Set by every function that makes or starts something (queues, layers,
 * backends, limiters, buckets, clocks, registries, worker pools), by
 * wq_parallelize(), and for the WQ_EINVAL and WQ_ETOOLONG of wq_add_with() and
 * wrong arguments of wq_work_one(). A successful call does not change it. The
 * words may change in any release: do not compare them.
 *
 * Returns at most 255 bytes, "" if nothing has failed in this thread; never
 * NULL. Valid until the thread's next failing call, or its end.
 * Threads: any.  Blocks: never.  Since: 0.1.  [E-03]
 */
WQ_API const char *wq_last_error(void);

/* The version of the linked library. Compare it with WQ_VERSION of the header
 * that the program was compiled with.
 * Threads: any.  Blocks: never.  Since: 0.1.  [E-02]
 */
WQ_API int wq_version(void);

/* ----------------------------------------------------------------- time -- */

/* Times are int64_t nanoseconds. These make them from whole milliseconds and
 * seconds, of either sign: up to 2^63 ns, so some 9.2e12 ms and 9.2e9 s. They
 * are constant expressions if `n` is one; a larger `n` overflows.
 */
#define WQ_MS(n) (INT64_C(1000000) * (n))
#define WQ_SECONDS(n) (INT64_C(1000000000) * (n))

/* A duration so long that it never ends. */
#define WQ_FOREVER INT64_MAX

/* ----------------------------------------------------------------- keys -- */

/* The longest key, in bytes. A key is a name, not a payload. */
#define WQ_KEY_MAX 65536

/* A key: any bytes, compared as bytes, copied on add. The empty key is refused
 * (WQ_EINVAL): it is nearly always a mistake.
 */
typedef struct wq_key {
    const void *data; /* the bytes; not NULL */
    size_t      len;  /* 1 .. WQ_KEY_MAX */
} wq_key;

/* The key made of a string's bytes, without its terminating NUL. NULL gives the
 * empty key, which every verb refuses.
 */
static inline wq_key
wq_str(const char *s)
{
    wq_key key;
    key.data = s;
    key.len = s ? strlen(s) : 0;
    return key;
}

/* The key made of `len` bytes: wq_bytes(&id, sizeof id) for plain data without
 * padding. The bytes of an item's key are not aligned: memcpy() them out.
 */
static inline wq_key
wq_bytes(const void *data, size_t len)
{
    wq_key key;
    key.data = data;
    key.len = len;
    return key;
}

/* The key made of the eight bytes of *n (host order). */
static inline wq_key
wq_u64(const uint64_t *n)
{
    wq_key key;
    key.data = n;
    key.len = n ? sizeof *n : 0;
    return key;
}

/* An item: a key on loan to one worker, from wq_get() until wq_done(): the key
 * is HELD. Only read it, pass this very pointer to wq_done(), and do not use it
 * after that.
 */
typedef struct wq_item {
    /* Valid until done. A NUL byte follows the key, which len does not count:
     * printf("%s", (const char *)item->key.data) works for keys without NUL
     * bytes of their own. [O-88] */
    wq_key   key;
    int      priority; /* it was handed out with */
    uint32_t slot;     /* internal */
    uint64_t fence;    /* grows with every hand-out of this key */
} wq_item;

/* --------------------------------------------------------------- config -- */

typedef struct wq_clock   wq_clock;   /* see clock.h */
typedef struct wq_limiter wq_limiter; /* see limiter.h */
typedef struct wq_metrics wq_metrics; /* see metrics.h */

/* Where the queue's memory comes from. Called under the queue's lock: must not
 * call back into the queue. `free` gets the size that was requested.
 */
typedef struct wq_allocator {
    size_t size;                                /* sizeof(wq_allocator) */
    void  *ctx;                                 /* first argument of both */
    void *(*alloc)(void *ctx, size_t n);        /* as malloc; NULL: refused */
    void (*free)(void *ctx, void *p, size_t n); /* p is never NULL */
} wq_allocator;

/* The order in which READY keys are handed out, instead of first in, first out.
 * client-go's Touch, Push, Len and Pop.
 *
 * Called under the queue's lock: must not call back into the queue. One
 * wq_order serves one queue. From push until pop returns the key, or remove
 * takes it out, its bytes do not move: store the wq_key, and copy no bytes.
 * [Q-24]
 */
typedef struct wq_order {
    size_t size; /* sizeof(wq_order) */
    void  *self; /* first argument of all */
    /* `key` becomes READY. The add or done that called this returns its error
     * (for example WQ_ENOMEM), and nothing has changed. A key that is refused
     * when its deadline has passed stays WAITING, and is pushed again about
     * 10 ms later. */
    wq_err (*push)(void *self, wq_key key, int priority);
    /* A READY key was added again. May be NULL. */
    void (*touch)(void *self, wq_key key);
    /* Take out the key to hand out next; false if there is none. *out must be
     * the wq_key that was pushed, same pointer and length, and it must not have
     * been popped since. */
    bool (*pop)(void *self, wq_key *out);
    /* How many keys were pushed and not popped. The queue has its own count and
     * calls this only to check it. */
    size_t (*len)(void *self);
    /* The queue is being destroyed. The bytes of keys that are still inside
     * belong to the queue and can be read until this returns. May be NULL. */
    void (*destroy)(void *self);
    /* A READY key was added again with a higher priority than it was pushed
     * with. NULL: touch() is called instead. */
    void (*raise)(void *self, wq_key key, int priority);
    /* Take out `key`, which was pushed and not popped since. NULL: READY keys
     * of this queue cannot be removed (WQ_ENOTSUP). */
    void (*remove)(void *self, wq_key key);
} wq_order;

/* What a shutdown does with WAITING keys. */
typedef enum wq_waiting {
    WQ_WAITING_DROP, /* it drops them, as client-go does. The default */
    WQ_WAITING_KEEP, /* it keeps them: they are handed out when their deadlines
                        pass; gets and drains wait for them */
    /* It makes them READY at once, in the order of their deadlines: they are
     * handed out and drained. Keys in BACKOFF are dropped, unless another add
     * waits for the end of the backoff, too: they failed a moment ago, and
     * would fail again. */
    WQ_WAITING_FLUSH,
    WQ_WAITING_FLUSH_ALL, /* as FLUSH, and keys in BACKOFF become READY, too */
} wq_waiting;

/* Where wq_add_rate_limited() differs from client-go; any of them, or'ed. */
enum wq_retry {
    /* wq_add_rate_limited() of a key in BACKOFF changes nothing: the limiter is
     * not queried, no token is spent, the backoff does not grow. */
    WQ_RETRY_ONCE = 1,
    /* Only a HELD key can fail. For a key that is not HELD,
     * wq_add_rate_limited() is no failure: the limiter is not queried, and the
     * key is added as by wq_add() with WQ_RETRY_RESPECT. */
    WQ_RETRY_FAILURES_ONLY = 2,
    /* wq_add() of a key in BACKOFF does not run the key before that backoff
     * ends. An earlier deadline, set by wq_add_after(), replaces the backoff.
     */
    WQ_RETRY_RESPECT = 4,
};

/* What an add of a new key does when the queue knows max_len keys, or keys of
 * max_bytes. */
typedef enum wq_overflow {
    WQ_OVERFLOW_REFUSE, /* it returns WQ_EFULL. The default */
    /* It blocks until there is room. A worker that adds new keys to the queue
     * it serves can block itself for ever. */
    WQ_OVERFLOW_BLOCK,
    /* It displaces READY keys, which are dropped (on_drop): lowest priority
     * first, then oldest, that is, READY for longest; in a queue with groups,
     * the oldest of the group that has most READY keys of that priority.
     * WQ_EFULL if that priority is higher than the new key's, or if too few
     * keys are READY. */
    WQ_OVERFLOW_DROP_OLDEST,
} wq_overflow;

/* How a queue is created. Zero means the stated default, so fill in only what
 * you need; WQ_CONFIG(.order = &mine) does the rest in C. In C++ set `size` by
 * hand. The structs pointed to are copied; what they point to must outlive
 * the queue.
 */
typedef struct wq_config {
    size_t              size;      /* sizeof(wq_config) */
    const wq_order     *order;     /* NULL: first come, first served */
    const wq_allocator *allocator; /* NULL: malloc and free */
    wq_clock           *clock;     /* not owned; NULL: wq_clock_monotonic() */
    wq_waiting          waiting;   /* 0: WQ_WAITING_DROP */
    /* NULL: wq_limiter_default(). wq_create() takes it over in every case, and
     * destroys it when it fails. No constructor of a limiter returns NULL: so
     * one call of it may stand here, without a check before. */
    wq_limiter *limiter;
    unsigned    retry;       /* enum wq_retry; 0: as client-go */
    unsigned    max_retries; /* then give up; 0: never */
    /* The queue dropped `key`: it needed work, and leaves without it. Why:
     *   WQ_EGIVENUP  given up after `retries` retries (max_retries); called by
     *                wq_add_rate_limited();
     *   WQ_EFULL     displaced: it was READY and made room for another key
     *                (WQ_OVERFLOW_DROP_OLDEST); `retries` is 0; called by the
     *                add. An add of a new key from here displaces another, and
     *                so on without end.
     * Called without a lock. The bytes of `key` are valid until it returns; a
     * NUL byte follows them. NULL: no callback. A key that wq_remove() takes
     * back, or a WAITING key that a shutdown drops, does not come here. */
    void (*on_drop)(void *ctx, wq_key key, unsigned retries, wq_err why);
    void *drop_ctx; /* its first argument */
    /* NULL or "": no metrics. Copied. */
    const char *name;
    /* The sink for the metrics of a queue with a name; NULL: the sink of
     * wq_metrics_set_default(), if there is one. */
    const wq_metrics *metrics;
    /* Keep the ages of keys (inspect.h) also without metrics: reads the clock
     * at every add, get and done. */
    bool ages;
    /* How many keys the queue may know at a time: READY, WAITING, HELD, or left
     * alone after a throttled run. A key that the queue knows can always be
     * added, so a worker can always retry its key. 0: no limit. */
    size_t      max_len;
    wq_overflow overflow; /* 0: WQ_OVERFLOW_REFUSE */
    /* For threads with real-time priorities (SCHED_FIFO): a call waits for a
     * thread of lower priority no longer than that thread's own calls take. The
     * queue's lock inherits priorities, producers always take it, and no thread
     * spins. Costs throughput. Limiters (wq_add_rate_limited()), metrics and
     * callbacks have locks of their own, which this does not cover; nor does it
     * cover malloc: use an `allocator` of bounded time. */
    bool real_time;
    /* Bound the keys that the queue knows by their bytes, too: the sum of their
     * lengths. A single key that is longer never fits (WQ_EFULL). 0: any. */
    size_t max_bytes;
    /* Fairness: the group of a key. Within a priority, the groups that have
     * READY keys take turns, one key each, so that a group with 100,000 keys
     * delays the only key of another group by one hand-out per group. Returns
     * a part of the key's own bytes, which may be empty (keys without a group
     * are one group, too), and always the same one for a key. No NUL
     * follows that key. Called without a lock, by adds, wq_read_key() and
     * wq_each(). wq_group_before_slash() is ready-made. NULL: no groups. */
    wq_key (*group)(void *ctx, wq_key key);
    void *group_ctx; /* its first argument */
    /* How many keys of a group may be HELD at a time; 1: a group is serial.
     * 0: any number. */
    size_t group_max_held;
    /* Ageing: a key that has been READY for so long (a DIRTY key: since its
     * done) is handed out before all keys that became READY after it, whatever
     * their priorities and groups. So after max_ready_ns, only keys that became
     * READY before it are handed out before a key of the lowest priority.
     * Reads the clock at every add, get and done, as `ages`. 0: priorities
     * alone decide. */
    int64_t max_ready_ns;
} wq_config;

/* A wq_config.group: the bytes before the first '/', as in "namespace/name". A
 * key without a '/' belongs to the empty group.  Since: 0.1.  [O-80]
 */
WQ_API wq_key wq_group_before_slash(void *ctx, wq_key key);

#ifndef __cplusplus
#define WQ_CONFIG(...) (&(wq_config){.size = sizeof(wq_config), __VA_ARGS__})
#endif

/* ------------------------------------------------------ life of a queue -- */

typedef struct wq_queue wq_queue; /* opaque */

/* Make an in-memory queue. `config` may be NULL: all defaults.
 *
 * Starts no thread. The caller owns *out and gives it to wq_destroy().
 *
 * Takes the limiter of `config` over in every case: on success it belongs to
 * the queue, on error it is destroyed. Only a limiter that belongs to another
 * queue or limiter is not. A config whose `size` is too small to contain
 * `limiter`, or larger than 4096, has none.
 *
 * Returns WQ_OK; else wq_last_error() names the field and the reason:
 *   WQ_EINVAL  `out` is NULL; a `size` field is 0, cut off in the middle of a
 *              field, or larger than this release knows with something set
 *              there; an order or allocator lacks a required function;
 *              `waiting`, `retry` or `overflow` has a value that is not one of
 *              its own; `limiter` belongs to another queue or limiter, or is
 *              a failed limiter with this error; an overflow policy without a
 *              max_len or max_bytes; a negative max_ready_ns; a group_max_held
 *              without a group;
 *   WQ_ENOTSUP an order cannot be combined with WQ_OVERFLOW_DROP_OLDEST,
 *              max_bytes, a group or max_ready_ns, nor a group_max_held with
 *              max_ready_ns; `real_time`, and the system has no priority
 *              inheritance;
 *   WQ_ENOMEM  no memory, also for the limiter;
 *   WQ_EIO     the system gave no random numbers (the hash is keyed), or not
 *              to the limiter;
 *   what open() of a sink returned.
 * Threads: any.  Blocks: never.  Since: 0.1.  [E-03 L-24 L-31 O-01 O-02 O-20
 * O-55 O-74 O-80 O-86 O-87 O-89]
 */
WQ_API WQ_NODISCARD wq_err wq_create(const wq_config *config, wq_queue **out);

/* Shut the queue down and free it. NULL is allowed.
 *
 * Acts as wq_shutdown() first, then waits until every thread that is blocked in
 * the queue has left it: blocked gets and adds return WQ_ESHUTDOWN, even if
 * keys remain; blocked drains, flushes and the like return WQ_EINTERRUPTED.
 * Once wq_destroy() was called, no other call may start, or be under way
 * without being blocked: stop the producers and the workers first, or make sure
 * that they are blocked.
 * Items that are not done become invalid; keys that were not handed out are
 * dropped.
 *
 * Threads: one, once.  Blocks: until those threads have left.  Since: 0.1.
 * [O-03]
 */
WQ_API void wq_destroy(wq_queue *q);

/* ---------------------------------------------------------------- verbs -- */

/* Mark `key` as needing work.
 *
 * A key that is READY already is not added twice. A HELD key becomes DIRTY: at
 * its wq_done() it becomes READY, at the tail. The bytes are copied.
 *
 * Returns WQ_OK;
 *   WQ_ESHUTDOWN  after wq_shutdown();
 *   WQ_EINVAL     NULL queue, NULL or empty key;
 *   WQ_ETOOLONG   more than WQ_KEY_MAX bytes;
 *   WQ_EFULL      a bound is reached (wq_overflow);
 *   WQ_ENOMEM     out of memory.
 * Threads: any.  Blocks: only with WQ_OVERFLOW_BLOCK.  Cost: O(1).  Since: 0.1.
 * [Q-03 Q-04 Q-05 Q-12 Q-15 Q-16 Q-23 O-04]
 */
WQ_API WQ_NODISCARD wq_err wq_add(wq_queue *q, wq_key key);

/* wq_add() of a string. */
WQ_NODISCARD static inline wq_err
wq_add_str(wq_queue *q, const char *s)
{
    return wq_add(q, wq_str(s));
}

/* Mark `key` as needing work in `delay_ns` nanoseconds, on the queue's clock.
 *
 * The key is WAITING until then. A delay of 0 or less is wq_add(). A key has at
 * most one deadline; of two the earlier stays. An add does not end a deadline:
 * the key runs now, and again at its deadline. If the deadline passes while the
 * key is HELD, the key becomes DIRTY.
 *
 * A deadline that int64_t cannot hold is WQ_FOREVER.
 *
 * Returns as wq_add(), and
 *   WQ_ENOTSUP  the backend has no delays.
 * Threads: any.  Blocks: as wq_add().  Cost: O(log n) of the WAITING keys.
 * Since: 0.1.  [D-01 D-02 D-03 D-07 D-08 D-09 D-10 D-11 D-12 D-13 D-14 O-15]
 */
WQ_API WQ_NODISCARD wq_err wq_add_after(wq_queue *q, wq_key key,
                                        int64_t delay_ns);

/* wq_add_after() of a string. */
WQ_NODISCARD static inline wq_err
wq_add_after_str(wq_queue *q, const char *s, int64_t delay_ns)
{
    return wq_add_after(q, wq_str(s), delay_ns);
}

/* Mark `key` as needing work again after a failure: wq_add_after() with the
 * delay that the queue's limiter gives, usually longer each time.
 *
 * The limiter is queried, and counts, even if the key is WAITING already and
 * its earlier deadline stays; wq_config.retry changes that. With
 * wq_config.max_retries, a key that was retried so often (since the last
 * wq_forget()) is not added but given up: the limiter forgets it, and
 * wq_config.on_drop is called.
 *
 * Returns as wq_add(), and
 *   WQ_EGIVENUP  see above;
 *   WQ_ENOMEM    also: no memory to copy the key for on_drop (keys of 256
 *                bytes and more); the key was not given up;
 *   WQ_ENOTSUP   the backend has no rate limits.
 * After shutdown, and for bad arguments, the limiter is not queried.
 * Threads: any.  Blocks: as wq_add().  Since: 0.1.  [R-01 R-02 R-03 O-16 O-17]
 */
WQ_API WQ_NODISCARD wq_err wq_add_rate_limited(wq_queue *q, wq_key key);

/* wq_add_rate_limited() of a string. */
WQ_NODISCARD static inline wq_err
wq_add_rate_limited_str(wq_queue *q, const char *s)
{
    return wq_add_rate_limited(q, wq_str(s));
}

/* -------------------------------------------------- adds with a purpose -- */

/* What an add did, for each key. */
typedef enum wq_added {
    WQ_ADDED_NEW,       /* the key became READY */
    WQ_ADDED_MERGED,    /* READY or DIRTY already: no change */
    WQ_ADDED_DIRTY,     /* HELD: the key became DIRTY */
    WQ_ADDED_RAISED,    /* READY, DIRTY or WAITING already: nothing changed but
                           its priority, which is higher now */
    WQ_ADDED_SCHEDULED, /* it has a deadline now, and had none */
    WQ_ADDED_SOONER,    /* its deadline was moved to an earlier time */
    WQ_ADDED_LATER,     /* its deadline was moved to a later time; or it was
                           READY or DIRTY, and was deferred */
    WQ_ADDED_KEPT,      /* its deadline covers this add: no change */
} wq_added;

/* What to do with the deadline of a key that is WAITING already. */
typedef enum wq_if_waiting {
    /* The deadline stays. An add without delay runs the key now, and again at
     * the deadline; of two deadlines the earlier stays. As wq_add() and
     * wq_add_after(). */
    WQ_IF_WAITING_KEEP,
    /* One run serves both, at the earlier of the two times: an add without
     * delay ends the deadline, and a delay for a READY or DIRTY key changes
     * nothing. As controller-runtime's queue. */
    WQ_IF_WAITING_MERGE,
    /* This add replaces all earlier ones that were not handed out: one run, at
     * the time of this add, earlier or later. A delay also defers a READY or
     * DIRTY key. As the kernel's mod_delayed_work(). */
    WQ_IF_WAITING_REPLACE,
    /* The add is ignored: the run at the deadline covers it. */
    WQ_IF_WAITING_IGNORE,
} wq_if_waiting;

/* How to add. Zero means the stated default; all zero is wq_add(). Times are in
 * nanoseconds on the queue's clock; a negative one is refused (WQ_EINVAL)
 * unless stated otherwise.
 */
typedef struct wq_add_options {
    size_t size; /* sizeof(wq_add_options) */
    /* Higher is handed out first; any int. Of the priorities that a key is
     * added with, the highest counts until it is handed out; a READY key whose
     * priority is raised goes behind all READY keys of the new one. In a
     * retry, pass item->priority. */
    int priority;
    /* The delay, as for wq_add_after(). 0 or less: now. */
    int64_t after_ns;
    /* As wq_add_rate_limited(). With after_ns, the shorter of the two delays;
     * an after_ns below 0 is now, and 0 means that the limiter alone decides.
     */
    bool rate_limited;
    /* If the key is WAITING. 0: WQ_IF_WAITING_KEEP */
    wq_if_waiting waiting;
    /* Debounce: run debounce_ns after the last of a series of such adds, but at
     * most max_wait_ns after the first (0: no limit; then a key that is added
     * again and again never runs). A READY key stays READY. */
    int64_t debounce_ns;
    int64_t max_wait_ns;
    /* Throttle: run now, then not again within throttle_ns of the hand-out;
     * further adds with this option make the key WAITING until that time is
     * over. Adds without this option run at once, and their runs neither begin
     * nor prolong that time. */
    int64_t throttle_ns;
    /* Do not wait for room: with WQ_OVERFLOW_BLOCK too, a full queue is
     * WQ_EFULL. */
    bool nowait;
    /* With WQ_OVERFLOW_BLOCK: wait for room for so long at most, then return
     * WQ_ETIMEDOUT. 0: no limit. Not together with `nowait`. */
    int64_t max_block_ns;
    /* What the add did: an array with one element for each key; NULL: not
     * reported. Written only on WQ_OK. */
    wq_added *results;
} wq_add_options;

#ifndef __cplusplus
#define WQ_ADD(...)                                                            \
    (&(wq_add_options){.size = sizeof(wq_add_options), __VA_ARGS__})
#endif

/* Add `n` keys, all in the same way, in one step: all of them or, on any error,
 * none. They become READY in the order of the array.
 *
 *     wq_add_with(q, WQ_ADD(.priority = 5, .after_ns = WQ_MS(500)), keys, 3);
 *
 * `how` may be NULL: as wq_add().
 *
 * Returns WQ_OK (also for no key at all), or as wq_add(), and
 *   WQ_EINVAL     also: NULL keys; a negative time; more than one of a delay
 *                 (after_ns or rate_limited), debounce_ns and throttle_ns; a
 *                 max_wait_ns without debounce_ns; an unknown `waiting`, or one
 *                 with debounce_ns or throttle_ns; `nowait` and max_block_ns; a
 *                 wrong `size` (rules: see wq_create());
 *   WQ_ETIMEDOUT  no room within max_block_ns;
 *   WQ_EFULL      no room; or more new keys than max_len, or bytes than
 *                 max_bytes: they never fit;
 *   WQ_EGIVENUP   rate_limited: one of them was retried too often; it was
 *                 given up, and the others were not added;
 *   WQ_ENOTSUP    not supported by the backend; or WQ_IF_WAITING_REPLACE with a
 *                 delay, and a wq_order that cannot remove.
 * If a wq_order refuses a key, the call returns that error, and the keys before
 * it stay added: with an order, add one key at a time.
 * Threads: any.  Blocks: only with WQ_OVERFLOW_BLOCK.  Cost: O(1) a key; with a
 * delay, O(log n) of the WAITING keys; with a priority, O(log n) of the
 * priorities in use; with groups, O(priorities of its group's READY keys). Each
 * key that WQ_OVERFLOW_DROP_OLDEST displaces: O(priorities in use), or O(groups
 * there were at one time).  Since: 0.1.
 * [O-50 O-51 O-52 O-53 O-54 O-55 O-56 PQ-07 PQ-08 PQ-16 PQ-42]
 */
WQ_API WQ_NODISCARD wq_err wq_add_with(wq_queue *q, const wq_add_options *how,
                                       const wq_key *keys, size_t n);

/* wq_add_with() of one key:
 *
 *     wq_add_one(q, wq_u64(&id), WQ_ADD(.priority = 5));
 */
WQ_NODISCARD static inline wq_err
wq_add_one(wq_queue *q, wq_key key, const wq_add_options *how)
{
    return wq_add_with(q, how, &key, 1);
}

/* wq_add_one() of a string. */
WQ_NODISCARD static inline wq_err
wq_add_one_str(wq_queue *q, const char *s, const wq_add_options *how)
{
    return wq_add_one(q, wq_str(s), how);
}

/* Remove `key`: it is no longer READY, WAITING or DIRTY. A HELD key stays HELD:
 * its worker says done as usual, and the key is not handed out again. The
 * limiter keeps the failures of the key: see wq_forget().
 *
 * Returns WQ_OK         the key was removed;
 *         WQ_ENOTFOUND  the queue does not know the key, or leaves it alone
 *                       after a throttled run: that time does not end;
 *         WQ_ESTATE     the key is only HELD: there is nothing to remove;
 *         WQ_EINVAL, WQ_ETOOLONG  as wq_add();
 *         WQ_ENOMEM     out of memory while merging pending adds;
 *         WQ_ENOTSUP    not supported by the backend or the wq_order.
 * Threads: any.  Blocks: never.  Cost: O(1); O(log n) for a WAITING key.
 * Since: 0.1.  [O-57]
 */
WQ_API wq_err wq_remove(wq_queue *q, wq_key key);

/* wq_remove() of a string. */
static inline wq_err
wq_remove_str(wq_queue *q, const char *s)
{
    return wq_remove(q, wq_str(s));
}

/* End the deadline of `key`: it is no longer WAITING. A READY, HELD or DIRTY
 * key stays READY, HELD or DIRTY.
 *
 * Returns WQ_OK; WQ_ENOTFOUND: the key has no deadline; else as wq_remove().
 * Threads: any.  Blocks: never.  Cost: O(log n).  Since: 0.1.  [O-58]
 */
WQ_API wq_err wq_cancel_after(wq_queue *q, wq_key key);

/* wq_cancel_after() of a string. */
static inline wq_err
wq_cancel_after_str(wq_queue *q, const char *s)
{
    return wq_cancel_after(q, wq_str(s));
}

/* wq_remove(), then block until the key is not HELD: after that the caller may
 * free what the key names. The kernel's cancel_work_sync().
 *
 * While the key is HELD, every add of it is removed, too: the retry by its
 * worker, and adds by other threads. After WQ_OK no worker holds the key, and
 * none will unless it is added after that done. An add by another thread
 * between the done and the return stands: make sure that nobody adds the key
 * any more before you call this.
 *
 * Returns WQ_OK            the key is not READY, HELD, DIRTY or WAITING;
 *         WQ_ETIMEDOUT     the key is still HELD after `timeout_ns` (0: checks
 *                          once); adds made before the call are removed;
 *         WQ_ESTATE        the calling thread got this key, and it is not
 *                          done: it would wait for itself. Also if another
 *                          thread works on it. Nothing was done;
 *         WQ_EINTERRUPTED  wq_destroy() was called meanwhile;
 *         WQ_EINVAL        also for a negative timeout; else as wq_remove().
 * Threads: any but the worker that holds the key.  Blocks: at most
 * `timeout_ns`.  Cost: as wq_remove().  Since: 0.1.  [O-84]
 */
WQ_API WQ_NODISCARD wq_err wq_remove_wait(wq_queue *q, wq_key key,
                                          int64_t timeout_ns);

/* wq_remove_wait() of a string. */
WQ_NODISCARD static inline wq_err
wq_remove_wait_str(wq_queue *q, const char *s, int64_t timeout_ns)
{
    return wq_remove_wait(q, wq_str(s), timeout_ns);
}

/* -------------------------------------------------------------- failures -- */

/* The work on `key` succeeded, or the caller stops retrying: the limiter
 * forgets the failures of the key. This does not end a deadline, and does not
 * replace wq_done(). A key that the limiter does not know is WQ_OK, too.
 *
 * Returns WQ_OK; WQ_EINVAL, WQ_ETOOLONG as wq_add(); WQ_ENOTSUP.
 * Threads: any.  Blocks: never.  Since: 0.1.  [R-01 R-02]
 */
WQ_API wq_err wq_forget(wq_queue *q, wq_key key);

/* wq_forget() of a string. */
static inline wq_err
wq_forget_str(wq_queue *q, const char *s)
{
    return wq_forget(q, wq_str(s));
}

/* How often the limiter was queried about `key` since it last forgot the key;
 * 0 for bad arguments, for limiters that do not count, and for backends without
 * a limiter.
 * Threads: any.  Blocks: never.  Since: 0.1. 
 */
WQ_API unsigned wq_num_requeues(wq_queue *q, wq_key key);

/* wq_num_requeues() of a string. */
static inline unsigned
wq_num_requeues_str(wq_queue *q, const char *s)
{
    return wq_num_requeues(q, wq_str(s));
}

/* Count `n` keys as dropped, in wq_stats.drops and workqueue_drops_total: for a
 * worker loop of your own that does not add a failed key again. Only counts:
 * no key changes, and on_drop is not called. Do not count a key that the queue
 * dropped itself (WQ_EGIVENUP, on_drop): the queue has. The worker pool and
 * wq_work_one() count for their handlers.
 *
 * Returns WQ_OK; WQ_EINVAL: NULL queue; WQ_ENOTSUP: the backend keeps no count.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-62]
 */
WQ_API wq_err wq_count_drops(wq_queue *q, uint64_t n);

/* --------------------------------------------------------- get and done -- */

/* Take the next key; block while there is none.
 *
 * The key is HELD, and the item is the caller's, until wq_done(). After
 * shutdown READY keys are still handed out; WQ_ESHUTDOWN says that none is
 * left.
 *
 * Returns WQ_OK;
 *   WQ_ESHUTDOWN     the queue is shut down and empty;
 *   WQ_EINTERRUPTED  see wq_interrupt(): check your flag and call again;
 *   WQ_EINVAL        NULL queue or out;
 *   WQ_ENOMEM        out of memory for the loan, or while merging pending adds;
 *                    no key is lost, and their order stays;
 *   WQ_ESTATE        a wq_order gave a key that is not READY, or none.
 * Threads: any.  Blocks: until a key is READY.  Cost: O(1); O(log n) of the
 * priorities in use; O(log n) for a throttled key; with groups, O(priorities of
 * its group's READY keys).  Since: 0.1.
 * [Q-04 Q-06 Q-07 Q-10 Q-13 Q-17 Q-26]
 */
WQ_API WQ_NODISCARD wq_err wq_get(wq_queue *q, wq_item **out);

/* wq_get() that blocks for at most `timeout_ns`, on the queue's clock: 0 tries
 * once, WQ_FOREVER is no limit.
 *
 * Returns as wq_get(), and
 *   WQ_ETIMEDOUT  no key became READY in time;
 *   WQ_EINVAL     also for a negative timeout.
 * Threads: any.  Blocks: at most `timeout_ns`.  Since: 0.1.  [O-05]
 */
WQ_API WQ_NODISCARD wq_err wq_get_within(wq_queue *q, int64_t timeout_ns,
                                         wq_item **out);

/* The work on `item` is finished, successfully or not. The loan ends.
 *
 * A key that is DIRTY becomes READY, at the tail, also after a shutdown.
 *
 * Returns WQ_OK;
 *   WQ_ESTATE  the item is not on loan from this queue (done already, or from
 *              another queue). Later gets reuse the pointer of an item that is
 *              done: a second done is noticed only until then;
 *   WQ_EINVAL  NULL queue or item;
 *   what push of a wq_order returned: the item is still on loan.
 * Threads: any, not only the one that got the item.  Blocks: never.
 * Cost: O(1).  Since: 0.1.  [Q-04 Q-11 Q-12 Q-14 Q-18 Q-21 O-06]
 */
WQ_API wq_err wq_done(wq_queue *q, wq_item *item);

/* wq_get() of several keys: blocks until a key is READY, for at most
 * `timeout_ns`, then takes all READY keys, at most `max`, in order, in one step
 * (with metrics, 64 at a time). *n is how many it took.
 *
 * Returns WQ_OK (then *n is at least 1), or as wq_get_within();
 *   WQ_EINVAL  also if max is 0, or `out` or `n` is NULL.
 * A backend without this verb takes the keys one by one.
 * Threads: any.  Blocks: at most `timeout_ns`.  Since: 0.1.  [O-59]
 */
WQ_API WQ_NODISCARD wq_err wq_get_many(wq_queue *q, wq_item **out, size_t max,
                                       int64_t timeout_ns, size_t *n);

/* wq_done() of `n` items in one step: all of them, or none if one is not on
 * loan from this queue or is in the array twice. The pointers of items that are
 * done become NULL.
 *
 * Returns WQ_OK (also for n = 0);
 *   WQ_EINVAL  NULL queue or array, or a NULL in it;
 *   WQ_ESTATE  one is not on loan, or is there twice;
 *   WQ_ENOMEM  none was done (only with metrics, and more than 64 items);
 *   what push of a wq_order returned: the items before that one are done.
 * A backend without this verb ends the loans one by one, up to the first that
 * is refused.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-60]
 */
WQ_API wq_err wq_done_many(wq_queue *q, wq_item **items, size_t n);

/* wq_done() of *item, unless it is NULL, and wq_get_within() of the next one,
 * in one step. This is the loop of a worker:
 *
 *     wq_item *item = NULL;
 *     while (wq_next(q, WQ_FOREVER, &item) == WQ_OK)
 *         reconcile(item->key);
 *
 * Whatever it returns, *item is what is on loan: the next item (WQ_OK); NULL if
 * the old one is done and there is no next one; unchanged if the done failed.
 *
 * Returns as wq_done() and wq_get_within().
 * Threads: any.  Blocks: at most `timeout_ns`.  Since: 0.1.  [O-61]
 */
WQ_API WQ_NODISCARD wq_err wq_next(wq_queue *q, int64_t timeout_ns,
                                   wq_item **item);

/* wq_done() by key, for callers that did not keep the item: client-go's
 * Done(item).
 *
 * Returns as wq_done(); WQ_ESTATE if `key` is not HELD; WQ_EINVAL and
 * WQ_ETOOLONG for a bad key; WQ_ENOTSUP: not supported by the backend.
 * Threads: any.  Blocks: never.  Since: 0.1.  [Q-21 O-06]
 */
WQ_API wq_err wq_done_key(wq_queue *q, wq_key key);

/* wq_done_key() of a string. */
static inline wq_err
wq_done_key_str(wq_queue *q, const char *s)
{
    return wq_done_key(q, wq_str(s));
}

/* How many keys are READY. HELD keys do not count, DIRTY or not; WAITING keys
 * do not count before their deadlines. Other threads change the number at any
 * time: display it, and base no decision on it. 0 for a NULL queue.
 * Threads: any.  Blocks: never.  Cost: O(1).  Since: 0.1.  [Q-03 Q-12]
 */
WQ_API size_t wq_len(wq_queue *q);

/* --------------------------------------------------- flush, idle, pause -- */

/* Block until every key that is READY, HELD or DIRTY now was worked on, even if
 * producers go on adding. The queue goes on as before. Workers must keep
 * calling get and done. It does not wait for keys that are removed, dropped or
 * deferred meanwhile, nor for deadlines that have not passed when the call
 * begins.
 *
 * The queue tells three flushes apart; one that timed out counts until its keys
 * are done. A further flush also waits for keys that are added before the
 * oldest of these three is over.
 *
 * Returns WQ_OK;
 *   WQ_ETIMEDOUT     work remains after `timeout_ns`, on the queue's clock (0:
 *                    checks once; WQ_FOREVER: no limit);
 *   WQ_ESTATE        the calling thread got a key that is not done: it would
 *                    wait for itself. Also if another thread works on the key
 *                    and says done: let a thread that gets no keys flush;
 *   WQ_EINTERRUPTED  wq_destroy() was called meanwhile;
 *   WQ_ENOMEM        out of memory while merging pending adds;
 *   WQ_EINVAL        NULL queue, negative timeout;
 *   WQ_ENOTSUP       not supported by this backend.
 * Threads: any but a worker that holds an item.  Blocks: at most `timeout_ns`.
 * Cost: O(keys that were HELD at one time). While threads wait in this function
 * and those below, every call of the queue costs O(such threads) more.
 * Since: 0.1.  [O-81]
 */
WQ_API WQ_NODISCARD wq_err wq_flush(wq_queue *q, int64_t timeout_ns);

/* Block until the queue is idle for a moment: no key is READY, HELD or DIRTY.
 * WAITING keys do not count. When the function returns, new keys may have been
 * added.
 *
 * Returns as wq_flush().
 * Threads, Blocks: as wq_flush().  Since: 0.1.  [O-82]
 */
WQ_API WQ_NODISCARD wq_err wq_wait_idle(wq_queue *q, int64_t timeout_ns);

/* wq_flush() of one key: block until the adds of `key` before this call were
 * worked on, whatever is added later. Returns at once if the key is neither
 * READY nor HELD; it does not wait for a deadline that has not passed.
 *
 * Returns as wq_flush(), WQ_ESTATE only if the calling thread holds this key;
 * WQ_EINVAL, WQ_ETOOLONG for a bad key.
 * Threads, Blocks: as wq_flush().  Since: 0.1.  [O-83]
 */
WQ_API WQ_NODISCARD wq_err wq_flush_key(wq_queue *q, wq_key key,
                                        int64_t timeout_ns);

/* wq_flush_key() of a string. */
WQ_NODISCARD static inline wq_err
wq_flush_key_str(wq_queue *q, const char *s, int64_t timeout_ns)
{
    return wq_flush_key(q, wq_str(s), timeout_ns);
}

/* Hand out no key until wq_resume(). Adds go on, and so do workers that hold a
 * key; gets block, and wq_fd() is not readable. A second pause is harmless, and
 * one wq_resume() ends both.
 *
 * A shutdown, with or without drain, ends the pause: READY keys are handed out
 * then. To keep them in the queue, stop the workers first.
 *
 * Returns WQ_OK; WQ_ESHUTDOWN: the queue is shut down; WQ_EINVAL: NULL;
 * WQ_ENOTSUP.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-85]
 */
WQ_API wq_err wq_pause(wq_queue *q);

/* End a pause. Returns WQ_OK also if there is none; WQ_EINVAL; WQ_ENOTSUP.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-85]
 */
WQ_API wq_err wq_resume(wq_queue *q);

/* ------------------------------------------------------------- shutdown -- */

/* No more adds: they return WQ_ESHUTDOWN from now on. Wakes every blocked get
 * and ends every blocked drain. READY keys can still be taken. WAITING keys are
 * dropped or kept: see wq_waiting. A second call is harmless.
 * Threads: any.  Blocks: never.  Since: 0.1.  [Q-01 Q-08 Q-09 Q-13 Q-19]
 */
WQ_API void wq_shutdown(wq_queue *q);

/* wq_shutdown(), then block until every key was worked on: until no key is
 * READY, HELD or DIRTY. Workers must keep calling get and done meanwhile.
 * Several threads may drain; all of them are woken.
 *
 * Returns WQ_OK            all work is done;
 *         WQ_EINTERRUPTED  wq_shutdown() was called meanwhile: the second
 *                          SIGTERM. Work remains;
 *         WQ_ENOTSUP       the backend cannot drain: nothing was done;
 *         WQ_EINVAL        NULL queue.
 * Threads: any but a worker that holds an item (it would wait for itself).
 * Blocks: until all work is done.  Since: 0.1.  [Q-07 Q-09 Q-10 Q-20 Q-22 O-07]
 */
WQ_API wq_err wq_shutdown_with_drain(wq_queue *q);

/* wq_shutdown_with_drain() that blocks for at most `timeout_ns`, on the queue's
 * clock (0: checks once). The queue stays shut down.
 *
 * Returns as above, and
 *   WQ_ETIMEDOUT  work remains;
 *   WQ_EINVAL     also for a negative timeout.
 * Threads: as above.  Blocks: at most `timeout_ns`.  Since: 0.1.  [O-07]
 */
WQ_API wq_err wq_shutdown_with_drain_within(wq_queue *q, int64_t timeout_ns);

/* Has a shutdown of either kind begun? false for NULL.
 * Threads: any.  Blocks: never.  Since: 0.1. 
 */
WQ_API bool wq_shutting_down(const wq_queue *q);

/* Every get that sleeps now returns WQ_EINTERRUPTED; the queue goes on as
 * before. If no get sleeps, one interrupt is remembered, and the next get that
 * would sleep returns WQ_EINTERRUPTED instead, so that a worker that is about
 * to sleep does not miss it. A get that times out leaves a remembered interrupt
 * to the next get. To stop N workers without shutting the queue down, set a
 * flag, interrupt, and let each worker that sees the flag interrupt once more
 * before it leaves.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-08]
 */
WQ_API void wq_interrupt(wq_queue *q);

/* ---------------------------------------------------------- event loops -- */

/* A file descriptor for poll(), epoll and the event loops built on them:
 * readable while wq_get_within(q, 0, ...) would not return WQ_ETIMEDOUT, so
 * also when a deadline has passed and when the queue is shut down and empty. It
 * is level-triggered: do not read from it.
 *
 *     while ((err = wq_get_within(q, 0, &item)) == WQ_OK)  // when readable
 *         ...
 *     if (err == WQ_ESHUTDOWN)
 *         stop watching
 *
 * Expect WQ_ETIMEDOUT: another thread may take the key first, and the deadline
 * of a HELD key, or the end of a throttled key's rest, wakes the loop although
 * no key is READY. It works with a fake clock, too. The descriptor belongs to
 * the queue, is the same at every call, closes on exec, and is closed by
 * wq_destroy(): take it out of the loop before. From the first call on, a queue
 * that becomes empty or not empty makes a system call.
 *
 * Returns the descriptor; or -1 and errno: EINVAL for NULL; ENOSYS if the
 * system or the backend has none; or the errno of the system call that failed.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-70]
 */
WQ_API int wq_fd(wq_queue *q);

#ifdef __cplusplus
}
#endif

#endif
