/* SPDX-License-Identifier: MIT */
/* progress.h: how is progress shown?
 *
 * On a terminal: some lines at the bottom of stderr, redrawn ten times a second
 * and removed at the end. Elsewhere (--progress=always): a plain line every few
 * seconds. SHOW_AUTO: only on a terminal. Not with --quiet.
 */
#ifndef WQ_TOOL_PROGRESS_H
#define WQ_TOOL_PROGRESS_H

#include <stdbool.h>

#include "base/loop.h"
#include "options/options.h"
#include "run/view.h"

struct progress; /* opaque */

/* *out is NULL if nothing is to be shown. False: reported on stderr. Sets its
 * own timer; calls display_set(). */
bool progress_create(const struct options *options, struct loop *loop,
                     struct runner *runner, struct progress **out);
/* Remove the display. NULL is allowed, as below. */
void progress_destroy(struct progress *progress);
/* Before the program stops by SIGTSTP, and after it continues. */
void progress_suspend(struct progress *progress);
void progress_resume(struct progress *progress);

#endif
