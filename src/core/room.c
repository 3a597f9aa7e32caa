/* SPDX-License-Identifier: MIT */
/* room.c: is there room for new keys, and who makes room for them?
 *
 * A queue may be bounded in keys, in bytes of keys, or both. New keys that do
 * not fit are refused, or READY keys make room: of the lowest priority first,
 * and of these those that have been READY for longest. In a queue with groups
 * it is the group that has most of them which loses its oldest key.
 *
 * Cost: O(priorities in use), and O(groups there were at one time) a victim where
 * there are groups.
 */
#include <assert.h>

#include "core/inside.h"

/* A search for victims. */
struct search {
    const struct wq__core *c;
    bool                   began;    /* lines were looked at, */
    int                    searched; /* up to this priority */
    uint32_t               current;  /* its level */
    wq__ref                next;     /* the next victim there; 0: no more */
    uint32_t               group; /* with groups: `next` is of this one; or 0 */
};

bool
wq__core_ever_fits(const struct wq__core *c, struct wq__space made)
{
    return (!c->max_len || made.keys <= c->max_len) &&
           (!c->max_bytes || made.bytes <= c->max_bytes);
}

/* By how much the bounds are exceeded. */
static struct wq__space
excess(const struct wq__core *c)
{
    struct wq__space over = {0};

    if (c->max_len && c->index.len > c->max_len)
        over.keys = c->index.len - c->max_len;
    if (c->max_bytes && c->bytes > c->max_bytes)
        over.bytes = c->bytes - c->max_bytes;
    return over;
}

static bool
is_nothing(struct wq__space s)
{
    return s.keys == 0 && s.bytes == 0;
}

/* ---- who could make room ------------------------------------------------ */

/* The marks keep the keys of the add from making room for each other. */
static void
mark_picks(const struct wq__core *c, const struct wq__pick *picks, size_t n,
           bool picked)
{
    for (size_t i = 0; i < n; i++) {
        if (!picks[i].ref)
            continue;
        if (picked)
            wq__rec_set(wq__core_rec(c, picks[i].ref), WQ__PICKED);
        else
            wq__rec_clear(wq__core_rec(c, picks[i].ref), WQ__PICKED);
    }
}

static bool
is_in_use(const struct wq__levels *l, uint32_t i)
{
    return i == 0 || l->at[i].holders;
}

/* What all READY keys that are not above `level` take. */
static struct wq__space
taken_up_to(const struct wq__core *c, uint32_t level)
{
    const struct wq__levels *l = &c->ready.levels;
    struct wq__space         sum = {0};

    for (uint32_t i = 0; i < l->fresh; i++)
        if (is_in_use(l, i) && !wq__core_is_higher(c, i, level)) {
            sum.keys += l->at[i].len;
            sum.bytes += l->at[i].bytes;
        }
    return sum;
}

/* The same without those that the add names. Takes their marks away: a key that
 * is named twice counts once. */
static struct wq__space
displaceable(const struct wq__core *c, uint32_t level,
             const struct wq__pick *picks, size_t n)
{
    struct wq__space sum = taken_up_to(c, level);

    for (size_t i = 0; i < n; i++) {
        if (!picks[i].ref)
            continue;
        struct wq__rec *rec = wq__core_rec(c, picks[i].ref);
        if (rec->flags & WQ__PICKED && rec->flags & WQ__READY &&
            !wq__core_is_higher(c, rec->level, level)) {
            sum.keys--;
            if (c->max_bytes)
                sum.bytes -= wq__rec_len(rec);
        }
        wq__rec_clear(rec, WQ__PICKED);
    }
    return sum;
}

/* ---- who does ----------------------------------------------------------- */

/* From `ref` on, the first in line that the add does not name; 0: none. */
static wq__ref
unnamed_from(const struct wq__core *c, wq__ref ref)
{
    while (ref && wq__core_rec(c, ref)->flags & WQ__PICKED)
        ref = wq__core_rec(c, ref)->next;
    return ref;
}

/* Go on to the lowest level with READY keys that was not looked at. There is
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

/* Of the lowest line that has keys which the add does not name, the first. Such
 * keys do not come or move while an add is under way, so that each line is
 * walked along once, however many victims there are. */
static wq__ref
next_in_lines(struct search *s)
{
    while (!s->next)
        search_next_level(s);
    const wq__ref ref = s->next;
    s->next = unnamed_from(s->c, wq__core_rec(s->c, ref)->next);
    return ref;
}

/* The first key of a group's lane that the add does not name. What was walked
 * along for the victim before need not be again, if it was of the same group. */
static wq__ref
unnamed_in_lane(struct search *s, struct wq__group *group)
{
    if (s->group == group->number)
        return s->next;
    return unnamed_from(
        s->c, wq__groups_lane(&s->c->ready.groups, group, s->current));
}

/* Of the groups that have keys in the level which the add does not name, the one
 * with the most keys there; NULL: none. */
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

/* A READY key goes, and leaves its record for the caller to look at. */
static void
displace(struct wq__core *c, wq__ref ref)
{
    const struct wq__rec *rec = wq__core_rec(c, ref);

    wq__core_unwant(c, ref);
    if (rec->wait)
        wq__core_stop_waiting(c, ref);
    wq__core_unlist(c, ref);
    c->tally.displaced++;
    c->tally.drops++;
}

/* There are enough victims. */
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
wq__core_make_room(struct wq__core *c, const struct wq__how *how,
                   uint32_t level, const struct wq__pick *picks, size_t n,
                   wq__ref *victims)
{
    const struct wq__space over = excess(c);

    if (is_nothing(over))
        return WQ_OK;
    if (!how->displace)
        return WQ_EFULL;
    mark_picks(c, picks, n, true);
    const struct wq__space could = displaceable(c, level, picks, n);
    if (!wq__space_holds(could, over))
        return WQ_EFULL;
    mark_picks(c, picks, n, true);
    *victims = displace_all(c);
    mark_picks(c, picks, n, false);
    return WQ_OK;
}
