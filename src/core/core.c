/* SPDX-License-Identifier: MIT */
/* core.c: the life of a key; see core.h for the picture. */
#include "core/core.h"

#include <assert.h>
#include <string.h>

#include "core/inside.h"
#include "core/mem.h"
#include "core/span.h"

/* What a new record is marked with, and whether a done has to look at more than
 * its record: after every change of the things they depend on. */
static void
open_turn(struct wq__core *c)
{
    const unsigned turn = wq__flush_mark(&c->flush);

    c->fresh_flags = (uint16_t)(c->prefix | turn * (WQ__TURN / 3));
    c->looks_at_done = c->ages || c->ready.special & WQ__GROUPED ||
                       wq__flush_is_under_way(&c->flush);
}

/* ---- records ------------------------------------------------------------ */

static bool
is_inline(size_t len)
{
    return len <= WQ__KEY_INLINE;
}

static wq_err
copy_long_key(struct wq__core *c, struct wq__rec *rec, wq_key key)
{
    unsigned char *copy = wq__mem_alloc(&c->mem, key.len + 1);
    if (!copy)
        return WQ_ENOMEM;

    memcpy(copy, key.data, key.len);
    copy[key.len] = '\0';
    memcpy(wq__rec_key_at(rec), &copy, sizeof copy);
    return WQ_OK;
}

/* Store the bytes of `key` in or beside the new record `rec`. */
static inline wq_err
copy_key(struct wq__core *c, struct wq__rec *rec, wq_key key)
{
    if (!is_inline(key.len))
        return copy_long_key(c, rec, key);
    unsigned char *at = wq__rec_key_at(rec);
    memcpy(at, key.data, key.len);
    at[key.len] = '\0';
    return WQ_OK;
}

static void
free_long_key(struct wq__core *c, const struct wq__rec *rec)
{
    wq__mem_free(&c->mem, (void *)wq__rec_bytes(rec), wq__rec_len(rec) + 1);
}

static inline void
free_record(struct wq__core *c, wq__ref ref, struct wq__rec *rec)
{
    if (wq__rec_is_long(rec))
        free_long_key(c, rec);
    rec->flags = 0; /* wq__core_walk() looks at freed records, too */
    rec->wait = 0;
    wq__slab_free(&c->recs, ref);
}

/* A record without any state, with room reserved for it at *place of the
 * index, which was where its key is not found. */
__attribute__((always_inline)) static inline wq_err
make_record(struct wq__core *c, wq_key key, uint32_t hash, size_t *place,
            wq__ref *out, struct wq__rec **out_rec)
{
    wq_err err = wq__index_reserve(&c->index, hash, place);
    if (err)
        return err;

    const size_t size = offsetof(struct wq__rec, bytes) + c->prefix +
                        (is_inline(key.len) ? key.len + 1 : sizeof(void *));
    wq__ref         ref;
    struct wq__rec *rec = wq__slab_alloc(&c->recs, size, &ref);
    if (!rec)
        return WQ_ENOMEM;

    rec->hash = hash;
    rec->wait = 0;
    rec->level = 0;
    rec->len_less_1 = (uint16_t)(key.len - 1);
    rec->flags = c->fresh_flags;
    err = copy_key(c, rec, key);
    if (err) {
        wq__slab_free(&c->recs, ref);
        return err;
    }
    *out = ref;
    *out_rec = rec;
    return WQ_OK;
}

/* What only some queues count about a record that comes to be known, and about
 * one that is known no longer. */
static wq_err
register_record(struct wq__core *c, const struct wq__pick *pick,
                struct wq__rec *rec)
{
    if (c->ready.special & WQ__GROUPED) {
        const wq_err err =
            wq__groups_join(&c->ready.groups, pick->group, pick->group_hash,
                            &wq__rec_member(rec)->group);
        if (err)
            return err;
    }
    if (c->max_bytes)
        c->bytes += wq__rec_len(rec);
    return WQ_OK;
}

