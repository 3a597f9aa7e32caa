/* SPDX-License-Identifier: MIT */
/* backoff.h: how long does a key wait that failed for the nth time?
 *
 * Anything from 0 to base * factor^(n-1), at most max: full jitter. As the
 * library's exponential limiter, which knows the factor 2 alone.
 */
#ifndef WQ_TOOL_BACKOFF_H
#define WQ_TOOL_BACKOFF_H

#include <wq/limiter.h>

#include "values.h"

/* May be a failed limiter; NULL: out of memory. */
wq_limiter *backoff_create(const struct backoff *how);

#endif
