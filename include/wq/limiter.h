/* SPDX-License-Identifier: MIT */
/* limiter.h: what is the delay of a key before its retry?
 *
 * There are two types here. A wq_limiter gives wq_add_rate_limited() the delay
 * of a key; it counts the failures of every key, or limits the rate of all keys
 * together, or both:
 *
 *     wq_limiter *parts[] = {
 *         wq_limiter_exponential(WQ_MS(5), WQ_SECONDS(60)), // each key
 *         wq_limiter_bucket(10, 100), // all keys together: 10 a second
 *     };
 *     if (wq_create(WQ_CONFIG(.limiter = wq_limiter_max_of(2, parts)), &q))
 *         fprintf(stderr, "%s\n", wq_last_error());
 *
 * Only wq_create() needs a check: it returns the error of a limiter that could
 * not be created, and takes the limiter over even if it fails. The queue owns
 * its limiter, and one limiter serves one queue: a forget in one of two queues
 * would reset the other.
 *
 * A wq_bucket is a token bucket on its own, for programs that limit the rate of
 * something other than a queue: calls to a server, lines of a log, bytes.
 *
 * Times are nanoseconds, rates are events per second. Threads: every function
 * may be called from any thread at any time, except wq_limiter_destroy() and
 * wq_bucket_destroy(), which must be the last call.
 *
 * Numbers in brackets name the behaviours in docs/semantics.md.
 */
#ifndef WQ_LIMITER_H
#define WQ_LIMITER_H

#include <float.h>

#include <wq/clock.h>
#include <wq/wq.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No limit: a rate at which everything passes and nothing is counted. [T-01] */
#define WQ_RATE_INF DBL_MAX

/* ---------------------------------------------------------------- limiters --
 *
 * What all constructors share. They never return NULL: NULL in wq_config means
 * the default limiter, and a mistake must not become that. A constructor that
 * fails returns a failed limiter, for which wq_limiter_error() is
 *   WQ_EINVAL  an argument is wrong, as named at each;
 *   WQ_ENOMEM  no memory;
 *   WQ_EIO     the system gave no random numbers (the hashes are keyed);
 * and wq_last_error() says why. Nothing can be made of a failed limiter: a
 * queue, a layer or another limiter that is given one fails with its error. The
 * verbs below treat it as NULL.
 *
 * The caller owns what they return and gives it to a queue, a layer, another
 * limiter, or wq_limiter_destroy(). What takes a limiter over does so in every
 * case: when it fails, the limiter is destroyed, unless it has another owner.
 * So constructors can be nested in one expression without a check between, and
 * nothing leaks. [L-24 L-31]
 *
 * A limiter that counts per key remembers a key from its first when() until its
 * forget(): a program that does not forget the keys that succeed leaks memory.
 * `max_keys` and `ttl_ns` below bound it.
 *
 * If there is no memory for a new key, nothing is recorded, and the key gets
 * the longest delay: `max_ns`, `slow_ns`, or the time of one token. The next
 * when() tries again. [L-25]
 */

/* The delay of a key is base_ns, then twice as long every time:
 * base * 2^failures, at most max_ns.
 *
 * A base above max gives max from the first time. A base of 0 gives 0 until the
 * factor overflows a double: max from the 1025th time on.
 * WQ_EINVAL: base_ns or max_ns is negative.
 * Cost: O(1) a verb; 18 to 24 bytes for a key besides its own.  Since: 0.1.
 * [L-01 L-02 L-03 L-04 L-05 L-27]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_exponential(int64_t base_ns,
                                                       int64_t max_ns);

/* By how much a delay is shortened at random, so that keys which failed
 * together do not come back together. [L-20]
 */
typedef enum wq_jitter {
    WQ_JITTER_NONE = 0, /* d */
    WQ_JITTER_FULL,     /* anything from 0 to d: spreads best */
    WQ_JITTER_EQUAL     /* anything from d/2 to d: never much too early */
} wq_jitter;

