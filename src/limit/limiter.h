/* SPDX-License-Identifier: MIT */
/* limiter.h: what is a limiter to the rest of the library?
 *
 * A table of functions and their argument, with at most one owner: a queue or
 * another limiter. A queue claims its limiter, sets the clock, and in the end
 * unclaims and destroys it.
 *
 * A constructor that fails returns a failed limiter: a static object that has
 * no functions, cannot be claimed and is never written to. Each error has
 * several, used in turn.
 *
 * Every kind is a struct that begins with a wq_limiter. The constructors below
 * are those of <wq/limiter.h> with an allocator: that of the queue for its
 * default limiter, a failing one in tests.
 */
#ifndef WQ_LIMIT_LIMITER_H
#define WQ_LIMIT_LIMITER_H

#include <stdatomic.h>
#include <stdbool.h>

#include <wq/limiter.h>

#include "core/hash.h"

struct wq_limiter {
    wq_limiter_ops ops; /* no function is NULL; all are in a failed limiter */
    /* What the functions are called with: this limiter, or the user's argument
     * of wq_limiter_create(). */
    void        *self;
    size_t       bytes; /* of the struct that begins here */
    wq_allocator mem;   /* it was allocated with this */
    wq_limiter
        *next; /* the next part of the same owner; guarded by the owner */
    /* Set by an atomic exchange: one claim wins. It orders nothing else:
     * relaxed. */
    atomic_bool owned;
    wq_err      err; /* of a failed limiter; WQ_OK: not failed */
    /* What it does; complete when its constructor returns. */
    wq_limiter_spec spec;
    const char     *no_spec; /* why no spec describes it, a static string;
                                NULL: `spec` does */
};

/* Become the owner. False: it has one already, has failed, or is NULL; nothing
 * changed. */
bool wq__limiter_claim(wq_limiter *limiter);

/* Why could the limiter named `where` ("wq_config.limiter") not be claimed?
 * Sets the sentence, which quotes that of the failed constructor if that is
 * still the last one of the thread. */
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
wq_limiter *wq__limiter_from_spec(const wq_allocator    *mem,
                                  const wq_limiter_spec *spec);
wq_limiter *wq__limiter_create(const wq_allocator   *mem,
                               const wq_limiter_ops *ops, void *self);

/* ---- for the constructors of limiters ------------------------------------ */

/* A zeroed struct of `bytes`, which begins with a wq_limiter, filled in. The
 * functions of `ops` get its address as `self`; `destroy` frees what it owns,
 * but not itself. All but `when` may be NULL: they do nothing then, and
 * `num_requeues` returns 0. Its spec has no parts yet. NULL: out of memory. */
void *wq__limiter_alloc(const wq_allocator *mem, size_t bytes,
                        const wq_limiter_ops *ops);

/* The table of a limiter whose functions are called after it: NAME_when(),
 * NAME_forget() and so on. */
#define WQ__LIMITER_OPS(name)                                                  \
    {                                                                          \
        .size = sizeof(wq_limiter_ops), .when = name##_when,                   \
        .forget = name##_forget, .num_requeues = name##_num_requeues,          \
        .destroy = name##_destroy, .undo = name##_undo,                        \
        .set_clock = name##_set_clock                                          \
    }

/* Free the struct alone. */
void wq__limiter_free(wq_limiter *limiter);

/* The failed limiter of `err`: WQ_EINVAL, WQ_ENOMEM or WQ_EIO. The thread's
 * last sentence must say why:
 *
 *     return wq__limiter_failed(wq_fail(WQ_EINVAL, "..."));
 */
wq_limiter *wq__limiter_failed(wq_err err);

/* The same for the constructor `who` that is out of memory, or got no random
 * numbers. */
wq_limiter *wq__limiter_no_memory(const char *who);
wq_limiter *wq__limiter_no_random(const char *who);

#endif
