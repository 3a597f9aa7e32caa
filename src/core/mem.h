/* SPDX-License-Identifier: MIT */
/* mem.h: how is memory allocated and freed?
 *
 * Through the allocator of the queue's config, always with sizes, so that an
 * allocator of the user can count, limit or pool. wq__mem_array() multiplies a
 * count and a size, and checks for overflow.
 */
#ifndef WQ_CORE_MEM_H
#define WQ_CORE_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <wq/wq.h>

/* malloc() and free(). */
extern const wq_allocator wq__mem_default;

static inline void *
wq__mem_alloc(const wq_allocator *mem, size_t n)
{
    return mem->alloc(mem->ctx, n);
}

/* `p` may be NULL; `n` is the size it was allocated with. */
static inline void
wq__mem_free(const wq_allocator *mem, void *p, size_t n)
{
    if (p)
        mem->free(mem->ctx, p, n);
}

/* `count` elements of `size` bytes each; NULL: out of memory, or the product
 * overflows. */
static inline void *
wq__mem_array(const wq_allocator *mem, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / size)
        return NULL;
    return wq__mem_alloc(mem, count * size);
}

/* A copy of a string; NULL: out of memory. Free it with wq__mem_free_str(). */
static inline char *
wq__mem_str(const wq_allocator *mem, const char *s)
{
    const size_t size = strlen(s) + 1;
    char        *copy = wq__mem_alloc(mem, size);

    return copy ? memcpy(copy, s, size) : NULL;
}

/* `s` may be NULL. */
static inline void
wq__mem_free_str(const wq_allocator *mem, char *s)
{
    if (s)
        wq__mem_free(mem, s, strlen(s) + 1);
}

/* Memory that begins at a multiple of `align`, a power of two: allocate
 * wq__mem_padded() bytes, and use the address that wq__mem_align() returns.
 * Free the address that the allocator returned. */
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
