/* SPDX-License-Identifier: MIT */
/* locked_mem.c: an allocator behind a lock; see locked_mem.h. */
#include "limit/locked_mem.h"

#include "core/mem.h"

static void *
allocate(void *ctx, size_t n)
{
    const struct wq__locked_mem *l = ctx;

    wq__lock_take(l->lock);
    void *p = wq__mem_alloc(l->mem, n);
    wq__lock_release(l->lock);
    return p;
}

static void
release(void *ctx, void *p, size_t n)
{
    const struct wq__locked_mem *l = ctx;

    wq__lock_take(l->lock);
    wq__mem_free(l->mem, p, n);
    wq__lock_release(l->lock);
}

wq_allocator
wq__locked_mem_allocator(struct wq__locked_mem *l)
{
    return (wq_allocator){
        .size = sizeof(wq_allocator),
        .ctx = l,
        .alloc = allocate,
        .free = release,
    };
}
