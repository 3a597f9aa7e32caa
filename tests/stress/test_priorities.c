/* SPDX-License-Identifier: MIT */
/* test_priorities.c: do the laws hold when many threads add with options,
 * remove, cancel, and work in batches?
 *
 * L1 and L3 (tracking.h); L3 where no thread removes. Where every add of a key
 * has the same priority, so has every hand-out.
 */
#include "stress/tracking.h"

#include <wq/limiter.h>

enum { KEYS = 200, LEVELS = 7 };

struct plan {
    int  producers, consumers;
    bool fixed;   /* all adds of a key have the same priority */
    bool removes; /* also cancels; L3 does not hold then */
    bool plain;   /* also wq_add(), through the inbox */
    bool waits;   /* delays, debounce, throttle, policies */
    bool limits;  /* also the limiter */
    bool ages;    /* the queue keeps ages */
};

static struct plan      plan;
static struct counting  mem;
static wq_queue        *q;
static struct tracked   known[KEYS];
static uint64_t         names[KEYS]; /* the bytes of the keys */
static _Atomic uint64_t delivered;

static int
fixed_priority(size_t k)
{
    return (int)(k % LEVELS) - LEVELS / 2;
}

/* ---- producers ---------------------------------------------------------- */

/* Random options that this plan allows. */
static wq_add_options
some_options(struct dice *dice)
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

/* A batch of 1 .. BATCH keys, all of the same fixed priority. */
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
    wq_added results[BATCH];

    wq_add_options how = some_options(dice);
    const size_t   n = some_keys(dice, keys, which);
    how.results = results;
    if (plan.fixed)
        how.priority = fixed_priority(which[0]);
    for (size_t i = 0; i < n; i++)
        versions[i] = want(&known[which[i]]);
    const bool plain = plan.plain && n == 1 && dice_roll(dice, 2);
    if (plain && plan.fixed && how.priority != 0)
        return WQ_OK;
    const wq_err err =
        plain ? wq_add(q, keys[0]) : wq_add_with(q, &how, keys, n);
    for (size_t i = 0; !err && i < n; i++) {
        if (!plain)
            expect_at_most("result of an add", WQ_ADDED_KEPT, results[i]);
        accept(&known[which[i]], versions[i]);
    }
    return err;
}

static void
remove_or_cancel(struct dice *dice)
{
    const wq_key key = wq_u64(&names[dice_roll(dice, KEYS)]);
    const wq_err err =
        dice_roll(dice, 2) ? wq_remove(q, key) : wq_cancel_after(q, key);

    if (err && err != WQ_ENOTFOUND && err != WQ_ESTATE)
        broken("remove or cancel: %s", wq_err_name(err));
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
            remove_or_cancel(&dice);
        if (dice_roll(&dice, 128) == 0)
            (void)sched_yield();
    }
    return NULL;
}

/* ---- consumers ---------------------------------------------------------- */

static void
begin_work(const wq_item *item)
{
    const size_t k = (size_t)number_of(item->key);

    begin_loan(&known[k], item);
    if (plan.fixed && item->priority != fixed_priority(k))
        broken("PQ-17: key %zu has priority %d", k, item->priority);
    atomic_fetch_add(&delivered, 1);
}

static void
end_work(const wq_item *item)
{
    end_loan(&known[number_of(item->key)]);
}

static struct work work = {&q, begin_work, end_work};

/* ---- the observer ------------------------------------------------------- */

static void *
observe(void *unused)
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

/* ---- a run --------------------------------------------------------------- */

static void
play(const struct plan *wanted)
{
    plan = *wanted;
    for (uint64_t k = 0; k < KEYS; k++)
        names[k] = k;
    atomic_store(&delivered, 0);
    q = create_tracked(
        known, KEYS, &mem,
        WQ_CONFIG(.limiter = wq_limiter_exponential(10 * US, 200 * US),
                  .waiting = WQ_WAITING_KEEP, .ages = plan.ages,
                  .retry = plan.limits ? WQ_RETRY_ONCE : 0));
    run_roles(q, (struct role){plan.consumers, consume_all, &work},
              (struct role[]){
                  {plan.producers, produce, NULL}, {1, observe, NULL}, {0}});
    if (!plan.removes)
        expect_all_seen(known, KEYS);
    destroy_drained(q, &mem, delivered);
}

/* PQ-17 O-51 O-59 O-60 O-61 */
PLAY(batches_keep_their_fixed_priority, .producers = 4, .consumers = 4,
     .fixed = true, .plain = true)

/* PQ-17 O-51 O-52 O-53 O-54 */
PLAY(no_add_is_lost_among_deadlines_and_policies, .producers = 4,
     .consumers = 4, .plain = true, .waits = true)

/* PQ-17 */
PLAY(delayed_adds_keep_their_fixed_priority, .producers = 3, .consumers = 6,
     .fixed = true, .waits = true, .ages = true)

/* O-57 O-58 */
PLAY(removed_keys_are_counted, .producers = 5, .consumers = 3, .plain = true,
     .waits = true, .removes = true)

/* O-50 O-16 */
PLAY(no_add_is_lost_among_limits, .producers = 4, .consumers = 4, .waits = true,
     .limits = true)

/* ---- the stress tests of controller-runtime ----------------------------- */

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

static wq_add_options
priority_or_delay(struct dice *dice)
{
    wq_add_options how = {.size = sizeof how};

    if (dice_roll(dice, 2))
        how.priority = 10 + (int)dice_roll(dice, 90);
    else
        how.after_ns = (int64_t)dice_roll(dice, 10) * MS;
    return how;
}

/* PQ-13: a thousand keys of many priorities and delays, a hundred consumers. */
TEST(thousand_keys_reach_a_hundred_consumers)
{
    struct crowd dog;
    struct dice  dice = own_dice();

    start_watchdog(&dog);
    for (int round = 0; round < 20; round++) {
        struct crowd consumers = {.n = 0};

        expect_err("create", WQ_OK, wq_create(NULL, &q));
        crowd_start(&consumers, 100, get_ten, NULL);
        for (uint64_t i = 0; i < 1000; i++) {
            const wq_add_options how = priority_or_delay(&dice);
            expect_err("add", WQ_OK, wq_add_one(q, wq_u64(&i), &how));
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
        const int      priority = (int)dice_roll(&dice, 10);
        wq_item       *item;

        const wq_err err =
            wq_add_one(q, wq_u64(&name), WQ_ADD(.priority = priority));
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

WQ_TESTS(test(batches_keep_their_fixed_priority),
         test(no_add_is_lost_among_deadlines_and_policies),
         test(delayed_adds_keep_their_fixed_priority),
         test(removed_keys_are_counted), test(no_add_is_lost_among_limits),
         test(thousand_keys_reach_a_hundred_consumers),
         test(twenty_workers_all_leave_when_the_queue_is_shut_down));
