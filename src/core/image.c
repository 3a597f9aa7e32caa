/* SPDX-License-Identifier: MIT */
/* image.c: one key of a core as data; see image.h. */
#include "core/image.h"

#include <assert.h>

#include "core/inside.h"

enum {
    /* The flags of a record that its image has, too. */
    FLAGS = WQ__READY | WQ__HELD | WQ__DIRTY | WQ__BACKOFF | WQ__DEBOUNCED |
            WQ__COOLDOWN | WQ__COVERS_ADD,
    PENDING = WQ__READY | WQ__DIRTY,
    ENTRY = WQ__WAITING | WQ__COOLDOWN, /* it has an entry in the heap */
    /* What the deadline is; a record has these besides its entry. */
    ENTRY_FLAGS = WQ__BACKOFF | WQ__DEBOUNCED | WQ__COOLDOWN | WQ__COVERS_ADD,
};

/* The core has nothing that images cannot express. */
static void
assert_fits_images(const struct wq__core *c)
{
    assert(!(c->ready.special & (WQ__PLUG_IN | WQ__GROUPED | WQ__AGEING)));
    assert(!wq__flush_is_under_way(&c->flush));
    (void)c;
}

/* ---- export ------------------------------------------------------------- */

static void
export_loan(const struct wq__core *c, const struct wq__loan *loan,
            struct wq__image *out)
{
    out->held_priority = loan->item.priority;
    out->fence = loan->item.fence;
    out->held_ns = c->ages ? loan->got : 0;
    out->holder = loan->holder;
}

static void
export_entry(const struct wq__core *c, wq__ref ref, struct wq__image *out)
{
    const struct wq__wait           *entry = wq__core_entry(c, ref);
    const struct wq__throttle_state *state = wq__core_throttle_state(c, ref);

    out->at_ns = entry->at;
    out->arrival = entry->seq;
    out->wait_priority = wq__levels_priority(&c->ready.levels, entry->level);
    if (!state)
        return;
    out->throttled = true;
    out->latest_ns = state->latest;
    out->next_cooldown_ns = state->next_cooldown;
    out->wait_cooldown_ns = state->wait_cooldown;
    out->cooldown_until_ns = state->cooldown_until;
}

void
wq__core_export(const struct wq__core *c, wq_key key, uint32_t hash,
                struct wq__image *out)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);

    assert_fits_images(c);
    *out = (struct wq__image){0};
    if (!ref)
        return;

    const struct wq__rec *rec = wq__core_rec(c, ref);
    assert(!(rec->flags & (WQ__NAMED | WQ__REMOVING)));
    out->states =
        (rec->flags & FLAGS) | (wq__rec_waits(rec) ? WQ__WAITING : 0U);
    if (wq__rec_is_pending(rec)) {
        out->priority = wq__levels_priority(&c->ready.levels, rec->level);
        out->since_ns = c->ages ? wq__rec_since(rec) : 0;
    }
    if (rec->flags & WQ__HELD)
        export_loan(c, wq__loans_at(&c->loans, rec->next), out);
    if (rec->wait)
        export_entry(c, ref, out);
}

/* ---- is it possible? ---------------------------------------------------- */

/* Does the state of its deadline or cooldown fit the rest? */
static bool
has_possible_throttle(const struct wq__image *i)
{
    const bool cooling = i->states & WQ__COOLDOWN;

    if (!i->throttled)
        return !(i->states & (WQ__COOLDOWN | WQ__DEBOUNCED));
    if (!(i->states & ENTRY) || (i->wait_cooldown_ns && cooling) ||
        (i->next_cooldown_ns && !(i->states & PENDING)))
        return false;
    return !cooling || i->at_ns == (i->next_cooldown_ns ? WQ_FOREVER
                                                        : i->cooldown_until_ns);
}

/* The same as audit.c checks for a record. */
bool
wq__image_is_possible(const struct wq__image *i)
{
    const unsigned s = i->states;

    if (s & ~(unsigned)(FLAGS | WQ__WAITING))
        return false;
    if (s && !(s & (WQ__READY | WQ__HELD | ENTRY)))
        return false;
    if ((s & WQ__READY && s & WQ__HELD) || (s & WQ__DIRTY && !(s & WQ__HELD)))
        return false;
    if ((s & ENTRY) == ENTRY ||
        (s & (WQ__BACKOFF | WQ__DEBOUNCED) && !(s & WQ__WAITING)))
        return false;
    if (s & WQ__COVERS_ADD && !(s & WQ__BACKOFF))
        return false;
    return has_possible_throttle(i);
}

/* ---- import ------------------------------------------------------------- */

/* What an import has reserved. */
struct parts {
    wq__ref  ref;               /* the record, in the index */
    uint32_t level, wait_level; /* each held once; 0: nothing to release */
    wq__ref  state;             /* the throttle state; 0: none */
};

static void
release(struct wq__core *c, const struct parts *parts)
{
    wq__levels_release(&c->ready.levels, parts->wait_level);
    wq__levels_release(&c->ready.levels, parts->level);
    if (parts->state)
        wq__slab_free(&c->throttle_states, parts->state);
    wq__heap_release_reserved(&c->waiting);
}

static wq_err
make_record(struct wq__core *c, wq_key key, uint32_t hash, struct parts *parts)
{
    struct wq__prepared prepared = {.hash = hash};
    const wq_err        err = wq__core_find_or_make(c, key, &prepared);

    assert(err || prepared.made); /* the core did not know the key */
    parts->ref = prepared.ref;
    return err;
}

