/* SPDX-License-Identifier: MIT */
/* retry.c: a queue and its limiter; see retry.h. */
#include "limit/retry.h"

#include "limit/limiter.h"

wq_err
wq__retry_init(struct wq__retry *r, const wq_config *config, wq_clock *clock,
               const wq_allocator *mem)
{
    wq_limiter *limiter =
        config->limiter ? config->limiter : wq__limiter_default(mem);

    if (!wq__limiter_claim(limiter))
        return wq__limiter_explain(limiter, "wq_config.limiter");
    wq_limiter_set_clock(limiter, clock);
    *r = (struct wq__retry){
        .limiter = limiter,
        .max = config->max_retries,
        .on_give_up = config->on_give_up,
        .ctx = config->give_up_ctx,
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

static wq_err
give_up(struct wq__retry *r, wq_key key, unsigned retries)
{
    wq_limiter_forget(r->limiter, key);
    if (r->on_give_up)
        r->on_give_up(r->ctx, key, retries);
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
