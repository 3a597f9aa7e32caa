/* SPDX-License-Identifier: MIT */
/* add.c: what does an add with options do?
 *
 * Options are priorities, delays, policies for WAITING keys, debounce, throttle
 * and bounds, for one key or many. An add first prepares: it finds or creates a
 * record for every key and reserves the memory that the commit may need. After
 * that only a wq_order of the user can fail.
 */
#include <assert.h>
#include <string.h>

#include "core/inside.h"
#include "core/span.h"

/* What the steps of one add share. */
struct add {
    const struct wq__how *how;
    uint32_t              level; /* of its priority; the add holds it */
    /* Reserved throttle states: a list, linked by their first bytes. */
    wq__ref spare_states;
};

/* ---- what an add of a kind does to a record ------------------------------ */

/* The record has a new deadline, of the kind `flag`: forget the kind of the old
 * one. */
static void
mark_deadline(struct wq__rec *rec, unsigned flag)
{
    wq__rec_clear(rec, WQ__BACKOFF | WQ__COVERS_ADD | WQ__DEBOUNCED);
    wq__rec_set(rec, flag);
}

/* The deadline of the key covers an add that was not a failure. Only a backoff
 * must note that. */
static void
set_covers_add(struct wq__rec *rec)
{
    if (rec->flags & WQ__BACKOFF)
        wq__rec_set(rec, WQ__COVERS_ADD);
}

/* Count the add as merged, and keep the deadline of the key, with the higher of
 * the two priorities. */
static wq_added
count_merged_and_keep(struct wq__core *c, wq__ref ref, uint32_t level)
{
    c->tally.merged++;
    return wq__core_keep_deadline(c, ref, level);
}

/* The run at the key's existing deadline covers this add; the add sets no
 * deadline of its own. `failed`: the key was added because it failed. */
static wq_added
join_deadline(struct wq__core *c, wq__ref ref, uint32_t level, bool failed)
{
    if (!failed)
        set_covers_add(wq__core_rec(c, ref));
    return count_merged_and_keep(c, ref, level);
}

/* The same for an add for `at`, which is not before the key's deadline. A
 * debounced deadline must not move beyond `at` from now on. */
static wq_added
join_earlier_deadline(struct wq__core *c, wq__ref ref, uint32_t level,
                      int64_t at, bool failed)
{
    if (wq__core_rec(c, ref)->flags & WQ__DEBOUNCED &&
        at < wq__core_throttle_state(c, ref)->latest)
        wq__core_throttle_state(c, ref)->latest = at;
    /* The earlier deadline stays: law L5, docs/design.md. */
    return join_deadline(c, ref, level, failed);
}

