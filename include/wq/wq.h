/* SPDX-License-Identifier: MIT */
/* wq.h: the work queue. This header is the manual.
 *
 * A wq_queue holds keys that need work. Producers add keys. A worker gets a
 * key, works on it, and marks it done. Three rules make the queue different
 * from a plain FIFO:
 *
 *   - a key that is READY already is not queued twice;
 *   - two workers never hold the same key at the same time;
 *   - a key that is added while a worker holds it is handed out once more after
 *     that worker marks it done. No add is lost.
 *
 *                 add            get            done
 *       absent ────────► READY ────────► HELD ────────► absent
 *                          ▲              │
 *                          │ done         │ add
 *                          │              ▼
 *                          └───────── HELD+DIRTY      (further adds: no change)
 *
 * A key may also be WAITING, alone or together with these states: it has a
 * deadline. A deadline that passes acts as an add of the key. A WAITING key is
 * in BACKOFF if a rate-limited add (wq_add_rate_limited()) set its deadline.
 *
 * The loop of a worker:
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
 * Signals and fork. Do not call any function from a signal handler; set a flag
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
 * Errors. A function that can fail returns wq_err. Unless the function's
 * comment says otherwise, an error other than WQ_EIO leaves the queue and the
 * out-parameters unchanged. A NULL queue is WQ_EINVAL, never a crash. If a
 * function that creates or starts something fails, wq_last_error() describes
 * the error in a sentence.
 *
 * Words. A key is dropped if it leaves the queue although it still needs work,
 * and the program did not remove it. Two reasons have names of their own: the
 * queue gives a key up after wq_config.max_retries retries, and it displaces a
 * READY key to admit a new one. wq_remove() removes a key; that is not a drop.
 * A run covers an add if the add needs no other run. A pending add is an
 * accepted add that the queue has not yet stored in its tables; a later call
 * does that, and may need memory.
 *
 * Shared queues. wq_create() makes a queue in memory, which belongs to one
 * process. wq_open() can also open a queue that is kept in a store, which may
 * survive the process, and which other handles, processes and machines may use
 * at the same time: a shared queue. A wq_queue is then a handle of the store.
 * All that this header says holds for it too, with these differences: [S-01]
 *
 *   Blocking   Every function may wait for the store.
 *   WQ_EAWAY   Any function may return it: the store could not be reached, and
 *              nothing was changed. Call again.
 *   WQ_EIO     Any function may return it: the answer was lost, and the change
 *              may have been made or not. An add, a remove, or a finish with
 *              the same result may be called again: made twice, it has the
 *              effect of once, or is answered WQ_ELOST. [S-02]
 *   Holds      A handle can lose its keys: another worker gets a key while the
 *              first one still works on it (wq_hold_left(), on_lost). From then
 *              on wq_done() and wq_finish() of that item return WQ_ELOST and
 *              change nothing. wq_item.fence grows with every hand-out of a
 *              key: a resource that the worker writes to can use it to refuse
 *              writes of earlier holders. [S-03]
 *   Loans      WQ_ELOST ends the loan: do not use the item again. After WQ_EIO
 *              and WQ_EAWAY of done and finish the item is still on loan: call
 *              again. [S-04]
 *   Shutdown   wq_shutdown() closes this handle only. WAITING keys stay in the
 *              store (WQ_WAITING_LEAVE). Gets of this handle still take READY
 *              keys. [S-05]
 *   Drain      waits until no key is READY in the store and no key is HELD
 *              through this handle. It does not wait for keys that others hold.
 *              To end one worker process of several, stop its workers instead
 *              (wq_workers_stop_within()). [S-06]
 *   Destroy    closes the handle. Keys that it holds become READY for others,
 *              without a failure; all other keys stay. [S-07]
 *   Stats      describe the whole store; counts (uint64_t) count what happened
 *              through this handle. wq_each() may visit a key twice. [S-08]
 *   Fork       A child must not use the handle: its calls return WQ_ESTATE. It
 *              may destroy the handle, which leaves the parent's keys alone.
 *              [S-09]
 *   Config     order, allocator, group, max_ready_ns, real_time, max_bytes, an
 *              overflow other than WQ_OVERFLOW_REFUSE, and limiters that
 *              wq_limiter_describe() cannot describe: WQ_ENOTSUP. So are
 *              wq_flush(), wq_flush_key() and wq_remove_wait(). [S-10]
 *   Threads    A store whose holds end by time needs one thread to renew them,
 *              named wq-lease; with on_lost another one, wq-expiry, which
 *              notices the end of the holds also while the store hangs.
 *
 * Numbers in brackets ([Q-03], [O-02]) name the behaviours in wq-semantics(7),
 * which is also docs/semantics.md; the tests cite the same numbers. Words such
 * as READY, drop and defer have one meaning each: see the table at the top of
 * that document. The manual has a page for each function: `man wq_add`.
 */
#ifndef WQ_WQ_H
#define WQ_WQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <wq/version.h>

/* Internal: attributes of the declarations in these headers. */
#if defined(__GNUC__) || defined(__clang__)
#define WQ_API __attribute__((visibility("default")))
#define WQ_NODISCARD __attribute__((warn_unused_result))
#else
#define WQ_API
#define WQ_NODISCARD
#endif
/* Internal: functions of libwq that the libraries of stores use, such as
 * libwq-sqlite. They must be of the same release. */
#define WQ__STORE_API WQ_API

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
    X(WQ_ENOTFOUND, 7, "not found: no such key, queue or file")                \
    X(WQ_EINTERRUPTED, 8, "the wait was interrupted")                          \
    X(WQ_EIO, 9, "input/output error; the change may have been made")          \
    X(WQ_ELOST, 10, "the hold was lost: another worker may have the key")      \
    X(WQ_ENOTSUP, 11, "not supported by this backend")                         \
    X(WQ_ETOOLONG, 12, "the key is longer than WQ_KEY_MAX bytes")              \
    X(WQ_EGIVENUP, 13, "the key has reached its maximum number of retries")    \
    X(WQ_EDROPPED, 14, "the handler dropped the key")                          \
    X(WQ_EAWAY, 15, "the store cannot be reached; nothing was changed")        \
    X(WQ_EVERSION, 16, "the store was written by a newer release")

#define WQ__ERROR_ENUM(name, number, message) name = number,
/* What a function that can fail returns: WQ_OK, which is 0, or an error.
 * [E-01] */
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

