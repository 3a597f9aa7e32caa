/* SPDX-License-Identifier: MIT */
/* rows.c: how does the row of a key become a record of the scratch core, and the
 * record a row again?
 *
 * Cost: some hundred nanoseconds, and what the store takes to write.
 */
#include "shared/rows.h"

#include "port/random.h"

/* ---- the scratch core ----------------------------------------------------- */

wq_err
wq__row_check(struct wq__rows *r, wq_key key, const struct wq__row *row)
{
    if (key.len > 0 && key.len <= WQ_KEY_MAX &&
        wq__image_is_possible(&row->image))
        return WQ_OK;
    return r->store->damaged(r, key, row);
}

/* The next hand-out and the next arrival get the next numbers. */
wq_err
wq__row_import(struct wq__rows *r, wq_key key, const struct wq__row *row,
               wq_item **item)
{
    struct wq__core         *c = &r->scratch;
    const struct wq__numbers last = {.fence = (uint64_t)r->number,
                                     .arrival = (uint64_t)r->number};

    if (item)
        *item = NULL;
    if (!row->dead && row->image.states) {
        const wq_err damage = wq__row_check(r, key, row);
        if (damage)
            return damage;
        const wq_err err =
            wq__core_import(c, key, wq__core_hash(c, key), &row->image, item);
        if (err)
            return err;
    }
    wq__core_set_numbers(c, last);
    return WQ_OK;
}

void
wq__row_export(struct wq__rows *r, wq_key key, struct wq__row *row)
{
    struct wq__core *c = &r->scratch;
    const uint32_t   hash = wq__core_hash(c, key);

    wq__core_export(c, key, hash, &row->image);
    wq__core_expel(c, key, hash);
    const struct wq__numbers last = wq__core_numbers(c);
    if ((int64_t)last.fence > r->number)
        r->number = (int64_t)last.fence;
    if ((int64_t)last.arrival > r->number)
        r->number = (int64_t)last.arrival;
}

/* ---- counts --------------------------------------------------------------- */

static void
count(uint64_t *n, bool before, bool after)
{
    *n += (uint64_t)after - (uint64_t)before;
}

static void
count_deadlines(struct wq__rows *r, const struct wq__image *was,
                const struct wq__image *is)
{
    const unsigned entry = WQ__WAITING | WQ__COOLDOWN;

    if (is->states & entry && is->at_ns < r->counts.next_ns)
        r->counts.next_ns = is->at_ns;
    if (was->states & entry && was->at_ns <= r->counts.next_ns &&
        (!(is->states & entry) || is->at_ns != was->at_ns))
        r->stale_next = true;
}

static void
count_states(struct wq__rows *r, const struct wq__row *was,
             const struct wq__row *is)
{
    const unsigned         a = was->image.states, b = is->image.states;
    struct wq__row_counts *n = &r->counts;

    count(&n->ready, a & WQ__READY, b & WQ__READY);
    count(&n->held, a & WQ__HELD, b & WQ__HELD);
    count(&n->dirty, a & WQ__DIRTY, b & WQ__DIRTY);
    count(&n->waiting, a & WQ__WAITING, b & WQ__WAITING);
    count(&n->dead, was->dead, is->dead);
    count(&n->known, wq__row_is_known(was), wq__row_is_known(is));
    count_deadlines(r, &was->image, &is->image);
    r->made_ready += b & WQ__READY && !(a & WQ__READY);
}

/* ---- saving --------------------------------------------------------------- */

/* Its place in the ready order: the tail, unless it was there already. */
static void
place(struct wq__rows *r, const struct wq__row *before, struct wq__row *row)
{
    const bool was = before->image.states & WQ__READY &&
                     before->image.priority == row->image.priority;

    if (row->image.states & WQ__READY && !was)
        row->seq = wq__rows_number(r);
}

static bool
is_same(const struct wq__row *a, const struct wq__row *b)
{
    const struct wq__image *i = &a->image, *k = &b->image;

    return a->id == b->id && a->dead == b->dead && a->seq == b->seq &&
           a->owner == b->owner && a->fails == b->fails &&
           a->failed_ns == b->failed_ns && a->expiries == b->expiries &&
           a->has_bucket == b->has_bucket && a->tokens_ns == b->tokens_ns &&
           a->tokens <= b->tokens && a->tokens >= b->tokens &&
           i->states == k->states && i->priority == k->priority &&
           i->since_ns == k->since_ns && i->held_priority == k->held_priority &&
           i->fence == k->fence && i->held_ns == k->held_ns &&
           i->at_ns == k->at_ns && i->arrival == k->arrival &&
           i->wait_priority == k->wait_priority &&
           i->throttled == k->throttled && i->latest_ns == k->latest_ns &&
           i->next_cooldown_ns == k->next_cooldown_ns &&
           i->wait_cooldown_ns == k->wait_cooldown_ns &&
           i->cooldown_until_ns == k->cooldown_until_ns;
}

wq_err
wq__row_write(struct wq__rows *r, wq_key key, const struct wq__row *before,
              struct wq__row *row)
{
    place(r, before, row);
    const bool empty = !wq__row_is_known(row) && !row->fails &&
                       !row->expiries && !row->has_bucket;
    if (is_same(before, row) || (empty && !row->id))
        return WQ_OK;
    const wq_err err = r->store->write(r, key, before, row, empty);
    if (!err)
        count_states(r, before, row);
    return err;
}

wq_err
wq__row_save(struct wq__rows *r, wq_key key, const struct wq__row *before,
             struct wq__row *row)
{
    wq__row_export(r, key, row);
    return wq__row_write(r, key, before, row);
}

/* ---- life ----------------------------------------------------------------- */

void
wq__rows_init(struct wq__rows *r, const struct wq__row_store *store,
              const struct wq__terms *terms)
{
    *r = (struct wq__rows){
        .store = store, .terms = *terms, .random = terms->limiter.seed};
    if (!r->random)
        (void)wq__random(&r->random, sizeof r->random);
    /* Keys of the scratch core are few: its hash needs no secret. */
    wq__core_init(&r->scratch, (struct wq__hash_key){.mask = UINT32_MAX}, NULL,
                  NULL);
    wq__core_keep_ages(&r->scratch);
    r->scratch.respect = terms->retry & WQ_RETRY_RESPECT;
}

void
wq__rows_fini(struct wq__rows *r)
{
    wq__core_fini(&r->scratch);
}

void
wq__rows_begin(struct wq__rows *r, int64_t now_ns, int64_t number,
               const struct wq__row_counts *counts)
{
    r->now_ns = now_ns;
    r->number = number;
    r->counts = *counts;
    r->made_ready = 0;
    r->promised = r->stale_next = r->more_to_do = r->torn = false;
    r->bucket.read = r->bucket.moved = false;
}
