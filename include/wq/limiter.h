/* SPDX-License-Identifier: MIT */
/* limiter.h: the delay of a key before its retry, and token buckets.
 *
 * A wq_limiter gives wq_add_rate_limited() the delay of a key; it counts the
 * failures of every key, or limits the rate of all keys together, or both:
 *
 *     wq_limiter *parts[] = {
 *         wq_limiter_exponential(WQ_MS(5), WQ_SECONDS(60)), // each key
 *         wq_limiter_bucket(10, 100), // all keys together: 10 a second
 *     };
 *     if (wq_create(WQ_CONFIG(.limiter = wq_limiter_max_of(2, parts)), &q))
 *         fprintf(stderr, "%s\n", wq_last_error());
 *
 * Only wq_create() needs a check: it returns the error of a limiter that could
 * not be created, and takes ownership of the limiter even if it fails. One
 * limiter serves one queue, which owns it: if two queues shared a limiter, a
 * forget in one queue would reset the delays of the other.
 *
 * A wq_limiter_spec is a limiter as data, for backends that count elsewhere.
 *
 * A wq_bucket is a token bucket on its own, for programs that limit the rate of
 * something other than a queue: calls to a server, lines of a log, bytes.
 *
 * Times are nanoseconds, rates are events per second. Threads: every function
 * may be called from any thread at any time, except wq_limiter_destroy() and
 * wq_bucket_destroy(), which must be the last call.
 *
 * Numbers in brackets name the behaviours in wq-semantics(7).
 */
#ifndef WQ_LIMITER_H
#define WQ_LIMITER_H

#include <float.h>

#include <wq/clock.h>
#include <wq/wq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An infinite rate: every event passes, and none is counted. [T-01] */
#define WQ_RATE_INF DBL_MAX

/* ---------------------------------------------------------------- limiters --
 *
 * Rules for all constructors. They never return NULL, because NULL in wq_config
 * means the default limiter: a mistake would select that one without notice. A
 * constructor that fails returns a failed limiter, for which
 * wq_limiter_error() is
 *   WQ_EINVAL  an argument is wrong, as named at each constructor;
 *   WQ_ENOMEM  out of memory;
 *   WQ_EIO     the system gave no random numbers (the hashes are keyed);
 * and wq_last_error() says why. The creation of a queue, a layer or another
 * limiter with a failed limiter fails with the same error. The functions below
 * treat a failed limiter as NULL.
 *
 * The caller owns the new limiter and passes it to a queue, a layer, another
 * limiter, or wq_limiter_destroy(). A function that takes ownership of a
 * limiter does so in every case: if it fails, it destroys the limiter, unless
 * the limiter has another owner. So constructors can be nested in one
 * expression without checks, and nothing leaks. [L-24 L-31]
 *
 * A limiter that counts per key remembers a key from its first when() until its
 * forget(): a program that does not forget the keys that succeed leaks memory.
 * `max_keys` and `ttl_ns` below bound it.
 *
 * If there is no memory for a new key, nothing is recorded, and the key gets
 * the longest delay: `max_ns`, `slow_ns`, or the time of one token. The next
 * when() tries again. [L-25]
 */

/* The delay of a key is base_ns * 2^failures, at most max_ns: base_ns at first,
 * then twice as long each time.
 *
 * A base_ns above max_ns gives max_ns from the first time. A base_ns of 0 gives
 * 0 until the factor overflows a double: max_ns from the 1025th time on.
 * WQ_EINVAL: base_ns or max_ns is negative.
 * Cost: O(1) a call; per key, 18 to 24 bytes and the key itself.  Since: 0.1.
 * [L-01 L-02 L-03 L-04 L-05 L-27]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_exponential(int64_t base_ns,
                                                       int64_t max_ns);

/* How a delay d is shortened at random, so that keys that failed together are
 * not retried together. [L-20]
 */
typedef enum wq_jitter {
    WQ_JITTER_NONE = 0, /* d */
    WQ_JITTER_FULL,     /* a random time from 0 to d: spreads best */
    WQ_JITTER_EQUAL     /* a random time from d/2 to d: at least half of it */
} wq_jitter;

