/* SPDX-License-Identifier: MIT */
/* adds.c: how are keys added, and how are adds withdrawn?
 *
 * Enter, catch up, call the core, leave (gate.h). A plain add goes through the
 * inbox instead (inbox.h) if another thread gets the keys, or holds the lock. A
 * queue with bounds has no inbox: its adds must know whether the key fits
 * (capacity.c).
 */
#include "core/mem.h"
#include "core/span.h"
#include "error/error.h"
#include "memory/gate.h"
#include "port/relax.h"
#include "port/thread_mark.h"
#include "port/time.h"

/* ---- preparing a key ---------------------------------------------------- */

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
wq__memory_prepare(struct wq__memory *m, wq_key key,
                   struct wq__prepared *prepared)
{
    *prepared = (struct wq__prepared){.hash = wq__core_hash(&m->core, key)};
    if (!m->group)
        return WQ_OK;
    prepared->group = m->group(m->group_ctx, key);
    if (!is_part_of(prepared->group, key))
        return wq_fail(WQ_EINVAL,
                       "wq_config.group returned bytes outside the key");
    if (prepared->group.len)
        prepared->group_hash = wq__core_hash(&m->core, prepared->group);
    return WQ_OK;
}

/* ---- one key without options -------------------------------------------- */

/* Has a getter been spinning for longer than any spin takes (200 us), while
 * others sleep? Checked only for the first of the keys that are left to it, to
 * save clock reads. */
static bool
has_lost_spinner(struct wq__memory *m, uint64_t position, uint64_t from)
{
    return from - position == WQ__SPARED &&
           wq__time_now() >
               atomic_load_explicit(&m->spin_ends_ns, memory_order_relaxed);
}

/* A key was put into the inbox at `position`: wake a getter if one must be
 * woken. Otherwise the next thread that takes the lock finds the key (inbox.h,
 * I4). */
static void
wake_getter_if_needed(struct wq__memory *m, uint64_t position)
{
    wq__maybe_yield();
    const uint64_t from = atomic_load(&m->wake_from);
    if (position < from && !has_lost_spinner(m, position, from))
        return;
    wq__gate_enter(m);
    wq__gate_ignore_lost_spinner(m);
    (void)wq__gate_catch_up(m); /* if out of memory, a getter is woken, too */
    wq__gate_leave(m);
}

/* Does another thread get the keys, and is it awake? Then only that thread
 * should use the core, whose memory stays in its cache. */
static bool
is_for_another(struct wq__memory *m)
{
    const void *getter = atomic_load_explicit(&m->getter, memory_order_relaxed);

    return getter && getter != wq__thread_mark() &&
           atomic_load_explicit(&m->wake_from, memory_order_relaxed) != 0;
}

/* Wait for a free cell. A getter that is at work empties a full inbox within
 * microseconds, and offers the cells when it has few keys left. A producer that
 * waits for that, rather than for the lock, does not disturb the getter in the
 * core, and does not add keys so fast that they no longer fit the caches.
 *
 * If the wait was in vain, the getter works on one key for long, or has many
 * keys: then the next adds skip the wait, twice as many after each failure.
 * Only speed depends on this: relaxed. */
static void
await_free_cell(struct wq__memory *m)
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

/* The time to store with a key in the inbox. */
static int64_t
inbox_time(struct wq__memory *m, int64_t stamp)
{
    if (m->core.ages ||
        !atomic_load_explicit(&m->wait_hint, memory_order_relaxed))
        return stamp;
    return m->clock->now(m->clock);
}

/* Put the key into the inbox: true. Otherwise take the lock: false. */
static bool
put_or_enter(struct wq__memory *m, wq_key key, uint32_t hash, int64_t stamp)
{
    const int64_t now = inbox_time(m, stamp);
    uint64_t      position;

    if (wq__inbox_is_full(&m->inbox) &&
        atomic_load_explicit(&m->getter, memory_order_relaxed))
        await_free_cell(m);
    if (wq__inbox_put(&m->inbox, key, hash, now, &position)) {
        wake_getter_if_needed(m, position);
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
        put_or_enter(m, key, hash, now))
        return WQ_OK;
    wq_err err = wq__gate_catch_up(m);
    if (!err)
        err = wq__core_add(&m->core, key, hash, now, &what);
    /* So that the next add need not take the lock. */
    wq__inbox_grant(&m->inbox);
    wq__gate_leave(m);
    return err;
}

static wq_err
add_prepared(struct wq__memory *m, wq_key key)
{
    const struct wq__how how = {.kind = WQ__ADD_NOW};
    struct wq__prepared  prepared;
    const wq_err         err = wq__memory_prepare(m, key, &prepared);

    if (err)
        return err;
    return wq__memory_add_prepared(m, &how, &key, &prepared, 1, WQ_FOREVER);
}

wq_err
wq__memory_add(wq_queue *q, wq_key key)
{
    struct wq__memory *m = wq__memory_of(q);

    return m->no_plain_adds ? add_prepared(m, key)
                            : add_plain(m, key, wq__core_hash(&m->core, key));
}

/* ---- many keys, and options --------------------------------------------- */

enum { PREPARED_ON_STACK = 16 }; /* keys that can be added without allocating */

static wq_err
prepare_all(struct wq__memory *m, const wq_key *keys,
            struct wq__prepared *prepared, size_t n)
{
    wq_err err = WQ_OK;

    for (size_t i = 0; !err && i < n; i++)
        err = wq__memory_prepare(m, keys[i], &prepared[i]);
    return err;
}

static struct wq__prepared *
alloc_prepared(struct wq__memory *m, struct wq__prepared *at_hand, size_t n)
{
    return n <= PREPARED_ON_STACK
               ? at_hand
               : wq__mem_array(&m->shared_mem, n, sizeof *at_hand);
}

