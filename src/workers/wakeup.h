/* SPDX-License-Identifier: MIT */
/* wakeup.h: how does a thread wait for a change of what a lock guards?
 *
 *     while (!condition)
 *         wq__wakeup_wait(&changed, &lock, NULL, WQ_FOREVER);
 *
 * A condition variable for our own lock and any clock. A thread that changes
 * the condition broadcasts before it releases the lock. A broadcast wakes all
 * threads that wait; each checks its condition again. No broadcast is missed: a
 * thread is on the list before it releases the lock, and a broadcast needs the
 * lock.
 *
 * Cost of a broadcast: O(waiting threads); one comparison if none waits.
 */
#ifndef WQ_WORKERS_WAKEUP_H
#define WQ_WORKERS_WAKEUP_H

#include "clock/sleepers.h"

/* All zero: no thread waits. Guarded by the lock it is used with. */
struct wq__wakeup {
    struct wq__sleepers waiting; /* each on the stack of its thread */
};

/* Release `lock`, sleep until a broadcast or until `deadline_ns` on `clock`
 * (NULL: monotonic), take the lock again. May wake up spuriously. */
void wq__wakeup_wait(struct wq__wakeup *w, struct wq__lock *lock,
                     wq_clock *clock, int64_t deadline_ns);

/* With the lock: wake all threads that wait. */
void wq__wakeup_broadcast(struct wq__wakeup *w);

#endif
