/* SPDX-License-Identifier: MIT */
/* add.c: what does an add with a purpose do?
 *
 * Priorities, delays, policies for WAITING keys, debounce, throttle, bounds;
 * one key or many. An add prepares: finds or makes a record for every key, and
 * reserves what the commit may need. From then on nothing can fail but a
 * wq_order of the user's.
 */
#include <assert.h>
#include <string.h>

#include "core/inside.h"
#include "core/span.h"

/* Which step of an add needs what. */
struct add {
    const struct wq__how *how;
    uint32_t              level; /* of its priority; held */
    wq__ref               paces; /* spare ones, a list by their first bytes */
};

/* ---- what an add of a kind does to a record ------------------------------ */

/* A deadline is new, and what another one was does not matter any more. */
static void
mark_deadline(struct wq__rec *rec, unsigned flag)
{
    wq__rec_clear(rec, WQ__BACKOFF | WQ__EXPECTED | WQ__DEBOUNCED);
    wq__rec_set(rec, flag);
}

/* The deadline that the key has serves an add, which failed or not. */
static void
expect(struct wq__rec *rec, bool failed)
{
    if (!failed && rec->flags & WQ__BACKOFF)
        wq__rec_set(rec, WQ__EXPECTED);
}

/* A deadline that the key has serves the add. */
static wq_added
join_deadline(struct wq__core *c, wq__ref ref, uint32_t level, bool failed)
{
    c->tally.merged++;
    expect(wq__core_rec(c, ref), failed);
    return wq__core_keep_deadline(c, ref, level);
}

/* An earlier deadline serves an add for `at`: then it is put off no further. */
static wq_added
serve(struct wq__core *c, wq__ref ref, uint32_t level, int64_t at, bool failed)
{
    if (wq__core_rec(c, ref)->flags & WQ__DEBOUNCED &&
        at < wq__core_pace(c, ref)->latest)
        wq__core_pace(c, ref)->latest = at;
    return join_deadline(c, ref, level, failed); /* L5 */
}

/* One deadline meets another. */
static wq_added
move_deadline(struct wq__core *c, wq__ref ref, uint32_t level, int64_t at)
{
    const int64_t  old = wq__core_entry(c, ref)->at;
    const wq_added kept = join_deadline(c, ref, level, true);

    if (at == old)
        return kept;
    wq__heap_change(&c->waiting, ref, at);
    return at < old ? WQ_ADDED_SOONER : WQ_ADDED_LATER;
}

/* Of two levels, that of the higher priority. */
static uint32_t
higher(const struct wq__core *c, uint32_t a, uint32_t b)
{
    return wq__core_is_higher(c, a, b) ? a : b;
}

/* What is READY or DIRTY waits until `at` instead, with the highest priority it
 * was added with. It would have run now, so `at` is later than that, whatever
 * deadline it had.
 */
static wq_added
put_off(struct wq__core *c, const struct add *add, wq__ref ref, int64_t at)
{
    struct wq__rec *rec = wq__core_rec(c, ref);
    const uint32_t  level = higher(c, rec->level, add->level);

    if (wq__rec_waits(rec))
        (void)move_deadline(c, ref, level, at);
    else
        wq__core_begin_deadline(c, ref, level, at);
    mark_deadline(rec, add->how->backoff ? WQ__BACKOFF : 0);
    wq__core_defer_to_deadline(c, ref);
    wq__core_unwant(c, ref);
    c->tally.merged++;
    c->tally.deferred++;
    return WQ_ADDED_LATER;
}

/* Work at a time. */
static wq_added
schedule(struct wq__core *c, const struct add *add, wq__ref ref, int64_t at)
{
    const struct wq__how *how = add->how;
    struct wq__rec       *rec = wq__core_rec(c, ref);
    const unsigned        backoff = how->backoff ? WQ__BACKOFF : 0;

    if (how->waiting == WQ_IF_WAITING_MERGE && wq__rec_is_wanted(rec))
        return wq__core_merge(c, ref, add->level);
    if (how->waiting == WQ_IF_WAITING_REPLACE && wq__rec_is_wanted(rec))
        return put_off(c, add, ref, at);
    if (!wq__rec_waits(rec)) {
        wq__core_begin_deadline(c, ref, add->level, at);
        mark_deadline(rec, backoff);
        return WQ_ADDED_SCHEDULED;
    }
    if (how->waiting == WQ_IF_WAITING_IGNORE) {
        c->tally.merged++;
        expect(rec, how->backoff);
        return WQ_ADDED_KEPT;
    }
    if (at >= wq__core_entry(c, ref)->at &&
        how->waiting != WQ_IF_WAITING_REPLACE)
        return serve(c, ref, add->level, at, how->backoff);
    const bool expected =
        wq__rec_is_expected(rec) && how->waiting != WQ_IF_WAITING_REPLACE;
    mark_deadline(rec, backoff);
    expect(rec, !expected);
    return move_deadline(c, ref, add->level, at);
}

