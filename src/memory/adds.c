/* SPDX-License-Identifier: MIT */
/* adds.c: how do keys come in, and how are they taken back?
 *
 * Enter, catch up, ask the core, leave (gate.h). A plain add goes through the
 * inbox instead (inbox.h) if another thread takes the keys out, or has the
 * lock. A queue with a bound has none: its adds must know whether there is room
 * (room.c).
 */
#include "core/mem.h"
#include "core/span.h"
#include "error/error.h"
#include "memory/gate.h"
#include "port/relax.h"
#include "port/slot.h"
#include "port/time.h"

/* ---- what a key belongs to ---------------------------------------------- */

static bool
is_part_of(wq_key part, wq_key whole)
{
    const uintptr_t from = (uintptr_t)whole.data;
    const uintptr_t at = (uintptr_t)part.data;

    if (!part.len)
        return true;
    return at >= from && part.len <= whole.len &&
           at - from <= whole.len - part.len;
}

wq_err
wq__memory_pick(struct wq__memory *m, wq_key key, struct wq__pick *pick)
{
    *pick = (struct wq__pick){.hash = wq__core_hash(&m->core, key)};
    if (!m->group)
        return WQ_OK;
    pick->group = m->group(m->group_ctx, key);
    if (!is_part_of(pick->group, key))
        return wq_fail(WQ_EINVAL,
                       "wq_config.group returned bytes outside the key");
    if (pick->group.len)
        pick->group_hash = wq__core_hash(&m->core, pick->group);
    return WQ_OK;
}

/* ---- one key, as it comes ----------------------------------------------- */

/* Does a getter spin, while others sleep, for longer than any spin lasts? Asked
 * for the first of the keys that are left to it, to save clock reads. */
static bool
has_lost_spinner(struct wq__memory *m, uint64_t position, uint64_t from)
{
    return from - position == WQ__SPARED &&
           wq__time_now() >
               atomic_load_explicit(&m->spin_ends_ns, memory_order_relaxed);
}

/* The key was handed over at `position`. Getters that sleep must learn of it; if
 * none does, whoever takes the lock next finds it (inbox.h, I4). */
static void
rouse(struct wq__memory *m, uint64_t position)
{
    wq__dawdle();
    const uint64_t from = atomic_load(&m->rouse_from);
    if (position < from && !has_lost_spinner(m, position, from))
        return;
    wq__gate_enter(m);
    wq__gate_give_up_spinner(m);
    (void)wq__gate_catch_up(m); /* for lack of memory, a getter is woken too */
    wq__gate_leave(m);
}

/* Does another thread take the keys out, and is it awake? Then it is left alone
 * with the core, whose memory stays near its processor. */
static bool
is_for_another(struct wq__memory *m)
{
    const void *getter = atomic_load_explicit(&m->getter, memory_order_relaxed);

    return getter && getter != wq__slot_mark() &&
           atomic_load_explicit(&m->rouse_from, memory_order_relaxed) != 0;
}

/* A getter that is at work empties a full inbox within microseconds, and lets
 * more in when it has few keys left. Who waits for that, rather than for the
 * lock, leaves it alone with the core, and does not run ahead of it until the
 * keys fill more than the caches.
 *
 * If that was in vain, the getter works on one key for long, or has many more:
 * the next times nobody waits, twice as often each time. All of it is a guess,
 * on which nothing but speed depends: relaxed. */
static void
await_room_in_inbox(struct wq__memory *m)
{
    enum { LOOKS = 400, MOST = 1 << 10 }; /* some 8 us */
    const unsigned skips =
        atomic_load_explicit(&m->skips, memory_order_relaxed);

    if (skips) {
        atomic_store_explicit(&m->skips, skips - 1, memory_order_relaxed);
        return;
    }
    for (int i = 0; i < LOOKS; i++) {
        if (!wq__inbox_is_full(&m->inbox)) {
            atomic_store_explicit(&m->in_vain, 0, memory_order_relaxed);
            return;
        }
        wq__pause();
    }
    const unsigned before =
        atomic_load_explicit(&m->in_vain, memory_order_relaxed);
    const unsigned vain = before < MOST ? 2 * before + 1 : before;
    atomic_store_explicit(&m->in_vain, vain, memory_order_relaxed);
    atomic_store_explicit(&m->skips, vain, memory_order_relaxed);
}

/* The time, for what is handed over. */
static int64_t
hand_over_time(struct wq__memory *m, int64_t stamp)
{
    if (m->core.ages ||
        !atomic_load_explicit(&m->wait_hint, memory_order_relaxed))
        return stamp;
    return m->clock->now(m->clock);
}

