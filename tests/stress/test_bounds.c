/* SPDX-License-Identifier: MIT */
/* test_bounds.c: is the bound of a queue exact, and does every waiting producer
 * get its turn?
 *
 * Producers add batches of keys, each key once, and add up those that were
 * accepted; consumers and the drop callback add up theirs. In the end the sums
 * agree. Meanwhile an observer checks that there are never more keys than
 * allowed.
 */
#include "stress/tracking.h"

enum { PRODUCERS = 6, QUOTA = 3000 };

struct plan {
    size_t      max_len;
    wq_overflow overflow;
    bool timeouts; /* adds time out after some microseconds, or at once */
    bool delays;   /* adds have a delay */
    bool throttle; /* keys have a cooldown after they ran */
    bool batches;  /* adds of several keys, too */
    bool awake;    /* consumers never sleep in a get */
    int  consumers;
};

static struct plan      plan;
static struct counting  mem;
static wq_queue        *q;
static _Atomic uint64_t next_name;                 /* each key is added once */
static _Atomic uint64_t added, delivered, dropped; /* how many */
static _Atomic uint64_t added_sum, delivered_sum, dropped_sum;
static _Atomic uint64_t refused;
static atomic_int       producing;

static void
on_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    expect_err("reason", WQ_EFULL, why);
    expect_equal("retries", 0, retries);
    expect_equal("context", (uintptr_t)&dropped, (uintptr_t)ctx);
    atomic_fetch_add(&dropped, 1);
    atomic_fetch_add(&dropped_sum, number_of(key));
    (void)wq_len(q); /* no lock is held */
}

/* ---- producers ---------------------------------------------------------- */

static wq_add_options
some_options(struct dice *dice)
{
    wq_add_options how = {.size = sizeof how};

    how.priority = (int)dice_roll(dice, 3);
    if (plan.timeouts && dice_roll(dice, 3))
        how.max_block_ns = (int64_t)dice_roll(dice, 50) * US + 1;
    else
        how.nowait = plan.timeouts;
    if (plan.delays && dice_roll(dice, 2))
        how.after_ns = (int64_t)dice_roll(dice, 200) * US;
    else if (plan.throttle)
        how.throttle_ns = (int64_t)dice_roll(dice, 200) * US + 1;
    return how;
}

static bool
may_be_refused(wq_err err)
{
    if (plan.overflow != WQ_OVERFLOW_BLOCK)
        return err == WQ_EFULL;
    return plan.timeouts && (err == WQ_EFULL || err == WQ_ETIMEDOUT);
}

/* Add new keys; false: the queue is shut down. */
static bool
add_some(struct dice *dice)
{
    uint64_t       names[BATCH];
    wq_key         keys[BATCH];
    uint64_t       sum = 0;
    const size_t   most = plan.max_len < BATCH ? plan.max_len : BATCH;
    const size_t   n = plan.batches ? dice_roll(dice, most) + 1 : 1;
    const uint64_t first = atomic_fetch_add(&next_name, n);

    for (size_t i = 0; i < n; i++) {
        names[i] = first + i;
        keys[i] = wq_u64(&names[i]);
        sum += names[i];
    }
    const wq_add_options how = some_options(dice);
    const bool           plain = n == 1 && !plan.timeouts && dice_roll(dice, 2);
    const wq_err         err =
        plain ? wq_add(q, keys[0]) : wq_add_with(q, &how, keys, n);
    if (err == WQ_ESHUTDOWN)
        return false;
    if (err && !may_be_refused(err))
        broken("add: %s", wq_err_name(err));
    if (err) {
        atomic_fetch_add(&refused, 1);
        (void)sched_yield();
    } else {
        atomic_fetch_add(&added, n);
        atomic_fetch_add(&added_sum, sum);
        atomic_fetch_add(&progress, 1);
    }
    return true;
}

static void *
produce(void *unused)
{
    struct dice dice = own_dice();

    (void)unused;
    for (int i = 0; i < QUOTA && !atomic_load(&stop) && add_some(&dice); i++)
        ;
    atomic_fetch_sub(&producing, 1);
    return NULL;
}

/* ---- consumers ---------------------------------------------------------- */

