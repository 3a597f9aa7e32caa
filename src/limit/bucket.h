/* SPDX-License-Identifier: MIT */
/* bucket.h: what is a token bucket made of? For bucket.c, which takes tokens,
 * and wait.c, which waits for them. */
#ifndef WQ_LIMIT_BUCKET_H
#define WQ_LIMIT_BUCKET_H

#include <wq/limiter.h>

#include "limit/tokens.h"
#include "port/lock.h"

struct wq__waiter; /* a thread that sleeps; see wait.c */

struct wq_bucket {
    wq_allocator    mem;   /* the allocator it was created with */
    wq_clock       *clock; /* never NULL; not owned; never changes */
    struct wq__lock lock;  /* guards what follows */
    struct wq__rate rate;
    struct wq__fill level;
    /* The time to act of the last reservation that was not cancelled. */
    int64_t            last_event_ns;
    struct wq__waiter *waiters;     /* the threads that sleep; NULL: none */
    bool               interrupted; /* the next wait must not sleep */
};

/* wq_bucket_create() with an allocator. */
wq_bucket *wq__bucket_create(const wq_allocator *mem, double limit,
                             int64_t burst, wq_clock *clock);

/* With the lock: wq_bucket_reserve_n_within_at() with valid arguments. */
wq_err wq__bucket_take(wq_bucket *b, int64_t now, int64_t n, int64_t max_wait,
                       wq_reservation *out);

/* With the lock: wq_reservation_cancel_at() of a reservation of `b`. */
void wq__bucket_cancel(wq_bucket *b, wq_reservation *r, int64_t now);

#endif
