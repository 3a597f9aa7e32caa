/* SPDX-License-Identifier: MIT */
/* shared.h: what is a handle of a shared queue made of?
 *
 * The shell: it makes an engine (engine.h) safe to call from many threads. It is
 * the same for every store.
 *
 *   combine.c  threads that post operations; which of them leads
 *   batch.c    batches of operations for the engine; what they report back
 *   settle.c   threads that wait until their results are durable
 *   sleep.c    threads that sleep in the handle; which of them listens to the
 *              store
 *   adds.c     adds, and other operations on one key
 *   gets.c     get and next
 *   finish.c   done and finish
 *   lease.c    renewing holds, and losing them
 *   stop.c     pause, interrupt, shutdown, drain, destroy
 *   view.c     what programs and event loops can see
 *   create.c   creating a handle
 *   holds.c    the keys that the handle holds
 *
 * One lock guards the whole struct. It is never held while the engine, a
 * callback or a sink is called, with one exception: the engine may call take()
 * of a get, which takes the lock (so an engine may hold its own lock there).
 *
 * What the handle knows of the store (`seen`) is what the last batch reported.
 * Every batch that a thread of this handle runs updates it under the lock, and
 * wakes the threads that have something to do then. A thread that found nothing
 * decides to sleep under the same lock, from the same `seen`: so no wake-up is
 * lost. One of the threads that sleep, the listener, waits in the engine for
 * changes by other handles.
 */
#ifndef WQ_SHARED_SHARED_H
#define WQ_SHARED_SHARED_H

#include <stdatomic.h>

#include <wq/backend.h>
#include <wq/metrics.h>

#include "clock/sleepers.h"
#include "error/error.h"
#include "metrics/sinks.h"
#include "port/beacon.h"
#include "port/lock.h"
#include "port/thread.h"
#include "shared/engine.h"
#include "shared/holds.h"
#include "shared/yields.h"

/* A thread that waits for its operations, or until they are durable. On its
 * stack. */
struct wq__post;
struct wq__unsettled;

/* A batch that is under way. */
struct wq__flight {
    struct wq__post *posts;   /* whose operations it has */
    size_t           len;     /* how many */
    struct wq__op   *ops;     /* all of them, in order */
    uint64_t         number;  /* of the batch */
    int64_t          sent_ns; /* when it was, or will be, sent: not later */
    bool             begun;   /* by the engine */
    bool             waited;  /* another one flew when it took off */
    wq_err           err;     /* it cannot be carried out */
};

/* See lease.c. */
struct wq__lease_thread {
    struct wq__thread thread;
    bool              exists;
    struct wq__parker parker; /* where it sleeps */
    bool              sleeps;
};

struct wq__shared {
    wq_queue           base;   /* first: a queue is the beginning of its
                                  backend */
    struct wq__engine *engine; /* owned */
    wq_clock          *clock;  /* the engine's */
    wq_clock    *steady_clock; /* of valid_until_ns, timeouts; may be `clock` */
    wq_allocator mem;          /* malloc and free, but in tests */
    char        *name;         /* of the metrics; owned; NULL: none */
    void (*on_drop)(void *ctx, wq_key key, unsigned retries, wq_err why);
    void *drop_ctx;
    void (*on_lost)(void *ctx, wq_key key, uint64_t fence);
    void    *lost_ctx;
    unsigned forks; /* how many forks there were when it was created */

    atomic_bool closed; /* adds are refused. Set under the lock, once */

    struct wq__lock lock; /* guards all below */

    /* ---- batches (combine.c, batch.c) ---- */
    bool              leading;              /* a thread runs batches */
    struct wq__post  *posts, **last_post;   /* that the next batch takes */
    size_t            posts_len;            /* how many */
    struct wq__flight flights[WQ__FLIGHTS]; /* the oldest first; the leader's */
    size_t            flying;               /* how many; the leader's */
    bool              begins;     /* the engine has begun the last batch */
    size_t            threads;    /* that use the handle, it seems */
    bool              crowd;      /* so many that two batches fly */
    uint64_t          posted;     /* so far */
    size_t            last_posts; /* posts of the last batch */
    struct wq__yields yields;     /* when may a leader wait for more? */
    unsigned          in_vain;    /* so many leaders do not wait for posts */
    bool              gathers;    /* a leader waits for more posts; false: only
                                  to measure what that is worth */
    bool              in_doubt;   /* an answer was lost: reconcile first */
    uint64_t          batches, operations; /* so far */
    uint64_t          answered;    /* of these batches, the last that has run */
    char said[WQ__SENTENCE_BYTES]; /* about the last batch that failed */

