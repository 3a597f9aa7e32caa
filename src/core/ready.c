/* SPDX-License-Identifier: MIT */
/* ready.c: the ready order; see ready.h. */
#include "core/ready.h"

#include <assert.h>

#include "core/record.h"
#include "core/span.h"

static struct wq__rec *
record(const struct wq__ready *r, wq__ref ref)
{
    return wq__slab_at(r->recs, ref);
}

/* ---- lists by priority -------------------------------------------------- */

static void
take_out(struct wq__ready *r, wq__ref ref)
{
    const struct wq__rec *rec = record(r, ref);
    struct wq__level     *level = &r->levels.at[rec->level];
    const wq__ref         prev = level->first == ref ? 0 : rec->prev;

    *(prev ? &record(r, prev)->next : &level->first) = rec->next;
    *(rec->next ? &record(r, rec->next)->prev : &level->last) = prev;
}

/* ---- by age ------------------------------------------------------------- */

static void
append_by_age(struct wq__ready *r, wq__ref ref, struct wq__rec *rec)
{
    wq__rec_age(rec)->older = r->newest;
    wq__rec_age(rec)->newer = 0;
    if (r->newest)
        wq__rec_age(record(r, r->newest))->newer = ref;
    else
        r->oldest = ref;
    r->newest = ref;
}

static void
take_out_by_age(struct wq__ready *r, struct wq__rec *rec)
{
    const struct wq__age age = *wq__rec_age(rec);

    if (age.older)
        wq__rec_age(record(r, age.older))->newer = age.newer;
    else
        r->oldest = age.newer;
    if (age.newer)
        wq__rec_age(record(r, age.newer))->older = age.older;
    else
        r->newest = age.older;
}

/* Has the oldest key been READY for max_ready_ns? */
static bool
is_overdue(const struct wq__ready *r, int64_t now)
{
    return r->special & WQ__AGEING &&
           wq__span_between(wq__rec_age(record(r, r->oldest))->ready, now) >=
               r->max_ready_ns;
}

/* ---- special queues ----------------------------------------------------- */

static wq_err
push_to_plug_in(struct wq__ready *r, const struct wq__rec *rec)
{
    return r->plug_in.push(r->plug_in.self, wq__rec_key(rec),
                           wq__levels_priority(&r->levels, rec->level));
}

wq_err
wq__ready_push_special(struct wq__ready *r, wq__ref ref, struct wq__rec *rec)
{
    if (r->special & WQ__PLUG_IN) {
        const wq_err err = push_to_plug_in(r, rec);
        if (err)
            return err;
    } else if (r->special & WQ__GROUPED) {
        wq__groups_push(&r->groups, ref, rec);
    } else {
        wq__ready_append(r, ref, rec);
    }
    if (r->special & WQ__AGEING)
        append_by_age(r, ref, rec);
    if (r->special & WQ__SIZED)
        r->levels.at[rec->level].bytes += wq__rec_len(rec);
    return WQ_OK;
}

/* A READY record that is not in a plug-in leaves its list or lane. */
static void
leave_lists(struct wq__ready *r, wq__ref ref)
{
    if (r->special & WQ__GROUPED)
        wq__groups_take_out(&r->groups, ref);
    else
        take_out(r, ref);
}

/* A record has stopped being in the order: update the list by age and the
 * bytes. */
static void
account_for(struct wq__ready *r, wq__ref ref)
{
    struct wq__rec *rec = record(r, ref);

    if (r->special & WQ__AGEING)
        take_out_by_age(r, rec);
    if (r->special & WQ__SIZED)
        r->levels.at[rec->level].bytes -= wq__rec_len(rec);
}

/* The key that the plug-in returns is checked: 0 unless it is READY. */
static wq__ref
take_from_plug_in(struct wq__ready *r)
{
    wq_key key;
    if (!r->plug_in.pop(r->plug_in.self, &key))
        return 0;

    const wq__ref ref = wq__index_find(r->index, key, wq__hash(r->hasher, key));
    return ref && record(r, ref)->flags & WQ__READY ? ref : 0;
}

