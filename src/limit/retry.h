/* SPDX-License-Identifier: MIT */
/* retry.h: may this key be tried again, and when?
 *
 * What a queue with rate limits does with its limiter: it owns it, gives it the
 * queue's clock, and gives a key up after too many retries. Any thread; the
 * caller must hold no lock of a queue, since limiters and callbacks may be user
 * code (L7).
 */
#ifndef WQ_LIMIT_RETRY_H
#define WQ_LIMIT_RETRY_H

#include <wq/limiter.h>
#include <wq/wq.h>

/* As wq_config.on_drop. */
typedef void wq__on_drop(void *ctx, wq_key key, unsigned retries, wq_err why);

struct wq__retry {
    wq_limiter         *limiter; /* owned */
    unsigned            max;     /* retries before a key is given up; 0: any */
    wq__on_drop        *on_drop; /* or NULL */
    void               *ctx;     /* its first argument */
    const wq_allocator *mem;     /* for copies of long keys; any thread */
};

/* Become the owner of the limiter of `config`. NULL: create the default one
 * with `mem`, which outlives `r` and is thread-safe. WQ_EINVAL: it has an owner
 * already; WQ_EINVAL, WQ_ENOMEM, WQ_EIO: it has failed, or the default could
 * not be created. On error it still belongs to the caller: wq_create() and
 * wq_rate_limiting_wrap() destroy it. */
wq_err wq__retry_init(struct wq__retry *r, const wq_config *config,
                      wq_clock *clock, const wq_allocator *mem);
void   wq__retry_fini(struct wq__retry *r);

/* Undo wq__retry_init(): a limiter of the config belongs to the caller
 * again. */
void wq__retry_abandon(struct wq__retry *r, const wq_config *config);

/* How long `key` must wait; counts a retry. WQ_EGIVENUP: the limiter has
 * forgotten it, and on_drop() was called. WQ_ENOMEM: out of memory for the call
 * of on_drop(), nothing has changed. */
wq_err wq__retry_delay(struct wq__retry *r, wq_key key, int64_t *delay_ns);

/* The delay was not used. */
static inline void
wq__retry_undo(struct wq__retry *r, wq_key key)
{
    wq_limiter_undo(r->limiter, key);
}

#endif