/* Options of wq_limiter_exponential_with(). Zero: the stated default. */
typedef struct wq_exponential_options {
    size_t    size;     /* sizeof(wq_exponential_options) */
    int64_t   base_ns;  /* 0: 5 ms */
    int64_t   max_ns;   /* 0: 1000 s */
    wq_jitter jitter;   /* 0: none */
    uint64_t  seed;     /* of the jitter, for tests that repeat; 0: random */
    size_t    max_keys; /* how many keys are remembered; 0: no limit. For one
                           more, the key whose last when() was longest ago is
                           forgotten */
    int64_t   ttl_ns;   /* a key without a when() for so long is forgotten;
                           0: never */
    const wq_allocator *allocator; /* NULL: malloc and free. Copied; what it
                                      points to must outlive the limiter */
} wq_exponential_options;

#ifndef __cplusplus
#define WQ_EXPONENTIAL(...)                                                    \
    (&(wq_exponential_options){.size = sizeof(wq_exponential_options),         \
                               __VA_ARGS__})
#endif

/* wq_limiter_exponential() with options; NULL: all defaults. In C:
 * wq_limiter_exponential_with(WQ_EXPONENTIAL(.jitter = WQ_JITTER_FULL)).
 *
 * The memory of keys beyond max_keys and ttl_ns is freed during a when() of any
 * key; an expired key counts as forgotten even before that. ttl_ns is measured
 * on the limiter's clock (wq_limiter_set_clock()).
 * WQ_EINVAL: as above; also an unknown jitter, a negative ttl_ns, an allocator
 * that lacks a function, a wrong `size` (rules: see wq_create()).
 * Cost: O(1) a verb; 8 bytes a key more with max_keys, 24 with ttl_ns.
 * Since: 0.1.  [L-20 L-21 L-22 L-29]
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

/* All keys together: a token bucket, one token a when(). Counts nothing per
 * key: forget does nothing, num_requeues is 0.
 *
 * A rate of 0 or less lets `burst` keys pass, and no more ever (WQ_FOREVER). A
 * burst of 0 lets none pass, except at WQ_RATE_INF.
 * WQ_EINVAL: the rate is not a number, or infinite (say WQ_RATE_INF).
 * Cost: O(1).  Since: 0.1.  [L-10 L-23 T-11 T-12]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_bucket(double   per_second,
                                                  unsigned burst);

/* A token bucket for each key: it limits the rate of a key, whether the key
 * fails or not. Forget fills its bucket, num_requeues is 0. The memory of a
 * bucket that is full again is freed during a later when().
 *
 * WQ_EINVAL: as wq_limiter_bucket().
 * Cost: O(1); 42 to 48 bytes for a key besides its own.  Since: 0.1.
 * [L-11 L-28]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_item_bucket(double   per_second,
                                                       unsigned burst);

/* The longest delay of several limiters. All of them are queried every time,
 * and count. num_requeues is the highest of theirs; forget, undo and set_clock
 * go to all. With no limiters, delay and num_requeues are 0.
 *
 * Takes the children over, whether it succeeds or not. The array is copied.
 *
 * Fails with the error of the first child that is a failed limiter. WQ_EINVAL:
 * n is not 0 and the array is NULL; a child is NULL; a child has an owner
 * already (it stays with that owner), or is named twice.
 * Cost: that of the children.  Since: 0.1.  [L-07 L-08 L-24 L-31]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_max_of(size_t             n,
                                                  wq_limiter *const *children);

/* The delay of `inner`, but at most max_ns. All other functions go to `inner`.
 *
 * Takes `inner` over, and fails, as wq_limiter_max_of() does. WQ_EINVAL also:
 * max_ns is negative.
 * Since: 0.1.  [L-09 L-24 L-31]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_with_max_wait(wq_limiter *inner,
                                                         int64_t     max_ns);

/* The limiter of a queue whose config names none: the longer delay of an
 * exponential limiter, 5 ms to 1000 s, and a bucket of 10 a second, burst 100.
 *
 * The bucket is for all keys of the queue together: after a burst of 100, a
 * thousand failing keys need 100 s for one round.
 * Since: 0.1.  [L-12]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_default(void);

/* An exponential limiter, 1 ms to 1000 s, without a bucket.  Since: 0.1.
 * [L-12]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_default_item(void);

/* Could the limiter be made? WQ_OK: yes; else the error of its constructor;
 * WQ_EINVAL for NULL.
 * Threads: any.  Blocks: never.  Since: 0.1.  [L-31]
 */
