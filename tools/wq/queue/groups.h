/* SPDX-License-Identifier: MIT */
/* groups.h: which group does a key belong to (--group-by)?
 *
 * To the part of the key that the expression matches. Groups take turns, and
 * --group-max bounds how many keys of a group run at a time; the queue does both.
 */
#ifndef WQ_TOOL_GROUPS_H
#define WQ_TOOL_GROUPS_H

#include <wq/wq.h>

#include "options/regex.h"

struct groups {
    const struct regex *expression; /* not owned */
    char text[WQ_KEY_MAX + 1];      /* the key, with a NUL behind it */
};

/* wq_config.group; `ctx` is a struct groups. */
wq_key groups_of(void *ctx, wq_key key);

#endif
