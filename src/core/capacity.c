/* SPDX-License-Identifier: MIT */
/* capacity.c: do new keys fit, and which keys do they displace?
 *
 * A queue may be bounded in keys, in bytes of keys, or both. New keys that do
 * not fit are refused, or displace READY keys: of the lowest priority first,
 * and of these the keys that have been READY for longest. In a queue with
 * groups, the group with the most READY keys of that priority loses its oldest
 * one.
 *
 * Cost: O(priorities in use); with groups, O(the most groups there ever were)
 * for each displaced key.
 */
#include <assert.h>

#include "core/inside.h"

/* A search for victims. */
struct search {
    const struct wq__core *c;
    bool                   began;    /* some levels were searched, */
    int                    searched; /* up to this priority */
    uint32_t               current;  /* its level */
    wq__ref  next;  /* the next key to displace there; 0: none left */
    uint32_t group; /* with groups: the one of `next`; or 0 */
};

bool
wq__core_ever_fits(const struct wq__core *c, struct wq__capacity made)
{
    return (!c->max_len || made.keys <= c->max_len) &&
           (!c->max_bytes || made.bytes <= c->max_bytes);
}

/* By how much the bounds are exceeded. */
static struct wq__capacity
excess(const struct wq__core *c)
{
    struct wq__capacity over = {0};

    if (c->max_len && c->index.len > c->max_len)
        over.keys = c->index.len - c->max_len;
    if (c->max_bytes && c->bytes > c->max_bytes)
        over.bytes = c->bytes - c->max_bytes;
    return over;
}

static bool
is_nothing(struct wq__capacity s)
{
    return s.keys == 0 && s.bytes == 0;
}

/* ---- which keys could be displaced -------------------------------------- */

/* The marks keep the add from displacing its own keys. */
static void
mark_named(const struct wq__core *c, const struct wq__prepared *prepared,
           size_t n, bool named)
{
    for (size_t i = 0; i < n; i++) {
        if (!prepared[i].ref)
            continue;
        if (named)
            wq__rec_set(wq__core_rec(c, prepared[i].ref), WQ__NAMED);
        else
            wq__rec_clear(wq__core_rec(c, prepared[i].ref), WQ__NAMED);
    }
}

static bool
is_in_use(const struct wq__levels *l, uint32_t i)
{
    return i == 0 || l->at[i].holders;
}

/* What all READY keys whose priority is not above that of `level` take. */
static struct wq__capacity
taken_up_to(const struct wq__core *c, uint32_t level)
{
    const struct wq__levels *l = &c->ready.levels;
    struct wq__capacity      sum = {0};

    for (uint32_t i = 0; i < l->fresh; i++)
        if (is_in_use(l, i) && !wq__core_is_higher(c, i, level)) {
            sum.keys += l->at[i].len;
            sum.bytes += l->at[i].bytes;
        }
    return sum;
}

/* The same without the keys that the add names. Clears their marks, so that a
 * key that is named twice is subtracted once. */
static struct wq__capacity
displaceable(const struct wq__core *c, uint32_t level,
             const struct wq__prepared *prepared, size_t n)
{
    struct wq__capacity sum = taken_up_to(c, level);

    for (size_t i = 0; i < n; i++) {
        if (!prepared[i].ref)
            continue;
        struct wq__rec *rec = wq__core_rec(c, prepared[i].ref);
        if (rec->flags & WQ__NAMED && rec->flags & WQ__READY &&
            !wq__core_is_higher(c, rec->level, level)) {
            sum.keys--;
            if (c->max_bytes)
                sum.bytes -= wq__rec_len(rec);
        }
        wq__rec_clear(rec, WQ__NAMED);
    }
    return sum;
}

/* ---- displacing --------------------------------------------------------- */

/* From `ref` on, the first key of the list that the add does not name; 0:
 * none. */
static wq__ref
unnamed_from(const struct wq__core *c, wq__ref ref)
{
    while (ref && wq__core_rec(c, ref)->flags & WQ__NAMED)
        ref = wq__core_rec(c, ref)->next;
    return ref;
}

/* Go on to the lowest level with READY keys that was not searched yet. There is
 * one. */
