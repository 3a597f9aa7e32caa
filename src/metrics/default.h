/* SPDX-License-Identifier: MIT */
/* default.h: which sink do queues use whose config names none? */
#ifndef WQ_METRICS_DEFAULT_H
#define WQ_METRICS_DEFAULT_H

#include <wq/metrics.h>

/* Copy the default sink to *out. False: there is none. [M-07] */
bool wq__metrics_default(wq_metrics *out);

/* WQ_EINVAL: the sink, or one linked behind it, has an unknown size. NULL is
 * allowed. */
wq_err wq__metrics_check(const wq_metrics *metrics);

/* The sink of a queue: *metrics, that of its config, which may be NULL; or else
 * the default sink, copied to *process_wide. *metrics becomes NULL if there is
 * none, or if the queue has no name. Errors as wq__metrics_check(). */
wq_err wq__metrics_choose(const char *name, const wq_metrics **metrics,
                          wq_metrics *process_wide);

#endif
