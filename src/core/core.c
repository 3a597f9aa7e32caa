/* SPDX-License-Identifier: MIT */
/* core.c: the life of a key; see core.h for the picture. */
#include "core/core.h"

#include <assert.h>
#include <string.h>

#include "core/inside.h"
#include "core/mem.h"
#include "core/span.h"

/* ---- records ------------------------------------------------------------ */

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
        memcpy(wq__rec_key_at(rec), key.data, key.len);
        return WQ_OK;
    }
    void *copy = wq__mem_alloc(&c->mem, key.len);
    if (!copy)
        return WQ_ENOMEM;

    memcpy(copy, key.data, key.len);
    memcpy(wq__rec_key_at(rec), &copy, sizeof copy);
    wq__rec_set(rec, WQ__LONG);
    return WQ_OK;
}

static void
free_record(struct wq__core *c, wq__ref ref)
{
    struct wq__rec *rec = wq__core_rec(c, ref);

    if (rec->flags & WQ__LONG)
        wq__mem_free(&c->mem, (void *)wq__rec_bytes(rec), wq__rec_len(rec));
    rec->flags = 0; /* wq__core_walk() looks at freed records, too */
    rec->wait = 0;
    wq__slab_free(&c->recs, ref);
}

/* A record without any facet, with room reserved for it in the index. */
static wq_err
make_record(struct wq__core *c, wq_key key, uint32_t hash, wq__ref *out,
            struct wq__rec **out_rec)
{
    wq_err err = wq__index_reserve(&c->index);
    if (err)
        return err;

    const unsigned stamped = c->ages ? WQ__STAMPED : 0;
    const size_t   size = offsetof(struct wq__rec, bytes) + stamped +
                        (is_inline(key.len) ? key.len : sizeof(void *));
    wq__ref         ref;
    struct wq__rec *rec = wq__slab_alloc(&c->recs, size, &ref);
    if (!rec)
        return WQ_ENOMEM;

    rec->hash = hash;
    rec->wait = 0;
    rec->level = 0;
    rec->len_less_1 = (uint16_t)(key.len - 1);
    rec->flags = (uint16_t)stamped;
    err = copy_key(c, rec, key);
    if (err) {
        free_record(c, ref);
        return err;
    }
    *out = ref;
    *out_rec = rec;
    return WQ_OK;
}

wq_err
wq__core_make(struct wq__core *c, wq_key key, uint32_t hash, wq__ref *out)
{
    struct wq__rec *rec;
    const wq_err    err = make_record(c, key, hash, out, &rec);
    if (!err)
        wq__index_insert(&c->index, hash, *out);
    return err;
}

void
wq__core_forget_if_bare(struct wq__core *c, wq__ref ref)
{
    const struct wq__rec *rec = wq__core_rec(c, ref);

    if (rec->flags & (WQ__READY | WQ__HELD) || rec->wait)
        return;
    wq__index_remove(&c->index, rec->hash, ref);
    free_record(c, ref);
}

void
wq__core_bury(struct wq__core *c, wq__ref victim)
{
    free_record(c, victim);
}

/* ---- add ---------------------------------------------------------------- */

/* A READY or DIRTY record holds on to `level` instead of its own. */
static void
move_to_level(struct wq__core *c, wq__ref ref, uint32_t level)
{
    struct wq__rec    *rec = wq__core_rec(c, ref);
    struct wq__levels *levels = &c->ready.levels;
    const uint32_t     old = rec->level;

    wq__levels_hold(levels, level);
    if (rec->flags & WQ__READY) {
        wq__ready_raise(&c->ready, ref, level);
    } else {
        levels->at[old].dirty--;
        levels->at[level].dirty++;
        rec->level = level;
    }
    wq__levels_release(levels, old);
}

