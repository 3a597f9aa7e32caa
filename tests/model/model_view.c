/* SPDX-License-Identifier: MIT */
/* model_view.c: what can be seen of the model from outside?
 *
 * Every answer is counted anew, over all keys.
 */
#include "model/model_parts.h"

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
    return k->held || k->waiting || k->quiet || k->dead ||
           model_is_ready(m, key);
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
        if (k->quiet || k->next_cooldown || k->wait_cooldown)
            return true;
    }
    return false;
}

struct model_counts
model_counts(const struct model *m)
{
    struct model_counts n = {0};

    for (int i = 0; i < MODEL_KEYS; i++) {
        const struct model_key *k = &m->keys[i];
        n.held += k->held;
        n.dirty += k->dirty;
        n.waiting += k->waiting;
        n.dead += k->dead;
    }
    return n;
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

bool
model__is_blocked(const struct model *m, int group)
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
    return m->ready_len == 0 && model_counts(m).held == 0;
}

int
model__first_waiting(const struct model *m, const bool *passed)
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
    const int first = model__first_waiting(m, NULL);
    return first < 0 ? INT64_MAX : m->keys[first].at;
}

int64_t
model_next_event(const struct model *m)
{
    int64_t next = model_first_deadline(m);

    for (int i = 0; i < MODEL_KEYS; i++) {
        const struct model_key *k = &m->keys[i];
        if (k->quiet && !k->waiting && !k->next_cooldown && k->until < next)
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
    return k->held || k->dead ? k->held_priority : 0;
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
