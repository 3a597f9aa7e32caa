/* SPDX-License-Identifier: MIT */
/* state.c: what does the page show? See state.h. */
#include "http/state.h"

#include <inttypes.h>
#include <string.h>

#include "http/metrics.h"

static double
seconds(int64_t ns)
{
    return (double)ns / 1e9;
}

/* For display: the arguments separated by spaces. */
static void
add_command(const struct options *options, struct wq__text *out)
{
    struct wq__text words = {0};

    for (char **word = options->command; *word; word++) {
        if (word != options->command)
            wq__text_char(&words, ' ');
        wq__text_str(&words, *word);
    }
    wq__text_json(out, words.data ? words.data : "", words.len);
    out->err |= words.err;
    wq__text_fini(&words);
}

static void
add_history(const struct history *h, uint64_t from, struct wq__text *out)
{
    const uint64_t first = history_first(h, from);

    text_print(out, ",\"history_from\":%" PRIu64 ",\"history\":[", from);
    for (uint64_t i = first; i < h->n; i++) {
        const struct history_sample *s = history_at(h, i);
        text_print(out, "%s[%.3f,%zu,%zu,%zu,%" PRIu64 ",%" PRIu64 "]",
                   i > first ? "," : "", seconds(s->at_ns), s->ready,
                   s->running, s->waiting, s->runs, s->bad);
    }
    wq__text_str(out, "]");
}

static void
add_metrics(const struct state *s, struct wq__text *out)
{
    struct wq__text text = {0};

    out->err |= !metrics_add(s->runner, s->view, WQ_TEXT_PROMETHEUS, &text);
    wq__text_json(out, text.data ? text.data : "", text.len);
    wq__text_fini(&text);
}

bool
state_add(const struct state *s, struct wq__text *out)
{
    const struct view    *v = s->view;
    const struct options *options = view_options(s->runner);
    const int64_t         left_ns = rate_left_ns(s->rate, v);

    wq__text_str(out, "{\"queue\":");
    wq__text_json(out, options->name, strlen(options->name));
    wq__text_str(out, ",\"command\":");
    add_command(options, out);
    text_print(out, ",\"phase\":\"%s\",\"elapsed\":%.3f,\"rate\":%.3f",
               s->finished ? "finished" : phase_name(v->phase),
               seconds(v->now_ns - v->started_ns), rate_runs(s->rate));
    if (left_ns >= 0 && !s->finished)
        text_print(out, ",\"eta\":%.3f", seconds(left_ns));
    wq__text_str(out, ",\"metrics\":");
    add_metrics(s, out);
    add_history(s->history, s->history_from, out);
    wq__text_str(out, ",\"keys\":");
    keys_add(s->keys, v, out);
    wq__text_str(out, "}");
    return !out->err;
}
