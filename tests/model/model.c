/* SPDX-License-Identifier: MIT */
/* model.c: the queue, the slow way; see model.h. */
#include "model/model.h"

#include <string.h>

/* ---- what can be seen --------------------------------------------------- */

bool
model_is_ready(const struct model *m, int key)
{
    for (size_t i = 0; i < m->ready_len; i++)
        if (m->ready[i] == key)
            return true;
    return false;
}

bool
model_is_wanted(const struct model *m, int key)
{
    return m->keys[key].dirty || model_is_ready(m, key);
}

bool
model_is_known(const struct model *m, int key)
{
    const struct model_key *k = &m->keys[key];
    return k->held || k->waiting || k->quiet || model_is_ready(m, key);
}

size_t
model_known(const struct model *m)
{
    size_t n = 0;
    for (int i = 0; i < MODEL_KEYS; i++)
        n += model_is_known(m, i);
    return n;
}

bool
model_throttles(const struct model *m)
{
    for (int i = 0; i < MODEL_KEYS; i++) {
        const struct model_key *k = &m->keys[i];
        if (k->quiet || k->next_span || k->wait_span)
            return true;
    }
    return false;
}

static size_t
count(const struct model *m, bool (*has)(const struct model_key *))
{
    size_t n = 0;
    for (int i = 0; i < MODEL_KEYS; i++)
        n += has(&m->keys[i]);
    return n;
}

static bool
is_held(const struct model_key *k)
{
    return k->held;
}

static bool
is_dirty(const struct model_key *k)
{
    return k->dirty;
}

static bool
is_waiting(const struct model_key *k)
{
    return k->waiting;
}

size_t
model_held(const struct model *m)
{
    return count(m, is_held);
}

size_t
model_dirty(const struct model *m)
{
    return count(m, is_dirty);
}

size_t
model_waiting(const struct model *m)
{
    return count(m, is_waiting);
}

bool
model_idle(const struct model *m)
{
    return m->ready_len == 0 && model_held(m) == 0;
}

/* Whose deadline is first; of equal ones, who got it first (L4). -1:
 * nobody's. */
static int
first_waiting(const struct model *m)
{
    int first = -1;

    for (int i = 0; i < MODEL_KEYS; i++) {
        const struct model_key *k = &m->keys[i];
        if (!k->waiting)
            continue;
        if (first < 0 || k->at < m->keys[first].at ||
            (k->at == m->keys[first].at && k->arrival < m->keys[first].arrival))
            first = i;
    }
    return first;
}

int64_t
model_first_deadline(const struct model *m)
{
    const int first = first_waiting(m);
    return first < 0 ? INT64_MAX : m->keys[first].at;
}

int64_t
model_next_event(const struct model *m)
{
    int64_t next = model_first_deadline(m);

    for (int i = 0; i < MODEL_KEYS; i++) {
        const struct model_key *k = &m->keys[i];
        if (k->quiet && !k->waiting && !k->next_span && k->until < next)
            next = k->until;
    }
    return next;
}

int
model_priority(const struct model *m, int key)
{
    const struct model_key *k = &m->keys[key];

    if (model_is_wanted(m, key))
        return k->priority;
    if (k->waiting)
        return k->wait_priority;
    return k->held ? k->held_priority : 0;
}

int
model_depth(const struct model *m, int priority)
{
    int  n = 0;
    bool is_used = priority == 0;

    for (int i = 0; i < MODEL_KEYS; i++) {
        const struct model_key *k = &m->keys[i];
        const bool wanted = model_is_wanted(m, i) && k->priority == priority;
        n += wanted;
        is_used |= wanted || (k->waiting && k->wait_priority == priority);
    }
    return is_used ? n : -1;
}

/* Is any key before number `n` found by `priority` too? */
static bool
is_used_before(const struct model *m, int n, int priority)
{
    for (int i = 0; i < n; i++) {
        const struct model_key *k = &m->keys[i];
        if ((model_is_wanted(m, i) && k->priority == priority) ||
            (k->waiting && k->wait_priority == priority))
            return true;
    }
    return false;
}

size_t
model_levels(const struct model *m)
{
    size_t n = 1; /* 0 is always in use */

    for (int i = 0; i < MODEL_KEYS; i++) {
        const struct model_key *k = &m->keys[i];
        const bool              wanted = model_is_wanted(m, i);

        n += wanted && k->priority && !is_used_before(m, i, k->priority);
        n += k->waiting && k->wait_priority &&
             !(wanted && k->priority == k->wait_priority) &&
             !is_used_before(m, i, k->wait_priority);
    }
    return n;
}

/* ---- the line ----------------------------------------------------------- */

