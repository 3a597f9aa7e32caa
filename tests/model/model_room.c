/* SPDX-License-Identifier: MIT */
/* model_room.c: is there room in the model for an add, and which keys make
 * it? */
#include "model/model_parts.h"

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
        if (model__is_same_lane(model__lane_of(m, m->ready[i]), lane) &&
            can_go(m, r, m->ready[i]))
            return m->ready[i];
    return -1;
}

/* With groups, the lanes of the lowest priority compete: the longest one loses
 * a key. If none of its keys can go, any lane does. */
static bool
is_right_lane(const struct model *m, const struct room *r,
              struct model_lane lane)
{
    struct model_lane other = lane;
    size_t            longest = 0;
    bool              is_stuck = false; /* is the longest, or one of them? */

    for (other.group = 0; other.group < MODEL_GROUPS; other.group++)
        if (model__lane_len(m, other) > longest)
            longest = model__lane_len(m, other);
    for (other.group = 0; other.group < MODEL_GROUPS; other.group++)
        is_stuck |= model__lane_len(m, other) == longest &&
                    first_of_lane(m, r, other) < 0;
    return is_stuck || model__lane_len(m, lane) == longest;
}

/* May `key` be the next one to go? */
static bool
is_right_victim(const struct model *m, const struct room *r, int key)
{
    const int first = first_to_go(m, r);

    if (!m->grouped || key < 0 || first < 0)
        return key == first;
    return m->keys[key].priority == m->keys[first].priority &&
           first_of_lane(m, r, model__lane_of(m, key)) == key &&
           is_right_lane(m, r, model__lane_of(m, key));
}

/* Nothing of the key stays. */
static void
displace(struct model *m, int key)
{
    model__take_out(m, key);
    m->keys[key] = (struct model_key){0};
    m->displaced++;
    m->drops++;
}

/* One after the other, no more than needed. */
static void
displace_enough(struct model *m, const struct room *r,
                struct model_victims *victims)
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

/* O-55 */
bool
model__make_room(struct model *m, const struct model_how *how,
                 const struct model_pick *picks, size_t n,
                 struct model_victims *victims)
{
    const struct room room = {how, picks, n, model_needs(m, picks, n)};

    if (!can_make_room(m, &room))
        return false;
    displace_enough(m, &room, victims);
    return true;
}