/* Work now, and a deadline it meets is not left alone. */
static wq_err
take_over(struct wq__core *c, const struct add *add, wq__ref ref,
          wq_added *what)
{
    const struct wq__how *how = add->how;
    const uint32_t level = higher(c, wq__core_entry(c, ref)->level, add->level);
    const wq_err   err = wq__core_want(c, ref, level, how->now, what);

    if (err)
        return err;
    wq__core_meet_deadline(c, ref, how->now);
    c->tally.merged++;
    return WQ_OK;
}

/* Work now. */
static wq_err
want_now(struct wq__core *c, const struct add *add, wq__ref ref, wq_added *what)
{
    const struct wq__how *how = add->how;
    const struct wq__rec *rec = wq__core_rec(c, ref);

    if (wq__rec_waits(rec) && how->waiting != WQ_IF_WAITING_KEEP) {
        if (how->waiting != WQ_IF_WAITING_IGNORE)
            return take_over(c, add, ref, what);
        c->tally.merged++;
        expect(wq__core_rec(c, ref), false);
        *what = WQ_ADDED_KEPT;
        return WQ_OK;
    }
    if ((how->respect || c->respect) && wq__rec_backs_off(rec)) {
        *what = join_deadline(c, ref, add->level, false);
        return WQ_OK;
    }
    return wq__core_want(c, ref, add->level, how->now, what);
}

/* ---- pace --------------------------------------------------------------- */

/* What is remembered about a key that has an entry in the heap; new if need
 * be. */
static struct wq__pace *
pace_of(struct wq__core *c, struct add *add, wq__ref ref)
{
    struct wq__pace *pace = wq__core_pace(c, ref);
    if (pace)
        return pace;

    wq__core_entry(c, ref)->pace = add->paces;
    pace = wq__slab_at(&c->paces, add->paces);
    memcpy(&add->paces, pace, sizeof add->paces);
    *pace = (struct wq__pace){.until = INT64_MIN};
    return pace;
}

static int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The first of a series of debounced adds. What the key waits for already is
 * not put off by any of them. */
static wq_added
begin_series(struct wq__core *c, struct add *add, wq__ref ref, int64_t at)
{
    const struct wq__how *how = add->how;
    struct wq__rec       *rec = wq__core_rec(c, ref);
    wq_added              what = WQ_ADDED_SCHEDULED;
    int64_t               latest =
        how->max_wait ? wq__span_add(how->now, how->max_wait) : WQ_FOREVER;

    at = earlier(at, latest);
    if (wq__rec_waits(rec)) {
        const int64_t old = wq__core_entry(c, ref)->at;
        if (at >= old)
            return join_deadline(c, ref, add->level, false); /* L5 */
        latest = earlier(latest, old);
        what = move_deadline(c, ref, add->level, at);
    } else {
        wq__core_begin_deadline(c, ref, add->level, at);
    }
    mark_deadline(rec, WQ__DEBOUNCED);
    pace_of(c, add, ref)->latest = latest;
    return what;
}

static wq_added
debounce(struct wq__core *c, struct add *add, wq__ref ref)
{
    const struct wq__how *how = add->how;
    const struct wq__rec *rec = wq__core_rec(c, ref);
    const int64_t         at = wq__span_add(how->now, how->span);

    if (wq__rec_is_wanted(rec))
        return wq__core_merge(c, ref, add->level);
    if (wq__core_respects_backoff(c, rec))
        return join_deadline(c, ref, add->level, false);
    if (rec->flags & WQ__DEBOUNCED)
        return move_deadline(c, ref, add->level,
                             earlier(at, wq__core_pace(c, ref)->latest));
    return begin_series(c, add, ref, at);
}

