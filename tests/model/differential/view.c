/* SPDX-License-Identifier: MIT */
/* view.c: do the queue and the model look alike from outside? See
 * differential.h. */
#include "model/differential/world.h"

#include <stdio.h>

/* ---- keys ---------------------------------------------------------------- */

static unsigned
states_of(const struct diff_world *w, int n)
{
    const struct model_key *k = &w->model.keys[n];

    return (k->ready ? WQ_STATE_READY : 0U) | (k->held ? WQ_STATE_HELD : 0U) |
           (k->dirty ? WQ_STATE_DIRTY : 0U) |
           (k->waiting ? WQ_STATE_WAITING : 0U) |
           (k->waiting && k->backoff ? WQ_STATE_BACKOFF : 0U) |
           (k->dead ? WQ_STATE_DEAD : 0U);
}

/* A time that has passed, or will. */
static int64_t
until(const struct diff_world *w, int64_t at)
{
    return at == INT64_MAX ? WQ_FOREVER : at - w->now;
}

static void
same(struct diff_world *w, int n, const char *what, int64_t expected,
     int64_t got)
{
    char text[80];

    if (expected == got)
        return;
    (void)snprintf(text, sizeof text, "%s of k%d", what, n);
    diff_equal(w, text, expected, got);
}

/* O-32 */
static void
compare_info(struct diff_world *w, int n, const wq_key_info *info)
{
    const struct model_key *k = &w->model.keys[n];
    const bool              ages = w->terms->ages;

    same(w, n, "states", states_of(w, n), info->states);
    same(w, n, "priority", model_priority(&w->model, n), info->priority);
    same(w, n, "requeues", w->model.failures[n], info->requeues);
    same(w, n, "wait_ns", k->waiting ? until(w, k->at) : -1, info->wait_ns);
    same(w, n, "ready_ns",
         ages && model_is_wanted(&w->model, n) ? w->now - k->since : -1,
         info->ready_ns);
    same(w, n, "held_ns", ages && k->held ? w->now - k->got : -1,
         info->held_ns);
    same(w, n, "fence", k->held ? (int64_t)w->fences[n] : 0,
         (int64_t)info->fence);
}

static void
compare_keys(struct diff_world *w)
{
    for (int n = 0; n < DIFF_KEYS; n++) {
        wq_key_info info = {.size = sizeof info};

        diff_equal(w, "read_key", WQ_OK,
                   wq_read_key(w->h->q, diff_key(n), &info));
        compare_info(w, n, &info);
        same(w, n, "num_requeues", w->model.failures[n],
             wq_num_requeues(w->h->q, diff_key(n)));
    }
}

struct walk {
    struct diff_world *w;
    int                seen[DIFF_KEYS];
};

static bool
visit(void *ctx, wq_key key, const wq_key_info *info)
{
    struct walk *walk = ctx;
    const int    n = diff_number(key);

    diff_equal(walk->w, "a key of a walk is known", true, n >= 0);
    if (n < 0)
        return false;
    compare_info(walk->w, n, info);
    walk->seen[n]++;
    return true;
}

/* O-33 S-08: a shared queue may show a key more than once. */
static void
compare_walk(struct diff_world *w)
{
    const unsigned states = diff_roll(w, 2) ? 0 : 1U << diff_roll(w, 6);
    const unsigned any = states ? states : 63;
    struct walk    walk = {.w = w};

    diff_equal(w, "each", WQ_OK, wq_each(w->h->q, states, visit, &walk));
    for (int n = 0; n < DIFF_KEYS; n++) {
        const bool has_state = states_of(w, n) & any;
        const int  seen = w->is_shared && walk.seen[n] > 1 ? 1 : walk.seen[n];
        same(w, n, "visits", has_state, seen);
    }
}

/* ---- numbers ------------------------------------------------------------- */

/* O-31 */
static void
compare_depths(struct diff_world *w)
{
    wq_depth depths[2 * DIFF_KEYS + 1];
    size_t   n = 0;

    diff_equal(w, "read_depths", WQ_OK,
               wq_read_depths(w->h->q, depths, 2 * DIFF_KEYS + 1, &n));
    diff_equal(w, "priorities in use", (int64_t)model_levels(&w->model),
               (int64_t)n);
    for (size_t i = 0; i < n && !diff_has_failed(w); i++)
        diff_equal(w, "keys of a priority",
                   model_depth(&w->model, depths[i].priority),
                   (int64_t)depths[i].keys);
}

