/* SPDX-License-Identifier: MIT */
/* own.c: how does a table of the user's functions become a limiter?
 *
 * It is copied, its gaps are filled, and each of ours passes the call on to one
 * of theirs. Cost: one more indirect call. No lock is held meanwhile.
 */
#include "limit/limiter.h"

#include "config/read.h"
#include "core/mem.h"
#include "error/error.h"

struct own {
    wq_limiter     base;
    wq_limiter_ops theirs; /* without gaps */
    void          *self;   /* theirs; given to theirs.destroy */
};

static int64_t
when(void *self, wq_key key)
{
    struct own *o = self;
    return o->theirs.when(o->self, key);
}

static void
forget(void *self, wq_key key)
{
    struct own *o = self;
    o->theirs.forget(o->self, key);
}

static unsigned
num_requeues(void *self, wq_key key)
{
    struct own *o = self;
    return o->theirs.num_requeues(o->self, key);
}

static void
undo(void *self, wq_key key)
{
    struct own *o = self;
    o->theirs.undo(o->self, key);
}

static void
set_clock(void *self, wq_clock *clock)
{
    struct own *o = self;
    o->theirs.set_clock(o->self, clock);
}

static void
destroy(void *self)
{
    struct own *o = self;
    if (o->theirs.destroy)
        o->theirs.destroy(o->self);
}

static const wq_limiter_ops ours = {
    .size = sizeof ours,
    .when = when,
    .forget = forget,
    .num_requeues = num_requeues,
    .destroy = destroy,
    .undo = undo,
    .set_clock = set_clock,
};

static void
fill_gaps(wq_limiter_ops *ops)
{
    if (!ops->forget)
        ops->forget = wq__limiter_ignore_key;
    if (!ops->num_requeues)
        ops->num_requeues = wq__limiter_no_requeues;
    if (!ops->undo)
        ops->undo = wq__limiter_ignore_key;
    if (!ops->set_clock)
        ops->set_clock = wq__limiter_ignore_clock;
}

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
    struct own *o =
        theirs.when ? wq__limiter_alloc(mem, sizeof *o, &ours) : NULL;
    if (!o && theirs.destroy)
        theirs.destroy(self);
    if (!theirs.when)
        return wq__limiter_failed(
            wq_fail(WQ_EINVAL, "wq_limiter_ops.when is NULL"));
    if (!o)
        return wq__limiter_no_memory("wq_limiter_create");

    fill_gaps(&theirs);
    o->theirs = theirs;
    o->self = self;
    return &o->base;
}

wq_limiter *
wq_limiter_create(const wq_limiter_ops *ops, void *self)
{
    return wq__limiter_create(&wq__mem_default, ops, self);
}
