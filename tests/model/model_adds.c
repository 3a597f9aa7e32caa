/* SPDX-License-Identifier: MIT */
/* model_adds.c: what does an add do to a key of the model?
 *
 * By the kind of add, and by what the key does already.
 */
#include "model/model_parts.h"

/* ---- throttle ----------------------------------------------------------- */

void
model__forget_quiet_if_over(struct model_key *k, int64_t now)
{
    if (!k->waiting && !k->next_cooldown && k->until <= now)
        k->quiet = false;
}

void
model__throttle_next_instead(struct model_key *k)
{
    if (k->wait_cooldown)
        k->next_cooldown = k->wait_cooldown;
    k->wait_cooldown = 0;
}

void
model__throttle_waiting_instead(struct model_key *k)
{
    if (k->next_cooldown)
        k->wait_cooldown = k->next_cooldown;
    k->next_cooldown = 0;
}

int64_t
model__later_by(int64_t now, int64_t span)
{
    return now > INT64_MAX - span ? INT64_MAX : now + span;
}

/* ---- adds --------------------------------------------------------------- */

static int
higher(int a, int b)
{
    return a > b ? a : b;
}

/* READY or DIRTY already. PQ-07 PQ-08 PQ-16: a higher priority counts, and the
 * key goes to the end of those that have it. PQ-44: an equal one changes
 * nothing. */
static enum model_effect
merge(struct model *m, int key, int priority)
{
    struct model_key *k = &m->keys[key];

    m->merged++;
    if (priority <= k->priority) {
        m->touches += model_is_ready(m, key);
        return MODEL_MERGED;
    }
    if (model_is_ready(m, key))
        model__raise_ready(m, key, priority);
    k->priority = priority;
    return MODEL_RAISED;
}

/* PQ-42: with the priority of this add, not of what it is held with. */
enum model_answer
model__want(struct model *m, int key, int priority, int64_t now,
            enum model_effect *did)
{
    struct model_key *k = &m->keys[key];

    if (model_is_wanted(m, key)) { /* */
        *did = merge(m, key, priority);
        return MODEL_OK;
    }
    k->priority = priority;
    if (!k->held && !model__make_ready(m, key))
        return MODEL_REFUSED;
    *did = k->held ? MODEL_MADE_DIRTY : MODEL_NEW; /* Q-04 Q-06 */
    k->dirty = k->held;
    *(k->held ? &k->runs.next : &k->runs.run) = ++m->runs;
    k->since = k->ready_at = now;
    m->adds++;
    return MODEL_OK;
}

enum model_effect
model__keep(struct model *m, struct model_key *k, int priority, bool failed)
{
    m->merged++;
    k->expected |= !failed;
    if (priority <= k->wait_priority)
        return MODEL_KEPT;
    k->wait_priority = priority;
    return MODEL_RAISED;
}

void
model__set_deadline(struct model *m, struct model_key *k, int64_t at)
{
    k->at = at;
    k->arrival = ++m->arrivals;
}

/* O-58 */
void
model__stop_waiting(struct model_key *k, int64_t now)
{
    k->waiting = k->backoff = k->debounced = false;
    k->wait_cooldown = 0;
    model__forget_quiet_if_over(k, now);
}

static enum model_effect
begin_waiting(struct model *m, int key, int priority, int64_t at, bool failed)
{
    struct model_key *k = &m->keys[key];

    k->waiting = true;
    k->expected = !failed;
    k->wait_priority = priority;
    model__set_deadline(m, k, at);
    return MODEL_SCHEDULED;
}

/* It waits; now it does until `at`. */
static enum model_effect
move(struct model *m, struct model_key *k, int priority, int64_t at,
     bool failed)
{
    const enum model_effect kept = model__keep(m, k, priority, failed);
    const int64_t           old = k->at;

    if (at == old)
        return kept;
    model__set_deadline(m, k, at);
    return at < old ? MODEL_SOONER : MODEL_LATER;
}

/* O-52 O-56: one run, when this add says; later than now. */
static enum model_effect
defer_to(struct model *m, const struct model_how *how, int key, int64_t at)
{
    struct model_key *k = &m->keys[key];
    const int         priority = higher(how->priority, k->priority);

    model__take_out(m, key);
    k->dirty = false;
    model__throttle_waiting_instead(k);
    m->deferred++;
    m->merged++;
    k->backoff = how->backoff;
    k->debounced = k->expected = false;
    if (k->waiting)
        (void)move(m, k, priority, at, how->backoff);
    else
        (void)begin_waiting(m, key, priority, at, how->backoff);
    return MODEL_LATER;
}

static enum model_effect
add_at(struct model *m, const struct model_how *how, int key, int64_t at)
{
    struct model_key *k = &m->keys[key];

    if (how->policy == MODEL_MERGE && model_is_wanted(m, key))
        return merge(m, key, how->priority);
    if (how->policy == MODEL_REPLACE && model_is_wanted(m, key))
        return defer_to(m, how, key, at);
    if (k->waiting && how->policy == MODEL_DROP) {
        m->merged++;
        k->expected |= !how->backoff;
        return MODEL_KEPT;
    }
    if (k->waiting && how->policy != MODEL_REPLACE && k->at <= at) { /* D-02 */
        if (k->debounced && k->latest > at)
            k->latest = at; /* or it would not cover this add */
        return model__keep(m, k, how->priority, how->backoff);
    }
    k->backoff = how->backoff;
    k->debounced = false;
    if (how->policy == MODEL_REPLACE)
        k->expected = false; /* what was asked before does not count */
    return k->waiting ? move(m, k, how->priority, at, how->backoff) /* D-03 */
                      : begin_waiting(m, key, how->priority, at, how->backoff);
}

