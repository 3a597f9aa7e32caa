/* SPDX-License-Identifier: MIT */
/* state.h: what does the page show? A JSON object:
 *
 *     {"queue":"run", "command":"./build {}", "phase":"running",
 *      "elapsed":12.5, "rate":3.2, "eta":40.1,
 *      "metrics":"...",                 the text of /metrics
 *      "counts":{"done":820, "failed":3, "retrying":2, "waiting":0,
 *                "ready":1175, "running":2, "left":1179},
 *      "history_from":0,
 *      "history":[[t,ready,running,waiting,retrying,runs,bad], ...],
 *      "queued":{"count":9, "sum":4.1, "p50":0.2, "p90":1.1, "p99":1.3,
 *                "max":1.27, "from":0.1, "buckets":[[0.2,5], [0.5,4]]},
 *      "worked":{...},
 *      "failed_from":1, "failed":[{"number":1, "key":"c", "exit":3,
 *        "attempt":1, "at":11.2, "line":"c: no such file"}, ...],
 *      "keys":{"query":"", "show":"", "rows":[
 *        {"key":"a", "state":"running", "attempt":1, "since":0.4, "slot":2},
 *        {"key":"b", "state":"retrying", "attempt":3, "due":7.1,
 *         "failure":{"signal":"SEGV", "attempt":2, "at":5.2}}, ...],
 *        "matched":7, "age":0}}
 *
 * Times are in seconds; "t" and "at" are since the start. "eta" is present if it
 * can be estimated; "due", "since", "slot", "priority", "again" (runs once more),
 * "failure" (the last one, if it is known) where they apply. "counts" has the
 * numbers of the terminal, by the same names, and for a shared queue "dead". A
 * bucket is [upper bound, count]; "from" is the lower bound of the first one.
 *
 * "phase" is that of the program; when it ends "finished", or "stopped" if it
 * was stopped or keys are left.
 *
 * A failure has "exit", or "signal" (its name without SIG), or "timed_out":true;
 * "line" is its last line on stderr. "history" and "failed" have what is new
 * since the last event: from the number that "..._from" says. Long keys are cut
 * in the middle: they have "tail", "cut" and "bytes".
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
    uint64_t               failed_from;  /* failures before it were sent */
    const struct keys     *keys;
    bool                   finished; /* the program is about to end */
};

/* Add it to `out`. False: out of memory. */
bool state_add(const struct state *state, struct wq__text *out);

#endif