/* A key that is READY or DIRTY is to be left alone after its hand-out. If it has
 * no deadline, an entry that never comes remembers that. */
static void
throttle_next_run(struct wq__core *c, struct add *add, wq__ref ref)
{
    struct wq__rec *rec = wq__core_rec(c, ref);

    if (!rec->wait) {
        wq__heap_push(&c->waiting, ref, WQ_FOREVER);
        wq__rec_set(rec, WQ__QUIET);
        c->quiet++;
    }
    pace_of(c, add, ref)->next_span = add->how->span;
    if (rec->flags & WQ__QUIET) /* until the hand-out */
        wq__heap_change(&c->waiting, ref, WQ_FOREVER);
}

/* The same after the run that its deadline asks for. */
static void
throttle_waiting_run(struct wq__core *c, struct add *add, wq__ref ref)
{
    pace_of(c, add, ref)->wait_span = add->how->span;
}

/* Is the key, which is not wanted, to be left alone? Then until when. */
static bool
is_quiet(struct wq__core *c, wq__ref ref, int64_t now, int64_t *until)
{
    const struct wq__rec *rec = wq__core_rec(c, ref);
    if (wq__rec_is_wanted(rec) || !rec->wait)
        return false;

    const struct wq__pace *pace = wq__core_pace(c, ref);
    if (!pace || pace->until <= now)
        return false;
    *until = pace->until;
    return true;
}

static wq_err
throttle(struct wq__core *c, struct add *add, wq__ref ref, wq_added *what)
{
    wq_err  err = WQ_OK;
    int64_t until;

    if (is_quiet(c, ref, add->how->now, &until))
        *what = wq__core_respects_backoff(c, wq__core_rec(c, ref))
                    ? join_deadline(c, ref, add->level, false)
                    : schedule(c, add, ref, until);
    else
        err = want_now(c, add, ref, what);
    if (err)
        return err;
    if (wq__rec_is_wanted(wq__core_rec(c, ref)))
        throttle_next_run(c, add, ref);
    else /* left alone, or in a backoff that is respected */
        throttle_waiting_run(c, add, ref);
    return WQ_OK;
}

static wq_err
commit(struct wq__core *c, struct add *add, struct wq__pick *pick)
{
    if (pick->skip) {
        c->tally.merged++;
        pick->added = WQ_ADDED_KEPT;
        return WQ_OK;
    }
    switch (add->how->kind) {
    case WQ__ADD_AT:
        if (pick->at_once)
            return want_now(c, add, pick->ref, &pick->added);
        pick->added = schedule(c, add, pick->ref, pick->at);
        pick->backoff = wq__core_rec(c, pick->ref)->flags & WQ__BACKOFF;
        return WQ_OK;
    case WQ__ADD_DEBOUNCE:
        pick->added = debounce(c, add, pick->ref);
        return WQ_OK;
    case WQ__ADD_THROTTLE:
        return throttle(c, add, pick->ref, &pick->added);
    case WQ__ADD_NOW:
    default:
        return want_now(c, add, pick->ref, &pick->added);
    }
}

/* ---- preparing ---------------------------------------------------------- */

static void
free_paces(struct wq__core *c, struct add *add)
{
    while (add->paces) {
        const wq__ref ref = add->paces;
        memcpy(&add->paces, wq__slab_at(&c->paces, ref), sizeof add->paces);
        wq__slab_free(&c->paces, ref);
    }
}

static wq_err
reserve_paces(struct wq__core *c, struct add *add, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        wq__ref ref;
        void   *pace = wq__slab_alloc(&c->paces, sizeof(struct wq__pace), &ref);
        if (!pace)
            return WQ_ENOMEM;
        memcpy(pace, &add->paces, sizeof add->paces);
        add->paces = ref;
    }
    return WQ_OK;
}

/* What was reserved and is not needed. */
static void
give_up(struct wq__core *c, struct add *add)
{
    free_paces(c, add);
    wq__heap_give_up(&c->waiting);
}

/* What the commit may need besides records. */
static wq_err
reserve(struct wq__core *c, struct add *add, size_t n)
{
    const struct wq__how *how = add->how;
    wq_err                err = WQ_OK;

    if (how->kind != WQ__ADD_NOW)
        err = wq__heap_reserve(&c->waiting, n);
    if (!err &&
        (how->kind == WQ__ADD_DEBOUNCE || how->kind == WQ__ADD_THROTTLE))
        err = reserve_paces(c, add, n);
    if (!err)
        err = wq__levels_find(&c->ready.levels, how->priority, &add->level);
    if (err)
        give_up(c, add);
    return err;
}

