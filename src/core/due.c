/* SPDX-License-Identifier: MIT */
/* due.c: what becomes of deadlines?
 *
 * A record has at most one entry in the delay heap. It is a deadline, or it is
 * QUIET: then nothing happens when it comes, but that the record is forgotten;
 * it remembers that a throttled key is to be left alone:
 *
 *   the next hand-out serves a throttled add
 *                         for ever: the hand-out will tell (core.c)
 *   else                  until the time is over
 *
 * Only a run that serves a throttled add is followed by such a time. Other runs
 * neither begin nor prolong it.
 */
#include <assert.h>

#include "core/inside.h"
#include "core/span.h"

static void
remove_entry(struct wq__core *c, wq__ref ref)
{
    struct wq__rec *rec = wq__core_rec(c, ref);
    const wq__ref   pace = wq__core_entry(c, ref)->pace;

    if (pace)
        wq__slab_free(&c->paces, pace);
    c->quiet -= (rec->flags & WQ__QUIET) != 0;
    wq__rec_clear(rec, WQ__QUIET | WQ__BACKOFF | WQ__EXPECTED | WQ__DEBOUNCED);
    wq__heap_remove(&c->waiting, ref);
}

/* The entry of a deadline lets go of its level, and is none any more. */
static void
strip(struct wq__core *c, wq__ref ref)
{
    struct wq__wait *entry = wq__core_entry(c, ref);
    const uint32_t   level = entry->level;

    entry->level = 0;
    wq__rec_clear(wq__core_rec(c, ref),
                  WQ__BACKOFF | WQ__EXPECTED | WQ__DEBOUNCED);
    wq__levels_release(&c->ready.levels, level);
}

void
wq__core_settle_quiet(struct wq__core *c, wq__ref ref, int64_t now)
{
    const struct wq__pace *pace = wq__core_pace(c, ref);

    if (pace->next_span)
        wq__heap_change(&c->waiting, ref, WQ_FOREVER);
    else if (pace->until > now)
        wq__heap_change(&c->waiting, ref, pace->until);
    else
        remove_entry(c, ref);
}

void
wq__core_end_deadline(struct wq__core *c, wq__ref ref, int64_t now)
{
    struct wq__pace *pace = wq__core_pace(c, ref);

    strip(c, ref);
    if (!pace) {
        remove_entry(c, ref);
        return;
    }
    pace->wait_span = 0;
    wq__rec_set(wq__core_rec(c, ref), WQ__QUIET);
    c->quiet++;
    wq__core_settle_quiet(c, ref, now);
}

void
wq__core_meet_deadline(struct wq__core *c, wq__ref ref, int64_t now)
{
    struct wq__pace *pace = wq__core_pace(c, ref);

    if (pace && pace->wait_span)
        pace->next_span = pace->wait_span;
    wq__core_end_deadline(c, ref, now);
}

void
wq__core_defer_to_deadline(struct wq__core *c, wq__ref ref)
{
    struct wq__pace *pace = wq__core_pace(c, ref);

    if (pace && pace->next_span)
        pace->wait_span = pace->next_span;
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
        wq__rec_clear(rec, WQ__QUIET);
        c->quiet--;
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

/* The deadline of `ref` has come. False: it was put off. */
static bool
fall_due(struct wq__core *c, wq__ref ref, int64_t now)
{
    const struct wq__wait *entry = wq__core_entry(c, ref);
    const int64_t          again = wq__span_add(now, WQ__OFFER_AGAIN_NS);
    wq_added               what;

    if (wq__core_rec(c, ref)->flags & WQ__QUIET) {
        remove_entry(c, ref);
        wq__core_forget_if_bare(c, ref);
        return true;
    }
    if (!wq__core_want(c, ref, entry->level, entry->at, &what)) {
        wq__core_meet_deadline(c, ref, now);
        return true;
    }
    if (again > now)
        wq__heap_change(&c->waiting, ref, again);
    return again > now; /* at the end of time there is no later */
}

void
wq__core_promote(struct wq__core *c, int64_t now)
{
    const struct wq__wait *first;

    while ((first = wq__heap_first(&c->waiting)) && first->at <= now)
        if (!fall_due(c, first->ref, now))
            return;
}

static bool
is_quiet_at(const struct wq__core *c, size_t i)
{
    return wq__core_rec(c, c->waiting.entries[i].ref)->flags & WQ__QUIET;
}

/* The first deadline at place `i` of the heap or below it: QUIET entries are
 * passed over. As deep as the heap. */
static int64_t
first_deadline_from(const struct wq__core *c, size_t i)
{
    const size_t child = i * WQ__HEAP_CHILDREN + 1;
    int64_t      first = WQ_FOREVER;

    if (i >= c->waiting.len)
        return first;
    if (!is_quiet_at(c, i))
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

/* From the end to the front: what a removal moves to a place that was passed
 * comes from one that was passed too, or to the place itself. */
void
wq__core_shut_down(struct wq__core *c)
{
    c->shutting_down = true;
    for (size_t i = c->quiet ? c->waiting.len : 0; i-- > 0;)
        while (i < c->waiting.len && is_quiet_at(c, i)) {
            const wq__ref ref = c->waiting.entries[i].ref;
            remove_entry(c, ref); /* there will be no add to throttle */
            wq__core_forget_if_bare(c, ref);
        }
}

/* Does nobody work on the key again, if its deadline goes? A run that is owed
 * serves it, too. */
static bool
is_lost(const struct wq__rec *rec)
{
    return wq__rec_waits(rec) && !wq__rec_is_wanted(rec);
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

/* The deadline of `ref` comes now, or is dropped. False: a wq_order refuses the
 * key. */
static bool
hasten_one(struct wq__core *c, wq__ref ref, int64_t now, bool backoffs)
{
    const struct wq__rec *rec = wq__core_rec(c, ref);
    wq_added              what;

    if (!backoffs && !wq__rec_is_expected(rec))
        c->tally.drops += is_lost(rec);
    else if (wq__core_want(c, ref, wq__core_entry(c, ref)->level, now, &what))
        return false;
    wq__core_stop_waiting(c, ref);
    wq__core_forget_if_bare(c, ref);
    return true;
}

/* In the order of deadlines. Those that are refused gather at the end of time,
 * in the order they were offered in; when only they are left, one assignment
 * each gives them their time, and the heap stays in order. */
void
wq__core_hasten(struct wq__core *c, int64_t now, bool backoffs)
{
    assert(!c->quiet);
    for (size_t n = c->waiting.len; n > 0; n--) {
        const wq__ref ref = wq__heap_first(&c->waiting)->ref;
        if (!hasten_one(c, ref, now, backoffs))
            wq__heap_change(&c->waiting, ref, WQ_FOREVER);
    }
    for (size_t i = 0; i < c->waiting.len; i++)
        c->waiting.entries[i].at = wq__span_add(now, WQ__OFFER_AGAIN_NS);
}
