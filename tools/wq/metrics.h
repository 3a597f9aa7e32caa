/* SPDX-License-Identifier: MIT */
/* metrics.h: what does /metrics say?
 *
 * What the registry says about the queue, and what only the command knows:
 *
 *     wq_run_done_total         keys that succeeded
 *     wq_run_failed_total       keys that failed for good
 *     wq_run_skipped_total      keys that --resume left out
 *     wq_run_runs_total         runs started
 *     wq_run_retries_total      runs that failed and were put off
 *     wq_run_timeouts_total     runs stopped by --timeout
 *     wq_run_running            runs under way
 *     wq_run_slots              how many there may be
 *     wq_run_retrying           keys that wait because they failed
 */
#ifndef WQ_TOOL_METRICS_H
#define WQ_TOOL_METRICS_H

#include "json.h"
#include "view.h"

/* Add the whole text to `out`. False: no memory. */
bool metrics_add(struct runner *runner, const struct view *view, wq_text format,
                 struct text *out);

#endif
