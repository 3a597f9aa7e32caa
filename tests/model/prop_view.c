/* SPDX-License-Identifier: MIT */
/* prop_view.c: do the core and the model look alike from outside? See
 * prop_world.h. */
#include "model/prop_world.h"

/* Two counts. */
static void
same(struct world *w, const char *what, uint64_t expected, uint64_t got)
{
    prop_equal(w, what, (long long)expected, (long long)got);
}

/* ---- keys --------------------------------------------------------------- */

static unsigned
states_of(const struct world *w, int n)
{
    const struct model_key *k = &w->model.keys[n];
    unsigned                states = 0;

    states |= model_is_ready(&w->model, n) ? WQ_STATE_READY : 0;
    states |= k->held ? WQ_STATE_HELD : 0;
    states |= k->dirty ? WQ_STATE_DIRTY : 0;
    states |= k->waiting ? WQ_STATE_WAITING : 0;
    states |= k->waiting && k->backoff ? WQ_STATE_BACKOFF : 0;
    return states;
}

static int64_t
until(const struct world *w, int64_t at)
{
    return at == INT64_MAX ? INT64_MAX : prop_age(w->now, at);
}

/* O-32: all that is said of key number `n`. */
static void
compare_info(struct world *w, int n, const wq_key_info *info)
{
    const struct model_key *k = &w->model.keys[n];
    const unsigned          states = states_of(w, n);
    const bool              wanted = states & (WQ_STATE_READY | WQ_STATE_DIRTY);

    prop_equal(w, "states of a key", states, info->states);
    prop_equal(w, "priority of a key", model_priority(&w->model, n),
               info->priority);
    prop_equal(w, "how long a key is READY",
               w->ages && wanted ? prop_age(k->since, w->now) : -1,
               info->ready_ns);
    prop_equal(w, "how long a key is held",
               w->ages && k->held ? prop_age(k->got, w->now) : -1,
               info->held_ns);
    prop_equal(w, "how long a key waits on", k->waiting ? until(w, k->at) : -1,
               info->wait_ns);
    prop_equal(w, "fence of a key", k->held ? (long long)w->fences[n] : 0,
               (long long)info->fence);
}

static void
compare_keys(struct world *w)
{
    for (int n = 0; n < w->keys; n++) {
        wq_key_info info;

        wq__core_key_info(&w->core, prop_key(n), prop_hash(w, n), w->now,
                          &info);
        compare_info(w, n, &info);
        const unsigned inside =
            wq__core_states(&w->core, prop_key(n), prop_hash(w, n));
        prop_equal(w, "WAITING, inside", w->model.keys[n].waiting,
                   (inside & WQ__WAITING) != 0);
        prop_equal(w, "BACKOFF, inside", (info.states & WQ_STATE_BACKOFF) != 0,
                   (inside & WQ__BACKOFF) != 0);
        prop_equal(w, "is a key held by its thread", w->model.keys[n].held,
                   wq__core_is_held_by(&w->core, prop_key(n), prop_hash(w, n),
                                       prop_thread(n)));
        prop_equal(w, "is a key held by another thread", false,
                   wq__core_is_held_by(&w->core, prop_key(n), prop_hash(w, n),
                                       prop_thread(n) + 1));
    }
}

static void
compare_threads(struct world *w)
{
    for (uint32_t thread = 0; thread <= PROP_THREADS; thread++) {
        bool holds_any = false;

        for (int n = 0; n < w->keys; n++)
            holds_any |= w->model.keys[n].held && prop_thread(n) == thread;
        prop_equal(w, "does a thread hold any key", holds_any,
                   wq__core_holds_any(&w->core, thread));
    }
}

/* O-31 */
static void
compare_depths(struct world *w)
{
    wq_depth depths[2 * MODEL_KEYS + 1];
    size_t   n = 0, all;

    wq__core_depths(&w->core, depths, 2 * MODEL_KEYS + 1, &n);
    prop_equal(w, "priorities in use", (long long)model_levels(&w->model),
               (long long)n);
    for (size_t i = 0; i < n; i++) {
        prop_equal(w, "keys of a priority",
                   model_depth(&w->model, depths[i].priority),
                   (long long)depths[i].keys);
        for (size_t k = 0; k < i; k++)
            prop_check(w, depths[k].priority != depths[i].priority,
                       "a priority is named twice", 0, depths[i].priority);
    }
    wq__core_depths(&w->core, NULL, 0, &all);
    prop_equal(w, "priorities that are counted only", (long long)n,
               (long long)all);
}

void
prop_compare_keys(struct world *w)
{
    compare_keys(w);
    compare_threads(w);
    compare_depths(w);
}

/* ---- numbers ------------------------------------------------------------ */

/* O-30 */
/* A number that both count under the same name. */
#define SAME(field) same(w, #field, m->field, counts.field)

