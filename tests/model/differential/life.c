/* SPDX-License-Identifier: MIT */
/* life.c: how does a life begin and end, and what does a report say? See
 * differential.h. */
#include "model/differential/world.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- keys ---------------------------------------------------------------- */

wq_key
diff_key(int n)
{
    static char names[DIFF_KEYS][64];

    if (!names[n][0]) /* every fifth is longer than what a record holds */
        (void)snprintf(names[n], sizeof names[n], "k%d%s", n,
                       n % 5 == 4 ? "_with_a_name_that_needs_its_own_memory"
                                  : "");
    return wq_str(names[n]);
}

int
diff_number(wq_key key)
{
    for (int n = 0; n < DIFF_KEYS; n++) {
        const wq_key k = diff_key(n);
        if (k.len == key.len && !memcmp(k.data, key.data, k.len))
            return n;
    }
    return -1;
}

/* ---- dice ---------------------------------------------------------------- */

int
diff_roll(struct diff_world *w, int sides)
{
    return (int)dice_roll(&w->dice, (size_t)sides);
}

int
diff_roll_key(struct diff_world *w)
{
    return diff_roll(w, DIFF_KEYS);
}

int64_t
diff_roll_delay(struct diff_world *w)
{
    const int roll = diff_roll(w, 40);

    if (roll == 0)
        return WQ_FOREVER;
    if (roll == 1)
        return -DIFF_UNIT_NS;
    return roll % 8 * DIFF_UNIT_NS;
}

int
diff_roll_priority(struct diff_world *w)
{
    static const int priorities[] = {0, 0, 1, 5, -1, -5, INT_MAX, INT_MIN};

    return priorities[diff_roll(w, 8)];
}

/* ---- reports ------------------------------------------------------------- */

static char *
line_of(struct diff_world *w, size_t step)
{
    return w->lines[step % DIFF_LINES];
}

void
diff_note(struct diff_world *w, const char *format, ...)
{
    char   *line = line_of(w, w->report->steps++);
    va_list args;
    int     used = 0;

    if (w->h == &w->handles[1])
        used = snprintf(line, DIFF_LINE, "other ");
    va_start(args, format);
    (void)vsnprintf(line + used, DIFF_LINE - (size_t)used, format, args);
    va_end(args);
}

void
diff_note_more(struct diff_world *w, const char *format, ...)
{
    char        *line = line_of(w, w->report->steps - 1);
    const size_t used = strlen(line);
    va_list      args;

    va_start(args, format);
    (void)vsnprintf(line + used, DIFF_LINE - used, format, args);
    va_end(args);
}

__attribute__((format(printf, 2, 3))) static void
say(struct diff_world *w, const char *format, ...)
{
    char        *text = w->report->text;
    const size_t used = strlen(text);
    va_list      args;

    va_start(args, format);
    (void)vsnprintf(text + used, sizeof w->report->text - used, format, args);
    va_end(args);
}

bool
diff_has_failed(const struct diff_world *w)
{
    return w->report->text[0];
}

/* The config of the life, as a scenario says it. */
static void
say_config(struct diff_world *w)
{
    const struct diff_terms *t = w->terms;

    say(w, "    queue limiter=exponential:10ns:100ns");
    if (t->retry)
        say(w, " retry=none%s%s%s", t->retry & WQ_RETRY_ONCE ? "+ONCE" : "",
            t->retry & WQ_RETRY_FAILURES_ONLY ? "+FAILURES_ONLY" : "",
            t->retry & WQ_RETRY_RESPECT ? "+RESPECT" : "");
    if (t->max_retries)
        say(w, " max_retries=%u", t->max_retries);
    if (t->max_len)
        say(w, " max_len=%zu", t->max_len);
    say(w, "%s\n", t->ages ? " ages" : "");
}

void
diff_equal(struct diff_world *w, const char *what, int64_t expected,
           int64_t got)
{
    const size_t steps = w->report->steps;
    const size_t most = getenv("WQ_TRACE") ? DIFF_LINES : DIFF_LAST_LINES;

    if (expected == got || diff_has_failed(w))
        return;
    say(w, "step %zu: %s: expected %" PRId64 ", got %" PRId64 "\n", steps - 1,
        what, expected, got);
    say_config(w);
    if (steps > most)
        say(w, "    # %zu steps before; WQ_TRACE=1 shows at most %d\n",
            steps - most, DIFF_LINES);
    for (size_t i = steps > most ? steps - most : 0; i < steps; i++)
        say(w, "    %s\n", line_of(w, i));
}