/* Move the deadline of the key to `at`. */
static wq_added
move_deadline(struct wq__core *c, wq__ref ref, uint32_t level, int64_t at)
{
    const int64_t  old = wq__core_entry(c, ref)->at;
    const wq_added kept = count_merged_and_keep(c, ref, level);

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

/* A READY or DIRTY key becomes WAITING until `at` instead, with the highest
 * priority it was added with. The answer is LATER, whatever deadline the key
 * had: without this add it would run now. */
static wq_added
defer_to(struct wq__core *c, const struct add *add, wq__ref ref, int64_t at)
{
    struct wq__rec *rec = wq__core_rec(c, ref);
    const uint32_t  level = higher(c, rec->level, add->level);

    if (wq__rec_waits(rec))
        (void)move_deadline(c, ref, level, at);
    else
        wq__core_begin_deadline(c, ref, level, at);
    mark_deadline(rec, add->how->backoff ? WQ__BACKOFF : 0);
    wq__core_defer_to_deadline(c, ref);
    wq__core_withdraw_run(c, ref);
    c->tally.merged++;
    c->tally.deferred++;
    return WQ_ADDED_LATER;
}

/* Request a run at `at`. */
static wq_added
schedule(struct wq__core *c, const struct add *add, wq__ref ref, int64_t at)
{
    const struct wq__how *how = add->how;
    struct wq__rec       *rec = wq__core_rec(c, ref);
    const unsigned        backoff = how->backoff ? WQ__BACKOFF : 0;

    if (how->waiting == WQ_IF_WAITING_MERGE && wq__rec_is_pending(rec))
        return wq__core_merge(c, ref, add->level);
    if (how->waiting == WQ_IF_WAITING_REPLACE && wq__rec_is_pending(rec))
        return defer_to(c, add, ref, at);
    if (!wq__rec_waits(rec)) {
        wq__core_begin_deadline(c, ref, add->level, at);
        mark_deadline(rec, backoff);
        return WQ_ADDED_SCHEDULED;
    }
    if (how->waiting == WQ_IF_WAITING_IGNORE) {
        c->tally.merged++;
        if (!how->backoff)
            set_covers_add(rec);
        return WQ_ADDED_KEPT;
    }
    if (at >= wq__core_entry(c, ref)->at &&
        how->waiting != WQ_IF_WAITING_REPLACE)
        return join_earlier_deadline(c, ref, add->level, at, how->backoff);
    const bool covers_add =
        wq__rec_covers_add(rec) && how->waiting != WQ_IF_WAITING_REPLACE;
    mark_deadline(rec, backoff);
    if (covers_add)
        set_covers_add(rec);
    return move_deadline(c, ref, add->level, at);
}

/* Request a run now, which also covers the adds that the key's deadline covers:
 * the deadline ends. */
static wq_err
take_over(struct wq__core *c, const struct add *add, wq__ref ref,
          wq_added *what)
{
    const struct wq__how *how = add->how;
    const uint32_t level = higher(c, wq__core_entry(c, ref)->level, add->level);
    const wq_err   err = wq__core_request_run(c, ref, level, how->now, what);

    if (err)
        return err;
    wq__core_meet_deadline(c, ref, how->now);
    c->tally.merged++;
    return WQ_OK;
}

/* Request a run now. */
static wq_err
request_now(struct wq__core *c, const struct add *add, wq__ref ref,
            wq_added *what)
{
    const struct wq__how *how = add->how;
    const struct wq__rec *rec = wq__core_rec(c, ref);

    if (wq__rec_waits(rec) && how->waiting != WQ_IF_WAITING_KEEP) {
        if (how->waiting != WQ_IF_WAITING_IGNORE)
            return take_over(c, add, ref, what);
        c->tally.merged++;
        set_covers_add(wq__core_rec(c, ref));
        *what = WQ_ADDED_KEPT;
        return WQ_OK;
    }
    if ((how->respect || c->respect) && wq__rec_backs_off(rec)) {
        *what = join_deadline(c, ref, add->level, false);
        return WQ_OK;
    }
    return wq__core_request_run(c, ref, add->level, how->now, what);
}

/* ---- debounce and throttle ---------------------------------------------- */

/* The throttle state of a key that has an entry in the heap; a new one if it
 * has none. */
static struct wq__throttle_state *
throttle_state_of(struct wq__core *c, struct add *add, wq__ref ref)
{
    struct wq__throttle_state *state = wq__core_throttle_state(c, ref);
    if (state)
        return state;

    wq__core_entry(c, ref)->throttle = add->spare_states;
    state = wq__slab_at(&c->throttle_states, add->spare_states);
    memcpy(&add->spare_states, state, sizeof add->spare_states);
    *state = (struct wq__throttle_state){.cooldown_until = INT64_MIN};
    return state;
}

static int64_t
earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The first of a series of debounced adds. If the key already has a deadline,
 * no add of the series moves the run to a time after that deadline. */
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
        if (at >= old) /* the earlier deadline stays: L5 */
            return join_deadline(c, ref, add->level, false);
        latest = earlier(latest, old);
        what = move_deadline(c, ref, add->level, at);
    } else {
        wq__core_begin_deadline(c, ref, add->level, at);
    }
    mark_deadline(rec, WQ__DEBOUNCED);
    throttle_state_of(c, add, ref)->latest = latest;
    return what;
}

static wq_added
debounce(struct wq__core *c, struct add *add, wq__ref ref)
{
    const struct wq__how *how = add->how;
    const struct wq__rec *rec = wq__core_rec(c, ref);
    const int64_t         at = wq__span_add(how->now, how->span);

    if (wq__rec_is_pending(rec))
        return wq__core_merge(c, ref, add->level);
    if (wq__core_respects_backoff(c, rec))
        return join_deadline(c, ref, add->level, false);
    if (rec->flags & WQ__DEBOUNCED)
        return move_deadline(
            c, ref, add->level,
            earlier(at, wq__core_throttle_state(c, ref)->latest));
    return begin_series(c, add, ref, at);
}

/* The next hand-out of a READY or DIRTY key will be followed by a cooldown. If
 * the key has no entry in the delay heap, create one at WQ_FOREVER, because
 * only an entry can have a throttle state. */
static void
throttle_next_run(struct wq__core *c, struct add *add, wq__ref ref)
{
    struct wq__rec *rec = wq__core_rec(c, ref);

    if (!rec->wait) {
        wq__heap_push(&c->waiting, ref, WQ_FOREVER);
        wq__rec_set(rec, WQ__COOLDOWN);
        c->cooldowns++;
    }
    throttle_state_of(c, add, ref)->next_cooldown = add->how->span;
    if (rec->flags & WQ__COOLDOWN) /* it begins at the hand-out */
        wq__heap_change(&c->waiting, ref, WQ_FOREVER);
}