static void
compare_counts(struct world *w)
{
    const struct model       *m = &w->model;
    const struct model_counts keys = model_counts(m);
    int64_t                   sum = 0, longest = 0;
    wq_stats                  counts = {0};

    for (int n = 0; n < w->keys; n++) {
        const int64_t held =
            m->keys[n].held ? prop_age(m->keys[n].got, w->now) : 0;
        sum += held;
        longest = held > longest ? held : longest;
    }
    wq__core_stats(&w->core, w->now, &counts);
    same(w, "READY keys", m->ready_len, counts.ready);
    same(w, "HELD keys", keys.held, counts.held);
    same(w, "DIRTY keys", keys.dirty, counts.dirty);
    same(w, "WAITING keys", keys.waiting, counts.waiting);
    prop_equal(w, "time to the first deadline",
               until(w, model_first_deadline(m)), counts.next_ns);
    prop_equal(w, "unfinished", w->ages ? sum : -1, counts.unfinished_ns);
    prop_equal(w, "longest", w->ages ? longest : -1, counts.longest_ns);
    prop_equal(w, "shut down", m->shut, counts.shutting_down);
    SAME(adds);
    SAME(merged);
    SAME(gets);
    SAME(dones);
    SAME(removed);
    SAME(displaced);
    SAME(deferred);
    SAME(drops);
    SAME(overdue);
    prop_equal(w, "paused", m->paused, counts.paused);
    same(w, "bytes", w->max_bytes ? model_bytes(m) : 0, counts.bytes);
    same(w, "groups", w->grouped ? model_groups(m) : 0, counts.groups);
    same(w, "offered", model_offers(m), counts.offered);
}

void
prop_compare_numbers(struct world *w)
{
    const struct wq__core *c = &w->core;
    const struct model    *m = &w->model;
    const size_t           known = model_known(m);

    compare_counts(w);
    same(w, "len", m->ready_len, wq__core_len(c));
    same(w, "keys", known, c->index.len);
    same(w, "room", w->max_len ? w->max_len - known : SIZE_MAX,
         wq__core_free_capacity(c).keys);
    same(w, "room in bytes",
         w->max_bytes ? w->max_bytes - model_bytes(m) : SIZE_MAX,
         wq__core_free_capacity(c).bytes);
    same(w, "offers", model_offers(m), wq__core_offers(c));
    prop_equal(w, "idle", model_idle(m), wq__core_idle(c));
    prop_equal(w, "next event", model_next_event(m), wq__core_next_deadline(c));
    prop_equal(w, "empty", m->ready_len == 0 && model_counts(m).waiting == 0,
               wq__core_empty(c));
    if (w->has_plug_in) {
        const uint64_t raises = w->plug_in.is_full ? m->raises : 0;
        same(w, "touches", m->touches + m->raises - raises, w->plug_in.touches);
        same(w, "raises", raises, w->plug_in.raises);
    }
}

/* ---- walks -------------------------------------------------------------- */

enum { ALL_FACETS = 31 };

/* Go on by `budget` slots; false: that was the last one. */
static bool
walk_on(struct world *w, wq__ref *cursor, size_t budget, unsigned states,
        int *seen)
{
    wq_key      key;
    wq_key_info info;

    while (
        wq__core_walk(&w->core, cursor, &budget, states, w->now, &key, &info)) {
        const int n = prop_number(w, key);
        if (!prop_check(w, n >= 0, "key met on a walk", 0, n))
            return false;
        prop_check_end(w, key);
        compare_info(w, n, &info);
        seen[n]++;
    }
    return budget == 0 && !w->report->text[0];
}

/* O-33: while nothing happens, every key with one of the states is met once. */
static void
walk_all(struct world *w, size_t budget, unsigned states)
{
    int     seen[MODEL_KEYS] = {0};
    wq__ref cursor = 0;

    while (walk_on(w, &cursor, budget, states, seen))
        ;
    for (int n = 0; n < w->keys; n++)
        prop_equal(w, "visits of a key", (states_of(w, n) & states) != 0,
                   seen[n]);
}

void
prop_note_who_stays(struct world *w)
{
    for (int n = 0; w->walk.under_way && n < w->keys; n++)
        w->walk.stayed[n] &= states_of(w, n) != 0;
}

static void
begin_walk(struct world *w)
{
    w->walk = (struct walk){.under_way = true};
    for (int n = 0; n < w->keys; n++)
        w->walk.stayed[n] = true;
    prop_note_who_stays(w);
}

/* O-33: those that were there all the while were met once. */
static void
end_walk(struct world *w)
{
    for (int n = 0; n < w->keys; n++)
        if (w->walk.stayed[n])
            prop_equal(w, "visits of a key that stayed", 1, w->walk.seen[n]);
    w->walk.under_way = false;
}

wq_err
prop_walk(struct world *w, const struct trace *t)
{
    const int      how = t->a;
    const uint64_t calls = w->mem.calls;

    if (how % 4 == 0) {
        const unsigned states = how < 64 ? 1U << how / 4 % 5 : ALL_FACETS;
        walk_all(w, 1 + (size_t)how / 8 % 3, states);
    } else {
        if (!w->walk.under_way)
            begin_walk(w);
        if (!walk_on(w, &w->walk.cursor, 1 + (size_t)how / 4 % 8, ALL_FACETS,
                     w->walk.seen))
            end_walk(w);
    }
    prop_equal(w, "allocations of a walk", 0,
               (long long)(w->mem.calls - calls));
    return WQ_OK;
}