static void
search_next_level(struct search *s)
{
    const struct wq__levels *l = &s->c->ready.levels;
    bool                     found = false;

    for (uint32_t i = 0; i < l->fresh; i++) {
        if (!is_in_use(l, i) || !l->at[i].len ||
            (s->began && l->at[i].priority <= s->searched))
            continue;
        if (!found || l->at[i].priority < l->at[s->current].priority)
            s->current = i;
        found = true;
    }
    assert(found);
    s->began = true;
    s->searched = l->at[s->current].priority;
    s->next = unnamed_from(s->c, l->at[s->current].first);
}

/* The first key that the add does not name, of the lowest level that has one.
 * The lists do not change during an add, but for the displaced keys: so each
 * list is walked once, however many keys are displaced. */
static wq__ref
next_in_lines(struct search *s)
{
    while (!s->next)
        search_next_level(s);
    const wq__ref ref = s->next;
    s->next = unnamed_from(s->c, wq__core_rec(s->c, ref)->next);
    return ref;
}

/* The first key of a group's lane that the add does not name. If the last
 * displaced key was of the same group, the search goes on from there. */
static wq__ref
unnamed_in_lane(struct search *s, struct wq__group *group)
{
    if (s->group == group->number)
        return s->next;
    return unnamed_from(
        s->c, wq__groups_lane(&s->c->ready.groups, group, s->current));
}

/* Of the groups that have a key in the current level which the add does not
 * name, the one with the most keys there; NULL: none. */
static struct wq__group *
largest_group(struct search *s)
{
    const struct wq__groups *g = &s->c->ready.groups;
    struct wq__group        *largest = NULL;
    size_t                   most = 0;

    for (uint32_t i = 1; i < g->fresh; i++) {
        const size_t len =
            g->at[i] ? wq__groups_lane_len(g, g->at[i], s->current) : 0;
        if (len > most && unnamed_in_lane(s, g->at[i])) {
            largest = g->at[i];
            most = len;
        }
    }
    return largest;
}

static wq__ref
next_in_lanes(struct search *s)
{
    struct wq__group *group = s->began ? largest_group(s) : NULL;

    while (!group) {
        search_next_level(s);
        s->group = 0;
        group = largest_group(s);
    }
    const wq__ref ref = unnamed_in_lane(s, group);
    s->group = group->number;
    s->next = unnamed_from(s->c, wq__core_rec(s->c, ref)->next);
    return ref;
}

/* Displace a READY key. Its record stays in memory for the caller to read. */
static void
displace(struct wq__core *c, wq__ref ref)
{
    const struct wq__rec *rec = wq__core_rec(c, ref);

    wq__core_withdraw_run(c, ref);
    if (rec->wait)
        wq__core_stop_waiting(c, ref);
    wq__core_unlist(c, ref);
    c->tally.displaced++;
    c->tally.drops++;
}

/* Displace as many keys as needed. There are enough. */
static wq__ref
displace_all(struct wq__core *c)
{
    struct search s = {.c = c};
    wq__ref       first = 0;
    wq__ref      *link = &first;

    while (!is_nothing(excess(c))) {
        const wq__ref ref = c->ready.special & WQ__GROUPED ? next_in_lanes(&s)
                                                           : next_in_lines(&s);
        displace(c, ref);
        *link = ref;
        link = &wq__core_rec(c, ref)->next;
    }
    *link = 0;
    return first;
}

wq_err
wq__core_ensure_capacity(struct wq__core *c, const struct wq__how *how,
                         uint32_t level, const struct wq__prepared *prepared,
                         size_t n, wq__ref *victims)
{
    const struct wq__capacity over = excess(c);

    if (is_nothing(over))
        return WQ_OK;
    if (!how->displace)
        return WQ_EFULL;
    mark_named(c, prepared, n, true);
    const struct wq__capacity could = displaceable(c, level, prepared, n);
    if (!wq__capacity_covers(could, over))
        return WQ_EFULL;
    mark_named(c, prepared, n, true);
    *victims = displace_all(c);
    mark_named(c, prepared, n, false);
    return WQ_OK;
}
