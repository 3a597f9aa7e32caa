/* SPDX-License-Identifier: MIT */
/* exponential.c: how long does a key wait that has failed n times before?
 *
 * base * 2^n, at most max, less some chance. O(1), and as cheap as counting the
 * failures (failures.h), which does the locking too; chance needs no lock.
 */
#include "limit/limiter.h"

#include "config/read.h"
#include "core/mem.h"
#include "error/error.h"
#include "limit/counting.h"
#include "limit/defaults.h"
#include "port/random.h"

struct exponential {
    struct wq__counting counting; /* first: see there */
    int64_t             base_ns, max_ns;
    wq_jitter           jitter;
    _Atomic uint64_t    chance; /* state of the random numbers; each is drawn by
                                   one addition, and nothing else depends on it:
                                   relaxed */
};

/* The first factor that is no finite double, 2^1024. */
enum { NO_FACTOR = 1024 };

/* What failure number n+1 costs. The product is that of two doubles, as it is
 * elsewhere; so a base above 2^53 ns (104 days) is rounded (L-05). */
static int64_t
backoff(const struct exponential *x, uint32_t n)
{
    if (x->base_ns == 0)
        return n < NO_FACTOR ? 0 : x->max_ns;
    if (n >= 63)
        return x->max_ns;

    const double delay = (double)x->base_ns * (double)(UINT64_C(1) << n);
    if (delay >= 9223372036854775808.0) /* INT64_MAX as a double is this, too */
        return x->max_ns;
    return (int64_t)delay < x->max_ns ? (int64_t)delay : x->max_ns;
}

/* The next random number: SplitMix64 (Steele, Lea and Flood). */
static uint64_t
draw(struct exponential *x)
{
    const uint64_t step = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t       z = step + atomic_fetch_add_explicit(&x->chance, step,
                                                        memory_order_relaxed);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A delay of `least` to `most`. The remainder favours none by more than one
 * part in 2^64 / (most - least). */
static int64_t
between(struct exponential *x, int64_t least, int64_t most)
{
    const uint64_t choices = (uint64_t)(most - least) + 1;
    return least + (int64_t)(draw(x) % choices);
}

static int64_t
when(void *self, wq_key key)
{
    struct exponential *x = self;
    uint32_t            before;

    if (!wq__failures_add(&x->counting.failures, key, &before))
        return x->max_ns;
    const int64_t delay = backoff(x, before);
    if (x->jitter == WQ_JITTER_FULL)
        return between(x, 0, delay);
    if (x->jitter == WQ_JITTER_EQUAL)
        return between(x, delay / 2, delay);
    return delay;
}

static const wq_limiter_ops ops = {
    .size = sizeof ops,
    .when = when,
    .forget = wq__counting_forget,
    .num_requeues = wq__counting_num_requeues,
    .destroy = wq__counting_destroy,
    .undo = wq__counting_undo,
    .set_clock = wq__counting_set_clock,
};

/* `o` was checked and holds no defaults any more: a zero is a zero. */
static wq_limiter *
make(const wq_allocator *mem, const wq_exponential_options *o)
{
    struct wq__hash_key secret;
    uint64_t            seed = o->seed;

    if (!wq__limiter_secret(&secret) ||
        (seed == 0 && wq__random(&seed, sizeof seed)))
        return wq__limiter_no_random("wq_limiter_exponential");
    struct exponential *x = wq__limiter_alloc(mem, sizeof *x, &ops);
    if (!x)
        return wq__limiter_no_memory("wq_limiter_exponential");

    x->base_ns = o->base_ns;
    x->max_ns = o->max_ns;
    x->jitter = o->jitter;
    atomic_init(&x->chance, seed);
    wq__failures_init(&x->counting.failures, &x->counting.base.mem, secret,
                      o->max_keys, o->ttl_ns);
    return &x->counting.base;
}

wq_limiter *
wq__limiter_exponential(const wq_allocator *mem, int64_t base_ns,
                        int64_t max_ns)
{
    const wq_exponential_options plain = {
        .base_ns = base_ns, .max_ns = max_ns, .seed = 1, /* not used */
    };
    wq_err err =
        wq__check_not_negative("wq_limiter_exponential: base_ns", base_ns);
    if (!err)
        err = wq__check_not_negative("wq_limiter_exponential: max_ns", max_ns);
    return err ? wq__limiter_failed(err) : make(mem, &plain);
}

wq_limiter *
wq_limiter_exponential(int64_t base_ns, int64_t max_ns)
{
    return wq__limiter_exponential(&wq__mem_default, base_ns, max_ns);
}

static wq_err
check_options(const wq_exponential_options *o)
{
    wq_err err =
        wq__check_not_negative("wq_exponential_options.base_ns", o->base_ns);
    if (!err)
        err =
            wq__check_not_negative("wq_exponential_options.max_ns", o->max_ns);
    if (!err)
        err =
            wq__check_not_negative("wq_exponential_options.ttl_ns", o->ttl_ns);
    if (!err &&
        ((int)o->jitter < WQ_JITTER_NONE || o->jitter > WQ_JITTER_EQUAL))
        err = wq_fail(WQ_EINVAL,
                      "wq_exponential_options.jitter is %d: not a wq_jitter",
                      (int)o->jitter);
    return err;
}

wq_limiter *
wq_limiter_exponential_with(const wq_exponential_options *options)
{
    const wq_exponential_options none = {.size = sizeof none};
    wq_exponential_options       o;
    wq_allocator                 mem;

    wq_err err =
        wq__read_sized(options ? options : &none, "wq_exponential_options",
                       "WQ_EXPONENTIAL()", sizeof o, &o);
    if (!err)
        err = wq__read_allocator(o.allocator, &mem);
    if (!err)
        err = check_options(&o);
    if (err)
        return wq__limiter_failed(err);
    if (o.base_ns == 0)
        o.base_ns = WQ__DEFAULT_BASE_NS;
    if (o.max_ns == 0)
        o.max_ns = WQ__DEFAULT_MAX_NS;
    return make(&mem, &o);
}
