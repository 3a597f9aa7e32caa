/* SPDX-License-Identifier: MIT */
/* core.c: the life of a key; see core.h for the picture. */
#include "core/core.h"

#include <assert.h>
#include <string.h>

#include "core/inside.h"
#include "core/mem.h"
#include "core/span.h"

/* Compute `fresh_flags` and `looks_at_done` anew. To be called after every
 * change of what they depend on. */
static void
open_epoch(struct wq__core *c)
{
    const unsigned epoch = wq__flush_mark(&c->flush);

    c->fresh_flags = (uint16_t)(c->prefix | epoch * (WQ__EPOCH / 3));
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

/* Store the bytes of `key` in the new record `rec`, or outside it. */
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
    rec->flags = 0; /* wq__core_walk() reads freed records, too */
    rec->wait = 0;
    wq__slab_free(&c->recs, ref);
}

/* Create a record without any state, and reserve *place of the index for it.
 * *place is where wq__index_seek() ended without finding the key. */
__attribute__((always_inline)) static inline wq_err
make_record(struct wq__core *c, wq_key key, uint32_t hash,
            struct wq__place *place, wq__ref *out, struct wq__rec **out_rec)
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

/* Count a new record, and a record that goes, where the queue has groups or a
 * bound in bytes. */
static wq_err
register_record(struct wq__core *c, const struct wq__prepared *prepared,
                struct wq__rec *rec)
{
    if (c->ready.special & WQ__GROUPED) {
        const wq_err err =
            wq__groups_join(&c->ready.groups, prepared->group,
                            prepared->group_hash, &wq__rec_member(rec)->group);
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
wq__core_find_or_make(struct wq__core *c, wq_key key,
                      struct wq__prepared *prepared)
{
    struct wq__rec  *rec;
    struct wq__place place;

    prepared->ref = wq__index_seek(&c->index, key, prepared->hash, &place);
    prepared->made = !prepared->ref;
    if (prepared->ref)
        return WQ_OK;
    wq_err err =
        make_record(c, key, prepared->hash, &place, &prepared->ref, &rec);
    if (err)
        return err;
    err = register_record(c, prepared, rec);
    if (err) {
        free_record(c, prepared->ref, rec);
        return err;
    }
    wq__index_insert(&c->index, prepared->hash, prepared->ref, place);
    return WQ_OK;
}

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
wq__core_free_victim(struct wq__core *c, wq__ref victim)
{
    struct wq__rec *rec = wq__core_rec(c, victim);
    const wq__ref   next = rec->next;

    free_record(c, victim, rec);
    return next;
}

/* ---- add ---------------------------------------------------------------- */

/* A READY or DIRTY record moves to `level` from its own level. */
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
    wq__rec_set_next_epoch(rec, wq__flush_mark(&c->flush));
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
request_run(struct wq__core *c, wq__ref ref, struct wq__rec *rec,
            uint32_t level, int64_t now, wq_added *what)
{
    if (wq__rec_is_pending(rec)) {
        *what = merge(c, ref, rec, level);
        return WQ_OK;
    }
    if (rec->flags & WQ__HELD) {
        *what = WQ_ADDED_DIRTY;
        mark_dirty(c, rec, level, now);
    } else { /* a deadline stays */
        wq__rec_set_epoch(rec, wq__flush_mark(&c->flush));
        const wq_err err = make_ready(c, ref, rec, level, now);
        if (err)
            return err;
        *what = WQ_ADDED_NEW;
    }
    return WQ_OK;
}

wq_err
wq__core_request_run(struct wq__core *c, wq__ref ref, uint32_t level,
                     int64_t now, wq_added *what)
{
    return request_run(c, ref, wq__core_rec(c, ref), level, now, what);
}

/* Add a key that is not in the index; `place` is where it belongs. */
__attribute__((always_inline)) static inline wq_err
add_absent(struct wq__core *c, wq_key key, uint32_t hash,
           struct wq__place place, uint32_t level, int64_t now)
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

/* Add a key that has a record. */
static inline wq_err
admit_known(struct wq__core *c, wq__ref ref, int64_t now, uint32_t level,
            wq_added *what)
{
    struct wq__rec *rec = wq__core_rec(c, ref);

    if (c->respect && wq__rec_backs_off(rec)) {
        c->tally.merged++;
        wq__rec_set(rec, WQ__COVERS_ADD);
        *what = wq__core_keep_deadline(c, ref, level);
        return WQ_OK;
    }
    return request_run(c, ref, rec, level, now, what);
}

static inline wq_err
admit(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
      uint32_t level, wq_added *what)
{
    struct wq__place place;
    const wq__ref    ref = wq__index_seek(&c->index, key, hash, &place);

    if (!ref) {
        *what = WQ_ADDED_NEW;
        return add_absent(c, key, hash, place, level, now);
    }
    return admit_known(c, ref, now, level, what);
}

wq_err
wq__core_admit_at_level(struct wq__core *c, wq_key key, uint32_t hash,
                        int64_t now, uint32_t level, wq_added *what)
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

/* Find the record of each key, or create one without any state. */
static wq_err
prepare_many(struct wq__core *c, const wq_key *keys, struct wq__plain_add *adds,
             size_t n)
{
    wq_err err = WQ_OK;
    size_t i;

    for (i = 0; i < n; i++) {
        struct wq__plain_add *a = &adds[i];
        struct wq__place      place;
        struct wq__rec       *rec;

        if (i + WQ__AHEAD < n)
            wq__index_prefetch(&c->index, adds[i + WQ__AHEAD].hash);
        a->ref = wq__index_seek(&c->index, keys[i], a->hash, &place);
        a->made = !a->ref;
        if (!a->made)
            continue;
        err = make_record(c, keys[i], a->hash, &place, &a->ref, &rec);
        if (err)
            break;
        wq__index_insert(&c->index, a->hash, a->ref, place);
    }
    while (err && i-- > 0)
        if (adds[i].made)
            wq__core_forget_if_bare(c, adds[i].ref);
    return err;
}

wq_err
wq__core_add_many(struct wq__core *c, const wq_key *keys,
                  struct wq__plain_add *adds, size_t n, int64_t now,
                  int priority, wq_added *results)
{
    uint32_t level;
    wq_added what;

    assert(!(c->ready.special & (WQ__PLUG_IN | WQ__GROUPED)) && !c->max_len &&
           !c->max_bytes);
    if (c->shutting_down)
        return WQ_ESHUTDOWN;
    wq_err err = wq__levels_find(&c->ready.levels, priority, &level);
    if (err)
        return err;
    err = prepare_many(c, keys, adds, n);
    for (size_t i = 0; !err && i < n; i++) /* only a wq_order fails */
        err = admit_known(c, adds[i].ref, now, level,
                          results ? &results[i] : &what);
    wq__levels_release(&c->ready.levels, level);
    return err;
}

/* ---- flushes ------------------------------------------------------------ */

/* A run with this mark has ended, or was withdrawn. */
static void
end_run(struct wq__core *c, unsigned mark)
{
    if (!wq__flush_is_under_way(&c->flush))
        return;
    wq__flush_end_run(&c->flush, mark, wq__core_unfinished_runs(c));
    open_epoch(c);
}

uint64_t
wq__core_begin_flush(struct wq__core *c)
{
    const uint64_t epoch =
        wq__flush_begin(&c->flush, wq__core_unfinished_runs(c));

    open_epoch(c);
    return epoch;
}

struct wq__key_flush
wq__core_begin_key_flush(const struct wq__core *c, wq_key key, uint32_t hash)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);

