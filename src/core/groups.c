/* SPDX-License-Identifier: MIT */
/* groups.c: lanes, rings and groups; see groups.h. */
#include "core/groups.h"

#include <assert.h>
#include <string.h>

#include "core/mem.h"

enum {
    CAP_FIRST = WQ_DEBUG ? 2 : 16, /* 2: rare paths become daily ones */
    CAP_MAX = 1 << 30,
};

static struct wq__rec *
record(const struct wq__groups *g, wq__ref ref)
{
    return wq__slab_at(g->recs, ref);
}

static struct wq__member *
member(const struct wq__groups *g, wq__ref ref)
{
    return wq__rec_member(record(g, ref));
}

/* ---- rings -------------------------------------------------------------- */

/* The level points to the lane that is next: `first` of struct wq__level. */

static void
enter_ring(struct wq__groups *g, wq__ref head)
{
    const uint32_t     number = record(g, head)->level;
    struct wq__level  *level = &g->levels->at[number];
    struct wq__member *m = member(g, head);

    if (!level->first) {
        m->next = m->prev = head;
        level->first = head;
    } else { /* behind all others */
        m->next = level->first;
        m->prev = member(g, m->next)->prev;
        member(g, m->prev)->next = head;
        member(g, m->next)->prev = head;
    }
    wq__levels_filled(g->levels, number);
}

static void
leave_ring(struct wq__groups *g, wq__ref head)
{
    struct wq__level  *level = &g->levels->at[record(g, head)->level];
    struct wq__member *m = member(g, head);

    if (m->next == head) {
        level->first = 0;
    } else {
        member(g, m->prev)->next = m->next;
        member(g, m->next)->prev = m->prev;
        if (level->first == head)
            level->first = m->next;
    }
    m->next = m->prev = 0;
}

/* ---- lanes -------------------------------------------------------------- */

/* The link to the group's lane in `level`; it holds 0 if there is none. */
static wq__ref *
lane_of(const struct wq__groups *g, struct wq__group *group, uint32_t level)
{
    wq__ref *link = &group->lanes;

    while (*link && record(g, *link)->level != level)
        link = &member(g, *link)->other;
    return link;
}

static void
begin_lane(struct wq__groups *g, struct wq__group *group, wq__ref ref)
{
    struct wq__member *m = member(g, ref);

    m->last = ref;
    m->len = 1;
    m->next = m->prev = 0;
    m->other = group->lanes;
    group->lanes = ref;
    record(g, ref)->next = 0;
    if (!wq__groups_is_blocked(g, group))
        enter_ring(g, ref);
}

static void
extend_lane(struct wq__groups *g, wq__ref head, wq__ref ref)
{
    struct wq__member *m = member(g, head);
    struct wq__rec    *rec = record(g, ref);

    record(g, m->last)->next = ref;
    rec->prev = m->last;
    rec->next = 0;
    m->last = ref;
    m->len++;
}

/* The second record of the lane at *link becomes its first. */
static void
move_head(struct wq__groups *g, wq__ref *link)
{
    const wq__ref old = *link;
    const wq__ref new = record(g, old)->next;
    struct wq__level  *level = &g->levels->at[record(g, old)->level];
    struct wq__member *from = member(g, old);
    struct wq__member *to = member(g, new);

    *to = *from; /* of the same group */
    to->len--;
    *link = new;
    if (!from->next)
        return;
    if (from->next == old) {
        to->next = to->prev = new;
    } else {
        member(g, from->prev)->next = new;
        member(g, from->next)->prev = new;
    }
    if (level->first == old)
        level->first = new;
}

static void
end_lane(struct wq__groups *g, wq__ref *link)
{
    const wq__ref head = *link;

    if (member(g, head)->next)
        leave_ring(g, head);
    *link = member(g, head)->other;
}

/* ---- interface ---------------------------------------------------------- */

/* How many keys of the group could be handed out before the next done. */
static size_t
offers_of(const struct wq__groups *g, const struct wq__group *group)
{
    if (!g->max_held)
        return group->ready;
    const size_t more =
        group->held < g->max_held ? g->max_held - group->held : 0;
    return group->ready < more ? group->ready : more;
}

void
wq__groups_push(struct wq__groups *g, wq__ref ref, struct wq__rec *rec)
{
    struct wq__group *group = wq__groups_of(g, rec);
    const wq__ref     head = *lane_of(g, group, rec->level);

    if (head)
        extend_lane(g, head, ref);
    else
        begin_lane(g, group, ref);
    g->offers -= offers_of(g, group);
    group->ready++;
    g->offers += offers_of(g, group);
}

static void
unlink_first(struct wq__groups *g, wq__ref *link)
{
    if (record(g, *link)->next)
        move_head(g, link);
    else
        end_lane(g, link);
}

static void
unlink_other(struct wq__groups *g, wq__ref head, wq__ref ref)
{
    const struct wq__rec *rec = record(g, ref);

    record(g, rec->prev)->next = rec->next;
    if (rec->next)
        record(g, rec->next)->prev = rec->prev;
    else
        member(g, head)->last = rec->prev;
    member(g, head)->len--;
}

