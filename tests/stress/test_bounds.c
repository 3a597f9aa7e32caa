/* SPDX-License-Identifier: MIT */
/* test_bounds.c: is the bound of a queue exact, and is nobody forgotten, when
 * many producers want in?
 *
 * Producers add batches of keys of their own, each key once, and note the sum
 * of those that were accepted; consumers and whoever is told of dropped keys
 * note theirs. Afterwards the sums agree. Meanwhile a thread looks: there are
 * never more keys than allowed.
 */
#include "crowd.h"

#include <sched.h>
#include <string.h>

#include "memory/memory.h"
#include "support/counting.h"

enum { BATCH = 20, PRODUCERS = 6, QUOTA = 3000 };

struct plan {
    size_t      max_len;
    wq_overflow overflow;
    bool        timeouts; /* adds give up after some microseconds, or at once */
    bool        delays;   /* keys wait before they are READY */
    bool        throttle; /* keys are left alone for a while after they ran */
    bool        batches;  /* also more than one key at a time */
    bool        idle;     /* consumers never sleep in a get */
    int         consumers;
};

static struct plan      plan;
static struct counting  mem;
static wq_queue        *q;
static _Atomic uint64_t next_name;                 /* each key is added once */
static _Atomic uint64_t added, delivered, dropped; /* how many */
static _Atomic uint64_t added_sum, delivered_sum, dropped_sum;
static _Atomic uint64_t refused;
static atomic_int       producing;

static uint64_t
name_of(wq_key key)
{
    uint64_t name;

    memcpy(&name, key.data, sizeof name);
    return name;
}

static void
on_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    expect_err("reason", WQ_EFULL, why);
    expect_equal("retries", 0, retries);
    expect_equal("context", (uintptr_t)&dropped, (uintptr_t)ctx);
    atomic_fetch_add(&dropped, 1);
    atomic_fetch_add(&dropped_sum, name_of(key));
    (void)wq_len(q); /* no lock is held */
}

/* ---- producers ---------------------------------------------------------- */

static wq_add_options
some_way(struct dice *dice)
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

/* Add some keys of one's own; false: the queue is shut down. */
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
    const wq_add_options how = some_way(dice);
    const bool           plain = n == 1 && !plan.timeouts && dice_roll(dice, 2);
    const wq_err         err =
        plain ? wq_add(q, keys[0]) : wq_add_with(q, &how, keys, n);
    if (err == WQ_ESHUTDOWN)
        return false;
    if (err && !may_be_refused(err))
        broken("add says %s", wq_err_name(err));
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

static void *
consume(void *unused)
{
    struct dice dice = own_dice();

    (void)unused;
    for (;;) {
        wq_item     *items[BATCH];
        size_t       n = 0;
        const size_t max = dice_roll(&dice, BATCH) + 1;
        const wq_err err =
            wq_get_many(q, items, max, plan.idle ? 0 : WQ_FOREVER, &n);

        if (err == WQ_ESHUTDOWN)
            return NULL;
        if (err == WQ_ETIMEDOUT && plan.idle) {
            (void)sched_yield();
            continue;
        }
        expect_err("get", WQ_OK, err);
        for (size_t i = 0; i < n; i++)
            atomic_fetch_add(&delivered_sum, name_of(items[i]->key));
        atomic_fetch_add(&delivered, n);
        if (dice_roll(&dice, 16) == 0)
            (void)sched_yield(); /* so that the queue is full */
        expect_err("done", WQ_OK, wq_done_many(q, items, n));
        atomic_fetch_add(&progress, 1);
    }
}

/* Every key is added once, so it is in one of these states at a time. */
static void *
look_all_the_time(void *unused)
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

/* ---- a game ------------------------------------------------------------- */

static void
open_game(const struct plan *wanted)
{
    plan = *wanted;
    added = delivered = dropped = refused = 0;
    added_sum = delivered_sum = dropped_sum = 0;
    atomic_store(&next_name, 1);
    atomic_store(&stop, false);
    atomic_store(&producing, PRODUCERS);
    counting_init(&mem);
    const bool drops = plan.overflow == WQ_OVERFLOW_DROP_OLDEST;
    expect_err(
        "create", WQ_OK,
        wq_create(WQ_CONFIG(.allocator = &mem.allocator,
                            .max_len = plan.max_len, .overflow = plan.overflow,
                            .on_drop = drops ? on_drop : NULL,
                            .drop_ctx = &dropped, .waiting = WQ_WAITING_KEEP),
                  &q));
}

static void
close_game(void)
{
    const char *law = wq__core_check(&wq__memory_of(q)->core);

    if (law)
        broken("%s", law);
    expect_equal("room promised", 0, wq__memory_of(q)->promised.keys);
    wq_destroy(q);
    expect_equal("bytes", 0, mem.bytes);
}

/* All producers finish, since consumers drain. */
static void
play(const struct plan *wanted)
{
    struct crowd  producers = {.n = 0}, others = {.n = 0}, dog;
    const int64_t end_ns = share_ns();

    open_game(wanted);
    start_watchdog(&dog);
    crowd_start(&others, plan.consumers, consume, NULL);
    crowd_start(&others, 1, look_all_the_time, NULL);
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
    close_game();
}

/* O-55 */
TEST(refused_keys_are_not_there_and_the_bound_is_exact)
{
    play(&(struct plan){.max_len = 10,
                        .overflow = WQ_OVERFLOW_REFUSE,
                        .batches = true,
                        .consumers = 2});
}