    return (struct wq__key_flush){
        .fence = c->fence,
        .pending = ref && wq__rec_is_pending(wq__core_rec(c, ref)),
    };
}

/* The pending run of the flush is the first run that is handed out after the
 * flush began, unless it is withdrawn before: a run that is requested after
 * that is a later one. */
bool
wq__core_has_flushed_key(const struct wq__core *c, wq_key key, uint32_t hash,
                         struct wq__key_flush *flush)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);
    if (!ref)
        return true;

    const struct wq__rec *rec = wq__core_rec(c, ref);
    if (!(rec->flags & WQ__HELD))
        return !(flush->pending && rec->flags & WQ__READY);

    const uint64_t fence = wq__loans_at(&c->loans, rec->next)->item.fence;
    if (fence <= flush->fence) {
        flush->pending = flush->pending && rec->flags & WQ__DIRTY;
        return false;
    }
    if (!flush->pending)
        return true;
    flush->fence = fence;
    flush->pending = false;
    return false;
}

/* ---- withdrawing -------------------------------------------------------- */

void
wq__core_withdraw_run(struct wq__core *c, wq__ref ref)
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
    if (rec->wait && wq__core_throttle_state(c, ref))
        wq__core_throttle_state(c, ref)->next_cooldown = 0;
    end_run(c, ready ? wq__rec_epoch(rec) : wq__rec_next_epoch(rec));
}

/* Withdraw all requests. The queue's order, if any, can remove READY
 * records. */
static void
withdraw_all(struct wq__core *c, wq__ref ref, int64_t now)
{
    const struct wq__rec *rec = wq__core_rec(c, ref);

    if (wq__rec_is_pending(rec)) {
        wq__core_withdraw_run(c, ref);
        c->tally.removed++;
    }
    if (wq__rec_waits(rec))
        wq__core_end_deadline(c, ref, now);
    else if (rec->wait)
        wq__core_settle_cooldown(c, ref, now);
}