/* Hand the key over; or else, wait for the lock. */
static bool
hand_over_or_enter(struct wq__memory *m, wq_key key, uint32_t hash,
                   int64_t stamp)
{
    const int64_t now = hand_over_time(m, stamp);
    uint64_t      position;

    if (wq__inbox_is_full(&m->inbox) &&
        atomic_load_explicit(&m->getter, memory_order_relaxed))
        await_room_in_inbox(m);
    if (wq__inbox_put(&m->inbox, key, hash, now, &position)) {
        rouse(m, position);
        return true;
    }
    wq__gate_enter(m);
    if (m->has_inbox)
        wq__inbox_open(&m->inbox);
    if (!m->core.waiting.len)
        atomic_store_explicit(&m->wait_hint, false, memory_order_relaxed);
    return false;
}

static wq_err
add_plain(struct wq__memory *m, wq_key key, uint32_t hash)
{
    const int64_t now = wq__memory_stamp(m);
    wq_added      what;

    if ((is_for_another(m) || !wq__lock_try(&m->lock)) &&
        hand_over_or_enter(m, key, hash, now))
        return WQ_OK;
    wq_err err = wq__gate_catch_up(m);
    if (!err)
        err = wq__core_add(&m->core, key, hash, now, &what);
    wq__inbox_grant(&m->inbox); /* who had to take the lock need not again */
    wq__gate_leave(m);
    return err;
}

static wq_err
add_picked(struct wq__memory *m, wq_key key)
{
    const struct wq__how how = {.kind = WQ__ADD_NOW};
    struct wq__pick      pick;
    const wq_err         err = wq__memory_pick(m, key, &pick);

    if (err)
        return err;
    return wq__memory_add_picks(m, &how, &key, &pick, 1, WQ_FOREVER);
}

wq_err
wq__memory_add(wq_queue *q, wq_key key)
{
    struct wq__memory *m = wq__memory_of(q);

    return m->needs_picks ? add_picked(m, key)
                          : add_plain(m, key, wq__core_hash(&m->core, key));
}

/* ---- many keys, and options --------------------------------------------- */

enum { PICKS_AT_HAND = 16 }; /* keys that need no memory to be added */

static wq_err
pick_all(struct wq__memory *m, const wq_key *keys, struct wq__pick *picks,
         size_t n)
{
    wq_err err = WQ_OK;

    for (size_t i = 0; !err && i < n; i++)
        err = wq__memory_pick(m, keys[i], &picks[i]);
    return err;
}

static struct wq__pick *
make_picks(struct wq__memory *m, struct wq__pick *at_hand, size_t n)
{
    return n <= PICKS_AT_HAND
               ? at_hand
               : wq__mem_array(&m->shared_mem, n, sizeof *at_hand);
}

static void
free_picks(struct wq__memory *m, struct wq__pick *at_hand,
           struct wq__pick *picks, size_t n)
{
    if (picks != at_hand)
        wq__mem_free(&m->shared_mem, picks, n * sizeof *picks);
}

static struct wq__how
translate(struct wq__memory *m, const wq_add_options *options)
{
    struct wq__how how = {
        .kind = WQ__ADD_NOW,
        .priority = options->priority,
        .waiting = options->waiting,
        .max_wait = options->max_wait_ns,
    };

    if (options->after_ns > 0) {
        how.kind = WQ__ADD_AT;
    } else if (options->debounce_ns) {
        how.kind = WQ__ADD_DEBOUNCE;
        how.span = options->debounce_ns;
    } else if (options->throttle_ns) {
        how.kind = WQ__ADD_THROTTLE;
        how.span = options->throttle_ns;
    }
    if (how.kind != WQ__ADD_NOW)
        how.now = m->clock->now(m->clock);
    return how;
}

static void
count_retries(struct wq__memory *m, size_t n)
{
    atomic_fetch_add_explicit(&m->retries, n, memory_order_relaxed);
    wq__gate_tell(m);
}

/* Nothing but a priority: the one key needs no preparing. */
static bool
is_simple(struct wq__memory *m, const wq_add_options *options, size_t n)
{
    return n == 1 && !m->needs_picks && options->after_ns <= 0 &&
           !options->rate_limited && !options->waiting &&
           !options->debounce_ns && !options->throttle_ns;
}