wq_added
wq__core_merge(struct wq__core *c, wq__ref ref, uint32_t level)
{
    const struct wq__rec *rec = wq__core_rec(c, ref);

    c->tally.merged++;
    if (wq__core_is_higher(c, level, rec->level)) {
        move_to_level(c, ref, level);
        return WQ_ADDED_RAISED;
    }
    if (rec->flags & WQ__READY)
        wq__ready_touch(&c->ready, ref);
    return WQ_ADDED_MERGED;
}

static void
mark_dirty(struct wq__core *c, struct wq__rec *rec, uint32_t level, int64_t now)
{
    wq__rec_set(rec, WQ__DIRTY);
    wq__rec_stamp(rec, now);
    rec->level = level;
    wq__levels_hold(&c->ready.levels, level);
    c->ready.levels.at[level].dirty++;
    c->dirty++;
    c->tally.adds++;
}

/* A record that is neither READY nor HELD becomes READY. */
static wq_err
make_ready(struct wq__core *c, wq__ref ref, struct wq__rec *rec, uint32_t level,
           int64_t now)
{
    rec->level = level;
    const wq_err err = wq__ready_push(&c->ready, ref, rec);
    if (err)
        return err;
    wq__rec_stamp(rec, now);
    wq__levels_hold(&c->ready.levels, level);
    c->tally.adds++;
    return WQ_OK;
}

wq_err
wq__core_want(struct wq__core *c, wq__ref ref, uint32_t level, int64_t now,
              wq_added *what)
{
    struct wq__rec *rec = wq__core_rec(c, ref);

    if (wq__rec_is_wanted(rec)) {
        *what = wq__core_merge(c, ref, level);
        return WQ_OK;
    }
    if (rec->flags & WQ__HELD) {
        *what = WQ_ADDED_DIRTY;
        mark_dirty(c, rec, level, now);
    } else { /* if it waits, it goes on doing so */
        const wq_err err = make_ready(c, ref, rec, level, now);
        if (err)
            return err;
        *what = WQ_ADDED_NEW;
    }
    if (rec->flags & WQ__QUIET)
        wq__core_settle_quiet(c, ref, now);
    return WQ_OK;
}

static wq_err
add_absent(struct wq__core *c, wq_key key, uint32_t hash, uint32_t level,
           int64_t now)
{
    wq__ref         ref;
    struct wq__rec *rec;

    if (c->max_len && !wq__core_room(c))
        return WQ_EFULL;
    wq_err err = make_record(c, key, hash, &ref, &rec);
    if (err)
        return err;

    err = make_ready(c, ref, rec, level, now);
    if (err) {
        free_record(c, ref);
        return err;
    }
    wq__index_insert(&c->index, hash, ref);
    return WQ_OK;
}

wq_err
wq__core_admit_to(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
                  uint32_t level, wq_added *what)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);

    if (!ref) {
        *what = WQ_ADDED_NEW;
        return add_absent(c, key, hash, level, now);
    }
    if (c->respect && wq__rec_backs_off(wq__core_rec(c, ref))) {
        *what = wq__core_keep_deadline(c, ref, level);
        return WQ_OK;
    }
    return wq__core_want(c, ref, level, now, what);
}

wq_err
wq__core_admit(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
               wq_added *what)
{
    return wq__core_admit_to(c, key, hash, now, 0, what);
}

wq_err
wq__core_add(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
             wq_added *what)
{
    if (c->shutting_down)
        return WQ_ESHUTDOWN;
    return wq__core_admit_to(c, key, hash, now, 0, what);
}

/* ---- taking back -------------------------------------------------------- */

void
wq__core_unwant(struct wq__core *c, wq__ref ref)
{
    struct wq__rec *rec = wq__core_rec(c, ref);
    const uint32_t  level = rec->level;

    if (rec->flags & WQ__READY) {
        wq__ready_remove(&c->ready, ref);
    } else {
        wq__rec_clear(rec, WQ__DIRTY);
        c->ready.levels.at[level].dirty--;
        c->dirty--;
    }
    wq__levels_release(&c->ready.levels, level);
}

