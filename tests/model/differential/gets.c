/* SPDX-License-Identifier: MIT */
/* gets.c: does the queue hand out what the model hands out, and do holds end
 * alike? See differential.h. */
#include "model/differential/world.h"

#include <inttypes.h>
#include <string.h>

/* ---- hand-outs ----------------------------------------------------------- */

/* The model's next key, for this handle. Where order is that of a partition, it is
 * the first of the partition from which the queue has taken `item`; NULL: it has
 * found none. */
static enum model_answer
get_from_model(struct diff_world *w, const wq_item *item, int *n)
{
    const int key = item ? diff_number(item->key) : -1;

    model_pause(&w->model, w->h->paused);
    w->model.only = key < 0 ? 0 : w->model.parts[key];
    return model_get(&w->model, w->now, n);
}

/* The queue has handed out `item`, the model key number `expected`. */
static void
take(struct diff_world *w, wq_item *item, int expected)
{
    const int n = diff_number(item->key);

    diff_note_more(w, " %s@%d", n < 0 ? "?" : (const char *)item->key.data,
                   item->priority);
    diff_equal(w, "key handed out", expected, n);
    if (n < 0 || n != expected)
        return;
    diff_equal(w, "priority of an item", w->model.keys[n].held_priority,
               item->priority);
    diff_equal(w, "the fence grows", true, item->fence > w->fences[n]);
    w->fences[n] = item->fence;
    w->items[n] = item;
    w->holders[n] = w->h;
    w->h->held++;
}

/* A get answered `err` with `item`: the model does the same. */
static void
compare_get(struct diff_world *w, wq_err err, wq_item *item)
{
    int n = -1;

    diff_compare_get(w, get_from_model(w, err ? NULL : item, &n), err);
    if (err || n < 0)
        return;
    diff_note_more(w, " ->");
    take(w, item, n);
}

void
diff_get(struct diff_world *w)
{
    wq_item *item = NULL;

    diff_note(w, "get");
    const wq_err err = wq_get_within(w->h->q, 0, &item);
    compare_get(w, err, item);
}

void
diff_get_many(struct diff_world *w)
{
    enum { MOST = 5 };
    wq_item *items[MOST];
    size_t   n = 0, max = 1 + (size_t)diff_roll(w, MOST);
    int      key;

    diff_note(w, "get_many %zu", max);
    const wq_err err = wq_get_many(w->h->q, items, max, 0, &n);
    if (err) {
        diff_compare_get(w, get_from_model(w, NULL, &key), err);
        return;
    }
    diff_note_more(w, " ->");
    for (size_t i = 0; i < n && !diff_has_failed(w); i++) {
        diff_equal(w, "the model has a key, too", MODEL_OK,
                   get_from_model(w, items[i], &key));
        if (!diff_has_failed(w))
            take(w, items[i], key);
    }
    model_pause(&w->model, w->h->paused);
    diff_equal(w, "all that is READY was taken", true,
               n == max || model_offers(&w->model) == 0);
}

/* ---- how holds end ------------------------------------------------------- */

/* A key that this handle holds, after `n` others; -1: there is none. */
static int
held_after(const struct diff_world *w, int n)
{
    for (int i = 1; i <= DIFF_KEYS; i++) {
        const int key = (n + i) % DIFF_KEYS;
        if (w->items[key] && w->holders[key] == w->h)
            return key;
    }
    return -1;
}

static int
roll_held(struct diff_world *w)
{
    return held_after(w, diff_roll_key(w));
}

/* The hold of key `n` has ended. */
static void
let_go(struct diff_world *w, int n)
{
    w->items[n] = NULL;
    w->holders[n] = NULL;
    w->h->held--;
}

static const char *
name(int n)
{
    return diff_key(n).data;
}

void
diff_done(struct diff_world *w)
{
    const int n = roll_held(w);

    if (n < 0)
        return;
    diff_note(w, "done %s", name(n));
    const wq_err err = wq_done(w->h->q, w->items[n]);
    diff_compare(w, model_done(&w->model, n, w->now), err);
    let_go(w, n);
}

/* Also of keys that this handle does not hold. */
void
diff_done_key(struct diff_world *w)
{
    const int n = diff_roll_key(w);

    diff_note(w, "done_key %s", name(n));
    const wq_err err = wq_done_key(w->h->q, diff_key(n));
    if (w->holders[n] != w->h) {
        diff_compare(w, MODEL_WRONG_STATE, err);
        return;
    }
    diff_compare(w, model_done(&w->model, n, w->now), err);
    let_go(w, n);
}

/* Some keys that this handle holds, each once. */
static size_t
choose_held(struct diff_world *w, int *keys, size_t max)
{
    int    n = roll_held(w);
    size_t found = 0;

    while (n >= 0 && found < max && (found == 0 || n != keys[0])) {
        keys[found++] = n;
        n = held_after(w, n);
    }
    return found;
}

void
diff_done_many(struct diff_world *w)
{
    enum { MOST = 4 };
    int          keys[MOST];
    wq_item     *items[MOST];
    const size_t n = choose_held(w, keys, 1 + (size_t)diff_roll(w, MOST));

    if (n == 0)
        return;
    diff_note(w, "done_many");
    for (size_t i = 0; i < n; i++) {
        diff_note_more(w, " %s", name(keys[i]));
        items[i] = w->items[keys[i]];
    }
    diff_compare(w, MODEL_OK, wq_done_many(w->h->q, items, n));
    for (size_t i = 0; i < n; i++) {
        diff_equal(w, "done of a key", MODEL_OK,
                   model_done(&w->model, keys[i], w->now));
        diff_equal(w, "the item is NULL", true, !items[i]);
        let_go(w, keys[i]);
    }
}