/* Two numbers by their names. */
#define SAME(expected, s, field)                                               \
    diff_equal(w, "stats." #field, (int64_t)(expected), (int64_t)(s)->field)

/* What the model counts, too; and what stays 0 in these worlds. */
#define COUNTED(X)                                                             \
    X(adds)                                                                    \
    X(merged) X(retries) X(gets) X(dones) X(removed) X(deferred) X(drops)
#define NOT_COUNTED(X) X(displaced) X(overdue) X(lost) X(expired)

/* What is counted through all handles. */
static void
compare_counts(struct diff_world *w, const wq_stats *sum)
{
    const struct model *m = &w->model;

#define SAME_AS_MODEL(field) SAME(m->field, sum, field);
#define NONE(field) SAME(0, sum, field);
    COUNTED(SAME_AS_MODEL)
    NOT_COUNTED(NONE)
#undef SAME_AS_MODEL
#undef NONE
    diff_equal(w, "calls of on_drop", w->given_up, w->dropped);
}

static void
compare_ages(struct diff_world *w, const wq_stats *s)
{
    int64_t sum = 0, longest = 0;

    for (int n = 0; n < DIFF_KEYS; n++) {
        const struct model_key *k = &w->model.keys[n];
        const int64_t           age = k->held ? w->now - k->got : 0;
        sum += age;
        longest = age > longest ? age : longest;
    }
    SAME(w->terms->ages ? sum : -1, s, unfinished_ns);
    SAME(w->terms->ages ? longest : -1, s, longest_ns);
}

/* What every handle sees. */
static void
compare_moment(struct diff_world *w, const struct diff_handle *h,
               const wq_stats *s)
{
    const struct model       *m = &w->model;
    const struct model_counts keys = model_counts(m);
    size_t                    holders = 0;

    for (size_t i = 0; i < w->handles_n; i++)
        holders += w->handles[i].held > 0;
    SAME(m->ready_len, s, ready);
    SAME(keys.held, s, held);
    SAME(keys.dirty, s, dirty);
    SAME(keys.waiting, s, waiting);
    if (w->knows_waits)
        SAME(model_known(m), s, known);
    SAME(keys.dead, s, dead);
    SAME(until(w, model_first_deadline(m)), s, next_ns);
    SAME(h->paused ? 0 : m->ready_len, s, offered);
    SAME(h->paused, s, paused);
    SAME(h->shut, s, shutting_down);
    SAME(0, s, sleeping);
    SAME(w->is_shared ? holders : 0, s, holders);
    compare_ages(w, s);
}

static void
add_counts(wq_stats *sum, const wq_stats *s)
{
#define ADD(field) sum->field += s->field;
    COUNTED(ADD)
    NOT_COUNTED(ADD)
#undef ADD
}

void
diff_count_anew(struct diff_world *w)
{
    const struct model *m = &w->model;
    wq_stats            sum = {.size = sizeof sum};

    for (size_t i = 0; i < w->handles_n; i++) {
        wq_stats s = {.size = sizeof s};
        diff_equal(w, "read_stats", WQ_OK, wq_read_stats(w->handles[i].q, &s));
        add_counts(&sum, &s);
    }
#define MISSING(field) .field = m->field - sum.field,
    w->gone = (wq_stats){COUNTED(MISSING)};
#undef MISSING
}

/* O-30 S-08 */
static void
compare_stats(struct diff_world *w)
{
    wq_stats sum = w->gone;

    for (size_t i = 0; i < w->handles_n; i++) {
        wq_stats s = {.size = sizeof s};

        diff_equal(w, "read_stats", WQ_OK, wq_read_stats(w->handles[i].q, &s));
        compare_moment(w, &w->handles[i], &s);
        add_counts(&sum, &s);
    }
    compare_counts(w, &sum);
}

void
diff_compare_view(struct diff_world *w)
{
    diff_equal(w, "len", (int64_t)w->model.ready_len, (int64_t)wq_len(w->h->q));
    diff_equal(w, "shutting_down", w->h->shut, wq_shutting_down(w->h->q));
    compare_stats(w);
    compare_keys(w);
    if (w->knows_waits)
        compare_depths(w);
    if (diff_roll(w, 4) == 0)
        compare_walk(w);
}