WQ_API wq_err wq_limiter_error(const wq_limiter *limiter);

/* ---------------------------------------------------------------- verbs -- */

/* The delay of `key` now. Each call counts as one failure of the key, or takes
 * a token. Never negative.
 *
 * WQ_FOREVER, and nothing recorded, for a NULL or failed limiter and for a key
 * no queue would take (NULL, empty, longer than WQ_KEY_MAX).
 * Threads: any.  Blocks: never.  Since: 0.1.  [R-02 R-03 L-25 L-26 L-31]
 */
WQ_API int64_t wq_limiter_when(wq_limiter *limiter, wq_key key);

/* The key has succeeded, or was given up: forget its failures. The queue is not
 * changed: a WAITING key stays WAITING.
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

/* Use `clock` from now on (NULL: monotonic). What was counted and reserved on
 * the old clock keeps its age. A queue calls this with its own clock when it
 * takes a limiter over. The clock must outlive the limiter.
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

/* What a limiter can do. All functions get the `self` of wq_limiter_create().
 * They are called without any lock of ours, by several threads at once: guard
 * your own state. They may call back into the queue, though not destroy it.
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
    /* See wq_limiter_undo(). NULL: what was counted stays. */
    void (*undo)(void *self, wq_key key);
    /* See wq_limiter_set_clock(). NULL: needs no time, or has its own. */
    void (*set_clock)(void *self, wq_clock *clock);
} wq_limiter_ops;

/* A limiter made of your functions. `ops` is copied. `self` is taken over:
 * `destroy` gets it when the limiter is destroyed, or during this call if it
 * fails (unless `ops` is NULL or has a wrong `size`, and cannot be read).
 *
 * WQ_EINVAL: `ops` is NULL, lacks `when`, or has a wrong `size` (rules: see
 * wq_create()).
 * Since: 0.1.  [L-26 L-31]
 */
WQ_API WQ_NODISCARD wq_limiter *wq_limiter_create(const wq_limiter_ops *ops,
                                                  void                 *self);

/* ------------------------------------------------------------ token bucket --
 *
 * A bucket has at most `burst` tokens and gains `limit` of them a second. It
 * starts full. An event takes tokens; a caller that finds too few waits, or
 * reserves some that are still to come: the count is below zero then, and a
 * later caller waits longer. The same as the limiter of Go's
 * golang.org/x/time/rate, to the nanosecond, except for what docs/semantics.md
 * lists.
 *
 *     wq_bucket *b = wq_bucket_create(10, 3, NULL);
 *     if (wq_bucket_allow(b))               // now or not at all
 *         log_line();
 *     if (!wq_bucket_wait(b, WQ_FOREVER))   // as soon as possible
 *         call_server();
 *
 * Functions that end in _at take the time from the caller instead of the
 * bucket's clock. Time does not go back in a bucket: a time before that of its
 * last change counts as that one. [T-06 T-17]
 */
typedef struct wq_bucket wq_bucket; /* opaque */

/* The rate of one event every `interval_ns`; 0 or less: WQ_RATE_INF.
 * Since: 0.1.  [T-03]
 */
WQ_API double wq_rate_every(int64_t interval_ns);

/* Create a full bucket on `clock` (NULL: monotonic), which must outlive it.
 *
 * A limit of 0 or less: the bucket gains no tokens. A limit of WQ_RATE_INF:
 * everything passes, `burst` is ignored. NULL, errno and a
 * sentence in wq_last_error():
 *   EINVAL  `limit` is not a number, or infinite (say WQ_RATE_INF); `burst` is
 *           negative;
 *   ENOMEM  no memory.
 * The caller owns it and gives it to wq_bucket_destroy().
 * Since: 0.1.  [T-01 T-02 T-11 T-12 T-60]
 */
WQ_API WQ_NODISCARD wq_bucket *wq_bucket_create(double limit, int64_t burst,
                                                wq_clock *clock);

/* Free a bucket. NULL is allowed. No thread may wait in it, and its
 * reservations must not be used any more.
 * Threads: one, once.  Since: 0.1.
 */
