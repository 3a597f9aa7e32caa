/* SPDX-License-Identifier: MIT */
/* prop_adds.c: do adds do to the core what they do to the model? See
 * prop_world.h. */
#include "model/prop_world.h"

#include <limits.h>

#include "model/words.h"

/* ---- the model's words in those of the core ----------------------------- */

static const wq_if_waiting policies[] = {
    [MODEL_KEEP] = WQ_IF_WAITING_KEEP,
    [MODEL_MERGE] = WQ_IF_WAITING_MERGE,
    [MODEL_REPLACE] = WQ_IF_WAITING_REPLACE,
    [MODEL_DROP] = WQ_IF_WAITING_IGNORE,
};

static const unsigned kinds[] = {
    [MODEL_NOW] = WQ__ADD_NOW,
    [MODEL_AT] = WQ__ADD_AT,
    [MODEL_DEBOUNCE] = WQ__ADD_DEBOUNCE,
    [MODEL_THROTTLE] = WQ__ADD_THROTTLE,
};

static struct wq__how
as_how(const struct model_how *how)
{
    return (struct wq__how){
        .kind = kinds[how->kind],
        .now = how->now,
        .span = how->span,
        .max_wait = how->max_wait,
        .waiting = policies[how->policy],
        .priority = how->priority,
        .backoff = how->backoff,
        .respect = how->respect,
        .displace = how->displace,
    };
}

/* ---- batches ------------------------------------------------------------ */

static wq_key
group_name(int n)
{
    return (wq_key){prop_key(n).data, (size_t)prop_group(n)};
}

static uint32_t
group_hash(const struct world *w, int n)
{
    return prop_group(n) ? wq__core_hash(&w->core, group_name(n)) : 0;
}

/* Who made room; then they are buried. */
static void
read_victims(struct world *w, wq__ref victim, struct model_victims *out)
{
    out->n = 0;
    while (victim && out->n < MODEL_KEYS) {
        const wq_key key = wq__core_victim_key(&w->core, victim);

        prop_check_end(w, key);
        out->keys[out->n++] = prop_number(w, key);
        victim = wq__core_free_victim(&w->core, victim);
    }
}

/* For how much an add that was refused needs room. One that never fits need not
 * be counted to its end. */
static void
compare_needs(struct world *w, struct model_space expected,
              struct wq__capacity needs)
{
    if (!model_ever_fits(&w->model, expected)) {
        prop_equal(w, "could it ever fit", false,
                   wq__core_ever_fits(&w->core, needs));
        return;
    }
    prop_equal(w, "keys that do not fit", (long long)expected.keys,
               (long long)needs.keys);
    prop_equal(w, "bytes that do not fit", (long long)expected.bytes,
               (long long)needs.bytes);
    prop_equal(w, "is there room", false,
               wq__capacity_covers(wq__core_free_capacity(&w->core), needs));
}

/* An errand looks at its key between operations: to it, a run that an add puts
 * off and asks for again is one run. */
static void
renew_errands(struct world *w, const struct model *before)
{
    for (int i = 0; i < PROP_ERRANDS; i++) {
        struct errand *e = &w->errands[i];

        if (!e->is_under_way || !model_is_wanted(before, e->key) ||
            !model_is_wanted(&w->model, e->key))
            continue;
        const struct model_key *old = &before->keys[e->key];
        const struct model_key *new = &w->model.keys[e->key];
        if (old->dirty && e->runs.next == old->runs.next)
            e->runs.next = new->runs.next;
        if (old->ready && e->runs.run == old->runs.run)
            e->runs.run = new->runs.run;
        if (old->ready && e->runs.next == old->runs.run) /* it was DIRTY then */
            e->runs.next = new->runs.run;
    }
}