static wq_err
add_simple(struct wq__memory *m, const wq_add_options *options, wq_key key)
{
    const uint32_t hash = wq__core_hash(&m->core, key);
    const int64_t  now = wq__memory_stamp(m);
    wq_added       what;

    wq__gate_enter(m);
    wq_err err = wq__gate_catch_up(m);
    if (!err)
        err = wq__core_add_urgent(&m->core, key, hash, now, options->priority,
                                  &what);
    wq__gate_leave(m);
    if (!err && options->results)
        options->results[0] = what;
    return err;
}

static wq_err
add_by_options(struct wq__memory *m, const wq_add_options *options,
               const wq_key *keys, struct wq__pick *picks, size_t n)
{
    const struct wq__how how = translate(m, options);

    for (size_t i = 0; i < n; i++)
        picks[i].at = wq__span_add(how.now, options->after_ns);
    return wq__memory_add_picks(m, &how, keys, picks, n,
                                wq__memory_block_time(options));
}

/* Has an add something to do with the queue after it has waited for room: give
 * memory back, or what the limiter was asked in vain; or count? */
static bool
has_baggage(const struct wq__memory *m, const wq_add_options *options, size_t n)
{
    return m->overflow == WQ_OVERFLOW_BLOCK &&
           (options->rate_limited || options->after_ns > 0 ||
            n > PICKS_AT_HAND);
}

/* From one to the other wq_destroy() waits for the caller. */
static void
check_in(struct wq__memory *m)
{
    wq__gate_enter(m);
    wq__gate_stay(m);
    wq__gate_leave(m);
}

static void
check_out(struct wq__memory *m)
{
    wq__gate_enter(m);
    wq__gate_leave_for_good(m);
}

static wq_err
add_all(struct wq__memory *m, const wq_add_options *options, const wq_key *keys,
        size_t n)
{
    struct wq__pick  at_hand[PICKS_AT_HAND];
    struct wq__pick *picks = make_picks(m, at_hand, n);

    if (!picks)
        return WQ_ENOMEM;
    wq_err err = pick_all(m, keys, picks, n);
    if (!err)
        err = options->rate_limited
                  ? wq__memory_add_limited(m, options, keys, picks, n)
                  : add_by_options(m, options, keys, picks, n);
    if (!err && (options->rate_limited || options->after_ns > 0))
        count_retries(m, n);
    for (size_t i = 0; !err && options->results && i < n; i++)
        options->results[i] = picks[i].added;
    free_picks(m, at_hand, picks, n);
    return err;
}

wq_err
wq__memory_add_with(wq_queue *q, const wq_add_options *options,
                    const wq_key *keys, size_t n)
{
    struct wq__memory *m = wq__memory_of(q);

    if (is_simple(m, options, n))
        return add_simple(m, options, *keys);
    if (!has_baggage(m, options, n))
        return add_all(m, options, keys, n);
    check_in(m);
    const wq_err err = add_all(m, options, keys, n);
    check_out(m);
    return err;
}

/* client-go counts delays of 0 as well [M-08]. */
static wq_err
add_after_0(struct wq__memory *m, wq_key key)
{
    const wq_err err = wq__memory_add(&m->base, key);

    if (!err)
        count_retries(m, 1);
    return err;
}

wq_err
wq__memory_add_after(wq_queue *q, wq_key key, int64_t delay_ns)
{
    struct wq__memory   *m = wq__memory_of(q);
    const wq_add_options options = {.after_ns = delay_ns};

    if (delay_ns > 0)
        return wq__memory_add_with(q, &options, &key, 1);
    if (m->overflow != WQ_OVERFLOW_BLOCK)
        return add_after_0(m, key);
    check_in(m);
    const wq_err err = add_after_0(m, key);
    check_out(m);
    return err;
}

/* ---- taking back -------------------------------------------------------- */

wq_err
wq__memory_remove(wq_queue *q, wq_key key)
{
    struct wq__memory *m = wq__memory_of(q);
    const uint32_t     hash = wq__core_hash(&m->core, key);
    const int64_t      now = m->clock->now(m->clock);

    wq__gate_enter(m);
    wq_err err = wq__gate_catch_up_to(m, now);
    if (!err)
        err = wq__core_remove(&m->core, key, hash, now);
    wq__gate_leave(m);
    return err;
}

wq_err
wq__memory_cancel_after(wq_queue *q, wq_key key)
{
    struct wq__memory *m = wq__memory_of(q);
    const uint32_t     hash = wq__core_hash(&m->core, key);
    const int64_t      now = m->clock->now(m->clock);

    wq__gate_enter(m);
    wq_err err = wq__gate_catch_up_to(m, now);
    if (!err)
        err = wq__core_cancel(&m->core, key, hash, now);
    wq__gate_leave(m);
    return err;
}
