/* SPDX-License-Identifier: MIT */
/* test_priorities.c: do the laws hold when many threads add with a purpose,
 * take back, and work in batches?
 *
 *   L1  A key is in one pair of hands: each key has a flag that its holder
 *       raises.
 *   L3  An add that was accepted is followed by a get, where nobody removes:
 *       each key has a version, raised before every add and read after every
 *       get.
 *
 * At every moment adds = gets + removed + displaced + deferred + ready + dirty.
 * Where every add of a key has the same priority, so has every hand-out.
 */
#include "crowd.h"

#include <sched.h>
#include <string.h>

#include <wq/limiter.h>

#include "memory/memory.h"
#include "support/counting.h"

enum { KEYS = 200, BATCH = 24, LEVELS = 7 };

struct plan {
    int  producers, consumers;
    bool fixed;   /* every key has a priority of its own, for good */
    bool removes; /* and cancels; then an add need not be followed by a get */
    bool plain;   /* adds by wq_add(), through the inbox, too */
    bool waits;   /* deadlines, debounce, throttle, policies */
    bool limits;  /* and the limiter */
    bool metrics; /* ages are kept */
};

struct key {
    _Atomic uint64_t version;  /* raised before an add */
    _Atomic uint64_t accepted; /* the highest one whose add said yes */
    _Atomic uint64_t seen;     /* the highest one read after a get */
    atomic_bool      owned;    /* L1 */
    uint64_t         fence;    /* the owner's: not atomic on purpose */
};

static struct plan      plan;
static struct counting  mem;
static wq_queue        *q;
static struct key       known[KEYS];
static uint64_t         names[KEYS]; /* what the keys are made of */
static _Atomic uint64_t delivered;

static void
raise_to(_Atomic uint64_t *place, uint64_t value)
{
    uint64_t now = atomic_load(place);
    while (now < value && !atomic_compare_exchange_weak(place, &now, value))
        ;
}

static int
fixed_priority(size_t k)
{
    return (int)(k % LEVELS) - LEVELS / 2;
}

/* ---- producers ---------------------------------------------------------- */

/* Any way to add that this plan allows. */
static wq_add_options
some_way(struct dice *dice)
{
    wq_add_options how = {.size = sizeof how};

    if (!plan.fixed)
        how.priority = (int)dice_roll(dice, LEVELS) - LEVELS / 2;
    if (!plan.waits)
        return how;
    const size_t way = dice_roll(dice, 8);
    if (way == 0) {
        how.debounce_ns = (int64_t)dice_roll(dice, 100) * US + 1;
        how.max_wait_ns = 200 * US;
    } else if (way == 1) {
        how.throttle_ns = (int64_t)dice_roll(dice, 100) * US + 1;
    } else {
        how.waiting = (wq_if_waiting)dice_roll(dice, 4);
        how.rate_limited = plan.limits && way == 2;
        if (way <= 3)
            how.after_ns = (int64_t)dice_roll(dice, 100) * US;
    }
    return how;
}

/* A batch of 1 .. BATCH keys; all of one priority, if that is fixed. */
static size_t
some_keys(struct dice *dice, wq_key *keys, size_t *which)
{
    const size_t n = dice_roll(dice, 3) ? 1 : dice_roll(dice, BATCH) + 1;
    const size_t level = dice_roll(dice, LEVELS);

    for (size_t i = 0; i < n; i++) {
        which[i] = dice_roll(dice, KEYS / LEVELS) * LEVELS + level;
        keys[i] = wq_u64(&names[which[i]]);
    }
    return n;
}

static wq_err
add_some(struct dice *dice)
{
    wq_key   keys[BATCH];
    size_t   which[BATCH];
    uint64_t versions[BATCH];
    wq_added what[BATCH];

    wq_add_options how = some_way(dice);
    const size_t   n = some_keys(dice, keys, which);
    how.results = what;
    if (plan.fixed)
        how.priority = fixed_priority(which[0]);
    for (size_t i = 0; i < n; i++)
        versions[i] = atomic_fetch_add(&known[which[i]].version, 1) + 1;
    const bool plain = plan.plain && n == 1 && dice_roll(dice, 2);
    if (plain && plan.fixed && how.priority != 0)
        return WQ_OK;
    const wq_err err =
        plain ? wq_add(q, keys[0]) : wq_add_with(q, &how, keys, n);
    for (size_t i = 0; !err && i < n; i++) {
        if (!plain)
            expect_at_most("what was done", WQ_ADDED_KEPT, what[i]);
        raise_to(&known[which[i]].accepted, versions[i]);
    }
    return err;
}

static void
take_some_back(struct dice *dice)
{
    const wq_key key = wq_u64(&names[dice_roll(dice, KEYS)]);
    const wq_err err =
        dice_roll(dice, 2) ? wq_remove(q, key) : wq_cancel_after(q, key);

    if (err && err != WQ_ENOTFOUND && err != WQ_ESTATE)
        broken("taking back says %s", wq_err_name(err));
}

