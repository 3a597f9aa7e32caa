/* SPDX-License-Identifier: MIT */
/* state.c: what does the page show at one moment? See state.h. */
#include "state.h"

#include <inttypes.h>
#include <string.h>

#include "metrics.h"

static const char *
phase_name(const struct state *s)
{
    static const char *const names[] = {
        [PHASE_RUNNING] = "running",   [PHASE_FINISHING] = "finishing",
        [PHASE_DRAINING] = "draining", [PHASE_STOPPING] = "stopping",
        [PHASE_KILLING] = "killing",
    };

    return s->finished ? "finished" : names[s->view->phase];
}

static double
seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

/* For people: as words with spaces between. */
static void
add_command(const struct options *options, struct text *out)
{
    struct text words = {0};

    for (char **word = options->command; *word; word++) {
        if (word != options->command)
            text_add(&words, " ", 1);
        text_add(&words, *word, strlen(*word));
    }
    json_string(out, words.data ? words.data : "", words.len);
    out->failed |= words.failed;
    text_fini(&words);
}

static void
add_history(const struct history *h, uint64_t from, struct text *out)
{
    const uint64_t first = history_first(h, from);

    text_print(out, ",\"history_from\":%" PRIu64 ",\"history\":[", from);
    for (uint64_t i = first; i < h->n; i++) {
        const struct history_sample *s = history_at(h, i);
        text_print(out, "%s[%.3f,%zu,%zu,%zu,%" PRIu64 ",%" PRIu64 "]",
                   i > first ? "," : "", seconds(s->at_ns), s->in_line,
                   s->running, s->waiting, s->runs, s->bad);
    }
    text_print(out, "]");
}

static void
add_metrics(const struct state *s, struct text *out)
{
    struct text text = {0};

    out->failed |= !metrics_add(s->runner, s->view, WQ_TEXT_PROMETHEUS, &text);
    json_string(out, text.data ? text.data : "", text.len);
    text_fini(&text);
}

bool
state_add(const struct state *s, struct text *out)
{
    const struct view    *v = s->view;
    const struct options *options = view_options(s->runner);
    const int64_t         left_ns = pace_left_ns(s->pace, v);

    text_print(out, "{\"queue\":");
    json_string(out, options->name, strlen(options->name));
    text_print(out, ",\"command\":");
    add_command(options, out);
    text_print(out, ",\"phase\":\"%s\",\"elapsed\":%.3f,\"rate\":%.3f",
               phase_name(s), seconds(v->now_ns - v->started_ns),
               pace_runs(s->pace));
    if (left_ns >= 0 && !s->finished)
        text_print(out, ",\"eta\":%.3f", seconds(left_ns));
    text_print(out, ",\"metrics\":");
    add_metrics(s, out);
    add_history(s->history, s->history_from, out);
    text_print(out, ",\"keys\":");
    keys_add(s->keys, v, out);
    text_print(out, "}");
    return !out->failed;
}
