/* SPDX-License-Identifier: MIT */
/* default.h: which sink do queues have that bring none of their own? */
#ifndef WQ_METRICS_DEFAULT_H
#define WQ_METRICS_DEFAULT_H

#include <wq/metrics.h>

/* False: there is none. *out is a whole one, whoever changes the default
 * meanwhile. [M-07] */
bool wq__metrics_default(wq_metrics *out);

/* Has the sink, and each one behind it, a size that we know? NULL: yes. */
bool wq__metrics_are_valid(const wq_metrics *metrics);

#endif
