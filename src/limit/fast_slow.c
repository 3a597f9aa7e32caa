/* SPDX-License-Identifier: MIT */
/* fast_slow.c: has a key failed too often for a quick retry?
 *
 * A short delay for the first few failures and a long one after. O(1); relies
 * on failures.h to count and to lock.
 */
#include "limit/limiter.h"

#include "config/read.h"
#include "core/mem.h"
#include "limit/counting.h"

struct fast_slow {
    struct wq__counting counting; /* first: see there */
    int64_t             fast_ns, slow_ns;
    unsigned            max_fast; /* so many failures are retried fast */
};

static int64_t
when(void *self, wq_key key)
{
    struct fast_slow *f = self;
    uint32_t          before;

    if (!wq__failures_add(&f->counting.failures, key, &before))
        return f->slow_ns;
    return before < f->max_fast ? f->fast_ns : f->slow_ns;
}

static const wq_limiter_ops ops = {
    .size = sizeof ops,
    .when = when,
    .forget = wq__counting_forget,
    .num_requeues = wq__counting_num_requeues,
    .destroy = wq__counting_destroy,
    .undo = wq__counting_undo,
    .set_clock = wq__limiter_ignore_clock, /* its keys do not expire */
};

wq_limiter *
wq__limiter_fast_slow(const wq_allocator *mem, int64_t fast_ns, int64_t slow_ns,
                      unsigned max_fast)
{
    struct wq__hash_key secret;

    wq_err err =
        wq__check_not_negative("wq_limiter_fast_slow: fast_ns", fast_ns);
    if (!err)
        err = wq__check_not_negative("wq_limiter_fast_slow: slow_ns", slow_ns);
    if (err)
        return wq__limiter_failed(err);
    if (!wq__limiter_secret(&secret))
        return wq__limiter_no_random("wq_limiter_fast_slow");
    struct fast_slow *f = wq__limiter_alloc(mem, sizeof *f, &ops);
    if (!f)
        return wq__limiter_no_memory("wq_limiter_fast_slow");

    f->fast_ns = fast_ns;
    f->slow_ns = slow_ns;
    f->max_fast = max_fast;
    wq__failures_init(&f->counting.failures, &f->counting.base.mem, secret, 0,
                      0);
    return &f->counting.base;
}

wq_limiter *
wq_limiter_fast_slow(int64_t fast_ns, int64_t slow_ns, unsigned max_fast)
{
    return wq__limiter_fast_slow(&wq__mem_default, fast_ns, slow_ns, max_fast);
}