/* Reserve all that the commit needs. */
static wq_err
reserve(struct wq__core *c, wq_key key, uint32_t hash,
        const struct wq__image *image, struct parts *parts)
{
    struct wq__levels *levels = &c->ready.levels;
    wq_err             err = WQ_OK;

    if (image->states & WQ__HELD)
        err = wq__loans_reserve(&c->loans);
    if (!err && image->states & ENTRY)
        err = wq__heap_reserve(&c->waiting, 1);
    if (!err && image->throttled &&
        !wq__slab_alloc(&c->throttle_states, sizeof(struct wq__throttle_state),
                        &parts->state))
        err = WQ_ENOMEM;
    if (!err && image->states & PENDING)
        err = wq__levels_find(levels, image->priority, &parts->level);
    if (!err && image->states & WQ__WAITING)
        err = wq__levels_find(levels, image->wait_priority, &parts->wait_level);
    if (!err)
        err = make_record(c, key, hash, parts);
    if (err)
        release(c, parts);
    return err;
}

/* The record is READY, or DIRTY and then HELD, too. It takes over the hold of
 * its level. */
static void
import_run(struct wq__core *c, const struct wq__image *image,
           const struct parts *parts)
{
    struct wq__rec *rec = wq__core_rec(c, parts->ref);

    rec->level = parts->level;
    if (c->ages)
        wq__rec_stamp(rec, image->since_ns);
    c->tally.imported_runs++;
    if (image->states & WQ__READY) {
        (void)wq__ready_push(&c->ready, parts->ref, rec); /* no wq_order */
        return;
    }
    wq__rec_set(rec, WQ__DIRTY);
    wq__rec_set_next_epoch(rec, wq__flush_mark(&c->flush));
    c->ready.levels.at[parts->level].dirty++;
    c->dirty++;
}

static wq_item *
import_loan(struct wq__core *c, const struct wq__image *image, wq__ref ref)
{
    struct wq__rec  *rec = wq__core_rec(c, ref);
    struct wq__loan *loan = wq__loans_begin(&c->loans, ref);

    wq__rec_set(rec, WQ__HELD);
    rec->next = loan->item.loan;
    loan->item.key = wq__rec_key(rec);
    loan->item.priority = image->held_priority;
    loan->item.fence = image->fence;
    loan->waited = 0;
    loan->holder = image->holder;
    if (c->ages)
        wq__loans_note_age(&c->loans, loan, image->held_ns);
    if (c->fence < image->fence)
        c->fence = image->fence;
    c->tally.imported_loans++;
    return &loan->item;
}

/* The entry takes over the hold of its level, and the throttle state. */
static void
import_entry(struct wq__core *c, const struct wq__image *image,
             const struct parts *parts)
{
    wq__heap_restore(&c->waiting, parts->ref, image->at_ns, image->arrival);
    struct wq__wait *entry = wq__core_entry(c, parts->ref);
    entry->level = parts->wait_level;
    entry->throttle = parts->state;
    wq__rec_set(wq__core_rec(c, parts->ref), image->states & ENTRY_FLAGS);
    c->cooldowns += (image->states & WQ__COOLDOWN) != 0;
    if (!parts->state)
        return;
    *wq__core_throttle_state(c, parts->ref) = (struct wq__throttle_state){
        .latest = image->latest_ns,
        .next_cooldown = image->next_cooldown_ns,
        .wait_cooldown = image->wait_cooldown_ns,
        .cooldown_until = image->cooldown_until_ns,
    };
}

wq_err
wq__core_import(struct wq__core *c, wq_key key, uint32_t hash,
                const struct wq__image *image, wq_item **item)
{
    struct parts parts = {0};
    wq_item     *loaned = NULL;

    assert_fits_images(c);
    assert(wq__image_is_possible(image));
    if (image->states) {
        const wq_err err = reserve(c, key, hash, image, &parts);
        if (err)
            return err;
    }
    if (image->states & PENDING)
        import_run(c, image, &parts);
    if (image->states & WQ__HELD)
        loaned = import_loan(c, image, parts.ref);
    if (image->states & ENTRY)
        import_entry(c, image, &parts);
    if (item)
        *item = loaned;
    return WQ_OK;
}

/* ---- expel -------------------------------------------------------------- */

static void
expel_loan(struct wq__core *c, wq__ref ref)
{
    struct wq__rec  *rec = wq__core_rec(c, ref);
    struct wq__loan *loan = wq__loans_at(&c->loans, rec->next);

    if (c->ages)
        wq__loans_forget_age(&c->loans, loan);
    wq__loans_end(&c->loans, loan);
    wq__rec_clear(rec, WQ__HELD);
    c->tally.imported_loans--;
}

void
wq__core_expel(struct wq__core *c, wq_key key, uint32_t hash)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);

    assert_fits_images(c);
    if (!ref)
        return;
    const struct wq__rec *rec = wq__core_rec(c, ref);
    if (wq__rec_is_pending(rec)) {
        wq__core_withdraw_run(c, ref);
        c->tally.imported_runs--;
    }
    if (rec->flags & WQ__HELD)
        expel_loan(c, ref);
    if (rec->wait)
        wq__core_stop_waiting(c, ref);
    wq__core_forget_if_bare(c, ref);
}

/* ---- items -------------------------------------------------------------- */

wq_item *
wq__core_find_item(const struct wq__core *c, wq_key key, uint32_t hash)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);

    if (!ref || !(wq__core_rec(c, ref)->flags & WQ__HELD))
        return NULL;
    return &wq__loans_at(&c->loans, wq__core_rec(c, ref)->next)->item;
}