/* Options of wq_limiter_exponential_with(). Zero: the stated default. */
typedef struct wq_exponential_options {
    size_t    size;     /* sizeof(wq_exponential_options) */
    int64_t   base_ns;  /* 0: 5 ms */
    int64_t   max_ns;   /* 0: 1000 s */
    wq_jitter jitter;   /* 0: none */
    uint64_t  seed;     /* of the jitter, for reproducible tests; 0: random */
    size_t    max_keys; /* how many keys are remembered; 0: no limit. To
                           remember one more, the limiter forgets the key whose
                           last when() was longest ago */
    int64_t   ttl_ns;   /* a key without a when() for this time is
                           forgotten; 0: never */
    const wq_allocator *allocator; /* NULL: malloc and free. Copied; what it
                                      points to must outlive the limiter */
    double factor; /* each delay is so many times the one before; 0: 2 */
} wq_exponential_options;

#ifndef __cplusplus
#define WQ_EXPONENTIAL(...)                                                    \
    (&(wq_exponential_options){.size = sizeof(wq_exponential_options),         \
                               __VA_ARGS__})
#endif

/* wq_limiter_exponential() with options; NULL: all defaults. In C:
 * wq_limiter_exponential_with(WQ_EXPONENTIAL(.jitter = WQ_JITTER_FULL)).
 *
 * The delay of a key is base_ns * factor^failures, at most max_ns, in whole
 * nanoseconds: the rest is cut off. It never decreases from one failure to the
 * next, jitter apart. The powers of 2 are exact, and so are those of every
 * factor while they are doubles; the relative error of others is about
 * failures * 2^-53 at most.
 *
 * A when() of any key frees the memory of keys beyond max_keys and ttl_ns; an
 * expired key counts as forgotten even before that. ttl_ns is measured on the
 * limiter's clock (wq_limiter_set_clock()).
 * WQ_EINVAL: as wq_limiter_exponential(); also an unknown jitter, a negative
 * ttl_ns, a factor that is less than 1 or not finite, an allocator that lacks a
 * function, a wrong `size` (rules: see wq_create()).
 * Cost: O(1) a call; per key, 8 bytes more with max_keys, 24 with ttl_ns.
 * Since: 0.1.  [L-20 L-21 L-22 L-29 L-32]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_exponential_with(
    const wq_exponential_options *options);

/* The delay of a key is fast_ns for its first max_fast failures, then slow_ns.
 *
 * WQ_EINVAL: fast_ns or slow_ns is negative.
 * Cost: as wq_limiter_exponential().  Since: 0.1.  [L-06]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_fast_slow(int64_t  fast_ns,
                                                     int64_t  slow_ns,
                                                     unsigned max_fast);

/* One token bucket for all keys together; each when() takes one token. Counts
 * nothing per key: forget does nothing, num_requeues is 0.
 *
 * At a rate of 0 or less, `burst` keys pass, and all later ones get WQ_FOREVER.
 * With a burst of 0 none passes, except at WQ_RATE_INF.
 * WQ_EINVAL: the rate is not a number, or is infinite (use WQ_RATE_INF).
 * Cost: O(1).  Since: 0.1.  [L-10 L-23 T-11 T-12]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_bucket(double   per_second,
                                                  unsigned burst);

/* A token bucket for each key: it limits the rate of a key, whether the key
 * fails or not. Forget fills the bucket of the key; num_requeues is 0. A later
 * when() frees the memory of a bucket that is full again.
 *
 * WQ_EINVAL: as wq_limiter_bucket().
 * Cost: O(1); per key, 42 to 48 bytes and the key itself.  Since: 0.1.
 * [L-11 L-28]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_item_bucket(double   per_second,
                                                       unsigned burst);

/* The longest delay of several limiters. Every when() queries all of them, and
 * each counts. num_requeues is the highest of theirs; forget, undo and
 * set_clock go to all. With no limiters, delay and num_requeues are 0.
 *
 * Takes ownership of the children, whether it succeeds or not. The array is
 * copied.
 *
 * Fails with the error of the first child that is a failed limiter. WQ_EINVAL:
 * n is not 0 and the array is NULL; a child is NULL; a child has an owner
 * already (it stays with that owner), or is in the array twice.
 * Cost: that of the children.  Since: 0.1.  [L-07 L-08 L-24 L-31]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_max_of(size_t             n,
                                                  wq_limiter *const *children);

/* The delay of `inner`, but at most max_ns. All other functions go to `inner`.
 *
 * Takes ownership of `inner`, and fails, as wq_limiter_max_of() does. WQ_EINVAL
 * also: max_ns is negative.
 * Since: 0.1.  [L-09 L-24 L-31]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_with_max_wait(wq_limiter *inner,
                                                         int64_t     max_ns);

/* The limiter of a queue whose config has none: the longer delay of an
 * exponential limiter, 5 ms to 1000 s, and a bucket of 10 a second, burst 100.
 *
 * The bucket is for all keys of the queue together: once the burst of 100 is
 * used up, one retry of each of a thousand failing keys takes 100 s in all.
 * Since: 0.1.  [L-12]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_default(void);

/* An exponential limiter, 1 ms to 1000 s, without a bucket.  Since: 0.1.
 * [L-12]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_default_item(void);

/* The error of the limiter's constructor: WQ_OK if it succeeded; WQ_EINVAL for
 * NULL.
 * Threads: any.  Blocks: never.  Since: 0.1.  [L-31]
 */