static wq__ref
take_overdue(struct wq__ready *r)
{
    const wq__ref           ref = r->oldest;
    const struct wq__level *top = &r->levels.at[wq__levels_top(&r->levels)];

    r->overdue += top->first != ref; /* else it was next by priority, too */
    leave_lists(r, ref);
    return ref;
}

wq_err
wq__ready_take_special(struct wq__ready *r, int64_t now, wq__ref *out)
{
    wq__ref ref;

    if (!wq__ready_offers(r))
        return WQ_ENOTFOUND;
    if (r->special & WQ__PLUG_IN)
        ref = take_from_plug_in(r);
    else if (is_overdue(r, now))
        ref = take_overdue(r);
    else if (r->special & WQ__GROUPED)
        ref = wq__groups_take_first(&r->groups, wq__levels_top(&r->levels));
    else
        ref = wq__ready_take_first(r);
    if (!ref)
        return WQ_ESTATE;
    account_for(r, ref);
    *out = ref;
    return WQ_OK;
}

/* ---- interface ---------------------------------------------------------- */

void
wq__ready_init(struct wq__ready *r, struct wq__slab *recs,
               const struct wq__index *index, const struct wq__hasher *hasher,
               const wq_order *order, const wq_allocator *mem)
{
    *r = (struct wq__ready){
        .special = order ? WQ__PLUG_IN : 0,
        .recs = recs,
        .index = index,
        .hasher = hasher,
    };
    if (order)
        r->plug_in = *order;
    wq__levels_init(&r->levels, mem);
    wq__groups_init(&r->groups, mem, recs, &r->levels);
}

void
wq__ready_fini(struct wq__ready *r)
{
    if (r->special & WQ__PLUG_IN && r->plug_in.destroy)
        r->plug_in.destroy(r->plug_in.self);
    wq__levels_fini(&r->levels);
    wq__groups_fini(&r->groups);
    r->len = 0;
    r->special = 0;
}

void
wq__ready_touch(struct wq__ready *r, wq__ref ref)
{
    assert(record(r, ref)->flags & WQ__READY);
    if (r->special & WQ__PLUG_IN && r->plug_in.touch)
        r->plug_in.touch(r->plug_in.self, wq__rec_key(record(r, ref)));
}

/* Report a raise to the plug-in, or a second add if it has no such function. */
static void
report_raise_to_plug_in(struct wq__ready *r, wq__ref ref, int priority)
{
    if (r->plug_in.raise)
        r->plug_in.raise(r->plug_in.self, wq__rec_key(record(r, ref)),
                         priority);
    else
        wq__ready_touch(r, ref);
}

/* The age of the record stays. */
void
wq__ready_raise(struct wq__ready *r, wq__ref ref, uint32_t level)
{
    struct wq__rec   *rec = record(r, ref);
    struct wq__level *levels = r->levels.at;
    const bool        has_plug_in = r->special & WQ__PLUG_IN;

    assert(rec->flags & WQ__READY);
    if (!has_plug_in)
        leave_lists(r, ref);
    levels[rec->level].len--;
    levels[level].len++;
    if (r->special & WQ__SIZED) {
        levels[rec->level].bytes -= wq__rec_len(rec);
        levels[level].bytes += wq__rec_len(rec);
    }
    rec->level = level;
    if (has_plug_in)
        report_raise_to_plug_in(r, ref, levels[level].priority);
    else if (r->special & WQ__GROUPED)
        wq__groups_push(&r->groups, ref, rec);
    else
        wq__ready_append(r, ref, rec);
}

bool
wq__ready_can_remove(const struct wq__ready *r)
{
    return !(r->special & WQ__PLUG_IN) || r->plug_in.remove;
}

void
wq__ready_remove(struct wq__ready *r, wq__ref ref)
{
    struct wq__rec *rec = record(r, ref);

    assert(rec->flags & WQ__READY);
    if (r->special & WQ__PLUG_IN)
        r->plug_in.remove(r->plug_in.self, wq__rec_key(rec));
    else
        leave_lists(r, ref);
    if (r->special)
        account_for(r, ref);
    wq__ready_unmark(r, rec);
}