/* The run at the key's deadline will be followed by a cooldown. */
static void
throttle_waiting_run(struct wq__core *c, struct add *add, wq__ref ref)
{
    throttle_state_of(c, add, ref)->wait_cooldown = add->how->span;
}

/* Is the key, of which no run is pending, in its cooldown? *until: its end. */
static bool
is_cooling_down(struct wq__core *c, wq__ref ref, int64_t now, int64_t *until)
{
    const struct wq__rec *rec = wq__core_rec(c, ref);
    if (wq__rec_is_pending(rec) || !rec->wait)
        return false;

    const struct wq__throttle_state *state = wq__core_throttle_state(c, ref);
    if (!state || state->cooldown_until <= now)
        return false;
    *until = state->cooldown_until;
    return true;
}

static wq_err
throttle(struct wq__core *c, struct add *add, wq__ref ref, wq_added *what)
{
    wq_err  err = WQ_OK;
    int64_t until;

    if (is_cooling_down(c, ref, add->how->now, &until))
        *what = wq__core_respects_backoff(c, wq__core_rec(c, ref))
                    ? join_deadline(c, ref, add->level, false)
                    : schedule(c, add, ref, until);
    else
        err = request_now(c, add, ref, what);
    if (err)
        return err;
    if (wq__rec_is_pending(wq__core_rec(c, ref)))
        throttle_next_run(c, add, ref);
    else /* in its cooldown, or in a backoff that is respected */
        throttle_waiting_run(c, add, ref);
    return WQ_OK;
}

static wq_err
commit(struct wq__core *c, struct add *add, struct wq__prepared *prepared)
{
    if (prepared->skip) {
        c->tally.merged++;
        prepared->added = WQ_ADDED_KEPT;
        return WQ_OK;
    }
    switch (add->how->kind) {
    case WQ__ADD_AT:
        if (prepared->at_once)
            return request_now(c, add, prepared->ref, &prepared->added);
        prepared->backoff = wq__core_rec(c, prepared->ref)->flags & WQ__BACKOFF;
        prepared->added = schedule(c, add, prepared->ref, prepared->at);
        return WQ_OK;
    case WQ__ADD_DEBOUNCE:
        prepared->added = debounce(c, add, prepared->ref);
        return WQ_OK;
    case WQ__ADD_THROTTLE:
        return throttle(c, add, prepared->ref, &prepared->added);
    case WQ__ADD_NOW:
    default:
        return request_now(c, add, prepared->ref, &prepared->added);
    }
}

/* ---- preparing ---------------------------------------------------------- */

static void
free_states(struct wq__core *c, struct add *add)
{
    while (add->spare_states) {
        const wq__ref ref = add->spare_states;
        memcpy(&add->spare_states, wq__slab_at(&c->throttle_states, ref),
               sizeof add->spare_states);
        wq__slab_free(&c->throttle_states, ref);
    }
}

static wq_err
reserve_states(struct wq__core *c, struct add *add, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        wq__ref ref;
        void   *state = wq__slab_alloc(&c->throttle_states,
                                       sizeof(struct wq__throttle_state), &ref);
        if (!state)
            return WQ_ENOMEM;
        memcpy(state, &add->spare_states, sizeof add->spare_states);
        add->spare_states = ref;
    }
    return WQ_OK;
}

/* Free what was reserved and not used. */
static void
release_reserved(struct wq__core *c, struct add *add)
{
    free_states(c, add);
    wq__heap_release_reserved(&c->waiting);
}

/* Reserve what the commit may need besides records. */
static wq_err
reserve(struct wq__core *c, struct add *add, size_t n)
{
    const struct wq__how *how = add->how;
    wq_err                err = WQ_OK;

    if (how->kind != WQ__ADD_NOW)
        err = wq__heap_reserve(&c->waiting, n);
    if (!err &&
        (how->kind == WQ__ADD_DEBOUNCE || how->kind == WQ__ADD_THROTTLE))
        err = reserve_states(c, add, n);
    if (!err)
        err = wq__levels_find(&c->ready.levels, how->priority, &add->level);
    if (err)
        release_reserved(c, add);
    return err;
}

/* Free the records that this add created for its first `n` keys and did not
 * use. */
static void
free_unused_records(struct wq__core *c, const struct wq__prepared *prepared,
                    size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (prepared[i].made)
            wq__core_forget_if_bare(c, prepared[i].ref);
}

/* Find or create a record for each key. *made: the capacity that the new ones
 * need. WQ_ENOMEM: nothing has changed; WQ_EFULL: the new ones exceed the
 * bounds of an empty queue. */