WQ_API wq_err wq_limiter_error(const wq_limiter *limiter);

/* ---------------------------------------------------------------- verbs -- */

/* The delay of `key` now. Each call counts as one failure of the key, or takes
 * a token. Never negative.
 *
 * Returns WQ_FOREVER, and records nothing, for a NULL or failed limiter and for
 * a key that every queue refuses (NULL, empty, longer than WQ_KEY_MAX).
 * Threads: any.  Blocks: never.  Since: 0.1.  [R-02 R-03 L-25 L-26 L-31]
 */
WQ_API int64_t wq_limiter_when(wq_limiter *limiter, wq_key key);

/* Forget the failures of `key`: it has succeeded, or was given up. The queue
 * does not change: a WAITING key stays WAITING.
 * Threads: any.  Blocks: never.  Since: 0.1.  [R-02 L-01 L-06]
 */
WQ_API void wq_limiter_forget(wq_limiter *limiter, wq_key key);

/* How many calls of when() there were since the last forget, minus those that
 * were undone. 0 for a limiter that does not count.
 * Threads: any.  Blocks: never.  Since: 0.1.  [L-01 L-06 L-07]
 */
WQ_API unsigned wq_limiter_num_requeues(wq_limiter *limiter, wq_key key);

/* Undo the last when() of `key`, for example because its add failed: one
 * failure less, or one token returned to the bucket. Call it at most once for
 * each when(). It does nothing if there is nothing to undo, or if a limiter of
 * your own has no `undo`.
 * Threads: any.  Blocks: never.  Since: 0.1.  [L-30]
 */
WQ_API void wq_limiter_undo(wq_limiter *limiter, wq_key key);

/* Use `clock` from now on (NULL: monotonic). Tokens, debts and ages stay the
 * same. A queue calls this with its own clock when it takes ownership of a
 * limiter. The clock must outlive the limiter.
 * Threads: any.  Blocks: never.  Since: 0.1.  [L-23]
 */
WQ_API void wq_limiter_set_clock(wq_limiter *limiter, wq_clock *clock);

/* Free a limiter, children included. NULL is allowed; so is a failed limiter,
 * any number of times. Does nothing for a limiter that belongs to a queue or to
 * another limiter: its owner destroys it.
 * Threads: one, once.  Since: 0.1.  [L-24 L-31]
 */
WQ_API void wq_limiter_destroy(wq_limiter *limiter);

/* ----------------------------------------------------- your own limiter -- */

/* The functions of a limiter of your own. Their first argument is the `self` of
 * wq_limiter_create(). The library calls them without a lock, from several
 * threads at once: they must protect their own state. They may call the queue,
 * but must not destroy it.
 */