/* A sentence for people about the last failure, in the calling thread, of one
 * of the functions listed below. It names the field or argument and the reason:
 *
 *     "wq_config.overflow needs max_len or max_bytes"
 *     "wq_limiter_exponential: base_ns is negative (-5)"
 *
 * These functions set it when they fail: every function that creates or starts
 * something (queues, layers, backends, limiters, buckets, clocks, registries,
 * worker pools); wq_parallelize(); wq_add_with() with WQ_EINVAL or WQ_ETOOLONG;
 * every add for which wq_config.group returned bytes outside the key;
 * wq_work_one() with wrong arguments; wq_limiter_describe() and
 * wq_limiter_spec_delay(); wq_register_scheme(); every function of a shared
 * queue that returns WQ_EIO or WQ_EAWAY: what the store said. A successful call
 * does not change it. The text may change in any release: do not compare it.
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

/* Times are int64_t nanoseconds. These macros convert whole milliseconds and
 * seconds, of either sign, to nanoseconds. The result must be less than 2^63
 * ns, about 9.2e12 ms or 9.2e9 s; a larger `n` overflows. They are constant
 * expressions if `n` is one.
 */
#define WQ_MS(n) (INT64_C(1000000) * (n))
#define WQ_SECONDS(n) (INT64_C(1000000000) * (n))

/* An infinite duration; as a timeout, no limit. */
#define WQ_FOREVER INT64_MAX

/* ----------------------------------------------------------------- keys -- */

/* The longest key, in bytes. A key is a name, not a payload. */
#define WQ_KEY_MAX 65536

/* A key: any bytes, compared as bytes, copied on add. The empty key is refused
 * (WQ_EINVAL), because it is nearly always a mistake.
 */
typedef struct wq_key {
    const void *data; /* the bytes; not NULL */
    size_t      len;  /* 1 .. WQ_KEY_MAX */
} wq_key;

/* The key made of a string's bytes, without its terminating NUL. NULL gives the
 * empty key, which every function refuses.
 */
static inline wq_key
wq_str(const char *s)
{
    wq_key key;
    key.data = s;
    key.len = s ? strlen(s) : 0;
    return key;
}

/* The key made of `len` bytes, for example wq_bytes(&id, sizeof id) for data
 * without padding. The bytes of an item's key are not aligned: use memcpy() to
 * read the data back.
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

/* An item: a key on loan to one worker, from wq_get() until wq_done(). During
 * that time the key is HELD. Do not write to the item. Pass this pointer, not a
 * copy of the struct, to wq_done(), and do not use it after that.
 */
typedef struct wq_item {
    /* Valid until done. A NUL byte, which len does not count, follows the key:
     * printf("%s", (const char *)item->key.data) prints a key that contains no
     * NUL byte. [O-88] */
    wq_key   key;
    int      priority; /* the priority of this hand-out */
    uint32_t loan;     /* internal */
    uint64_t fence;    /* grows with every hand-out of this key */
} wq_item;

/* --------------------------------------------------------------- config -- */

/* A clock, on which a queue has its deadlines: clock.h. Opaque. */
typedef struct wq_clock wq_clock;

/* A limiter, which gives a queue the delays of retries: limiter.h. Opaque. */
typedef struct wq_limiter wq_limiter;

typedef struct wq_metrics wq_metrics; /* see metrics.h */

/* Where the queue's memory comes from. Both functions are called under the
 * queue's lock and must not call back into the queue. `n` of `free` is the size
 * that was requested from `alloc`.
 */
typedef struct wq_allocator {
    size_t size;                                /* sizeof(wq_allocator) */
    void  *ctx;                                 /* first argument of both */
    void *(*alloc)(void *ctx, size_t n);        /* NULL if out of memory */
    void (*free)(void *ctx, void *p, size_t n); /* p is never NULL */
} wq_allocator;

/* The order in which READY keys are handed out, instead of first in, first out.
 * client-go's Touch, Push, Len and Pop.
 *
 * All functions are called under the queue's lock and must not call back into
 * the queue. One wq_order serves one queue. From push until pop returns the
 * key, or remove takes it out, its bytes do not move: store the wq_key; there
 * is no need to copy the bytes.
 */
typedef struct wq_order {
    size_t size; /* sizeof(wq_order) */
    void  *self; /* first argument of all functions */
    /* `key` becomes READY. If this returns an error (for example WQ_ENOMEM),
     * the add or done that called it returns that error, and nothing has
     * changed. If the push of a key whose deadline has passed fails, the key
     * stays WAITING, and is pushed again about 10 ms later. */
    wq_err (*push)(void *self, wq_key key, int priority);
    /* A READY key was added again. May be NULL. */
    void (*touch)(void *self, wq_key key);
    /* Take out the key to hand out next; false if there is none. *out must be
     * the wq_key that was pushed, same pointer and length, and not popped
     * since. */
    bool (*pop)(void *self, wq_key *out);
    /* How many keys were pushed and not taken out since. The queue keeps its
     * own count and calls this only to check it. */
    size_t (*len)(void *self);
    /* The queue is being destroyed. The bytes of keys that are still in the
     * order belong to the queue and can be read until this returns. May be
     * NULL. */
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
     * handed out and drained. It drops keys in BACKOFF, because they would
     * probably fail again. Exception: it does not drop a key whose deadline
     * also covers an add that was not a failure, for example a later
     * wq_add_after(). */
    WQ_WAITING_FLUSH,
    WQ_WAITING_FLUSH_ALL, /* as FLUSH, but keys in BACKOFF become READY, too */
    /* They stay in the store, for other handles: the default of a shared queue,
     * and its only choice. Not for other queues (WQ_ENOTSUP). */
    WQ_WAITING_LEAVE,
} wq_waiting;

/* Rules for retries and backoffs that client-go does not have; any of them,
 * or'ed. */
enum wq_retry {
    /* wq_add_rate_limited() of a key in BACKOFF changes nothing: the limiter is
     * not queried, no token is spent, the backoff does not grow. */
    WQ_RETRY_ONCE = 1,
    /* Only a HELD key can fail. wq_add_rate_limited() of a key that is not HELD
     * does not count as a failure: the limiter is not queried, and the key is
     * added as by wq_add() with WQ_RETRY_RESPECT. */
    WQ_RETRY_FAILURES_ONLY = 2,
    /* wq_add() of a key in BACKOFF does not run the key before that backoff
     * ends. An earlier deadline, set by wq_add_after(), replaces the backoff.
     */
    WQ_RETRY_RESPECT = 4,
};

/* What an add of a new key does when the queue is full: with the new key it
 * would know more than max_len keys, or keys of more than max_bytes in all. */
typedef enum wq_overflow {
    WQ_OVERFLOW_REFUSE, /* it returns WQ_EFULL. The default */
    /* It blocks until the key fits. A worker that adds new keys to the queue it
     * works on can block itself for ever. */
    WQ_OVERFLOW_BLOCK,
    /* It displaces READY keys, which are dropped (on_drop): lowest priority
     * first, then oldest, that is, READY for longest; in a queue with groups,
     * the oldest of the group that has most READY keys of that priority. It
     * displaces no key of a higher priority than the new one's: if the others
     * are too few, it returns WQ_EFULL and displaces none. */
    WQ_OVERFLOW_DROP_OLDEST,
} wq_overflow;

