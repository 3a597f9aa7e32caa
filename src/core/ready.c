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
append(struct wq__ready *r, wq__ref ref, struct wq__rec *rec)
{
    struct wq__level *level = &r->levels.at[rec->level];

    rec->next = 0;
    rec->prev = level->last;
    if (level->last)
        record(r, level->last)->next = ref;
    else
        level->first = ref;
    level->last = ref;
    wq__levels_filled(&r->levels, rec->level);
}

/* `prev` of the new first one is not written: it says nothing there, and the
 * record need not be touched. */
static wq__ref
take_first(struct wq__ready *r)
{
    struct wq__level *level = &r->levels.at[wq__levels_top(&r->levels)];
    const wq__ref     ref = level->first;

    level->first = record(r, ref)->next;
    if (!level->first)
        level->last = 0;
    return ref;
}

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

/* What the plug-in hands out is checked, not trusted: 0 unless it is READY. */
static wq__ref
take_from_plug_in(struct wq__ready *r)
{
    wq_key key;
    if (!r->plug_in.pop(r->plug_in.self, &key))
        return 0;

    const wq__ref ref = wq__index_find(r->index, key, wq__hash(r->secret, key));
    return ref && record(r, ref)->flags & WQ__READY ? ref : 0;
}

static wq_err
push_to_plug_in(struct wq__ready *r, const struct wq__rec *rec)
{
    return r->plug_in.push(r->plug_in.self, wq__rec_key(rec),
                           wq__levels_priority(&r->levels, rec->level));
}

/* ---- what is offered ---------------------------------------------------- */

void
wq__ready_init(struct wq__ready *r, struct wq__slab *recs,
               const struct wq__index *index, const struct wq__hash_key *secret,
               const wq_order *order, const wq_allocator *mem)
{
    *r = (struct wq__ready){
        .recs = recs,
        .index = index,
        .secret = secret,
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

wq_err
wq__ready_push(struct wq__ready *r, wq__ref ref, struct wq__rec *rec)
{
    assert(!(rec->flags & WQ__READY));

    if (r->has_plug_in) {
        const wq_err err = push_to_plug_in(r, rec);
        if (err)
            return err;
    } else {
        append(r, ref, rec);
    }
    wq__rec_set(rec, WQ__READY);
    r->levels.at[rec->level].len++;
    r->len++;
    return WQ_OK;
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
        append(r, ref, rec);
    else if (r->plug_in.raise)
        r->plug_in.raise(r->plug_in.self, wq__rec_key(rec), priority);
    else
        wq__ready_touch(r, ref);
}

/* A record that was taken out of the line, or by the plug-in, is not READY. */
static void
unmark(struct wq__ready *r, struct wq__rec *rec)
{
    wq__rec_clear(rec, WQ__READY);
    r->levels.at[rec->level].len--;
    r->len--;
}

wq_err
wq__ready_pop(struct wq__ready *r, wq__ref *out, struct wq__rec **rec)
{
    if (r->len == 0)
        return WQ_ENOTFOUND;

    const wq__ref ref = r->has_plug_in ? take_from_plug_in(r) : take_first(r);
    if (!ref)
        return WQ_ESTATE;

    *rec = record(r, ref);
    unmark(r, *rec);
    *out = ref;
    return WQ_OK;
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
    unmark(r, rec);
}