WQ_API void wq_bucket_destroy(wq_bucket *bucket);

/* May one event (n events) happen now? True: the tokens are taken. False:
 * nothing has changed; always so for n < 0 and for a NULL bucket. n = 0
 * succeeds unless the bucket is in debt.
 * Threads: any.  Blocks: never.  Cost: O(1).  Since: 0.1.
 * [T-07 T-08 T-09 T-31 T-32]
 */
WQ_API bool wq_bucket_allow(wq_bucket *bucket);
WQ_API bool wq_bucket_allow_n(wq_bucket *bucket, int64_t n);
WQ_API bool wq_bucket_allow_n_at(wq_bucket *bucket, int64_t now_ns, int64_t n);

/* A promise of tokens: the event may happen at `time_to_act_ns`. Plain data,
 * used by one thread at a time; zeroed, it is a refused one. A copy names the
 * same tokens: cancel only one of them.
 */
typedef struct wq_reservation {
    wq_bucket *bucket;         /* whose tokens; NULL: refused */
    int64_t    n;              /* how many; 0 once cancelled */
    int64_t    time_to_act_ns; /* on the bucket's clock; WQ_FOREVER: never */
    double     limit;          /* of the bucket when it was made */
} wq_reservation;

/* Reserve one token (n tokens), however long it takes until they are there. The
 * caller waits for wq_reservation_delay(), or cancels.
 *
 * Returns WQ_OK;
 *   WQ_EINVAL  NULL bucket or out; n < 0; n is more than the burst. Neither the
 *              bucket nor *out has changed.
 * At a limit of 0 a reservation that needs tokens to come succeeds, with a
 * delay of WQ_FOREVER.
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
 * Returns as above, and
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

/* The event will not happen: return the tokens that others can still use. These
 * are all tokens if this is the last reservation; tokens that later
 * reservations already count on are not returned. Does nothing for a
 * reservation that was refused, that was cancelled before, whose time has
 * passed, or that was made at WQ_RATE_INF, and while WQ_RATE_INF is the limit.
 * Threads: any.  Blocks: never.  Since: 0.1.
 * [T-13 T-14 T-19 T-39 T-40 T-41 T-42 T-62]
 */
WQ_API void wq_reservation_cancel(wq_reservation *r);
WQ_API void wq_reservation_cancel_at(wq_reservation *r, int64_t now_ns);

/* Sleep until one token (n tokens) is there, and take it.
 *
 * Returns WQ_OK; on any error no token is taken:
 *   WQ_EINVAL        NULL bucket, n < 0, n is more than the burst, negative
 *                    timeout;
 *   WQ_EINTERRUPTED  see wq_bucket_interrupt(); if it came while sleeping, as
 *                    after wq_reservation_cancel();
 *   WQ_ETIMEDOUT     it would take longer than timeout_ns (WQ_FOREVER: no
 *                    limit); returned at once, without sleeping.
 * They are checked in this order. A change of limit or burst does not change
 * how long threads sleep that sleep already.
 * Threads: any.  Blocks: at most timeout_ns.  Since: 0.1.
 * [T-15 T-16 T-46 T-47]
 */
WQ_API WQ_NODISCARD wq_err wq_bucket_wait(wq_bucket *bucket,
                                          int64_t    timeout_ns);
WQ_API WQ_NODISCARD wq_err wq_bucket_wait_n(wq_bucket *bucket, int64_t n,
                                            int64_t timeout_ns);

/* Every wait that sleeps now returns WQ_EINTERRUPTED. If none sleeps, one
 * interrupt is remembered, and the next wait returns it, so that a thread that
 * is about to wait does not miss it.
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
 * reserved than there are. Other threads change the number at any time: display
 * it, and base no decision on it. 0 for a NULL bucket.
 * Threads: any.  Blocks: never.  Since: 0.1.  [T-01 T-04 T-06]
 */
WQ_API double wq_bucket_tokens(wq_bucket *bucket);
WQ_API double wq_bucket_tokens_at(wq_bucket *bucket, int64_t now_ns);

#ifdef __cplusplus
}
#endif

#endif