/* How a queue is created. Zero means the stated default, so set only the fields
 * you need. In C, WQ_CONFIG(.order = &mine) also sets `size`; in C++ set it by
 * hand. wq_create() copies the structs that the fields point to; what those
 * structs point to must outlive the queue.
 */
typedef struct wq_config {
    size_t              size;      /* sizeof(wq_config) */
    const wq_order     *order;     /* NULL: first come, first served */
    const wq_allocator *allocator; /* NULL: malloc and free */
    wq_clock           *clock;     /* not owned; NULL: wq_clock_monotonic() */
    wq_waiting waiting; /* 0: WQ_WAITING_DROP; in a shared queue _LEAVE */
    /* NULL: wq_limiter_default(). wq_create() takes ownership in every case: if
     * it fails, it destroys the limiter. Limiter constructors never return
     * NULL, so a constructor may be called here without a check. */
    wq_limiter *limiter;
    unsigned    retry; /* enum wq_retry; 0: as client-go */
    /* The queue gives a key up after this many retries. 0: never. */
    unsigned max_retries;
    /* The queue dropped `key`. `why` is
     *   WQ_EGIVENUP  given up after `retries` retries (max_retries); called by
     *                wq_add_rate_limited(), wq_finish() and wq_next_with(), the
     *                last two while the key is still HELD;
     *   WQ_EFULL     displaced: the key was READY, and an add dropped it to
     *                admit a new key (WQ_OVERFLOW_DROP_OLDEST); `retries` is 0;
     *                called by that add. If this callback adds a new key, that
     *                add displaces another key and calls it again, and so on
     *                without end.
     * Called without a lock. The bytes of `key` are valid until it returns; a
     * NUL byte follows them. NULL: no callback. It is not called for a key that
     * wq_remove() removes, nor for a WAITING key that a shutdown drops. */
    void (*on_drop)(void *ctx, wq_key key, unsigned retries, wq_err why);
    void *drop_ctx; /* its first argument */
    /* NULL or "": no metrics. Copied. */
    const char *name;
    /* The sink for the metrics of a queue with a name; NULL: the sink of
     * wq_metrics_set_default(), if there is one. */
    const wq_metrics *metrics;
    /* Keep the ages of keys (inspect.h) also without metrics. The queue then
     * reads the clock at every add, get and done. */
    bool ages;
    /* Capacity: how many keys the queue may know at a time. It knows READY,
     * WAITING and HELD keys, and keys in a cooldown (throttle_ns below). A key
     * that the queue knows can always be added, so a worker can always retry
     * its key. 0: no limit. */
    size_t      max_len;
    wq_overflow overflow; /* 0: WQ_OVERFLOW_REFUSE */
    /* For threads with real-time priorities (SCHED_FIFO): a call waits for a
     * thread of lower priority no longer than that thread's own calls take. The
     * queue's lock inherits priorities, producers always take it, and no thread
     * spins. This costs throughput. It does not cover the locks of limiters
     * (wq_add_rate_limited()), metrics and callbacks, nor malloc: use an
     * `allocator` of bounded time. */
    bool real_time;
    /* Capacity in bytes: the largest sum of the lengths of the keys that the
     * queue knows. A single longer key never fits (WQ_EFULL). 0: no limit. */
    size_t max_bytes;
    /* Fairness: the group of a key. Within a priority, the groups that have
     * READY keys take turns, one key each. So a group with 100,000 keys delays
     * the only key of another group by one hand-out, not by 100,000. The
     * function returns a part of the key's own bytes, always the same part for
     * the same key. The part may be empty: all such keys form one group. Do not
     * expect a NUL byte after `key`. Called without a lock, by adds,
     * wq_read_key() and wq_each(). wq_group_before_slash() is ready-made. NULL:
     * no groups. */
    wq_key (*group)(void *ctx, wq_key key);
    void *group_ctx; /* its first argument */
    /* How many keys of a group may be HELD at a time; with 1, the keys of a
     * group run one after the other. 0: any number. */
    size_t group_max_held;
    /* Ageing: a key that has been READY for max_ready_ns (a DIRTY key: since
     * its done) is handed out before all keys that became READY after it,
     * whatever their priorities and groups. So a key of the lowest priority
     * then waits only for keys that became READY before it. The queue reads the
     * clock at every add, get and done, as for `ages`. 0: no ageing. */
    int64_t max_ready_ns;
    /* This handle of a shared queue has lost `key`, which it held with `fence`:
     * another worker may hold the key now. Called once for each loan that is
     * lost, without a lock, by any thread: do not block in it. If no call
     * notices the loss earlier, it is called when wq_hold_left() becomes 0,
     * also while calls wait for the store (not with manual_renew). It begins
     * before a call returns WQ_ELOST for that loan, and may still run in
     * another thread then. The item is still to be finished. The bytes are
     * valid until it returns; a NUL byte follows them. NULL: no callback.
     * [S-03] */
    void (*on_lost)(void *ctx, wq_key key, uint64_t fence);
    void *lost_ctx; /* its first argument */
} wq_config;

/* A function for wq_config.group: returns the bytes before the first '/', as in
 * "namespace/name"; no bytes for a key without a '/'.  Since: 0.1.  [O-80]
 */
WQ_API wq_key wq_group_before_slash(void *ctx, wq_key key);

#ifndef __cplusplus
#define WQ_CONFIG(...) (&(wq_config){.size = sizeof(wq_config), __VA_ARGS__})
#endif

/* ------------------------------------------------------ life of a queue -- */

/* A queue: a handle that wq_create() or wq_open() makes. Opaque, except for
 * backends (backend.h). */
typedef struct wq_queue wq_queue;

/* Create an in-memory queue. `config` may be NULL: all defaults.
 *
 * Starts no thread. The caller owns *out and passes it to wq_destroy().
 *
 * Takes ownership of the limiter of `config` in every case: on success the
 * limiter belongs to the queue, on error wq_create() destroys it. The exception
 * is a limiter that belongs to another queue or limiter: it stays with its
 * owner. A config whose `size` is too small to contain `limiter`, or larger
 * than 4096, has no limiter.
 *
 * Returns WQ_OK; else wq_last_error() names the field and the reason:
 *   WQ_EINVAL   `out` is NULL; a `size` field is 0, ends within a field, or is
 *               larger than this release knows and a byte beyond is not zero;
 *               an order or allocator lacks a required function; `waiting`,
 *               `retry` or `overflow` has an unknown value; `limiter` belongs
 *               to another queue or limiter, or is a failed limiter with this
 *               error; an overflow policy without max_len or max_bytes; a
 *               negative max_ready_ns; group_max_held without a group;
 *   WQ_ENOTSUP  an order together with WQ_OVERFLOW_DROP_OLDEST, max_bytes, a
 *               group or max_ready_ns; group_max_held together with
 *               max_ready_ns; `real_time`, and the system has no priority
 *               inheritance;
 *   WQ_ENOMEM   out of memory, for the queue or its limiter;
 *   WQ_EIO      the system gave no random numbers (the hashes are keyed), for
 *               the queue or its limiter;
 *   the error that open() of a sink returned.
 * Threads: any.  Blocks: never.  Since: 0.1.  [E-03 L-24 L-31 O-01 O-02 O-20
 * O-55 O-74 O-80 O-86 O-87 O-89]
 */
