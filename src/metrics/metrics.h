/* SPDX-License-Identifier: MIT */
/* metrics.h: what do other rooms, and tests, want of the metrics that a user
 * does not? */
#ifndef WQ_METRICS_METRICS_H
#define WQ_METRICS_METRICS_H

#include <wq/metrics.h>

#include "text/text.h"

/* wq_registry_create() with an allocator, which threads that report call
 * without a lock. */
wq_err wq__registry_create(const wq_allocator *mem, wq_registry **out);

/* Write the whole text to `t`. Returns what went wrong, t->err included. */
wq_err wq__registry_render(wq_registry *registry, wq_text format,
                           struct wq__text *t);

#endif
