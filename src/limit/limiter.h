/* SPDX-License-Identifier: MIT */
/* limiter.h: what is a limiter to the rest of the library?
 *
 * A table of functions and something for them to work on, with at most one
 * owner: a queue, or another limiter. For the queue: claim, set the clock, and
 * in the end unclaim and destroy.
 *
 * Or a failed limiter: a static object, which has no functions, cannot be
 * claimed and is never written to. Each error has several, used in turn.
 *
 * Every kind is a struct that begins with a wq_limiter. The functions named
 * here are those of <wq/limiter.h> with an allocator: that of the queue for its
 * default limiter, a failing one in tests.
 */
#ifndef WQ_LIMIT_LIMITER_H
#define WQ_LIMIT_LIMITER_H

#include <stdatomic.h>
#include <stdbool.h>

#include <wq/limiter.h>

#include "core/hash.h"

struct wq_limiter {
    const wq_limiter_ops *ops;   /* complete: no function is NULL. NULL itself
                                    for a failed one */
    size_t                bytes; /* of the struct that begins here */
    wq_allocator          mem;   /* where it came from */
    wq_limiter           *next;  /* its sibling; guarded by its owner */
    atomic_bool           owned; /* only ever exchanged: one claim wins. What
                                    the winner may touch it got by other ways,
                                    so no order is needed beyond that */
    wq_err                err;   /* of a failed one; WQ_OK: it is none */
};

/* Become the owner. False: there is one already, or it is a failed one, or
 * NULL; nothing changed. */
bool wq__limiter_claim(wq_limiter *limiter);

/* A limiter named `where` ("wq_config.limiter") could not be claimed: why? Sets
 * the sentence, which quotes that of the constructor that failed if it is still
 * the thread's last. */
wq_err wq__limiter_explain(const wq_limiter *limiter, const char *where);

/* Give up ownership; the limiter is as it was before the claim. */
void wq__limiter_unclaim(wq_limiter *limiter);

wq_limiter *wq__limiter_exponential(const wq_allocator *mem, int64_t base_ns,
                                    int64_t max_ns);
wq_limiter *wq__limiter_fast_slow(const wq_allocator *mem, int64_t fast_ns,
                                  int64_t slow_ns, unsigned max_fast);
wq_limiter *wq__limiter_bucket(const wq_allocator *mem, double per_second,
                               unsigned burst);
wq_limiter *wq__limiter_item_bucket(const wq_allocator *mem, double per_second,
                                    unsigned burst);
wq_limiter *wq__limiter_max_of(const wq_allocator *mem, size_t n,
                               wq_limiter *const *children);
wq_limiter *wq__limiter_with_max_wait(const wq_allocator *mem,
                                      wq_limiter *inner, int64_t max_ns);
wq_limiter *wq__limiter_default(const wq_allocator *mem);
wq_limiter *wq__limiter_default_item(const wq_allocator *mem);
wq_limiter *wq__limiter_create(const wq_allocator   *mem,
                               const wq_limiter_ops *ops, void *self);

/* ---- for those who make limiters ----------------------------------------- */

/* A zeroed struct of `bytes`, which begins with a wq_limiter, filled in. The
 * functions of `ops` get its address as `self`; `destroy` frees what it owns,
 * but not itself. NULL: out of memory. */
void *wq__limiter_alloc(const wq_allocator *mem, size_t bytes,
                        const wq_limiter_ops *ops);

/* Free the struct alone. */
void wq__limiter_free(wq_limiter *limiter);

/* The failed limiter of `err`: WQ_EINVAL, WQ_ENOMEM or WQ_EIO. The thread's
 * last sentence must say why:
 *
 *     return wq__limiter_failed(wq_fail(WQ_EINVAL, "..."));
 */
wq_limiter *wq__limiter_failed(wq_err err);

/* The same for the constructor `who`, which found no memory, or no random
 * numbers. */
wq_limiter *wq__limiter_no_memory(const char *who);
wq_limiter *wq__limiter_no_random(const char *who);

/* A hash key nobody can guess. False: the system gave no random numbers. */
bool wq__limiter_secret(struct wq__hash_key *secret);

/* For `ops` of limiters that need none of these. */
void     wq__limiter_ignore_key(void *self, wq_key key);
void     wq__limiter_ignore_clock(void *self, wq_clock *clock);
unsigned wq__limiter_no_requeues(void *self, wq_key key);

#endif
