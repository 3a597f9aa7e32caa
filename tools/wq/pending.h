/* SPDX-License-Identifier: MIT */
/* pending.h: which keys were left? --pending-file.
 *
 * All of them, each ended by a NUL, ready for `wq run -0 -a FILE`. The file is
 * replaced in one step when wq ends, so that it can be read until then; nothing
 * left gives an empty one. A device, pipe or link is written to instead.
 */
#ifndef WQ_TOOL_PENDING_H
#define WQ_TOOL_PENDING_H

#include <stdbool.h>

#include <wq/wq.h>

/* Can it be written there? False: told on stderr. */
bool pending_check(const char *file);
/* Write it. False: told on stderr. */
bool pending_write(const char *file, wq_queue *q);

#endif
