/* SPDX-License-Identifier: MIT */
/* wq.h: the queue. This header is the manual.
 *
 * A wq_queue holds keys that need work. Producers add keys; workers get a key,
 * work on it, and say done. Three things make it different from a plain FIFO:
 *
 *   - a key that is already waiting to be worked on is not queued twice;
 *   - a key is never in two workers' hands at the same time;
 *   - a key added again while a worker holds it is handed out once more after
 *     that worker says done. Nothing is lost, nothing runs twice at once.
 *
 *                 add            get            done
 *       absent ────────► READY ────────► HELD ────────► absent
 *                          ▲              │
 *                          │ done         │ add
 *                          │              ▼
 *                          └───────── HELD+DIRTY      (further adds: no change)
 *
 * A key may also be WAITING for a time, whatever else it is; when the time has
 * come, that acts as an add.
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
 * there, or write to a pipe. Signals do not disturb threads that sleep in a
 * queue. A process of one thread may fork, and the child use its copy of the
 * queue, but not the descriptor of wq_fd(). With several threads the child must
 * not touch the queue. [O-71 O-72]
 *
 * Cancellation. No function is a cancellation point, including those that block: a
 * thread that pthread_cancel() meets inside the library ends at its first
 * cancellation point after it has left. Callbacks and sinks that the library
 * calls must not be cancelled either (pthread_setcancelstate()), nor jump out
 * by longjmp() or an exception. Asynchronous cancellation is not supported.
 * [O-73]
 *
 * Errors. A function that can fail returns wq_err; on any error the queue is
 * exactly as it was and out-parameters are untouched. A NULL queue is
 * WQ_EINVAL, never a crash.
 *
 * Numbers in brackets ([Q-03], [O-02]) name the behaviours in
 * docs/semantics.md; the tests cite the same numbers.
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
    X(WQ_ETIMEDOUT, 4, "the time is up")                                       \
    X(WQ_EFULL, 5, "the queue is full")                                        \
    X(WQ_ESTATE, 6, "not in a state that allows this (say, not held)")         \
    X(WQ_ENOTFOUND, 7, "no such key")                                          \
    X(WQ_EINTERRUPTED, 8, "the wait was interrupted")                          \
    X(WQ_EIO, 9, "input or output failed")                                     \
    X(WQ_ELOST, 10, "the key was taken over by another worker")                \
    X(WQ_ENOTSUP, 11, "this backend does not offer that")                      \
    X(WQ_ETOOLONG, 12, "the key is longer than WQ_KEY_MAX bytes")              \
    X(WQ_EGIVENUP, 13, "the key was retried as often as allowed")

#define WQ__ERROR_ENUM(name, number, message) name = number,
typedef enum wq_err { WQ_ERRORS(WQ__ERROR_ENUM) } wq_err;
#undef WQ__ERROR_ENUM

/* The message for an error: a static string, never NULL, also for numbers this
 * release does not know.
 * Threads: any.  Blocks: never.  Since: 0.1.  [E-01]
 */
WQ_API const char *wq_strerror(wq_err err);

/* The name of an error ("WQ_EINVAL"), for logs. Same guarantees.  Since: 0.1.
 * [E-01]
 */
WQ_API const char *wq_err_name(wq_err err);

/* The version of the library that is linked, to compare with WQ_VERSION of the
 * header a program was compiled against.  Since: 0.1.  [E-02]
 */
WQ_API int wq_version(void);

/* ----------------------------------------------------------------- keys -- */

/* The longest key, in bytes. A key is a name, not a payload. */
#define WQ_KEY_MAX 65536

/* A key: any bytes, compared as bytes, copied on add. The empty key is refused
 * (WQ_EINVAL): it is nearly always an accident.
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

/* The key made of the eight bytes of *n (host order). The same works for any
 * plain data without padding: (wq_key){&id, sizeof id}. The bytes of an item's
 * key are not aligned: memcpy() them out.
 */
static inline wq_key
wq_u64(const uint64_t *n)
{
    wq_key key;
    key.data = n;
    key.len = n ? sizeof *n : 0;
    return key;
}

/* An item: a key on loan to one worker, from wq_get() until wq_done(). Read it;
 * do not write it, copy it in place of the original, or keep it after done.
 */
typedef struct wq_item {
    /* Valid until done. A NUL byte follows the key, which len does not count:
     * printf("%s", (const char *)item->key.data) works for keys without NUL
     * bytes of their own. [O-88] */
    wq_key   key;
    int      priority; /* the one it was handed out with */
    uint32_t slot;     /* the queue's own; not for callers */
    uint64_t fence;    /* grows with every hand-out of this key */
} wq_item;

/* --------------------------------------------------------------- config -- */

typedef struct wq_clock   wq_clock;   /* see clock.h */
typedef struct wq_limiter wq_limiter; /* see limiter.h */
typedef struct wq_metrics wq_metrics; /* see metrics.h */

