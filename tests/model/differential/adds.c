/* SPDX-License-Identifier: MIT */
/* adds.c: do adds, and taking them back, do to the queue what they do to the
 * model? See differential.h. */
#include "model/differential/world.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- adds ---------------------------------------------------------------- */

/* A handle that is shut down refuses, whatever the store holds. */
static enum model_answer
add_to_model(struct diff_world *w, const struct model_how *how,
             struct model_pick *picks, size_t n)
{
    struct model_victims nobody = {.n = 0};

    return w->h->shut ? MODEL_SHUT
                      : model_add_with(&w->model, how, picks, n, &nobody);
}

void
diff_add(struct diff_world *w)
{
    const struct model_how how = {.kind = MODEL_NOW, .now = w->now};
    struct model_pick      pick = {.key = diff_roll_key(w)};
    const wq_key           key = diff_key(pick.key);

    diff_note(w, "add %s", (const char *)key.data);
    const wq_err err = wq_add(w->h->q, key);
    diff_compare(w, add_to_model(w, &how, &pick, 1), err);
}

/* The time `delay` from now on. */
static int64_t
later(const struct diff_world *w, int64_t delay)
{
    return delay > WQ_FOREVER - w->now ? WQ_FOREVER : w->now + delay;
}

void
diff_add_after(struct diff_world *w)
{
    const int64_t          delay = diff_roll_delay(w);
    const struct model_how how = {.kind = delay > 0 ? MODEL_AT : MODEL_NOW,
                                  .now = w->now};
    struct model_pick pick = {.key = diff_roll_key(w), .at = later(w, delay)};
    const wq_key      key = diff_key(pick.key);

    diff_note(w, "add_after %s %" PRId64 "ns", (const char *)key.data, delay);
    const wq_err err = wq_add_after(w->h->q, key, delay);
    diff_compare(w, add_to_model(w, &how, &pick, 1), err);
    w->model.retries += !err;
}

static void
compare_limited(struct diff_world *w, struct model_how how,
                struct model_pick *picks, size_t n, int64_t after, wq_err err)
{
    const enum model_answer answer =
        w->h->shut ? MODEL_SHUT
                   : model_add_limited(&w->model, how, picks, n, after);

    w->given_up += answer == MODEL_GIVEN_UP;
    diff_compare(w, answer, err);
}

void
diff_add_rate_limited(struct diff_world *w)
{
    const struct model_how how = {.now = w->now};
    struct model_pick      pick = {.key = diff_roll_key(w)};
    const wq_key           key = diff_key(pick.key);

    diff_note(w, "add_rate_limited %s", (const char *)key.data);
    compare_limited(w, how, &pick, 1, 0, wq_add_rate_limited(w->h->q, key));
}

/* ---- adds with options --------------------------------------------------- */

/* How to add, for the queue and for the model. */
struct add {
    wq_add_options   options;
    struct model_how how;
};

static void
roll_kind(struct diff_world *w, struct add *a)
{
    const int kind = diff_roll(w, 6);

    if (kind == 1) {
        a->options.after_ns = diff_roll_delay(w);
        a->how.kind = a->options.after_ns > 0 ? MODEL_AT : MODEL_NOW;
    } else if (kind == 2) {
        a->options.rate_limited = true;
        a->options.after_ns = diff_roll(w, 2) ? diff_roll_delay(w) : 0;
    } else if (kind == 3) {
        a->options.debounce_ns = (1 + diff_roll(w, 6)) * DIFF_UNIT_NS;
        a->options.max_wait_ns = diff_roll(w, 4) * 4 * DIFF_UNIT_NS;
        a->how.kind = MODEL_DEBOUNCE;
        a->how.span = a->options.debounce_ns;
        a->how.max_wait = a->options.max_wait_ns;
    } else if (kind == 4 && w->has_throttle) {
        a->options.throttle_ns = (1 + diff_roll(w, 6)) * DIFF_UNIT_NS;
        a->how.kind = MODEL_THROTTLE;
        a->how.span = a->options.throttle_ns;
    }
}

static struct add
roll_add(struct diff_world *w)
{
    static const wq_if_waiting policies[] = {
        [MODEL_KEEP] = WQ_IF_WAITING_KEEP,
        [MODEL_MERGE] = WQ_IF_WAITING_MERGE,
        [MODEL_REPLACE] = WQ_IF_WAITING_REPLACE,
        [MODEL_DROP] = WQ_IF_WAITING_IGNORE,
    };
    struct add a = {.options.size = sizeof a.options, .how.now = w->now};

    a.how.priority = a.options.priority = diff_roll_priority(w);
    roll_kind(w, &a);
    if (!a.options.debounce_ns && !a.options.throttle_ns)
        a.how.policy = (enum model_policy)diff_roll(w, 4);
    a.options.waiting = policies[a.how.policy];
    return a;
}

