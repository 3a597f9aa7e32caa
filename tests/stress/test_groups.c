/* SPDX-License-Identifier: MIT */
/* test_groups.c: do groups keep their laws when many threads add and work?
 *
 *   L1  A key is in one pair of hands: each key has a flag that its holder
 *       raises.
 *   L3  An add that was accepted is followed by a get: each key has a version,
 *       raised before every add and read after every get.
 *   O-80  No more keys of a group are HELD than the bound allows; and no group
 *       starves, however much another one has to do.
 *
 * At every moment adds = gets + removed + displaced + ready + dirty, and no more
 * keys are offered than are READY.
 */
#include "crowd.h"

#include <sched.h>
#include <string.h>

#include "memory/memory.h"
#include "support/counting.h"

enum { GROUPS = 12, KEYS = 240, BATCH = 16, LEVELS = 3 };

struct plan {
    int     producers, consumers;
    size_t  max_held;     /* of a group; 0: any number */
    int64_t max_ready_ns; /* ageing; 0: none */
    size_t  max_bytes;    /* blocks producers; 0: none */
    bool    priorities;   /* adds have several */
    bool    waits;        /* some have deadlines */
    bool    floods;       /* group 0 gets nearly all adds */
};

struct key {
    char             name[16];
    _Atomic uint64_t version;  /* raised before an add */
    _Atomic uint64_t accepted; /* the highest one whose add was accepted */
    _Atomic uint64_t seen;     /* the highest one read after a get */
    atomic_bool      owned;    /* L1 */
};

static struct plan      plan;
static struct counting  mem;
static wq_queue        *q;
static struct key       known[KEYS];
static atomic_int       held[GROUPS];   /* by workers, now */
static _Atomic uint64_t served[GROUPS]; /* hand-outs so far */
static _Atomic uint64_t delivered;

static void
raise_to(_Atomic uint64_t *place, uint64_t value)
{
    uint64_t now = atomic_load(place);
    while (now < value && !atomic_compare_exchange_weak(place, &now, value))
        ;
}

static size_t
group_of(size_t k)
{
    return k % GROUPS;
}

/* ---- producers ---------------------------------------------------------- */

static size_t
some_key(struct dice *dice)
{
    const size_t k = dice_roll(dice, KEYS);

    if (plan.floods && dice_roll(dice, 50))
        return k / GROUPS * GROUPS; /* of group 0 */
    return k;
}

static wq_err
add_some(struct dice *dice)
{
    wq_key         keys[BATCH];
    size_t         which[BATCH];
    uint64_t       versions[BATCH];
    wq_add_options how = {.size = sizeof how};
    const size_t   n = dice_roll(dice, 3) ? 1 : dice_roll(dice, BATCH) + 1;

    if (plan.priorities)
        how.priority = (int)dice_roll(dice, LEVELS);
    if (plan.waits && dice_roll(dice, 4) == 0)
        how.after_ns = (int64_t)dice_roll(dice, 200) * US;
    for (size_t i = 0; i < n; i++) {
        which[i] = some_key(dice);
        keys[i] = wq_str(known[which[i]].name);
        versions[i] = atomic_fetch_add(&known[which[i]].version, 1) + 1;
    }
    const wq_err err = n == 1 && !how.after_ns && !how.priority
                           ? wq_add(q, keys[0])
                           : wq_add_with(q, &how, keys, n);
    for (size_t i = 0; !err && i < n; i++)
        raise_to(&known[which[i]].accepted, versions[i]);
    return err;
}

static void *
produce(void *unused)
{
    struct dice dice = own_dice();

    (void)unused;
    while (!atomic_load(&stop)) {
        expect_err("add", WQ_OK, add_some(&dice));
        if (dice_roll(&dice, 64) == 0)
            (void)sched_yield();
    }
    return NULL;
}

/* ---- consumers ---------------------------------------------------------- */

/* From the hand-out on. */
static void
begin_work(const wq_item *item)
{
    size_t k = 0;

    while (k < KEYS && strcmp(known[k].name, item->key.data))
        k++;
    if (k == KEYS)
        broken("an unknown key was handed out");
    if (atomic_exchange(&known[k].owned, true))
        broken("L1: key %s is in two hands", known[k].name);
    const int now = atomic_fetch_add(&held[group_of(k)], 1) + 1;
    if (plan.max_held && (size_t)now > plan.max_held)
        broken("O-80: %d keys of group %zu are HELD", now, group_of(k));
    raise_to(&known[k].seen, atomic_load(&known[k].version));
    atomic_fetch_add(&served[group_of(k)], 1);
    atomic_fetch_add(&delivered, 1);
    atomic_fetch_add(&progress, 1);
}

/* Until just before the done. */
static void
end_work(const wq_item *item)
{
    size_t k = 0;

    while (strcmp(known[k].name, item->key.data))
        k++;
    atomic_fetch_sub(&held[group_of(k)], 1);
    atomic_store(&known[k].owned, false);
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
    for (size_t i = 0; i < n; i++)
        begin_work(items[i]);
    if (dice_roll(dice, 8) == 0)
        (void)sched_yield();
    for (size_t i = 0; i < n; i++)
        end_work(items[i]);
    return wq_done_many(q, items, n);
}

