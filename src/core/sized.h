/* SPDX-License-Identifier: MIT */
/* sized.h: how is a struct read that a program of another release filled in?
 *
 * Its first member is its size. An older program has fewer members: the missing
 * ones are zero, which means the default. A newer program has more: they must
 * be zero, because this release does not know them. Cost: O(size).
 */
#ifndef WQ_CORE_SIZED_H
#define WQ_CORE_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* No struct of ours will ever be larger. */
#define WQ__SIZED_MAX 4096

/* Can a struct of some release have this size? */
static inline bool
wq__sized_is_possible(size_t size)
{
    return size >= sizeof size && size <= WQ__SIZED_MAX &&
           size % sizeof(void *) == 0;
}

/* Read `from` into `out`, which has `known` bytes. False: the size is wrong, or
 * a member is set that we do not know. */
static inline bool
wq__sized_read(const void *from, size_t known, void *out)
{
    const size_t size = *(const size_t *)from;

    if (!wq__sized_is_possible(size))
        return false;
    for (size_t i = known; i < size; i++)
        if (((const unsigned char *)from)[i])
            return false;
    memset(out, 0, known);
    memcpy(out, from, size < known ? size : known);
    return true;
}

/* Copy `from`, which has `known` bytes, to `to`, up to the size of `to`: its
 * first member, which wq__sized_read() has checked before. */
static inline void
wq__sized_write(const void *from, size_t known, void *to)
{
    size_t size;

    memcpy(&size, to, sizeof size);
    memcpy(to, from, size < known ? size : known);
}

#endif
