/* SPDX-License-Identifier: MIT */
/* counting.c: limiters that count failures; see counting.h. */
#include "limit/counting.h"

#include "limit/draw.h"
#include "limit/failures.h"
#include "limit/secret.h"
#include "limit/spec.h"
#include "port/random.h"

struct counting {
    wq_limiter          base; /* first; its spec makes the delays */
    struct wq__failures failures;
    _Atomic uint64_t    random; /* state of the random numbers; each is drawn by
                                   one addition, and nothing else depends on it:
                                   relaxed */
};

static uint64_t
draw(struct counting *c)
{
    return wq__draw_from(WQ__DRAW_STEP +
                         atomic_fetch_add_explicit(&c->random, WQ__DRAW_STEP,
                                                   memory_order_relaxed));
}

static struct wq__failures *
failures(void *self)
{
    struct counting *c = self;
    return &c->failures;
}

static int64_t
counting_when(void *self, wq_key key)
{
    struct counting       *c = self;
    const wq_limiter_spec *spec = &c->base.spec;
    uint32_t               before;

    if (!wq__failures_add(&c->failures, key, &before)) /* no memory (L-25) */
        return spec->parts & WQ_PART_EXPONENTIAL ? spec->max_ns : spec->slow_ns;
    return wq__spec_delay(spec, before, spec->jitter ? draw(c) : 0);
}

static void
counting_forget(void *self, wq_key key)
{
    wq__failures_forget(failures(self), key);
}

static unsigned
counting_num_requeues(void *self, wq_key key)
{
    return wq__failures_count(failures(self), key);
}

static void
counting_undo(void *self, wq_key key)
{
    wq__failures_undo(failures(self), key);
}

static void
counting_set_clock(void *self, wq_clock *clock)
{
    wq__failures_set_clock(failures(self), clock);
}

static void
counting_destroy(void *self)
{
    wq__failures_fini(failures(self));
}

static const wq_limiter_ops ops = WQ__LIMITER_OPS(counting);

wq_limiter *
wq__counting_create(const char *who, const wq_allocator *mem,
                    const wq_limiter_spec *spec, unsigned part)
{
    struct wq__hash_key secret;
    uint64_t            seed = spec->seed;

    if (!wq__secret_new(&secret) ||
        (spec->jitter && seed == 0 && wq__random(&seed, sizeof seed)))
        return wq__limiter_no_random(who);
    struct counting *c = wq__limiter_alloc(mem, sizeof *c, &ops);
    if (!c)
        return wq__limiter_no_memory(who);

    wq__spec_copy(&c->base.spec, spec, part);
    atomic_init(&c->random, seed);
    wq__failures_init(&c->failures, &c->base.mem, secret, c->base.spec.max_keys,
                      c->base.spec.ttl_ns);
    return &c->base;
}