/* at the tail. False: the order refuses. */
static bool
make_ready(struct model *m, int key)
{
    if (m->refuse > 0 && --m->refuse == 0)
        return false;
    m->ready[m->ready_len++] = key;
    return true;
}

static void
take_out(struct model *m, int key)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->ready_len; i++)
        if (m->ready[i] != key)
            m->ready[kept++] = m->ready[i];
    m->ready_len = kept;
}

/* Who leaves next: of the highest priority, if that counts, the first to come
 * or the last. [PQ-16] */
static int
next_ready(const struct model *m)
{
    int next = m->ready[0];

    for (size_t i = 1; i < m->ready_len; i++) {
        const int a = m->keys[m->ready[i]].priority;
        const int b = m->keys[next].priority;
        if (m->is_flat || a == b) {
            if (m->order == MODEL_LIFO)
                next = m->ready[i];
        } else if (a > b) {
            next = m->ready[i];
        }
    }
    return next;
}

/* ---- throttle ----------------------------------------------------------- */

/* How long a key is left alone is remembered for as long, and while it waits or
 * its next run changes that. */
static void
forget_quiet_if_over(struct model_key *k, int64_t now)
{
    if (!k->waiting && !k->next_span && k->until <= now)
        k->quiet = false;
}

/* The run that serves the deadline is the next one. */
static void
throttle_next_instead(struct model_key *k)
{
    if (k->wait_span)
        k->next_span = k->wait_span;
    k->wait_span = 0;
}

/* What the next run was to serve, the deadline will. */
static void
throttle_waiting_instead(struct model_key *k)
{
    if (k->next_span)
        k->wait_span = k->next_span;
    k->next_span = 0;
}

static int64_t
later_by(int64_t now, int64_t span)
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
    k->priority = priority;
    if (model_is_ready(m, key)) {
        m->raises++;
        if (!m->is_flat) {
            take_out(m, key);
            m->ready[m->ready_len++] = key;
        }
    }
    return MODEL_RAISED;
}

/* The key needs work. PQ-42: with the priority of this add, not of what it is
 * held with. */
static enum model_answer
want(struct model *m, int key, int priority, int64_t now,
     enum model_effect *did)
{
    struct model_key *k = &m->keys[key];

    if (model_is_wanted(m, key)) { /* */
        *did = merge(m, key, priority);
        return MODEL_OK;
    }
    if (!k->held && !make_ready(m, key))
        return MODEL_REFUSED;
    *did = k->held ? MODEL_MADE_DIRTY : MODEL_NEW; /* Q-04 Q-06 */
    k->dirty = k->held;
    k->priority = priority;
    k->since = now;
    m->adds++;
    return MODEL_OK;
}

/* The deadline serves one more add. */
static enum model_effect
keep(struct model_key *k, int priority)
{
    if (priority <= k->wait_priority)
        return MODEL_KEPT;
    k->wait_priority = priority;
    return MODEL_RAISED;
}

static void
set_deadline(struct model *m, struct model_key *k, int64_t at)
{
    k->at = at;
    k->arrival = ++m->arrivals;
}

/* O-58: its deadline ends. */
static void
stop_waiting(struct model_key *k, int64_t now)
{
    k->waiting = k->backoff = k->debounced = false;
    k->wait_span = 0;
    forget_quiet_if_over(k, now);
}

static enum model_effect
begin_waiting(struct model *m, int key, int priority, int64_t at)
{
    struct model_key *k = &m->keys[key];

    k->waiting = true;
    k->wait_priority = priority;
    set_deadline(m, k, at);
    return MODEL_SCHEDULED;
}

/* It waits; now it does until `at`. */
static enum model_effect
move(struct model *m, struct model_key *k, int priority, int64_t at)
{
    const enum model_effect kept = keep(k, priority);
    const int64_t           old = k->at;

    if (at == old)
        return kept;
    set_deadline(m, k, at);
    return at < old ? MODEL_SOONER : MODEL_LATER;
}

/* O-52 O-56: one run, when this add says; later than now. */
static enum model_effect
put_off(struct model *m, const struct model_how *how, int key, int64_t at)
{
    struct model_key *k = &m->keys[key];
    const int         priority = higher(how->priority, k->priority);

    take_out(m, key);
    k->dirty = false;
    throttle_waiting_instead(k);
    m->deferred++;
    k->backoff = how->backoff;
    k->debounced = false;
    if (k->waiting)
        (void)move(m, k, priority, at);
    else
        (void)begin_waiting(m, key, priority, at);
    return MODEL_LATER;
}

