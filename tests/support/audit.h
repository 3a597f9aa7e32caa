/* SPDX-License-Identifier: MIT */
/* audit.h: is a queue in a file consistent? For tests and their children. */
#ifndef WQ_TEST_AUDIT_H
#define WQ_TEST_AUDIT_H

#include <stdbool.h>
#include <stdio.h>

#include <wq/inspect.h>

static inline void
audit_print(void *n, const char *text)
{
    (void)fprintf(stderr, "wq_check: %s\n", text);
    ++*(size_t *)n;
}

/* Prints what it finds. */
static inline bool
audit_is_clean(wq_queue *q)
{
    size_t       problems = 0;
    const wq_err err = wq_check(q, audit_print, &problems);

    if (err)
        (void)fprintf(stderr, "wq_check: %s: %s\n", wq_err_name(err),
                      wq_last_error());
    return !err && problems == 0;
}

#endif
