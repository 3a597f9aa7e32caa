/* SPDX-License-Identifier: MIT */
/* model.c: the life of the model, and of a key after its add; see model.h.
 *
 * model_adds.c knows what an add does, model_line.c who leaves next.
 */
#include "model/model_parts.h"

#include <string.h>

/* ---- taking back -------------------------------------------------------- */

/* Nothing is asked for it any more. */
static void
take_back_all(struct model *m, int key, int64_t now)
{
    struct model_key *k = &m->keys[key];

    m->removed += model_is_wanted(m, key);
    model__take_out(m, key);
    k->dirty = false;
    k->next_cooldown = 0;
    model__stop_waiting(k, now);
}

enum model_answer
model_remove(struct model *m, int key, int64_t now)
{
    struct model_key *k = &m->keys[key];

    if (k->dead) { /* S-13 */
        k->dead = false;
        m->failures[key] = 0;
        return MODEL_OK;
    }
    if (k->ready && !m->gives)
        return MODEL_CANNOT;
    if (!model_is_wanted(m, key) && !k->waiting)
        return k->held ? MODEL_WRONG_STATE : MODEL_NOTHING;
    take_back_all(m, key, now);
    return MODEL_OK;
}

enum model_answer
model_remove_at_done(struct model *m, int key, bool on)
{
    if (!m->keys[key].held)
        return MODEL_NOTHING;
    m->keys[key].removing = on;
    return MODEL_OK;
}

enum model_answer
model_cancel(struct model *m, int key, int64_t now)
{
    if (!m->keys[key].waiting)
        return MODEL_NOTHING;
    model__stop_waiting(&m->keys[key], now);
    return MODEL_OK;
}

/* ---- time --------------------------------------------------------------- */

/* False: it was refused, and there is no later time. */
static bool
fall_due(struct model *m, int key, int64_t now, int64_t again)
{
    struct model_key *k = &m->keys[key];
    enum model_effect ignored;

    if (model__want(m, key, k->wait_priority, k->at, &ignored) == MODEL_OK) {
        model__throttle_next_instead(k);
        model__stop_waiting(k, now);
        return true;
    }
    if (now == INT64_MAX)
        return false;
    model__set_deadline(m, k, model__later_by(now, again));
    return true;
}

void
model_pass(struct model *m, int64_t now, int64_t again)
{
    for (int i = 0; i < MODEL_KEYS; i++)
        model__forget_quiet_if_over(&m->keys[i], now);
    while (model_counts(m).waiting && model_first_deadline(m) <= now)
        if (!fall_due(m, model__first_waiting(m, NULL), now, again))
            return;
}

/* ---- get and done ------------------------------------------------------- */

enum model_answer
model_get(struct model *m, int64_t now, int *key)
{
    if (model_offers(m) == 0)
        return MODEL_NOTHING;
    *key = model__next_ready(m, now);
    model__take_out(m, *key);
    struct model_key *k = &m->keys[*key];
    k->held = true;
    model__settle_lanes(m);
    k->held_priority = k->priority;
    k->got = now;
    if (k->next_cooldown) { /* O-54: from the hand-out on */
        k->quiet = true;
        k->until = model__later_by(now, k->next_cooldown);
        k->next_cooldown = 0;
    }
    m->gets++;
    return MODEL_OK;
}

/* What was asked for a HELD key since its hand-out. False: the order refuses
 * it. */
static bool
settle_requests(struct model *m, int key, int64_t now)
{
    struct model_key *k = &m->keys[key];

    if (k->removing) { /* O-84 */
        take_back_all(m, key, now);
        k->removing = false;
        return true;
    }
    if (k->dirty && model__backs_off(m, k)) { /* O-16 */
        (void)model__keep(m, k, k->priority, false);
        model__throttle_waiting_instead(k);
        m->deferred++;
        return true;
    }
    if (k->dirty && !model__make_ready(m, key))
        return false;
    if (k->dirty) {
        k->runs.run = k->runs.next;
        k->ready_at = now; /* O-89 */
    }
    return true;
}

enum model_answer
model_done(struct model *m, int key, int64_t now)
{
    struct model_key *k = &m->keys[key];

    if (!k->held)
        return MODEL_WRONG_STATE;
    if (!settle_requests(m, key, now))
        return MODEL_REFUSED;
    k->held = k->dirty = false;
    m->dones++;
    model__settle_lanes(m);
    return MODEL_OK;
}

void
model_pause(struct model *m, bool paused)
{
    m->paused = paused;
}

