/* SPDX-License-Identifier: MIT */
/* tail.h: which line did a run write last?
 *
 * For the reason of a failure: the last line that is not blank, or its first
 * RUN_LINE bytes. Of a line that overwrites itself by carriage returns, only the
 * last version counts. Cost: O(bytes) for blank lines, else O(last line).
 */
#ifndef WQ_TOOL_TAIL_H
#define WQ_TOOL_TAIL_H

#include <stddef.h>

#include "process/run.h"

struct tail_line {
    char   bytes[RUN_LINE + 3]; /* three more: where to cut is seen there */
    size_t len;
};

/* Zero before the first piece. */
struct tail {
    struct tail_line last;    /* the last complete line that is not blank */
    struct tail_line current; /* the line that is not complete */
};

/* The next piece of the stream. */
void tail_add(struct tail *tail, const char *data, size_t len);
/* Copy the line into `out`, without a NUL; returns its length. */
size_t tail_read(const struct tail *tail, char out[RUN_LINE]);

#endif