static wq_err
find_records(struct wq__core *c, const wq_key *keys,
             struct wq__prepared *prepared, size_t n, struct wq__capacity *made)
{
    *made = (struct wq__capacity){0};
    for (size_t i = 0; i < n; i++) {
        struct wq__prepared *p = &prepared[i];

        if (i + WQ__AHEAD < n)
            wq__index_prefetch(&c->index, prepared[i + WQ__AHEAD].hash);
        p->made = false;
        if (p->skip) {
            p->ref = wq__index_find(&c->index, keys[i], p->hash);
            continue;
        }
        const wq_err err = wq__core_find_or_make(c, keys[i], p);
        if (err) {
            free_unused_records(c, prepared, i);
            return err;
        }
        if (!p->made)
            continue;
        made->keys++;
        made->bytes += keys[i].len;
        if (!wq__core_ever_fits(c, *made)) {
            free_unused_records(c, prepared, i + 1);
            return WQ_EFULL;
        }
    }
    return WQ_OK;
}

/* ---- interface ---------------------------------------------------------- */

static wq_err
commit_all(struct wq__core *c, struct add *add, struct wq__prepared *prepared,
           size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const wq_err err = commit(c, add, &prepared[i]);
        if (err)
            return err;
    }
    return WQ_OK;
}

static wq_err
add_prepared(struct wq__core *c, struct add *add, const wq_key *keys,
             struct wq__prepared *prepared, size_t n,
             struct wq__capacity *needs, wq__ref *victims)
{
    struct wq__capacity made;
    wq_err              err = find_records(c, keys, prepared, n, &made);

    if (needs)
        *needs = made;
    if (err)
        return err;
    if (made.keys)
        err = wq__core_ensure_capacity(c, add->how, add->level, prepared, n,
                                       victims);
    if (err) {
        free_unused_records(c, prepared, n);
        return err;
    }
    if (needs)
        *needs = (struct wq__capacity){0};
    err = commit_all(c, add, prepared, n);
    if (err)
        free_unused_records(c, prepared, n);
    return err;
}

wq_err
wq__core_add_with(struct wq__core *c, const struct wq__how *how,
                  const wq_key *keys, struct wq__prepared *prepared, size_t n,
                  struct wq__capacity *needs, wq__ref *victims)
{
    struct add add = {.how = how};

    if (victims)
        *victims = 0;
    if (c->shutting_down)
        return WQ_ESHUTDOWN;
    if (how->kind == WQ__ADD_AT && how->waiting == WQ_IF_WAITING_REPLACE &&
        !wq__ready_can_remove(&c->ready))
        return WQ_ENOTSUP; /* a READY key could not become WAITING */
    wq_err err = reserve(c, &add, n);
    if (err)
        return err;
    err = add_prepared(c, &add, keys, prepared, n, needs, victims);
    release_reserved(c, &add);
    wq__levels_release(&c->ready.levels, add.level);
    return err;
}

wq_err
wq__core_add_with_priority(struct wq__core *c, wq_key key, uint32_t hash,
                           int64_t now, int priority, wq_added *what)
{
    uint32_t level;

    if (c->shutting_down)
        return WQ_ESHUTDOWN;
    wq_err err = wq__levels_find(&c->ready.levels, priority, &level);
    if (err)
        return err;
    err = wq__core_admit_at_level(c, key, hash, now, level, what);
    wq__levels_release(&c->ready.levels, level);
    return err;
}

wq_err
wq__core_add_after(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
                   int64_t at, bool backoff, wq_added *what)
{
    const struct wq__how how = {
        .kind = WQ__ADD_AT, .now = now, .backoff = backoff};
    struct wq__prepared prepared = {.hash = hash, .at = at};
    const wq_err        err =
        wq__core_add_with(c, &how, &key, &prepared, 1, NULL, NULL);

    if (!err)
        *what = prepared.added;
    return err;
}

int64_t
wq__core_deadline(const struct wq__core *c, wq_key key, uint32_t hash)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);

    return ref && wq__rec_waits(wq__core_rec(c, ref))
               ? wq__core_entry(c, ref)->at
               : WQ_FOREVER;
}

void
wq__core_replace_deadline(struct wq__core *c, wq_key key, uint32_t hash,
                          int64_t at, bool backoff)
{
    const wq__ref ref = wq__index_find(&c->index, key, hash);

    if (!ref || !wq__rec_waits(wq__core_rec(c, ref)))
        return;
    mark_deadline(wq__core_rec(c, ref), backoff ? WQ__BACKOFF : 0);
    wq__heap_change(&c->waiting, ref, at);
}