    /* ---- durability (settle.c) ---- */
    bool                  settling; /* a thread is in settle() */
    struct wq__unsettled *unsettled, **last_unsettled; /* those that wait */
    size_t                unsettled_len;               /* how many */
    uint64_t to_settle; /* wq__pulse.settles of the last batch that has it */
    uint64_t owed;      /* the last batch with an unsettled operation */
    uint64_t settled;   /* settle() has succeeded for batches up to this one */
    uint64_t unsure_from, unsure_to; /* it has failed for these; 0: for none */
    char     unsure_said[WQ__SENTENCE_BYTES]; /* what it said then */
    int64_t  batch_ns, settle_ns;             /* how long the last ones took */

    /* ---- what the store was like after the last batch ---- */
    struct wq__pulse seen;
    struct wq__did   did; /* the sums of what all batches did */
    uint64_t         retries, drops, lost; /* see wq_stats */

    /* ---- metrics (report.h) ---- */
    bool             times;     /* durations are measured */
    struct wq__sink *sinks;     /* owned; set by create, then never changed */
    size_t           sinks_len; /* 0 until all are open */
    bool             reports;   /* a sink has a callback for changes */
    wq_change        reported;  /* the totals that were reported last */

    struct wq__holds holds;
    int64_t          valid_until_ns; /* the holds are certain until then */
    uint64_t         session; /* how many sessions have begun after the first */
    bool             to_report; /* losses that on_lost was not called for */

    /* ---- threads (sleep.c) ---- */
    size_t              blocked; /* threads in a verb that may sleep */
    struct wq__sleepers getters, drainers, idlers, destroyer;
    struct wq__sleeper
        *listener; /* the one that waits in the engine; or NULL */
    struct wq__sleepers *listener_list; /* where it is */
    int64_t              listener_until_ns;
    size_t   woken; /* getters that were woken to look, and did not run yet */
    size_t   changing;    /* getters that were woken to listen, likewise */
    uint64_t interrupts;  /* how often all getters were interrupted */
    bool     interrupted; /* the next get that would sleep returns */
    bool     paused, destroying;
    uint64_t shutdowns; /* each ends all drains */

    /* ---- the threads of the lease (lease.c) ---- */
    struct wq__lease_thread renewer; /* wq-lease */
    struct wq__lease_thread watcher; /* wq-expiry */
    bool                    lease_ends;

    /* ---- event loops (view.c) ---- */
    bool              watched; /* there is a beacon */
    struct wq__beacon beacon;
    struct wq__watch  watch;
};

static inline struct wq__shared *
wq__shared_of(wq_queue *q)
{
    return (struct wq__shared *)(void *)q; /* `base` is the first member */
}

/* True in a child of fork(): the handle is the parent's. */
bool wq__shared_is_foreign(const struct wq__shared *s);

static inline void
wq__shared_enter(struct wq__shared *s)
{
    wq__lock_take(&s->lock);
}

/* The same, unless the process has forked since the handle was created: then
 * false, without the lock. */
static inline bool
wq__shared_enter_own(struct wq__shared *s)
{
    if (wq__shared_is_foreign(s))
        return false;
    wq__shared_enter(s);
    return true;
}

/* Release the lock, and wake the threads that have something to do now. */
void wq__shared_leave(struct wq__shared *s);

/* The same; wakes all getters, too. WQ__WAKE_LOOK: all others as well. */
void wq__shared_wake_and_leave(struct wq__shared *s, enum wq__wake why);

/* ---- create.c ---- */

/* What an opener of a backend passes on. */
struct wq__shared_options {
    const wq_config    *config;       /* checked by wq__shared_check() */
    const wq_backend   *backend;      /* wq__shared_backend, with a name */
    const wq_allocator *mem;          /* NULL: malloc and free */
    bool                manual_renew; /* no lease thread */
};