/* Errors are compared by name, and the line shows what the queue answered. */
static void
compare_errors(struct diff_world *w, wq_err expected, wq_err got)
{
    char what[100];

    if (got)
        diff_note_more(w, " -> %s", wq_err_name(got) + strlen("WQ_"));
    (void)snprintf(what, sizeof what, "answer (%s, got %s)",
                   wq_err_name(expected), wq_err_name(got));
    diff_equal(w, what, expected, got);
}

void
diff_compare(struct diff_world *w, enum model_answer expected, wq_err got)
{
    compare_errors(w, model_error(expected), got);
}

void
diff_compare_get(struct diff_world *w, enum model_answer expected, wq_err got)
{
    if (expected == MODEL_NOTHING)
        compare_errors(w, w->h->shut ? WQ_ESHUTDOWN : WQ_ETIMEDOUT, got);
    else
        diff_compare(w, expected, got);
}

/* ---- life ---------------------------------------------------------------- */

bool
diff_lacks(const char *word)
{
    const size_t len = strlen(word);

    for (const char *at = backend.lacks; at && *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strcspn(at, " ") == len && !strncmp(at, word, len))
            return true;
    }
    return false;
}

static void
count_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    struct diff_world *w = ctx;

    w->dropped++;
    diff_equal(w, "on_drop: a known key", true, diff_number(key) >= 0);
    diff_equal(w, "on_drop: retries", w->terms->max_retries, retries);
    diff_equal(w, "on_drop: why", WQ_EGIVENUP, why);
}

static void
open_handle(struct diff_world *w, struct diff_handle *h,
            wq_err (*open)(const wq_config *config, wq_queue **out))
{
    const wq_config config = {
        .size = sizeof config,
        .clock = w->clock,
        .limiter = wq_limiter_exponential(10, 100),
        .retry = w->terms->retry,
        .max_retries = w->terms->max_retries,
        .on_drop = count_drop,
        .drop_ctx = w,
        .ages = w->terms->ages,
        .max_len = w->terms->max_len,
    };

    *h = (struct diff_handle){.q = NULL};
    diff_equal(w, "open", WQ_OK, open(&config, &h->q));
}

static void
open_handles(struct diff_world *w)
{
    open_handle(w, &w->handles[0], backend.open);
    w->handles_n = 1;
    if (w->terms->two_handles)
        open_handle(w, &w->handles[w->handles_n++], backend.again);
}

void
diff_reopen(struct diff_world *w)
{
    struct diff_handle *h = w->h;

    diff_note(w, "destroy");
    for (int n = 0; n < DIFF_KEYS; n++)
        if (w->holders[n] == h) {
            const struct model_result back = {
                .outcome = MODEL_BACK,
                .priority = w->model.keys[n].held_priority};
            (void)model_finish(&w->model, n, back, w->now);
            w->items[n] = NULL;
            w->holders[n] = NULL;
        }
    wq_destroy(h->q);
    open_handle(w, h, backend.again);
    diff_count_anew(w);
}

void
diff_begin(struct diff_world *w, const struct diff_terms *terms, uint64_t seed,
           struct diff_report *report)
{
    struct model *m = &w->model;

    memset(w, 0, sizeof *w);
    *report = (struct diff_report){.steps = 0};
    w->terms = terms;
    w->dice = dice_from(seed);
    w->report = report;
    w->clock = wq_clock_fake_create(0);
    w->has_throttle = !diff_lacks("throttle");
    w->knows_waits = !diff_lacks("exact_waits");
    w->is_shared = backend.again != NULL;
    model_init(m, MODEL_FIFO);
    m->respect = terms->retry & WQ_RETRY_RESPECT;
    m->once = terms->retry & WQ_RETRY_ONCE;
    m->failures_only = terms->retry & WQ_RETRY_FAILURES_ONLY;
    m->first_delay = 10;
    m->max_delay = 100;
    m->max_retries = terms->max_retries;
    m->max_len = terms->max_len;
    m->buries = w->is_shared;
    for (int n = 0; n < MODEL_KEYS; n++)
        m->lens[n] = n < DIFF_KEYS ? diff_key(n).len : 0;
    for (int n = 0; backend.part && n < DIFF_KEYS; n++)
        m->parts[n] = 1 + backend.part(diff_key(n));
    open_handles(w);
    w->h = &w->handles[0];
}

void
diff_end(struct diff_world *w)
{
    for (size_t i = 0; i < w->handles_n; i++)
        wq_destroy(w->handles[i].q);
    wq_clock_destroy(w->clock);
}
