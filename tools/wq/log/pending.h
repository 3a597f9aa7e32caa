/* SPDX-License-Identifier: MIT */
/* pending.h: which keys are left at the end? --pending-file.
 *
 * Each key is ended by a NUL, for `wq run -0 -a FILE`. The file is replaced
 * atomically when wq ends, so that wq can read it until then; it is empty if no
 * key is left. A device, pipe or symbolic link is not replaced but written to.
 */
#ifndef WQ_TOOL_PENDING_H
#define WQ_TOOL_PENDING_H

#include <stdbool.h>

#include <wq/wq.h>

/* Can it be written? False: reported on stderr. */
bool pending_check(const char *file);
/* Write it, for each key what line_of() returns. False: reported on stderr. */
bool pending_write(const char *file, wq_queue                     *q,
                   wq_key (*line_of)(void *ctx, wq_key key), void *ctx);

#endif