static void
deregister_record(struct wq__core *c, struct wq__rec *rec)
{
    if (c->ready.special & WQ__GROUPED)
        wq__groups_part(&c->ready.groups, rec);
    if (c->max_bytes)
        c->bytes -= wq__rec_len(rec);
}

wq_err
wq__core_find_or_make(struct wq__core *c, wq_key key, struct wq__pick *pick)
{
    struct wq__rec *rec;
    size_t          place;

    pick->ref = wq__index_seek(&c->index, key, pick->hash, &place);
    pick->made = !pick->ref;
    if (pick->ref)
        return WQ_OK;
    wq_err err = make_record(c, key, pick->hash, &place, &pick->ref, &rec);
    if (err)
        return err;
    err = register_record(c, pick, rec);
    if (err) {
        free_record(c, pick->ref, rec);
        return err;
    }
    wq__index_insert(&c->index, pick->hash, pick->ref, place);
    return WQ_OK;
}

/* A record that is in no list leaves the index, and is not freed. */
void
wq__core_unlist(struct wq__core *c, wq__ref ref)
{
    struct wq__rec *rec = wq__core_rec(c, ref);

    wq__index_remove(&c->index, rec->hash, ref);
    deregister_record(c, rec);
}

static inline void
forget_if_bare(struct wq__core *c, wq__ref ref, struct wq__rec *rec)
{
    if (rec->flags & (WQ__READY | WQ__HELD) || rec->wait)
        return;
    wq__index_remove(&c->index, rec->hash, ref);
    if (c->ready.special)
        deregister_record(c, rec);
    free_record(c, ref, rec);
}

void
wq__core_forget_if_bare(struct wq__core *c, wq__ref ref)
{
    forget_if_bare(c, ref, wq__core_rec(c, ref));
}

wq_key
wq__core_victim_key(const struct wq__core *c, wq__ref victim)
{
    return wq__rec_key(wq__core_rec(c, victim));
}