/* Where the queue's memory comes from. Called under the queue's lock: must not
 * call back into the queue. `free` gets the size that was asked for.
 */
typedef struct wq_allocator {
    size_t size;                                /* sizeof(wq_allocator) */
    void  *ctx;                                 /* first argument of both */
    void *(*alloc)(void *ctx, size_t n);        /* as malloc; NULL: refused */
    void (*free)(void *ctx, void *p, size_t n); /* p is never NULL */
} wq_allocator;

/* The order in which READY keys leave, when first come first served is not
 * wanted. client-go's Touch, Push, Len and Pop.
 *
 * Called under the queue's lock: must not call back into the queue. One
 * wq_order serves one queue. A key's bytes stay where they are from push until
 * pop returns it, or remove takes it out, so keeping the wq_key is enough; no copy is needed.
 */
typedef struct wq_order {
    size_t size; /* sizeof(wq_order) */
    void  *self; /* first argument of all */
    /* `key` has become READY. Any error (say WQ_ENOMEM) is handed to the
     * caller of the add or done at work, and nothing has changed. A key that
     * becomes READY because its time has come and is refused waits on, and is
     * offered again some 10 ms later. */
    wq_err (*push)(void *self, wq_key key, int priority);
    /* `key`, READY already, was added again. May be NULL. */
    void (*touch)(void *self, wq_key key);
    /* Take out the key to hand out next; false when there is none. Must return
     * a key that was pushed and not popped since, and the very wq_key that was
     * pushed. */
    bool (*pop)(void *self, wq_key *out);
    /* How many keys were pushed and not popped. The queue keeps count itself
     * and asks only to check. */
    size_t (*len)(void *self);
    /* The queue is being destroyed. The bytes of keys that are still inside
     * belong to the queue and can be read until this returns. May be NULL. */
    void (*destroy)(void *self);
    /* `key`, READY already, was added again with a higher priority than it was
     * pushed with. NULL: touch() is called instead. */
    void (*raise)(void *self, wq_key key, int priority);
    /* Take out `key`, which was pushed and not popped since. NULL: READY keys
     * of this queue cannot be removed (WQ_ENOTSUP). */
    void (*remove)(void *self, wq_key key);
} wq_order;

/* What becomes of WAITING keys when the queue is shut down. */
typedef enum wq_waiting {
    WQ_WAITING_DROP, /* they are dropped, as client-go does. The default */
    WQ_WAITING_KEEP, /* they are handed out when their time has come; gets wait
                        for that, drains too */
    /* They become READY at once, in the order of their deadlines, and are
     * handed out and drained as all others. Keys that wait because they failed
     * (BACKOFF) are dropped: what failed a moment ago fails again. */
    WQ_WAITING_FLUSH,
    WQ_WAITING_FLUSH_ALL, /* ... and these become READY, too */
} wq_waiting;

/* How wq_add_rate_limited() departs from client-go's behaviour. Any of them. */
enum wq_retry {
    /* A key that waits by an earlier wq_add_rate_limited() is left alone: the
     * limiter is not asked, no token is spent, the backoff does not grow. */
    WQ_RETRY_ONCE = 1,
    /* Only a key that a worker holds can fail: for a key that nobody holds,
     * wq_add_rate_limited() is a trigger and not a failure. The limiter is not
     * asked; the key is added as by wq_add() with WQ_RETRY_RESPECT. */
    WQ_RETRY_FAILURES_ONLY = 2,
    /* A wq_add() of a key that waits by wq_add_rate_limited() does not run it
     * before that backoff has ended. An earlier deadline, asked for by
     * wq_add_after(), still takes its place. */
    WQ_RETRY_RESPECT = 4,
};

/* What an add of a new key does when the queue knows max_len keys, or keys of
 * max_bytes. */
typedef enum wq_overflow {
    WQ_OVERFLOW_REFUSE, /* it returns WQ_EFULL. The default */
    /* It waits until keys have gone. A worker that adds new keys to its own
     * full queue may wait for itself. */
    WQ_OVERFLOW_BLOCK,
    /* READY keys make room: of those with the lowest priority, the one that has
     * been READY for longest; in a queue with groups, the oldest of the group
     * that has most READY keys of that priority. WQ_EFULL if their priority is
     * higher than the new key's, or too few keys are READY. */
    WQ_OVERFLOW_DROP_OLDEST,
} wq_overflow;

/* How a queue is made. Zero means the stated default, so fill in only what you
 * need; WQ_CONFIG(.order = &mine) does the rest in C. In C++ set `size` by
 * hand. The structs pointed to are copied; what they point to must outlive
 * the queue.
 */
