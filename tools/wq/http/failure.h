/* SPDX-License-Identifier: MIT */
/* failure.h: how is a failure written as JSON? See state.h. */
#ifndef WQ_TOOL_FAILURE_H
#define WQ_TOOL_FAILURE_H

#include "base/text.h"
#include "run/failures.h"
#include "run/view.h"

/* Add its members to an object, without its key and without braces. */
void failure_add(const struct failure *failure, const struct view *view,
                 struct wq__text *out);

#endif