typedef struct wq_limiter_ops {
    size_t size; /* sizeof(wq_limiter_ops) */
    /* See wq_limiter_when(); a negative delay counts as 0. Required. */
    int64_t (*when)(void *self, wq_key key);
    /* See wq_limiter_forget(). NULL: there is nothing to forget. */
    void (*forget)(void *self, wq_key key);
    /* See wq_limiter_num_requeues(). NULL: always 0. */
    unsigned (*num_requeues)(void *self, wq_key key);
    /* The limiter is being destroyed. NULL: there is nothing to free. */
    void (*destroy)(void *self);
    /* See wq_limiter_undo(). NULL: nothing is undone. */
    void (*undo)(void *self, wq_key key);
    /* See wq_limiter_set_clock(). NULL: needs no clock, or has its own. */
    void (*set_clock)(void *self, wq_clock *clock);
} wq_limiter_ops;

/* Create a limiter from your functions. `ops` is copied. The limiter takes
 * ownership of `self`: wq_limiter_destroy() passes it to ops->destroy, and so
 * does this function if it fails, except that it cannot if `ops` is NULL or has
 * a wrong `size`.
 *
 * WQ_EINVAL: `ops` is NULL, lacks `when`, or has a wrong `size` (rules: see
 * wq_create()).
 * Since: 0.1.  [L-26 L-31]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_create(const wq_limiter_ops *ops,
                                                  void                 *self);

/* -------------------------------------------------------- limiters as data --
 *
 * A limiter counts in the memory of its process. A backend whose keys are in a
 * store that several processes share must count there. It reads what its
 * limiter does with wq_limiter_describe(), and gives a key as its delay the
 * longest of these:
 *
 *   - wq_limiter_spec_delay() of the number of earlier failures of the key,
 *     since the last forget; the failure then counts;
 *   - with WQ_PART_BUCKET the time until a token of one bucket for all keys is
 *     there; the token is then taken;
 *   - with WQ_PART_ITEM_BUCKET the same of the key's own bucket, which a forget
 *     fills.
 *
 * After that, with WQ_PART_MAX_WAIT, a longer delay becomes max_wait_ns. The
 * buckets work as those of wq_limiter_bucket() and wq_limiter_item_bucket();
 * max_keys and ttl_ns bound what is counted for the exponential part. A backend
 * that cannot do what a field says should refuse the limiter.
 */

/* The parts of a wq_limiter_spec. */
enum wq_limiter_part {
    WQ_PART_EXPONENTIAL = 1, /* as wq_limiter_exponential_with() */
    WQ_PART_FAST_SLOW = 2,   /* as wq_limiter_fast_slow() */
    WQ_PART_BUCKET = 4,      /* as wq_limiter_bucket() */
    WQ_PART_ITEM_BUCKET = 8, /* as wq_limiter_item_bucket() */
    WQ_PART_MAX_WAIT = 16,   /* as wq_limiter_with_max_wait(), around all */
};

/* What a limiter does: the longest delay of its parts. A field counts only if
 * its part is there. A zero is a zero, and not a default as in
 * wq_exponential_options; only a factor of 0 means 2. [L-33 L-35]
 */
typedef struct wq_limiter_spec {
    size_t   size;  /* sizeof(wq_limiter_spec) */
    unsigned parts; /* enum wq_limiter_part; 0: there is no delay */

    /* WQ_PART_EXPONENTIAL; see wq_exponential_options. */
    wq_jitter jitter;
    int64_t   base_ns;
    int64_t   max_ns;
    double    factor; /* 0: 2 */
    uint64_t  seed;   /* 0: random */
    size_t    max_keys;
    int64_t   ttl_ns;

    /* WQ_PART_FAST_SLOW; see wq_limiter_fast_slow(). */
    int64_t  fast_ns;
    int64_t  slow_ns;
    unsigned max_fast;

    /* WQ_PART_BUCKET; see wq_limiter_bucket(). */
    unsigned burst;
    double   rate; /* per second; WQ_RATE_INF */

    /* WQ_PART_ITEM_BUCKET; see wq_limiter_item_bucket(). */
    double   item_rate;
    unsigned item_burst;

    /* WQ_PART_MAX_WAIT; see wq_limiter_with_max_wait(). */
    int64_t max_wait_ns;
} wq_limiter_spec;