wq__ref
wq__core_bury(struct wq__core *c, wq__ref victim)
{
    struct wq__rec *rec = wq__core_rec(c, victim);
    const wq__ref   next = rec->next;

    free_record(c, victim, rec);
    return next;
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

static inline wq_added
merge(struct wq__core *c, wq__ref ref, const struct wq__rec *rec,
      uint32_t level)
{
    c->tally.merged++;
    if (wq__core_is_higher(c, level, rec->level)) {
        move_to_level(c, ref, level);
        return WQ_ADDED_RAISED;
    }
    if (c->ready.special & WQ__PLUG_IN && rec->flags & WQ__READY)
        wq__ready_touch(&c->ready, ref);
    return WQ_ADDED_MERGED;
}

wq_added
wq__core_merge(struct wq__core *c, wq__ref ref, uint32_t level)
{
    return merge(c, ref, wq__core_rec(c, ref), level);
}

static void
mark_dirty(struct wq__core *c, struct wq__rec *rec, uint32_t level, int64_t now)
{
    wq__rec_set(rec, WQ__DIRTY);
    wq__rec_set_next_turn(rec, wq__flush_mark(&c->flush));
    if (c->ages)
        wq__rec_stamp(rec, now);
    rec->level = level;
    wq__levels_hold(&c->ready.levels, level);
    c->ready.levels.at[level].dirty++;
    c->dirty++;
    c->tally.adds++;
}

/* A record has become READY. */
static void
begin_age(struct wq__core *c, struct wq__rec *rec, int64_t now)
{
    if (c->ready.special & WQ__AGEING)
        wq__rec_age(rec)->ready = now;
}

/* A record that is neither READY nor HELD becomes READY. */
static inline wq_err
make_ready(struct wq__core *c, wq__ref ref, struct wq__rec *rec, uint32_t level,
           int64_t now)
{
    rec->level = level;
    const wq_err err = wq__ready_push(&c->ready, ref, rec);
    if (err)
        return err;
    if (c->ages) {
        wq__rec_stamp(rec, now);
        begin_age(c, rec, now);
    }
    wq__levels_hold(&c->ready.levels, level);
    c->tally.adds++;
    return WQ_OK;
}

static inline wq_err
want(struct wq__core *c, wq__ref ref, struct wq__rec *rec, uint32_t level,
     int64_t now, wq_added *what)
{
    if (wq__rec_is_wanted(rec)) {
        *what = merge(c, ref, rec, level);
        return WQ_OK;
    }
    if (rec->flags & WQ__HELD) {
        *what = WQ_ADDED_DIRTY;
        mark_dirty(c, rec, level, now);
    } else { /* if it waits, it goes on doing so */
        wq__rec_set_turn(rec, wq__flush_mark(&c->flush));
        const wq_err err = make_ready(c, ref, rec, level, now);
        if (err)
            return err;
        *what = WQ_ADDED_NEW;
    }
    return WQ_OK;
}

wq_err
wq__core_want(struct wq__core *c, wq__ref ref, uint32_t level, int64_t now,
              wq_added *what)
{
    return want(c, ref, wq__core_rec(c, ref), level, now, what);
}

/* A key that the index does not find belongs at `place`. */
__attribute__((always_inline)) static inline wq_err
add_absent(struct wq__core *c, wq_key key, uint32_t hash, size_t place,
           uint32_t level, int64_t now)
{
    wq__ref         ref;
    struct wq__rec *rec;

    if (c->max_len && c->index.len >= c->max_len)
        return WQ_EFULL;
    wq_err err = make_record(c, key, hash, &place, &ref, &rec);
    if (err)
        return err;

    err = make_ready(c, ref, rec, level, now);
    if (err) {
        free_record(c, ref, rec);
        return err;
    }
    wq__index_insert(&c->index, hash, ref, place);
    return WQ_OK;
}

static inline wq_err
admit(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
      uint32_t level, wq_added *what)
{
    size_t        place;
    const wq__ref ref = wq__index_seek(&c->index, key, hash, &place);

    if (!ref) {
        *what = WQ_ADDED_NEW;
        return add_absent(c, key, hash, place, level, now);
    }
    struct wq__rec *rec = wq__core_rec(c, ref);
    if (c->respect && wq__rec_backs_off(rec)) {
        c->tally.merged++;
        wq__rec_set(rec, WQ__EXPECTED);
        *what = wq__core_keep_deadline(c, ref, level);
        return WQ_OK;
    }
    return want(c, ref, rec, level, now, what);
}

wq_err
wq__core_admit_to(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
                  uint32_t level, wq_added *what)
{
    assert(!(c->ready.special & WQ__GROUPED) && !c->max_bytes);
    return admit(c, key, hash, now, level, what);
}

wq_err
wq__core_admit(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
               wq_added *what)
{
    return admit(c, key, hash, now, 0, what);
}

wq_err
wq__core_add(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
             wq_added *what)
{
    if (c->shutting_down)
        return WQ_ESHUTDOWN;
    return admit(c, key, hash, now, 0, what);
}

/* ---- flushes ------------------------------------------------------------ */

/* A run with this mark is not owed any more. */
static void
end_run(struct wq__core *c, unsigned mark)
{
    if (!wq__flush_is_under_way(&c->flush))
        return;
    wq__flush_end_run(&c->flush, mark, wq__core_owed(c));
    open_turn(c);
}

uint64_t
wq__core_begin_flush(struct wq__core *c)
{
    const uint64_t turn = wq__flush_begin(&c->flush, wq__core_owed(c));

    open_turn(c);
    return turn;
}

struct wq__errand
wq__core_errand(const struct wq__core *c, wq_key key, uint32_t hash)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);

    return (struct wq__errand){
        .fence = c->fence,
        .wanted = ref && wq__rec_is_wanted(wq__core_rec(c, ref)),
    };
}

/* The run that was wanted is the first one that is handed out after the moment of
 * the errand, unless it is taken back before: what is asked then is a later
 * request. */
