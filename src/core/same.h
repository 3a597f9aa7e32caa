/* SPDX-License-Identifier: MIT */
/* same.h: are two keys the same? */
#ifndef WQ_CORE_SAME_H
#define WQ_CORE_SAME_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <wq/wq.h>

/* The same as memcmp(), without the call for most keys: eight bytes at a time,
 * then the last eight, which may overlap. */
static inline bool
wq__same_key(wq_key left, wq_key right)
{
    const unsigned char *a = left.data, *b = right.data;
    const size_t         len = left.len;

    if (right.len != len)
        return false;
    if (len < 8 || len > 64)
        return memcmp(a, b, len) == 0;
    for (size_t i = 0; i < len - 8; i += 8)
        if (memcmp(a + i, b + i, 8) != 0)
            return false;
    return memcmp(a + len - 8, b + len - 8, 8) == 0;
}

#endif
