/* SPDX-License-Identifier: MIT */
/* calls.h: when has the last call left a layer?
 *
 * Threads may be blocked in the inner queue when wq_destroy() is called. A
 * layer counts the calls that use it after they return from the inner queue,
 * and frees itself when none of them is in progress.
 */
#ifndef WQ_LAYER_CALLS_H
#define WQ_LAYER_CALLS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "port/race.h"

struct wq__calls {
    atomic_size_t n; /* calls in progress */
};

static inline void
wq__calls_init(struct wq__calls *c)
{
    atomic_init(&c->n, 0);
}

/* Relaxed: a call that is blocked when wq_destroy() begins has taken a lock
 * since, which wq_destroy() takes before it reads the count. */
static inline void
wq__calls_begin(struct wq__calls *c)
{
    atomic_fetch_add_explicit(&c->n, 1, memory_order_relaxed);
}

/* The layer may be freed when this returns. Release: pairs with the acquire
 * below, so that all that the call did happens before the layer is freed. */
static inline void
wq__calls_end(struct wq__calls *c)
{
    wq__race_release(c);
    atomic_fetch_sub_explicit(&c->n, 1, memory_order_release);
}

static inline bool
wq__calls_in_progress(struct wq__calls *c)
{
    if (atomic_load_explicit(&c->n, memory_order_acquire) != 0)
        return true;
    wq__race_acquire(c);
    return false;
}

#endif