void
wq__groups_take_out(struct wq__groups *g, wq__ref ref)
{
    struct wq__rec   *rec = record(g, ref);
    struct wq__group *group = wq__groups_of(g, rec);
    wq__ref          *link = lane_of(g, group, rec->level);

    assert(*link && group->ready);
    if (*link == ref)
        unlink_first(g, link);
    else
        unlink_other(g, *link, ref);
    g->offers -= offers_of(g, group);
    group->ready--;
    g->offers += offers_of(g, group);
}

wq__ref
wq__groups_take_first(struct wq__groups *g, uint32_t level)
{
    struct wq__level *l = &g->levels->at[level];
    const wq__ref     ref = l->first;

    l->first = member(g, ref)->next; /* the next lane is next */
    wq__groups_take_out(g, ref);
    return ref;
}

/* All lanes of a group leave their rings; all lanes enter them again. */
static void
block(struct wq__groups *g, const struct wq__group *group)
{
    for (wq__ref head = group->lanes; head; head = member(g, head)->other)
        leave_ring(g, head);
}

static void
unblock(struct wq__groups *g, const struct wq__group *group)
{
    for (wq__ref head = group->lanes; head; head = member(g, head)->other)
        enter_ring(g, head);
}

void
wq__groups_hold(struct wq__groups *g, struct wq__rec *rec)
{
    struct wq__group *group = wq__groups_of(g, rec);

    g->offers -= offers_of(g, group);
    group->held++;
    g->offers += offers_of(g, group);
    if (g->max_held && group->held == g->max_held)
        block(g, group);
}

void
wq__groups_release(struct wq__groups *g, struct wq__rec *rec)
{
    struct wq__group *group = wq__groups_of(g, rec);
    const bool        was_blocked = wq__groups_is_blocked(g, group);

    assert(group->held);
    g->offers -= offers_of(g, group);
    group->held--;
    g->offers += offers_of(g, group);
    if (was_blocked)
        unblock(g, group);
}

wq__ref
wq__groups_lane(const struct wq__groups *g, struct wq__group *group,
                uint32_t level)
{
    return *lane_of(g, group, level);
}

size_t
wq__groups_lane_len(const struct wq__groups *g, struct wq__group *group,
                    uint32_t level)
{
    const wq__ref head = *lane_of(g, group, level);
    return head ? member(g, head)->len : 0;
}

/* ---- the table ---------------------------------------------------------- */

static uint32_t *
bucket_of(const struct wq__groups *g, uint32_t hash)
{
    return &g->buckets[hash & (g->cap - 1)];
}

static uint32_t
find(const struct wq__groups *g, wq_key name, uint32_t hash)
{
    if (!g->cap)
        return 0;
    for (uint32_t i = *bucket_of(g, hash); i; i = g->at[i]->next) {
        const struct wq__group *group = g->at[i];
        if (group->hash == hash && group->len == name.len &&
            (!name.len || !memcmp(group->name, name.data, name.len)))
            return i;
    }
    return 0;
}

static void
free_table(struct wq__groups *g)
{
    wq__mem_free(g->mem, g->at, g->cap * sizeof *g->at);
    wq__mem_free(g->mem, g->buckets, g->cap * sizeof *g->buckets);
    wq__mem_free(g->mem, g->spare, g->cap * sizeof *g->spare);
    g->at = NULL;
    g->buckets = NULL;
    g->spare = NULL;
    g->cap = g->spares = 0;
    g->fresh = 1;
}

static void
enter_bucket(struct wq__groups *g, struct wq__group *group)
{
    uint32_t *bucket = bucket_of(g, group->hash);

    group->next = *bucket;
    *bucket = group->number;
}

/* Double all arrays, or none. No number is spare: the table was full. */
static wq_err
grow(struct wq__groups *g)
{
    struct wq__groups more = *g;

    if (g->cap >= CAP_MAX)
        return WQ_ENOMEM;
    more.cap = g->cap ? 2 * g->cap : CAP_FIRST;
    more.at = wq__mem_array(g->mem, more.cap, sizeof *more.at);
    more.buckets = wq__mem_array(g->mem, more.cap, sizeof *more.buckets);
    more.spare = wq__mem_array(g->mem, more.cap, sizeof *more.spare);
    if (!more.at || !more.buckets || !more.spare) {
        free_table(&more);
        return WQ_ENOMEM;
    }
    memset(more.at, 0, more.cap * sizeof *more.at);
    memset(more.buckets, 0, more.cap * sizeof *more.buckets);
    for (uint32_t i = 1; i < g->cap; i++) {
        more.at[i] = g->at[i];
        if (more.at[i])
            enter_bucket(&more, more.at[i]);
    }
    free_table(g);
    *g = more;
    return WQ_OK;
}

static size_t
size_of(size_t len)
{
    return offsetof(struct wq__group, name) + (len ? len : 1);
}

