/* SPDX-License-Identifier: MIT */
/* failure.c: how is a failure written as JSON? See failure.h. */
#include "http/failure.h"

#include "options/values.h"

void
failure_add(const struct failure *failure, const struct view *view,
            struct wq__text *out)
{
    if (failure->timed_out)
        wq__text_str(out, "\"timed_out\":true");
    else if (failure->signal)
        text_print(out, "\"signal\":\"%s\"",
                   value_signal_name(failure->signal));
    else
        text_print(out, "\"exit\":%d", failure->exit_code);
    text_print(out, ",\"attempt\":%u,\"at\":%.3f", failure->attempt,
               (double)(failure->at_ns - view->started_ns) / 1e9);
    if (failure->line_len) {
        wq__text_str(out, ",\"line\":");
        wq__text_json(out, failure->line, failure->line_len);
    }
}
