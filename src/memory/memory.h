/* SPDX-License-Identifier: MIT */
/* memory.h: what do tests of the in-memory backend need to see of it?
 *
 * Users reach it through wq_create(). Tests also force every hash to be equal,
 * take the lock to make producers use the inbox, and audit the core.
 */
#ifndef WQ_MEMORY_MEMORY_H
#define WQ_MEMORY_MEMORY_H

#include <stdalign.h>
#include <stdatomic.h>

#include <wq/backend.h>

#include "core/core.h"
#include "memory/inbox.h"
#include "memory/sleepers.h"
#include "port/lock.h"

struct wq__memory {
    wq_queue     base; /* first: a wq_queue is the beginning of its backend */
    void        *raw;  /* what to give back to the allocator */
    wq_allocator mem;  /* a copy of the config's */

    /* Guards everything below except the inbox's own atomics. Lock order: it is
     * the only lock; no other is taken while it is held. */
    alignas(WQ__CACHE_LINE) struct wq__lock lock;

    /* How many threads are in `getters`. Written with the lock; read without
     * it by producers that used the inbox (inbox.h, I4). */
    _Atomic uint32_t sleeping;

    /* Is something READY? A hint for threads that spin instead of sleeping;
     * may be out of date, since nothing but speed depends on it. */
    atomic_bool work_hint;

    /* At most one thread spins (relaxed: a wrong guess costs only speed). */
    atomic_bool spinning;

    bool interrupted; /* an interrupt is remembered */
    bool destroying;  /* wq_destroy() waits for `blocked` to become 0 */

    struct wq__core core;

    struct wq__sleepers getters;   /* threads in wq_get() */
    struct wq__sleepers drainers;  /* threads in wq_shutdown_with_drain() */
    struct wq__sleepers destroyer; /* the thread in wq_destroy() */
    size_t              woken;     /* getters woken for work and not back yet */
    size_t blocked; /* threads in a verb that may sleep, past its first look */
    uint64_t shutdowns; /* calls of wq_shutdown(): each ends all drains */

    struct wq__inbox inbox;
};

/* wq_create() with a hash key of the caller's; `config` was checked. */
wq_err wq__memory_create(const wq_config *config, struct wq__hash_key secret,
                         wq_queue **out);

#endif
