/* SPDX-License-Identifier: MIT */
/* reason.h: how is a failure shown on a terminal?
 *
 *     src/a.c: exit 1 (attempt 2): error: expected ';' before '}'
 *
 * The key and the line are bytes of others: see printable.h.
 */
#ifndef WQ_TOOL_REASON_H
#define WQ_TOOL_REASON_H

#include "display/printable.h"
#include "run/failures.h"

/* Write it in at most so many columns to `out`, which has
 * PRINTABLE_SIZE(columns) bytes. Not terminated. Returns the number of bytes;
 * *used is the number of columns. */
size_t reason_print(const struct printable *s, const struct failure *failure,
                    size_t columns, char *out, size_t *used);

#endif
