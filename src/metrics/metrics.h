/* SPDX-License-Identifier: MIT */
/* metrics.h: what do metrics offer to the rest of the library and to tests
 * only? */
#ifndef WQ_METRICS_METRICS_H
#define WQ_METRICS_METRICS_H

#include <wq/metrics.h>

#include "text/text.h"

/* wq_registry_create() with an allocator. It must be thread-safe: threads that
 * report call it without a lock. */
wq_err wq__registry_create(const wq_allocator *mem, wq_registry **out);

/* Write the whole text to `t`. Returns the first error, t->err included. */
wq_err wq__registry_render(wq_registry *registry, wq_text format,
                           struct wq__text *t);

#endif
