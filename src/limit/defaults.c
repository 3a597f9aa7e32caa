/* SPDX-License-Identifier: MIT */
/* defaults.c: which limiter does a queue have whose config names none?
 *
 * A combination of others, with the numbers of defaults.h.
 */
#include "limit/defaults.h"

#include "core/mem.h"
#include "limit/limiter.h"

wq_limiter *
wq__limiter_default(const wq_allocator *mem)
{
    wq_limiter *const parts[] = {
        wq__limiter_exponential(mem, WQ__DEFAULT_BASE_NS, WQ__DEFAULT_MAX_NS),
        wq__limiter_bucket(mem, WQ__DEFAULT_PER_SECOND, WQ__DEFAULT_BURST),
    };
    return wq__limiter_max_of(mem, 2, parts);
}

wq_limiter *
wq__limiter_default_item(const wq_allocator *mem)
{
    return wq__limiter_exponential(mem, WQ__DEFAULT_ITEM_BASE_NS,
                                   WQ__DEFAULT_MAX_NS);
}

wq_limiter *
wq_limiter_default(void)
{
    return wq__limiter_default(&wq__mem_default);
}

wq_limiter *
wq_limiter_default_item(void)
{
    return wq__limiter_default_item(&wq__mem_default);
}