static enum model_effect
add_at(struct model *m, const struct model_how *how, int key, int64_t at)
{
    struct model_key *k = &m->keys[key];

    if (how->policy == MODEL_MERGE && model_is_wanted(m, key))
        return merge(m, key, how->priority);
    if (how->policy == MODEL_REPLACE && model_is_wanted(m, key))
        return put_off(m, how, key, at);
    if (k->waiting && how->policy == MODEL_DROP)
        return MODEL_KEPT;
    if (k->waiting && how->policy != MODEL_REPLACE && k->at <= at) { /* D-02 */
        if (k->debounced && k->latest > at)
            k->latest = at; /* or it would not serve this add */
        return keep(k, how->priority);
    }
    k->backoff = how->backoff;
    k->debounced = false;
    return k->waiting ? move(m, k, how->priority, at) /* D-03 */
                      : begin_waiting(m, key, how->priority, at);
}

static enum model_answer
add_now(struct model *m, const struct model_how *how, int key,
        enum model_effect *did)
{
    struct model_key *k = &m->keys[key];
    const bool        served_later =
        k->waiting && k->backoff && !k->held && !model_is_ready(m, key);

    if (k->waiting && how->policy == MODEL_DROP) {
        *did = MODEL_KEPT;
        return MODEL_OK;
    }
    if (k->waiting && how->policy != MODEL_KEEP) { /* one run serves both */
        const enum model_answer answer = want(
            m, key, higher(how->priority, k->wait_priority), how->now, did);
        if (answer == MODEL_OK) {
            throttle_next_instead(k);
            stop_waiting(k, how->now);
        }
        return answer;
    }
    if ((how->respect || m->respect) && served_later) { /* O-16 */
        *did = keep(k, how->priority);
        return MODEL_OK;
    }
    return want(m, key, how->priority, how->now, did);
}

/* O-53 */
static enum model_effect
add_debounced(struct model *m, const struct model_how *how, int key)
{
    struct model_key *k = &m->keys[key];
    int64_t           at = later_by(how->now, how->span);
    const int64_t     latest =
        how->max_wait ? later_by(how->now, how->max_wait) : INT64_MAX;

    if (model_is_wanted(m, key))
        return merge(m, key, how->priority);
    if (k->waiting && k->debounced) /* one more of the series */
        return move(m, k, how->priority, at < k->latest ? at : k->latest);
    if (at > latest)
        at = latest;
    if (k->waiting && k->at <= at) /* of two deadlines the earlier stays */
        return keep(k, how->priority);
    /* A series begins; what the key waits for already is not put off. */
    k->latest = k->waiting && k->at < latest ? k->at : latest;
    k->debounced = true;
    k->backoff = false;
    return k->waiting ? move(m, k, how->priority, at)
                      : begin_waiting(m, key, how->priority, at);
}

/* O-54 */
static enum model_answer
add_throttled(struct model *m, const struct model_how *how, int key,
              enum model_effect *did)
{
    struct model_key *k = &m->keys[key];
    enum model_answer answer = MODEL_OK;

    if (k->quiet && k->until > how->now && !model_is_wanted(m, key))
        *did = add_at(m, how, key, k->until);
    else
        answer = add_now(m, how, key, did);
    if (answer == MODEL_OK && model_is_wanted(m, key))
        k->next_span = how->span;
    else if (answer == MODEL_OK)
        k->wait_span = how->span;
    return answer;
}