static wq_err
add_batch(struct world *w, const struct model_how *how,
          struct model_pick *expected, size_t n)
{
    static struct model  before;
    const struct wq__how core_how = as_how(how);
    struct wq__prepared  picks[MODEL_BATCH] = {{0}};
    wq_key               keys[MODEL_BATCH];
    struct wq__capacity  needs = {SIZE_MAX, SIZE_MAX};
    struct model_victims victims;
    wq__ref              first = 0;

    for (size_t i = 0; i < n; i++) {
        keys[i] = prop_key(expected[i].key);
        picks[i] = (struct wq__prepared){
            .hash = prop_hash(w, expected[i].key),
            .skip = expected[i].skip,
            .at_once = expected[i].at_once,
            .at = expected[i].at,
            .group = group_name(expected[i].key),
            .group_hash = group_hash(w, expected[i].key),
        };
    }
    const wq_err err =
        wq__core_add_with(&w->core, &core_how, keys, picks, n, &needs, &first);

    if (prop_failed_for_memory(w, err))
        return err;
    read_victims(w, first, &victims);
    before = w->model;
    const struct model_space space = model_needs(&w->model, expected, n);
    prop_compare(w, err, model_add_with(&w->model, how, expected, n, &victims));
    prop_equal(w, "did the right keys make room", true, victims.are_right);
    if (err == WQ_EFULL)
        compare_needs(w, space, needs);
    for (size_t i = 0; !err && i < n; i++)
        prop_equal(w, "what the add did", model_added(expected[i].did),
                   picks[i].added);
    renew_errands(w, &before);
    return err;
}

/* ---- adds of one key ---------------------------------------------------- */

/* The plain adds know neither groups nor bytes. */
static bool
needs_add_with(const struct world *w)
{
    return w->grouped || w->max_bytes;
}

/* An add of one key by a function of its own; `err` and `what` are what the
 * core has answered. */
static wq_err
compare_one(struct world *w, const struct model_how *how, int key, int64_t at,
            wq_err err, wq_added what)
{
    struct model_pick    pick = {.key = key, .at = at};
    struct model_victims nobody = {.n = 0};

    if (prop_failed_for_memory(w, err))
        return err;
    prop_compare(w, err, model_add_with(&w->model, how, &pick, 1, &nobody));
    if (!err)
        prop_equal(w, "what the add did", model_added(pick.did), what);
    return err;
}

/* With the functions of the core and the model for it. */
static wq_err
add_plain(struct world *w, int n,
          wq_err (*add)(struct wq__core *, wq_key, uint32_t, int64_t,
                        wq_added *),
          enum model_answer (*add_to_model)(struct model *, int, int64_t,
                                            enum model_effect *))
{
    const struct model_how how = {.kind = MODEL_NOW, .now = w->now};
    wq_added               what = WQ_ADDED_NEW;
    enum model_effect      did = MODEL_NEW;

    if (needs_add_with(w))
        return add_batch(w, &how, &(struct model_pick){.key = n}, 1);
    const wq_err err =
        add(&w->core, prop_key(n), prop_hash(w, n), w->now, &what);
    if (prop_failed_for_memory(w, err))
        return err;
    prop_compare(w, err, add_to_model(&w->model, n, w->now, &did));
    if (!err)
        prop_equal(w, "what the add did", model_added(did), what);
    return err;
}

wq_err
prop_add(struct world *w, const struct trace *t)
{
    return add_plain(w, t->a, wq__core_add, model_add);
}

wq_err
prop_admit(struct world *w, const struct trace *t)
{
    return add_plain(w, t->a, wq__core_admit, model_admit);
}

static wq_err
add_after(struct world *w, int n, int64_t at, bool backoff)
{
    const struct model_how how = {
        .kind = MODEL_AT, .now = w->now, .backoff = backoff};
    wq_added what = WQ_ADDED_NEW;

    if (needs_add_with(w))
        return add_batch(w, &how, &(struct model_pick){.key = n, .at = at}, 1);
    const wq_err err = wq__core_add_after(
        &w->core, prop_key(n), prop_hash(w, n), w->now, at, backoff, &what);
    return compare_one(w, &how, n, at, err, what);
}