wq_err
wq__core_remove(struct wq__core *c, wq_key key, uint32_t hash, int64_t now)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);
    if (!ref)
        return WQ_ENOTFOUND;

    const struct wq__rec *rec = wq__core_rec(c, ref);
    const bool            waits = wq__rec_waits(rec);
    if (!wq__rec_is_wanted(rec) && !waits)
        return rec->flags & WQ__HELD ? WQ_ESTATE : WQ_ENOTFOUND;
    if (rec->flags & WQ__READY && !wq__ready_can_remove(&c->ready))
        return WQ_ENOTSUP;

    if (wq__rec_is_wanted(rec)) {
        wq__core_unwant(c, ref);
        c->tally.removed++;
    }
    if (waits)
        wq__core_end_deadline(c, ref, now);
    else if (rec->wait)
        wq__core_settle_quiet(c, ref, now);
    wq__core_forget_if_bare(c, ref);
    return WQ_OK;
}

wq_err
wq__core_cancel(struct wq__core *c, wq_key key, uint32_t hash, int64_t now)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);
    if (!ref || !wq__rec_waits(wq__core_rec(c, ref)))
        return WQ_ENOTFOUND;

    wq__core_end_deadline(c, ref, now);
    wq__core_forget_if_bare(c, ref);
    return WQ_OK;
}

/* ---- get ---------------------------------------------------------------- */

static struct wq__loan *
loan_at(const struct wq__core *c, wq__ref slot)
{
    return wq__slab_at(&c->loans, slot);
}

/* The newest loan is the last of the list of ages. */
static void
note_age(struct wq__core *c, struct wq__loan *loan, int64_t now)
{
    loan->got = now;
    loan->newer = 0;
    loan->older = c->newest;
    if (c->newest)
        loan_at(c, c->newest)->newer = loan->item.slot;
    else
        c->oldest = loan->item.slot;
    c->newest = loan->item.slot;
    c->got_sum += (uint64_t)now;
}

static void
forget_age(struct wq__core *c, const struct wq__loan *loan)
{
    *(loan->older ? &loan_at(c, loan->older)->newer : &c->oldest) = loan->newer;
    *(loan->newer ? &loan_at(c, loan->newer)->older : &c->newest) = loan->older;
    c->got_sum -= (uint64_t)loan->got;
}

/* A key that is throttled is handed out: from now on it is left alone. */
static void
begin_quiet(struct wq__core *c, wq__ref ref, int64_t now)
{
    struct wq__pace *pace = wq__core_pace(c, ref);

    if (!pace || !pace->quiet)
        return;
    pace->until = wq__span_add(now, pace->quiet);
    if (wq__core_rec(c, ref)->flags & WQ__QUIET)
        wq__heap_change(&c->waiting, ref, pace->until);
}

wq_err
wq__core_get(struct wq__core *c, int64_t now, wq_item **out)
{
    wq__ref         slot, ref;
    struct wq__rec *rec;

    if (c->ready.len == 0)
        return WQ_ENOTFOUND;
    struct wq__loan *loan = wq__slab_alloc(&c->loans, sizeof *loan, &slot);
    if (!loan)
        return WQ_ENOMEM;
    const wq_err err = wq__ready_pop(&c->ready, &ref, &rec);
    if (err) {
        loan->rec = 0;
        wq__slab_free(&c->loans, slot);
        return err;
    }

    assert(!(rec->flags & WQ__HELD)); /* L1 */
    wq__rec_set(rec, WQ__HELD);
    rec->next = slot;
    c->held++;
    c->tally.gets++;
    loan->item = (wq_item){
        .key = wq__rec_key(rec),
        .priority = wq__levels_priority(&c->ready.levels, rec->level),
        .slot = slot,
        .fence = ++c->fence,
    };
    loan->rec = ref;
    wq__levels_release(&c->ready.levels, rec->level);
    if (rec->wait)
        begin_quiet(c, ref, now);
    if (c->ages) {
        loan->waited = wq__span_between(wq__rec_since(rec), now);
        note_age(c, loan, now);
    }
    *out = &loan->item;
    return WQ_OK;
}

