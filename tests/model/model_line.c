/* SPDX-License-Identifier: MIT */
/* model_line.c: which READY key of the model leaves next?
 *
 * READY keys stand in one line, in the order they came. With groups, the keys
 * of a priority and a group are a lane, and lanes take turns.
 */
#include "model/model_parts.h"

/* ---- lanes -------------------------------------------------------------- */

struct model_lane
model__lane_of(const struct model *m, int key)
{
    return (struct model_lane){m->keys[key].priority, m->groups[key]};
}

bool
model__is_same_lane(struct model_lane a, struct model_lane b)
{
    return a.priority == b.priority && a.group == b.group;
}

static bool
has_lane(const struct model *m, struct model_lane lane)
{
    for (size_t i = 0; i < m->lanes_len; i++)
        if (model__is_same_lane(m->lanes[i], lane))
            return true;
    return false;
}

size_t
model__lane_len(const struct model *m, struct model_lane lane)
{
    size_t n = 0;
    for (size_t i = 0; i < m->ready_len; i++)
        n += model__is_same_lane(model__lane_of(m, m->ready[i]), lane);
    return n;
}

/* Lanes that have no key, or whose group is blocked, leave; those that have got
 * their first key, or whose group is not blocked any more, come behind all
 * others. All that come at a time are of different priorities, since this
 * happens after every change of one key. [O-80] */
void
model__settle_lanes(struct model *m)
{
    size_t kept = 0;

    if (!m->grouped)
        return;
    for (size_t i = 0; i < m->lanes_len; i++)
        if (model__lane_len(m, m->lanes[i]) &&
            !model__is_blocked(m, m->lanes[i].group))
            m->lanes[kept++] = m->lanes[i];
    m->lanes_len = kept;
    for (size_t i = 0; i < m->ready_len; i++) {
        const struct model_lane lane = model__lane_of(m, m->ready[i]);
        if (!has_lane(m, lane) && !model__is_blocked(m, lane.group))
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

/* */
bool
model__make_ready(struct model *m, int key)
{
    if (m->refuse > 0 && --m->refuse == 0)
        return false;
    m->keys[key].ready = true;
    m->keys[key].became = ++m->becomings;
    m->ready[m->ready_len++] = key;
    model__settle_lanes(m);
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

void
model__take_out(struct model *m, int key)
{
    remove_from_line(m, key);
    m->keys[key].ready = false;
    model__settle_lanes(m);
}

void
model__raise_ready(struct model *m, int key, int priority)
{
    m->raises++;
    m->keys[key].priority = priority;
    if (m->is_flat)
        return;
    remove_from_line(m, key);
    m->ready[m->ready_len++] = key;
    model__settle_lanes(m);
}

static bool
is_choice(const struct model *m, int key)
{
    return !m->only || m->parts[key] == m->only;
}

/* Of the highest priority, if that counts, the first to come or the last, among
 * the keys that the model chooses from; there is one. [PQ-16] */
static int
next_in_line(const struct model *m)
{
    size_t from = 0;

    while (from + 1 < m->ready_len && !is_choice(m, m->ready[from]))
        from++;
    int next = m->ready[from];
    for (size_t i = from + 1; i < m->ready_len; i++) {
        if (!is_choice(m, m->ready[i]))
            continue;
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

    while (!model__is_same_lane(model__lane_of(m, m->ready[i]), lane))
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

/* A key that is overdue does not use up the turn of its group. */
int
model__next_ready(struct model *m, int64_t now)
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
