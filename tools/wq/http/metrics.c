/* SPDX-License-Identifier: MIT */
/* metrics.c: what does /metrics contain? See metrics.h. */
#include "http/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "queue/server.h"

/* The last line of OpenMetrics. */
#define LAST_LINE "# EOF\n"

enum kind {
    COUNTER,
    GAUGE,
    GAUGE_MS, /* the value is in milliseconds, the sample in seconds */
};

/* A metric family with one sample. */
struct family {
    const char *name; /* without _total */
    enum kind   kind;
    uint64_t    value;
    const char *help;
};

/* The labels {name="run"} as the registry writes them, escaped: they contain no
 * newline and end with the last brace of the line. */
static const char *
find_labels(const char *text, size_t *len)
{
    const char *from = strstr(text, "\nworkqueue_adds_total{");
    const char *end = from ? strchr(from + 1, '\n') : NULL;

    while (end && *end != '}')
        end--;
    if (!end)
        return *len = 0, "";
    from = strchr(from, '{');
    *len = (size_t)(end - from) + 1;
    return from;
}

static void
add_family(struct wq__text *out, const struct family *f, wq_text format,
           const char *labels, size_t len)
{
    const char *total = f->kind == COUNTER ? "_total" : "";
    const char *named = format == WQ_TEXT_OPENMETRICS ? "" : total;

    text_print(out, "# HELP wq_run_%s%s %s\n", f->name, named, f->help);
    text_print(out, "# TYPE wq_run_%s%s %s\n", f->name, named,
               f->kind == COUNTER ? "counter" : "gauge");
    text_print(out, "wq_run_%s%s", f->name, total);
    wq__text_add(out, labels, len);
    if (f->kind == GAUGE_MS)
        text_print(out, " %" PRIu64 ".%03" PRIu64 "\n", f->value / 1000,
                   f->value % 1000);
    else
        text_print(out, " %" PRIu64 "\n", f->value);
}

static void
add_own(struct wq__text *out, const struct view *v, wq_text format,
        const char *labels, size_t len)
{
    const struct family families[] = {
        {"done", COUNTER, v->counts.ok, "Keys that succeeded."},
        {"failed", COUNTER, v->counts.failed, "Keys that failed for good."},
        {"skipped", COUNTER, v->counts.skipped,
         "Keys that --resume or --once skipped."},
        {"runs", COUNTER, v->counts.runs, "Runs that were started."},
        {"retries", COUNTER, v->counts.retries,
         "Runs that failed and are retried."},
        {"restarts", COUNTER, v->counts.restarts, "Runs stopped by --restart."},
        {"timeouts", COUNTER, v->counts.timeouts, "Runs stopped by --timeout."},
        {"lost", COUNTER, v->counts.lost,
         "Runs of a shared queue whose hold was lost."},
        {"running", GAUGE, v->running, "Current runs."},
        {"slots", GAUGE, v->slots, "Maximum of current runs."},
    };

    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        add_family(out, &families[i], format, labels, len);
}

/* Of keys. They are left out while they are not known: 0 would be a value. */
static void
add_keys(struct wq__text *out, const struct view *v, wq_text format,
         const char *labels, size_t len)
{
    const struct family families[] = {
        {"retrying", GAUGE, v->retrying, "Keys that wait for a retry."},
        {"dead", GAUGE, v->dead, "DEAD keys of a shared queue."},
    };

    for (size_t i = 0; !v->outdated && i < sizeof families / sizeof *families;
         i++)
        add_family(out, &families[i], format, labels, len);
}

/* Of the server of the queue, if it has one. */
static void
add_server(struct wq__text *out, wq_queue *q, wq_text format,
           const char *labels, size_t len)
{
    struct server server;

    if (!server_read(q, &server))
        return;
    const struct family families[] = {
        {"server_up", GAUGE, server.reachable,
         "Whether the server of the queue has answered the last call."},
        {"server_reconnects", COUNTER, server.reconnects,
         "Connections to the server that were lost and made again."},
        {"lease_left_seconds", GAUGE_MS,
         (uint64_t)(server.lease_left_ns / 1000000),
         "For how long the holds of this worker are certain."},
    };

    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        add_family(out, &families[i], format, labels, len);
}

bool
metrics_add(struct runner *runner, const struct view *view, wq_text format,
            struct wq__text *out)
{
    char  *text;
    size_t len;
    size_t labels_len;

    if (wq_registry_text(view_registry(runner), format, &text, &len))
        return false;
    const char  *labels = find_labels(text, &labels_len);
    const size_t end = format == WQ_TEXT_OPENMETRICS ? strlen(LAST_LINE) : 0;
    wq__text_add(out, text, len - end);
    add_own(out, view, format, labels, labels_len);
    add_keys(out, view, format, labels, labels_len);
    add_server(out, view_queue(runner), format, labels, labels_len);
    wq__text_add(out, LAST_LINE, end);
    free(text);
    return !out->err;
}