WQ_API WQ_NODISCARD wq_err wq_create(const wq_config *config, wq_queue **out);

/* Open the queue that `url` names, with the backend that its scheme names:
 *
 *     wq_open("mem:", NULL, &q)               as wq_create()
 *     wq_open("sqlite:/var/lib/me/q.db", ...)   a file: see <wq/sqlite.h>
 *     wq_open("redis://host/0?queue=mail", ...) a server: see <wq/redis.h>
 *     wq_open("mine://host?queue=mail", ...)    a backend of your own
 *
 * "mem" is built in; "sqlite" is there if libwq-sqlite is installed, and
 * "redis", "rediss", "redis+unix" and "redis+sentinel" if libwq-redis is. A
 * scheme begins with a lower case letter and has lower case letters, digits,
 * '+', '-' and '.'; the part before the first '+', of at most 31 bytes,
 * decides. It is known if the program registered it (wq_register_scheme());
 * otherwise the library loads libwq-SCHEME.so.0.1 by that name, from the
 * directories of the dynamic loader: never from a directory that the URL names.
 * A program that is linked statically must register its schemes: it cannot load
 * libraries.
 *
 * Takes ownership of the limiter of `config` in every case, as wq_create().
 *
 * Returns WQ_OK; else wq_last_error() says why, without the password of the
 * URL:
 *   WQ_EINVAL    NULL; no scheme; a URL or config that the backend refuses;
 *   WQ_ENOTSUP   no backend for this scheme; or the config sets a field that
 *                the backend does not support;
 *   WQ_EAWAY     the store cannot be reached;
 *   WQ_EVERSION  the store was written by a newer release, and is untouched;
 *   WQ_ENOTFOUND, WQ_EFULL, WQ_ENOMEM, WQ_EIO: see the header of the backend.
 * Threads: any.  Blocks: until the store answers.  Since: 0.1.  [S-11]
 */
WQ_API WQ_NODISCARD wq_err wq_open(const char *url, const wq_config *config,
                                   wq_queue **out);

/* Opens a queue, as wq_open(). `url` is the whole URL; quote no more of it than
 * the scheme, since it may contain a password. `config` is checked, not NULL,
 * and has this release's size. The opener owns config->limiter in every case:
 * if it fails, it calls wq_limiter_destroy(). It says why by wq_fail()
 * (backend.h).
 */
typedef wq_err (*wq_opener)(const char *url, const wq_config *config,
                            wq_queue **out);

/* Make wq_open() call `opener` for URLs of `scheme`, in the whole process: for
 * programs that are linked statically, and for backends of your own. A later
 * call for the same scheme replaces the earlier one; a NULL opener removes it.
 * A library that wq_open() loads need not call this: it exports the function
 * wq_open_SCHEME, a wq_opener; '-' and '.' of the scheme are '_' in that name.
 *
 * Returns WQ_OK; WQ_EINVAL: not a scheme, contains '+', or is "mem"; WQ_EFULL:
 * more than 16 schemes.
 * Threads: any.  Blocks: never.  Since: 0.1.  [S-11]
 */
WQ_API wq_err wq_register_scheme(const char *scheme, wq_opener opener);

/* Shut the queue down and free it. NULL is allowed.
 *
 * Acts as wq_shutdown() first, then waits until every thread that is blocked in
 * the queue has left it: blocked gets and adds return WQ_ESHUTDOWN, even if
 * keys remain; a blocked drain, wq_flush(), wq_flush_key(), wq_wait_idle() or
 * wq_remove_wait() returns WQ_EINTERRUPTED. Once wq_destroy() is called, no
 * other call may start, and no other call may be in progress unless it is
 * blocked: stop the producers and the workers first. Items that are not done
 * become invalid; keys that were not handed out are dropped.
 *
 * Threads: one, once.  Blocks: until those threads have left.  Since: 0.1.
 * [O-03]
 */
WQ_API void wq_destroy(wq_queue *q);

/* ---------------------------------------------------------------- verbs -- */

/* Mark `key` as needing work.
 *
 * A key that is READY already is not added twice. A HELD key becomes DIRTY: at
 * its wq_done() it becomes READY, at the tail. The bytes are copied. A DEAD key
 * of a shared queue stays DEAD, and the add returns WQ_OK; wq_add_one() with
 * `results` reports WQ_ADDED_DEAD. [S-13]
 *
 * Returns WQ_OK;
 *   WQ_ESHUTDOWN  after wq_shutdown();
 *   WQ_EINVAL     NULL queue, NULL or empty key; wq_config.group returned bytes
 *                 outside the key;
 *   WQ_ETOOLONG   more than WQ_KEY_MAX bytes;
 *   WQ_EFULL      the queue is full (wq_overflow);
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
 * most one deadline; of two the earlier stays. wq_add() of a WAITING key does
 * not end the deadline: the key runs now, and again at its deadline. If the
 * deadline passes while the key is HELD, the key becomes DIRTY.
 *
 * A deadline that does not fit into int64_t becomes WQ_FOREVER: it never
 * passes.
 *
 * Returns as wq_add(), and
 *   WQ_ENOTSUP  the backend has no delays.
 * Threads: any.  Blocks: as wq_add().  Cost: O(log w), w = WAITING keys and
 * cooldowns.  Since: 0.1.
 * [D-01 D-02 D-03 D-07 D-08 D-09 D-10 D-11 D-12 D-13 D-14 O-15]
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
 * wq_config.max_retries, the queue gives up a key that was retried max_retries
 * times since the last wq_forget(): it does not add the key, the limiter
 * forgets the key, and wq_config.on_drop is called.
 *
 * Returns as wq_add(), and
 *   WQ_EGIVENUP  the queue gave the key up;
 *   WQ_ENOMEM    also: out of memory for the copy of a key that on_drop gets
 *                (keys of 256 bytes and more); the key was not given up;
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

/* --------------------------------------------------- adds with options -- */

/* What an add did, for each key. */
typedef enum wq_added {
    WQ_ADDED_NEW,       /* the key became READY */
    WQ_ADDED_MERGED,    /* the key was READY or DIRTY already: no change */
    WQ_ADDED_DIRTY,     /* the key was HELD, and became DIRTY */
    WQ_ADDED_RAISED,    /* the key was READY, DIRTY or WAITING already: only its
                           priority changed, to a higher one */
    WQ_ADDED_SCHEDULED, /* the key had no deadline, and has one now */
    WQ_ADDED_SOONER,    /* its deadline was moved to an earlier time */
    WQ_ADDED_LATER,     /* its deadline was moved to a later time; or the key
                           was READY or DIRTY, and was deferred */
    WQ_ADDED_KEPT,      /* its deadline covers this add: no change */
    WQ_ADDED_DEAD,      /* the key is DEAD, and stays so: wq_revive() */
} wq_added;

