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

static void
append(struct wq__ready *r, wq__ref ref)
{
    record(r, ref)->link = 0;
    if (r->last)
        record(r, r->last)->link = ref;
    else
        r->first = ref;
    r->last = ref;
}

static wq__ref
take_first(struct wq__ready *r)
{
    const wq__ref ref = r->first;

    r->first = record(r, ref)->link;
    if (!r->first)
        r->last = 0;
    return ref;
}

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

void
wq__ready_init(struct wq__ready *r, struct wq__slab *recs,
               const struct wq__index *index, const struct wq__hash_key *secret,
               const wq_order *order)
{
    *r = (struct wq__ready){
        .recs = recs,
        .index = index,
        .secret = secret,
        .has_plug_in = order != NULL,
    };
    if (order)
        r->plug_in = *order;
}

void
wq__ready_fini(struct wq__ready *r)
{
    if (r->has_plug_in && r->plug_in.destroy)
        r->plug_in.destroy(r->plug_in.self);
    *r = (struct wq__ready){.len = 0};
}

wq_err
wq__ready_push(struct wq__ready *r, wq__ref ref)
{
    struct wq__rec *rec = record(r, ref);
    assert(!(rec->flags & WQ__READY));

    if (r->has_plug_in) {
        wq_err err = r->plug_in.push(r->plug_in.self, wq__rec_key(rec), 0);
        if (err)
            return err;
    } else {
        append(r, ref);
    }
    rec->flags |= WQ__READY;
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

wq_err
wq__ready_pop(struct wq__ready *r, wq__ref *out)
{
    if (r->len == 0)
        return WQ_ENOTFOUND;

    const wq__ref ref = r->has_plug_in ? take_from_plug_in(r) : take_first(r);
    if (!ref)
        return WQ_ESTATE;

    record(r, ref)->flags &= (unsigned char)~WQ__READY;
    r->len--;
    *out = ref;
    return WQ_OK;
}