static void
begin_work(const wq_item *item)
{
    atomic_fetch_add(&delivered_sum, number_of(item->key));
    atomic_fetch_add(&delivered, 1);
    atomic_fetch_add(&progress, 1);
}

static void
end_work(const wq_item *item)
{
    (void)item;
}

static struct work work = {&q, begin_work, end_work};

/* A consumer that never sleeps in a get. */
static void *
consume_awake(void *unused)
{
    wq_item *item;
    wq_err   err;

    while ((err = wq_get_within(q, 0, &item)) != WQ_ESHUTDOWN) {
        (void)sched_yield(); /* so that the queue is full */
        if (err == WQ_ETIMEDOUT)
            continue;
        expect_err("get", WQ_OK, err);
        begin_work(item);
        expect_err("done", WQ_OK, wq_done(q, item));
    }
    return unused;
}

static void
start_consumers(struct crowd *crowd, int n)
{
    if (plan.awake)
        crowd_start(crowd, n, consume_awake, NULL);
    else
        crowd_start(crowd, n, consume_all, &work);
}

/* Every key is added once, so it is in one of these states at a time. */
static void *
observe(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        const wq_stats c = look(q);
        expect_at_most("known keys", plan.max_len,
                       c.ready + c.held + c.waiting);
        expect_equal("dirty", 0, c.dirty);
        (void)sched_yield();
    }
    return NULL;
}

/* ---- a run -------------------------------------------------------------- */

static void
open_run(const struct plan *wanted)
{
    plan = *wanted;
    added = delivered = dropped = refused = 0;
    added_sum = delivered_sum = dropped_sum = 0;
    atomic_store(&next_name, 1);
    atomic_store(&producing, PRODUCERS);
    const bool drops = plan.overflow == WQ_OVERFLOW_DROP_OLDEST;
    q = create_tracked(
        NULL, 0, &mem,
        WQ_CONFIG(.max_len = plan.max_len, .overflow = plan.overflow,
                  .on_drop = drops ? on_drop : NULL, .drop_ctx = &dropped,
                  .waiting = WQ_WAITING_KEEP));
}

static void
close_run(void)
{
    expect_laws(q);
    expect_equal("capacity promised", 0, wq__memory_of(q)->promised.keys);
    wq_destroy(q);
    expect_equal("bytes left", 0, mem.bytes);
}

/* All producers finish, since consumers drain. */
static void
play(const struct plan *wanted)
{
    struct crowd  producers = {.n = 0}, others = {.n = 0}, dog;
    const int64_t end_ns = share_ns();

    open_run(wanted);
    start_watchdog(&dog);
    start_consumers(&others, plan.consumers);
    crowd_start(&others, 1, observe, NULL);
    crowd_start(&producers, PRODUCERS, produce, NULL);
    for (int64_t ns = 0; ns < end_ns && atomic_load(&producing); ns += MS)
        nap_ns(MS);
    atomic_store(&stop, true); /* and no more adds */
    crowd_join(&producers);
    expect_err("drain", WQ_OK, wq_shutdown_with_drain(q));
    crowd_join(&others);
    stop_watchdog(&dog);
    expect_equal("keys", added, delivered + dropped);
    expect_equal("sum of keys", added_sum, delivered_sum + dropped_sum);
    expect_equal("displaced", dropped, look(q).displaced);
    if (delivered < 100)
        broken("only %llu keys were handed out", (unsigned long long)delivered);
    close_run();
}

/* O-55 */
PLAY(bound_is_exact_when_keys_are_refused, .max_len = 10,
     .overflow = WQ_OVERFLOW_REFUSE, .batches = true, .consumers = 2)

/* O-55 */
PLAY(bound_is_exact_when_keys_are_displaced, .max_len = 10,
     .overflow = WQ_OVERFLOW_DROP_OLDEST, .batches = true, .delays = true,
     .consumers = 2)

/* O-55: no wake-up is lost. */
PLAY(all_waiting_producers_get_capacity, .max_len = 3,
     .overflow = WQ_OVERFLOW_BLOCK, .consumers = 2)

/* O-55: nor among batches of different sizes. */
PLAY(all_waiting_batches_get_capacity, .max_len = 25,
     .overflow = WQ_OVERFLOW_BLOCK, .batches = true, .delays = true,
     .consumers = 3)

