/* SPDX-License-Identifier: MIT */
/* groups.c: which group does a key belong to? See groups.h. */
#include "queue/groups.h"

#include <string.h>

/* The queue wants a part of the key itself. */
wq_key
groups_of(void *ctx, wq_key key)
{
    struct groups *groups = ctx;

    *(char *)mempcpy(groups->text, key.data, key.len) = '\0';
    const wq_key part = regex_find(groups->expression, groups->text);
    return wq_bytes((const char *)key.data +
                        ((const char *)part.data - groups->text),
                    part.len);
}