static void *
produce(void *unused)
{
    struct dice dice = own_dice();

    (void)unused;
    while (!atomic_load(&stop)) {
        const wq_err err = add_some(&dice);
        if (err == WQ_ESHUTDOWN)
            break;
        expect_err("add", WQ_OK, err);
        if (plan.removes && dice_roll(&dice, 3) == 0)
            take_some_back(&dice);
        if (dice_roll(&dice, 128) == 0)
            (void)sched_yield();
    }
    return NULL;
}

/* ---- consumers ---------------------------------------------------------- */

static void
work(const wq_item *item)
{
    uint64_t k;

    memcpy(&k, item->key.data, sizeof k);
    struct key *key = &known[k];
    if (atomic_exchange_explicit(&key->owned, true, memory_order_relaxed))
        broken("L1: key %llu is in two hands", (unsigned long long)k);
    if (item->fence <= key->fence)
        broken("the fence of a key does not grow");
    key->fence = item->fence;
    if (plan.fixed && item->priority != fixed_priority((size_t)k))
        broken("PQ-17: key %llu has priority %d", (unsigned long long)k,
               item->priority);
    raise_to(&key->seen, atomic_load(&key->version));
    atomic_store_explicit(&key->owned, false, memory_order_relaxed);
    atomic_fetch_add(&delivered, 1);
    atomic_fetch_add(&progress, 1);
}

static wq_err
work_on_many(struct dice *dice)
{
    wq_item     *items[BATCH];
    size_t       n = 0;
    const size_t max = dice_roll(dice, BATCH) + 1;
    const wq_err err = wq_get_many(q, items, max, WQ_FOREVER, &n);

    if (err)
        return err;
    if (n == 0 || n > max)
        broken("%zu of %zu items", n, max);
    for (size_t i = 0; i < n; i++)
        work(items[i]);
    return wq_done_many(q, items, n);
}

static wq_err
work_on_next(struct dice *dice)
{
    wq_item *item = NULL;
    wq_err   err = WQ_OK;

    for (size_t i = dice_roll(dice, 20); i-- > 0 && !err;) {
        err = wq_next(q, dice_roll(dice, 2) ? WQ_FOREVER : 10 * US, &item);
        if (!err != (item != NULL))
            broken("next says %s and leaves %p", wq_err_name(err),
                   (void *)item);
        if (item)
            work(item);
        err = err == WQ_ETIMEDOUT ? WQ_OK : err;
    }
    return item ? wq_done(q, item) : err;
}

static void *
consume(void *unused)
{
    struct dice dice = own_dice();
    wq_err      err = WQ_OK;

    (void)unused;
    while (!err)
        err = dice_roll(&dice, 2) ? work_on_many(&dice) : work_on_next(&dice);
    expect_err("the end of a consumer", WQ_ESHUTDOWN, err);
    return NULL;
}

/* ---- those who look ----------------------------------------------------- */

static void *
look_all_the_time(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        wq_depth       depths[LEVELS + 1];
        size_t         n = 0;
        const wq_stats c = look(q);

        expect_at_most("known keys", KEYS, c.ready + c.held);
        expect_err("depths", WQ_OK, wq_read_depths(q, depths, LEVELS + 1, &n));
        expect_at_most("priorities in use", LEVELS, n);
        for (size_t i = 0; i < n; i++)
            expect_at_most("depth", KEYS, depths[i].keys); /* not below 0 */
        (void)sched_yield();
    }
    return NULL;
}

/* ---- a game ------------------------------------------------------------- */

static void
expect_all_seen(void)
{
    for (size_t k = 0; !plan.removes && k < KEYS; k++)
        if (known[k].seen < known[k].accepted)
            broken("L3: version %llu of key %zu was accepted, %llu seen",
                   (unsigned long long)known[k].accepted, k,
                   (unsigned long long)known[k].seen);
}

static void
expect_nothing_left(void)
{
    const wq_stats c = look(q);

    expect_equal("left", 0, c.ready + c.held + c.dirty + c.waiting);
    expect_equal("delivered", delivered, c.gets);
    const char *law = wq__core_check(&wq__memory_of(q)->core);
    if (law)
        broken("%s", law);
}

static void
play(const struct plan *wanted)
{
    struct crowd producers = {.n = 0}, consumers = {.n = 0}, dog;

    plan = *wanted;
    memset(known, 0, sizeof known);
    for (uint64_t k = 0; k < KEYS; k++)
        names[k] = k;
    atomic_store(&delivered, 0);
    atomic_store(&stop, false);
    counting_init(&mem);
    wq_limiter *limiter = wq_limiter_exponential(10 * US, 200 * US);
    expect_err(
        "create", WQ_OK,
        wq_create(WQ_CONFIG(.allocator = &mem.allocator, .limiter = limiter,
                            .waiting = WQ_WAITING_KEEP, .ages = plan.metrics,
                            .retry = plan.limits ? WQ_RETRY_ONCE : 0),
                  &q));
    start_watchdog(&dog);
    crowd_start(&consumers, plan.consumers, consume, NULL);
    crowd_start(&producers, plan.producers, produce, NULL);
    crowd_start(&producers, 1, look_all_the_time, NULL);
    nap_ns(share_ns());
    atomic_store(&stop, true);
    crowd_join(&producers);
    expect_err("drain", WQ_OK, wq_shutdown_with_drain(q));
    crowd_join(&consumers);
    stop_watchdog(&dog);
    expect_nothing_left();
    expect_all_seen();
    wq_destroy(q);
    expect_equal("bytes", 0, mem.bytes);
    if (delivered < 100)
        broken("only %llu keys were handed out", (unsigned long long)delivered);
}