/* O-55: nor when some time out. */
PLAY(producers_that_time_out_leave_capacity_to_others, .max_len = 8,
     .overflow = WQ_OVERFLOW_BLOCK, .batches = true, .timeouts = true,
     .consumers = 2)

/* O-55 O-54: a cooldown that ends frees capacity while no getter sleeps. */
PLAY(capacity_freed_by_time_is_noticed, .max_len = 6,
     .overflow = WQ_OVERFLOW_BLOCK, .batches = true, .throttle = true,
     .awake = true, .consumers = 1)

/* O-55 O-54 */
PLAY(capacity_freed_by_time_reaches_producers, .max_len = 6,
     .overflow = WQ_OVERFLOW_BLOCK, .batches = true, .throttle = true,
     .consumers = 2)

/* ---- shutdown and destroy ------------------------------------------------ */

static void *
produce_until_shutdown(void *unused)
{
    struct dice dice = own_dice();

    while (add_some(&dice))
        ;
    return unused;
}

static void
shut_down_with_producers(struct dice *unused)
{
    struct crowd crowd = {.n = 0};

    (void)unused;
    open_run(&(struct plan){
        .max_len = 5, .overflow = WQ_OVERFLOW_BLOCK, .batches = true});
    crowd_start(&crowd, PRODUCERS, produce_until_shutdown, NULL);
    start_consumers(&crowd, 1);
    nap_ns(2 * MS);
    wq_shutdown(q);
    crowd_join(&crowd);
    expect_equal("sum of keys", added_sum, delivered_sum);
    close_run();
}

/* O-55 Q-19: waiting producers return, and new ones at once. */
REPEAT(shutdown_wakes_all_waiting_producers, shut_down_with_producers)

static void *
add_until_destroyed(void *unused)
{
    enum { MOST = 40 };
    struct dice dice = own_dice();
    wq_key      keys[MOST];
    uint64_t    names[MOST];

    const size_t n = dice_roll(&dice, MOST) + 1;
    for (size_t i = 0; i < n; i++) {
        names[i] = atomic_fetch_add(&next_name, 1);
        keys[i] = wq_u64(&names[i]);
    }
    const wq_add_options how = {.size = sizeof how,
                                .priority = (int)dice_roll(&dice, 3),
                                .rate_limited = dice_roll(&dice, 2)};
    expect_err("add", WQ_ESHUTDOWN, wq_add_with(q, &how, keys, n));
    return unused;
}

static void
await_blocked_producers(size_t n)
{
    struct wq__memory *m = wq__memory_of(q);

    for (size_t blocked = 0; blocked < n; (void)sched_yield()) {
        wq__lock_take(&m->lock);
        blocked = m->producers.len;
        wq__lock_release(&m->lock);
    }
}

static void
destroy_with_producers(struct dice *unused)
{
    struct crowd producers = {.n = 0};

    (void)unused;
    open_run(&(struct plan){.max_len = 40, .overflow = WQ_OVERFLOW_BLOCK});
    for (uint64_t i = 1 << 30; i < (1 << 30) + 40; i++)
        expect_err("add", WQ_OK, wq_add(q, wq_u64(&i)));
    crowd_start(&producers, PRODUCERS, add_until_destroyed, NULL);
    await_blocked_producers(PRODUCERS);
    wq_destroy(q);
    expect_equal("bytes left", 0, mem.bytes);
    crowd_join(&producers);
}

/* O-55 O-03: all are blocked when the queue is destroyed. */
REPEAT(destroy_waits_until_all_producers_have_left, destroy_with_producers)

WQ_TESTS(test(bound_is_exact_when_keys_are_refused),
         test(bound_is_exact_when_keys_are_displaced),
         test(all_waiting_producers_get_capacity),
         test(all_waiting_batches_get_capacity),
         test(producers_that_time_out_leave_capacity_to_others),
         test(capacity_freed_by_time_is_noticed),
         test(capacity_freed_by_time_reaches_producers),
         test(shutdown_wakes_all_waiting_producers),
         test(destroy_waits_until_all_producers_have_left));