static wq_err
work_on_next(struct dice *dice)
{
    wq_item *item = NULL;
    wq_err   err = WQ_OK;

    for (size_t i = dice_roll(dice, 20); i-- > 0 && !err;) {
        err = wq_next(q, dice_roll(dice, 2) ? WQ_FOREVER : 10 * US, &item);
        if (item) {
            begin_work(item);
            end_work(item);
        }
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
        const wq_stats c = look(q);

        expect_at_most("offered keys", c.ready, c.offered);
        expect_at_most("groups", GROUPS, c.groups);
        if (plan.max_bytes)
            expect_at_most("bytes", plan.max_bytes, c.bytes);
        (void)sched_yield();
    }
    return NULL;
}

/* ---- a game ------------------------------------------------------------- */

static void
expect_all_seen(void)
{
    for (size_t k = 0; k < KEYS; k++)
        if (known[k].seen < known[k].accepted)
            broken("L3: version %llu of key %s was accepted, %llu seen",
                   (unsigned long long)known[k].accepted, known[k].name,
                   (unsigned long long)known[k].seen);
    for (size_t g = 0; g < GROUPS; g++)
        if (!served[g])
            broken("group %zu was not served", g);
}

static void
expect_nothing_left(void)
{
    const wq_stats c = look(q);

    expect_equal("left", 0, c.ready + c.held + c.dirty + c.waiting);
    expect_equal("known", 0, c.known);
    expect_equal("groups", 0, c.groups);
    expect_equal("bytes of keys", 0, c.bytes);
    expect_equal("delivered", delivered, c.gets);
    const char *law = wq__core_check(&wq__memory_of(q)->core);
    if (law)
        broken("%s", law);
}

static void
prepare(void)
{
    memset(known, 0, sizeof known);
    for (size_t k = 0; k < KEYS; k++)
        (void)snprintf(known[k].name, sizeof known[k].name, "%zu/%zu",
                       group_of(k), k);
    for (size_t g = 0; g < GROUPS; g++) {
        atomic_store(&held[g], 0);
        atomic_store(&served[g], 0);
    }
    atomic_store(&delivered, 0);
    atomic_store(&stop, false);
    counting_init(&mem);
}

static void
play(const struct plan *wanted)
{
    struct crowd producers = {.n = 0}, consumers = {.n = 0}, dog;

    plan = *wanted;
    prepare();
    expect_err(
        "create", WQ_OK,
        wq_create(WQ_CONFIG(.allocator = &mem.allocator,
                            .group = wq_group_before_slash,
                            .group_max_held = plan.max_held,
                            .max_ready_ns = plan.max_ready_ns,
                            .max_bytes = plan.max_bytes,
                            .overflow = plan.max_bytes ? WQ_OVERFLOW_BLOCK
                                                       : WQ_OVERFLOW_REFUSE,
                            .waiting = WQ_WAITING_FLUSH),
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

/* O-80 O-86 */
TEST(no_add_is_lost_among_groups_and_deadlines)
{
    play(&(struct plan){
        .producers = 4, .consumers = 4, .priorities = true, .waits = true});
}

/* O-80 */
TEST(no_more_keys_of_a_group_are_held_than_allowed)
{
    play(&(struct plan){.producers = 3,
                        .consumers = 6,
                        .max_held = 2,
                        .priorities = true,
                        .waits = true});
}

/* O-80: and wake-ups are not lost. */
TEST(serial_groups_keep_many_workers_apart)
{
    play(&(struct plan){.producers = 2, .consumers = 8, .max_held = 1});
}

/* O-80: a group that gets 1 of 600 adds is served, too. */
TEST(no_group_starves_beside_a_flood)
{
    play(&(struct plan){
        .producers = 6, .consumers = 2, .max_held = 1, .floods = true});
}

/* O-89 */
TEST(no_add_is_lost_in_an_ageing_queue)
{
    play(&(struct plan){.producers = 4,
                        .consumers = 3,
                        .max_ready_ns = 50 * US,
                        .priorities = true,
                        .waits = true});
}

/* O-87 O-55: producers wait for workers. */
TEST(bytes_stay_below_the_bound_while_producers_wait)
{
    play(&(struct plan){.producers = 6,
                        .consumers = 3,
                        .max_held = 3,
                        .max_bytes = 300,
                        .waits = true});
}

WQ_TESTS(test(no_add_is_lost_among_groups_and_deadlines),
         test(no_more_keys_of_a_group_are_held_than_allowed),
         test(serial_groups_keep_many_workers_apart),
         test(no_group_starves_beside_a_flood),
         test(no_add_is_lost_in_an_ageing_queue),
         test(bytes_stay_below_the_bound_while_producers_wait));
