/* SPDX-License-Identifier: MIT */
/* store_dead.c: which keys are DEAD, and how often did a hold of a key expire?
 *
 * A table of notes by key. A key has one while it is DEAD, or while an expiry
 * counts. DEAD keys are in a list too, in the order in which they died, for
 * walks. Cost: O(1); a step of a walk O(n).
 */
#include "support/store_inside.h"

#include "core/inside.h"

struct note {
    uint64_t number;       /* of a DEAD key, in the list; 0: it is not DEAD */
    wq__ref  older, newer; /* DEAD: neighbours in the list; 0: none */
    int32_t  priority;     /* DEAD: of its last hand-out */
    uint32_t expiries;     /* since its last success; DEAD: 0 */
};

static struct note *
note_at(const struct store_dead *d, wq__ref ref)
{
    return wq__table_value(&d->notes, ref);
}

static wq__ref
find(const struct store_dead *d, wq_key key)
{
    return wq__table_find(&d->notes, key, wq__table_hash(&d->notes, key));
}

static void
forget_if_bare(struct store_dead *d, wq_key key)
{
    const wq__ref ref = find(d, key);

    if (ref && !note_at(d, ref)->number && !note_at(d, ref)->expiries)
        wq__table_remove(&d->notes, ref, wq__table_hash(&d->notes, key));
}

/* DEAD keys count as known keys: the core may have as many less. */
static void
bound_core(struct memory_store *store, size_t dead)
{
    if (store->max_len)
        store->core.max_len =
            store->max_len > dead ? store->max_len - dead : SIZE_MAX;
}

void
store_dead_init(struct memory_store *store)
{
    const struct wq__hash_key secret = {.k0 = 3, .k1 = 4, .mask = UINT32_MAX};

    wq__table_init(&store->dead.notes, &store->mem, secret, sizeof(struct note),
                   false);
}

void
store_dead_fini(struct memory_store *store)
{
    wq__table_fini(&store->dead.notes);
}

bool
store_is_dead(const struct memory_store *store, wq_key key)
{
    const wq__ref ref = find(&store->dead, key);

    return ref && note_at(&store->dead, ref)->number;
}

/* ---- the list ------------------------------------------------------------ */

static void
append(struct store_dead *d, wq__ref ref)
{
    struct note *note = note_at(d, ref);

    note->number = ++d->number;
    note->older = d->last;
    note->newer = 0;
    *(d->last ? &note_at(d, d->last)->newer : &d->first) = ref;
    d->last = ref;
    d->len++;
}

static void
take_out(struct store_dead *d, wq__ref ref)
{
    struct note *note = note_at(d, ref);

    *(note->older ? &note_at(d, note->older)->newer : &d->first) = note->newer;
    *(note->newer ? &note_at(d, note->newer)->older : &d->last) = note->older;
    note->number = 0;
    d->len--;
}

bool
store_next_dead(const struct memory_store *store, uint64_t *number, wq_key *key)
{
    const struct store_dead *d = &store->dead;
    wq__ref                  ref = d->first;

    while (ref && note_at(d, ref)->number <= *number)
        ref = note_at(d, ref)->newer;
    if (!ref)
        return false;
    *number = note_at(d, ref)->number;
    *key = wq__table_key(&d->notes, ref);
    return true;
}

void
store_dead_info(const struct memory_store *store, wq_key key, wq_key_info *info)
{
    info->states = WQ_STATE_DEAD;
    info->priority = note_at(&store->dead, find(&store->dead, key))->priority;
    info->ready_ns = info->held_ns = info->wait_ns = -1;
    info->fence = 0;
}

/* ---- life and death ------------------------------------------------------ */

static wq__ref
find_or_make(struct store_dead *d, wq_key key)
{
    return wq__table_find_or_insert(&d->notes, key,
                                    wq__table_hash(&d->notes, key));
}

/* The loan ends at the end of time, so that no cooldown keeps the record. */
static void
end_for_good(struct memory_store *store, const struct wq__loan *loan)
{
    struct wq__core *c = &store->core;
    int64_t          work;

    (void)wq__core_remove_at_done(c, loan->item.key,
                                  wq__core_hash(c, loan->item.key), true);
    (void)wq__core_done(c, &loan->item, WQ_FOREVER, &work);
}

wq_err
store_bury(struct memory_store *store, const struct wq__loan *loan)
{
    struct store_dead *d = &store->dead;
    const wq__ref      ref = find_or_make(d, loan->item.key);
    if (!ref)
        return WQ_ENOMEM;

    append(d, ref);
    note_at(d, ref)->priority = loan->item.priority;
    note_at(d, ref)->expiries = 0;
    end_for_good(store, loan);
    bound_core(store, d->len);
    return WQ_OK;
}

bool
store_unbury(struct memory_store *store, wq_key key)
{
    struct store_dead *d = &store->dead;

    if (!store_is_dead(store, key))
        return false;
    take_out(d, find(d, key));
    forget_if_bare(d, key);
    bound_core(store, d->len);
    return true;
}

wq_err
store_revive(struct memory_store *store, wq_key key, int64_t now)
{
    struct store_dead *d = &store->dead;
    wq_added           what;
    if (!store_is_dead(store, key))
        return WQ_ENOTFOUND;

    bound_core(store, d->len - 1); /* it is known before and after */
    const wq_err err = wq__core_add_with_priority(
        &store->core, key, wq__core_hash(&store->core, key), now,
        note_at(d, find(d, key))->priority, &what);
    if (err) {
        bound_core(store, d->len);
        return err;
    }
    (void)store_unbury(store, key);
    return WQ_OK;
}

wq_err
store_expire(struct memory_store *store, const struct wq__loan *loan,
             unsigned max, int64_t now)
{
    struct store_dead *d = &store->dead;
    const wq_key       key = loan->item.key;
    const wq__ref      ref = find_or_make(d, key);
    if (!ref)
        return WQ_ENOMEM;

    if (max && note_at(d, ref)->expiries + 1 >= max)
        return store_bury(store, loan);
    note_at(d, ref)->expiries++;
    const wq_err err = store_return(store, loan, now);
    if (err) {
        note_at(d, ref)->expiries--;
        forget_if_bare(d, key);
    }
    return err;
}

void
store_forget_expiries(struct memory_store *store, wq_key key)
{
    const wq__ref ref = find(&store->dead, key);

    if (!ref)
        return;
    note_at(&store->dead, ref)->expiries = 0;
    forget_if_bare(&store->dead, key);
}

const char *
store_check_dead(const struct memory_store *store)
{
    const struct store_dead *d = &store->dead;
    const struct wq__core   *c = &store->core;
    uint64_t                 last = 0;
    size_t                   n = 0;

    for (wq__ref ref = d->first; ref; ref = note_at(d, ref)->newer, n++) {
        const wq_key key = wq__table_key(&d->notes, ref);

        if (note_at(d, ref)->number <= last)
            return "DEAD keys are not in the order of their numbers";
        last = note_at(d, ref)->number;
        if (wq__index_find(&c->index, key, wq__core_hash(c, key)))
            return "a DEAD key has a record";
        if (note_at(d, ref)->expiries)
            return "a DEAD key counts expiries";
    }
    if (n != d->len)
        return "the number of DEAD keys is wrong";
    if (d->notes.len < n)
        return "a DEAD key has no note";
    if (store->max_len && c->index.len + n > store->max_len)
        return "the store knows more than max_len keys";
    return NULL;
}
