/* SPDX-License-Identifier: MIT */
/* core.c: the life of a key; see core.h for the picture. */
#include "core/core.h"

#include <assert.h>
#include <string.h>

#include "core/mem.h"
#include "core/span.h"

/* ---- records ------------------------------------------------------------ */

static struct wq__rec *
record(const struct wq__core *c, wq__ref ref)
{
    return wq__slab_at(&c->recs, ref);
}

static bool
is_inline(size_t len)
{
    return len <= WQ__KEY_INLINE;
}

/* Store the bytes of `key` in or beside the new record `rec`. */
static wq_err
copy_key(struct wq__core *c, struct wq__rec *rec, wq_key key)
{
    if (is_inline(key.len)) {
        memcpy(rec->bytes, key.data, key.len);
        return WQ_OK;
    }
    void *copy = wq__mem_alloc(&c->mem, key.len);
    if (!copy)
        return WQ_ENOMEM;

    memcpy(copy, key.data, key.len);
    memcpy(rec->bytes, &copy, sizeof copy);
    rec->flags |= WQ__LONG;
    return WQ_OK;
}

static void
free_record(struct wq__core *c, wq__ref ref)
{
    struct wq__rec *rec = record(c, ref);

    if (rec->flags & WQ__LONG)
        wq__mem_free(&c->mem, (void *)wq__rec_bytes(rec), rec->len);
    wq__slab_free(&c->recs, ref);
}

/* A record without any facet, with room reserved for it in the index. */
static wq_err
make_record(struct wq__core *c, wq_key key, uint32_t hash, wq__ref *out)
{
    wq_err err = wq__index_reserve(&c->index);
    if (err)
        return err;

    const size_t size = offsetof(struct wq__rec, bytes) +
                        (is_inline(key.len) ? key.len : sizeof(void *));
    wq__ref         ref;
    struct wq__rec *rec = wq__slab_alloc(&c->recs, size, &ref);
    if (!rec)
        return WQ_ENOMEM;

    rec->link = 0;
    rec->hash = hash;
    rec->wait = 0;
    rec->len = (uint32_t)key.len;
    rec->flags = 0;
    err = copy_key(c, rec, key);
    if (err) {
        wq__slab_free(&c->recs, ref);
        return err;
    }
    *out = ref;
    return WQ_OK;
}

/* A record without any facet left is forgotten. */
static void
forget_if_bare(struct wq__core *c, wq__ref ref)
{
    const struct wq__rec *rec = record(c, ref);

    if (rec->flags & (WQ__READY | WQ__HELD) || rec->wait)
        return;
    wq__index_remove(&c->index, rec->hash, ref);
    free_record(c, ref);
}

/* ---- add ---------------------------------------------------------------- */

static wq_err
add_absent(struct wq__core *c, wq_key key, uint32_t hash)
{
    wq__ref ref;
    wq_err  err = make_record(c, key, hash, &ref);
    if (err)
        return err;

    err = wq__ready_push(&c->ready, ref);
    if (err) {
        free_record(c, ref);
        return err;
    }
    wq__index_insert(&c->index, hash, ref);
    return WQ_OK;
}

/* Is the add to be served by what happens when the backoff ends? */
static bool
waits_by_backoff(const struct wq__rec *rec)
{
    return rec->flags & WQ__BACKOFF;
}

static wq_err
add_known(struct wq__core *c, wq__ref ref, bool respect, enum wq__added *what)
{
    struct wq__rec *rec = record(c, ref);

    if (rec->flags & WQ__HELD) {
        *what = rec->flags & WQ__DIRTY ? WQ__ADDED_MERGED : WQ__ADDED_DIRTY;
        c->dirty += !(rec->flags & WQ__DIRTY);
        rec->flags |= WQ__DIRTY;
        return WQ_OK;
    }
    if (rec->flags & WQ__READY) {
        *what = WQ__ADDED_MERGED;
        wq__ready_touch(&c->ready, ref);
        return WQ_OK;
    }
    if (respect && waits_by_backoff(rec)) {
        *what = WQ__ADDED_MERGED;
        return WQ_OK;
    }
    *what = WQ__ADDED_NEW; /* it was only WAITING, and goes on doing so */
    return wq__ready_push(&c->ready, ref);
}

