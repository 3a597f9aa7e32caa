/* SPDX-License-Identifier: MIT */
/* keymap.h: which key does a line of the input add?
 *
 * The line itself; or with --key, --key-column or --key-const a part of it, or
 * always the same key. So many lines can be one key. A line in which there is no
 * key, or only an empty one, adds nothing.
 */
#ifndef WQ_TOOL_KEYMAP_H
#define WQ_TOOL_KEYMAP_H

#include <stdbool.h>

#include <wq/wq.h>

#include "base/text.h"
#include "options/options.h"

/* Zero, with `options`, is one. */
struct keymap {
    const struct options *options; /* not owned */
    struct wq__text       copy;    /* of the last line, with a NUL behind it */
};

/* Find the key of a line. *key is valid as long as the line, until the next
 * call; if there are columns, a NUL follows the whole line. WQ_ENOTFOUND: the
 * line has no key. */
wq_err keymap_find(struct keymap *map, wq_key line, wq_key *key);
void   keymap_fini(struct keymap *map);

#endif
