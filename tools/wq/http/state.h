/* SPDX-License-Identifier: MIT */
/* state.h: what does the page show? A JSON object:
 *
 *     {"queue":"run", "command":"./build {}", "phase":"running",
 *      "elapsed":12.5, "rate":3.2, "eta":40.1,
 *      "metrics":"...",                 the text of /metrics
 *      "history_from":0, "history":[[t,depth,running,waiting,runs,bad], ...],
 *      "keys":{"query":"", "show":"", "matched":7, "age":0, "rows":[
 *        {"key":"a", "state":"running", "attempt":1, "since":0.4, "slot":2},
 *        {"key":"b", "state":"retrying", "attempt":3, "due":7.1}, ...]}}
 *
 * Times are in seconds. "eta" is present if it can be estimated; "due", "since",
 * "slot", "priority", "again" (runs once more) where they apply. A long key is
 * truncated, and has "cut" and "bytes".
 */
#ifndef WQ_TOOL_STATE_H
#define WQ_TOOL_STATE_H

#include "base/text.h"
#include "display/rate.h"
#include "http/history.h"
#include "http/keys.h"
#include "run/view.h"

/* Its sources. */
struct state {
    struct runner         *runner;
    const struct view     *view;
    const struct run_rate *rate;
    const struct history  *history;
    uint64_t               history_from; /* samples before it were sent */
    const struct keys     *keys;
    bool                   finished; /* the program is about to end */
};

/* Add it to `out`. False: out of memory. */
bool state_add(const struct state *state, struct wq__text *out);

#endif