bool
wq__core_is_served(const struct wq__core *c, wq_key key, uint32_t hash,
                   struct wq__errand *errand)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);
    if (!ref)
        return true;

    const struct wq__rec *rec = wq__core_rec(c, ref);
    if (!(rec->flags & WQ__HELD))
        return !(errand->wanted && rec->flags & WQ__READY);

    const uint64_t fence = wq__loans_at(&c->loans, rec->next)->item.fence;
    if (fence <= errand->fence) {
        errand->wanted = errand->wanted && rec->flags & WQ__DIRTY;
        return false;
    }
    if (!errand->wanted)
        return true;
    errand->fence = fence;
    errand->wanted = false;
    return false;
}

/* ---- taking back -------------------------------------------------------- */

void
wq__core_unwant(struct wq__core *c, wq__ref ref)
{
    struct wq__rec *rec = wq__core_rec(c, ref);
    const uint32_t  level = rec->level;
    const bool      ready = rec->flags & WQ__READY;

    if (ready) {
        wq__ready_remove(&c->ready, ref);
    } else {
        wq__rec_clear(rec, WQ__DIRTY);
        c->ready.levels.at[level].dirty--;
        c->dirty--;
    }
    wq__levels_release(&c->ready.levels, level);
    if (rec->wait && wq__core_pace(c, ref))
        wq__core_pace(c, ref)->next_span = 0;
    end_run(c, ready ? wq__rec_turn(rec) : wq__rec_next_turn(rec));
}

/* Nothing is asked for it any more. READY records can be taken out. */
static void
take_back_all(struct wq__core *c, wq__ref ref, int64_t now)
{
    const struct wq__rec *rec = wq__core_rec(c, ref);

    if (wq__rec_is_wanted(rec)) {
        wq__core_unwant(c, ref);
        c->tally.removed++;
    }
    if (wq__rec_waits(rec))
        wq__core_end_deadline(c, ref, now);
    else if (rec->wait)
        wq__core_settle_quiet(c, ref, now);
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

    take_back_all(c, ref, now);
    wq__core_forget_if_bare(c, ref);
    return WQ_OK;
}

wq_err
wq__core_remove_at_done(struct wq__core *c, wq_key key, uint32_t hash, bool on)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);
    if (!ref || !(wq__core_rec(c, ref)->flags & WQ__HELD))
        return WQ_ENOTFOUND;

    if (on)
        wq__rec_set(wq__core_rec(c, ref), WQ__REMOVING);
    else
        wq__rec_clear(wq__core_rec(c, ref), WQ__REMOVING);
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

/* A run that serves a throttled add is handed out: from now on the key is left
 * alone. */
static void
begin_quiet(struct wq__core *c, wq__ref ref, int64_t now)
{
    struct wq__pace *pace = wq__core_pace(c, ref);

    if (!pace || !pace->next_span)
        return;
    pace->until = wq__span_add(now, pace->next_span);
    pace->next_span = 0;
    if (wq__core_rec(c, ref)->flags & WQ__QUIET)
        wq__heap_change(&c->waiting, ref, pace->until);
}

/* Who comes after the next one in line, behind `next`, will be looked up in the
 * index when it is done: time enough to have its slot at hand. */
__attribute__((always_inline)) static inline void
foresee(const struct wq__core *c, wq__ref next)
{
    if (!next || !wq__index_is_far(&c->index))
        return;
    const wq__ref after = wq__core_rec(c, next)->next;
    if (after)
        wq__index_foresee(&c->index, wq__core_rec(c, after)->hash);
}