/* Small offsets, often equal. */
static int64_t
soon(const struct world *w, int byte)
{
    return w->now + byte % 8 * PROP_STEP_UNIT;
}

wq_err
prop_add_after(struct world *w, const struct trace *t)
{
    return add_after(w, t->a, soon(w, t->b), false);
}

wq_err
prop_add_backoff(struct world *w, const struct trace *t)
{
    return add_after(w, t->a, soon(w, t->b), true);
}

wq_err
prop_add_at(struct world *w, const struct trace *t)
{
    return add_after(w, t->a, prop_extreme(t->b), false);
}

wq_err
prop_add_respecting(struct world *w, const struct trace *t)
{
    const struct model_how how = {
        .kind = MODEL_NOW, .now = w->now, .respect = true};

    return add_batch(w, &how, &(struct model_pick){.key = t->a}, 1);
}

/* ---- adds with options -------------------------------------------------- */

/* All priorities are possible, some are frequent. */
static int
priority_of(int byte)
{
    static const int priorities[] = {0, 1, 5, -1, -5, 6, INT_MAX, INT_MIN};
    enum { PRIORITIES = sizeof priorities / sizeof priorities[0] };

    return byte < 200 ? priorities[byte % PRIORITIES] : byte - 220;
}

/* The bytes of an add: what kind, which policy, who makes room, ... */
static struct model_how
read_how(const struct world *w, const struct trace *t)
{
    struct model_how how = {
        .kind = (enum model_kind)(t->a % 4),
        .policy = (enum model_policy)(t->a / 4 % 4),
        .now = w->now,
        .priority = priority_of(t->b),
        .displace = !w->has_plug_in && t->a / 16 % 2,
        .backoff = t->a / 32 % 2,
        .respect = t->a / 64 % 2,
    };

    if (how.kind == MODEL_DEBOUNCE || how.kind == MODEL_THROTTLE) {
        how.policy = MODEL_KEEP; /* callers cannot say otherwise */
        how.span = t->c < 250 ? (1 + t->c % 6) * PROP_STEP_UNIT : INT64_MAX;
    }
    if (how.kind == MODEL_DEBOUNCE)
        how.max_wait = t->c / 8 % 4 * 4 * PROP_STEP_UNIT;
    how.backoff &= how.kind == MODEL_AT;
    how.respect &= how.kind == MODEL_NOW || how.kind == MODEL_AT;
    return how;
}

/* One key, now, with a priority and nothing else, has a way of its own. */
static bool
is_urgent(const struct world *w, const struct trace *t,
          const struct model_how *how)
{
    return t->n == 1 && t->c % 2 && !needs_add_with(w) &&
           how->kind == MODEL_NOW && how->policy == MODEL_KEEP &&
           !how->displace && !how->respect;
}

static wq_err
add_urgent(struct world *w, const struct model_how *how, int n)
{
    wq_added     what = WQ_ADDED_NEW;
    const wq_err err = wq__core_add_with_priority(
        &w->core, prop_key(n), prop_hash(w, n), w->now, how->priority, &what);

    return compare_one(w, how, n, 0, err, what);
}

/* O-50: several keys, perhaps one of them twice; of a batch that failed (a
 * backoff) some may run at once, and one may be left alone. */
wq_err
prop_add_with(struct world *w, const struct trace *t)
{
    const struct model_how how = read_how(w, t);
    struct model_pick      picks[MODEL_BATCH];

    if (is_urgent(w, t, &how))
        return add_urgent(w, &how, t->keys[0]);
    for (int i = 0; i < t->n; i++) {
        const int delay = (t->c + i) % 8;
        picks[i] = (struct model_pick){
            .key = t->keys[i],
            .skip = t->a / 128 % 2 && i == 1,
            .at_once = how.backoff && delay == 0,
            .at = w->now + delay * PROP_STEP_UNIT,
        };
    }
    return add_batch(w, &how, picks, (size_t)t->n);
}
