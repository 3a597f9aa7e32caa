/* SPDX-License-Identifier: MIT */
/* test_groups.c: do groups keep their laws when many threads add and work?
 *
 * L1 and L3 (tracking.h), and O-80: no more keys of a group are HELD than the
 * bound allows, and no group starves, however many adds another one gets. No
 * more keys are offered than are READY.
 */
#include "stress/tracking.h"

enum { GROUPS = 12, KEYS = 240, LEVELS = 3 };

struct plan {
    int     producers, consumers;
    size_t  max_held;     /* of a group; 0: no bound */
    int64_t max_ready_ns; /* ageing; 0: none */
    size_t  max_bytes;    /* blocks producers; 0: no bound */
    bool    priorities;   /* adds use several priorities */
    bool    waits;        /* some adds have a delay */
    bool    floods;       /* group 0 gets nearly all adds */
};

static struct plan      plan;
static struct counting  mem;
static wq_queue        *q;
static struct tracked   known[KEYS];
static char             names[KEYS][16];
static atomic_int       held[GROUPS];   /* by workers, now */
static _Atomic uint64_t served[GROUPS]; /* hand-outs so far */
static _Atomic uint64_t delivered;

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
        keys[i] = wq_str(names[which[i]]);
        versions[i] = want(&known[which[i]]);
    }
    const wq_err err = n == 1 && !how.after_ns && !how.priority
                           ? wq_add(q, keys[0])
                           : wq_add_with(q, &how, keys, n);
    for (size_t i = 0; !err && i < n; i++)
        accept(&known[which[i]], versions[i]);
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

static size_t
index_of(const wq_item *item)
{
    size_t k = 0;

    while (k < KEYS && strcmp(names[k], item->key.data))
        k++;
    if (k == KEYS)
        broken("an unknown key was handed out");
    return k;
}

static void
begin_work(const wq_item *item)
{
    const size_t k = index_of(item);
    const size_t group = group_of(k);

    begin_loan(&known[k], item);
    const int now = atomic_fetch_add(&held[group], 1) + 1;
    if (plan.max_held && (size_t)now > plan.max_held)
        broken("O-80: %d keys of group %zu are HELD", now, group);
    atomic_fetch_add(&served[group], 1);
    atomic_fetch_add(&delivered, 1);
}

static void
end_work(const wq_item *item)
{
    const size_t k = index_of(item);

    atomic_fetch_sub(&held[group_of(k)], 1);
    end_loan(&known[k]);
}

static struct work work = {&q, begin_work, end_work};

/* ---- the observer ------------------------------------------------------- */

static void *
observe(void *unused)
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

/* ---- a run --------------------------------------------------------------- */

static void
prepare(void)
{
    for (size_t k = 0; k < KEYS; k++)
        (void)snprintf(names[k], sizeof names[k], "%zu/%zu", group_of(k), k);
    for (size_t g = 0; g < GROUPS; g++) {
        atomic_store(&held[g], 0);
        atomic_store(&served[g], 0);
    }
    atomic_store(&delivered, 0);
}

static void
play(const struct plan *wanted)
{
    plan = *wanted;
    prepare();
    q = create_tracked(known, KEYS, &mem,
                       WQ_CONFIG(.group = wq_group_before_slash,
                                 .group_max_held = plan.max_held,
                                 .max_ready_ns = plan.max_ready_ns,
                                 .max_bytes = plan.max_bytes,
                                 .overflow = plan.max_bytes
                                                 ? WQ_OVERFLOW_BLOCK
                                                 : WQ_OVERFLOW_REFUSE,
                                 .waiting = WQ_WAITING_FLUSH));
    run_roles(q, (struct role){plan.consumers, consume_all, &work},
              (struct role[]){
                  {plan.producers, produce, NULL}, {1, observe, NULL}, {0}});
    expect_all_seen(known, KEYS);
    for (size_t g = 0; g < GROUPS; g++)
        if (!served[g])
            broken("group %zu was not served", g);
    const wq_stats c = look(q);
    expect_equal("known keys left", 0, c.known);
    expect_equal("bytes of keys left", 0, c.bytes);
    destroy_drained(q, &mem, delivered);
}

/* O-80 O-86 */
PLAY(no_add_is_lost_among_groups_and_deadlines, .producers = 4, .consumers = 4,
     .priorities = true, .waits = true)

/* O-80 */
PLAY(no_more_keys_of_a_group_are_held_than_allowed, .producers = 3,
     .consumers = 6, .max_held = 2, .priorities = true, .waits = true)

/* O-80: no wake-up is lost. */
PLAY(serial_groups_keep_many_workers_apart, .producers = 2, .consumers = 8,
     .max_held = 1)

/* O-80: a group that gets one add in 600 is served, too. */
PLAY(no_group_starves_beside_a_flood, .producers = 6, .consumers = 2,
     .max_held = 1, .floods = true)

/* O-89 */
PLAY(no_add_is_lost_in_an_ageing_queue, .producers = 4, .consumers = 3,
     .max_ready_ns = 50 * US, .priorities = true, .waits = true)

/* O-87 O-55: producers wait for workers. */
PLAY(bytes_stay_below_the_bound_while_producers_wait, .producers = 6,
     .consumers = 3, .max_held = 3, .max_bytes = 300, .waits = true)

WQ_TESTS(test(no_add_is_lost_among_groups_and_deadlines),
         test(no_more_keys_of_a_group_are_held_than_allowed),
         test(serial_groups_keep_many_workers_apart),
         test(no_group_starves_beside_a_flood),
         test(no_add_is_lost_in_an_ageing_queue),
         test(bytes_stay_below_the_bound_while_producers_wait));
