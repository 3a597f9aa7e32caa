/* SPDX-License-Identifier: MIT */
/* verbs.h: what does each verb of a shared queue do?
 *
 * One function for each verb that runs no COMMAND: it opens the queue, acts,
 * and returns the exit status. No event loop: it ends when its work is done, and
 * signals end it as they end any program.
 */
#ifndef WQ_TOOL_VERBS_ROOM_H
#define WQ_TOOL_VERBS_ROOM_H

#include "options/options.h"

/* Act as options->verb says. Returns the exit status. */
int verbs_main(const struct options *options);

typedef int verb_function(const struct options *options);

verb_function verb_add;    /* add.c */
verb_function verb_get;    /* get.c */
verb_function verb_done;   /* done.c */
verb_function verb_status; /* status.c */
verb_function verb_list;   /* list.c */
verb_function verb_show;   /* show.c */
verb_function verb_remove; /* change.c */
verb_function verb_retry;  /* change.c */
verb_function verb_drain;  /* drain.c */
verb_function verb_fsck;   /* fsck.c */

#endif