wq_err
wq__core_get(struct wq__core *c, int64_t now, wq_item **out)
{
    wq__ref         ref;
    struct wq__rec *rec;

    if (c->ready.len == 0)
        return WQ_ENOTFOUND;
    wq_err err = wq__loans_reserve(&c->loans);
    if (err)
        return err;
    err = wq__ready_pop(&c->ready, now, &ref, &rec);
    if (err)
        return err;

    assert(!(rec->flags & WQ__HELD)); /* L1 */
    struct wq__loan *loan = wq__loans_begin(&c->loans, ref);
    if (!c->ready.special)
        foresee(c, rec->next);
    else if (c->ready.special & WQ__GROUPED)
        wq__groups_hold(&c->ready.groups, rec);
    wq__rec_set(rec, WQ__HELD);
    rec->next = loan->item.slot;
    c->tally.gets++;
    loan->item.key = wq__rec_key(rec);
    loan->item.priority = wq__levels_priority(&c->ready.levels, rec->level);
    loan->item.fence = ++c->fence;
    wq__levels_release(&c->ready.levels, rec->level);
    if (rec->wait)
        begin_quiet(c, ref, now);
    if (c->ages) {
        loan->waited = wq__span_between(wq__rec_since(rec), now);
        wq__loans_note_age(&c->loans, loan, now);
    }
    *out = &loan->item;
    return WQ_OK;
}

/* ---- done --------------------------------------------------------------- */

/* What a DIRTY record becomes when its loan ends. Only a wq_order fails. */
static wq_err
come_back(struct wq__core *c, wq__ref ref, int64_t now)
{
    struct wq__rec *rec = wq__core_rec(c, ref);

    if (wq__core_respects_backoff(c, rec)) { /* served when that ends */
        (void)wq__core_keep_deadline(c, ref, rec->level);
        wq__core_defer_to_deadline(c, ref);
        wq__core_unwant(c, ref);
        wq__rec_set(rec, WQ__EXPECTED);
        c->tally.merged++;
        c->tally.deferred++;
        return WQ_OK;
    }
    const wq_err err = wq__ready_push(&c->ready, ref, rec);
    if (err)
        return err;
    begin_age(c, rec, now);
    wq__rec_set_turn(rec, wq__rec_next_turn(rec));
    wq__rec_clear(rec, WQ__DIRTY);
    c->ready.levels.at[rec->level].dirty--;
    c->dirty--;
    return WQ_OK;
}

/* The end of a loan, in queues that do more than end it. `turn`: its run's. */
static void
end_loan(struct wq__core *c, struct wq__loan *loan, unsigned turn, int64_t now,
         int64_t *work)
{
    struct wq__rec *rec = wq__core_rec(c, loan->rec);

    if (c->ages) {
        *work = wq__span_between(loan->got, now);
        wq__loans_forget_age(&c->loans, loan);
    }
    wq__loans_end(&c->loans, loan);
    if (c->ready.special & WQ__GROUPED)
        wq__groups_release(&c->ready.groups, rec);
    end_run(c, turn);
}

/* What was asked for a HELD record since it was handed out: READY again if it is
 * DIRTY (and no backoff is to be respected); or nothing, if it is to be removed.
 * Only a wq_order fails. */
static wq_err
settle_requests(struct wq__core *c, wq__ref ref, int64_t now)
{
    struct wq__rec *rec = wq__core_rec(c, ref);

    if (rec->flags & WQ__REMOVING) {
        wq__rec_clear(rec, WQ__REMOVING);
        take_back_all(c, ref, now);
        return WQ_OK;
    }
    return come_back(c, ref, now);
}

/* End the loan of a HELD record. */
static inline wq_err
take_back(struct wq__core *c, struct wq__loan *loan, int64_t now, int64_t *work)
{
    const wq__ref   ref = loan->rec;
    struct wq__rec *rec = wq__core_rec(c, ref);
    const unsigned  turn = wq__rec_turn(rec);

    if (rec->flags & (WQ__DIRTY | WQ__REMOVING)) {
        const wq_err err = settle_requests(c, ref, now);
        if (err)
            return err;
    }
    wq__rec_clear(rec, WQ__HELD);
    c->tally.dones++;
    if (c->looks_at_done)
        end_loan(c, loan, turn, now, work);
    else
        wq__loans_end(&c->loans, loan);
    forget_if_bare(c, ref, rec);
    return WQ_OK;
}

wq_err
wq__core_done(struct wq__core *c, const wq_item *item, int64_t now,
              int64_t *work)
{
    struct wq__loan *loan = wq__loans_find(&c->loans, item);
    return loan ? take_back(c, loan, now, work) : WQ_ESTATE;
}

