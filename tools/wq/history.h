/* SPDX-License-Identifier: MIT */
/* history.h: how did it go over time? A sample a second, of a quarter of an
 * hour, for the charts of the page: who opens it late sees what was before.
 */
#ifndef WQ_TOOL_HISTORY_H
#define WQ_TOOL_HISTORY_H

#include "view.h"

#define HISTORY_SAMPLES 900 /* as many seconds as page.html shows */

struct history_sample {
    int64_t  at_ns;   /* since the program began */
    size_t   in_line; /* ready, or once more when the run is over: the depth */
    size_t   running;
    size_t   waiting;
    uint64_t runs; /* that are over */
    uint64_t bad;  /* of these: without success */
};

/* Zero is an empty one. */
struct history {
    struct history_sample ring[HISTORY_SAMPLES];
    uint64_t              n; /* samples ever taken */
};

/* Take one, if there is none of this second yet. */
void history_take(struct history *history, const struct view *view);

/* The first sample that is kept of those from number `from` on. */
uint64_t history_first(const struct history *history, uint64_t from);
const struct history_sample *history_at(const struct history *history,
                                        uint64_t              number);

#endif
