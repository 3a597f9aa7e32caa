/* SPDX-License-Identifier: MIT */
/* describe.c: how does a limiter become data, and data a limiter?
 *
 * A limiter has its description from the start (spec.h), which is copied. The
 * other way round, each part becomes a limiter of its kind. Cost: O(1).
 */
#include "config/read.h"
#include "core/mem.h"
#include "core/sized.h"
#include "error/error.h"
#include "limit/counting.h"
#include "limit/limiter.h"
#include "limit/spec.h"

/* Would a struct of `size` bytes lack a field that is not 0? */
static bool
exceeds(const wq_limiter_spec *spec, size_t size)
{
    for (size_t i = size; i < sizeof *spec; i++)
        if (((const unsigned char *)spec)[i])
            return true;
    return false;
}

wq_err
wq_limiter_describe(const wq_limiter *l, wq_limiter_spec *out)
{
    wq_limiter_spec known;

    if (wq_limiter_error(l))
        return wq__limiter_explain(l, "wq_limiter_describe: limiter");
    if (!out)
        return wq_fail(WQ_EINVAL, "wq_limiter_describe: out is NULL");
    const wq_err err =
        wq__read_sized(out, "wq_limiter_spec", NULL, sizeof known, &known);
    if (err)
        return err;
    if (l->no_spec)
        return wq_fail(WQ_ENOTSUP, "wq_limiter_describe: %s", l->no_spec);
    if (exceeds(&l->spec, out->size))
        return wq_fail(WQ_ENOTSUP,
                       "wq_limiter_spec.size is %zu: the limiter needs fields "
                       "beyond it",
                       out->size);
    known = l->spec;
    known.size = out->size;
    wq__sized_write(&known, sizeof known, out);
    return WQ_OK;
}

wq_limiter *
wq__limiter_from_spec(const wq_allocator *mem, const wq_limiter_spec *spec)
{
    wq_limiter_spec s;
    wq_limiter     *parts[4];
    size_t          n = 0;

    const wq_err err = wq__spec_read("wq_limiter_from_spec", spec, &s);
    if (err)
        return wq__limiter_failed(err);
    if (s.parts & WQ_PART_EXPONENTIAL)
        parts[n++] = wq__counting_create("wq_limiter_exponential", mem, &s,
                                         WQ_PART_EXPONENTIAL);
    if (s.parts & WQ_PART_FAST_SLOW)
        parts[n++] = wq__counting_create("wq_limiter_fast_slow", mem, &s,
                                         WQ_PART_FAST_SLOW);
    if (s.parts & WQ_PART_BUCKET)
        parts[n++] = wq__limiter_bucket(mem, s.rate, s.burst);
    if (s.parts & WQ_PART_ITEM_BUCKET)
        parts[n++] = wq__limiter_item_bucket(mem, s.item_rate, s.item_burst);

    wq_limiter *whole = n == 1 ? parts[0] : wq__limiter_max_of(mem, n, parts);
    return s.parts & WQ_PART_MAX_WAIT
               ? wq__limiter_with_max_wait(mem, whole, s.max_wait_ns)
               : whole;
}

wq_limiter *
wq_limiter_from_spec(const wq_limiter_spec *spec)
{
    return wq__limiter_from_spec(&wq__mem_default, spec);
}
