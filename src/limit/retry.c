/* SPDX-License-Identifier: MIT */
/* retry.c: a queue and its limiter; see retry.h. */
#include "limit/retry.h"

#include <string.h>

#include "core/mem.h"
#include "limit/limiter.h"

wq_err
wq__retry_init(struct wq__retry *r, const wq_config *config, wq_clock *clock,
               const wq_allocator *mem)
{
    wq_limiter *limiter =
        config->limiter ? config->limiter : wq__limiter_default(mem);

    if (!wq__limiter_claim(limiter))
        return wq__limiter_explain(limiter, config->limiter
                                                ? "wq_config.limiter"
                                                : "the default limiter");
    wq_limiter_set_clock(limiter, clock);
    *r = (struct wq__retry){
        .limiter = limiter,
        .max = config->max_retries,
        .on_drop = config->on_drop,
        .ctx = config->drop_ctx,
        .mem = mem,
    };
    return WQ_OK;
}

void
wq__retry_fini(struct wq__retry *r)
{
    wq__limiter_unclaim(r->limiter);
    wq_limiter_destroy(r->limiter);
    *r = (struct wq__retry){.limiter = NULL};
}

void
wq__retry_abandon(struct wq__retry *r, const wq_config *config)
{
    wq__limiter_unclaim(r->limiter);
    if (!config->limiter)
        wq_limiter_destroy(r->limiter);
    *r = (struct wq__retry){.limiter = NULL};
}

/* A NUL byte follows every key that on_drop() gets. The caller's bytes may have
 * none, so they are copied: a long key into allocated memory. */
static wq_err
give_up_and_report(struct wq__retry *r, wq_key key, unsigned retries)
{
    enum { SHORT = 256 }; /* most keys are; small enough for any stack */
    char  at_hand[SHORT];
    char *copy = key.len < SHORT ? at_hand : wq__mem_alloc(r->mem, key.len + 1);

    if (!copy)
        return WQ_ENOMEM;
    memcpy(copy, key.data, key.len);
    copy[key.len] = '\0';
    wq_limiter_forget(r->limiter, key);
    r->on_drop(r->ctx, (wq_key){copy, key.len}, retries, WQ_EGIVENUP);
    if (copy != at_hand)
        wq__mem_free(r->mem, copy, key.len + 1);
    return WQ_EGIVENUP;
}

static wq_err
give_up(struct wq__retry *r, wq_key key, unsigned retries)
{
    if (r->on_drop)
        return give_up_and_report(r, key, retries);
    wq_limiter_forget(r->limiter, key);
    return WQ_EGIVENUP;
}

wq_err
wq__retry_delay(struct wq__retry *r, wq_key key, int64_t *delay_ns)
{
    if (r->max) {
        const unsigned retries = wq_limiter_num_requeues(r->limiter, key);
        if (retries >= r->max)
            return give_up(r, key, retries);
    }
    *delay_ns = wq_limiter_when(r->limiter, key);
    return WQ_OK;
}