/* ---- results ------------------------------------------------------------- */

struct result {
    wq_result           queue;
    struct model_result model;
};

static struct result
roll_result(struct diff_world *w, int n)
{
    static const struct {
        wq_outcome         queue;
        enum model_outcome model;
    } outcomes[] = {
        {WQ_RESULT_DONE, MODEL_DONE},    {WQ_RESULT_RETRY, MODEL_RETRY},
        {WQ_RESULT_RETRY, MODEL_RETRY},  {WQ_RESULT_AFTER, MODEL_AFTER},
        {WQ_RESULT_DROP, MODEL_DROP_IT}, {WQ_RESULT_BACK, MODEL_BACK},
        {WQ_RESULT_BURY, MODEL_BURY},    {(wq_outcome)77, MODEL_RETRY},
    };
    const int     which = diff_roll(w, 8);
    struct result r = {
        .queue = {.outcome = outcomes[which].queue},
        .model = {.outcome = outcomes[which].model,
                  .priority = w->model.keys[n].held_priority},
    };

    if (r.queue.outcome == WQ_RESULT_AFTER)
        r.queue.after_ns = r.model.after = diff_roll_delay(w);
    if (diff_roll(w, 4) == 0) {
        r.queue.prioritized = true;
        r.queue.priority = r.model.priority = diff_roll_priority(w);
    }
    return r;
}

static void
note_result(struct diff_world *w, wq_result r)
{
    static const char *const names[] = {"done", "retry", "after",
                                        "drop", "back",  "bury"};

    diff_note_more(w, " %s", r.outcome < 6 ? names[r.outcome] : "unknown");
    if (r.outcome == WQ_RESULT_AFTER)
        diff_note_more(w, ":%" PRId64 "ns", r.after_ns);
    if (r.prioritized)
        diff_note_more(w, "@%d", r.priority);
}

/* The hold of key `n` ends in the model. A handle that is shut down still takes
 * back what it holds (S-14). */
static enum model_answer
finish_in_model(struct diff_world *w, int n, struct model_result result)
{
    const enum model_answer answer = model_finish(&w->model, n, result, w->now);

    w->given_up += answer == MODEL_GIVEN_UP;
    let_go(w, n);
    return answer;
}

void
diff_finish(struct diff_world *w)
{
    const int n = roll_held(w);

    if (n < 0)
        return;
    const struct result r = roll_result(w, n);
    diff_note(w, "finish %s", name(n));
    note_result(w, r.queue);
    const wq_err err = wq_finish(w->h->q, w->items[n], r.queue);
    diff_compare(w, finish_in_model(w, n, r.model), err);
}

void
diff_finish_many(struct diff_world *w)
{
    enum { MOST = 4 };
    int           keys[MOST];
    wq_item      *items[MOST];
    wq_result     results[MOST];
    struct result r[MOST];
    wq_err        errs[MOST];
    const size_t  n = choose_held(w, keys, 1 + (size_t)diff_roll(w, MOST));

    if (n == 0)
        return;
    diff_note(w, "finish_many");
    for (size_t i = 0; i < n; i++) {
        r[i] = roll_result(w, keys[i]);
        results[i] = r[i].queue;
        items[i] = w->items[keys[i]];
        diff_note_more(w, " %s", name(keys[i]));
        note_result(w, results[i]);
    }
    wq_err       first = WQ_OK;
    const wq_err err = wq_finish_many(w->h->q, items, results, errs, n);
    diff_note_more(w, " ->");
    for (size_t i = 0; i < n; i++) {
        diff_note_more(w, " %s", wq_err_name(errs[i]) + strlen("WQ_"));
        diff_equal(w, "result of a finish",
                   model_error(finish_in_model(w, keys[i], r[i].model)),
                   errs[i]);
        diff_equal(w, "the item is NULL", true, !items[i]);
        first = first ? first : errs[i];
    }
    diff_equal(w, "the first error", first, err);
}

/* ---- next ---------------------------------------------------------------- */

/* The get of a next: what became of the key before does not matter. */
static void
compare_next(struct diff_world *w, wq_err err, wq_item *item)
{
    compare_get(w, err, item);
    diff_equal(w, "there is a next item", err == WQ_OK, item != NULL);
}

void
diff_next(struct diff_world *w)
{
    const int n = roll_held(w);
    wq_item  *item = n < 0 ? NULL : w->items[n];

    diff_note(w, "next %s", n < 0 ? "none" : name(n));
    const wq_err err = wq_next(w->h->q, 0, &item);
    if (n >= 0) {
        diff_equal(w, "done of a key", MODEL_OK,
                   model_done(&w->model, n, w->now));
        let_go(w, n);
    }
    compare_next(w, err, item);
}

void
diff_next_with(struct diff_world *w)
{
    const int n = roll_held(w);

    if (n < 0)
        return;
    wq_item            *item = w->items[n];
    const struct result r = roll_result(w, n);
    diff_note(w, "next_with %s", name(n));
    note_result(w, r.queue);
    const wq_err err = wq_next_with(w->h->q, r.queue, 0, &item);
    (void)finish_in_model(w, n, r.model);
    compare_next(w, err, item);
}
