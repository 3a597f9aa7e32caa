/* SPDX-License-Identifier: MIT */
/* own.c: how does a table of the user's functions become a limiter?
 *
 * A limiter is such a table already: it is copied, with the argument for its
 * functions. They are called without any lock of ours.
 */
#include "limit/limiter.h"

#include "config/read.h"
#include "core/mem.h"
#include "error/error.h"

wq_limiter *
wq__limiter_create(const wq_allocator *mem, const wq_limiter_ops *ops,
                   void *self)
{
    wq_limiter_ops theirs;

    if (!ops)
        return wq__limiter_failed(
            wq_fail(WQ_EINVAL, "wq_limiter_create: ops is NULL"));
    const wq_err err =
        wq__read_sized(ops, "wq_limiter_ops", NULL, sizeof theirs, &theirs);
    if (err)
        return wq__limiter_failed(err);
    wq_limiter *l =
        theirs.when ? wq__limiter_alloc(mem, sizeof *l, &theirs) : NULL;
    if (!l && theirs.destroy)
        theirs.destroy(self);
    if (!theirs.when)
        return wq__limiter_failed(
            wq_fail(WQ_EINVAL, "wq_limiter_ops.when is NULL"));
    if (!l)
        return wq__limiter_no_memory("wq_limiter_create");

    l->self = self;
    l->no_spec = "it has functions of wq_limiter_create()";
    return l;
}

wq_limiter *
wq_limiter_create(const wq_limiter_ops *ops, void *self)
{
    return wq__limiter_create(&wq__mem_default, ops, self);
}