typedef struct wq_config {
    size_t              size;      /* sizeof(wq_config) */
    const wq_order     *order;     /* NULL: first come, first served */
    const wq_allocator *allocator; /* NULL: malloc and free */
    wq_clock           *clock;     /* not owned; NULL: wq_clock_monotonic() */
    wq_waiting          waiting;   /* 0: WQ_WAITING_DROP */
    /* NULL: wq_limiter_default(). Owned by the queue once wq_create() has
     * succeeded. A limiter's constructor returns NULL when it fails: check
     * that first, or a mistake becomes the default. */
    wq_limiter *limiter;
    unsigned    retry;       /* enum wq_retry; 0: as client-go */
    unsigned    max_retries; /* then give up; 0: never */
    /* A key was given up after `retries`; called by wq_add_rate_limited(),
     * without a lock, with the bytes that it was passed. NULL: no callback. */
    void (*on_give_up)(void *ctx, wq_key key, unsigned retries);
    void *give_up_ctx; /* its first argument */
    /* NULL or "": no metrics. Copied. */
    const char *name;
    /* Who is told what happens, if there is a name; NULL: the sink of
     * wq_metrics_set_default(), if there is one. */
    const wq_metrics *metrics;
    /* Keep the ages of keys (inspect.h) also without metrics: reads the clock
     * at every add, get and done. */
    bool ages;
    /* How many keys the queue may know at a time, be they READY, WAITING, held,
     * or left alone after a throttled run. Adding a key that it knows is
     * always possible, so a worker that retries its key is never refused.
     * 0: any number. */
    size_t      max_len;
    wq_overflow overflow; /* 0: WQ_OVERFLOW_REFUSE */
    /* A READY key had to make room (WQ_OVERFLOW_DROP_OLDEST); called by the
     * add, without a lock. An add of a new key from here makes another go,
     * and so on without end. NULL: nobody wants to know. */
    void (*on_overflow)(void *ctx, wq_key key);
    void *overflow_ctx; /* its first argument */
    /* For threads with real-time priorities (SCHED_FIFO): no call waits for a
     * thread of lower priority for longer than that thread's own calls take.
     * The queue's lock inherits priorities, keys are not handed over outside
     * it, and no thread spins. Costs throughput. It does not cover limiters
     * (wq_add_rate_limited()), metrics and callbacks, which have locks of
     * their own, nor malloc: use an `allocator` of bounded time. */
    bool real_time;
    /* Bound the keys that the queue knows by their bytes, too: the sum of their
     * lengths. A single key that is longer never fits (WQ_EFULL). 0: any. */
    size_t max_bytes;
    /* Fairness: the group of a key. Within a priority the groups that have READY
     * keys take turns, one key each, so that a group with 100,000 keys delays
     * the only key of another group by one hand-out per group. Returns a part of
     * the key's own bytes, which may be empty (keys without a group are one
     * group, too), and always the same one for a key. No NUL need follow that
     * key. Called by adds and by wq_read_key() and wq_each(), without a lock.
     * wq_group_before_slash() is ready-made. NULL: no groups. */
    wq_key (*group)(void *ctx, wq_key key);
    void *group_ctx; /* its first argument */
    /* How many keys of a group may be HELD at a time; 1: a group is serial.
     * 0: any number. */
    size_t group_max_held;
    /* Ageing: a key that has been READY (or DIRTY, and then READY) for so long
     * is handed out before all keys that became READY after it, whatever their
     * priorities and groups. So a key of the lowest priority waits for
     * max_ready_ns and for the keys that were READY before it, and for nothing
     * else. Reads the clock at every add, get and done, as `ages`. 0: priorities
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

/* A duration so long that it never ends. */
#define WQ_FOREVER INT64_MAX

/* Make an in-memory queue. `config` may be NULL: all defaults.
 *
 * Starts no thread. The caller owns *out and gives it to wq_destroy().
 *
 * Returns WQ_OK;
 *   WQ_EINVAL  `out` is NULL; a `size` field is 0, cut off in the middle of a
 *              field, or larger than this release knows with something set
 *              there; an order or allocator lacks a required function;
 *              `waiting`, `retry` or `overflow` has a value that is not one of
 *              its own; `limiter` belongs to another queue or limiter; an
 *              overflow policy or on_overflow without a max_len or max_bytes;
 *              group_max_held or group_ctx without a group; a negative
 *              max_ready_ns;
 *   WQ_ENOTSUP an order cannot be combined with WQ_OVERFLOW_DROP_OLDEST,
 *              max_bytes, a group or max_ready_ns, nor a group_max_held with
 *              max_ready_ns; `real_time`, and the system has no priority
 *              inheritance;
 *   WQ_ENOMEM  no memory;
 *   WQ_EIO     the system gave no random numbers (the hash is keyed);
 *   what open() of a sink returned.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-01 O-02 O-20 O-55 O-74 O-80
 * O-86 O-87 O-89]
 */
WQ_API WQ_NODISCARD wq_err wq_create(const wq_config *config, wq_queue **out);

/* Give everything back. NULL is allowed.
 *
 * Acts as wq_shutdown() first, and waits until every thread that was blocked in
 * the queue has left it: blocked gets return WQ_ESHUTDOWN even if keys remain,
 * blocked adds too, blocked drains return WQ_EINTERRUPTED. No other call may
 * start, or be under way without being blocked, once wq_destroy() was called:
 * stop the producers and the workers first, or at least see to it that they are
 * blocked. Items not yet done end with the queue; keys not yet handed out are
 * dropped.
 *
 * Threads: one, once.  Blocks: for as long as the above.  Since: 0.1.  [O-03]
 */
WQ_API void wq_destroy(wq_queue *q);

/* ---------------------------------------------------------------- verbs -- */

/* Mark `key` as needing work.
 *
 * A key that is READY already is not added twice. A key held by a worker is
 * handed out once more after its wq_done(), at the tail. The bytes are copied.
 *
 * Returns WQ_OK;
 *   WQ_ESHUTDOWN  after wq_shutdown();
 *   WQ_EINVAL     NULL queue, NULL or empty key;
 *   WQ_ETOOLONG   more than WQ_KEY_MAX bytes;
 *   WQ_EFULL      the queue has a bound, and it is reached (wq_overflow);
 *   WQ_ENOMEM     no memory.
 * Threads: any.  Blocks: never, but for WQ_OVERFLOW_BLOCK.  Cost: O(1).
 * Since: 0.1.
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
 * A delay of 0 or less is wq_add(). A key has at most one deadline; of two the
 * earlier stays. A deadline is a matter of its own: an add meanwhile does not
 * end it, so the key runs now and again then. When the time comes while a
 * worker holds the key, the key is handed out once more after done.
 *
 * A delay so long that its end cannot be told ends at WQ_FOREVER.
 *
 * Returns as wq_add(), and
 *   WQ_ENOTSUP  the backend knows no delays.
 * Threads: any.  Blocks: as wq_add().  Cost: O(log n) of the keys that wait.
 * Since: 0.1.  [D-01 D-02 D-03 D-07 D-08 D-09 D-10 D-11 D-12 D-13 D-14 O-15]
 */
WQ_API WQ_NODISCARD wq_err wq_add_after(wq_queue *q, wq_key key,
                                        int64_t delay_ns);

/* Mark `key` as needing work as soon as the queue's limiter says: after a
 * failure, later each time. wq_add_after() with the limiter's delay.
 *
 * The limiter is asked, and counts, even if the key waits already and the
 * earlier deadline stays; wq_config.retry changes that. With
 * wq_config.max_retries, a key that was retried so often (since the last
 * wq_forget()) is not added but given up: the limiter forgets it, and
 * wq_config.on_give_up is called.
 *
 * Returns as wq_add(), and
 *   WQ_EGIVENUP  see above;
 *   WQ_ENOTSUP   the backend knows no rate limits.
 * After shutdown, and for bad arguments, the limiter is not asked.
 * Threads: any.  Blocks: as wq_add().  Since: 0.1.  [R-01 R-02 R-03 O-16 O-17]
 */
WQ_API WQ_NODISCARD wq_err wq_add_rate_limited(wq_queue *q, wq_key key);

/* -------------------------------------------------- adds with a purpose -- */

/* What an add did, for each key. */
typedef enum wq_added {
    WQ_ADDED_NEW,       /* the key became READY */
    WQ_ADDED_MERGED,    /* READY or DIRTY already: no change */
    WQ_ADDED_DIRTY,     /* held: it will be READY again at done */
    WQ_ADDED_RAISED,    /* READY, DIRTY or WAITING already: nothing changed but
                           its priority, which is higher now */
    WQ_ADDED_SCHEDULED, /* it has a deadline now, and had none */
    WQ_ADDED_SOONER,    /* its deadline was moved to an earlier time */
    WQ_ADDED_LATER,     /* its deadline was moved to a later time; or it was
                           READY or DIRTY and waits now instead */
    WQ_ADDED_KEPT,      /* it has a deadline that serves: no change */
} wq_added;

/* What to do with the deadline of a key that is WAITING already. */
typedef enum wq_if_waiting {
    /* Leave it alone. An add without delay runs the key now, and again then;
     * of two deadlines the earlier stays. As wq_add() and wq_add_after(). */
    WQ_IF_WAITING_KEEP,
    /* One run serves both, at the earlier time of the two: an add without
     * delay ends the deadline, and a delay for a key that is READY or DIRTY
     * changes nothing. As controller-runtime's queue. */
    WQ_IF_WAITING_MERGE,
    /* This add takes the place of all before it that have not begun: one run,
     * when this add says, be it earlier or later. A delay puts off a key that
     * is READY or DIRTY, too. As the kernel's mod_delayed_work(). */
    WQ_IF_WAITING_REPLACE,
    /* The key is left alone: what it waits for serves this add, too. */
    WQ_IF_WAITING_IGNORE,
} wq_if_waiting;

/* How to add. Zero means the stated default; all zero is wq_add(). Times are in
 * nanoseconds on the queue's clock, and not negative where not said.
 */
typedef struct wq_add_options {
    size_t size; /* sizeof(wq_add_options) */
    /* Higher is handed out first; any int. Of the priorities a key is added
     * with, the highest counts until it is handed out; a raised key goes to
     * the end of its new level. Do not forget it in a retry: pass
     * item->priority. */
    int priority;
    /* As wq_add_after(): 0 or less: now. */
    int64_t after_ns;
    /* As wq_add_rate_limited(). With after_ns too, the shorter of both; an
     * after_ns below 0 is now, and 0 means that only the limiter counts. */
    bool rate_limited;
    /* What if the key is WAITING. 0: WQ_IF_WAITING_KEEP */
    wq_if_waiting waiting;
    /* Debounce: run so long after the last of a series of such adds, but no
     * later than max_wait_ns after the first (0: no limit; a key that is added
     * for ever then never runs). A key that is READY stays so. */
    int64_t debounce_ns;
    int64_t max_wait_ns;
    /* Throttle: run now, and then not again within so long of the hand-out;
     * further adds with this option wait until that time is over. Adds without
     * it do not wait, and their runs neither begin nor prolong that time. */
    int64_t throttle_ns;
    /* With WQ_OVERFLOW_BLOCK: how long to wait for room. 0: as wq_add(), for
     * ever; WQ_NOWAIT: not at all. */
    int64_t timeout_ns;
    /* What was done: an array of as many as there are keys; NULL: nobody wants
     * to know. Written only if all went well. */
    wq_added *results;
} wq_add_options;

#define WQ_NOWAIT (-1)

#ifndef __cplusplus
#define WQ_ADD(...)                                                            \
    (&(wq_add_options){.size = sizeof(wq_add_options), __VA_ARGS__})
#endif

/* Add `n` keys, all in the same way, in one step: either all are added or, on
 * any error, none. They become READY in the order they are given in.
 *
 *     wq_add_with(q, WQ_ADD(.priority = 5, .after_ns = second), keys, 3);
 *
 * `how` may be NULL: as wq_add().
 *
 * Returns WQ_OK (also for no key at all), or as wq_add(), and
 *   WQ_EINVAL     also: NULL keys; a negative time; more than one of a delay
 *                 (after_ns or rate_limited), debounce_ns and throttle_ns; a
 *                 max_wait_ns without debounce_ns; an unknown `waiting`, or one
 *                 with debounce_ns or throttle_ns; a wrong `size` (rules: see
 *                 wq_create());
 *   WQ_ETIMEDOUT  no room in time;
 *   WQ_EFULL      no room; or more new keys than max_len, or max_bytes,
 *                 allows: they never fit;
 *   WQ_EGIVENUP   rate_limited: one of them was retried too often; it was
 *                 given up, and the others were not added;
 *   WQ_ENOTSUP    the backend cannot do that; or WQ_IF_WAITING_REPLACE with a
 *                 delay, and a wq_order that cannot remove.
 * A wq_order that refuses a key in the middle ends the call with its error, and
 * the keys before it stay added: with an order, add one at a time.
 * Threads: any.  Blocks: never, but for WQ_OVERFLOW_BLOCK.  Cost: O(1) a key;
 * O(log n) of the keys that wait for a deadline, and of the priorities in use
 * for a priority. WQ_OVERFLOW_DROP_OLDEST: O(priorities in use).  Since: 0.1.
 * [O-50 O-51 O-52 O-53 O-54 O-55 O-56 PQ-07 PQ-08 PQ-16 PQ-42]
 */
WQ_API WQ_NODISCARD wq_err wq_add_with(wq_queue *q, const wq_add_options *how,
                                       const wq_key *keys, size_t n);

/* wq_add_with() of one key:
 *
 *     wq_add_one(q, wq_str("default/nginx"), WQ_ADD(.priority = 5));
 */
WQ_NODISCARD static inline wq_err
wq_add_one(wq_queue *q, wq_key key, const wq_add_options *how)
{
    return wq_add_with(q, how, &key, 1);
}

/* Take back what was asked for `key` and has not begun: it is no longer READY,
 * WAITING or DIRTY. If a worker holds it, that worker goes on and says done as
 * always; the key just does not come again. What the limiter knows of it
 * stays: see wq_forget().
 *
 * Returns WQ_OK         something was taken back;
 *         WQ_ENOTFOUND  the queue does not know the key;
 *         WQ_ESTATE     it is held and nothing else: there is nothing to take
 *                       back;
 *         WQ_EINVAL, WQ_ETOOLONG  as wq_add();
 *         WQ_ENOMEM     no memory to take in what producers handed over;
 *         WQ_ENOTSUP    the backend, or the wq_order, cannot.
 * Threads: any.  Blocks: never.  Cost: O(1), O(log n) if it waits.  Since: 0.1.
 * [O-57]
 */
WQ_API wq_err wq_remove(wq_queue *q, wq_key key);

/* End the deadline of `key`, and nothing else: if it is READY or held it stays
 * so.
 *
 * Returns WQ_OK; WQ_ENOTFOUND: it has none; else as wq_remove().
 * Threads: any.  Blocks: never.  Cost: O(log n).  Since: 0.1.  [O-58]
 */
WQ_API wq_err wq_cancel_after(wq_queue *q, wq_key key);

/* wq_remove(), and wait until no worker holds the key: only then may the caller
 * free what the key stands for. The kernel's cancel_work_sync().
 *
 * Until the worker that holds the key says done, all that is asked for the key
 * is taken back, too: the retry of that very worker, and adds of other threads.
 * When the function has returned WQ_OK, no worker holds the key, and none will
 * unless it is added again later.
 *
 * Returns WQ_OK            the queue does not know the key (any more);
 *         WQ_ETIMEDOUT     a worker still holds it after `timeout_ns` (0: asks
 *                          once); what was asked before the call is taken back;
 *         WQ_ESTATE        the calling thread got this key and has not said
 *                          done: it would wait for itself. Nothing was done;
 *         WQ_EINTERRUPTED  wq_destroy() was called meanwhile;
 *         WQ_EINVAL        also for a negative timeout; else as wq_remove().
 * Threads: any but the worker that holds the key.  Blocks: at most
 * `timeout_ns`.  Cost: as wq_remove().  Since: 0.1.  [O-84]
 */
WQ_API WQ_NODISCARD wq_err wq_remove_wait(wq_queue *q, wq_key key,
                                          int64_t timeout_ns);

/* -------------------------------------------------------------- failures -- */

/* The work on `key` went well (or is given up): the limiter forgets its
 * failures. Does not take a waiting key out, does not replace wq_done(). A key
 * the limiter does not know is WQ_OK too.
 *
 * Returns WQ_OK; WQ_EINVAL, WQ_ETOOLONG as wq_add(); WQ_ENOTSUP.
 * Threads: any.  Blocks: never.  Since: 0.1.  [R-01 R-02]
 */
WQ_API wq_err wq_forget(wq_queue *q, wq_key key);

/* How often the limiter was asked about `key` since it last forgot it; 0 for
 * bad arguments, for limiters that do not count, and where a backend has none.
 * Threads: any.  Blocks: never.  Since: 0.1. 
 */
WQ_API unsigned wq_num_requeues(wq_queue *q, wq_key key);

/* Take the next key; block while there is none.
 *
 * The item is the caller's until wq_done(). After shutdown the keys that are
 * READY are still handed out; WQ_ESHUTDOWN says that none is left.
 *
 * Returns WQ_OK;
 *   WQ_ESHUTDOWN     the queue is shut down and empty;
 *   WQ_EINTERRUPTED  see wq_interrupt(): look at your flag, and call again;
 *   WQ_EINVAL        NULL queue or out;
 *   WQ_ENOMEM        no memory for the loan, or to take in what producers
 *                    handed over; nothing is lost, and the order stays;
 *   WQ_ESTATE        a wq_order gave a key that is not READY, or none.
 * Threads: any.  Blocks: until there is a key.  Cost: O(1); O(log priorities)
 * where there are several, O(log n) for a throttled key.  Since: 0.1.
 * [Q-04 Q-06 Q-07 Q-10 Q-13 Q-17 Q-26]
 */
WQ_API WQ_NODISCARD wq_err wq_get(wq_queue *q, wq_item **out);

/* wq_get() that gives up after `timeout_ns`, on the queue's clock: 0 tries
 * once, WQ_FOREVER never gives up.
 *
 * Returns as wq_get(), and
 *   WQ_ETIMEDOUT  no key came in time;
 *   WQ_EINVAL     also for a negative timeout.
 * Threads: any.  Blocks: at most `timeout_ns`.  Since: 0.1.  [O-05]
 */
WQ_API WQ_NODISCARD wq_err wq_get_within(wq_queue *q, int64_t timeout_ns,
                                         wq_item **out);

/* The work on `item` is finished, well or badly. The loan ends.
 *
 * If the key was added meanwhile it becomes READY again, at the tail; that
 * happens after shutdown too, for adds made before it.
 *
 * Returns WQ_OK;
 *   WQ_ESTATE  the item is not on loan from this queue (done already, or from
 *              another queue). An item pointer that was done is reused by later
 *              gets: a second done can only be told apart until then;
 *   WQ_EINVAL  NULL queue or item;
 *   what push of a wq_order returned: the item is still on loan.
 * Threads: any, also another than got it.  Blocks: never.  Cost: O(1).
 * Since: 0.1.  [Q-04 Q-11 Q-12 Q-14 Q-18 Q-21 O-06]
 */
WQ_API wq_err wq_done(wq_queue *q, wq_item *item);

/* wq_get() of several keys: blocks until there is one, up to `timeout_ns`, then
 * takes all there are, up to `max`, in order, at one go (with metrics, 64 at a
 * time). *n is how many.
 *
 * Returns WQ_OK (then *n is at least 1), or as wq_get_within();
 *   WQ_EINVAL  also if max is 0, or `out` or `n` is NULL.
 * Where a backend has no way to do it at one go, the keys are taken one by one.
 * Threads: any.  Blocks: at most `timeout_ns`.  Since: 0.1.  [O-59]
 */
WQ_API WQ_NODISCARD wq_err wq_get_many(wq_queue *q, wq_item **out, size_t max,
                                       int64_t timeout_ns, size_t *n);

/* wq_done() of `n` items at one go: all, or none if one of them is not on loan
 * from this queue, or is named twice.
 *
 * Returns WQ_OK (also for n = 0); WQ_EINVAL: a NULL among them; WQ_ESTATE;
 * WQ_ENOMEM: none was done (only with metrics, and more than 64); what
 * push of a wq_order returned: items before that one are done (their pointers
 * in the array are NULL then, in every case of WQ_OK too). Where a backend has
 * no way to do it at one go, one by one up to the first that is refused.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-60]
 */
WQ_API wq_err wq_done_many(wq_queue *q, wq_item **items, size_t n);

/* wq_done() of *item, if that is not NULL, and wq_get_within() of the next one,
 * at one go. This is the loop of a worker:
 *
 *     wq_item *item = NULL;
 *     while (wq_next(q, WQ_FOREVER, &item) == WQ_OK)
 *         reconcile(item->key);
 *
 * Whatever it returns, *item tells what is on loan: the next item (WQ_OK); NULL
 * when the old one is done and no other came; unchanged when the done failed.
 *
 * Returns as wq_done() and wq_get_within().
 * Threads: any.  Blocks: at most `timeout_ns`.  Since: 0.1.  [O-61]
 */
WQ_API WQ_NODISCARD wq_err wq_next(wq_queue *q, int64_t timeout_ns,
                                   wq_item **item);

/* wq_done() by key, for callers that did not keep the item: client-go's
 * Done(item).
 *
 * Returns as wq_done(); WQ_ESTATE when `key` is not held; WQ_EINVAL and
 * WQ_ETOOLONG for a bad key; WQ_ENOTSUP if the backend knows items only.
 * Threads: any.  Blocks: never.  Since: 0.1.  [Q-21 O-06]
 */
WQ_API wq_err wq_done_key(wq_queue *q, wq_key key);

/* How many keys are READY. Keys held by workers do not count, be they dirty or
 * not; keys that wait do not count until they are due. Other threads change
 * it at once: good for a display, not for decisions. 0 for a NULL queue.
 * Threads: any.  Blocks: never.  Cost: O(1).  Since: 0.1.  [Q-03 Q-12]
 */
WQ_API size_t wq_len(wq_queue *q);

/* ------------------------------------------------- waiting and pausing -- */

/* Wait until every key that is READY, HELD or DIRTY now has been worked on, even
 * if new ones keep coming. The queue goes on as before. Someone must keep
 * calling get and done. A key that is removed, dropped or put off meanwhile is
 * not waited for; nor is a deadline that has not come when the call begins.
 *
 * When several threads call it at the same time, so that more than three of them
 * wait for different keys, a later one may wait for keys that were added a
 * little after its call.
 *
 * Returns WQ_OK;
 *   WQ_ETIMEDOUT     not so within `timeout_ns` on the queue's clock (0: asks
 *                    once; WQ_FOREVER: without limit);
 *   WQ_ESTATE        the calling thread got a key and has not said done: it
 *                    would wait for itself;
 *   WQ_EINTERRUPTED  wq_destroy() was called meanwhile;
 *   WQ_ENOMEM        out of memory while merging pending adds;
 *   WQ_EINVAL        NULL queue, negative timeout;
 *   WQ_ENOTSUP       not supported by this backend.
 * Threads: any but a worker that holds an item.  Blocks: at most `timeout_ns`.
 * Cost: O(1), and O(HELD keys) at the beginning.  Since: 0.1.  [O-81]
 */
WQ_API WQ_NODISCARD wq_err wq_flush(wq_queue *q, int64_t timeout_ns);

/* Wait until there is a moment at which no key is READY, HELD or DIRTY. Keys
 * that wait for a deadline do not count. When the function returns, new keys may
 * have come.
 *
 * Returns as wq_flush().
 * Threads, Blocks: as wq_flush().  Since: 0.1.  [O-82]
 */
WQ_API WQ_NODISCARD wq_err wq_wait_idle(wq_queue *q, int64_t timeout_ns);

/* wq_flush() of one key: until what was asked for `key` before the call is done,
 * however often it is asked for later. Returns at once if it is neither READY
 * nor HELD; a deadline that has not come is not waited for.
 *
 * Returns as wq_flush(), WQ_ESTATE only if the calling thread got this very key;
 * WQ_EINVAL, WQ_ETOOLONG for a bad key.
 * Threads, Blocks: as wq_flush().  Since: 0.1.  [O-83]
 */
WQ_API WQ_NODISCARD wq_err wq_flush_key(wq_queue *q, wq_key key,
                                        int64_t timeout_ns);

/* Hand out nothing until wq_resume(). Adds go on, and so do workers that hold a
 * key; gets wait, and wq_fd() is not readable. A second pause is harmless, and
 * one wq_resume() ends both.
 *
 * A shutdown, with or without drain, ends the pause: the keys that are READY are
 * handed out then. To leave them alone, stop the workers first.
 *
 * Returns WQ_OK; WQ_ESHUTDOWN: there is nothing to pause any more; WQ_EINVAL:
 * NULL; WQ_ENOTSUP.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-85]
 */
WQ_API wq_err wq_pause(wq_queue *q);

/* End a pause. Returns WQ_OK also if there is none; WQ_EINVAL; WQ_ENOTSUP.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-85]
 */
WQ_API wq_err wq_resume(wq_queue *q);

/* ------------------------------------------------------------- shutdown -- */

/* No more adds: they return WQ_ESHUTDOWN from now on. Wakes every blocked get
 * and ends every drain that waits. Does not wait for anything. READY keys can
 * still be taken. What waits is dropped, or not: see wq_waiting. A second call
 * is harmless.
 * Threads: any.  Blocks: never.  Since: 0.1.  [Q-01 Q-08 Q-09 Q-13 Q-19]
 */
WQ_API void wq_shutdown(wq_queue *q);

/* wq_shutdown(), then wait until every key was worked on: until nothing is
 * READY, held, or dirty. Someone must keep calling get and done. Several
 * threads may wait; all of them are woken.
 *
 * Returns WQ_OK            all work is done;
 *         WQ_EINTERRUPTED  wq_shutdown() was called meanwhile: the second
 *                          SIGTERM. Work remains;
 *         WQ_ENOTSUP       the backend cannot drain: nothing was done;
 *         WQ_EINVAL        NULL queue.
 * Threads: any but a worker that holds an item (it would wait for itself).
 * Blocks: yes.  Since: 0.1.  [Q-07 Q-09 Q-10 Q-20 Q-22 O-07]
 */
WQ_API wq_err wq_shutdown_with_drain(wq_queue *q);

/* wq_shutdown_with_drain() that gives up waiting after `timeout_ns`, on the
 * queue's clock (0: asks once). The queue stays shut down.
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
 * before. When none sleeps, one interrupt is remembered, and the next get that
 * would sleep returns WQ_EINTERRUPTED instead: so a worker that is just about
 * to sleep does not miss it. A get whose time is up returns WQ_ETIMEDOUT and
 * leaves it to the next. To stop N workers without shutting the queue
 * down, set a flag, interrupt, and let each worker that sees the flag interrupt
 * once more before it leaves.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-08]
 */
WQ_API void wq_interrupt(wq_queue *q);

/* ---------------------------------------------------------- event loops -- */

/* A file descriptor for poll(), epoll and the event loops built on them:
 * readable while wq_get_within(q, 0, ...) would not say WQ_ETIMEDOUT, so also
 * when a deadline has passed and when the queue is shut down and empty. It is
 * level-triggered: nothing needs to be read from it, nor may be.
 *
 *     while ((err = wq_get_within(q, 0, &item)) == WQ_OK)  // when readable
 *         ...
 *     if (err == WQ_ESHUTDOWN)
 *         stop watching
 *
 * Another thread may be faster, and a deadline whose key is held, or the end of
 * a throttled key's rest, wakes the loop in vain: be prepared for WQ_ETIMEDOUT.
 * It works with a fake clock, too. The descriptor belongs to the queue, is the
 * same at every call, closes on exec, and is closed by wq_destroy(): take it
 * out of the loop before. From the first call on, a queue that becomes empty or not empty makes a system call.
 *
 * Returns the descriptor; or -1 and errno: EINVAL for NULL; ENOSYS if the
 * system or the backend has none; what the system said.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-70]
 */
WQ_API int wq_fd(wq_queue *q);

#ifdef __cplusplus
}
#endif

#endif
