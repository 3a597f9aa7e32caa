/* SPDX-License-Identifier: MIT */
/* summary.c: what do the last lines on stderr say? */
#include "display/summary.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/report.h"
#include "display/printable.h"
#include "display/reason.h"

/* Appends to `text` as much as fits. */
__attribute__((format(printf, 4, 5))) static void
add(char *text, size_t size, size_t *len, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const int n = vsnprintf(text + *len, size - *len, format, args);
    va_end(args);
    if (n > 0)
        *len += (size_t)n < size - *len ? (size_t)n : size - *len - 1;
}

static void
add_count(char *text, size_t size, size_t *len, uint64_t n, const char *before,
          const char *one, const char *many)
{
    add(text, size, len, "%s%llu %s", before, (unsigned long long)n,
        n == 1 ? one : many);
}

/* How many keys there were; and how often they were settled, if that differs: a
 * key may be added again, or run again by requeue-after. */
static void
add_keys(char *text, size_t size, size_t *len, const struct view *view)
{
    const uint64_t times = view->counts.ok + view->counts.failed;
    const uint64_t settled =
        view->distinct ? view->distinct + view->counts.bad : times;

    add_count(text, size, len, settled + view->left - view->left_again, "",
              "key", "keys");
    if (settled < times)
        add(text, size, len, " settled %llu times", (unsigned long long)times);
}

char *
summary_line(const struct view *view, char *text, size_t size)
{
    size_t len = 0;

    text[0] = '\0';
    add_keys(text, size, &len, view);
    add_count(text, size, &len, view->counts.ok, ", ", "ok", "ok");
    add_count(text, size, &len, view->counts.failed, ", ", "failed", "failed");
    add_count(text, size, &len, view->left, ", ", "left", "left");
    add_count(text, size, &len, view->counts.adds, "; ", "add", "adds");
    if (view->counts.merged)
        add(text, size, &len, " (%.0f%% deduplicated)",
            100.0 * (double)view->counts.merged / (double)view->counts.adds);
    add_count(text, size, &len, view->counts.retries, "; ", "retry", "retries");
    if (view->counts.tempfails)
        add(text, size, &len, " (%llu requested)",
            (unsigned long long)view->counts.tempfails);
    if (view->counts.skipped)
        add_count(text, size, &len, view->counts.skipped, "; ", "skipped",
                  "skipped");
    if (view->counts.unmatched)
        add_count(text, size, &len, view->counts.unmatched, "; ",
                  "line without a key", "lines without a key");
    if (view->counts.restarts)
        add_count(text, size, &len, view->counts.restarts, "; ", "restart",
                  "restarts");
    if (view->counts.timeouts)
        add_count(text, size, &len, view->counts.timeouts, "; ", "time-out",
                  "time-outs");
    if (view->counts.lost)
        add_count(text, size, &len, view->counts.lost, "; ", "hold lost",
                  "holds lost");
    if (view->unread)
        add(text, size, &len, "; input was left unread");
    return text;
}

/* Wider than most terminals, but a line of a log. */
#define FAILURE_COLUMNS 240

static void
report_failure(const struct printable *printable, const struct failure *failure)
{
    char         text[PRINTABLE_SIZE(FAILURE_COLUMNS)];
    size_t       used;
    const size_t len =
        reason_print(printable, failure, FAILURE_COLUMNS, text, &used);

    if (failure->times > 1)
        report("  %.*s [%u times]", (int)len, text, failure->times);
    else
        report("  %.*s", (int)len, text);
}

void
summary_failures(const struct failures *failures, const char *joblog)
{
    struct printable      printable;
    const struct failure *failure;

    if (!failures->count)
        return;
    printable_init(&printable);
    report("failed keys:");
    for (size_t i = 0; (failure = failures_first(failures, i)); i++)
        report_failure(&printable, failure);
    printable_fini(&printable);
    if (!failures->beyond)
        return;
    report("  and %" PRIu64 " more; %s%s", failures->beyond,
           joblog ? "see " : "--joblog=FILE records all of them",
           joblog ? joblog : "");
}
