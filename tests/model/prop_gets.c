/* SPDX-License-Identifier: MIT */
/* prop_gets.c: do the core and the model hand out, end and take back the same?
 * See prop_world.h. */
#include "model/prop_world.h"

/* ---- get ---------------------------------------------------------------- */

/* What the item shows of key number `n`, which the model has handed out. */
static void
compare_item(struct world *w, wq_item *item, int n)
{
    const struct model_key *k = &w->model.keys[n];

    prop_equal(w, "priority of an item", k->held_priority, item->priority);
    prop_check(w, item->fence > w->fences[n], "fence must grow beyond",
               (long long)w->fences[n], (long long)item->fence);
    if (w->ages)
        prop_equal(w, "latency", prop_age(k->since, w->now),
                   wq__core_latency(item));
    prop_check_end(w, item->key);
    wq__core_note_holder(item, prop_thread(n));
    w->fences[n] = item->fence;
    w->items[n] = item;
}

wq_err
prop_get(struct world *w, const struct trace *t)
{
    wq_item     *item = NULL;
    int          expected = -1;
    const wq_err err = wq__core_get(&w->core, w->now, &item);

    (void)t;
    if (prop_failed_for_memory(w, err))
        return err;
    prop_compare(w, err, model_get(&w->model, w->now, &expected));
    if (err || expected < 0)
        return err;
    const int got = prop_number(w, item->key);
    prop_equal(w, "key handed out", expected, got);
    if (got >= 0)
        compare_item(w, item, got);
    return err;
}

/* ---- done --------------------------------------------------------------- */

/* The `i`th held key, counted around; -1 when none is held. */
static int
held_key(const struct world *w, int i)
{
    const size_t held = model_counts(&w->model).held;

    if (held == 0)
        return -1;
    i %= (int)held;
    for (int n = 0;; n++)
        if (w->model.keys[n].held && i-- == 0)
            return n;
}

/* The core has ended the loan of a key that was handed out at `got`. */
static void
end_hold(struct world *w, int n, int64_t got, int64_t work)
{
    prop_equal(w, "time of work", w->ages ? prop_age(got, w->now) : -1, work);
    w->stale[w->stales++ % PROP_STALE_MAX] = w->items[n];
    w->items[n] = NULL;
}

static wq_err
finish(struct world *w, int n, wq_err err, int64_t work)
{
    const int64_t got = w->model.keys[n].got;

    prop_compare(w, err, model_done(&w->model, n, w->now));
    if (!err)
        end_hold(w, n, got, work);
    return err;
}

/* S-12 */
static wq_err
give_back(struct world *w, int n, int priority)
{
    const struct model_result result = {.outcome = MODEL_BACK,
                                        .priority = priority};
    const int64_t             got = w->model.keys[n].got;
    int64_t                   work = -1;

    wq_err err = wq__core_give_back(&w->core, w->items[n], priority, w->now);
    if (prop_failed_for_memory(w, err))
        return err;
    prop_equal(w, "answer to giving back", WQ_OK, err);
    prop_rebuild(w);
    err = wq__core_done(&w->core, w->items[n], w->now, &work);
    prop_compare(w, err, model_finish(&w->model, n, result, w->now));
    if (!err)
        end_hold(w, n, got, work);
    return err;
}

wq_err
prop_done(struct world *w, const struct trace *t)
{
    enum { BACK = 192 }; /* from this byte on, a REBUILT world gives back */
    const int n = held_key(w, t->a);
    int64_t   work = -1;

    if (n < 0)
        return WQ_OK;
    if (w->rebuilt && t->a >= BACK)
        return give_back(w, n, t->a % 5 - 2);
    const wq_err err = wq__core_done(&w->core, w->items[n], w->now, &work);
    return finish(w, n, err, work);
}

wq_err
prop_done_key(struct world *w, const struct trace *t)
{
    const int    n = t->a;
    int64_t      work = -1;
    const wq_err err = wq__core_done_key(&w->core, prop_key(n), prop_hash(w, n),
                                         w->now, &work);

    return finish(w, n, err, work);
}

