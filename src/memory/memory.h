/* SPDX-License-Identifier: MIT */
/* memory.h: what is an in-memory queue made of?
 *
 * The core, a lock around it, an inbox for producers that need not take the
 * lock, and the threads that sleep in the queue. gate.c is how threads enter
 * and leave; adds.c, capacity.c, limited.c, gets.c, finish.c, waits.c, stop.c and view.c
 * are the verbs; report.c reports to the sinks of metrics; create.c creates and
 * destroys a queue.
 *
 * Tests include this to take the lock themselves, so that producers use the
 * inbox; to make all hashes equal; and to audit the core.
 */
#ifndef WQ_MEMORY_MEMORY_H
#define WQ_MEMORY_MEMORY_H

#include <stdalign.h>
#include <stdatomic.h>

#include <wq/backend.h>
#include <wq/metrics.h>

#include "clock/clock.h"
#include "clock/sleepers.h"
#include "core/core.h"
#include "limit/locked_mem.h"
#include "limit/retry.h"
#include "memory/inbox.h"
#include "memory/patience.h"
#include "memory/spin.h"
#include "metrics/sinks.h"
#include "port/beacon.h"
#include "port/lock.h"

#define WQ__WAKE_NOBODY UINT64_MAX

/* How many keys are left to a getter that spins while others sleep. With 1, the
 * row `pool` of the benchmark was 1.7 times as slow. */
enum { WQ__SPARED = 8 };

struct wq__memory {
    wq_queue     base; /* first: a queue is the beginning of its backend */
    void        *raw;  /* the address that the allocator returned */
    wq_allocator mem;  /* a copy of the config's */
    struct wq__locked_mem locked_mem; /* of `shared_mem` */
    wq_allocator          shared_mem; /* `mem`, under `lock` */
    wq_clock             *clock;      /* not owned; never NULL */
    wq_waiting            waiting;    /* what a shutdown does to WAITING keys */
    bool                  has_inbox;  /* a plain add may go through the inbox */
    bool no_plain_adds; /* every add is prepared: there are bounds or groups */
    bool has_order;     /* wq_config.order; never changes */
    wq_key (*group)(void *ctx, wq_key key); /* or NULL */
    void            *group_ctx;             /* its first argument */
    unsigned         retry_policy;          /* enum wq_retry */
    struct wq__retry retry; /* owns the limiter; guards itself */
    wq_overflow      overflow;
    wq__on_drop     *on_drop;  /* or NULL */
    void            *drop_ctx; /* its first argument */
    char            *name;     /* owned; or NULL */
    struct wq__sink *sinks;    /* owned; or NULL */
    /* Written once, when all sinks are open: with release, for threads that
     * read it without the lock, with acquire. */
    _Atomic size_t sinks_len;
    /* One of them has a callback for changes; likewise. */
    atomic_bool reports_changes;

    /* Counts of verbs that call the limiter, without the lock. Any thread adds
     * to them and reads them: relaxed. */
    _Atomic uint64_t retries; /* adds with a delay */
    _Atomic uint64_t
        dropped; /* keys that were given up, or that callers dropped */

    /* ---- what producers read before they take the lock: rarely written, so
     * that it stays in their caches ---- */

    /* A producer that has put a key at this position of the inbox, or at a
     * later one, takes the lock and wakes a getter. 0: always. WQ__WAKE_NOBODY:
     * never, no getter sleeps, or one naps (patience.h). Between the two: a
     * getter spins while others sleep. Written with the lock; read without it
     * (inbox.h, I4). */
    alignas(WQ__CACHE_LINE) _Atomic uint64_t wake_from;

    /* After this time the spinning getter must have lost its processor. Written
     * with the lock; relaxed: it is only a guess. */
    _Atomic int64_t spin_ends_ns;

    /* May there be an entry in the delay heap? Then a key in the inbox carries
     * its time, so that a key that becomes due later comes behind it.
     * Written with the lock; relaxed: a thread that knows of an earlier delayed
     * add also sees this write. May stay true after the last entry has gone. */
    atomic_bool wait_hint;

    /* How often in a row producers waited for a free cell in vain, and for how
     * many adds they skip the wait now (adds.c). Only speed depends on them:
     * relaxed. */
    _Atomic unsigned in_vain, skips;