static void
free_prepared(struct wq__memory *m, struct wq__prepared *at_hand,
              struct wq__prepared *prepared, size_t n)
{
    if (prepared != at_hand)
        wq__mem_free(&m->shared_mem, prepared, n * sizeof *prepared);
}

static struct wq__how
translate(struct wq__memory *m, const wq_add_options *options)
{
    struct wq__how how = wq__how_of(options);

    if (how.kind != WQ__ADD_NOW)
        how.now = m->clock->now(m->clock);
    return how;
}

static void
count_retries(struct wq__memory *m, size_t n)
{
    atomic_fetch_add_explicit(&m->retries, n, memory_order_relaxed);
    wq__gate_report(m);
}

/* No option but a priority, and a queue that can refuse no key but for lack of
 * memory: the adds need not be prepared before the lock is taken. */
static bool
is_simple(struct wq__memory *m, const wq_add_options *options)
{
    return !m->no_plain_adds && options->after_ns <= 0 &&
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
        err = wq__core_add_with_priority(&m->core, key, hash, now,
                                         options->priority, &what);
    wq__gate_leave(m);
    if (!err && options->results)
        options->results[0] = what;
    return err;
}

/* The same for several keys: most batches fit the stack. */
enum { SIMPLE_MAX = 64 };

static wq_err
add_several(struct wq__memory *m, const wq_add_options *options,
            const wq_key *keys, size_t n)
{
    struct wq__plain_add adds[SIMPLE_MAX];
    const int64_t        now = wq__memory_stamp(m);

    for (size_t i = 0; i < n; i++)
        adds[i].hash = wq__core_hash(&m->core, keys[i]);
    wq__gate_enter(m);
    wq_err err = wq__gate_catch_up(m);
    if (!err)
        err = wq__core_add_many(&m->core, keys, adds, n, now, options->priority,
                                options->results);
    wq__gate_leave(m);
    return err;
}

static wq_err
add_by_options(struct wq__memory *m, const wq_add_options *options,
               const wq_key *keys, struct wq__prepared *prepared, size_t n)
{
    const struct wq__how how = translate(m, options);

    for (size_t i = 0; i < n; i++)
        prepared[i].at = wq__span_add(how.now, options->after_ns);
    return wq__memory_add_prepared(m, &how, keys, prepared, n,
                                   wq__memory_block_time(options));
}

/* Does an add use the queue after it has waited for capacity: to free memory,
 * to undo a call of the limiter, or to count? */
static bool
needs_queue_later(const struct wq__memory *m, const wq_add_options *options,
                  size_t n)
{
    return m->overflow == WQ_OVERFLOW_BLOCK &&
           (options->rate_limited || options->after_ns > 0 ||
            n > PREPARED_ON_STACK);
}

/* Between these two calls wq_destroy() waits for the caller. */
static void
begin_blocking(struct wq__memory *m)
{
    wq__gate_enter(m);
    wq__gate_begin_blocking(m);
    wq__gate_leave(m);
}

static void
end_blocking(struct wq__memory *m)
{
    wq__gate_enter(m);
    wq__gate_end_blocking(m);
}

static wq_err
add_all(struct wq__memory *m, const wq_add_options *options, const wq_key *keys,
        size_t n)
{
    struct wq__prepared  at_hand[PREPARED_ON_STACK];
    struct wq__prepared *prepared = alloc_prepared(m, at_hand, n);

    if (!prepared)
        return WQ_ENOMEM;
    wq_err err = prepare_all(m, keys, prepared, n);
    if (!err)
        err = options->rate_limited
                  ? wq__memory_add_limited(m, options, keys, prepared, n)
                  : add_by_options(m, options, keys, prepared, n);
    if (!err && (options->rate_limited || options->after_ns > 0))
        count_retries(m, n);
    for (size_t i = 0; !err && options->results && i < n; i++)
        options->results[i] = prepared[i].added;
    free_prepared(m, at_hand, prepared, n);
    return err;
}

wq_err
wq__memory_add_with(wq_queue *q, const wq_add_options *options,
                    const wq_key *keys, size_t n)
{
    struct wq__memory *m = wq__memory_of(q);

    if (is_simple(m, options)) {
        if (n == 1)
            return add_simple(m, options, *keys);
        if (n <= SIMPLE_MAX && !m->has_order)
            return add_several(m, options, keys, n);
    }
    if (!needs_queue_later(m, options, n))
        return add_all(m, options, keys, n);
    begin_blocking(m);
    const wq_err err = add_all(m, options, keys, n);
    end_blocking(m);
    return err;
}

/* client-go counts delays of 0, too [M-08]. */
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
    begin_blocking(m);
    const wq_err err = add_after_0(m, key);
    end_blocking(m);
    return err;
}

/* ---- withdrawing -------------------------------------------------------- */

/* wq__core_remove() or wq__core_cancel(). */
static wq_err
withdraw(wq_queue *q, wq_key key,
         wq_err (*verb)(struct wq__core *c, wq_key key, uint32_t hash,
                        int64_t now))
{
    struct wq__memory *m = wq__memory_of(q);
    const uint32_t     hash = wq__core_hash(&m->core, key);
    const int64_t      now = m->clock->now(m->clock);

    wq__gate_enter(m);
    wq_err err = wq__gate_catch_up_to(m, now);
    if (!err)
        err = verb(&m->core, key, hash, now);
    wq__gate_leave(m);
    return err;
}

wq_err
wq__memory_remove(wq_queue *q, wq_key key)
{
    return withdraw(q, key, wq__core_remove);
}

wq_err
wq__memory_cancel_after(wq_queue *q, wq_key key)
{
    return withdraw(q, key, wq__core_cancel);
}