/* Some keys; none is named twice where that is too hard for the model. */
static size_t
roll_keys(struct diff_world *w, struct model_pick *picks)
{
    const size_t n =
        diff_roll(w, 2) ? 1 : 1 + (size_t)diff_roll(w, MODEL_BATCH);
    bool   is_named[DIFF_KEYS] = {false};
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        const int key = diff_roll_key(w);
        if (is_named[key] && w->model.once)
            continue;
        is_named[key] = true;
        picks[kept++] = (struct model_pick){.key = key};
    }
    return kept;
}

static void
note_duration(struct diff_world *w, const char *name, int64_t ns)
{
    if (ns)
        diff_note_more(w, " %s=%" PRId64 "ns", name, ns);
}

static void
note_add(struct diff_world *w, const wq_add_options *o,
         const struct model_pick *picks, size_t n)
{
    static const char *const policies[] = {"KEEP", "MERGE", "REPLACE",
                                           "IGNORE"};

    diff_note(w, "add_with");
    for (size_t i = 0; i < n; i++)
        diff_note_more(w, " %s", (const char *)diff_key(picks[i].key).data);
    if (o->priority)
        diff_note_more(w, " priority=%d", o->priority);
    if (o->rate_limited)
        diff_note_more(w, " rate_limited");
    note_duration(w, "after", o->after_ns);
    note_duration(w, "debounce", o->debounce_ns);
    note_duration(w, "max_wait", o->max_wait_ns);
    note_duration(w, "throttle", o->throttle_ns);
    if (o->waiting)
        diff_note_more(w, " waiting=%s", policies[o->waiting]);
}

static void
compare_effects(struct diff_world *w, const struct model_pick *picks,
                const wq_added *added, size_t n)
{
    for (size_t i = 0; i < n; i++)
        diff_equal(w, "what the add did", model_added(picks[i].did), added[i]);
}

void
diff_add_with(struct diff_world *w)
{
    struct add        a = roll_add(w);
    struct model_pick picks[MODEL_BATCH];
    size_t            n = roll_keys(w, picks);
    wq_key            keys[MODEL_BATCH];
    wq_added          added[MODEL_BATCH] = {WQ_ADDED_NEW};

    if (!w->knows_waits &&
        (a.options.debounce_ns || a.options.waiting || a.options.rate_limited))
        n = 1;
    if (backend.part && a.options.rate_limited && w->terms->max_retries)
        n = 1; /* S-25: each partition gives up on its own */
    for (size_t i = 0; i < n; i++) {
        keys[i] = diff_key(picks[i].key);
        picks[i].at = later(w, a.options.after_ns);
    }
    a.options.results = added;
    note_add(w, &a.options, picks, n);
    const wq_err err = wq_add_with(w->h->q, &a.options, keys, n);
    if (a.options.rate_limited) {
        compare_limited(w, a.how, picks, n, a.options.after_ns, err);
    } else {
        diff_compare(w, add_to_model(w, &a.how, picks, n), err);
        w->model.retries += !err && a.options.after_ns > 0 ? n : 0;
    }
    if (!err)
        compare_effects(w, picks, added, n);
}

/* ---- taking back --------------------------------------------------------- */

static void
take_back(struct diff_world *w, const char *verb,
          wq_err (*take)(wq_queue *, wq_key),
          enum model_answer (*expect)(struct model *, int, int64_t))
{
    const int    n = diff_roll_key(w);
    const wq_key key = diff_key(n);

    diff_note(w, "%s %s", verb, (const char *)key.data);
    const wq_err err = take(w->h->q, key);
    diff_compare(w, expect(&w->model, n, w->now), err);
}

void
diff_remove(struct diff_world *w)
{
    take_back(w, "remove", wq_remove, model_remove);
}

void
diff_cancel_after(struct diff_world *w)
{
    take_back(w, "cancel_after", wq_cancel_after, model_cancel);
}

void
diff_forget(struct diff_world *w)
{
    const int    n = diff_roll_key(w);
    const wq_key key = diff_key(n);

    diff_note(w, "forget %s", (const char *)key.data);
    diff_compare(w, MODEL_OK, wq_forget(w->h->q, key));
    w->model.failures[n] = 0;
}

void
diff_revive(struct diff_world *w)
{
    take_back(w, "revive", wq_revive, model_revive);
}
