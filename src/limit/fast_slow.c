/* SPDX-License-Identifier: MIT */
/* fast_slow.c: has a key failed too often for a quick retry?
 *
 * A short delay for the first failures and a long one after them; counting.h is
 * the limiter.
 */
#include "limit/limiter.h"

#include "core/mem.h"
#include "limit/counting.h"
#include "limit/spec.h"

wq_limiter *
wq__limiter_fast_slow(const wq_allocator *mem, int64_t fast_ns, int64_t slow_ns,
                      unsigned max_fast)
{
    const wq_limiter_spec spec = {
        .parts = WQ_PART_FAST_SLOW,
        .fast_ns = fast_ns,
        .slow_ns = slow_ns,
        .max_fast = max_fast,
    };
    const wq_err err = wq__spec_check(&spec, "wq_limiter_fast_slow: ");

    return err ? wq__limiter_failed(err)
               : wq__counting_create("wq_limiter_fast_slow", mem, &spec,
                                     WQ_PART_FAST_SLOW);
}

wq_limiter *
wq_limiter_fast_slow(int64_t fast_ns, int64_t slow_ns, unsigned max_fast)
{
    return wq__limiter_fast_slow(&wq__mem_default, fast_ns, slow_ns, max_fast);
}