    /* Has a shutdown begun? A copy of core.shutting_down for threads without
     * the lock; a thread that must know for certain reads that with the lock.
     */
    atomic_bool closed;

    /* The mark (thread_mark.h) of a thread that got a key lately; NULL: none is
     * known. A hint on which only speed depends: relaxed. */
    _Atomic(const void *) getter;

    /* ---- what the lock holder reads ---- */

    /* Guards everything below, and above where a comment says so; not the
     * atomics of the inbox. Lock order: taken before a clock's lock, never
     * after. No user code is called under it but the allocator and the
     * wq_order. */
    alignas(WQ__CACHE_LINE) struct wq__lock lock;

    /* Is a key READY? A hint for spinning getters; may be out of date, since
     * only speed depends on it. */
    atomic_bool work_hint;

    bool            may_spin;  /* the system has more than one processor */
    bool            real_time; /* wq_config.real_time; never changes */
    struct wq__spin spin;

    /* The number of the current spin; 0: no getter spins. At most one does,
     * and it will look for keys. */
    uint64_t spinner;
    uint64_t spins; /* spins so far; the first has number 1 */

    struct wq__patience patience;

    bool plain_gets;  /* gets need not check for pause, groups or ageing */
    bool interrupted; /* an interrupt is remembered */
    bool destroying;  /* wq_destroy() waits for `blocked` to become 0 */
    bool watched;     /* wq_fd() was called: there is a `beacon` */
    bool lit;         /* ... and it is lit: a get would not block */

    alignas(WQ__CACHE_LINE) struct wq__core core;

    /* How many must be considered by a thread that leaves: `blocked` threads,
     * an event loop that watches, a sink with a callback for changes. 0:
     * leaving only releases the lock. */
    size_t interested;

    /* Threads in verbs that sleep or may sleep. */
    size_t              blocked;
    struct wq__sleepers getters;   /* those that sleep in a get */
    struct wq__sleepers producers; /* those that wait for capacity */
    struct wq__sleepers drainers;  /* those in wq_shutdown_with_drain() */
    struct wq__sleepers waiters;   /* those in waits.c */
    struct wq__sleepers destroyer; /* the one in wq_destroy() */
    struct wq__remover *removers;  /* those in wq_remove_wait(); or NULL */
    /* Getters that were woken to look for keys, and did not run yet. */
    size_t              woken_getters;
    struct wq__capacity promised; /* capacity that woken producers will use */
    uint64_t tickets; /* producers that ever had to wait: the next ticket */

    /* The getter that sleeps until the earliest deadline, or the end of a nap,
     * on behalf of all; NULL: none. */
    struct wq__sleeper *timekeeper;
    int64_t             timekeeper_until_ns;

    /* The producer that sleeps until a cooldown ends, because capacity may grow
     * then and no getter sleeps until then; NULL: none. */
    struct wq__sleeper *capacity_timekeeper;
    int64_t             capacity_timekeeper_until_ns;

    uint64_t shutdowns; /* calls of wq_shutdown(); each ends all drains */

    wq_change reported; /* the totals that were reported to the sinks last */
    struct wq__beacon beacon; /* behind wq_fd() */
    struct wq__watch  watch;  /* its timer on the clock */

    struct wq__inbox inbox;
};

static inline struct wq__memory *
wq__memory_of(wq_queue *q)
{
    return (struct wq__memory *)(void *)q; /* `base` is the first member */
}

/* The time, for ages: read only if they are kept. Else INT64_MIN, which is
 * before all other times, so that no cooldown seems to be over. */
static inline int64_t
wq__memory_stamp(struct wq__memory *m)
{
    return m->core.ages ? m->clock->stopwatch(m->clock) : INT64_MIN;
}

/* The moment `timeout_ns` from now. */
int64_t wq__memory_deadline(struct wq__memory *m, int64_t timeout_ns);
bool    wq__memory_is_past(struct wq__memory *m, int64_t deadline_ns);

/* The verbs, as wq_backend has them. */
wq_err wq__memory_add(wq_queue *q, wq_key key);
wq_err wq__memory_add_after(wq_queue *q, wq_key key, int64_t delay_ns);
wq_err wq__memory_add_with(wq_queue *q, const wq_add_options *options,
                           const wq_key *keys, size_t n);
