/* SPDX-License-Identifier: MIT */
/* memory.h: what is an in-memory queue made of?
 *
 * The core, a lock around it, an inbox for producers that find the lock taken,
 * and the threads that sleep in it. gate.c says how threads get in and out,
 * memory.c what they do inside, create.c how one comes to be.
 *
 * Tests include this to take the lock themselves (producers then use the
 * inbox), to make all hashes equal, and to audit the core.
 */
#ifndef WQ_MEMORY_MEMORY_H
#define WQ_MEMORY_MEMORY_H

#include <stdalign.h>
#include <stdatomic.h>

#include <wq/backend.h>

#include "clock/clock.h"
#include "core/core.h"
#include "limit/retry.h"
#include "memory/inbox.h"
#include "memory/sleepers.h"
#include "port/lock.h"

struct wq__memory {
    wq_queue         base; /* first: a queue is the beginning of its backend */
    void            *raw;  /* what to give back to the allocator */
    wq_allocator     mem;  /* a copy of the config's */
    wq_allocator     shared_mem;   /* `mem`, under `lock` */
    wq_clock        *clock;        /* not owned; never NULL */
    bool             keep_waiting; /* what waits outlives the shutdown */
    unsigned         retry_policy; /* enum wq_retry */
    struct wq__retry retry;        /* owns the limiter; guards itself */

    /* Guards everything below except the inbox's own atomics. Lock order: it is
     * taken before a clock's, never after; user code is not called under it,
     * but for the allocator and the wq_order. */
    alignas(WQ__CACHE_LINE) struct wq__lock lock;

    /* How many threads are in `getters`. Written with the lock; read without
     * it by producers that used the inbox (inbox.h, I4). */
    _Atomic uint32_t sleeping;

    /* Is something READY? A hint for threads that spin instead of sleeping;
     * may be out of date, since nothing but speed depends on it. */
    atomic_bool work_hint;

    /* Has a shutdown begun? As core.shutting_down, for those without the lock;
     * who must know for certain asks again with it. */
    atomic_bool closed;

    /* At most one thread spins (relaxed: a wrong guess costs only speed). */
    atomic_bool spinning;

    bool interrupted; /* an interrupt is remembered */
    bool destroying;  /* wq_destroy() waits for `blocked` to become 0 */

    struct wq__core core;

    /* Threads in verbs that may sleep, past their first look. */
    size_t              blocked;
    struct wq__sleepers getters;   /* those asleep in wq_get() */
    struct wq__sleepers drainers;  /* those in wq_shutdown_with_drain() */
    struct wq__sleepers destroyer; /* the one in wq_destroy() */
    size_t              coming;    /* getters told to look, and not back yet */

    /* The getter that sleeps until the earliest deadline, so that the others
     * need not; NULL: none. */
    struct wq__sleeper *keeper;
    int64_t             keeper_until_ns;

    uint64_t shutdowns; /* calls of wq_shutdown(): each ends all drains */

    struct wq__inbox inbox;
};

/* wq_create() with a hash key of the caller's; `config` was checked. */
wq_err wq__memory_create(const wq_config *config, struct wq__hash_key secret,
                         wq_queue **out);

#endif
