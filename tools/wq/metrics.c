/* SPDX-License-Identifier: MIT */
/* metrics.c: what does /metrics say? See metrics.h. */
#include "metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* OpenMetrics ends with this line. */
#define THE_END "# EOF\n"

/* A family with one sample. */
struct family {
    const char *name; /* without _total */
    bool        counter;
    uint64_t    value;
    const char *help;
};

/* {name="run"}, as the registry writes it: whatever the name, it is escaped
 * there already. It does not hold a newline, nor end before the last brace. */
static const char *
find_labels(const char *text, size_t *len)
{
    const char *from = strstr(text, "\nworkqueue_depth{");
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
add_family(struct text *out, const struct family *f, wq_text format,
           const char *labels, size_t len)
{
    const char *total = f->counter ? "_total" : "";
    const char *named = format == WQ_TEXT_OPENMETRICS ? "" : total;

    text_print(out, "# HELP wq_run_%s%s %s\n", f->name, named, f->help);
    text_print(out, "# TYPE wq_run_%s%s %s\n", f->name, named,
               f->counter ? "counter" : "gauge");
    text_print(out, "wq_run_%s%s", f->name, total);
    text_add(out, labels, len);
    text_print(out, " %" PRIu64 "\n", f->value);
}

static void
add_own(struct text *out, const struct view *v, wq_text format,
        const char *labels, size_t len)
{
    const struct family families[] = {
        {"done", true, v->ok, "Keys that succeeded."},
        {"failed", true, v->failed, "Keys that failed for good."},
        {"skipped", true, v->skipped, "Keys that were done before."},
        {"runs", true, v->runs, "Runs of the command that were started."},
        {"retries", true, v->retries, "Runs that failed and were put off."},
        {"timeouts", true, v->timeouts, "Runs that took too long."},
        {"running", false, v->running, "Runs under way."},
        {"slots", false, v->slots, "How many runs there may be at a time."},
        {"retrying", false, v->retrying, "Keys that wait since they failed."},
    };

    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        add_family(out, &families[i], format, labels, len);
}

bool
metrics_add(struct runner *runner, const struct view *view, wq_text format,
            struct text *out)
{
    char  *text;
    size_t len;
    size_t labels_len;

    if (wq_registry_text(view_registry(runner), format, &text, &len))
        return false;
    const char  *labels = find_labels(text, &labels_len);
    const size_t end = format == WQ_TEXT_OPENMETRICS ? strlen(THE_END) : 0;
    text_add(out, text, len - end);
    add_own(out, view, format, labels, labels_len);
    text_add(out, THE_END, end);
    free(text);
    return !out->failed;
}
