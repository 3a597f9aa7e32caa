/* SPDX-License-Identifier: MIT */
/* ready.c: the ready order; see ready.h. */
#include "core/ready.h"

#include <assert.h>

#include "core/record.h"

static struct wq__rec *
record(const struct wq__ready *r, wq__ref ref)
{
    return wq__slab_at(r->recs, ref);
}

/* ---- lines -------------------------------------------------------------- */

static void
take_out(struct wq__ready *r, wq__ref ref)
{
    const struct wq__rec *rec = record(r, ref);
    struct wq__level     *level = &r->levels.at[rec->level];
    const wq__ref         prev = level->first == ref ? 0 : rec->prev;

    *(prev ? &record(r, prev)->next : &level->first) = rec->next;
    *(rec->next ? &record(r, rec->next)->prev : &level->last) = prev;
}

/* ---- a plug-in ---------------------------------------------------------- */

wq_err
wq__ready_push_to_plug_in(struct wq__ready *r, const struct wq__rec *rec)
{
    return r->plug_in.push(r->plug_in.self, wq__rec_key(rec),
                           wq__levels_priority(&r->levels, rec->level));
}

/* ---- what is offered ---------------------------------------------------- */

void
wq__ready_init(struct wq__ready *r, struct wq__slab *recs,
               const struct wq__index *index, const struct wq__hasher *hasher,
               const wq_order *order, const wq_allocator *mem)
{
    *r = (struct wq__ready){
        .recs = recs,
        .index = index,
        .hasher = hasher,
        .has_plug_in = order != NULL,
    };
    if (order)
        r->plug_in = *order;
    wq__levels_init(&r->levels, mem);
}

void
wq__ready_fini(struct wq__ready *r)
{
    if (r->has_plug_in && r->plug_in.destroy)
        r->plug_in.destroy(r->plug_in.self);
    wq__levels_fini(&r->levels);
    r->len = 0;
    r->has_plug_in = false;
}

void
wq__ready_touch(struct wq__ready *r, wq__ref ref)
{
    assert(record(r, ref)->flags & WQ__READY);
    if (r->has_plug_in && r->plug_in.touch)
        r->plug_in.touch(r->plug_in.self, wq__rec_key(record(r, ref)));
}

void
wq__ready_raise(struct wq__ready *r, wq__ref ref, uint32_t level)
{
    struct wq__rec *rec = record(r, ref);
    const int       priority = wq__levels_priority(&r->levels, level);

    assert(rec->flags & WQ__READY);
    if (!r->has_plug_in)
        take_out(r, ref);
    r->levels.at[rec->level].len--;
    rec->level = level;
    r->levels.at[level].len++;
    if (!r->has_plug_in)
        wq__ready_append(r, ref, rec);
    else if (r->plug_in.raise)
        r->plug_in.raise(r->plug_in.self, wq__rec_key(rec), priority);
    else
        wq__ready_touch(r, ref);
}

wq__ref
wq__ready_take_from_plug_in(struct wq__ready *r)
{
    wq_key key;
    if (!r->plug_in.pop(r->plug_in.self, &key))
        return 0;

    const wq__ref ref = wq__index_find(r->index, key, wq__hash(r->hasher, key));
    return ref && record(r, ref)->flags & WQ__READY ? ref : 0;
}

bool
wq__ready_can_remove(const struct wq__ready *r)
{
    return !r->has_plug_in || r->plug_in.remove;
}

void
wq__ready_remove(struct wq__ready *r, wq__ref ref)
{
    struct wq__rec *rec = record(r, ref);

    assert(rec->flags & WQ__READY);
    if (r->has_plug_in)
        r->plug_in.remove(r->plug_in.self, wq__rec_key(rec));
    else
        take_out(r, ref);
    wq__ready_unmark(r, rec);
}