/* Records that were made for the first `n` picks, and not used, go. */
static void
drop_picks(struct wq__core *c, const struct wq__pick *picks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (picks[i].made)
            wq__core_forget_if_bare(c, picks[i].ref);
}

/* A record for each key; *made: what new ones need. WQ_ENOMEM: as before;
 * WQ_EFULL: they never fit. */
static wq_err
pick_records(struct wq__core *c, const wq_key *keys, struct wq__pick *picks,
             size_t n, struct wq__space *made)
{
    enum { AHEAD = 4 }; /* keys; a slot that is far away takes some 100 ns */

    *made = (struct wq__space){0};
    for (size_t i = 0; i < n; i++) {
        struct wq__pick *pick = &picks[i];

        if (i + AHEAD < n)
            wq__index_foresee(&c->index, picks[i + AHEAD].hash);
        pick->made = false;
        if (pick->skip) {
            pick->ref = wq__index_find(&c->index, keys[i], pick->hash);
            continue;
        }
        const wq_err err = wq__core_find_or_make(c, keys[i], pick);
        if (err) {
            drop_picks(c, picks, i);
            return err;
        }
        if (!pick->made)
            continue;
        made->keys++;
        made->bytes += keys[i].len;
        if (!wq__core_ever_fits(c, *made)) {
            drop_picks(c, picks, i + 1);
            return WQ_EFULL;
        }
    }
    return WQ_OK;
}

/* ---- what is offered ---------------------------------------------------- */

static wq_err
commit_all(struct wq__core *c, struct add *add, struct wq__pick *picks,
           size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const wq_err err = commit(c, add, &picks[i]);
        if (err)
            return err;
    }
    return WQ_OK;
}

static wq_err
add_picks(struct wq__core *c, struct add *add, const wq_key *keys,
          struct wq__pick *picks, size_t n, struct wq__space *needs,
          wq__ref *victims)
{
    struct wq__space made;
    wq_err           err = pick_records(c, keys, picks, n, &made);

    if (needs)
        *needs = made;
    if (err)
        return err;
    if (made.keys)
        err = wq__core_make_room(c, add->how, add->level, picks, n, victims);
    if (err) {
        drop_picks(c, picks, n);
        return err;
    }
    if (needs)
        *needs = (struct wq__space){0};
    err = commit_all(c, add, picks, n);
    if (err)
        drop_picks(c, picks, n);
    return err;
}

wq_err
wq__core_add_with(struct wq__core *c, const struct wq__how *how,
                  const wq_key *keys, struct wq__pick *picks, size_t n,
                  struct wq__space *needs, wq__ref *victims)
{
    struct add add = {.how = how};

    if (victims)
        *victims = 0;
    if (c->shutting_down)
        return WQ_ESHUTDOWN;
    if (how->kind == WQ__ADD_AT && how->waiting == WQ_IF_WAITING_REPLACE &&
        !wq__ready_can_remove(&c->ready))
        return WQ_ENOTSUP; /* what is READY could not be put off */
    wq_err err = reserve(c, &add, n);
    if (err)
        return err;
    err = add_picks(c, &add, keys, picks, n, needs, victims);
    give_up(c, &add);
    wq__levels_release(&c->ready.levels, add.level);
    return err;
}

wq_err
wq__core_add_urgent(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
                    int priority, wq_added *what)
{
    uint32_t level;

    if (c->shutting_down)
        return WQ_ESHUTDOWN;
    wq_err err = wq__levels_find(&c->ready.levels, priority, &level);
    if (err)
        return err;
    err = wq__core_admit_to(c, key, hash, now, level, what);
    wq__levels_release(&c->ready.levels, level);
    return err;
}

wq_err
wq__core_add_after(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
                   int64_t at, bool backoff, wq_added *what)
{
    const struct wq__how how = {
        .kind = WQ__ADD_AT, .now = now, .backoff = backoff};
    struct wq__pick pick = {.hash = hash, .at = at};
    const wq_err err = wq__core_add_with(c, &how, &key, &pick, 1, NULL, NULL);

    if (!err)
        *what = pick.added;
    return err;
}
