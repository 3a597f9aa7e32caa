/* SPDX-License-Identifier: MIT */
/* bell.h: how does a thread wait for something to change that a lock guards?
 *
 *     while (!what_i_wait_for)
 *         wq__bell_await(&bell, &lock, NULL, WQ_FOREVER);
 *
 * Whoever changes it rings, before it releases the lock. Ringing wakes all who
 * listen then; they look again. Nobody misses a ring: listening begins while
 * the lock is still held, and no ring comes without it.
 *
 * A condition variable, for our own lock and any clock. Cost: O(listeners) a
 * ring; one comparison when there is none.
 */
#ifndef WQ_WORKERS_BELL_H
#define WQ_WORKERS_BELL_H

#include "clock/clock.h"
#include "port/lock.h"
#include "port/park.h"

struct wq__listener; /* on the stack of the thread that waits */

/* All zero: nobody listens. Guarded by the lock it is used with. */
struct wq__bell {
    struct wq__listener *first;
};

/* Release `lock`, sleep until a ring or until `deadline_ns` on `clock` (NULL:
 * monotonic), take the lock again. May return early for no reason. */
void wq__bell_await(struct wq__bell *bell, struct wq__lock *lock,
                    wq_clock *clock, int64_t deadline_ns);

/* Wake all who listen. With the lock. */
void wq__bell_ring(struct wq__bell *bell);

#endif
