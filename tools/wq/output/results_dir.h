/* SPDX-License-Identifier: MIT */
/* results_dir.h: where in --results=DIR is the output of a key?
 *
 *     DIR/1/NAME/stdout   of the last run of the key
 *     DIR/1/NAME/stderr   likewise
 *     DIR/1/NAME/seq      the number of that run
 *     DIR/1/NAME/key      the key, only if NAME is truncated
 *
 * This is the layout of GNU parallel. NAME is the key, with these changes:
 *
 *     \     is \\         /   is \_          (both as in GNU parallel)
 *     .     is \.         ..  is \..         (if it is the whole key)
 *     control characters are \xHH            (a newline: \x0a)
 *     an empty key is \0
 *     a name longer than 255 bytes is truncated to at most 180, followed by \+
 *     and the SHA-256 of the key
 *
 * So no key leads out of DIR, and no two keys have the same NAME.
 */
#ifndef WQ_TOOL_RESULTS_DIR_H
#define WQ_TOOL_RESULTS_DIR_H

#include <stdbool.h>

#include "base/text.h"
#include "process/run.h"

struct results_dir {
    const char     *dir;  /* as given */
    int             fd;   /* of DIR/1; -1: no --results */
    struct wq__text name; /* of the current key */
};

/* Create the directory and its parents. False: reported on stderr. */
bool results_dir_create(struct results_dir *results, const char *dir);
void results_dir_close(struct results_dir *results);

/* Open files for the output of this run: fds[0] for stdout, fds[1] for stderr;
 * the caller closes them. Files of earlier runs are replaced, not overwritten: a
 * process that outlived its run may still write to them. False: reported on
 * stderr. */
bool results_dir_open(struct results_dir *results, const struct run *run,
                      int fds[2]);

#endif
