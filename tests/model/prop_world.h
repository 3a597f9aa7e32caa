/* SPDX-License-Identifier: MIT */
/* prop_world.h: what do the operations of core_prop.c work on?
 *
 * A world is a core, and a model of it that gets the same operations. Only the
 * files of the property include this header. An operation is a function
 *
 *     wq_err prop_verb(struct world *w, const struct trace *t);
 *
 * It calls the core and the model with the arguments in `t`, compares what they
 * answer, and returns what the core has answered.
 */
#ifndef WQ_TEST_PROP_WORLD_H
#define WQ_TEST_PROP_WORLD_H

#include "core/core.h"
#include "model/core_prop.h"
#include "model/model.h"
#include "support/counting.h"
#include "support/plug_in.h"

enum {
    PROP_TRACE = 40,     /* operations that a report shows */
    PROP_STEP_UNIT = 10, /* times are multiples of this, so many are equal */
    PROP_STALE_MAX = 8,  /* items remembered after done */
    PROP_ERRANDS = 4,    /* under way at a time */
    PROP_THREADS = 3,    /* that get keys */
};

/* An operation that was performed. */
struct trace {
    const char *name;
    int         a, b, c;           /* what it was given */
    int         keys[MODEL_BATCH]; /* likewise */
    int         n;                 /* how many of these */
    int64_t     now;
    wq_err      answer;
};

/* A walk that is under way while other things happen. */
struct walk {
    bool    under_way;
    wq__ref cursor;
    bool    stayed[MODEL_KEYS]; /* it had a state all the time */
    int     seen[MODEL_KEYS];   /* how often */
};

/* A flush, by the number it has in the model. */
struct flush {
    bool     is_under_way;
    uint64_t turn;
};

/* What was asked for a key before a moment. */
struct errand {
    bool                 is_under_way;
    int                  key;
    struct wq__key_flush core;
    struct model_runs    runs;
};

struct world {
    const uint8_t *next, *end; /* the bytes left to read */

    struct counting     mem;
    struct wq__core     core;
    struct wq__hash_key secret;
    struct plug_in      plug_in;
    wq_order            order;
    bool                has_plug_in;
    bool                rebuilt; /* CORE_PROP_REBUILT */

    bool         respect, ages;
    size_t       max_len, max_bytes;
    bool         grouped;
    size_t       max_held;  /* keys of a group; 0: any number */
    int64_t      max_ready; /* then a key is overdue; 0: never */
    struct model model;
    int          keys; /* how many of the model's are used */
    int64_t      now;

    wq_item    *items[MODEL_KEYS];  /* by key, while held */
    uint64_t    fences[MODEL_KEYS]; /* by key, the last one seen */
    wq_item    *stale[PROP_STALE_MAX];
    size_t      stales;
    struct walk walk;

    struct flush  flushes[MODEL_FLUSHES];
    struct errand errands[PROP_ERRANDS];

    struct trace traces[PROP_TRACE];

    struct core_prop_report *report;
};

/* ---- prop_world.c: life, keys, times, reports --------------------------- */

/* The world that the first bytes stand for. */
void prop_create(struct world *w, const uint8_t *data, size_t len,
                 struct core_prop_report *report);

/* Its core and its model begin; they end, and no memory stays. */
void prop_begin(struct world *w);
void prop_end(struct world *w);

/* The next byte; 0 when none is left. */
int prop_read_byte(struct world *w);

/* The bytes of key number `n`; the number of a key, or -1; its hash; its group;
 * the thread that gets it. */
wq_key   prop_key(int n);
int      prop_number(const struct world *w, wq_key key);
uint32_t prop_hash(const struct world *w, int n);
int      prop_group(int n);
uint32_t prop_thread(int n);

/* How long it is from one time to another; not less than nothing. */
int64_t prop_age(int64_t from, int64_t to);

/* One of the first and last times there are. */
int64_t prop_extreme(int which);

/* Note the first failure of a run; true if `ok`. */
bool prop_check(struct world *w, bool ok, const char *what, long long expected,
                long long got);
void prop_equal(struct world *w, const char *what, long long expected,
                long long got);

/* The core answers as the model does. */
void prop_compare(struct world *w, wq_err err, enum model_answer answer);

/* Does the auditor find all laws kept? */
void prop_audit(struct world *w);

/* A NUL follows the bytes of every key that is shown. */
void prop_check_end(struct world *w, wq_key key);

/* Was memory refused in this operation? Then the core may have failed where the
 * model, which needs none, would not; L6: the model stays as it is. */
bool prop_failed_for_memory(const struct world *w, wq_err err);

/* From now on memory is there. */
void prop_heal(struct world *w);

/* ---- prop_adds.c -------------------------------------------------------- */

wq_err prop_add(struct world *w, const struct trace *t);
wq_err prop_admit(struct world *w, const struct trace *t);
wq_err prop_add_after(struct world *w, const struct trace *t);
wq_err prop_add_backoff(struct world *w, const struct trace *t);
wq_err prop_add_at(struct world *w, const struct trace *t);
wq_err prop_add_respecting(struct world *w, const struct trace *t);
wq_err prop_add_with(struct world *w, const struct trace *t);

/* ---- prop_gets.c: get, done and taking back ----------------------------- */

wq_err prop_get(struct world *w, const struct trace *t);
wq_err prop_done(struct world *w, const struct trace *t);
wq_err prop_done_key(struct world *w, const struct trace *t);
wq_err prop_done_again(struct world *w, const struct trace *t);
wq_err prop_done_copy(struct world *w, const struct trace *t);
wq_err prop_done_random(struct world *w, const struct trace *t);
wq_err prop_done_many(struct world *w, const struct trace *t);
wq_err prop_remove(struct world *w, const struct trace *t);
wq_err prop_cancel(struct world *w, const struct trace *t);
wq_err prop_remove_at_done(struct world *w, const struct trace *t);

/* ---- prop_waits.c: time, waiting for work, pausing and the end ---------- */

wq_err prop_pass(struct world *w, const struct trace *t);
wq_err prop_pass_to(struct world *w, const struct trace *t);
wq_err prop_flush(struct world *w, const struct trace *t);
wq_err prop_errand(struct world *w, const struct trace *t);
wq_err prop_pause(struct world *w, const struct trace *t);
wq_err prop_shut_down(struct world *w, const struct trace *t);
wq_err prop_hasten(struct world *w, const struct trace *t);
wq_err prop_drop_waiting(struct world *w, const struct trace *t);

/* After each operation: which flushes and errands are over. */
void prop_compare_waits(struct world *w);

/* ---- prop_images.c ------------------------------------------------------ */

/* All keys leave the core as images, and come back. */
void prop_rebuild(struct world *w);

/* ---- prop_view.c: what can be seen from outside ------------------------- */

wq_err prop_walk(struct world *w, const struct trace *t);

/* Which keys stay, for the walk that is under way. */
void prop_note_who_stays(struct world *w);

/* The numbers, which is cheap, and all keys, threads and priorities. */
void prop_compare_numbers(struct world *w);
void prop_compare_keys(struct world *w);

#endif