/* One that is not in use for another loan; NULL: there is none. */
static wq_item *
stale_item(const struct world *w, int which)
{
    if (w->stales == 0)
        return NULL;
    const size_t i = (size_t)which %
                     (w->stales < PROP_STALE_MAX ? w->stales : PROP_STALE_MAX);
    for (int n = 0; n < w->keys; n++)
        if (w->items[n] == w->stale[i])
            return NULL;
    return w->stale[i];
}

static wq_err
expect_not_lent(struct world *w, const wq_item *item)
{
    int64_t      work;
    const wq_err err = wq__core_done(&w->core, item, w->now, &work);

    prop_equal(w, "answer", WQ_ESTATE, err);
    return err;
}

/* O-06: an item that was done is refused, until its memory is used for another
 * loan: then to say done would end that. */
wq_err
prop_done_again(struct world *w, const struct trace *t)
{
    const wq_item *item = stale_item(w, t->a);
    return item ? expect_not_lent(w, item) : WQ_OK;
}

wq_err
prop_done_copy(struct world *w, const struct trace *t)
{
    const int n = held_key(w, t->a);

    if (n < 0)
        return WQ_OK;
    const wq_item copy = *w->items[n];
    return expect_not_lent(w, &copy);
}

/* An item that came from nowhere. */
wq_err
prop_done_random(struct world *w, const struct trace *t)
{
    const wq_item foreign = {
        .key = prop_key(0),
        .loan = (uint32_t)t->a | (uint32_t)t->b << 8,
    };
    return expect_not_lent(w, &foreign);
}

/* O-60: some items, and perhaps one that spoils it. */
wq_err
prop_done_many(struct world *w, const struct trace *t)
{
    enum { ITEMS = 4 };
    const int    which = t->a, how = t->b % 4;
    const size_t held = model_counts(&w->model).held;
    const size_t n = held < ITEMS - 1 ? held : ITEMS - 1;
    wq_item     *items[ITEMS], copy, *stale = stale_item(w, which);
    int          keys[ITEMS];
    size_t       all = n;
    wq_err       err = WQ_OK;

    if (n == 0)
        return WQ_OK;
    for (size_t i = 0; i < n; i++) {
        keys[i] = held_key(w, which + (int)i);
        items[i] = w->items[keys[i]];
    }
    copy = *items[0];
    if (how == 1)
        items[all++] = items[which % (int)n];
    else if (how == 2)
        items[all++] = &copy;
    else if (how == 3 && stale)
        items[all++] = stale;
    prop_equal(w, "all are on loan", all == n,
               wq__core_are_lent(&w->core, items, all));
    for (size_t i = 0; all == n && i < n && !err; i++) {
        int64_t work = -1;
        err = wq__core_done(&w->core, items[i], w->now, &work);
        err = finish(w, keys[i], err, work);
    }
    return err;
}

/* ---- taking back -------------------------------------------------------- */

static wq_err
take_back(struct world *w, const struct trace *t,
          wq_err (*take)(struct wq__core *, wq_key, uint32_t, int64_t),
          enum model_answer (*expect)(struct model *, int, int64_t))
{
    const wq_err err =
        take(&w->core, prop_key(t->a), prop_hash(w, t->a), w->now);

    prop_compare(w, err, expect(&w->model, t->a, w->now));
    return err;
}

wq_err
prop_remove(struct world *w, const struct trace *t)
{
    return take_back(w, t, wq__core_remove, model_remove);
}

wq_err
prop_cancel(struct world *w, const struct trace *t)
{
    return take_back(w, t, wq__core_cancel, model_cancel);
}

wq_err
prop_remove_at_done(struct world *w, const struct trace *t)
{
    const bool on = t->b % 4 != 0;

    if (w->rebuilt)
        return WQ_OK;
    const wq_err err = wq__core_remove_at_done(&w->core, prop_key(t->a),
                                               prop_hash(w, t->a), on);

    prop_compare(w, err, model_remove_at_done(&w->model, t->a, on));
    return err;
}