/* Describe a limiter as data, exactly; also one that belongs to a queue or to
 * another limiter. Counts, tokens, the clock and the allocator are not part of
 * it. The fields of parts that the limiter lacks become 0.
 *
 *     wq_limiter_spec spec = {.size = sizeof spec};
 *     wq_err          err = wq_limiter_describe(limiter, &spec);
 *
 * Returns WQ_OK;
 *   WQ_EINVAL   NULL, or a wrong `size` (rules: see wq_create());
 *   WQ_ENOTSUP  no spec describes the limiter exactly: it has functions of
 *               wq_limiter_create(); or two parts of one kind; or parts of
 *               wq_limiter_max_of() with different maximum waits (only one of
 *               them has a maximum, for example); or it needs a field beyond
 *               `size`;
 *   the error of a failed limiter.
 * On error *out is as it was, and wq_last_error() says why.
 * Threads: any.  Blocks: never.  Cost: O(1).  Since: 0.1.  [L-33 L-34]
 */
WQ_API wq_err wq_limiter_describe(const wq_limiter *limiter,
                                  wq_limiter_spec  *out);

/* Create a limiter that does what `spec` says, with malloc and free. It gives
 * the delays of the limiter that the spec describes, and has the same
 * description.
 *
 * WQ_EINVAL: `spec` is NULL, has a wrong `size` (rules: see wq_create()) or
 * unknown parts; a field of a part is wrong, as named at the constructor of
 * that part.
 * Since: 0.1.  [L-31 L-35]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_from_spec(
    const wq_limiter_spec *spec);

/* The delay of a key that has failed `failures` times before: that of the parts
 * WQ_PART_EXPONENTIAL and WQ_PART_FAST_SLOW, as the limiter itself computes it;
 * the longer one of the two; 0 if the spec has neither. It leaves the buckets
 * and the maximum wait to the caller, who applies them as described above.
 *
 * `random` decides the jitter: pass 64 random bits. Without jitter it is not
 * used.
 *
 * Returns WQ_FOREVER for a spec that wq_limiter_from_spec() refuses;
 * wq_last_error() says why.
 * Threads: any.  Blocks: never.  Cost: O(1).  Since: 0.1.  [L-36]
 */
WQ_API int64_t wq_limiter_spec_delay(const wq_limiter_spec *spec,
                                     unsigned failures, uint64_t random);

/* ------------------------------------------------------------ token bucket --
 *
 * A bucket has at most `burst` tokens and gains `limit` tokens a second. It
 * starts full. An event takes tokens. If there are too few, the caller waits,
 * or reserves future tokens: then the count is below zero (the bucket is in
 * debt), and a later caller waits longer. The bucket behaves as the limiter of
 * Go's golang.org/x/time/rate, to the nanosecond; wq-semantics(7) lists the
 * differences.
 *
 *     wq_bucket *b = wq_bucket_create(10, 3, NULL);
 *     if (wq_bucket_allow(b))               // now or not at all
 *         log_line();
 *     if (!wq_bucket_wait(b, WQ_FOREVER))   // as soon as possible
 *         call_server();
 *
 * Functions that end in _at take the time from the caller instead of the
 * bucket's clock. Time in a bucket does not go back: a time before the last
 * change of the bucket counts as the time of that change. [T-06 T-17]
 */
typedef struct wq_bucket wq_bucket; /* opaque */

/* The rate of one event every `interval_ns`; 0 or less: WQ_RATE_INF.
 * Since: 0.1.  [T-03]
 */
WQ_API double wq_rate_every(int64_t interval_ns);

/* Create a full bucket on `clock` (NULL: monotonic), which must outlive it.
 *
 * At a limit of 0 or less the bucket gains no tokens. At WQ_RATE_INF every
 * event passes, and `burst` is ignored. The caller owns the bucket and passes
 * it to wq_bucket_destroy().
 *
 * Returns the bucket; on error NULL, with errno and wq_last_error() set:
 *   EINVAL  `limit` is not a number, or is infinite (use WQ_RATE_INF); `burst`
 *           is negative;
 *   ENOMEM  out of memory.
 * Since: 0.1.  [T-01 T-02 T-11 T-12 T-60]
 */
