/* SPDX-License-Identifier: MIT */
/* play.c: which operations are there, and how does a life go? See
 * differential.h. */
#include "model/differential/world.h"

#include <inttypes.h>

/* ---- the queue ----------------------------------------------------------- */

/* What falls due does so at the next call, whichever that is. */
static void
pass(struct diff_world *w)
{
    const int64_t by = diff_roll(w, 8) * DIFF_UNIT_NS;

    w->h = &w->handles[0];
    diff_note(w, "pass %" PRId64 "ns", by);
    w->now += by;
    wq_clock_fake_step(w->clock, by);
    model_pass(&w->model, w->now, 0);
}

static void
pause_or_resume(struct diff_world *w)
{
    const bool paused = diff_roll(w, 3) == 0;

    diff_note(w, paused ? "pause" : "resume");
    const wq_err err = paused ? wq_pause(w->h->q) : wq_resume(w->h->q);
    diff_compare(w, paused && w->h->shut ? MODEL_SHUT : MODEL_OK, err);
    w->h->paused = paused && !w->h->shut;
}

/* S-05: a shared queue leaves its WAITING keys alone, any other drops them. */
static void
shut_down(struct diff_world *w)
{
    diff_note(w, "shutdown");
    wq_shutdown(w->h->q);
    w->h->shut = true;
    w->h->paused = false;
    if (!w->is_shared) {
        model_shut_down(&w->model);
        model_drop_waiting(&w->model);
    }
}

/* In which order several keys come back is not said. A scenario can destroy the
 * second handle only. */
static void
reopen(struct diff_world *w)
{
    if (w->h == &w->handles[1] && w->h->held <= 1)
        diff_reopen(w);
}

/* ---- the operations ------------------------------------------------------ */

static const struct operation {
    unsigned weight;
    void (*perform)(struct diff_world *w);
} operations[] = {
    {20, diff_add},       {12, diff_add_after},  {8, diff_add_rate_limited},
    {30, diff_add_with},  {26, diff_get},        {8, diff_get_many},
    {14, diff_done},      {5, diff_done_key},    {4, diff_done_many},
    {20, diff_finish},    {6, diff_finish_many}, {8, diff_next},
    {14, diff_next_with}, {8, diff_remove},      {6, diff_cancel_after},
    {6, diff_forget},     {6, diff_revive},      {24, pass},
    {4, pause_or_resume}, {4, reopen},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static void
perform_any(struct diff_world *w)
{
    unsigned sum = 0;

    for (size_t i = 0; i < OPERATIONS; i++)
        sum += operations[i].weight;
    unsigned roll = (unsigned)diff_roll(w, (int)sum);
    size_t   i = 0;
    while (roll >= operations[i].weight)
        roll -= operations[i++].weight;
    operations[i].perform(w);
}

static void
step(struct diff_world *w)
{
    w->h = &w->handles[diff_roll(w, (int)w->handles_n)];
    perform_any(w);
    diff_compare_view(w);
}

/* Everything comes out, in the model's order. */
static void
take_all_out(struct diff_world *w)
{
    for (size_t i = 0; i < w->handles_n; i++) {
        w->h = &w->handles[i];
        (void)wq_resume(w->h->q);
        w->h->paused = false;
    }
    w->h = &w->handles[0];
    while (w->model.ready_len && !diff_has_failed(w))
        diff_get(w);
    for (size_t i = 0; i < w->handles_n; i++) {
        w->h = &w->handles[i];
        while (w->h->held && !diff_has_failed(w))
            diff_done(w);
    }
    diff_compare_view(w);
}

/* The last part of a life comes after a shutdown. A layer has other rules then:
 * it takes no key back (WQ_RESULT_BACK), and accepts an add with a delay and
 * MERGE of a key that is READY or DIRTY. */
bool
diff_play(const struct diff_terms *terms, uint64_t seed, size_t steps,
          struct diff_report *report)
{
    static struct diff_world w; /* too large for a small stack */
    const size_t             last = steps / 8;

    diff_begin(&w, terms, seed, report);
    for (size_t i = 0; i < steps && !diff_has_failed(&w); i++) {
        if (i == steps - last && w.knows_waits)
            shut_down(&w);
        step(&w);
    }
    if (!diff_has_failed(&w))
        take_all_out(&w);
    diff_end(&w);
    return !diff_has_failed(&w);
}
