/* SPDX-License-Identifier: MIT */
/* due.c: what becomes of deadlines?
 *
 * A record has at most one entry in the delay heap: a deadline or, with the
 * flag COOLDOWN, the end of a cooldown. At the end of a cooldown the entry is
 * removed, and nothing else happens. The time of a COOLDOWN entry is
 *
 *   WQ_FOREVER           while a run is pending that covers a throttled add:
 *                        its cooldown begins at the hand-out (core.c)
 *   the cooldown's end   else
 *
 * Only a run that covers a throttled add is followed by a cooldown. Other runs
 * neither begin nor extend one.
 */
#include <assert.h>

#include "core/inside.h"
#include "core/span.h"

static void
remove_entry(struct wq__core *c, wq__ref ref)
{
    struct wq__rec *rec = wq__core_rec(c, ref);
    const wq__ref   state = wq__core_entry(c, ref)->throttle;

    if (state)
        wq__slab_free(&c->throttle_states, state);
    c->cooldowns -= (rec->flags & WQ__COOLDOWN) != 0;
    wq__rec_clear(rec,
                  WQ__COOLDOWN | WQ__BACKOFF | WQ__COVERS_ADD | WQ__DEBOUNCED);
    wq__heap_remove(&c->waiting, ref);
}

/* The entry stops being a deadline: it releases its level. */
static void
strip(struct wq__core *c, wq__ref ref)
{
    struct wq__wait *entry = wq__core_entry(c, ref);
    const uint32_t   level = entry->level;

    entry->level = 0;
    wq__rec_clear(wq__core_rec(c, ref),
                  WQ__BACKOFF | WQ__COVERS_ADD | WQ__DEBOUNCED);
    wq__levels_release(&c->ready.levels, level);
}

void
wq__core_settle_cooldown(struct wq__core *c, wq__ref ref, int64_t now)
{
    const struct wq__throttle_state *state = wq__core_throttle_state(c, ref);

    if (state->next_cooldown)
        wq__heap_change(&c->waiting, ref, WQ_FOREVER);
    else if (state->cooldown_until > now)
        wq__heap_change(&c->waiting, ref, state->cooldown_until);
    else
        remove_entry(c, ref);
}

void
wq__core_end_deadline(struct wq__core *c, wq__ref ref, int64_t now)
{
    struct wq__throttle_state *state = wq__core_throttle_state(c, ref);

    strip(c, ref);
    if (!state) {
        remove_entry(c, ref);
        return;
    }
    state->wait_cooldown = 0;
    wq__rec_set(wq__core_rec(c, ref), WQ__COOLDOWN);
    c->cooldowns++;
    wq__core_settle_cooldown(c, ref, now);
}

void
wq__core_meet_deadline(struct wq__core *c, wq__ref ref, int64_t now)
{
    struct wq__throttle_state *state = wq__core_throttle_state(c, ref);

    if (state && state->wait_cooldown)
        state->next_cooldown = state->wait_cooldown;
    wq__core_end_deadline(c, ref, now);
}

void
wq__core_defer_to_deadline(struct wq__core *c, wq__ref ref)
{
    struct wq__throttle_state *state = wq__core_throttle_state(c, ref);

    if (state && state->next_cooldown)
        state->wait_cooldown = state->next_cooldown;
}

void
wq__core_stop_waiting(struct wq__core *c, wq__ref ref)
{
    strip(c, ref);
    remove_entry(c, ref);
}

void
wq__core_begin_deadline(struct wq__core *c, wq__ref ref, uint32_t level,
                        int64_t at)
{
    struct wq__rec *rec = wq__core_rec(c, ref);

    if (rec->wait) {
        wq__heap_change(&c->waiting, ref, at);
        wq__rec_clear(rec, WQ__COOLDOWN);
        c->cooldowns--;
    } else {
        wq__heap_push(&c->waiting, ref, at);
    }
    wq__core_entry(c, ref)->level = level;
    wq__levels_hold(&c->ready.levels, level);
}

wq_added
wq__core_keep_deadline(struct wq__core *c, wq__ref ref, uint32_t level)
{
    struct wq__wait *entry = wq__core_entry(c, ref);
    const uint32_t   old = entry->level;

    if (!wq__core_is_higher(c, level, old))
        return WQ_ADDED_KEPT;
    wq__levels_hold(&c->ready.levels, level);
    entry->level = level;
    wq__levels_release(&c->ready.levels, old);
    return WQ_ADDED_RAISED;
}

/* ---- time --------------------------------------------------------------- */

/* The time of the entry of `ref` has come. False: it is still due. */
static bool
fall_due(struct wq__core *c, wq__ref ref, int64_t now)
{
    const struct wq__wait *entry = wq__core_entry(c, ref);
    const int64_t          again = wq__span_add(now, WQ__OFFER_AGAIN_NS);
    wq_added               what;

    if (wq__core_rec(c, ref)->flags & WQ__COOLDOWN) {
        remove_entry(c, ref);
        wq__core_forget_if_bare(c, ref);
        return true;
    }
    if (!wq__core_request_run(c, ref, entry->level, entry->at, &what)) {
        wq__core_meet_deadline(c, ref, now);
        return true;
    }
    if (again > now)
        wq__heap_change(&c->waiting, ref, again);
    return again > now; /* false at the end of time */
}