WQ_API WQ_NODISCARD wq_bucket *wq_bucket_create(double limit, int64_t burst,
                                                wq_clock *clock);

/* Free a bucket. NULL is allowed. No thread may be waiting in it, and its
 * reservations must not be used any more.
 * Threads: one, once.  Since: 0.1.
 */
WQ_API void wq_bucket_destroy(wq_bucket *bucket);

/* Take one token (n tokens) if they are there now. Returns true if they were
 * taken: the event may happen now. Else returns false, and nothing has changed;
 * always for n < 0 and for a NULL bucket. n = 0 succeeds unless the bucket is
 * in debt.
 * Threads: any.  Blocks: never.  Cost: O(1).  Since: 0.1.
 * [T-07 T-08 T-09 T-31 T-32]
 */
WQ_API bool wq_bucket_allow(wq_bucket *bucket);
WQ_API bool wq_bucket_allow_n(wq_bucket *bucket, int64_t n);
WQ_API bool wq_bucket_allow_n_at(wq_bucket *bucket, int64_t now_ns, int64_t n);

/* A reservation of tokens: the event may happen at `time_to_act_ns`. Only one
 * thread may use it at a time. A zeroed reservation is a refused one. A copy
 * stands for the same tokens: cancel only one of them.
 */
typedef struct wq_reservation {
    wq_bucket *bucket;         /* whose tokens; NULL: refused */
    int64_t    n;              /* how many; 0 once cancelled */
    int64_t    time_to_act_ns; /* on the bucket's clock; WQ_FOREVER: never */
    double     limit;          /* the bucket's limit when it was made */
} wq_reservation;

/* Reserve one token (n tokens), however long it takes until they are there. The
 * caller then waits for wq_reservation_delay(), or cancels the reservation.
 *
 * Returns WQ_OK;
 *   WQ_EINVAL  NULL bucket or out; n < 0; n is more than the burst. Neither the
 *              bucket nor *out has changed.
 * At a limit of 0 a reservation that needs future tokens succeeds, with a delay
 * of WQ_FOREVER.
 * Threads: any.  Blocks: never.  Cost: O(1).  Since: 0.1.
 * [T-05 T-07 T-08 T-09 T-11 T-18 T-37 T-38]
 */
WQ_API WQ_NODISCARD wq_err wq_bucket_reserve(wq_bucket      *bucket,
                                             wq_reservation *out);
WQ_API WQ_NODISCARD wq_err wq_bucket_reserve_n(wq_bucket *bucket, int64_t n,
                                               wq_reservation *out);
WQ_API WQ_NODISCARD wq_err wq_bucket_reserve_n_at(wq_bucket *bucket,
                                                  int64_t now_ns, int64_t n,
                                                  wq_reservation *out);

/* wq_bucket_reserve_n() with a delay of at most `max_wait_ns`.
 *
 * Returns as wq_bucket_reserve_n(), and
 *   WQ_ETIMEDOUT  the delay would be longer; nothing has changed;
 *   WQ_EINVAL     also for a negative max_wait_ns.
 * Threads: any.  Blocks: never.  Since: 0.1.  [T-07 T-45]
 */
WQ_API WQ_NODISCARD wq_err wq_bucket_reserve_n_within(wq_bucket *bucket,
                                                      int64_t    n,
                                                      int64_t    max_wait_ns,
                                                      wq_reservation *out);
WQ_API WQ_NODISCARD wq_err wq_bucket_reserve_n_within_at(wq_bucket *bucket,
                                                         int64_t    now_ns,
                                                         int64_t    n,
                                                         int64_t    max_wait_ns,
                                                         wq_reservation *out);

/* Was the reservation granted? False for NULL and for a zeroed one.
 * Since: 0.1.  [T-10]
 */
WQ_API bool wq_reservation_ok(const wq_reservation *r);

/* How long until the event may happen: 0 if it may happen now. WQ_FOREVER for a
 * reservation that was refused.
 * Threads: any.  Blocks: never.  Since: 0.1.  [T-10 T-11]
 */
