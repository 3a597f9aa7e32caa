/* SPDX-License-Identifier: MIT */
/* history.h: how did the numbers change over time?
 *
 * One sample per second of the last quarter of an hour, for the charts of the
 * page, even if it is opened late.
 */
#ifndef WQ_TOOL_HISTORY_H
#define WQ_TOOL_HISTORY_H

#include "run/view.h"

#define HISTORY_SAMPLES 900 /* as many seconds as page.html shows */

struct history_sample {
    int64_t  at_ns; /* since the start of the program */
    size_t   ready;
    size_t   running;
    size_t   waiting; /* without those that are retrying */
    size_t   retrying;
    uint64_t runs; /* that are over */
    uint64_t bad;  /* of these: failed */
};

/* Zero is an empty one. */
struct history {
    struct history_sample ring[HISTORY_SAMPLES];
    uint64_t              n; /* samples taken since the start */
};

/* Take a sample, unless there is one of this second. */
void history_take(struct history *history, const struct view *view);

/* The number of the first kept sample that is not before `from`. */
uint64_t history_first(const struct history *history, uint64_t from);
const struct history_sample *history_at(const struct history *history,
                                        uint64_t              number);

#endif