/* Create a group; its place in the table is reserved. */
static wq_err
make(struct wq__groups *g, wq_key name, uint32_t hash, uint32_t *number)
{
    struct wq__group *group = wq__mem_alloc(g->mem, size_of(name.len));

    if (!group)
        return WQ_ENOMEM;
    *group = (struct wq__group){
        .number = g->spares ? g->spare[--g->spares] : g->fresh++,
        .hash = hash,
        .len = name.len,
    };
    if (name.len)
        memcpy(group->name, name.data, name.len);
    g->at[group->number] = group;
    g->live++;
    enter_bucket(g, group);
    *number = group->number;
    return WQ_OK;
}

wq_err
wq__groups_join(struct wq__groups *g, wq_key name, uint32_t hash,
                uint32_t *number)
{
    wq_err err = WQ_OK;

    *number = find(g, name, hash);
    if (!*number && g->live + 1 >= g->cap)
        err = grow(g);
    if (!*number && !err)
        err = make(g, name, hash, number);
    if (!err)
        g->at[*number]->records++;
    return err;
}

static void
leave_bucket(struct wq__groups *g, const struct wq__group *group)
{
    uint32_t *link = bucket_of(g, group->hash);

    while (*link != group->number)
        link = &g->at[*link]->next;
    *link = group->next;
}

void
wq__groups_part(struct wq__groups *g, struct wq__rec *rec)
{
    struct wq__group *group = wq__groups_of(g, rec);

    assert(group->records);
    if (--group->records)
        return;
    assert(!group->ready && !group->held && !group->lanes);
    leave_bucket(g, group);
    g->at[group->number] = NULL;
    g->spare[g->spares++] = group->number;
    g->live--;
    wq__mem_free(g->mem, group, size_of(group->len));
    if (!g->live && g->cap > CAP_FIRST)
        /* A small table stays: a few groups come and go without allocating. */
        free_table(g);
}

void
wq__groups_init(struct wq__groups *g, const wq_allocator *mem,
                struct wq__slab *recs, struct wq__levels *levels)
{
    *g = (struct wq__groups){
        .mem = mem, .recs = recs, .levels = levels, .fresh = 1};
}

void
wq__groups_fini(struct wq__groups *g)
{
    for (uint32_t i = 1; i < g->cap; i++)
        if (g->at[i])
            wq__mem_free(g->mem, g->at[i], size_of(g->at[i]->len));
    free_table(g);
    g->live = 0;
}

/* ---- the auditor -------------------------------------------------------- */

static const char *
check_lane(const struct wq__groups *g, const struct wq__group *group,
           wq__ref head)
{
    struct wq__member *m = member(g, head);
    uint32_t           len = 0;
    wq__ref            last = 0;

    for (wq__ref ref = head; ref; ref = record(g, ref)->next) {
        if (!(record(g, ref)->flags & WQ__READY))
            return "L2: a lane holds a key that is not READY";
        if (record(g, ref)->level != record(g, head)->level)
            return "L4: a key is in the lane of another priority";
        if (member(g, ref)->group != group->number)
            return "a key is in the lane of another group";
        if (++len > m->len)
            return "L2: a key is in its lane twice";
        if (last && record(g, ref)->prev != last)
            return "a lane does not lead back";
        last = ref;
    }
    if (len != m->len || last != m->last)
        return "a lane was cut";
    if (!m->next != wq__groups_is_blocked(g, group))
        return "a lane of a blocked group is in its ring, or another one is "
               "not";
    if (m->next &&
        (member(g, m->next)->prev != head || member(g, m->prev)->next != head))
        return "a ring of lanes does not lead back";
    if (m->next && !g->levels->at[record(g, head)->level].first)
        return "L4: a level does not point to its ring of lanes";
    return NULL;
}

static const char *
check_group(const struct wq__groups *g, const struct wq__group *group)
{
    size_t ready = 0;

    for (wq__ref head = group->lanes; head; head = member(g, head)->other) {
        const char *broken = check_lane(g, group, head);
        if (broken)
            return broken;
        ready += member(g, head)->len;
        if (ready > group->ready)
            break;
    }
    return ready == group->ready ? NULL : "a group's keys were miscounted";
}

const char *
wq__groups_check(const struct wq__groups *g)
{
    uint32_t live = 0;
    size_t   offers = 0;

    for (uint32_t i = 1; i < g->cap; i++) {
        struct wq__group *group = g->at[i];
        if (!group)
            continue;
        live++;
        offers += offers_of(g, group);
        if (group->number != i || !group->records)
            return "a group is kept that has no key";
        if (find(g, (wq_key){group->name, group->len}, group->hash) != i)
            return "a group cannot be found, or is there twice";
        const char *broken = check_group(g, group);
        if (broken)
            return broken;
    }
    if (live != g->live || offers != g->offers ||
        live + g->spares + 1 != g->fresh)
        return "groups, or what they offer, were miscounted";
    return NULL;
}