wq_err
wq__core_remove(struct wq__core *c, wq_key key, uint32_t hash, int64_t now)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);
    if (!ref)
        return WQ_ENOTFOUND;

    const struct wq__rec *rec = wq__core_rec(c, ref);
    const bool            waits = wq__rec_waits(rec);
    if (!wq__rec_is_pending(rec) && !waits)
        return rec->flags & WQ__HELD ? WQ_ESTATE : WQ_ENOTFOUND;
    if (rec->flags & WQ__READY && !wq__ready_can_remove(&c->ready))
        return WQ_ENOTSUP;

    withdraw_all(c, ref, now);
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

/* A run that covers a throttled add is handed out: its cooldown begins. */
static void
begin_cooldown(struct wq__core *c, wq__ref ref, int64_t now)
{
    struct wq__throttle_state *state = wq__core_throttle_state(c, ref);

    if (!state || !state->next_cooldown)
        return;
    state->cooldown_until = wq__span_add(now, state->next_cooldown);
    state->next_cooldown = 0;
    if (wq__core_rec(c, ref)->flags & WQ__COOLDOWN)
        wq__heap_change(&c->waiting, ref, state->cooldown_until);
}

/* `next` is READY behind the key that is handed out. Prefetch the index slot of
 * the key behind it, which the done of that key will look up, and the record
 * behind that key. So nothing is read here that was not prefetched one hand-out
 * earlier, even if the records are in no order. Those of one block mostly are:
 * the processor fetches them without a hint. */
__attribute__((always_inline)) static inline void
prefetch_next(const struct wq__core *c, wq__ref next)
{
    if (!next || !wq__index_is_large(&c->index))
        return;
    const wq__ref after = wq__core_rec(c, next)->next;
    if (!after)
        return;
    const struct wq__rec *rec = wq__core_rec(c, after);
    if (rec->next && (rec->next ^ after) >> WQ__SLAB_UNIT_BITS)
        __builtin_prefetch(wq__core_rec(c, rec->next), 1);
    wq__index_prefetch(&c->index, rec->hash);
}

wq_err
wq__core_prepare_get(struct wq__core *c, int64_t now, wq_item *next,
                     int64_t *waited)
{
    struct wq__ready *r = &c->ready;

    assert(!(r->special & (WQ__PLUG_IN | WQ__GROUPED | WQ__AGEING)));
    if (!wq__ready_offers(r))
        return WQ_ENOTFOUND;
    const wq_err err = wq__loans_reserve(&c->loans);
    if (err)
        return err;

    const struct wq__rec *rec =
        wq__core_rec(c, r->levels.at[wq__levels_top(&r->levels)].first);
    *next = (wq_item){
        .key = wq__rec_key(rec),
        .priority = wq__levels_priority(&r->levels, rec->level),
        .fence = c->fence + 1,
    };
    *waited = c->ages ? wq__span_between(wq__rec_since(rec), now) : -1;
    return WQ_OK;
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
        prefetch_next(c, rec->next);
    else if (c->ready.special & WQ__GROUPED)
        wq__groups_hold(&c->ready.groups, rec);
    wq__rec_set(rec, WQ__HELD);
    rec->next = loan->item.loan;
    c->tally.gets++;
    loan->item.key = wq__rec_key(rec);
    loan->item.priority = wq__levels_priority(&c->ready.levels, rec->level);
    loan->item.fence = ++c->fence;
    wq__levels_release(&c->ready.levels, rec->level);
    if (rec->wait)
        begin_cooldown(c, ref, now);
    if (c->ages) {
        loan->waited = wq__span_between(wq__rec_since(rec), now);
        wq__loans_note_age(&c->loans, loan, now);
    }
    *out = &loan->item;
    return WQ_OK;
}

/* ---- done --------------------------------------------------------------- */

/* The loan of a DIRTY record ends: it becomes READY. Only a wq_order fails. */
static wq_err
requeue_dirty(struct wq__core *c, wq__ref ref, int64_t now)
{
    struct wq__rec *rec = wq__core_rec(c, ref);

    if (wq__core_respects_backoff(c, rec)) { /* its run covers the add */
        (void)wq__core_keep_deadline(c, ref, rec->level);
        wq__core_defer_to_deadline(c, ref);
        wq__core_withdraw_run(c, ref);
        wq__rec_set(rec, WQ__COVERS_ADD);
        c->tally.merged++;
        c->tally.deferred++;
        return WQ_OK;
    }
    const wq_err err = wq__ready_push(&c->ready, ref, rec);
    if (err)
        return err;
    begin_age(c, rec, now);
    wq__rec_set_epoch(rec, wq__rec_next_epoch(rec));
    wq__rec_clear(rec, WQ__DIRTY);
    c->ready.levels.at[rec->level].dirty--;
    c->dirty--;
    return WQ_OK;
}

