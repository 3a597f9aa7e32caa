/* SPDX-License-Identifier: MIT */
/* prop_waits.c: do time, waits for work, pauses and the end act alike on the
 * core and the model? See prop_world.h. */
#include "model/prop_world.h"

/* ---- time --------------------------------------------------------------- */

/* At the end of time there is no later, and what is left alone for ever is not
 * any more: that is not asked. */
static wq_err
pass(struct world *w, int64_t now)
{
    if (now == INT64_MAX && model_throttles(&w->model))
        now--;
    wq__core_promote(&w->core, now);
    model_pass(&w->model, now, WQ__OFFER_AGAIN_NS);
    return WQ_OK;
}

wq_err
prop_pass(struct world *w, const struct trace *t)
{
    w->now += t->a % 8 * PROP_STEP_UNIT;
    return pass(w, w->now);
}

/* Once: it is not that late afterwards. */
wq_err
prop_pass_to(struct world *w, const struct trace *t)
{
    return pass(w, prop_extreme(t->a));
}

/* ---- waiting for work --------------------------------------------------- */

wq_err
prop_flush(struct world *w, const struct trace *t)
{
    const int i = w->rebuilt ? -1 : model_begin_flush(&w->model);

    (void)t;
    if (i >= 0)
        w->flushes[i] = (struct flush){
            .is_under_way = true,
            .turn = wq__core_begin_flush(&w->core),
        };
    return WQ_OK;
}

/* O-81: when the runs are done that it waits for, and not before. Of many
 * flushes some may finish later, but not later than when there is no work. */
static void
compare_flush(struct world *w, int i)
{
    struct flush *f = &w->flushes[i];
    const bool    is_over = model_flush_is_over(&w->model, i);
    const bool    must_be = w->model.flushes[i].is_exact
                                ? is_over
                                : is_over && model_idle(&w->model);
    const bool    has_finished = wq__core_has_flushed(&w->core, f->turn);

    prop_check(w, is_over || !has_finished, "a flush finished too early", 0, 1);
    prop_check(w, has_finished || !must_be, "a flush has not finished", 1, 0);
    if (has_finished) {
        f->is_under_way = false;
        model_end_flush(&w->model, i);
    }
}

wq_err
prop_errand(struct world *w, const struct trace *t)
{
    const int               n = t->a;
    const struct model_key *k = &w->model.keys[n];

    for (int i = 0; i < PROP_ERRANDS; i++)
        if (!w->errands[i].is_under_way) {
            w->errands[i] = (struct errand){
                .is_under_way = true,
                .key = n,
                .core = wq__core_begin_key_flush(&w->core, prop_key(n),
                                                 prop_hash(w, n)),
                .runs = {.run = k->ready || k->held ? k->runs.run : 0,
                         .next = k->dirty ? k->runs.next : 0},
            };
            break;
        }
    return WQ_OK;
}

/* O-83 */
static void
compare_errand(struct world *w, struct errand *e)
{
    const bool is_served = wq__core_has_flushed_key(
        &w->core, prop_key(e->key), prop_hash(w, e->key), &e->core);

    prop_equal(w, "is an errand served",
               !model_owes(&w->model, e->key, e->runs), is_served);
    e->is_under_way = !is_served;
}

void
prop_compare_waits(struct world *w)
{
    for (int i = 0; i < MODEL_FLUSHES; i++)
        if (w->flushes[i].is_under_way)
            compare_flush(w, i);
    for (int i = 0; i < PROP_ERRANDS; i++)
        if (w->errands[i].is_under_way)
            compare_errand(w, &w->errands[i]);
}

/* ---- pausing and the end ------------------------------------------------ */

wq_err
prop_pause(struct world *w, const struct trace *t)
{
    const bool paused = t->a % 4 == 0;

    wq__core_pause(&w->core, paused);
    model_pause(&w->model, paused);
    return WQ_OK;
}

wq_err
prop_shut_down(struct world *w, const struct trace *t)
{
    (void)t;
    wq__core_shut_down(&w->core);
    model_shut_down(&w->model);
    return WQ_OK;
}

/* Shut down, and all deadlines come now. */
wq_err
prop_hasten(struct world *w, const struct trace *t)
{
    const bool backoffs = t->a % 2;

    (void)prop_shut_down(w, t);
    wq__core_flush_waiting(&w->core, w->now, backoffs);
    model_hasten(&w->model, w->now, WQ__OFFER_AGAIN_NS, backoffs);
    return WQ_OK;
}

wq_err
prop_drop_waiting(struct world *w, const struct trace *t)
{
    (void)t;
    wq__core_drop_waiting(&w->core);
    model_drop_waiting(&w->model);
    return WQ_OK;
}
