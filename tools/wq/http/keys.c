/* SPDX-License-Identifier: MIT */
/* keys.c: which keys are there, and in which state is each? See keys.h. */
#include "http/keys.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "http/failure.h"

#define SECOND 1e9

static const struct {
    enum keys_state state;
    const char     *name;
} names[] = {
    {KEYS_RUNNING, "running"}, {KEYS_RETRYING, "retrying"},
    {KEYS_WAITING, "waiting"}, {KEYS_READY, "ready"},
    {KEYS_DEAD, "dead"},
};

/* A walk. */
struct walk {
    struct keys       *keys;
    const struct view *view;
    struct run *const *runs; /* current runs; not visited by the walk */
    size_t             n_runs;
    bool               shared; /* other workers may hold keys */
    int64_t            now_ns; /* when the last keys were copied; see visit() */
    uintptr_t          last;   /* address of the last info */
};

static int64_t
clock_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* ---- search -------------------------------------------------------------- */

static unsigned char
lower(unsigned char c)
{
    return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 'a' - 'A') : c;
}

static bool
begins(const unsigned char *text, const unsigned char *with, size_t len)
{
    while (len && lower(*text) == *with)
        text++, with++, len--;
    return !len;
}

/* The search text is in lower case. */
static bool
matches(const struct keys_query *query, wq_key key)
{
    const unsigned char *text = key.data;
    const unsigned char *search = (const unsigned char *)query->search;

    for (size_t i = 0; i + query->search_len <= key.len; i++)
        if (begins(text + i, search, query->search_len))
            return true;
    return false;
}

/* ---- order --------------------------------------------------------------- */

static int
compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Is `a` below `b` in the table? */
static bool
is_after(const struct keys_row *a, const struct keys_row *b)
{
    int by = compare(a->state, b->state);

    if (!by && a->state == KEYS_READY) {
        by = compare(b->priority, a->priority);
        by = by ? by : compare(a->since_ns, b->since_ns);
    } else if (!by)
        by = compare(a->due_ns, b->due_ns);
    by = by ? by : compare((int64_t)a->found, (int64_t)b->found);
    return by > 0;
}

static bool
is_after_at(const struct keys *keys, size_t a, size_t b)
{
    return is_after(&keys->rows[keys->order[a]], &keys->rows[keys->order[b]]);
}

static void
swap(struct keys *keys, size_t a, size_t b)
{
    const uint16_t kept = keys->order[a];

    keys->order[a] = keys->order[b];
    keys->order[b] = kept;
}

static void
sift_up(struct keys *keys, size_t at)
{
    for (; at && is_after_at(keys, at, (at - 1) / 2); at = (at - 1) / 2)
        swap(keys, at, (at - 1) / 2);
}

/* The heap has `n` elements. */
static void
sift_down(struct keys *keys, size_t n)
{
    for (size_t at = 0, below; (below = 2 * at + 1) < n; at = below) {
        if (below + 1 < n && is_after_at(keys, below + 1, below))
            below++;
        if (!is_after_at(keys, below, at))
            return;
        swap(keys, at, below);
    }
}

/* Makes a sorted list of the heap. */
static void
sort(struct keys *keys)
{
    for (size_t n = keys->n; n > 1; n--) {
        swap(keys, 0, n - 1);
        sift_down(keys, n - 1);
    }
}

/* ---- results ------------------------------------------------------------- */

/* Keeps a matching key if it is among the first KEYS_SHOWN; `row` has all but
 * the key. */
static void
found(struct keys *keys, const struct keys_row *row, wq_key key)
{
    uint16_t at;

    keys->matched++;
    if (keys->n < KEYS_SHOWN) {
        at = (uint16_t)keys->n;
        keys->order[keys->n] = at;
    } else {
        at = keys->order[0];
        if (!is_after(&keys->rows[at], row))
            return;
    }
    struct keys_row *kept = &keys->rows[at];
    *kept = *row;
    short_key_set(&kept->key, key);
    if (keys->n < KEYS_SHOWN)
        sift_up(keys, keys->n++);
    else
        sift_down(keys, KEYS_SHOWN);
}

static bool
is_running(const struct walk *w, wq_key key)
{
    for (size_t i = 0; i < w->n_runs; i++)
        for (const struct run *run = w->runs[i]; run; run = run->rest)
            if (run->key.len == key.len &&
                memcmp(run->key.data, key.data, key.len) == 0)
                return true;
    return false;
}