/* O-55 */
TEST(dropped_keys_are_told_and_the_bound_is_exact)
{
    play(&(struct plan){.max_len = 10,
                        .overflow = WQ_OVERFLOW_DROP_OLDEST,
                        .batches = true,
                        .delays = true,
                        .consumers = 2});
}

/* O-55: no wake-up is lost. */
TEST(all_producers_that_wait_for_room_get_it)
{
    play(&(struct plan){
        .max_len = 3, .overflow = WQ_OVERFLOW_BLOCK, .consumers = 2});
}

/* O-55: nor among those that need more and those that need less. */
TEST(all_batches_that_wait_for_room_get_it)
{
    play(&(struct plan){.max_len = 25,
                        .overflow = WQ_OVERFLOW_BLOCK,
                        .batches = true,
                        .delays = true,
                        .consumers = 3});
}

/* O-55: nor when some give up. */
TEST(producers_that_give_up_leave_the_room_to_others)
{
    play(&(struct plan){.max_len = 8,
                        .overflow = WQ_OVERFLOW_BLOCK,
                        .batches = true,
                        .timeouts = true,
                        .consumers = 2});
}

/* O-55 O-54: room comes by time, and no getter sleeps until then. */
TEST(room_that_comes_by_time_is_noticed)
{
    play(&(struct plan){.max_len = 6,
                        .overflow = WQ_OVERFLOW_BLOCK,
                        .batches = true,
                        .throttle = true,
                        .idle = true,
                        .consumers = 1});
    play(&(struct plan){.max_len = 6,
                        .overflow = WQ_OVERFLOW_BLOCK,
                        .batches = true,
                        .throttle = true,
                        .consumers = 2});
}

/* ---- the end ------------------------------------------------------------ */

static void *
produce_until_shutdown(void *unused)
{
    struct dice dice = own_dice();

    (void)unused;
    while (add_some(&dice))
        ;
    atomic_fetch_add(&progress, 1);
    return NULL;
}

/* O-55 Q-19: whoever waits is sent home, and whoever comes. */
TEST(shutdown_sends_all_producers_home)
{
    const int64_t end_ns = share_ns();
    struct crowd  dog;

    start_watchdog(&dog);
    for (int64_t ns = 0; ns < end_ns; ns += 5 * MS) {
        struct crowd producers = {.n = 0}, consumers = {.n = 0};

        open_game(&(struct plan){
            .max_len = 5, .overflow = WQ_OVERFLOW_BLOCK, .batches = true});
        crowd_start(&producers, PRODUCERS, produce_until_shutdown, NULL);
        crowd_start(&consumers, 1, consume, NULL);
        nap_ns(2 * MS);
        wq_shutdown(q);
        crowd_join(&producers);
        crowd_join(&consumers);
        expect_equal("sum of keys", added_sum, delivered_sum);
        close_game();
    }
    stop_watchdog(&dog);
}

static void *
add_until_sent_home(void *unused)
{
    struct dice dice = own_dice();
    wq_key      keys[40];
    uint64_t    names[40];

    (void)unused;
    const size_t n = dice_roll(&dice, 40) + 1;
    for (size_t i = 0; i < n; i++) {
        names[i] = atomic_fetch_add(&next_name, 1);
        keys[i] = wq_u64(&names[i]);
    }
    const wq_add_options how = {.size = sizeof how,
                                .priority = (int)dice_roll(&dice, 3),
                                .rate_limited = dice_roll(&dice, 2)};
    expect_err("add", WQ_ESHUTDOWN, wq_add_with(q, &how, keys, n));
    atomic_fetch_add(&progress, 1);
    return NULL;
}

/* O-55 O-03: all are blocked when the queue is destroyed. */
TEST(destroy_waits_until_all_producers_have_left)
{
    const int64_t end_ns = share_ns();
    struct crowd  dog;

    start_watchdog(&dog);
    for (int64_t ns = 0; ns < end_ns; ns += 5 * MS) {
        struct crowd producers = {.n = 0};

        open_game(&(struct plan){.max_len = 40, .overflow = WQ_OVERFLOW_BLOCK});
        for (uint64_t i = 1 << 30; i < (1 << 30) + 40; i++)
            expect_err("add", WQ_OK, wq_add(q, wq_u64(&i)));
        crowd_start(&producers, PRODUCERS, add_until_sent_home, NULL);
        for (size_t blocked = 0; blocked < PRODUCERS; (void)sched_yield()) {
            struct wq__memory *m = wq__memory_of(q);
            wq__lock_take(&m->lock);
            blocked = m->producers.len;
            wq__lock_release(&m->lock);
        }
        wq_destroy(q);
        expect_equal("bytes", 0, mem.bytes);
        crowd_join(&producers);
    }
    stop_watchdog(&dog);
}

WQ_TESTS(test(refused_keys_are_not_there_and_the_bound_is_exact),
         test(dropped_keys_are_told_and_the_bound_is_exact),
         test(all_producers_that_wait_for_room_get_it),
         test(all_batches_that_wait_for_room_get_it),
         test(producers_that_give_up_leave_the_room_to_others),
         test(room_that_comes_by_time_is_noticed),
         test(shutdown_sends_all_producers_home),
         test(destroy_waits_until_all_producers_have_left));