WQ_API int64_t wq_reservation_delay(const wq_reservation *r);
WQ_API int64_t wq_reservation_delay_from(const wq_reservation *r,
                                         int64_t               now_ns);

/* Cancel a reservation, because the event will not happen: return the tokens
 * that others can still use. These are all tokens if this is the last
 * reservation; tokens that later reservations already count on are not
 * returned. Does nothing for a reservation that was refused, that was cancelled
 * before, whose time has passed, or that was made at WQ_RATE_INF; nor while the
 * limit is WQ_RATE_INF.
 * Threads: any.  Blocks: never.  Since: 0.1.
 * [T-13 T-14 T-19 T-39 T-40 T-41 T-42 T-62]
 */
WQ_API void wq_reservation_cancel(wq_reservation *r);
WQ_API void wq_reservation_cancel_at(wq_reservation *r, int64_t now_ns);

/* Block until one token (n tokens) is there, and take it.
 *
 * Returns WQ_OK; on any error no token is taken:
 *   WQ_EINVAL        NULL bucket, n < 0, n is more than the burst, negative
 *                    timeout;
 *   WQ_EINTERRUPTED  see wq_bucket_interrupt(); if the thread slept, its tokens
 *                    are returned as by wq_reservation_cancel();
 *   WQ_ETIMEDOUT     it would take longer than timeout_ns (WQ_FOREVER: no
 *                    limit); returned at once, without sleeping.
 * Errors are checked in this order. A change of limit or burst does not change
 * how long threads sleep that sleep already.
 * Threads: any.  Blocks: at most timeout_ns.  Since: 0.1.
 * [T-15 T-16 T-46 T-47]
 */
WQ_API WQ_NODISCARD wq_err wq_bucket_wait(wq_bucket *bucket,
                                          int64_t    timeout_ns);
WQ_API WQ_NODISCARD wq_err wq_bucket_wait_n(wq_bucket *bucket, int64_t n,
                                            int64_t timeout_ns);

/* Interrupt all waits that are sleeping when this function is called: they
 * return WQ_EINTERRUPTED. If none sleeps, the bucket remembers one interrupt,
 * and the next wait returns WQ_EINTERRUPTED: so a thread that is about to wait
 * does not miss it.
 * Threads: any.  Blocks: never.  Since: 0.1.  [T-16 T-61]
 */
WQ_API void wq_bucket_interrupt(wq_bucket *bucket);

/* Change the limit or the burst. Tokens gained until now are counted with the
 * old values. A larger burst adds no tokens; a smaller one removes those above
 * it. Reservations keep their times.
 *
 * Returns WQ_OK;
 *   WQ_EINVAL  NULL bucket; a limit or burst that wq_bucket_create() refuses.
 * Threads: any.  Blocks: never.  Since: 0.1.  [T-15 T-44 T-60]
 */
WQ_API wq_err wq_bucket_set_limit(wq_bucket *bucket, double limit);
WQ_API wq_err wq_bucket_set_limit_at(wq_bucket *bucket, int64_t now_ns,
                                     double limit);
WQ_API wq_err wq_bucket_set_burst(wq_bucket *bucket, int64_t burst);
WQ_API wq_err wq_bucket_set_burst_at(wq_bucket *bucket, int64_t now_ns,
                                     int64_t burst);

/* The limit and the burst; 0 for a NULL bucket.  Since: 0.1.  [T-15 T-30] */
WQ_API double  wq_bucket_limit(wq_bucket *bucket);
WQ_API int64_t wq_bucket_burst(wq_bucket *bucket);

/* How many tokens there are; below zero if the bucket is in debt: more are
 * reserved than there are. Other threads may change the number at any time: do
 * not base decisions on it. 0 for a NULL bucket.
 * Threads: any.  Blocks: never.  Since: 0.1.  [T-01 T-04 T-06]
 */
WQ_API double wq_bucket_tokens(wq_bucket *bucket);
WQ_API double wq_bucket_tokens_at(wq_bucket *bucket, int64_t now_ns);

#ifdef __cplusplus
}
#endif

#endif