/* What to do with the deadline of a key that is WAITING already. */
typedef enum wq_if_waiting {
    /* The deadline stays. After an add without delay the key runs now, and
     * again at the deadline; of two deadlines the earlier stays. As wq_add()
     * and wq_add_after(). */
    WQ_IF_WAITING_KEEP,
    /* One run covers both, at the earlier of the two times: an add without
     * delay ends the deadline, and a delay for a READY or DIRTY key changes
     * nothing. As controller-runtime's queue. */
    WQ_IF_WAITING_MERGE,
    /* This add replaces the earlier adds that were not handed out: one run, at
     * the time of this add, earlier or later. A delay also defers a READY or
     * DIRTY key. As the kernel's mod_delayed_work(). */
    WQ_IF_WAITING_REPLACE,
    /* The add is ignored: the run at the deadline covers it. */
    WQ_IF_WAITING_IGNORE,
} wq_if_waiting;

/* How to add. Zero means the stated default; all zero is wq_add(). Times are in
 * nanoseconds on the queue's clock; a negative time is WQ_EINVAL unless stated
 * otherwise.
 */
typedef struct wq_add_options {
    size_t size; /* sizeof(wq_add_options) */
    /* Any int; READY keys of a higher priority are handed out first. If a key
     * is added several times before it is handed out, the highest priority
     * counts. A READY key whose priority is raised goes behind all READY keys
     * of its new priority. In a retry, pass item->priority. */
    int priority;
    /* The delay, as for wq_add_after(). 0 or less: no delay (but see
     * rate_limited). */
    int64_t after_ns;
    /* As wq_add_rate_limited(). If after_ns > 0, the delay is the shorter of
     * after_ns and the limiter's delay. If after_ns is 0, it is the limiter's
     * delay. If after_ns < 0, there is no delay. */
    bool rate_limited;
    /* What to do if the key is WAITING. 0: WQ_IF_WAITING_KEEP */
    wq_if_waiting waiting;
    /* Debounce: the key runs debounce_ns after the last of a series of such
     * adds, but at most max_wait_ns after the first (0: no limit; then a key
     * that is added again and again never runs). A READY key stays READY. */
    int64_t debounce_ns;
    int64_t max_wait_ns;
    /* Throttle: the key runs now, and then has a cooldown until throttle_ns
     * after that hand-out. Further adds with this option make the key WAITING
     * until the cooldown ends. Adds without this option ignore the cooldown,
     * and their runs neither begin nor prolong one. */
    int64_t throttle_ns;
    /* Do not block: if the queue is full, return WQ_EFULL, also with
     * WQ_OVERFLOW_BLOCK. */
    bool nowait;
    /* With WQ_OVERFLOW_BLOCK: the longest time to block; then the add returns
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

/* Add `n` keys with the same options in one step. On an error no key is added,
 * except if push() of a wq_order fails (see below). The keys become READY in
 * the order of the array.
 *
 *     wq_add_with(q, WQ_ADD(.priority = 5, .after_ns = WQ_MS(500)), keys, 3);
 *
 * `how` may be NULL: as wq_add().
 *
 * Returns WQ_OK (also for n = 0), or as wq_add(), and
 *   WQ_EINVAL     also: NULL keys; a negative time other than after_ns; two or
 *                 three of these together: a delay (after_ns or rate_limited),
 *                 debounce_ns, throttle_ns; a max_wait_ns without debounce_ns;
 *                 an unknown `waiting`; a `waiting` other than
 *                 WQ_IF_WAITING_KEEP together with debounce_ns or throttle_ns;
 *                 `nowait` together with max_block_ns; a wrong `size` (rules:
 *                 see wq_create());
 *   WQ_ETIMEDOUT  the keys did not fit within max_block_ns;
 *   WQ_EFULL      the keys do not fit now; or they never fit: more new keys
 *                 than max_len, or more bytes than max_bytes;
 *   WQ_EGIVENUP   rate_limited: the queue gave one of the keys up, and did not
 *                 add the others;
 *   WQ_ENOTSUP    not supported by the backend; or WQ_IF_WAITING_REPLACE with a
 *                 delay, and a wq_order that cannot remove.
 * If push() of a wq_order fails, the call returns its error, but the keys
 * before that one stay added: with an order, add one key at a time.
 * Threads: any.  Blocks: only with WQ_OVERFLOW_BLOCK.  Cost: O(1) for each key.
 * With a delay, debounce_ns or throttle_ns, plus O(log w), w = WAITING keys and
 * cooldowns. With a priority, plus O(log p), p = priorities in use. With
 * groups, plus O(g), g = priorities of the READY keys of the key's group. For
 * each key that WQ_OVERFLOW_DROP_OLDEST displaces, plus O(p); with groups, plus
 * O(m), m = most groups that there were at one time.  Since: 0.1.
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
 * its worker calls wq_done() as usual, and the key is not handed out again. The
 * limiter keeps the failures of the key, unless it is DEAD: see wq_forget().
 *
 * Returns WQ_OK         the key was removed;
 *         WQ_ENOTFOUND  the queue does not know the key, or the key only has a
 *                       cooldown, which goes on;
 *         WQ_ESTATE     the key is only HELD: there is nothing to remove;
 *         WQ_EINVAL, WQ_ETOOLONG  as wq_add();
 *         WQ_ENOMEM     out of memory while merging pending adds;
 *         WQ_ENOTSUP    not supported by the backend or the wq_order.
 * Threads: any.  Blocks: never.  Cost: O(1). For a WAITING key, plus O(log w),
 * w = WAITING keys and cooldowns.  Since: 0.1.  [O-57]
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
 * Threads: any.  Blocks: never.  Cost: O(log w), w = WAITING keys and
 * cooldowns.  Since: 0.1.  [O-58]
 */
WQ_API wq_err wq_cancel_after(wq_queue *q, wq_key key);

/* wq_cancel_after() of a string. */
static inline wq_err
wq_cancel_after_str(wq_queue *q, const char *s)
{
    return wq_cancel_after(q, wq_str(s));
}

/* wq_remove(), then block until the key is not HELD: after that the caller may
 * free the object that the key names. The kernel's cancel_work_sync().
 *
 * Until the worker calls wq_done(), the queue removes every new add of the key,
 * also a retry by that worker. It does not remove an add made after that
 * wq_done(), even if this function has not returned yet. So make sure, before
 * the call, that no thread but that worker adds the key any more: then, after
 * WQ_OK, no worker holds the key, and no get hands it out.
 *
 * Returns WQ_OK            the key was removed, or there was nothing to remove;
 *                          a worker that held it has called wq_done();
 *         WQ_ETIMEDOUT     the key is still HELD after `timeout_ns` (0: checks
 *                          once); adds made before the call are removed;
 *         WQ_ESTATE        the calling thread got this key, and the key is not
 *                          done: the call would wait for its own thread. Also
 *                          if the thread passed the item to another thread.
 *                          Nothing was removed;
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

/* Make the limiter forget the failures of `key`: because the work succeeded, or
 * because the caller stops retrying. This does not end a deadline, and does not
 * replace wq_done(). A key that the limiter does not know is not an error.
 *
 * Returns WQ_OK; WQ_EINVAL, WQ_ETOOLONG as wq_add(); WQ_ENOTSUP: the backend
 * has no limiter.
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
 * worker loop of your own that does not add a failed key again. The function
 * only counts: no key changes, and on_drop is not called. Do not count a key
 * that the queue dropped itself (WQ_EGIVENUP, on_drop): the queue has counted
 * it. wq_finish(), the worker pool and wq_work_one() count the keys that they
 * drop.
 *
 * Returns WQ_OK; WQ_EINVAL: NULL queue; WQ_ENOTSUP: the backend keeps no count.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-62]
 */
WQ_API wq_err wq_count_drops(wq_queue *q, uint64_t n);

/* --------------------------------------------------------- get and done -- */

/* Take the next key; block while there is none.
 *
 * The key is HELD, and *out is valid, until wq_done(). After shutdown READY
 * keys are still handed out; WQ_ESHUTDOWN means that none is left.
 *
 * Returns WQ_OK;
 *   WQ_ESHUTDOWN     the queue is shut down and empty;
 *   WQ_EINTERRUPTED  see wq_interrupt(): check your flag and call again;
 *   WQ_EINVAL        NULL queue or out;
 *   WQ_ENOMEM        out of memory for the loan, or while merging pending adds;
 *                    no key is lost, and their order does not change;
 *   WQ_ESTATE        pop() of a wq_order returned a key that is not READY, or
 *                    none.
 * Threads: any.  Blocks: until a key is READY.  Cost: O(1). With several
 * priorities, plus O(log p), p = priorities in use. For a throttled key, plus
 * O(log w), w = WAITING keys and cooldowns. With groups, plus O(g), g =
 * priorities of the READY keys of the key's group.  Since: 0.1.
 * [Q-04 Q-06 Q-07 Q-10 Q-13 Q-17 Q-26]
 */
WQ_API WQ_NODISCARD wq_err wq_get(wq_queue *q, wq_item **out);

/* wq_get() that blocks for at most `timeout_ns`, on the queue's clock (0: tries
 * once and does not block; WQ_FOREVER: no limit).
 *
 * Returns as wq_get(), and
 *   WQ_ETIMEDOUT  no key became READY in time;
 *   WQ_EINVAL     also for a negative timeout.
 * Threads: any.  Blocks: at most `timeout_ns`.  Since: 0.1.  [O-05]
 */
WQ_API WQ_NODISCARD wq_err wq_get_within(wq_queue *q, int64_t timeout_ns,
                                         wq_item **out);

/* Mark `item` as done: the work on it is finished, successfully or not. The
 * loan ends.
 *
 * A key that is DIRTY becomes READY, at the tail, also after a shutdown.
 *
 * Returns WQ_OK;
 *   WQ_ESTATE  the item is not on loan from this queue (done already, or from
 *              another queue). Later gets reuse the pointer of an item that is
 *              done: a second done is detected only until then;
 *   WQ_EINVAL  NULL queue or item;
 *   the error of push() of a wq_order: the item is still on loan.
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
 * With a backend without this verb, the keys are taken one by one.
 * Threads: any.  Blocks: at most `timeout_ns`.  Since: 0.1.  [O-59]
 */
WQ_API WQ_NODISCARD wq_err wq_get_many(wq_queue *q, wq_item **out, size_t max,
                                       int64_t timeout_ns, size_t *n);

/* wq_done() of `n` items in one step: all of them, or none if one is not on
 * loan from this queue or is in the array twice. The function sets the pointers
 * of items that are done to NULL.
 *
 * Returns WQ_OK (also for n = 0);
 *   WQ_EINVAL  NULL queue or array, or a NULL in it;
 *   WQ_ESTATE  one is not on loan, or is in the array twice;
 *   WQ_ENOMEM  none was done (only with metrics, and more than 64 items);
 *   the error of push() of a wq_order: the items before that one are done.
 * With a backend without this verb, the loans end one by one, up to the first
 * that fails.
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
 * After the call, *item is the next item (WQ_OK); NULL if the old item is done
 * and there is no next one; unchanged if the done failed.
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

/* -------------------------------------------------------------- results -- */

/* What becomes of a key after a worker had it. Any other number is a retry.
 * [PW-05] */
typedef enum wq_outcome {
    WQ_RESULT_DONE,  /* success: forget its failures */
    WQ_RESULT_RETRY, /* failure: run it again after the limiter's delay */
    WQ_RESULT_AFTER, /* success: run it again after `after_ns` */
    WQ_RESULT_DROP,  /* failure, and a retry would not help: drop it */
    WQ_RESULT_BACK,  /* not worked on: READY again at once, at the tail */
    /* As DROP, but a queue that keeps DEAD keys keeps the key as DEAD: it is
     * not handed out until wq_revive(). */
    WQ_RESULT_BURY
} wq_outcome;

/* A result. Use the functions below; all zero is done. */
typedef struct wq_result {
    wq_outcome outcome;
    int64_t    after_ns; /* for WQ_RESULT_AFTER */
    /* For RETRY, AFTER and BACK: run the key again with `priority`. False: with
     * the priority of this hand-out. */
    bool prioritized;
    int  priority;
} wq_result;

static inline wq_result
wq__result(wq_outcome outcome, int64_t after_ns)
{
    wq_result result;
    result.outcome = outcome;
    result.after_ns = after_ns;
    result.prioritized = false;
    result.priority = 0;
    return result;
}

/* The work succeeded. The limiter forgets the failures of the key.  Since: 0.1.
 * [PQ-47]
 */
static inline wq_result
wq_result_done(void)
{
    return wq__result(WQ_RESULT_DONE, 0);
}

/* The work failed. The key is handed out again after the delay of the queue's
 * limiter, usually longer each time, unless the queue gives it up
 * (wq_config.max_retries).  Since: 0.1.  [PQ-47 PW-06]
 */
static inline wq_result
wq_result_retry(void)
{
    return wq__result(WQ_RESULT_RETRY, 0);
}

/* The work succeeded; run the key again in `after_ns`. The limiter forgets its
 * failures. 0 or less is now: the key is READY again after done, at the tail.
 * This is not a failure, so nothing slows down a handler that always returns
 * wq_result_after(0): it runs without a pause.  Since: 0.1.  [PQ-47 PW-05]
 */
static inline wq_result
wq_result_after(int64_t after_ns)
{
    return wq__result(WQ_RESULT_AFTER, after_ns);
}

/* The work failed, and a retry would not help: the key is not run again, unless
 * it is added. The limiter keeps the failures of the key: if the key is added
 * later and fails again, its backoff goes on growing. To forget them, call
 * wq_forget().  Since: 0.1.  [PQ-47 PW-08]
 */
static inline wq_result
wq_result_drop(void)
{
    return wq__result(WQ_RESULT_DROP, 0);
}

/* The key was not worked on, for example because the worker must end: it is
 * READY again at once, at the tail, also after a shutdown. This is not a
 * failure: the limiter is not queried, and keeps what it has counted.
 * Since: 0.1.  [S-12]
 */
static inline wq_result
wq_result_back(void)
{
    return wq__result(WQ_RESULT_BACK, 0);
}

/* As wq_result_drop(), but a queue that keeps DEAD keys (a shared queue) keeps
 * the key for people to look at: wq_each(), wq_revive().  Since: 0.1.  [S-13]
 */
static inline wq_result
wq_result_bury(void)
{
    return wq__result(WQ_RESULT_BURY, 0);
}

/* Mark `item` as done, and say what becomes of its key, in one step:
 *
 *     wq_finish(q, item, reconcile(item->key) ? wq_result_done()
 *                                             : wq_result_retry());
 *
 * This is what a worker pool calls with the result of the handler. Compared
 * with wq_forget(), wq_add_rate_limited() and the like, followed by wq_done(),
 * a shared queue does all of it or nothing, and nothing if the key was lost.
 * A holder's retry is no add: a shared queue accepts it after a shutdown, too.
 * A queue that is not shared drops the key then: WQ_ESHUTDOWN. [S-14]
 *
 * Returns WQ_OK;
 *   WQ_EGIVENUP   a retry, but the key has reached wq_config.max_retries: it
 *                 was dropped, or is DEAD where the queue keeps such keys, and
 *                 wq_config.on_drop was called;
 *   WQ_EDROPPED   WQ_RESULT_BURY in a queue that keeps no DEAD keys: dropped;
 *   WQ_ESHUTDOWN  a retry or an AFTER in a queue that is shut down and not
 *                 shared: dropped;
 *   WQ_ELOST      this handle has lost the key (shared queues): no change;
 *   WQ_ESTATE     as wq_done(); WQ_EINVAL: NULL queue or item;
 *   WQ_EIO, WQ_EAWAY, WQ_ENOMEM, the error of push() of a wq_order: the item is
 *                 still on loan; call again;
 *   WQ_ENOTSUP    the backend has no delays or limits: the item is still on
 *                 loan; finish it with another result.
 * In all cases but the last two the loan has ended. In a queue that is not
 * shared, a retry that failed with the error of push() still counts as a
 * failure.
 * Threads: any.  Blocks: never; a shared queue until the store answers.
 * Since: 0.1.  [S-02 S-04 S-12 S-13 S-14]
 */
WQ_API wq_err wq_finish(wq_queue *q, wq_item *item, wq_result result);

/* wq_finish() of `n` items, in one step where the backend can. `results[i]` is
 * for items[i]; NULL: all are done. Each item is finished for itself, also if
 * another one fails. The function sets the pointers of items whose loan has
 * ended, or that were not on loan, to NULL, and errs[i], unless `errs` is NULL,
 * to what wq_finish() would return.
 *
 * Returns WQ_OK if every item is WQ_OK (also for n = 0), else the first other
 * error; WQ_EINVAL: NULL queue or array, or a NULL in it: nothing was changed.
 * Threads, Blocks: as wq_finish().  Since: 0.1.  [S-14]
 */
WQ_API wq_err wq_finish_many(wq_queue *q, wq_item **items,
                             const wq_result *results, wq_err *errs, size_t n);

/* wq_next() with a result: wq_finish() of *item, unless it is NULL, then
 * wq_get_within() of the next one. The loop of a worker:
 *
 *     wq_item  *item = NULL;
 *     wq_result result = wq_result_done();
 *     wq_err    err;
 *
 *     for (;;) {
 *         err = wq_next_with(q, result, WQ_FOREVER, &item);
 *         if (err == WQ_OK)
 *             result = reconcile(item->key);
 *         else if (err == WQ_EAWAY || err == WQ_EIO || err == WQ_ENOMEM)
 *             sleep(1);  // call again with the same item and result
 *         else if (err != WQ_EINTERRUPTED)
 *             break;     // WQ_ESHUTDOWN
 *     }
 *
 * After the call *item is the next item (WQ_OK); unchanged if the old one is
 * still on loan, or after WQ_EINVAL; NULL otherwise: then a further call only
 * gets a key. What became of the old key does not end the loop. A key that was
 * given up is reported to wq_config.on_drop, a key that was lost to on_lost; a
 * key that was dropped by its result, or because the queue is shut down, is
 * only counted (wq_stats.drops). wq_finish() reports more.
 *
 * Returns WQ_OK; the error of wq_get_within(); WQ_ESTATE: the item was not on
 * loan; or the error of wq_finish() if the old item is still on loan.
 * Threads: any.  Blocks: at most `timeout_ns`; a shared queue also until the
 * store answers.  Since: 0.1.  [S-04 S-14]
 */
WQ_API WQ_NODISCARD wq_err wq_next_with(wq_queue *q, wq_result result,
                                        int64_t timeout_ns, wq_item **item);

/* ---------------------------------------------------------------- holds -- */

/* For how long the hold of `item` is certain to last, in nanoseconds, if the
 * store cannot be reached from now on: WQ_FOREVER if holds do not end by time,
 * 0 if it is not certain any more, or lost: stop the work. Counted from the
 * moment at which the last successful renewal was sent. 0 for NULL.
 * Threads: any.  Blocks: never.  Since: 0.1.  [S-03]
 */
WQ_API int64_t wq_hold_left(wq_queue *q, const wq_item *item);

/* Renew the holds of this handle now. Only for programs that opened the queue
 * without the thread that does it; harmless for all others.
 *
 * Returns WQ_OK, also where holds do not end by time; WQ_ELOST: all holds of
 * this handle are lost; WQ_EIO, WQ_EAWAY: call again before wq_hold_left() is
 * 0; WQ_EINVAL: NULL.
 * Threads: any.  Blocks: until the store answers.  Since: 0.1.  [S-03]
 */
WQ_API wq_err wq_renew(wq_queue *q);

/* Revive a DEAD key: it becomes READY, and its failures are forgotten. A shared
 * queue makes a key DEAD if its worker buries it (WQ_RESULT_BURY), if it has
 * reached max_retries, or if too many workers have died while they held it. An
 * add of a DEAD key changes nothing; it keeps its failures; wq_remove() removes
 * it and forgets them. [S-13]
 *
 * Returns WQ_OK; WQ_ENOTFOUND: the key is not DEAD; WQ_EINVAL, WQ_ETOOLONG as
 * wq_add(); WQ_ENOTSUP: the queue keeps no DEAD keys; WQ_EIO, WQ_EAWAY.
 * Threads: any.  Blocks: until the store answers.  Since: 0.1.  [S-13]
 */
WQ_API wq_err wq_revive(wq_queue *q, wq_key key);

/* wq_revive() of a string. */
static inline wq_err
wq_revive_str(wq_queue *q, const char *s)
{
    return wq_revive(q, wq_str(s));
}

/* --------------------------------------------------------------- length -- */

/* How many keys are READY. HELD keys do not count, DIRTY or not; WAITING keys
 * do not count before their deadlines. Other threads may change the number at
 * any time: do not base decisions on it. 0 for a NULL queue.
 * Threads: any.  Blocks: never.  Cost: O(1).  Since: 0.1.  [Q-03 Q-12]
 */
WQ_API size_t wq_len(wq_queue *q);

/* --------------------------------------------------- flush, idle, pause -- */

/* Block until every key that is READY, HELD or DIRTY now was worked on, even if
 * producers add more. The queue stays open, and workers must keep calling get
 * and done. The function does not wait for keys that are removed, dropped or
 * deferred meanwhile, nor for deadlines that have not passed when the call
 * begins.
 *
 * The queue tracks three flushes separately; a flush that timed out counts
 * until its keys are done. A further flush also waits for keys that are added
 * before the oldest of these three has ended.
 *
 * Returns WQ_OK;
 *   WQ_ETIMEDOUT     work remains after `timeout_ns`, on the queue's clock (0:
 *                    checks once; WQ_FOREVER: no limit);
 *   WQ_ESTATE        the calling thread got a key that is not done: the call
 *                    would wait for its own thread. Also if the thread passed
 *                    the item to another thread: call this function from a
 *                    thread that gets no keys;
 *   WQ_EINTERRUPTED  wq_destroy() was called meanwhile;
 *   WQ_ENOMEM        out of memory while merging pending adds;
 *   WQ_EINVAL        NULL queue, negative timeout;
 *   WQ_ENOTSUP       not supported by this backend.
 * Threads: any but a worker that holds an item.  Blocks: at most `timeout_ns`.
 * Cost: O(most keys that were HELD at one time). While threads wait in this
 * function, wq_wait_idle(), wq_flush_key() or wq_remove_wait(), every call of
 * the queue costs O(such threads) more.
 * Since: 0.1.  [O-81]
 */
WQ_API WQ_NODISCARD wq_err wq_flush(wq_queue *q, int64_t timeout_ns);

/* Block until the queue is idle, if only for a moment: no key is READY, HELD or
 * DIRTY. WAITING keys do not count. When the function returns, new keys may
 * have been added.
 *
 * Returns as wq_flush().
 * Threads, Blocks: as wq_flush().  Since: 0.1.  [O-82]
 */
WQ_API WQ_NODISCARD wq_err wq_wait_idle(wq_queue *q, int64_t timeout_ns);

/* wq_flush() of one key: block until the adds of `key` before this call were
 * worked on. Later adds do not prolong the wait. The function returns at once
 * if the key is neither READY nor HELD; it does not wait for a deadline that
 * has not passed.
 *
 * Returns as wq_flush(), WQ_ESTATE only if the calling thread holds this key;
 * WQ_EINVAL, WQ_ETOOLONG for a bad key.
 * Threads: any but the thread that holds this key.  Blocks: at most
 * `timeout_ns`.  Since: 0.1.  [O-83]
 */
WQ_API WQ_NODISCARD wq_err wq_flush_key(wq_queue *q, wq_key key,
                                        int64_t timeout_ns);

/* wq_flush_key() of a string. */
WQ_NODISCARD static inline wq_err
wq_flush_key_str(wq_queue *q, const char *s, int64_t timeout_ns)
{
    return wq_flush_key(q, wq_str(s), timeout_ns);
}

/* Hand out no key until wq_resume(). Adds work as before, and so do workers
 * that hold a key; gets block, and wq_fd() is not readable, except about once a
 * second in a shared queue. A second pause changes nothing: one wq_resume()
 * ends both.
 *
 * A shutdown, with or without drain, ends the pause: then READY keys are handed
 * out. To keep them in the queue, stop the workers first.
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

/* Shut the queue down: adds return WQ_ESHUTDOWN from now on. Wakes every
 * blocked get and ends every blocked drain. Gets can still take READY keys.
 * WAITING keys are dropped, kept or made READY: see wq_waiting. A second call
 * only ends drains.
 * Threads: any.  Blocks: never.  Since: 0.1.  [Q-01 Q-08 Q-09 Q-13 Q-19]
 */
WQ_API void wq_shutdown(wq_queue *q);

/* Drain: shut the queue down, then block until no key is READY, HELD or DIRTY
 * (with WQ_WAITING_KEEP: nor WAITING). Workers must keep calling get and done
 * meanwhile. Several threads may drain; all of them return.
 *
 * Returns WQ_OK            all work is done;
 *         WQ_EINTERRUPTED  another thread called wq_shutdown() during the
 *                          drain, for example because the program received a
 *                          second SIGTERM. Work remains;
 *         WQ_ENOTSUP       the backend cannot drain; the queue is not shut
 *                          down;
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

/* Interrupt all gets that are sleeping when this function is called: they
 * return WQ_EINTERRUPTED. Nothing else changes. If no get sleeps, the queue
 * remembers one interrupt, and the next get that would sleep returns
 * WQ_EINTERRUPTED instead: so a worker that is about to sleep does not miss it.
 * A get that times out does not use up a remembered interrupt. To stop N
 * workers without shutting the queue down, set a flag and call wq_interrupt();
 * each worker that sees the flag calls wq_interrupt() once more before it ends.
 * Threads: any.  Blocks: never.  Since: 0.1.  [O-08]
 */
WQ_API void wq_interrupt(wq_queue *q);

/* ---------------------------------------------------------- event loops -- */

/* A file descriptor for poll(), epoll and the event loops built on them. The
 * descriptor is readable while a get can take a key, when a deadline has
 * passed, and after the queue is shut down and empty. It is level-triggered: do
 * not read from it.
 *
 *     while ((err = wq_get_within(q, 0, &item)) == WQ_OK)  // when readable
 *         work_on(item);
 *     if (err == WQ_ESHUTDOWN)
 *         stop_watching();
 *
 * It may be readable although no key is READY: then wq_get_within(q, 0, ...)
 * returns WQ_ETIMEDOUT. This happens if another thread took the key, the
 * deadline of a HELD key passed, or a cooldown ended; and about once a second
 * in a shared queue, so that the get looks at the store. It works with a fake
 * clock, too. The descriptor belongs to the queue, is the same at every call,
 * closes on exec, and is closed by wq_destroy(): remove it from the loop
 * before. From the first call on, the queue makes a system call whenever it
 * becomes empty or stops being empty, and when its earliest deadline changes.
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
