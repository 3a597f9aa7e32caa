/* SPDX-License-Identifier: MIT */
/* retry.h: may this key be tried again, and when?
 *
 * What a queue that rate-limits does with its limiter: owns it, lets it tell
 * the queue's time, gives a key up after too many tries. Any thread; no lock
 * of a queue may be held, since limiters and callbacks are user code (L7).
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

/* Become the owner of the limiter of `config` (NULL: the default one, made of
 * `mem`, which outlives `r` and may be called by several threads at a time).
 * WQ_EINVAL: it has an owner already; WQ_EINVAL, WQ_ENOMEM, WQ_EIO: it is a
 * failed one, or there is no default. On error it is the caller's as before:
 * wq_create() and wq_rate_limiting_wrap() destroy it. */
wq_err wq__retry_init(struct wq__retry *r, const wq_config *config,
                      wq_clock *clock, const wq_allocator *mem);
void   wq__retry_fini(struct wq__retry *r);

/* Undo wq__retry_init(): a limiter of the config's is the caller's again. */
void wq__retry_abandon(struct wq__retry *r, const wq_config *config);

/* How long `key` shall wait; counts. WQ_EGIVENUP: the limiter has forgotten it,
 * and on_drop() was called. WQ_ENOMEM: there was no memory to call on_drop(),
 * and nothing has changed. */
wq_err wq__retry_delay(struct wq__retry *r, wq_key key, int64_t *delay_ns);

/* The delay was not used. */
static inline void
wq__retry_undo(struct wq__retry *r, wq_key key)
{
    wq_limiter_undo(r->limiter, key);
}

#endif