/* A HELD key that does not run yet is shown as ready; one that another worker
 * holds is not shown. */
static enum keys_state
state_of(const wq_key_info *info)
{
    if (info->states & WQ_STATE_DEAD)
        return KEYS_DEAD;
    if (!(info->states & WQ_STATE_WAITING) || info->states & WQ_STATE_READY)
        return KEYS_READY;
    return info->states & WQ_STATE_BACKOFF ? KEYS_RETRYING : KEYS_WAITING;
}

/* Ages count from the moment when a key was copied, and a long walk copies many
 * times: with the time of its beginning for all, keys that are copied later would
 * seem older. wq_each() copies some keys into an array, then visits them; so an
 * info that is not behind the last one is the first of those copied just now. */
static int64_t
copied_at(struct walk *w, const wq_key_info *info)
{
    if ((uintptr_t)info <= w->last || !w->now_ns)
        w->now_ns = clock_ns();
    w->last = (uintptr_t)info;
    return w->now_ns;
}

static bool
visit(void *walk, wq_key key, const wq_key_info *info)
{
    struct walk          *w = walk;
    const enum keys_state state = state_of(info);
    const int64_t         now_ns = copied_at(w, info);

    if (!(w->keys->query.wanted & state) || !matches(&w->keys->query, key) ||
        (info->states & WQ_STATE_HELD && (w->shared || is_running(w, key))))
        return true;
    found(w->keys,
          &(struct keys_row){
              .state = state,
              .attempt = info->requeues + 1,
              .priority = info->priority,
              .since_ns = info->ready_ns < 0 ? -1 : now_ns - info->ready_ns,
              .due_ns = info->wait_ns < 0 ? -1 : now_ns + info->wait_ns,
              .found = w->keys->matched + 1,
          },
          key);
    return true;
}

/* ---- the walk ------------------------------------------------------------ */

bool
keys_may_look(const struct keys_ration *ration, const struct view *view)
{
    return ration->rest_until_ns < view->now_ns + KEYS_OWED_NS;
}

static unsigned
states(unsigned wanted)
{
    unsigned set = 0;

    if (wanted & KEYS_READY)
        set |= WQ_STATE_READY | WQ_STATE_HELD;
    if (wanted & (KEYS_WAITING | KEYS_RETRYING))
        set |= WQ_STATE_WAITING;
    if (wanted & KEYS_DEAD)
        set |= WQ_STATE_DEAD;
    return set;
}

/* After a walk of so many nanoseconds. */
static void
pay(struct keys_ration *ration, int64_t now_ns, int64_t took_ns)
{
    if (ration->rest_until_ns < now_ns)
        ration->rest_until_ns = now_ns;
    ration->rest_until_ns += KEYS_REST * took_ns;
}

bool
keys_look(struct keys *keys, struct runner *runner, const struct view *view,
          struct keys_ration *ration)
{
    const int64_t begun_ns = clock_ns();
    struct walk   w = {
          .keys = keys, .view = view, .shared = view_options(runner)->shared};
    wq_err err = WQ_OK;

    for (size_t i = 0; i < keys->query.search_len; i++)
        keys->query.search[i] =
            (char)lower((unsigned char)keys->query.search[i]);
    w.runs = view_runs(runner, &w.n_runs);
    keys->n = 0;
    keys->matched = 0;
    if (states(keys->query.wanted))
        err =
            wq_each(view_queue(runner), states(keys->query.wanted), visit, &w);
    sort(keys);
    keys->taken_ns = view->now_ns;
    if (ration)
        pay(ration, view->now_ns, clock_ns() - begun_ns);
    return err == WQ_OK;
}

/* ---- writing ------------------------------------------------------------- */

static void
add_seconds(struct wq__text *out, const char *name, int64_t ns)
{
    text_print(out, ",\"%s\":%.3f", name, (double)(ns < 0 ? 0 : ns) / SECOND);
}

static const char *
name_of(enum keys_state state)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].state == state)
            return names[i].name;
    return "";
}

/* Why it failed, if it did and that is known. */
static void
add_failure(const struct keys_row *row, struct runner *runner,
            const struct view *view, struct wq__text *out)
{
    const struct failure *failure = NULL;

    if (row->attempt > 1 || row->state == KEYS_DEAD)
        failure = failures_of(view_failures(runner), &row->key);
    if (failure) {
        wq__text_str(out, ",\"failure\":{");
        failure_add(failure, view, out);
        wq__text_str(out, "}");
    }
}