/* PQ-17 O-51 O-59 O-60 O-61 */
TEST(batches_of_fixed_priorities_come_with_them)
{
    play(&(struct plan){
        .producers = 4, .consumers = 4, .fixed = true, .plain = true});
}

/* PQ-17 O-51 O-52 O-53 O-54 */
TEST(no_add_is_lost_among_deadlines_and_policies)
{
    play(&(struct plan){
        .producers = 4, .consumers = 4, .plain = true, .waits = true});
}

/* PQ-17: the same with priorities that can be told. */
TEST(deadlines_of_fixed_priorities_come_with_them)
{
    play(&(struct plan){.producers = 3,
                        .consumers = 6,
                        .fixed = true,
                        .waits = true,
                        .metrics = true});
}

/* O-57 O-58 */
TEST(what_is_taken_back_is_counted)
{
    play(&(struct plan){.producers = 5,
                        .consumers = 3,
                        .plain = true,
                        .waits = true,
                        .removes = true});
}

/* O-50 O-16 */
TEST(no_add_is_lost_among_limits)
{
    play(&(struct plan){
        .producers = 4, .consumers = 4, .waits = true, .limits = true});
}

/* ---- controller-runtime's own games ------------------------------------- */

static void *
get_ten(void *unused)
{
    (void)unused;
    for (int i = 0; i < 10; i++) {
        wq_item *item;
        expect_err("get", WQ_OK, wq_get(q, &item));
        expect_err("done", WQ_OK, wq_done(q, item));
        atomic_fetch_add(&progress, 1);
    }
    return NULL;
}

/* PQ-13: a thousand keys of many priorities and delays, a hundred consumers. */
TEST(thousand_keys_of_any_priority_and_delay_reach_a_hundred_consumers)
{
    struct crowd dog;
    struct dice  dice = own_dice();

    start_watchdog(&dog);
    for (int round = 0; round < 20; round++) {
        struct crowd consumers = {.n = 0};

        expect_err("create", WQ_OK, wq_create(NULL, &q));
        crowd_start(&consumers, 100, get_ten, NULL);
        for (uint64_t i = 0; i < 1000; i++) {
            const wq_key   key = wq_u64(&i);
            wq_add_options how = {.size = sizeof how};
            if (dice_roll(&dice, 2))
                how.priority = 10 + (int)dice_roll(&dice, 90);
            else
                how.after_ns = (int64_t)dice_roll(&dice, 10) * MS;
            expect_err("add", WQ_OK, wq_add_with(q, &how, &key, 1));
        }
        crowd_join(&consumers);
        expect_equal("left", 0, wq_len(q));
        wq_destroy(q);
    }
    stop_watchdog(&dog);
}

static void *
add_and_get(void *unused)
{
    struct dice dice = own_dice();

    (void)unused;
    for (;;) {
        const uint64_t name = dice_roll(&dice, 100);
        const wq_key   key = wq_u64(&name);
        const int      priority = (int)dice_roll(&dice, 10);
        wq_item       *item;

        const wq_err err =
            wq_add_with(q, WQ_ADD(.priority = priority), &key, 1);
        expect_err("add", wq_shutting_down(q) && err ? WQ_ESHUTDOWN : WQ_OK,
                   err);
        if (wq_get(q, &item) == WQ_ESHUTDOWN)
            return NULL;
        atomic_fetch_add(&progress, 1);
        (void)wq_done(q, item);
    }
}

/* PQ-28 */
TEST(twenty_workers_all_leave_when_the_queue_is_shut_down)
{
    struct crowd dog;

    start_watchdog(&dog);
    for (int round = 0; round < 50; round++) {
        struct crowd workers = {.n = 0};

        expect_err("create", WQ_OK, wq_create(NULL, &q));
        crowd_start(&workers, 20, add_and_get, NULL);
        nap_ns(MS);
        wq_shutdown(q);
        crowd_join(&workers);
        wq_destroy(q);
    }
    stop_watchdog(&dog);
}

WQ_TESTS(
    test(batches_of_fixed_priorities_come_with_them),
    test(no_add_is_lost_among_deadlines_and_policies),
    test(deadlines_of_fixed_priorities_come_with_them),
    test(what_is_taken_back_is_counted), test(no_add_is_lost_among_limits),
    test(thousand_keys_of_any_priority_and_delay_reach_a_hundred_consumers),
    test(twenty_workers_all_leave_when_the_queue_is_shut_down));
