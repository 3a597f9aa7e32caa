/* SPDX-License-Identifier: MIT */
/* world.h: what do the operations of a life work on? See differential.h.
 *
 * An operation rolls its arguments, writes itself down, calls the queue and the
 * model, and compares what they answer.
 */
#ifndef WQ_TEST_DIFFERENTIAL_WORLD_H
#define WQ_TEST_DIFFERENTIAL_WORLD_H

#include <wq/clock.h>
#include <wq/inspect.h>
#include <wq/limiter.h>
#include <wq/wq.h>

#include "model/differential/differential.h"
#include "model/model.h"
#include "model/words.h"
#include "support/backend.h"
#include "unit/dice.h"

enum {
    DIFF_KEYS = 12,      /* of the model's; so few that they meet often */
    DIFF_UNIT_NS = 10,   /* times are multiples of this, so many are equal */
    DIFF_LINE = 240,     /* bytes of an operation that is written down */
    DIFF_LINES = 400,    /* operations that are kept */
    DIFF_LAST_LINES = 40 /* of these, how many a report shows */
};

/* One handle of the store; most backends have no second one. */
struct diff_handle {
    wq_queue *q;
    bool      shut, paused;
    size_t    held;
};

struct diff_world {
    const struct diff_terms *terms;
    struct dice              dice;
    wq_clock                *clock;
    int64_t                  now;

    struct diff_handle handles[2];
    size_t             handles_n;
    /* What the next operation uses: one of the handles. */
    struct diff_handle *h;

    struct model        model;
    wq_item            *items[MODEL_KEYS];   /* by key, while HELD */
    struct diff_handle *holders[MODEL_KEYS]; /* likewise */
    uint64_t            fences[MODEL_KEYS];  /* the last one seen */
    unsigned            dropped;             /* calls of on_drop */
    unsigned            given_up;            /* calls that must have been */
    wq_stats            gone; /* counts of handles that were destroyed */

    bool has_throttle; /* the backend does not lack it */
    bool knows_waits;  /* all of the queue knows its WAITING keys; that of a
                          layer does not: see wq/backend.h */
    bool is_shared;    /* S-05, S-13: see wq.h */

    char                lines[DIFF_LINES][DIFF_LINE];
    struct diff_report *report;
};

/* ---- life.c -------------------------------------------------------------- */

void diff_begin(struct diff_world *w, const struct diff_terms *terms,
                uint64_t seed, struct diff_report *report);
void diff_end(struct diff_world *w);

/* S-07: destroy the handle, which holds at most one key, and open another. */
void diff_reopen(struct diff_world *w);

/* Key number `n`; the number of a key, or -1. */
wq_key diff_key(int n);
int    diff_number(wq_key key);

/* Begin the line of an operation, and go on with it. */
void diff_note(struct diff_world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void diff_note_more(struct diff_world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Note the first failure of a life. */
void diff_equal(struct diff_world *w, const char *what, int64_t expected,
                int64_t got);
bool diff_has_failed(const struct diff_world *w);

/* What the queue answers if the model answers this. */

/* The queue answers as the model. MODEL_NOTHING of a get is WQ_ETIMEDOUT, or
 * WQ_ESHUTDOWN. */
void diff_compare(struct diff_world *w, enum model_answer expected, wq_err got);
void diff_compare_get(struct diff_world *w, enum model_answer expected,
                      wq_err got);

/* 0 .. sides - 1 */
int diff_roll(struct diff_world *w, int sides);

/* Any key; a duration of some units, or now and then none, or for ever; a
 * priority. */
int     diff_roll_key(struct diff_world *w);
int64_t diff_roll_delay(struct diff_world *w);
int     diff_roll_priority(struct diff_world *w);

/* ---- adds.c -------------------------------------------------------------- */

void diff_add(struct diff_world *w);
void diff_add_after(struct diff_world *w);
void diff_add_rate_limited(struct diff_world *w);
void diff_add_with(struct diff_world *w);
void diff_remove(struct diff_world *w);
void diff_cancel_after(struct diff_world *w);
void diff_forget(struct diff_world *w);
void diff_revive(struct diff_world *w);

/* ---- gets.c -------------------------------------------------------------- */

void diff_get(struct diff_world *w);
void diff_get_many(struct diff_world *w);
void diff_done(struct diff_world *w);
void diff_done_key(struct diff_world *w);
void diff_done_many(struct diff_world *w);
void diff_finish(struct diff_world *w);
void diff_finish_many(struct diff_world *w);
void diff_next(struct diff_world *w);
void diff_next_with(struct diff_world *w);

/* ---- view.c -------------------------------------------------------------- */

/* The counts of all handles are the model's from now on. */
void diff_count_anew(struct diff_world *w);

/* All that can be seen; a walk now and then. */
void diff_compare_view(struct diff_world *w);

#endif
