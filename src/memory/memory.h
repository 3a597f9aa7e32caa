/* SPDX-License-Identifier: MIT */
/* memory.h: what is an in-memory queue made of?
 *
 * The core, a lock around it, an inbox for producers that need not take it, and
 * the threads that sleep in it. gate.c says how threads get in and out;
 * what they do inside is in adds.c, room.c, limited.c, gets.c, waits.c, stop.c
 * and view.c, a file a question; report.c tells the metrics' sinks; create.c
 * makes one.
 *
 * Tests include this to take the lock themselves (producers then use the
 * inbox), to make all hashes equal, and to audit the core.
 */
#ifndef WQ_MEMORY_MEMORY_H
#define WQ_MEMORY_MEMORY_H

#include <stdalign.h>
#include <stdatomic.h>

#include <wq/backend.h>
#include <wq/metrics.h>

#include "clock/clock.h"
#include "core/core.h"
#include "limit/retry.h"
#include "memory/inbox.h"
#include "memory/sleepers.h"
#include "memory/spin.h"
#include "port/beacon.h"
#include "port/lock.h"

/* A metrics sink, and what it calls this queue. */
struct wq__sink {
    wq_metrics to;
    void      *handle;
};

#define WQ__ROUSE_NOBODY UINT64_MAX

/* Keys that are left to a getter that spins while others sleep. With 1, the row
 * `pool` of the benchmark was 1.7 times as slow. */
enum { WQ__SPARED = 8 };

struct wq__memory {
    wq_queue     base; /* first: a queue is the beginning of its backend */
    void        *raw;  /* what to give back to the allocator */
    wq_allocator mem;  /* a copy of the config's */
    wq_allocator shared_mem;  /* `mem`, under `lock` */
    wq_clock    *clock;       /* not owned; never NULL */
    wq_waiting   waiting;     /* what a shutdown does to WAITING keys */
    bool         has_inbox;   /* adds need not know what they did */
    bool         needs_picks; /* no add is plain: there are bounds or groups */
    wq_key (*group)(void *ctx, wq_key key); /* or NULL */
    void            *group_ctx;             /* its first argument */
    unsigned         retry_policy;          /* enum wq_retry */
    struct wq__retry retry; /* owns the limiter; guards itself */
    wq_overflow      overflow;
    wq__on_drop     *on_drop;  /* or NULL */
    void            *drop_ctx; /* its first argument */
    char            *name;     /* owned; or NULL */
    struct wq__sink *sinks;    /* owned; or NULL */
    /* Written once, when all sinks are open: released, for those who find it
     * without the lock (acquire). */
    _Atomic size_t sinks_len;
    atomic_bool    tells; /* one of them wants to hear of changes; likewise */

    /* What limiters have to do with, which are asked without the lock. Counted
     * by anyone, read by who wants statistics: relaxed. */
    _Atomic uint64_t retries; /* adds with a delay */
    _Atomic uint64_t dropped; /* keys given up, or dropped by callers */

    /* ---- what producers look at before they take the lock: rarely written, so
     * that it stays near them ---- */

    /* A producer that put a key at this position of the inbox, or at a later
     * one, takes the lock and wakes a getter. 0: always. WQ__ROUSE_NOBODY:
     * never, since nobody sleeps. Between the two: a getter spins while others
     * sleep. Written with the lock; read without it (inbox.h, I4). */
    alignas(WQ__CACHE_LINE) _Atomic uint64_t rouse_from;

    /* When the getter that spins has surely lost its processor. Written with
     * the lock; relaxed: a guess about time. */
    _Atomic int64_t spin_ends_ns;

    /* May there be an entry in the delay heap? Then what is handed over says
     * when: a key that becomes due later stands behind it. Written with
     * the lock; relaxed: who knows of a delay, because it was asked for before,
     * sees this too. May stay when the last entry has gone. */
    atomic_bool wait_hint;

    /* How often producers waited for a getter in vain, in a row, and how often
     * they had better not wait again (adds.c). Guesses; relaxed. */
    _Atomic unsigned in_vain, skips;

    /* Has a shutdown begun? As core.shutting_down, for those without the lock;
     * who must know for certain asks again with it. */
    atomic_bool closed;

    /* A thread that was handed a key lately, by its mark (slot.h); NULL: none
     * is known. A hint, which nothing but speed depends on: relaxed. */
    _Atomic(const void *) getter;

    /* ---- what the lock's holder looks at ---- */

    /* Guards everything below, and what says so above; not the inbox's own
     * atomics. Lock order: it is
     * taken before a clock's, never after; user code is not called under it,
     * but for the allocator and the wq_order. */
    alignas(WQ__CACHE_LINE) struct wq__lock lock;

