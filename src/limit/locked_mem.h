/* SPDX-License-Identifier: MIT */
/* locked_mem.h: how do several threads use an allocator that is not
 * thread-safe?
 *
 * A queue promises never to call its allocator from two threads at once (wq.h).
 * Code that works without the queue's lock, such as a default limiter, gets
 * this allocator instead: it takes the lock around each call of the user's.
 */
#ifndef WQ_LIMIT_LOCKED_MEM_H
#define WQ_LIMIT_LOCKED_MEM_H

#include <wq/wq.h>

#include "port/lock.h"

struct wq__locked_mem {
    const wq_allocator *mem;  /* the user's; not owned */
    struct wq__lock    *lock; /* held while `mem` is called; not owned */
};

/* An allocator that calls l->mem with l->lock held. `l` must outlive it. */
wq_allocator wq__locked_mem_allocator(struct wq__locked_mem *l);

#endif
