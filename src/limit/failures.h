/* SPDX-License-Identifier: MIT */
/* failures.h: how often has this key failed?
 *
 * A count for each key, from its first failure until it is forgotten: by the
 * caller, because its last failure is too long ago, or because there are too
 * many keys.
 *
 * Each add removes up to two expired keys, so that their number cannot grow.
 * All functions are O(1) and thread-safe. Relies on table.h, with a lock of its
 * own; reads the clock only if keys expire.
 */
#ifndef WQ_LIMIT_FAILURES_H
#define WQ_LIMIT_FAILURES_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/clock.h>

#include "limit/table.h"
#include "limit/timeline.h"
#include "port/lock.h"

struct wq__failures {
    struct wq__lock     lock; /* guards all below but keys.hasher */
    struct wq__table    keys;
    struct wq__timeline time;
    size_t              max_keys; /* 0: any number */
    int64_t             ttl_ns;   /* 0: for ever */
};

void wq__failures_init(struct wq__failures *f, const wq_allocator *mem,
                       struct wq__hash_key secret, size_t max_keys,
                       int64_t ttl_ns);
void wq__failures_fini(struct wq__failures *f);

/* Count one more failure; *before: how many there were. False: out of memory
 * for a new key, nothing changed. */
bool wq__failures_add(struct wq__failures *f, wq_key key, uint32_t *before);

/* Count one failure less; at 0 the key is forgotten. */
void wq__failures_undo(struct wq__failures *f, wq_key key);

void     wq__failures_forget(struct wq__failures *f, wq_key key);
unsigned wq__failures_count(struct wq__failures *f, wq_key key);
void     wq__failures_set_clock(struct wq__failures *f, wq_clock *clock);

#endif