wq_err
wq__core_done_key(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
                  int64_t *work)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);
    if (!ref || !(wq__core_rec(c, ref)->flags & WQ__HELD))
        return WQ_ESTATE;
    return take_back(c, wq__loans_at(&c->loans, wq__core_rec(c, ref)->next),
                     now, work);
}

bool
wq__core_are_lent(struct wq__core *c, wq_item *const *items, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) { /* a second time, it is marked already */
        const struct wq__loan *loan = wq__loans_find(&c->loans, items[i]);
        if (!loan || wq__core_rec(c, loan->rec)->flags & WQ__PICKED)
            break;
        wq__rec_set(wq__core_rec(c, loan->rec), WQ__PICKED);
    }
    for (size_t k = 0; k < i; k++)
        wq__rec_clear(wq__core_rec(c, wq__loans_find(&c->loans, items[k])->rec),
                      WQ__PICKED);
    return i == n;
}

/* ---- life --------------------------------------------------------------- */

void
wq__core_init(struct wq__core *c, struct wq__hash_key secret,
              const wq_order *order, const wq_allocator *mem)
{
    *c = (struct wq__core){
        .hasher = wq__hasher_of(secret),
        .mem = mem ? *mem : wq__mem_default,
    };
    c->flush.first = c->flush.turn = 1;
    open_turn(c);
    wq__slab_init(&c->recs, &c->mem);
    wq__loans_init(&c->loans, &c->mem);
    wq__slab_init(&c->paces, &c->mem);
    wq__index_init(&c->index, &c->mem, &c->recs);
    wq__ready_init(&c->ready, &c->recs, &c->index, &c->hasher, order, &c->mem);
    wq__heap_init(&c->waiting, &c->mem, &c->recs);
}

void
wq__core_fini(struct wq__core *c)
{
    wq__ready_fini(&c->ready); /* may still look at keys: before the records */
    for (size_t i = 0; i < c->index.cap; i++)
        if (c->index.slots[i].ref)
            free_record(c, c->index.slots[i].ref,
                        wq__core_rec(c, c->index.slots[i].ref));
    wq__heap_fini(&c->waiting);
    wq__index_fini(&c->index);
    wq__slab_fini(&c->paces);
    wq__loans_fini(&c->loans);
    wq__slab_fini(&c->recs);
}

/* ---- what some queues have ---------------------------------------------- */

static void
add_part(struct wq__core *c, enum wq__part part)
{
    assert(c->recs.live == 0);
    c->prefix = (uint16_t)(c->prefix + part);
    open_turn(c);
}

void
wq__core_keep_ages(struct wq__core *c)
{
    if (c->ages)
        return;
    c->ages = true;
    add_part(c, WQ__PART_SINCE);
}

void
wq__core_have_groups(struct wq__core *c, size_t max_held)
{
    assert(!(c->ready.special & (WQ__PLUG_IN | WQ__GROUPED)));
    c->ready.special |= WQ__GROUPED;
    c->ready.groups.max_held = max_held;
    add_part(c, WQ__PART_GROUP);
}

void
wq__core_serve_after(struct wq__core *c, int64_t max_ready_ns)
{
    assert(!(c->ready.special & (WQ__PLUG_IN | WQ__AGEING)));
    assert(!c->ready.groups.max_held);
    wq__core_keep_ages(c);
    c->ready.special |= WQ__AGEING;
    c->ready.max_ready_ns = max_ready_ns;
    add_part(c, WQ__PART_AGE);
}

void
wq__core_bound_bytes(struct wq__core *c, size_t max_bytes)
{
    c->max_bytes = max_bytes;
    c->ready.special |= WQ__SIZED;
}

void
wq__core_pause(struct wq__core *c, bool paused)
{
    if (paused)
        c->ready.special |= WQ__PAUSED;
    else
        c->ready.special &= ~(unsigned)WQ__PAUSED;
}
