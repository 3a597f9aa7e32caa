/* SPDX-License-Identifier: MIT */
/* model.c: the queue, the slow way; see model.h. */
#include "model/model.h"

#include <string.h>

/* ---- what can be seen --------------------------------------------------- */

bool
model_is_ready(const struct model *m, int key)
{
    return m->keys[key].ready;
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

size_t
model_bytes(const struct model *m)
{
    size_t sum = 0;
    for (int i = 0; i < MODEL_KEYS; i++)
        if (model_is_known(m, i))
            sum += m->lens[i];
    return sum;
}

size_t
model_groups(const struct model *m)
{
    bool   is_there[MODEL_GROUPS] = {0};
    size_t n = 0;

    for (int i = 0; i < MODEL_KEYS; i++)
        if (model_is_known(m, i))
            is_there[m->groups[i]] = true;
    for (int i = 0; i < MODEL_GROUPS; i++)
        n += is_there[i];
    return n;
}

/* How many keys of a group are HELD, and READY. */
static size_t
held_of(const struct model *m, int group)
{
    size_t n = 0;
    for (int i = 0; i < MODEL_KEYS; i++)
        n += m->keys[i].held && m->groups[i] == group;
    return n;
}

static size_t
ready_of(const struct model *m, int group)
{
    size_t n = 0;
    for (size_t i = 0; i < m->ready_len; i++)
        n += m->groups[m->ready[i]] == group;
    return n;
}

/* While so many of its keys are HELD, no other key of the group is handed
 * out. */
static bool
is_blocked(const struct model *m, int group)
{
    return m->max_held && held_of(m, group) >= m->max_held;
}

size_t
model_offers(const struct model *m)
{
    size_t sum = 0;

    if (m->paused)
        return 0;
    if (!m->max_held)
        return m->ready_len;
    for (int group = 0; group < MODEL_GROUPS; group++) {
        const size_t ready = ready_of(m, group);
        const size_t more = m->max_held - held_of(m, group);
        sum += ready < more ? ready : more;
    }
    return sum;
}

bool
model_idle(const struct model *m)
{
    return m->ready_len == 0 && model_held(m) == 0;
}

/* Whose deadline is first, of those that have not `passed` (NULL: of all); of
 * equal ones, who got it first (L4). -1: nobody's. */
static int
first_waiting(const struct model *m, const bool *passed)
{
    int first = -1;

    for (int i = 0; i < MODEL_KEYS; i++) {
        const struct model_key *k = &m->keys[i];
        if (!k->waiting || (passed && passed[i]))
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
    const int first = first_waiting(m, NULL);
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

/* ---- lanes -------------------------------------------------------------- */

/* Which lane does a READY key stand in? */
static struct model_lane
lane_of(const struct model *m, int key)
{
    return (struct model_lane){m->keys[key].priority, m->groups[key]};
}

static bool
is_same_lane(struct model_lane a, struct model_lane b)
{
    return a.priority == b.priority && a.group == b.group;
}

static bool
has_lane(const struct model *m, struct model_lane lane)
{
    for (size_t i = 0; i < m->lanes_len; i++)
        if (is_same_lane(m->lanes[i], lane))
            return true;
    return false;
}

static size_t
lane_len(const struct model *m, struct model_lane lane)
{
    size_t n = 0;
    for (size_t i = 0; i < m->ready_len; i++)
        n += is_same_lane(lane_of(m, m->ready[i]), lane);
    return n;
}

/* Lanes that have no key, or whose group is blocked, leave; those that have got
 * their first key, or whose group is not blocked any more, come behind all
 * others. To be called after every change of one key: then all that come at a
 * time are of different priorities. [O-80] */
static void
settle_lanes(struct model *m)
{
    size_t kept = 0;

    if (!m->grouped)
        return;
    for (size_t i = 0; i < m->lanes_len; i++)
        if (lane_len(m, m->lanes[i]) && !is_blocked(m, m->lanes[i].group))
            m->lanes[kept++] = m->lanes[i];
    m->lanes_len = kept;
    for (size_t i = 0; i < m->ready_len; i++) {
        const struct model_lane lane = lane_of(m, m->ready[i]);
        if (!has_lane(m, lane) && !is_blocked(m, lane.group))
            m->lanes[m->lanes_len++] = lane;
    }
}

/* The place of the lane whose turn it is: the first one of the highest
 * priority. There is one. */
static size_t
next_lane(const struct model *m)
{
    size_t next = 0;

    for (size_t i = 1; i < m->lanes_len; i++)
        if (m->lanes[i].priority > m->lanes[next].priority)
            next = i;
    return next;
}

/* Its turn is over. */
static void
end_turn(struct model *m, size_t i)
{
    const struct model_lane lane = m->lanes[i];

    for (; i + 1 < m->lanes_len; i++)
        m->lanes[i] = m->lanes[i + 1];
    m->lanes[i] = lane;
}

/* ---- the line ----------------------------------------------------------- */

/* at the tail. False: the order refuses. */
static bool
make_ready(struct model *m, int key)
{
    if (m->refuse > 0 && --m->refuse == 0)
        return false;
    m->keys[key].ready = true;
    m->keys[key].became = ++m->becomings;
    m->ready[m->ready_len++] = key;
    settle_lanes(m);
    return true;
}

static void
remove_from_line(struct model *m, int key)
{
    size_t kept = 0;

    for (size_t i = 0; i < m->ready_len; i++)
        if (m->ready[i] != key)
            m->ready[kept++] = m->ready[i];
    m->ready_len = kept;
}

static void
take_out(struct model *m, int key)
{
    remove_from_line(m, key);
    m->keys[key].ready = false;
    settle_lanes(m);
}

/* A READY key gets a higher priority, and goes behind all that have it. */
static void
raise_ready(struct model *m, int key, int priority)
{
    m->raises++;
    m->keys[key].priority = priority;
    if (m->is_flat)
        return;
    remove_from_line(m, key);
    m->ready[m->ready_len++] = key;
    settle_lanes(m);
}

/* Of the highest priority, if that counts, the first to come or the last.
 * [PQ-16] */
static int
next_in_line(const struct model *m)
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

/* The first to come of a lane. */
static int
first_in_lane(const struct model *m, size_t turn)
{
    const struct model_lane lane = m->lanes[turn];
    size_t                  i = 0;

    while (!is_same_lane(lane_of(m, m->ready[i]), lane))
        i++;
    return m->ready[i];
}

/* Who leaves next, if no key is overdue. */
static int
next_in_turn(struct model *m)
{
    return m->grouped ? first_in_lane(m, next_lane(m)) : next_in_line(m);
}

/* The key that became READY first of all. */
static int
oldest_ready(const struct model *m)
{
    int oldest = m->ready[0];

    for (size_t i = 1; i < m->ready_len; i++)
        if (m->keys[m->ready[i]].became < m->keys[oldest].became)
            oldest = m->ready[i];
    return oldest;
}

/* How long it is from `since` to `now`, at least 0. */
static uint64_t
span(int64_t since, int64_t now)
{
    return now > since ? (uint64_t)now - (uint64_t)since : 0;
}

static bool
is_overdue(const struct model *m, int key, int64_t now)
{
    return m->max_ready &&
           span(m->keys[key].ready_at, now) >= (uint64_t)m->max_ready;
}

/* Who leaves next. A key that is overdue does not use up the turn of its group.
 */
static int
next_ready(struct model *m, int64_t now)
{
    const int oldest = oldest_ready(m);
    const int next = next_in_turn(m);

    if (is_overdue(m, oldest, now)) {
        m->overdue += oldest != next;
        return oldest;
    }
    if (m->grouped)
        end_turn(m, next_lane(m));
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
    if (model_is_ready(m, key))
        raise_ready(m, key, priority);
    k->priority = priority;
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
    k->priority = priority;
    if (!k->held && !make_ready(m, key))
        return MODEL_REFUSED;
    *did = k->held ? MODEL_MADE_DIRTY : MODEL_NEW; /* Q-04 Q-06 */
    k->dirty = k->held;
    *(k->held ? &k->runs.next : &k->runs.run) = ++m->runs;
    k->since = k->ready_at = now;
    m->adds++;
    return MODEL_OK;
}

/* The deadline serves one more add, which needs no run of its own. */
static enum model_effect
keep(struct model *m, struct model_key *k, int priority, bool failed)
{
    m->merged++;
    k->expected |= !failed;
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
begin_waiting(struct model *m, int key, int priority, int64_t at, bool failed)
{
    struct model_key *k = &m->keys[key];

    k->waiting = true;
    k->expected = !failed;
    k->wait_priority = priority;
    set_deadline(m, k, at);
    return MODEL_SCHEDULED;
}

/* It waits; now it does until `at`. */
static enum model_effect
move(struct model *m, struct model_key *k, int priority, int64_t at,
     bool failed)
{
    const enum model_effect kept = keep(m, k, priority, failed);
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
        return put_off(m, how, key, at);
    if (k->waiting && how->policy == MODEL_DROP) {
        m->merged++;
        k->expected |= !how->backoff;
        return MODEL_KEPT;
    }
    if (k->waiting && how->policy != MODEL_REPLACE && k->at <= at) { /* D-02 */
        if (k->debounced && k->latest > at)
            k->latest = at; /* or it would not serve this add */
        return keep(m, k, how->priority, how->backoff);
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
    if (k->waiting && how->policy != MODEL_KEEP) { /* one run serves both */
        const enum model_answer answer = want(
            m, key, higher(how->priority, k->wait_priority), how->now, did);
        if (answer == MODEL_OK) {
            m->merged++; /* the deadline needs no run of its own */
            throttle_next_instead(k);
            stop_waiting(k, how->now);
        }
        return answer;
    }
    if ((how->respect || m->respect) && served_later) { /* O-16 */
        *did = keep(m, k, how->priority, false);
        return MODEL_OK;
    }
    return want(m, key, how->priority, how->now, did);
}

/* O-16: does it wait by a backoff that the pace of adds does not change? */
static bool
backs_off(const struct model *m, const struct model_key *k)
{
    return m->respect && k->waiting && k->backoff;
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
    if (backs_off(m, k))
        return keep(m, k, how->priority, false);
    if (k->waiting && k->debounced) /* one more of the series */
        return move(m, k, how->priority, at < k->latest ? at : k->latest,
                    false);
    if (at > latest)
        at = latest;
    if (k->waiting && k->at <= at) /* of two deadlines the earlier stays */
        return keep(m, k, how->priority, false);
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
        *did = backs_off(m, k) ? keep(m, k, how->priority, false)
                               : add_at(m, how, key, k->until);
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

struct model_space
model_needs(const struct model *m, const struct model_pick *picks, size_t n)
{
    struct model_space needs = {0};

    for (size_t i = 0; i < n; i++)
        if (is_new(m, picks, i)) {
            needs.keys++;
            needs.bytes += m->lens[picks[i].key];
        }
    return needs;
}

bool
model_ever_fits(const struct model *m, struct model_space needs)
{
    return (!m->max_len || needs.keys <= m->max_len) &&
           (!m->max_bytes || needs.bytes <= m->max_bytes);
}

/* Would there be room, if the keys that are there took so much less? */
static bool
fits(const struct model *m, struct model_space needs, struct model_space less)
{
    if (!needs.keys)
        return true;
    needs.keys += model_known(m) - less.keys;
    needs.bytes += model_bytes(m) - less.bytes;
    return model_ever_fits(m, needs);
}

/* An add, as far as room is concerned. */
struct room {
    const struct model_how  *how;
    const struct model_pick *picks; /* keys that it names do not make room */
    size_t                   n;
    struct model_space       needs;
};

static bool
can_go(const struct model *m, const struct room *r, int key)
{
    return m->keys[key].ready && !is_named(r->picks, r->n, key) &&
           m->keys[key].priority <= r->how->priority;
}

static bool
can_make_room(const struct model *m, const struct room *r)
{
    struct model_space less = {0};

    for (size_t i = 0; r->how->displace && i < m->ready_len; i++)
        if (can_go(m, r, m->ready[i])) {
            less.keys++;
            less.bytes += m->lens[m->ready[i]];
        }
    return model_ever_fits(m, r->needs) && fits(m, r->needs, less);
}

/* Of the keys that can go, those of the lowest priority, the first in line; -1:
 * none can. */
static int
first_to_go(const struct model *m, const struct room *r)
{
    int first = -1;

    for (size_t i = 0; i < m->ready_len; i++) {
        const int key = m->ready[i];
        if (can_go(m, r, key) &&
            (first < 0 || m->keys[key].priority < m->keys[first].priority))
            first = key;
    }
    return first;
}

/* The same, of one lane. */
static int
first_of_lane(const struct model *m, const struct room *r,
              struct model_lane lane)
{
    for (size_t i = 0; i < m->ready_len; i++)
        if (is_same_lane(lane_of(m, m->ready[i]), lane) &&
            can_go(m, r, m->ready[i]))
            return m->ready[i];
    return -1;
}

/* With groups, the lanes of the lowest priority compete: the longest one loses a
 * key. If none of its keys can go, any lane does. */
static bool
is_right_lane(const struct model *m, const struct room *r,
              struct model_lane lane)
{
    struct model_lane other = lane;
    size_t            longest = 0;
    bool              is_stuck = false; /* is the longest, or one of them? */

    for (other.group = 0; other.group < MODEL_GROUPS; other.group++)
        if (lane_len(m, other) > longest)
            longest = lane_len(m, other);
    for (other.group = 0; other.group < MODEL_GROUPS; other.group++)
        is_stuck |=
            lane_len(m, other) == longest && first_of_lane(m, r, other) < 0;
    return is_stuck || lane_len(m, lane) == longest;
}

/* May `key` be the next one to go? */
static bool
is_right_victim(const struct model *m, const struct room *r, int key)
{
    const int first = first_to_go(m, r);

    if (!m->grouped || key < 0 || first < 0)
        return key == first;
    return m->keys[key].priority == m->keys[first].priority &&
           first_of_lane(m, r, lane_of(m, key)) == key &&
           is_right_lane(m, r, lane_of(m, key));
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

/* O-55: one after the other, no more than needed. */
static void
make_room(struct model *m, const struct room *r, struct model_victims *victims)
{
    size_t n = 0;

    victims->are_right = true;
    for (; !fits(m, r->needs, (struct model_space){0}); n++) {
        int key = n < victims->n ? victims->keys[n] : -1;
        if (!is_right_victim(m, r, key)) {
            victims->are_right = false;
            key = first_to_go(m, r);
        }
        displace(m, key);
    }
    victims->are_right &= n == victims->n;
}

enum model_answer
model_add_with(struct model *m, const struct model_how *how,
               struct model_pick *picks, size_t n,
               struct model_victims *victims)
{
    const struct room room = {how, picks, n, model_needs(m, picks, n)};

    victims->are_right = victims->n == 0;
    if (m->shut)
        return MODEL_SHUT;
    if (how->kind == MODEL_AT && how->policy == MODEL_REPLACE && !m->gives)
        return MODEL_CANNOT;
    if (!can_make_room(m, &room))
        return MODEL_FULL;
    make_room(m, &room, victims);
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

/* ---- taking back -------------------------------------------------------- */

/* Nothing is asked for it any more. */
static void
take_back_all(struct model *m, int key, int64_t now)
{
    struct model_key *k = &m->keys[key];

    m->removed += model_is_wanted(m, key);
    take_out(m, key);
    k->dirty = false;
    k->next_span = 0;
    stop_waiting(k, now);
}

enum model_answer
model_remove(struct model *m, int key, int64_t now)
{
    const struct model_key *k = &m->keys[key];

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
        if (!fall_due(m, first_waiting(m, NULL), now, again))
            return;
}

/* ---- get and done ------------------------------------------------------- */

enum model_answer
model_get(struct model *m, int64_t now, int *key)
{
    if (model_offers(m) == 0)
        return MODEL_NOTHING;
    *key = next_ready(m, now);
    take_out(m, *key);
    struct model_key *k = &m->keys[*key];
    k->held = true;
    settle_lanes(m);
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

/* What was asked for a HELD key since its hand-out. False: the order refuses. */
static bool
settle_requests(struct model *m, int key, int64_t now)
{
    struct model_key *k = &m->keys[key];

    if (k->removing) { /* O-84 */
        take_back_all(m, key, now);
        k->removing = false;
        return true;
    }
    if (k->dirty && backs_off(m, k)) { /* O-16 */
        (void)keep(m, k, k->priority, false);
        throttle_waiting_instead(k);
        m->deferred++;
        return true;
    }
    if (k->dirty && !make_ready(m, key))
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
    settle_lanes(m);
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
            m->keys[i].next_span = 0;
            m->keys[i].quiet = false;
        }
}

void
model_drop_waiting(struct model *m)
{
    for (int i = 0; i < MODEL_KEYS; i++) {
        struct model_key *k = &m->keys[i];
        m->drops += k->waiting && !model_is_wanted(m, i);
        k->waiting = k->backoff = k->debounced = false;
        k->next_span = k->wait_span = 0;
        k->quiet = false;
    }
}

/* False: the order refuses the key. */
static bool
come_now(struct model *m, int key, int64_t now)
{
    enum model_effect ignored;

    return want(m, key, m->keys[key].wait_priority, now, &ignored) == MODEL_OK;
}

/* No add will be throttled any more, so a pace is of no use. */
void
model_hasten(struct model *m, int64_t now, int64_t again, bool backoffs)
{
    bool passed[MODEL_KEYS] = {0};
    int  key;

    while ((key = first_waiting(m, passed)) >= 0) {
        struct model_key *k = &m->keys[key];

        passed[key] = true;
        if (k->backoff && !k->expected && !backoffs) {
            m->drops += !model_is_wanted(m, key);
        } else if (!come_now(m, key, now)) {
            set_deadline(m, k, later_by(now, again));
            continue;
        }
        k->waiting = k->backoff = k->debounced = false;
        k->next_span = k->wait_span = 0;
        k->quiet = false;
    }
}
