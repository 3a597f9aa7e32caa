/* SPDX-License-Identifier: MIT */
/* view.c: what are the statistics of a queue, and what is known of a key?
 * Changes nothing. */
#include <string.h>

#include "core/inside.h"
#include "core/span.h"

unsigned
wq__core_states(const struct wq__core *c, wq_key key, uint32_t hash)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);
    if (!ref)
        return 0;

    const struct wq__rec *rec = wq__core_rec(c, ref);
    const unsigned        shown =
        rec->flags & (WQ__READY | WQ__HELD | WQ__DIRTY | WQ__BACKOFF);
    return shown | (wq__rec_waits(rec) ? WQ__WAITING : 0);
}

bool
wq__core_is_held_by(const struct wq__core *c, wq_key key, uint32_t hash,
                    uint32_t thread)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);

    return ref && wq__core_rec(c, ref)->flags & WQ__HELD &&
           wq__loans_at(&c->loans, wq__core_rec(c, ref)->next)->holder ==
               thread;
}

bool
wq__core_holds_any(const struct wq__core *c, uint32_t thread)
{
    size_t seen = 0;

    for (uint32_t i = WQ__LOANS_FIRST; seen < c->loans.live; i++) {
        const struct wq__loan *loan = wq__loans_at(&c->loans, i);
        if (loan->rec && loan->holder == thread)
            return true;
        seen += loan->rec != 0;
    }
    return false;
}

/* The states of a record, as inspect.h numbers them. */
static unsigned
states_of(const struct wq__rec *rec)
{
    unsigned states = 0;

    states |= rec->flags & WQ__READY ? WQ_STATE_READY : 0;
    states |= rec->flags & WQ__HELD ? WQ_STATE_HELD : 0;
    states |= rec->flags & WQ__DIRTY ? WQ_STATE_DIRTY : 0;
    states |= wq__rec_waits(rec) ? WQ_STATE_WAITING : 0;
    states |= rec->flags & WQ__BACKOFF ? WQ_STATE_BACKOFF : 0;
    return states;
}

static int
priority_of(const struct wq__core *c, wq__ref ref, const struct wq__loan *loan)
{
    const struct wq__rec    *rec = wq__core_rec(c, ref);
    const struct wq__levels *levels = &c->ready.levels;

    if (wq__rec_is_pending(rec))
        return wq__levels_priority(levels, rec->level);
    if (wq__rec_waits(rec))
        return wq__levels_priority(levels, wq__core_entry(c, ref)->level);
    return loan ? loan->item.priority : 0;
}

static void
describe(const struct wq__core *c, wq__ref ref, int64_t now, wq_key_info *out)
{
    const struct wq__rec  *rec = wq__core_rec(c, ref);
    const struct wq__loan *loan =
        rec->flags & WQ__HELD ? wq__loans_at(&c->loans, rec->next) : NULL;

    out->states = states_of(rec);
    out->priority = priority_of(c, ref, loan);
    if (c->ages && wq__rec_is_pending(rec))
        out->ready_ns = wq__span_between(wq__rec_since(rec), now);
    if (c->ages && loan)
        out->held_ns = wq__span_between(loan->got, now);
    if (wq__rec_waits(rec))
        out->wait_ns = wq__span_until(now, wq__core_entry(c, ref)->at);
    out->fence = loan ? loan->item.fence : 0;
}

static void
describe_absent(wq_key_info *out)
{
    out->states = 0;
    out->priority = 0;
    out->ready_ns = out->held_ns = out->wait_ns = -1;
    out->fence = 0;
    out->expiries = 0;
    out->holder[0] = '\0';
}

void
wq__core_key_info(const struct wq__core *c, wq_key key, uint32_t hash,
                  int64_t now, wq_key_info *out)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);

    describe_absent(out);
    if (ref)
        describe(c, ref, now, out);
}

bool
wq__core_walk(const struct wq__core *c, wq__ref *cursor, size_t *budget,
              unsigned states, int64_t now, wq_key *key, wq_key_info *info)
{
    while (wq__slab_next(&c->recs, cursor, budget)) {
        const struct wq__rec *rec = wq__core_rec(c, *cursor);

        if (!(states_of(rec) & states)) /* a freed record has none */
            continue;
        *key = wq__rec_key(rec);
        describe_absent(info);
        describe(c, *cursor, now, info);
        return true;
    }
    return false;
}

bool
wq__core_copy_some(const struct wq__core *c, wq__ref *cursor, unsigned states,
                   int64_t now, struct wq__copies *out)
{
    size_t      budget = 512; /* slots to look at under the lock: some 10 us */
    wq_key      key;
    wq_key_info info = {.size = sizeof info};

    wq__copies_clear(out);
    while (wq__copies_have_space(out)) {
        if (!wq__core_walk(c, cursor, &budget, states, now, &key, &info))
            return budget == 0;
        wq__copies_add(out, key, &info);
    }
    return true;
}

void
wq__core_depths(const struct wq__core *c, wq_depth *out, size_t max, size_t *n)
{
    const struct wq__levels *l = &c->ready.levels;
    size_t                   len = 0;

    for (uint32_t i = 0; i < l->fresh && len < max; i++)
        if (i == 0 || l->at[i].holders)
            out[len++] =
                (wq_depth){l->at[i].priority, l->at[i].len + l->at[i].dirty};
    *n = l->used;
}

/* The sum of the ages of the HELD keys; `longest` is the largest of them. The
 * clocks of two threads differ a little, so an age may be below 0. The sum may
 * overflow. */
static int64_t
sum_of_ages(const struct wq__core *c, int64_t now, int64_t longest)
{
    /* Computed modulo 2^64; the result mostly fits. */
    const int64_t sum =
        (int64_t)((uint64_t)c->loans.live * (uint64_t)now - c->loans.got_sum);

    if (sum >= longest)
        return sum;
    return longest > INT64_MAX / (int64_t)c->loans.live ? INT64_MAX : longest;
}

void
wq__core_stats(const struct wq__core *c, int64_t now, wq_stats *out)
{
    const struct wq__tally *t = &c->tally;

    *out = (wq_stats){
        .size = out->size,
        .ready = c->ready.len,
        .held = c->loans.live,
        .dirty = c->dirty,
        .waiting = wq__core_waiting(c),
        .known = c->index.len,
        .next_ns = wq__span_until(now, wq__core_first_deadline(c)),
        .unfinished_ns = -1,
        .longest_ns = -1,
        .shutting_down = c->shutting_down,
        .paused = wq__core_is_paused(c),
        .bytes = c->bytes,
        .groups = c->ready.groups.live,
        .offered = wq__core_offers(c),
        .overdue = c->ready.overdue,
        .adds = t->adds,
        .merged = t->merged,
        .gets = t->gets,
        .dones = t->dones,
        .removed = t->removed,
        .displaced = t->displaced,
        .deferred = t->deferred,
        .drops = t->drops,
    };
    if (c->ages) {
        const struct wq__loan *oldest =
            c->loans.oldest ? wq__loans_at(&c->loans, c->loans.oldest) : NULL;
        out->longest_ns = oldest ? wq__span_between(oldest->got, now) : 0;
        out->unfinished_ns = sum_of_ages(c, now, out->longest_ns);
    }
}