/* WQ_ENOTSUP, WQ_EINVAL: this config cannot be that of a shared queue;
 * wq_last_error() names the field. Else *terms is what the store must know. */
wq_err wq__shared_check(const wq_config *config, struct wq__terms *terms);

/* A handle of the store behind `engine`, which it owns from then on; on error
 * the engine is still the caller's. */
wq_err wq__shared_create(struct wq__engine               *engine,
                         const struct wq__shared_options *options,
                         wq_queue                       **out);

/* How an opener of a backend opens its store; `ctx` is its own. */
typedef wq_err wq__engine_opener(void *ctx, const struct wq__terms *terms,
                                 wq_clock *clock, struct wq__engine **out);

/* All of an opener that does not depend on the store: check the config, open
 * the engine, make the handle. */
WQ__STORE_API wq_err wq__shared_open(const wq_config *config, bool manual_renew,
                                     wq__engine_opener *open, void *ctx,
                                     wq_queue **out);

/* The verbs of a shared queue. */
WQ__STORE_API extern const wq_backend wq__shared_backend;

/* The engine of a queue whose store has these verbs. NULL: it is another kind of
 * queue, or NULL. */
static inline struct wq__engine *
wq__shared_engine(wq_queue *q, const struct wq__engine_ops *ops)
{
    if (!q || q->backend != &wq__shared_backend)
        return NULL;
    struct wq__engine *e = wq__shared_of(q)->engine;
    return e->ops == ops ? e : NULL;
}

/* Free the memory, when the engine is closed. */
void wq__shared_free(struct wq__shared *s);
void wq__shared_stop_watching(struct wq__shared *s);

/* ---- combine.c, batch.c ---- */

/* Carry out the operations, together with those of other threads: each has its
 * result then. NULL: none, only look at the store; returns whether that
 * succeeded. */
wq_err wq__shared_run(struct wq__shared *s, struct wq__op *ops);

/* With the lock: the engine has failed, after `before` sentences were set in this
 * thread. Keep what it said, for other threads that get the same error. */
void wq__shared_keep_sentence(struct wq__shared *s, wq_err err, unsigned before,
                              char said[WQ__SENTENCE_BYTES]);

/* Without the lock, in one of these: the error, with that sentence. */
wq_err wq__shared_repeat_sentence(struct wq__shared *s, wq_err err,
                                  const char said[WQ__SENTENCE_BYTES]);

/* ---- settle.c ---- */

/* With the lock, which is released meanwhile, by the thread that has led a batch
 * and leads still: settle the batch, if that is better than to leave it to the
 * threads that wait for it. */
void wq__shared_settle_first(struct wq__shared *s);

/* Return when this batch, which was answered, is durable; or the error that says
 * that it may not be, with its sentence. */
wq_err wq__shared_settle(struct wq__shared *s, uint64_t batch);

/* ---- sleep.c ---- */

/* With the lock: sleep on `list` until there may be something to do, or until
 * `deadline_ns`. Returns why; WQ__WAKE_NOT: neither. WQ__WAKE_LISTEN: sleep
 * again, unless there is a reason not to: the thread was on no list for a moment,
 * so that a shutdown or an interrupt has not woken it. The lock is released
 * meanwhile. */
enum wq__wake wq__shared_sleep(struct wq__shared *s, struct wq__sleepers *list,
                               int64_t deadline_ns);

/* With the lock: a verb that may sleep begins and ends; the second releases the
 * lock, and the handle may be destroyed then. */
void wq__shared_begin_blocking(struct wq__shared *s);
void wq__shared_end_blocking(struct wq__shared *s);

/* With the lock, for wq_destroy(): make every blocked thread look, and wait
 * until the last one has left. Returns without the lock. */
void wq__shared_evacuate(struct wq__shared *s);

/* The moment `timeout_ns` from now, on the steady clock; is it past? */
int64_t wq__shared_deadline(struct wq__shared *s, int64_t timeout_ns);
bool    wq__shared_is_past(struct wq__shared *s, int64_t deadline_ns);

/* ---- lease.c ---- */