/* ---- done --------------------------------------------------------------- */

/* A DIRTY key whose backoff is respected is served when that ends. */
static bool
is_put_off(const struct wq__core *c, const struct wq__rec *rec)
{
    return c->respect && rec->flags & WQ__BACKOFF;
}

/* What a DIRTY record becomes when its loan ends. Only a wq_order fails. */
static wq_err
come_back(struct wq__core *c, wq__ref ref)
{
    struct wq__rec *rec = wq__core_rec(c, ref);

    if (is_put_off(c, rec)) {
        (void)wq__core_keep_deadline(c, ref, rec->level);
        wq__core_unwant(c, ref);
        c->tally.displaced++;
        return WQ_OK;
    }
    const wq_err err = wq__ready_push(&c->ready, ref, rec);
    if (err)
        return err;
    wq__rec_clear(rec, WQ__DIRTY);
    c->ready.levels.at[rec->level].dirty--;
    c->dirty--;
    return WQ_OK;
}

/* End the loan of a HELD record: READY again if it is DIRTY (and no backoff is
 * to be respected), else no facet of the two is left. */
static wq_err
take_back(struct wq__core *c, wq__ref ref, int64_t now, int64_t *work)
{
    struct wq__rec *rec = wq__core_rec(c, ref);
    const wq__ref   slot = rec->next; /* a push reuses the field */

    if (rec->flags & WQ__DIRTY) {
        const wq_err err = come_back(c, ref);
        if (err)
            return err;
    }
    wq__rec_clear(rec, WQ__HELD);
    c->held--;
    c->tally.dones++;

    struct wq__loan *loan = loan_at(c, slot);
    if (c->ages) {
        *work = wq__span_between(loan->got, now);
        forget_age(c, loan);
    }
    loan->rec = 0;
    wq__slab_free(&c->loans, slot);
    wq__core_forget_if_bare(c, ref);
    return WQ_OK;
}

/* The loan that `item` is, or NULL. The item may be anyone's: nothing but its
 * own fields is read before it is known to be one of our loans, and on loan. If
 * it was one, its memory is still there: the slab of loans keeps its blocks. */
static struct wq__loan *
find_loan(const struct wq__core *c, const wq_item *item)
{
    struct wq__loan *loan = wq__slab_probe(&c->loans, item->slot);
    return loan && &loan->item == item && loan->rec ? loan : NULL;
}

wq_err
wq__core_done(struct wq__core *c, const wq_item *item, int64_t now,
              int64_t *work)
{
    const struct wq__loan *loan = find_loan(c, item);
    return loan ? take_back(c, loan->rec, now, work) : WQ_ESTATE;
}

wq_err
wq__core_done_key(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
                  int64_t *work)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);
    if (!ref || !(wq__core_rec(c, ref)->flags & WQ__HELD))
        return WQ_ESTATE;
    return take_back(c, ref, now, work);
}

bool
wq__core_are_lent(struct wq__core *c, wq_item *const *items, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) { /* a second time, it is marked already */
        const struct wq__loan *loan = find_loan(c, items[i]);
        if (!loan || wq__core_rec(c, loan->rec)->flags & WQ__PICKED)
            break;
        wq__rec_set(wq__core_rec(c, loan->rec), WQ__PICKED);
    }
    for (size_t k = 0; k < i; k++)
        wq__rec_clear(wq__core_rec(c, find_loan(c, items[k])->rec), WQ__PICKED);
    return i == n;
}

/* ---- life --------------------------------------------------------------- */

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
    wq__slab_init(&c->paces, &c->mem, false);
    wq__index_init(&c->index, &c->mem, &c->recs);
    wq__ready_init(&c->ready, &c->recs, &c->index, &c->secret, order, &c->mem);
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
    wq__slab_fini(&c->paces);
    wq__slab_fini(&c->loans);
    wq__slab_fini(&c->recs);
}