/* Prefetch the record of a later entry: in a sorted heap the next ones are known,
 * and their records are in no order. */
__attribute__((always_inline)) static inline void
prefetch_ahead(const struct wq__core *c)
{
    const struct wq__heap *h = &c->waiting;

    if (h->is_sorted && h->len > WQ__AHEAD)
        __builtin_prefetch(wq__core_rec(c, h->entries[WQ__AHEAD].ref), 1);
}

/* After so many deadlines in a row it may pay to sort the others: one by one,
 * each costs O(log n) cache misses. */
enum { SORT_AFTER = WQ_DEBUG ? 2 : 32 };

void
wq__core_promote(struct wq__core *c, int64_t now)
{
    const struct wq__wait *first;

    for (size_t n = 0;
         (first = wq__heap_first(&c->waiting)) && first->at <= now; n++) {
        if (n == SORT_AFTER && wq__heap_is_mostly_due(&c->waiting, now))
            wq__heap_sort(&c->waiting);
        prefetch_ahead(c);
        if (!fall_due(c, wq__heap_first(&c->waiting)->ref, now))
            return;
    }
}

static bool
is_cooldown_at(const struct wq__core *c, size_t i)
{
    return wq__core_rec(c, c->waiting.entries[i].ref)->flags & WQ__COOLDOWN;
}

/* The first deadline at place `i` of the heap or below it, without COOLDOWN
 * entries. Recursion is as deep as the heap. */
static int64_t
first_deadline_from(const struct wq__core *c, size_t i)
{
    const size_t child = i * WQ__HEAP_CHILDREN + 1;
    int64_t      first = WQ_FOREVER;

    if (i >= c->waiting.len)
        return first;
    if (!is_cooldown_at(c, i))
        return c->waiting.entries[i].at;
    for (size_t k = 0; k < WQ__HEAP_CHILDREN; k++) {
        const int64_t at = first_deadline_from(c, child + k);
        first = at < first ? at : first;
    }
    return first;
}

int64_t
wq__core_first_deadline(const struct wq__core *c)
{
    return wq__core_waiting(c) ? first_deadline_from(c, 0) : WQ_FOREVER;
}

int64_t
wq__core_next_deadline(const struct wq__core *c)
{
    const struct wq__wait *first = wq__heap_first(&c->waiting);
    return first ? first->at : WQ_FOREVER;
}

/* ---- shutdown ----------------------------------------------------------- */

/* Remove all COOLDOWN entries. The loop runs from the end to the front: a
 * removal fills a place that was checked with an entry that was checked too, or
 * fills place i itself, which is therefore checked again. */
void
wq__core_shut_down(struct wq__core *c)
{
    c->shutting_down = true;
    for (size_t i = c->cooldowns ? c->waiting.len : 0; i-- > 0;)
        while (i < c->waiting.len && is_cooldown_at(c, i)) {
            const wq__ref ref = c->waiting.entries[i].ref;
            remove_entry(c,
                         ref); /* no add will follow that could be throttled */
            wq__core_forget_if_bare(c, ref);
        }
}

/* Would the key not run again without its deadline? A pending run also covers
 * the adds that the deadline covers. */
static bool
is_lost(const struct wq__rec *rec)
{
    return wq__rec_waits(rec) && !wq__rec_is_pending(rec);
}

void
wq__core_drop_waiting(struct wq__core *c)
{
    const struct wq__wait *first;

    while ((first = wq__heap_first(&c->waiting))) {
        const wq__ref ref = first->ref;
        c->tally.drops += is_lost(wq__core_rec(c, ref));
        wq__core_stop_waiting(c, ref);
        wq__core_forget_if_bare(c, ref);
    }
}

/* Request the run of a deadline now, or drop it. False: a wq_order refuses the
 * key. */
static bool
flush_waiting_key(struct wq__core *c, wq__ref ref, int64_t now, bool backoffs)
{
    const struct wq__rec *rec = wq__core_rec(c, ref);
    wq_added              what;

    if (!backoffs && !wq__rec_covers_add(rec))
        c->tally.drops += is_lost(rec);
    else if (wq__core_request_run(c, ref, wq__core_entry(c, ref)->level, now,
                                  &what))
        return false;
    wq__core_stop_waiting(c, ref);
    wq__core_forget_if_bare(c, ref);
    return true;
}

/* In the order of deadlines. Refused keys get the deadline WQ_FOREVER, so that
 * they gather at the end of the heap in the order they were offered. When only
 * they are left, all of them get the same new deadline: the heap stays in
 * order. */
void
wq__core_flush_waiting(struct wq__core *c, int64_t now, bool backoffs)
{
    assert(!c->cooldowns);
    for (size_t n = c->waiting.len; n > 0; n--) {
        const wq__ref ref = wq__heap_first(&c->waiting)->ref;
        if (!flush_waiting_key(c, ref, now, backoffs))
            wq__heap_change(&c->waiting, ref, WQ_FOREVER);
    }
    for (size_t i = 0; i < c->waiting.len; i++)
        c->waiting.entries[i].at = wq__span_add(now, WQ__OFFER_AGAIN_NS);
}
