/* SPDX-License-Identifier: MIT */
/* model.c: the queue, the slow way; see model.h. */
#include "model/model.h"

#include <string.h>

bool
model_is_ready(const struct model *m, int key)
{
    for (size_t i = 0; i < m->ready_len; i++)
        if (m->ready[i] == key)
            return true;
    return false;
}

/* at the tail. False: the order refuses. */
static bool
make_ready(struct model *m, int key)
{
    if (m->refuse > 0 && --m->refuse == 0)
        return false;
    m->ready[m->ready_len++] = key;
    return true;
}

void
model_init(struct model *m, enum model_order order)
{
    memset(m, 0, sizeof *m);
    m->order = order;
}

static enum model_answer
admit(struct model *m, int key, bool respect, enum model_effect *did)
{
    struct model_key *k = &m->keys[key];

    if (k->held) { /* Q-04 Q-06: once more after done, however often */
        *did = k->dirty ? MODEL_MERGED : MODEL_MADE_DIRTY;
        k->dirty = true;
        return MODEL_OK;
    }
    if (model_is_ready(m, key)) { /* */
        *did = MODEL_MERGED;
        return MODEL_OK;
    }
    if (respect && k->waiting && k->backoff) { /* O-16: it runs then */
        *did = MODEL_LATER;
        return MODEL_OK;
    }
    *did = MODEL_NEW;
    return make_ready(m, key) ? MODEL_OK : MODEL_REFUSED;
}

enum model_answer
model_admit(struct model *m, int key, enum model_effect *did)
{
    return admit(m, key, m->respect, did);
}

enum model_answer
model_add_respecting(struct model *m, int key, enum model_effect *did)
{
    return m->shut ? MODEL_SHUT : admit(m, key, true, did);
}

enum model_answer
model_add(struct model *m, int key, enum model_effect *did)
{
    return m->shut ? MODEL_SHUT : model_admit(m, key, did);
}

enum model_answer
model_add_after(struct model *m, int key, int64_t at, bool backoff,
                enum model_effect *did)
{
    struct model_key *k = &m->keys[key];

    if (m->shut)
        return MODEL_SHUT;
    if (k->waiting && k->at <= at) { /* D-02 */
        *did = MODEL_LATER;
        return MODEL_OK;
    }
    *did = k->waiting ? MODEL_SOONER : MODEL_SCHEDULED; /* D-03 D-01 */
    k->waiting = true;
    k->backoff = backoff;
    k->at = at;
    k->arrival = ++m->arrivals;
    return MODEL_OK;
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

void
model_pass(struct model *m, int64_t now, int64_t again)
{
    for (;;) {
        const int         first = first_waiting(m);
        enum model_effect ignored;
        if (first < 0)
            return;
        struct model_key *k = &m->keys[first];
        if (k->at > now)
            return;
        if (admit(m, first, false, &ignored) == MODEL_OK) {
            k->waiting = false;
        } else if (now == INT64_MAX) {
            return;
        } else {
            k->at = now > INT64_MAX - again ? INT64_MAX : now + again;
            k->arrival = ++m->arrivals;
        }
    }
}

enum model_answer
model_get(struct model *m, int *key)
{
    if (m->ready_len == 0)
        return MODEL_NOTHING;
    m->ready_len--;
    if (m->order == MODEL_LIFO) {
        *key = m->ready[m->ready_len];
    } else {
        *key = m->ready[0];
        memmove(m->ready, m->ready + 1, m->ready_len * sizeof m->ready[0]);
    }
    m->keys[*key].held = true;
    return MODEL_OK;
}

enum model_answer
model_done(struct model *m, int key)
{
    struct model_key *k = &m->keys[key];

    if (!k->held)
        return MODEL_NOT_HELD;
    const bool later = m->respect && k->waiting && k->backoff; /* O-16 */
    if (k->dirty && !later && !make_ready(m, key))
        return MODEL_REFUSED;
    k->held = k->dirty = false;
    return MODEL_OK;
}

void
model_shut_down(struct model *m)
{
    m->shut = true;
}

void
model_drop_waiting(struct model *m)
{
    for (int i = 0; i < MODEL_KEYS; i++)
        m->keys[i].waiting = false;
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

int64_t
model_next_deadline(const struct model *m)
{
    const int first = first_waiting(m);
    return first < 0 ? INT64_MAX : m->keys[first].at;
}
