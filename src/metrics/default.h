/* SPDX-License-Identifier: MIT */
/* default.h: which sink do queues have that bring none of their own? */
#ifndef WQ_METRICS_DEFAULT_H
#define WQ_METRICS_DEFAULT_H

#include <wq/metrics.h>

/* False: there is none. *out is a whole one, whoever changes the default
 * meanwhile. [M-07] */
bool wq__metrics_default(wq_metrics *out);

/* WQ_EINVAL: the sink, or one behind it, has a size that we do not know. NULL
 * is allowed. */
wq_err wq__metrics_check(const wq_metrics *metrics);

#endif