static enum model_answer
add_now(struct model *m, const struct model_how *how, int key,
        enum model_effect *did)
{
    struct model_key *k = &m->keys[key];
    const bool        served_later =
        k->waiting && k->backoff && !k->held && !model_is_ready(m, key);

    if (k->waiting && how->policy == MODEL_DROP) {
        m->merged++;
        k->expected = true;
        *did = MODEL_KEPT;
        return MODEL_OK;
    }
    if (k->waiting && how->policy != MODEL_KEEP) { /* one run covers both */
        const enum model_answer answer = model__want(
            m, key, higher(how->priority, k->wait_priority), how->now, did);
        if (answer == MODEL_OK) {
            m->merged++; /* the deadline needs no run of its own */
            model__throttle_next_instead(k);
            model__stop_waiting(k, how->now);
        }
        return answer;
    }
    if ((how->respect || m->respect) && served_later) { /* O-16 */
        *did = model__keep(m, k, how->priority, false);
        return MODEL_OK;
    }
    return model__want(m, key, how->priority, how->now, did);
}

/* O-16 */
bool
model__backs_off(const struct model *m, const struct model_key *k)
{
    return m->respect && k->waiting && k->backoff;
}

/* O-53 */
static enum model_effect
add_debounced(struct model *m, const struct model_how *how, int key)
{
    struct model_key *k = &m->keys[key];
    int64_t           at = model__later_by(how->now, how->span);
    const int64_t     latest =
        how->max_wait ? model__later_by(how->now, how->max_wait) : INT64_MAX;

    if (model_is_wanted(m, key))
        return merge(m, key, how->priority);
    if (model__backs_off(m, k))
        return model__keep(m, k, how->priority, false);
    if (k->waiting && k->debounced) /* one more of the series */
        return move(m, k, how->priority, at < k->latest ? at : k->latest,
                    false);
    if (at > latest)
        at = latest;
    if (k->waiting && k->at <= at) /* of two deadlines the earlier stays */
        return model__keep(m, k, how->priority, false);
    /* A series begins; what the key waits for already is not put off. */
    k->latest = k->waiting && k->at < latest ? k->at : latest;
    k->debounced = true;
    k->backoff = false;
    return k->waiting ? move(m, k, how->priority, at, false)
                      : begin_waiting(m, key, how->priority, at, false);
}

/* O-54 */
static enum model_answer
add_throttled(struct model *m, const struct model_how *how, int key,
              enum model_effect *did)
{
    struct model_key *k = &m->keys[key];
    enum model_answer answer = MODEL_OK;

    if (k->quiet && k->until > how->now && !model_is_wanted(m, key))
        *did = model__backs_off(m, k) ? model__keep(m, k, how->priority, false)
                                      : add_at(m, how, key, k->until);
    else
        answer = add_now(m, how, key, did);
    if (answer == MODEL_OK && model_is_wanted(m, key))
        k->next_cooldown = how->span;
    else if (answer == MODEL_OK)
        k->wait_cooldown = how->span;
    return answer;
}

static enum model_answer
add_one(struct model *m, const struct model_how *how, struct model_pick *p)
{
    if (m->keys[p->key].dead) { /* S-13 */
        p->did = MODEL_STAYS_DEAD;
        return MODEL_OK;
    }
    if (p->skip) {
        m->merged++;
        p->did = MODEL_KEPT;
        return MODEL_OK;
    }
    switch (how->kind) {
    case MODEL_AT:
        if (p->at_once)
            return add_now(m, how, p->key, &p->did);
        p->did = add_at(m, how, p->key, p->at);
        return MODEL_OK;
    case MODEL_DEBOUNCE:
        p->did = add_debounced(m, how, p->key);
        return MODEL_OK;
    case MODEL_THROTTLE:
        return add_throttled(m, how, p->key, &p->did);
    case MODEL_NOW:
        break;
    }
    return add_now(m, how, p->key, &p->did);
}

/* ---- the verbs ---------------------------------------------------------- */

enum model_answer
model_add_with(struct model *m, const struct model_how *how,
               struct model_pick *picks, size_t n,
               struct model_victims *victims)
{
    victims->are_right = victims->n == 0;
    if (m->shut)
        return MODEL_SHUT;
    if (how->kind == MODEL_AT && how->policy == MODEL_REPLACE && !m->gives)
        return MODEL_CANNOT;
    if (!model__make_room(m, how, picks, n, victims))
        return MODEL_FULL;
    for (size_t i = 0; i < n; i++) {
        const enum model_answer answer = add_one(m, how, &picks[i]);
        if (answer != MODEL_OK)
            return answer;
    }
    return MODEL_OK;
}

enum model_answer
model_admit(struct model *m, int key, int64_t now, enum model_effect *did)
{
    const struct model_how how = {.kind = MODEL_NOW, .now = now};

    if (m->max_len && !model_is_known(m, key) && model_known(m) >= m->max_len)
        return MODEL_FULL;
    return add_now(m, &how, key, did);
}

enum model_answer
model_add(struct model *m, int key, int64_t now, enum model_effect *did)
{
    return m->shut ? MODEL_SHUT : model_admit(m, key, now, did);
}
