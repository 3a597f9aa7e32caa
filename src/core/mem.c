/* SPDX-License-Identifier: MIT */
/* mem.c: which allocator does a queue use whose config names none? */
#include "core/mem.h"

#include <stdlib.h>

static void *
allocate(void *ctx, size_t n)
{
    (void)ctx;
    return malloc(n);
}

static void
release(void *ctx, void *p, size_t n)
{
    (void)ctx;
    (void)n;
    free(p);
}

const wq_allocator wq__mem_default = {
    .size = sizeof(wq_allocator),
    .alloc = allocate,
    .free = release,
};
