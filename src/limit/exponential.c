/* SPDX-License-Identifier: MIT */
/* exponential.c: which options does an exponential limiter have?
 *
 * Checks them and fills in defaults. counting.h is the limiter, delay.h the
 * arithmetic.
 */
#include "limit/limiter.h"

#include "config/read.h"
#include "core/mem.h"
#include "limit/counting.h"
#include "limit/defaults.h"
#include "limit/spec.h"

/* `where` begins the sentence about a wrong field. */
static wq_limiter *
make(const wq_allocator *mem, const wq_limiter_spec *spec, const char *where)
{
    const wq_err err = wq__spec_check(spec, where);

    return err ? wq__limiter_failed(err)
               : wq__counting_create("wq_limiter_exponential", mem, spec,
                                     WQ_PART_EXPONENTIAL);
}

wq_limiter *
wq__limiter_exponential(const wq_allocator *mem, int64_t base_ns,
                        int64_t max_ns)
{
    const wq_limiter_spec spec = {
        .parts = WQ_PART_EXPONENTIAL,
        .base_ns = base_ns,
        .max_ns = max_ns,
        .factor = WQ__DEFAULT_FACTOR,
    };
    return make(mem, &spec, "wq_limiter_exponential: ");
}

wq_limiter *
wq_limiter_exponential(int64_t base_ns, int64_t max_ns)
{
    return wq__limiter_exponential(&wq__mem_default, base_ns, max_ns);
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
    if (err)
        return wq__limiter_failed(err);
    const wq_limiter_spec spec = {
        .parts = WQ_PART_EXPONENTIAL,
        .jitter = o.jitter,
        .base_ns = o.base_ns ? o.base_ns : WQ__DEFAULT_BASE_NS,
        .max_ns = o.max_ns ? o.max_ns : WQ__DEFAULT_MAX_NS,
        .factor = o.factor == 0 ? WQ__DEFAULT_FACTOR : o.factor,
        .seed = o.seed,
        .max_keys = o.max_keys,
        .ttl_ns = o.ttl_ns,
    };
    return make(&mem, &spec, "wq_exponential_options.");
}