/* With the lock: all holds that are lent are lost. */
void wq__shared_lose_all(struct wq__shared *s);

/* With the lock, at `now`: are the holds certain? If not, they are lost. */
void wq__shared_expire(struct wq__shared *s, int64_t now);

/* Without the lock: call on_lost() for the holds that were lost. */
void wq__shared_report_lost(struct wq__shared *s);

/* With the lock: this hold is lost. */
void wq__shared_lose(struct wq__shared *s, struct wq__hold *hold);

/* With the lock: the hold ends, unless on_lost() reads its key: then it ends
 * after that. */
void wq__shared_end_hold(struct wq__shared *s, struct wq__hold *hold);

/* For create: the first renewal. */
wq_err wq__shared_begin_session(struct wq__shared *s);

/* For create and destroy: its threads. A start that fails is ended, too. */
wq_err wq__shared_start_lease(struct wq__shared *s);
void   wq__shared_end_lease(struct wq__shared *s);

/* ---- view.c ---- */

/* With the lock: add what the handle itself has counted. */
void wq__shared_add_own_stats(struct wq__shared *s, wq_stats *out);

/* ---- the verbs, as wq_backend has them ---- */

wq_err wq__shared_add(wq_queue *q, wq_key key);
wq_err wq__shared_add_after(wq_queue *q, wq_key key, int64_t delay_ns);
wq_err wq__shared_add_rate_limited(wq_queue *q, wq_key key);
wq_err wq__shared_add_with(wq_queue *q, const wq_add_options *how,
                           const wq_key *keys, size_t n);
wq_err wq__shared_remove(wq_queue *q, wq_key key);
wq_err wq__shared_cancel_after(wq_queue *q, wq_key key);
wq_err wq__shared_forget(wq_queue *q, wq_key key);
wq_err wq__shared_revive(wq_queue *q, wq_key key);
wq_err wq__shared_num_requeues(wq_queue *q, wq_key key, unsigned *out);
wq_err wq__shared_count_drops(wq_queue *q, uint64_t n);
wq_err wq__shared_get(wq_queue *q, int64_t timeout_ns, wq_item **out);
wq_err wq__shared_get_many(wq_queue *q, wq_item **out, size_t max,
                           int64_t timeout_ns, size_t *n);
wq_err wq__shared_next(wq_queue *q, int64_t timeout_ns, wq_item **item);
wq_err wq__shared_next_with(wq_queue *q, wq_result result, int64_t timeout_ns,
                            wq_item **item);
wq_err wq__shared_done(wq_queue *q, wq_item *item);
wq_err wq__shared_done_key(wq_queue *q, wq_key key);
wq_err wq__shared_done_many(wq_queue *q, wq_item **items, size_t n);
wq_err wq__shared_finish(wq_queue *q, wq_item **items, const wq_result *results,
                         wq_err *errs, size_t n);
int64_t wq__shared_hold_left(wq_queue *q, const wq_item *item);
wq_err  wq__shared_renew(wq_queue *q);
void    wq__shared_shutdown(wq_queue *q);
bool    wq__shared_shutting_down(const wq_queue *q);
wq_err  wq__shared_drain(wq_queue *q, int64_t timeout_ns);
wq_err  wq__shared_wait_idle(wq_queue *q, int64_t timeout_ns);
wq_err  wq__shared_pause(wq_queue *q);
wq_err  wq__shared_resume(wq_queue *q);
void    wq__shared_interrupt(wq_queue *q);
void    wq__shared_destroy(wq_queue *q);
wq_err  wq__shared_len(wq_queue *q, size_t *out);
wq_err  wq__shared_stats(wq_queue *q, wq_stats *out);
wq_err  wq__shared_depths(wq_queue *q, wq_depth *out, size_t max, size_t *n);
wq_err  wq__shared_key_info(wq_queue *q, wq_key key, wq_key_info *out);
wq_err wq__shared_each(wq_queue *q, unsigned states, wq_visit visit, void *ctx);
wq_err wq__shared_check_store(wq_queue *q, wq_problem problem, void *ctx);
int    wq__shared_fd(wq_queue *q);
const char *wq__shared_name(wq_queue *q);

#endif