wq_err wq__memory_remove(wq_queue *q, wq_key key);
wq_err wq__memory_remove_wait(wq_queue *q, wq_key key, int64_t timeout_ns);
wq_err wq__memory_cancel_after(wq_queue *q, wq_key key);
wq_err wq__memory_add_rate_limited(wq_queue *q, wq_key key);
wq_err wq__memory_forget(wq_queue *q, wq_key key);
wq_err wq__memory_num_requeues(wq_queue *q, wq_key key, unsigned *out);
wq_err wq__memory_count_drops(wq_queue *q, uint64_t n);
wq_err wq__memory_get(wq_queue *q, int64_t timeout_ns, wq_item **out);
wq_err wq__memory_get_many(wq_queue *q, wq_item **out, size_t max,
                           int64_t timeout_ns, size_t *n);
wq_err wq__memory_done(wq_queue *q, wq_item *item);
wq_err wq__memory_done_key(wq_queue *q, wq_key key);
wq_err wq__memory_done_many(wq_queue *q, wq_item **items, size_t n);
wq_err wq__memory_next(wq_queue *q, int64_t timeout_ns, wq_item **item);
wq_err wq__memory_finish(wq_queue *q, wq_item **items, const wq_result *results,
                         wq_err *errs, size_t n);
wq_err wq__memory_next_with(wq_queue *q, wq_result result, int64_t timeout_ns,
                            wq_item **item);
wq_err wq__memory_flush(wq_queue *q, int64_t timeout_ns);
wq_err wq__memory_flush_key(wq_queue *q, wq_key key, int64_t timeout_ns);
wq_err wq__memory_wait_idle(wq_queue *q, int64_t timeout_ns);
wq_err wq__memory_pause(wq_queue *q);
wq_err wq__memory_resume(wq_queue *q);
void   wq__memory_shutdown(wq_queue *q);
bool   wq__memory_shutting_down(const wq_queue *q);
wq_err wq__memory_drain(wq_queue *q, int64_t timeout_ns);
void   wq__memory_interrupt(wq_queue *q);
wq_err wq__memory_len(wq_queue *q, size_t *out);
wq_err wq__memory_stats(wq_queue *q, wq_stats *out);
wq_err wq__memory_depths(wq_queue *q, wq_depth *out, size_t max, size_t *n);
wq_err wq__memory_key_info(wq_queue *q, wq_key key, wq_key_info *out);
wq_err wq__memory_each(wq_queue *q, unsigned states, wq_visit visit, void *ctx);
wq_err wq__memory_check(wq_queue *q, wq_problem problem, void *ctx);
int    wq__memory_fd(wq_queue *q);
const char *wq__memory_name(wq_queue *q);

/* Close the descriptor of wq_fd(), if there is one. No other thread is in the
 * queue. */
void wq__memory_stop_watching(struct wq__memory *m);

/* With the lock: shut down, and end all drains. Returns the threads to wake. */
struct wq__sleeper *wq__memory_stop_all(struct wq__memory *m);

/* How long an add with these options waits for capacity. */
static inline int64_t
wq__memory_block_time(const wq_add_options *options)
{
    if (options->nowait)
        return 0;
    return options->max_block_ns ? options->max_block_ns : WQ_FOREVER;
}

/* Add keys that were prepared. Blocks or displaces keys as wq_config.overflow
 * says; a `timeout_ns` of 0 does not block. */
wq_err wq__memory_add_prepared(struct wq__memory *m, const struct wq__how *how,
                               const wq_key        *keys,
                               struct wq__prepared *prepared, size_t n,
                               int64_t timeout_ns);

/* Prepare a key: what can be computed before the lock is taken. WQ_EINVAL: its
 * group is not a part of it. */
wq_err wq__memory_prepare(struct wq__memory *m, wq_key key,
                          struct wq__prepared *prepared);

/* With the lock: compute `plain_gets` anew. */
void wq__memory_review_gets(struct wq__memory *m);

/* The same with delays of the limiter, for rate-limited adds. */
wq_err wq__memory_add_limited(struct wq__memory    *m,
                              const wq_add_options *options, const wq_key *keys,
                              struct wq__prepared *prepared, size_t n);

/* wq_create() with a given hash key; `config` was checked. */
wq_err wq__memory_create(const wq_config *config, struct wq__hash_key secret,
                         wq_queue **out);

#endif
