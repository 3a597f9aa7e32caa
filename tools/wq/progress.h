/* SPDX-License-Identifier: MIT */
/* progress.h: how does the display look?
 *
 * On a terminal: some lines at the bottom of stderr, drawn anew several times a
 * second, gone at the end. Not on a terminal (--progress=always): a plain line
 * now and then. SHOW_AUTO: only on a terminal. Not with --quiet.
 */
#ifndef WQ_TOOL_PROGRESS_H
#define WQ_TOOL_PROGRESS_H

#include <stdbool.h>

#include "loop.h"
#include "options.h"
#include "view.h"

struct progress; /* opaque */

/* *out is NULL if there is to be none. False: told on stderr. Sets its own
 * timer; registers with tell_display(). */
bool progress_create(const struct options *options, struct loop *loop,
                     struct runner *runner, struct progress **out);
/* Takes the display away for good. NULL is allowed, as below. */
void progress_destroy(struct progress *progress);
/* The program is about to be stopped by SIGTSTP, or goes on after it. */
void progress_suspend(struct progress *progress);
void progress_resume(struct progress *progress);

#endif
