/* SPDX-License-Identifier: MIT */
/* results.h: where in --results=DIR is the output of a key?
 *
 *     DIR/1/NAME/stdout   of the last run of the key
 *     DIR/1/NAME/stderr   likewise
 *     DIR/1/NAME/seq      the number of that run
 *     DIR/1/NAME/key      the key, only where NAME was cut
 *
 * as GNU parallel lays it out. NAME is the key, but
 *
 *     \     is \\         /   is \_          (these two as GNU parallel has it)
 *     .     is \.         ..  is \..         (when they are the whole key)
 *     control characters are \xHH            (a newline: \x0a)
 *     no bytes at all are \0
 *     what is then longer than 255 bytes is cut to at most 180, and \+ and the
 *     SHA-256 of the key follow
 *
 * so that no key leads out of DIR, and no two keys have the same NAME.
 */
#ifndef WQ_TOOL_RESULTS_H
#define WQ_TOOL_RESULTS_H

#include <stdbool.h>

#include "run.h"

struct results; /* opaque */

/* Make the directory, and those above it, where they are not there. False: told
 * on stderr. */
bool results_create(const char *dir, struct results **out);
void results_destroy(struct results *results); /* NULL is allowed */

/* Files for the output of this run: fds[0] for stdout, fds[1] for stderr, to be
 * closed by the caller. Those of earlier runs are replaced, not written to: a
 * process that outlived its run may still write there. False: told on stderr.
 */
bool results_open(struct results *results, const struct run *run, int fds[2]);

#endif