static void
add_row(const struct keys_row *row, struct runner *runner,
        const struct view *view, struct wq__text *out)
{
    wq__text_str(out, "{");
    short_key_add(&row->key, out);
    text_print(out, ",\"state\":\"%s\",\"attempt\":%u", name_of(row->state),
               row->attempt);
    if (row->again)
        wq__text_str(out, ",\"again\":true");
    if (row->slot)
        text_print(out, ",\"slot\":%u", row->slot);
    if (row->priority)
        text_print(out, ",\"priority\":%d", row->priority);
    if (row->since_ns >= 0)
        add_seconds(out, "since", view->now_ns - row->since_ns);
    if (row->due_ns >= 0)
        add_seconds(out, "due", row->due_ns - view->now_ns);
    add_failure(row, runner, view, out);
    wq__text_str(out, "}");
}

/* A table that is being written. */
struct table {
    struct runner     *runner;
    const struct view *view;
    struct wq__text   *out;
    struct run *const *runs;
    size_t             n_runs;
    size_t             rows;    /* written */
    uint64_t           matched; /* keys that run */
};

static void
write_row(struct table *t, const struct keys_row *row)
{
    if (t->rows++)
        wq__text_char(t->out, ',');
    add_row(row, t->runner, t->view, t->out);
}

static void
write_run(struct table *t, const struct run *run)
{
    wq_key_info     info = {.size = sizeof info};
    struct keys_row row = {
        .state = KEYS_RUNNING,
        .attempt = run->attempt,
        .slot = run->slot,
        .priority = run->priority,
        .since_ns = run->started_ns,
    };

    (void)wq_read_key(view_queue(t->runner), run->key, &info);
    row.again = info.states & WQ_STATE_DIRTY;
    row.due_ns = info.wait_ns < 0 ? -1 : t->view->now_ns + info.wait_ns;
    short_key_set(&row.key, run->key);
    write_row(t, &row);
}

static void
write_runs(struct table *t, const struct keys_query *query)
{
    for (size_t i = 0; i < t->n_runs && query->wanted & KEYS_RUNNING; i++) {
        if (!matches(query, t->runs[i]->key))
            continue;
        t->matched++;
        if (t->rows < KEYS_SHOWN)
            write_run(t, t->runs[i]);
    }
}

/* Has it been started since the walk? */
static bool
runs_now(const struct table *t, const struct short_key *key)
{
    struct short_key of_run;

    for (size_t i = 0; i < t->n_runs; i++)
        if (t->runs[i]->key.len == key->len) {
            short_key_set(&of_run, t->runs[i]->key);
            if (short_key_is(&of_run, key))
                return true;
        }
    return false;
}

/* Returns how many of the keys that the walk has found run now. */
static uint64_t
write_others(struct table *t, const struct keys *keys)
{
    uint64_t started = 0;

    for (size_t i = 0; i < keys->n && t->rows < KEYS_SHOWN; i++) {
        const struct keys_row *row = &keys->rows[keys->order[i]];
        if (runs_now(t, &row->key))
            started++;
        else
            write_row(t, row);
    }
    return started;
}

void
keys_add(const struct keys *keys, struct runner *runner,
         const struct view *view, struct wq__text *out)
{
    const struct keys_query *query = &keys->query;
    struct table             t = {.runner = runner, .view = view, .out = out};

    t.runs = view_runs(runner, &t.n_runs);
    wq__text_str(out, "{\"query\":");
    wq__text_json(out, query->search, query->search_len);
    wq__text_str(out, ",\"show\":\"");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (query->wanted == names[i].state)
            text_print(out, "%s", names[i].name);
    wq__text_str(out, "\",\"rows\":[");
    write_runs(&t, query);
    const uint64_t started = write_others(&t, keys);
    text_print(out, "],\"matched\":%" PRIu64,
               t.matched + keys->matched - started);
    add_seconds(out, "age", view->now_ns - keys->taken_ns);
    wq__text_str(out, "}");
}

unsigned
keys_state_named(const char *name)
{
    unsigned all = 0;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i].name) == 0)
            return names[i].state;
        all |= names[i].state;
    }
    return *name && strcmp(name, "all") != 0 ? 0 : all;
}
