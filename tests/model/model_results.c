/* SPDX-License-Identifier: MIT */
/* model_results.c: what becomes of a key of the model after a worker had it, and
 * how long does a failure delay it? */
#include "model/model_parts.h"

/* ---- the limiter -------------------------------------------------------- */

/* L-01 to L-03 */
static int64_t
query(struct model *m, int key)
{
    int64_t delay = m->first_delay;

    for (unsigned i = 0; i < m->failures[key] && delay < m->max_delay; i++)
        delay *= 2;
    m->failures[key]++;
    return delay < m->max_delay ? delay : m->max_delay;
}

/* Of the first `n` keys, those that it was asked for. */
static void
undo(struct model *m, const struct model_pick *picks, const bool *asked,
     size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (asked[i] && m->failures[picks[i].key])
            m->failures[picks[i].key]--;
}

/* O-16: is the limiter asked about the key at all? */
static bool
apply_policy(const struct model *m, struct model_pick *p)
{
    const struct model_key *k = &m->keys[p->key];

    if (k->dead)
        return false;
    if (m->failures_only && !k->held) {
        p->at_once = true;
        return false;
    }
    p->skip = m->once && k->waiting && k->backoff;
    return !p->skip;
}

enum model_answer
model_add_limited(struct model *m, struct model_how how,
                  struct model_pick *picks, size_t n, int64_t after)
{
    struct model_victims nobody = {.n = 0};
    bool                 asked[MODEL_BATCH];

    if (m->shut)
        return MODEL_SHUT;
    how.kind = MODEL_AT;
    how.backoff = true;
    how.respect = m->failures_only;
    for (size_t i = 0; i < n; i++)
        asked[i] = apply_policy(m, &picks[i]);
    for (size_t i = 0; i < n; i++) {
        const int key = picks[i].key;
        if (asked[i] && m->max_retries && m->failures[key] >= m->max_retries) {
            m->failures[key] = 0; /* O-17 */
            undo(m, picks, asked, i);
            m->drops++;
            return MODEL_GIVEN_UP;
        }
        if (!asked[i])
            continue;
        int64_t delay = query(m, key);
        if (after && after < delay)
            delay = after;
        picks[i].at_once = delay <= 0;
        picks[i].at = model__later_by(how.now, delay > 0 ? delay : 0);
    }
    const enum model_answer answer = model_add_with(m, &how, picks, n, &nobody);
    if (answer == MODEL_OK)
        m->retries += n;
    else
        undo(m, picks, asked, n);
    return answer;
}

/* ---- the end of a hold -------------------------------------------------- */

/* S-13: nothing else of the key stays. */
static void
bury(struct model *m, int key, int64_t now)
{
    const int priority = m->keys[key].held_priority;

    (void)model_remove_at_done(m, key, true);
    (void)model_done(m, key, now);
    m->keys[key] = (struct model_key){.dead = true, .held_priority = priority};
}

static enum model_answer
retry(struct model *m, int key, struct model_result result, int64_t now)
{
    const struct model_how how = {.now = now, .priority = result.priority};
    struct model_pick      pick = {.key = key};

    return model_add_limited(m, how, &pick, 1, 0);
}

static enum model_answer
run_after(struct model *m, int key, struct model_result result, int64_t now)
{
    const struct model_how how = {.kind =
                                      result.after > 0 ? MODEL_AT : MODEL_NOW,
                                  .now = now,
                                  .priority = result.priority};
    struct model_pick      pick = {.key = key};
    struct model_victims   nobody = {.n = 0};

    if (result.after > 0)
        pick.at = model__later_by(now, result.after);
    const enum model_answer answer = model_add_with(m, &how, &pick, 1, &nobody);
    m->retries += answer == MODEL_OK && result.after > 0;
    m->failures[key] = 0;
    return answer;
}

/* What becomes of the key, before its done. */
static enum model_answer
settle(struct model *m, int key, struct model_result result, int64_t now)
{
    enum model_effect ignored;

    switch (result.outcome) {
    case MODEL_RETRY:
        return retry(m, key, result, now);
    case MODEL_AFTER:
        return run_after(m, key, result, now);
    case MODEL_BACK: /* S-12 */
        return model__want(m, key, result.priority, now, &ignored);
    case MODEL_BURY:
        return m->buries ? MODEL_OK : MODEL_DROPPED;
    case MODEL_DONE:
        m->failures[key] = 0;
        break;
    case MODEL_DROP_IT:
        break;
    }
    return MODEL_OK;
}

enum model_answer
model_finish(struct model *m, int key, struct model_result result, int64_t now)
{
    const unsigned failures = m->failures[key];

    if (!m->keys[key].held)
        return MODEL_WRONG_STATE;
    const enum model_answer answer = settle(m, key, result, now);
    m->drops += answer == MODEL_DROPPED || answer == MODEL_SHUT ||
                result.outcome == MODEL_DROP_IT;
    if (m->buries &&
        (result.outcome == MODEL_BURY || answer == MODEL_GIVEN_UP)) {
        bury(m, key, now);
        m->failures[key] = failures; /* S-13 */
    } else {
        (void)model_done(m, key, now);
    }
    return answer;
}

enum model_answer
model_revive(struct model *m, int key, int64_t now)
{
    struct model_key *k = &m->keys[key];
    enum model_effect ignored;

    if (!m->buries)
        return MODEL_CANNOT;
    if (!k->dead)
        return MODEL_NOTHING;
    const int priority = k->held_priority;
    *k = (struct model_key){0};
    m->failures[key] = 0;
    return model__want(m, key, priority, now, &ignored);
}