static enum model_answer
add_one(struct model *m, const struct model_how *how, struct model_pick *p)
{
    if (p->skip) {
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

/* ---- room --------------------------------------------------------------- */

static bool
is_named(const struct model_pick *picks, size_t n, int key)
{
    for (size_t i = 0; i < n; i++)
        if (picks[i].key == key)
            return true;
    return false;
}

/* Is this the first to name a key that nobody knows? */
static bool
is_new(const struct model *m, const struct model_pick *picks, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (picks[k].key == picks[i].key && !picks[k].skip)
            return false;
    return !picks[i].skip && !model_is_known(m, picks[i].key);
}

/* Which READY key has to go: the lowest priority, the first in line; not one
 * that the add names. -1: none can. */
static int
victim_for(const struct model *m, const struct model_how *how,
           const struct model_pick *picks, size_t n)
{
    int victim = -1;

    for (size_t i = 0; i < m->ready_len; i++) {
        const int key = m->ready[i];
        if (is_named(picks, n, key) || m->keys[key].priority > how->priority)
            continue;
        if (victim < 0 || m->keys[key].priority < m->keys[victim].priority)
            victim = key;
    }
    return victim;
}

/* How many keys have to go. False: they cannot. */
static bool
find_room(const struct model *m, const struct model_how *how,
          const struct model_pick *picks, size_t n, size_t *over)
{
    size_t new = 0, can_go = 0;

    *over = 0;
    for (size_t i = 0; i < n; i++)
        new += is_new(m, picks, i);
    const size_t all = model_known(m) + new;
    if (!new || !m->max_len || all <= m->max_len)
        return true;
    *over = all - m->max_len;
    for (size_t i = 0; i < m->ready_len; i++)
        can_go += !is_named(picks, n, m->ready[i]) &&
                  m->keys[m->ready[i]].priority <= how->priority;
    return how->displace && new <= m->max_len &&can_go >= *over;
}

/* Nothing of the key stays. */
static void
displace(struct model *m, int key)
{
    take_out(m, key);
    m->keys[key] = (struct model_key){0};
    m->displaced++;
    m->drops++;
}

enum model_answer
model_add_with(struct model *m, const struct model_how *how,
               struct model_pick *picks, size_t n)
{
    size_t over;

    if (m->shut)
        return MODEL_SHUT;
    if (how->kind == MODEL_AT && how->policy == MODEL_REPLACE && !m->gives)
        return MODEL_CANNOT;
    if (!find_room(m, how, picks, n, &over))
        return MODEL_FULL;
    for (size_t i = 0; i < n; i++) {
        picks[i].victim = -1;
        if (over && is_new(m, picks, i)) {
            picks[i].victim = victim_for(m, how, picks, n);
            displace(m, picks[i].victim);
            over--;
        }
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

/* ---- taking back -------------------------------------------------------- */

enum model_answer
model_remove(struct model *m, int key, int64_t now)
{
    struct model_key *k = &m->keys[key];
    const bool        is_ready = model_is_ready(m, key);

    if (is_ready && !m->gives)
        return MODEL_CANNOT;
    if (!is_ready && !k->dirty && !k->waiting)
        return k->held ? MODEL_WRONG_STATE : MODEL_NOTHING;
    m->removed += is_ready || k->dirty;
    take_out(m, key);
    k->dirty = false;
    k->next_span = 0;
    stop_waiting(k, now);
    return MODEL_OK;
}

enum model_answer
model_cancel(struct model *m, int key, int64_t now)
{
    if (!m->keys[key].waiting)
        return MODEL_NOTHING;
    stop_waiting(&m->keys[key], now);
    return MODEL_OK;
}

/* ---- time --------------------------------------------------------------- */

/* False: it was refused, and there is no later time. */
static bool
fall_due(struct model *m, int key, int64_t now, int64_t again)
{
    struct model_key *k = &m->keys[key];
    enum model_effect ignored;

    if (want(m, key, k->wait_priority, k->at, &ignored) == MODEL_OK) {
        throttle_next_instead(k);
        stop_waiting(k, now);
        return true;
    }
    if (now == INT64_MAX)
        return false;
    set_deadline(m, k, later_by(now, again));
    return true;
}

void
model_pass(struct model *m, int64_t now, int64_t again)
{
    for (int i = 0; i < MODEL_KEYS; i++)
        forget_quiet_if_over(&m->keys[i], now);
    while (model_waiting(m) && model_first_deadline(m) <= now)
        if (!fall_due(m, first_waiting(m), now, again))
            return;
}

/* ---- get and done ------------------------------------------------------- */

enum model_answer
model_get(struct model *m, int64_t now, int *key)
{
    if (m->ready_len == 0)
        return MODEL_NOTHING;
    *key = next_ready(m);
    take_out(m, *key);
    struct model_key *k = &m->keys[*key];
    k->held = true;
    k->held_priority = k->priority;
    k->got = now;
    if (k->next_span) { /* O-54: from the hand-out on */
        k->quiet = true;
        k->until = later_by(now, k->next_span);
        k->next_span = 0;
    }
    m->gets++;
    return MODEL_OK;
}

enum model_answer
model_done(struct model *m, int key)
{
    struct model_key *k = &m->keys[key];

    if (!k->held)
        return MODEL_WRONG_STATE;
    if (k->dirty && m->respect && k->waiting && k->backoff) { /* O-16 */
        (void)keep(k, k->priority);
        throttle_waiting_instead(k);
        m->deferred++;
    } else if (k->dirty && !make_ready(m, key)) {
        return MODEL_REFUSED;
    }
    k->held = k->dirty = false;
    m->dones++;
    return MODEL_OK;
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
            m->keys[i].next_span = 0;
            m->keys[i].quiet = false;
        }
}

void
model_drop_waiting(struct model *m)
{
    for (int i = 0; i < MODEL_KEYS; i++) {
        struct model_key *k = &m->keys[i];
        m->drops += k->waiting;
        k->waiting = k->backoff = k->debounced = false;
        k->next_span = k->wait_span = 0;
        k->quiet = false;
    }
}
