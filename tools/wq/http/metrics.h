/* SPDX-License-Identifier: MIT */
/* metrics.h: what does /metrics contain?
 *
 * The registry's metrics of the queue, and those of the command:
 *
 *     wq_run_done_total         keys that succeeded
 *     wq_run_failed_total       keys that failed for good
 *     wq_run_skipped_total      keys that --resume or --once skipped
 *     wq_run_runs_total         runs started
 *     wq_run_retries_total      runs that failed and are retried
 *     wq_run_restarts_total     runs stopped by --restart
 *     wq_run_timeouts_total     runs stopped by --timeout
 *     wq_run_lost_total         runs of a shared queue whose hold was lost
 *     wq_run_running            current runs
 *     wq_run_slots              maximum of current runs
 *     wq_run_retrying           keys that wait for a retry
 *     wq_run_dead               DEAD keys of a shared queue
 *
 * Gauges of keys are left out while the store does not answer.
 */
#ifndef WQ_TOOL_METRICS_H
#define WQ_TOOL_METRICS_H

#include "base/text.h"
#include "run/view.h"

/* Add the whole text to `out`. False: out of memory. */
bool metrics_add(struct runner *runner, const struct view *view, wq_text format,
                 struct wq__text *out);

#endif
