/* SPDX-License-Identifier: MIT */
/* core_prop.c: the core held against the model; see core_prop.h.
 *
 * Which operations there are, and how bytes become steps. The other files
 * named prop_ perform the operations.
 */
#include "model/core_prop.h"

#include "model/prop_world.h"

/* ---- the operations ----------------------------------------------------- */

/* An allocation of the next operation is refused, or all from then on. */
static wq_err
refuse_memory(struct world *w, const struct trace *t)
{
    counting_fail(&w->mem, (uint64_t)(t->a / 2 % 8 + 1),
                  t->a % 2 ? COUNTING_ONCE : COUNTING_FROM_NOW);
    return WQ_OK;
}

/* The plug-in refuses one of the next pushes. */
static wq_err
refuse_push(struct world *w, const struct trace *t)
{
    if (w->has_plug_in)
        w->plug_in.refuse = w->model.refuse = t->a % 4 + 1;
    return WQ_OK;
}

/* The core ends and another one begins. */
static wq_err
renew(struct world *w, const struct trace *t)
{
    (void)t;
    prop_end(w);
    prop_begin(w);
    return WQ_OK;
}

/* What an operation is given. */
enum arguments { NOTHING, BYTE, TWO_BYTES, KEY, KEY_AND_BYTE, BATCH };

/* The order and the weights are what the cases in fuzz/corpus/core were written
 * with: change one and those mean something else. */
static const struct operation {
    const char    *name;
    unsigned       weight; /* of 256 bytes, how many mean this */
    enum arguments given;
    wq_err (*perform)(struct world *w, const struct trace *t);
} operations[] = {
    {"add", 24, KEY, prop_add},
    {"add_backoff", 9, KEY_AND_BYTE, prop_add_backoff}, /* how much later */
    {"admit", 4, KEY, prop_admit}, /* accepted before the shutdown */
    {"add_after", 14, KEY_AND_BYTE, prop_add_after}, /* how much later */
    {"add_respecting", 4, KEY, prop_add_respecting}, /* a backoff */
    {"add_at", 6, KEY_AND_BYTE, prop_add_at},        /* which extreme time */
    {"pass", 14, BYTE, prop_pass},                   /* how far */
    {"pass_to", 2, BYTE, prop_pass_to},              /* which extreme time */
    {"get", 42, NOTHING, prop_get},
    {"done", 36, BYTE, prop_done},            /* which of the held items */
    {"done_key", 10, KEY, prop_done_key},     /* held or not */
    {"done_again", 4, BYTE, prop_done_again}, /* which item done before */
    {"done_copy", 1, BYTE, prop_done_copy},   /* of which held item */
    {"done_random", 1, TWO_BYTES, prop_done_random}, /* which slot */
    {"no_memory", 6, BYTE, refuse_memory},           /* which allocation */
    {"no_push", 4, BYTE, refuse_push},               /* which push */
    {"shut_down", 1, NOTHING, prop_shut_down},
    {"renew", 2, NOTHING, renew},
    {"drop_waiting", 1, NOTHING, prop_drop_waiting},
    {"add_with", 30, BATCH, prop_add_with},
    {"remove", 8, KEY, prop_remove},
    {"cancel", 5, KEY, prop_cancel},
    {"done_many", 4, TWO_BYTES, prop_done_many}, /* which, and what is wrong */
    {"walk", 4, BYTE, prop_walk},                /* how far */
    {"flush", 7, NOTHING, prop_flush},
    {"errand", 4, KEY, prop_errand},
    {"remove_at_done", 4, KEY_AND_BYTE, prop_remove_at_done}, /* on or off */
    {"pause", 4, BYTE, prop_pause},                           /* on or off */
    {"hasten", 1, BYTE, prop_hasten}, /* backoffs too? */
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static const struct operation *
decode(int byte)
{
    unsigned from = 0;

    for (size_t i = 0; i < OPERATIONS; i++) {
        from += operations[i].weight;
        if ((unsigned)byte < from)
            return &operations[i];
    }
    return &operations[0];
}

/* ---- arguments ---------------------------------------------------------- */

static int
read_key(struct world *w)
{
    return prop_read_byte(w) % w->keys;
}

/* Form, priority, time, how many, keys. */
static void
read_batch(struct world *w, struct trace *t)
{
    t->a = prop_read_byte(w);
    t->b = prop_read_byte(w);
    t->c = prop_read_byte(w);
    const int n = prop_read_byte(w);
    t->n = n % 16 < 8 ? 1 : 1 + n % MODEL_BATCH;
    for (int i = 0; i < t->n; i++)
        t->keys[i] = read_key(w);
}

static void
read_arguments(struct world *w, enum arguments given, struct trace *t)
{
    if (given == BATCH)
        read_batch(w, t);
    else if (given == KEY || given == KEY_AND_BYTE)
        t->a = read_key(w);
    else if (given != NOTHING)
        t->a = prop_read_byte(w);
    if (given == KEY_AND_BYTE || given == TWO_BYTES)
        t->b = prop_read_byte(w);
}

/* ---- steps -------------------------------------------------------------- */

static void
step(struct world *w)
{
    const struct operation *op = decode(prop_read_byte(w));
    struct trace            t = {.name = op->name, .now = w->now};

    read_arguments(w, op->given, &t);
    w->plug_in.refused = false;
    w->traces[w->report->steps++ % PROP_TRACE] = t;
    t.answer = op->perform(w, &t);
    if (op->perform != refuse_memory) /* it lasts for one operation */
        prop_heal(w);
    w->traces[(w->report->steps - 1) % PROP_TRACE] = t;
    if (w->rebuilt)
        prop_rebuild(w);
    prop_note_who_stays(w);
    prop_compare_numbers(w);
    prop_compare_waits(w);
    if (w->report->steps % 8 == 0)
        prop_compare_keys(w);
    prop_audit(w);
}

/* Everything comes out, in the model's order, and nothing is left. */
static void
take_all_out(struct world *w)
{
    static const struct trace first = {.a = 0}, resume = {.a = 1};

    w->plug_in.refuse = w->model.refuse = 0;
    prop_heal(w);
    (void)prop_pause(w, &resume);
    while (!w->report->text[0] && !model_idle(&w->model)) {
        (void)(model_offers(&w->model) ? prop_get : prop_done)(w, &first);
        prop_compare_waits(w);
    }
    prop_compare_numbers(w);
    prop_audit(w);
}

int
core_prop(const uint8_t *data, size_t len, struct core_prop_report *report)
{
    static struct world w; /* too large for a small stack */

    prop_create(&w, data, len, report);
    while (w.next < w.end && !report->text[0])
        step(&w);
    if (!report->text[0])
        take_all_out(&w);
    prop_end(&w);
    return report->text[0] ? -1 : 0;
}