/* End a loan in a queue with ages, groups or a flush. `epoch`: that of its
 * run. */
static void
end_special_loan(struct wq__core *c, struct wq__loan *loan, unsigned epoch,
                 int64_t now, int64_t *work)
{
    struct wq__rec *rec = wq__core_rec(c, loan->rec);

    if (c->ages) {
        *work = wq__span_between(loan->got, now);
        wq__loans_forget_age(&c->loans, loan);
    }
    wq__loans_end(&c->loans, loan);
    if (c->ready.special & WQ__GROUPED)
        wq__groups_release(&c->ready.groups, rec);
    end_run(c, epoch);
}

/* Settle what was requested of a HELD record since its hand-out: withdraw it if
 * the key is being removed, else requeue the DIRTY record. Only a wq_order
 * fails. */
static wq_err
settle_requests(struct wq__core *c, wq__ref ref, int64_t now)
{
    struct wq__rec *rec = wq__core_rec(c, ref);

    if (rec->flags & WQ__REMOVING) {
        wq__rec_clear(rec, WQ__REMOVING);
        withdraw_all(c, ref, now);
        return WQ_OK;
    }
    return requeue_dirty(c, ref, now);
}

/* End the loan of a HELD record. */
static inline wq_err
end_loan(struct wq__core *c, struct wq__loan *loan, int64_t now, int64_t *work)
{
    const wq__ref   ref = loan->rec;
    struct wq__rec *rec = wq__core_rec(c, ref);
    const unsigned  epoch = wq__rec_epoch(rec);

    if (rec->flags & (WQ__DIRTY | WQ__REMOVING)) {
        const wq_err err = settle_requests(c, ref, now);
        if (err)
            return err;
    }
    wq__rec_clear(rec, WQ__HELD);
    c->tally.dones++;
    if (c->looks_at_done)
        end_special_loan(c, loan, epoch, now, work);
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
    return loan ? end_loan(c, loan, now, work) : WQ_ESTATE;
}

wq_err
wq__core_done_key(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
                  int64_t *work)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);
    if (!ref || !(wq__core_rec(c, ref)->flags & WQ__HELD))
        return WQ_ESTATE;
    return end_loan(c, wq__loans_at(&c->loans, wq__core_rec(c, ref)->next), now,
                    work);
}

wq_err
wq__core_give_back(struct wq__core *c, const wq_item *item, int priority,
                   int64_t now)
{
    const struct wq__loan *loan = wq__loans_find(&c->loans, item);
    uint32_t               level;
    wq_added               what;

    if (!loan)
        return WQ_ESTATE;
    wq_err err = wq__levels_find(&c->ready.levels, priority, &level);
    if (err)
        return err;
    err = wq__core_request_run(c, loan->rec, level, now, &what);
    wq__levels_release(&c->ready.levels, level);
    return err;
}

bool
wq__core_are_lent(struct wq__core *c, wq_item *const *items, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) { /* an item named twice is marked already */
        const struct wq__loan *loan = wq__loans_find(&c->loans, items[i]);
        if (!loan || wq__core_rec(c, loan->rec)->flags & WQ__NAMED)
            break;
        wq__rec_set(wq__core_rec(c, loan->rec), WQ__NAMED);
    }
    for (size_t k = 0; k < i; k++) /* each is the beginning of a loan of ours */
        wq__rec_clear(
            wq__core_rec(
                c, ((const struct wq__loan *)(const void *)items[k])->rec),
            WQ__NAMED);
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
    c->flush.first = c->flush.epoch = 1;
    open_epoch(c);
    wq__slab_init(&c->recs, &c->mem);
    wq__loans_init(&c->loans, &c->mem);
    wq__slab_init(&c->throttle_states, &c->mem);
    wq__index_init(&c->index, &c->mem, &c->recs);
    wq__ready_init(&c->ready, &c->recs, &c->index, &c->hasher, order, &c->mem);
    wq__heap_init(&c->waiting, &c->mem, &c->recs);
}

void
wq__core_fini(struct wq__core *c)
{
    const struct wq__slot *slot;
    size_t                 at = 0;

    wq__ready_fini(&c->ready); /* may still read keys: before the records */
    while ((slot = wq__index_next(&c->index, &at)))
        free_record(c, slot->ref, wq__core_rec(c, slot->ref));
    wq__heap_fini(&c->waiting);
    wq__index_fini(&c->index);
    wq__slab_fini(&c->throttle_states);
    wq__loans_fini(&c->loans);
    wq__slab_fini(&c->recs);
}

/* ---- what some queues have ---------------------------------------------- */

static void
add_part(struct wq__core *c, enum wq__part part)
{
    assert(c->recs.live == 0);
    c->prefix = (uint16_t)(c->prefix + part);
    open_epoch(c);
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