/* ---- flushes and errands ------------------------------------------------ */

static struct model_runs
runs_of(const struct model *m, int key)
{
    const struct model_key *k = &m->keys[key];
    return (struct model_runs){
        .run = k->ready || k->held ? k->runs.run : 0,
        .next = k->dirty ? k->runs.next : 0,
    };
}

/* Is run number `run` one of these? */
static bool
has_run(struct model_runs runs, uint64_t run)
{
    return run && (runs.run == run || runs.next == run);
}

bool
model_owes(const struct model *m, int key, struct model_runs runs)
{
    const struct model_runs owed = runs_of(m, key);
    return has_run(owed, runs.run) || has_run(owed, runs.next);
}

bool
model_flush_is_over(const struct model *m, int flush)
{
    for (int key = 0; key < MODEL_KEYS; key++)
        if (model_owes(m, key, m->flushes[flush].runs[key]))
            return false;
    return true;
}

/* Does the flush wait for all runs that are owed? */
static bool
waits_for_all(const struct model *m, const struct model_flush *f)
{
    for (int key = 0; key < MODEL_KEYS; key++) {
        const struct model_runs owed = runs_of(m, key);
        if ((owed.run && !has_run(f->runs[key], owed.run)) ||
            (owed.next && !has_run(f->runs[key], owed.next)))
            return false;
    }
    return true;
}

/* How many different sets of runs are waited for. */
static size_t
sets_under_way(const struct model *m)
{
    size_t n = 0;

    for (int i = 0; i < MODEL_FLUSHES; i++) {
        bool is_first = m->flushes[i].is_under_way;
        for (int k = 0; k < i; k++)
            is_first &= !m->flushes[k].is_under_way ||
                        m->flushes[k].set != m->flushes[i].set;
        n += is_first;
    }
    return n;
}

int
model_begin_flush(struct model *m)
{
    struct model_flush f = {
        .is_under_way = true,
        .is_exact = sets_under_way(m) < MODEL_EXACT,
        .set = ++m->sets,
    };
    int at = -1;

    for (int key = 0; key < MODEL_KEYS; key++)
        f.runs[key] = runs_of(m, key);
    for (int i = 0; i < MODEL_FLUSHES; i++) {
        const struct model_flush *other = &m->flushes[i];
        if (!other->is_under_way) {
            at = i;
        } else if (waits_for_all(m, other)) {
            f.set = other->set;
            f.is_exact = other->is_exact;
        }
    }
    if (at >= 0)
        m->flushes[at] = f;
    return at;
}

void
model_end_flush(struct model *m, int flush)
{
    m->flushes[flush].is_under_way = false;
}

/* ---- life --------------------------------------------------------------- */

void
model_init(struct model *m, enum model_order order)
{
    memset(m, 0, sizeof *m);
    m->order = order;
    m->gives = true;
}

/* No add will be throttled any more. */
void
model_shut_down(struct model *m)
{
    m->shut = true;
    for (int i = 0; i < MODEL_KEYS; i++)
        if (!m->keys[i].waiting) {
            m->keys[i].next_cooldown = 0;
            m->keys[i].quiet = false;
        }
}

/* Nothing waits for a time any more, and no add will be throttled. */
static void
forget_times(struct model_key *k)
{
    k->waiting = k->backoff = k->debounced = false;
    k->next_cooldown = k->wait_cooldown = 0;
    k->quiet = false;
}

void
model_drop_waiting(struct model *m)
{
    for (int i = 0; i < MODEL_KEYS; i++) {
        struct model_key *k = &m->keys[i];
        m->drops += k->waiting && !model_is_wanted(m, i);
        forget_times(k);
    }
}

/* False: the order refuses the key. */
static bool
come_now(struct model *m, int key, int64_t now)
{
    enum model_effect ignored;

    return model__want(m, key, m->keys[key].wait_priority, now, &ignored) ==
           MODEL_OK;
}

void
model_hasten(struct model *m, int64_t now, int64_t again, bool backoffs)
{
    bool passed[MODEL_KEYS] = {0};
    int  key;

    while ((key = model__first_waiting(m, passed)) >= 0) {
        struct model_key *k = &m->keys[key];

        passed[key] = true;
        if (k->backoff && !k->expected && !backoffs) {
            m->drops += !model_is_wanted(m, key);
        } else if (!come_now(m, key, now)) {
            model__set_deadline(m, k, model__later_by(now, again));
            continue;
        }
        forget_times(k);
    }
}