static wq_err
admit(struct wq__core *c, wq_key key, uint32_t hash, bool respect,
      enum wq__added *what)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);
    if (ref)
        return add_known(c, ref, respect, what);

    *what = WQ__ADDED_NEW;
    return add_absent(c, key, hash);
}

wq_err
wq__core_admit(struct wq__core *c, wq_key key, uint32_t hash,
               enum wq__added *what)
{
    return admit(c, key, hash, c->respect, what);
}

wq_err
wq__core_add(struct wq__core *c, wq_key key, uint32_t hash,
             enum wq__added *what)
{
    if (c->shutting_down)
        return WQ_ESHUTDOWN;
    return admit(c, key, hash, c->respect, what);
}

wq_err
wq__core_add_respecting(struct wq__core *c, wq_key key, uint32_t hash,
                        enum wq__added *what)
{
    if (c->shutting_down)
        return WQ_ESHUTDOWN;
    return admit(c, key, hash, true, what);
}

/* ---- deadlines ---------------------------------------------------------- */

static void
mark_backoff(struct wq__core *c, wq__ref ref, bool backoff)
{
    struct wq__rec *rec = record(c, ref);

    rec->flags &= (unsigned char)~WQ__BACKOFF;
    if (backoff)
        rec->flags |= WQ__BACKOFF;
}

static wq_err
schedule_absent(struct wq__core *c, wq_key key, uint32_t hash, int64_t at,
                wq__ref *ref)
{
    const wq_err err = make_record(c, key, hash, ref);
    if (err)
        return err;

    wq__index_insert(&c->index, hash, *ref);
    wq__heap_push(&c->waiting, *ref, at);
    return WQ_OK;
}

static enum wq__added
schedule_known(struct wq__core *c, wq__ref ref, int64_t at)
{
    if (!record(c, ref)->wait) {
        wq__heap_push(&c->waiting, ref, at);
        return WQ__ADDED_SCHEDULED;
    }
    if (at < wq__heap_at(&c->waiting, ref)) {
        wq__heap_change(&c->waiting, ref, at);
        return WQ__ADDED_SOONER;
    }
    return WQ__ADDED_LATER;
}

wq_err
wq__core_add_after(struct wq__core *c, wq_key key, uint32_t hash, int64_t at,
                   bool backoff, enum wq__added *what)
{
    if (c->shutting_down)
        return WQ_ESHUTDOWN;

    wq_err err = wq__heap_reserve(&c->waiting);
    if (err)
        return err;
    wq__ref ref = wq__index_find(&c->index, key, hash);
    if (ref) {
        *what = schedule_known(c, ref, at);
    } else {
        err = schedule_absent(c, key, hash, at, &ref);
        if (err)
            return err;
        *what = WQ__ADDED_SCHEDULED;
    }
    if (*what != WQ__ADDED_LATER)
        mark_backoff(c, ref, backoff);
    return WQ_OK;
}

/* The deadline of a record is no more. */
static void
stop_waiting(struct wq__core *c, wq__ref ref)
{
    wq__heap_remove(&c->waiting, ref);
    mark_backoff(c, ref, false);
}

void
wq__core_promote(struct wq__core *c, int64_t now)
{
    const struct wq__wait *first;
    const int64_t          again = wq__span_add(now, WQ__OFFER_AGAIN_NS);

    while ((first = wq__heap_first(&c->waiting)) && first->at <= now) {
        const wq__ref  ref = first->ref;
        enum wq__added what;

        if (!add_known(c, ref, false, &what))
            stop_waiting(c, ref);
        else if (again > now)
            wq__heap_change(&c->waiting, ref, again);
        else
            return; /* at the end of time there is no later */
    }
}

int64_t
wq__core_next_deadline(const struct wq__core *c)
{
    const struct wq__wait *first = wq__heap_first(&c->waiting);
    return first ? first->at : WQ_FOREVER;
}

unsigned
wq__core_facets(const struct wq__core *c, wq_key key, uint32_t hash)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);
    if (!ref)
        return 0;

    const struct wq__rec *rec = record(c, ref);
    return (rec->flags & ~(unsigned)WQ__LONG) | (rec->wait ? WQ__WAITING : 0);
}