    /* Is something READY? A hint for threads that spin instead of sleeping;
     * may be out of date, since nothing but speed depends on it. */
    atomic_bool work_hint;

    bool            may_spin;  /* there is a processor for another thread */
    bool            real_time; /* wq_config.real_time; never changes */
    struct wq__spin spin;

    uint64_t spinner; /* the number of the spin that counts; 0: no getter spins.
                         At most one does, and it will look */
    uint64_t spins;   /* spins so far; their numbers begin with 1 */

    bool plain_gets;  /* the next get may take the first READY key, if any */
    bool interrupted; /* an interrupt is remembered */
    bool destroying;  /* wq_destroy() waits for `blocked` to become 0 */
    bool watched;     /* wq_fd() was called: `beacon` is there */
    bool lit;         /* ... and was told that a get would not block */

    alignas(WQ__CACHE_LINE) struct wq__core core;

    /* Whom a thread that leaves has to think of: `blocked` ones, an event loop
     * that watches, sinks that want to hear of changes. */
    size_t company;

    /* Threads in verbs that may sleep, past their first look. */
    size_t              blocked;
    struct wq__sleepers getters;   /* those asleep in wq_get() */
    struct wq__sleepers producers; /* those that wait for room */
    struct wq__sleepers drainers;  /* those in wq_shutdown_with_drain() */
    struct wq__sleepers waiters;   /* those in waits.c */
    struct wq__sleepers destroyer; /* the one in wq_destroy() */
    struct wq__remover *removers;  /* those in wq_remove_wait(); or NULL */
    size_t              coming;    /* getters told to look, and not back yet */
    struct wq__space    promised;  /* room that producers were woken for */
    uint64_t            tickets;   /* producers that ever had to wait */

    /* The getter that sleeps until the earliest deadline, so that the others
     * need not; NULL: none. */
    struct wq__sleeper *keeper;
    int64_t             keeper_until_ns;

    /* The producer that sleeps no longer than until then, because room may come
     * by time and no getter would notice; NULL: none. */
    struct wq__sleeper *room_keeper;
    int64_t             room_keeper_until_ns;

    uint64_t shutdowns; /* calls of wq_shutdown(): each ends all drains */

    wq_change         told; /* totals that the sinks were told, if they want */
    struct wq__beacon beacon; /* what wq_fd() gives out */
    struct wq__watch  watch;  /* what the clock looks after for it */

    struct wq__inbox inbox;
};

static inline struct wq__memory *
wq__memory_of(wq_queue *q)
{
    return (struct wq__memory *)(void *)q; /* `base` is the first member */
}

/* The time, for stamps: read only if ages are kept. Else it is not known: before
 * all others, so that no quiet time is taken for over. */
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
int    wq__memory_fd(wq_queue *q);
const char *wq__memory_name(wq_queue *q);

/* The descriptor goes, if there is one. No other thread is in the queue. */
void wq__memory_stop_watching(struct wq__memory *m);

/* Shut down, and let no drain wait on; returns the threads to wake. With the
 * lock. */
struct wq__sleeper *wq__memory_stop_all(struct wq__memory *m);

/* How long an add with these options waits for room. */
static inline int64_t
wq__memory_block_time(const wq_add_options *options)
{
    if (options->nowait)
        return 0;
    return options->max_block_ns ? options->max_block_ns : WQ_FOREVER;
}

/* An add in terms of the core: how many keys, what is known of each, what the
 * core was told. Blocks and displaces as the queue's bound says; `timeout_ns`
 * of 0 does not block. limited.c fills in picks[].at. */
wq_err wq__memory_add_picks(struct wq__memory *m, const struct wq__how *how,
                            const wq_key *keys, struct wq__pick *picks,
                            size_t n, int64_t timeout_ns);

/* What is known of a key before the lock is taken. WQ_EINVAL: its group is not a
 * part of it. */
wq_err wq__memory_pick(struct wq__memory *m, wq_key key, struct wq__pick *pick);

/* Whether gets are plain may have changed. With the lock. */
void wq__memory_review_gets(struct wq__memory *m);

/* The same for wq_add_options that ask the limiter. */
wq_err wq__memory_add_limited(struct wq__memory    *m,
                              const wq_add_options *options, const wq_key *keys,
                              struct wq__pick *picks, size_t n);

/* wq_create() with a hash key of the caller's; `config` was checked. */
wq_err wq__memory_create(const wq_config *config, struct wq__hash_key secret,
                         wq_queue **out);

#endif
