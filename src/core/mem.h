/* SPDX-License-Identifier: MIT */
/* mem.h: how does the core ask for memory and give it back?
 *
 * Through the allocator of the queue's config, always with sizes, so that an
 * allocator of the user's own can count, limit or pool. Every product of a
 * count and a size goes through wq__mem_array(), which cannot overflow
 * silently.
 */
#ifndef WQ_CORE_MEM_H
#define WQ_CORE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

/* malloc() and free(). */
extern const wq_allocator wq__mem_default;

static inline void *
wq__mem_alloc(const wq_allocator *mem, size_t n)
{
    return mem->alloc(mem->ctx, n);
}

/* `p` may be NULL; `n` is what was asked for. */
static inline void
wq__mem_free(const wq_allocator *mem, void *p, size_t n)
{
    if (p)
        mem->free(mem->ctx, p, n);
}

/* `count` elements of `size` bytes each; NULL when there is no memory or no
 * such number of bytes. */
static inline void *
wq__mem_array(const wq_allocator *mem, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        return NULL;
    return wq__mem_alloc(mem, count * size);
}

/* Memory that begins at a multiple of `align`, a power of two: ask for
 * wq__mem_padded() bytes and use the address that wq__mem_align() makes of it.
 * What goes back to the allocator is the address it gave. */
static inline size_t
wq__mem_padded(size_t n, size_t align)
{
    return n + align - 1;
}

static inline void *
wq__mem_align(void *raw, size_t align)
{
    const uintptr_t p = (uintptr_t)raw;
    return (char *)raw + ((align - (p & (align - 1))) & (align - 1));
}

#endif
