/* SPDX-License-Identifier: MIT */
/* read.c: reading what users fill in; see read.h. */
#include "config/read.h"

#include <inttypes.h>
#include <math.h>

#include "core/mem.h"
#include "core/sized.h"
#include "error/error.h"

/* Set the sentence: why has wq__sized_read() refused it? */
static wq_err
explain(const void *from, const char *type, const char *macro, size_t known)
{
    size_t size;

    memcpy(&size, from, sizeof size);
    if (wq__sized_is_possible(size))
        return wq_fail(WQ_EINVAL,
                       "%s.size is %zu, and a field after byte %zu is set, "
                       "which this release does not know",
                       type, size, known);
    return wq_fail(WQ_EINVAL, "%s.size is %zu: use %s%ssizeof(%s)", type, size,
                   macro ? macro : "", macro ? " or " : "", type);
}

wq_err
wq__read_sized(const void *from, const char *type, const char *macro,
               size_t known, void *out)
{
    return wq__sized_read(from, known, out) ? WQ_OK
                                            : explain(from, type, macro, known);
}

wq_err
wq__read_allocator(const wq_allocator *from, wq_allocator *out)
{
    if (!from)
        from = &wq__mem_default;
    const wq_err err =
        wq__read_sized(from, "wq_allocator", NULL, sizeof *out, out);
    if (err)
        return err;
    if (!out->alloc)
        return wq_fail(WQ_EINVAL, "wq_allocator.alloc is NULL");
    if (!out->free)
        return wq_fail(WQ_EINVAL, "wq_allocator.free is NULL");
    return WQ_OK;
}

wq_err
wq__check_not_negative(const char *what, int64_t value)
{
    return value >= 0 ? WQ_OK
                      : wq_fail(WQ_EINVAL, "%s is negative (%" PRId64 ")", what,
                                value);
}

wq_err
wq__check_finite(const char *what, double rate)
{
    if (isfinite(rate))
        return WQ_OK;
    return wq_fail(WQ_EINVAL, "%s is %s", what,
                   isnan(rate) ? "not a number" : "infinite: use WQ_RATE_INF");
}