/* ---- get and done ------------------------------------------------------- */

wq_err
wq__core_get(struct wq__core *c, wq_item **out)
{
    wq__ref slot, ref;

    if (c->ready.len == 0)
        return WQ_ENOTFOUND;
    struct wq__loan *loan = wq__slab_alloc(&c->loans, sizeof *loan, &slot);
    if (!loan)
        return WQ_ENOMEM;
    wq_err err = wq__ready_pop(&c->ready, &ref);
    if (err) {
        loan->rec = 0;
        wq__slab_free(&c->loans, slot);
        return err;
    }

    struct wq__rec *rec = record(c, ref);
    assert(!(rec->flags & WQ__HELD)); /* L1 */
    rec->flags |= WQ__HELD;
    rec->link = slot;
    c->held++;
    loan->item = (wq_item){
        .key = wq__rec_key(rec),
        .slot = slot,
        .fence = ++c->fence,
    };
    loan->rec = ref;
    *out = &loan->item;
    return WQ_OK;
}

/* End the loan of a HELD record: READY again if it is DIRTY (and no backoff is
 * to be respected), else no facet of the two is left. */
static wq_err
take_back(struct wq__core *c, wq__ref ref)
{
    struct wq__rec *rec = record(c, ref);
    const wq__ref   slot = rec->link; /* the push below reuses the field */

    if (rec->flags & WQ__DIRTY && !(c->respect && waits_by_backoff(rec))) {
        const wq_err err = wq__ready_push(&c->ready, ref);
        if (err)
            return err;
    }
    c->dirty -= (rec->flags & WQ__DIRTY) != 0;
    rec->flags &= (unsigned char)~(WQ__HELD | WQ__DIRTY);
    c->held--;

    struct wq__loan *loan = wq__slab_at(&c->loans, slot);
    loan->rec = 0;
    wq__slab_free(&c->loans, slot);
    forget_if_bare(c, ref);
    return WQ_OK;
}

wq_err
wq__core_done(struct wq__core *c, const wq_item *item)
{
    /* The item may be anyone's: nothing but its own fields is read before it is
     * known to be one of our loans, and on loan. If it was one, its memory is
     * still there: the slab of loans keeps its blocks. */
    const struct wq__loan *loan = wq__slab_probe(&c->loans, item->slot);
    if (!loan || &loan->item != item || !loan->rec)
        return WQ_ESTATE;
    return take_back(c, loan->rec);
}

wq_err
wq__core_done_key(struct wq__core *c, wq_key key, uint32_t hash)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);
    if (!ref || !(record(c, ref)->flags & WQ__HELD))
        return WQ_ESTATE;
    return take_back(c, ref);
}

/* ---- life --------------------------------------------------------------- */

void
wq__core_shut_down(struct wq__core *c)
{
    c->shutting_down = true;
}

void
wq__core_drop_waiting(struct wq__core *c)
{
    const struct wq__wait *first;

    while ((first = wq__heap_first(&c->waiting))) {
        const wq__ref ref = first->ref;
        stop_waiting(c, ref);
        forget_if_bare(c, ref);
    }
}

void
wq__core_init(struct wq__core *c, struct wq__hash_key secret,
              const wq_order *order, const wq_allocator *mem)
{
    *c = (struct wq__core){
        .secret = secret,
        .mem = mem ? *mem : wq__mem_default,
    };
    wq__slab_init(&c->recs, &c->mem, false);
    wq__slab_init(&c->loans, &c->mem, true); /* wq__core_done() reads them */
    wq__index_init(&c->index, &c->mem, &c->recs);
    wq__ready_init(&c->ready, &c->recs, &c->index, &c->secret, order);
    wq__heap_init(&c->waiting, &c->mem, &c->recs);
}

void
wq__core_fini(struct wq__core *c)
{
    wq__ready_fini(&c->ready); /* may still look at keys: before the records */
    for (size_t i = 0; i < c->index.cap; i++)
        if (c->index.slots[i].ref)
            free_record(c, c->index.slots[i].ref);
    wq__heap_fini(&c->waiting);
    wq__index_fini(&c->index);
    wq__slab_fini(&c->loans);
    wq__slab_fini(&c->recs);
}
