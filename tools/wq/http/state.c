/* SPDX-License-Identifier: MIT */
/* state.c: what does the page show? See state.h. */
#include "http/state.h"

#include <inttypes.h>
#include <string.h>

#include "http/failure.h"
#include "http/metrics.h"
#include "queue/server.h"

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
        text_print(out, "%s[%.3f,%zu,%zu,%zu,%zu,%" PRIu64 ",%" PRIu64 "]",
                   i > first ? "," : "", seconds(s->at_ns), s->ready,
                   s->running, s->waiting, s->retrying, s->runs, s->bad);
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

/* The names are those of the terminal. */
static void
add_counts(const struct view *v, bool shared, struct wq__text *out)
{
    text_print(out,
               ",\"counts\":{\"done\":%" PRIu64 ",\"failed\":%" PRIu64
               ",\"retrying\":%zu,\"waiting\":%zu,\"ready\":%zu,"
               "\"running\":%zu,\"left\":%zu",
               v->counts.ok, v->counts.failed, v->retrying,
               v->waiting - v->retrying, v->ready, v->running, v->left);
    if (shared)
        text_print(out, ",\"dead\":%zu", v->dead);
    wq__text_str(out, "}");
}

/* Buckets up to 1, 2, 5, 10, ... times a microsecond, from the first that is
 * not empty to the last. */
static void
add_buckets(const struct durations *d, struct wq__text *out)
{
    static const int64_t parts[] = {1, 2, 5};
    const uint64_t       count = d->count;
    uint64_t             seen = 0;
    int64_t              from_ns = 0;

    for (int64_t power = DURATIONS_FIRST_NS;
         seen < count && power <= DURATIONS_LAST_NS; power *= 10)
        for (size_t i = 0; i < 3 && seen < count; i++) {
            const int64_t  to_ns = power * parts[i];
            const uint64_t n = durations_between(d, from_ns, to_ns);
            if (n && !seen)
                text_print(out, ",\"from\":%g,\"buckets\":[", seconds(from_ns));
            if (n || seen)
                text_print(out, "%s[%g,%" PRIu64 "]", seen ? "," : "",
                           seconds(to_ns), n);
            seen += n;
            from_ns = to_ns;
        }
    if (seen)
        wq__text_str(out, "]");
}

static void
add_durations(const char *name, const struct durations *d, struct wq__text *out)
{
    text_print(out,
               ",\"%s\":{\"count\":%" PRIu64 ",\"sum\":%.6f,\"p50\":%.6f,"
               "\"p90\":%.6f,\"p99\":%.6f,\"max\":%.6f",
               name, (uint64_t)d->count, seconds(d->sum_ns),
               seconds(durations_quantile(d, 0.5)),
               seconds(durations_quantile(d, 0.9)),
               seconds(durations_quantile(d, 0.99)), seconds(d->longest_ns));
    add_buckets(d, out);
    wq__text_str(out, "}");
}

static void
add_failed(const struct state *s, struct wq__text *out)
{
    const struct failures *failures = view_failures(s->runner);
    const uint64_t         from = failures_oldest(failures, s->failed_from);

    text_print(out, ",\"failed_from\":%" PRIu64 ",\"failed\":[",
               s->failed_from);
    for (uint64_t n = from; n <= failures->count; n++) {
        const struct failure *failure = failures_at(failures, n);
        if (!failure)
            break; /* out of memory: none is kept */
        text_print(out, "%s{\"number\":%" PRIu64 ",", n > from ? "," : "", n);
        short_key_add(&failure->key, out);
        wq__text_char(out, ',');
        failure_add(failure, s->view, out);
        wq__text_char(out, '}');
    }
    wq__text_str(out, "]");
}

static const char *
phase_of(const struct state *s)
{
    if (!s->finished)
        return phase_name(s->view->phase);
    return s->view->left || s->view->phase >= PHASE_DRAINING ? "stopped"
                                                             : "finished";
}

static void
add_server(struct runner *runner, struct wq__text *out)
{
    struct server server;

    if (!server_read(view_queue(runner), &server))
        return;
    wq__text_str(out, ",\"server\":");
    server_json(&server, out);
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
               phase_of(s), seconds(v->now_ns - v->started_ns),
               rate_runs(s->rate));
    if (left_ns >= 0 && !s->finished)
        text_print(out, ",\"eta\":%.3f", seconds(left_ns));
    add_server(s->runner, out);
    wq__text_str(out, ",\"metrics\":");
    add_metrics(s, out);
    add_counts(v, options->shared, out);
    add_history(s->history, s->history_from, out);
    add_durations("queued", &view_durations(s->runner)->queued, out);
    add_durations("worked", &view_durations(s->runner)->worked, out);
    add_failed(s, out);
    wq__text_str(out, ",\"keys\":");
    keys_add(s->keys, s->runner, v, out);
    wq__text_str(out, "}");
    return !out->err;
}
