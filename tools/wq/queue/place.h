/* SPDX-License-Identifier: MIT */
/* place.h: are the files of a queue still where they were opened?
 *
 * The store of a queue in a file can be away for a while: another program has
 * locked it, or the disk is full. If the file, or its directory PATH-wq, was
 * deleted or replaced, it is away for good: the handle never answers again.
 */
#ifndef WQ_TOOL_PLACE_H
#define WQ_TOOL_PLACE_H

#include <stdbool.h>
#include <sys/stat.h>

enum { PLACE_FILES = 2 }; /* PATH, PATH-wq/state */

struct place {
    char       *path[PLACE_FILES]; /* owned; NULL: not known */
    struct stat was[PLACE_FILES];
};

/* Remember the files of the queue, which is open. If it is not in a file, or
 * memory is short, place_is_gone() is false. */
void place_init(struct place *p, const char *url);
void place_fini(struct place *p);

/* Was one of them deleted or replaced since? */
bool place_is_gone(const struct place *p);

#endif
