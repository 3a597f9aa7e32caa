/* SPDX-License-Identifier: MIT */
/* state.h: what does the page show at one moment? A JSON object:
 *
 *     {"queue":"run", "command":"./build {}", "phase":"running",
 *      "elapsed":12.5, "rate":3.2, "eta":40.1,
 *      "metrics":"...",                 what /metrics says at this moment
 *      "history_from":0, "history":[[t,depth,running,waiting,runs,bad], ...],
 *      "keys":{"query":"", "show":"", "matched":7, "age":0, "rows":[
 *        {"key":"a", "state":"running", "attempt":1, "since":0.4, "slot":2},
 *        {"key":"b", "state":"retrying", "attempt":3, "due":7.1}, ...]}}
 *
 * Times are in seconds. "eta" is there if one can be given, "due", "since",
 * "slot", "priority", "again" (it runs once more) where they apply. Of a key
 * that is long there is the beginning, "cut" and "bytes".
 */
#ifndef WQ_TOOL_STATE_H
#define WQ_TOOL_STATE_H

#include "history.h"
#include "json.h"
#include "keys.h"
#include "pace.h"
#include "view.h"

/* From what it is made. */
struct state {
    struct runner        *runner;
    const struct view    *view;
    const struct pace    *pace;
    const struct history *history;
    uint64_t              history_from; /* samples before it are known */
    const struct keys    *keys;
    bool                  finished; /* the program is about to end */
};

/* Add it to `out`. False: no memory. */
bool state_add(const struct state *state, struct text *out);

#endif
