/* SPDX-License-Identifier: MIT */
/* test_lock.c: is one thread in at a time, whichever door it came by?
 *
 * The steps K1 to K6 of src/port/lock.h are about moments: the owner walks in
 * while somebody takes the side door away; one who lost it has not noticed, and
 * somebody else gets it. So ownership changes all the time here: threads come
 * in bursts, and whoever comes by the front door makes the side door easy to
 * get again.
 *
 * What is guarded is not atomic: two that are in at a time lose a count, or see
 * each other, or leave the lock taken for ever. Without the system call in
 * wq__barrier_store_heavy() this fails within seconds, mostly in the first, in
 * an optimised build; without one of the other steps in any.
 *
 * WQ_STRESS_SECONDS says how long the whole program takes (about 2).
 */
#include "stress/crowd.h"

#include <sched.h>
#include <string.h>

#include "port/lock.h"
#include "port/relax.h"

enum { MOST = 8 }; /* threads at a time; at least 2 */

/* Not atomic, but volatile, so that the compiler does as it is told. */
static struct {
    struct wq__lock   lock;
    volatile uint64_t who;    /* is in; 0: nobody */
    volatile uint64_t first;  /* times somebody was in, counted at first */
    volatile uint64_t last;   /* ... and at last */
    uint64_t          doors;  /* times the one in came by another door than
                                 the one before */
    uint64_t          side;   /* times somebody came by the side door */
    bool              before; /* by which one came the one before */
} guarded;

static _Atomic uint64_t entered; /* the same, counted by each for himself */
static _Atomic uint64_t numbers; /* every thread takes one, from 1 on */

/* ---- being in ------------------------------------------------------------ */

static void
note_door(void)
{
#if WQ__HAVE_FUTEX
    const bool sideways = guarded.lock.sideways;

    guarded.side += sideways;
    guarded.doors += sideways != guarded.before;
    guarded.before = sideways;
#endif
}

/* Few come to the same queue so often that they own it a second time; here they
 * do. Who has the front door may change it. */
static void
make_owning_easy(struct dice *dice)
{
#if WQ__HAVE_FUTEX
    if (!guarded.lock.sideways)
        guarded.lock.patience = 1 + (uint32_t)dice_roll(dice, 4);
#else
    (void)dice;
#endif
}

static void
stay(struct dice *dice)
{
    const size_t how = dice_roll(dice, 64);

    if (how == 0)
        (void)sched_yield(); /* so that others come and find it taken */
    else if (how < 8)
        for (size_t i = 0; i < how; i++)
            wq__pause();
}

static void
be_in(uint64_t me, struct dice *dice)
{
    wq__lock_assert_taken(&guarded.lock);
    if (guarded.who)
        broken("thread %llu came in, and %llu was there",
               (unsigned long long)me, (unsigned long long)guarded.who);
    guarded.who = me;
    guarded.first++;
    note_door();
    make_owning_easy(dice);
    stay(dice);
    guarded.last++;
    if (guarded.who != me)
        broken("thread %llu was in, and %llu came", (unsigned long long)me,
               (unsigned long long)guarded.who);
    guarded.who = 0;
}

/* ---- coming and going ---------------------------------------------------- */

/* One in so many only tries; true: it was in. */
static bool
come_and_go(uint64_t me, struct dice *dice, size_t try_one_in)
{
    if (dice_roll(dice, try_one_in) == 0) {
        if (!wq__lock_try(&guarded.lock))
            return false;
    } else {
        wq__lock_take(&guarded.lock);
    }
    be_in(me, dice);
    wq__lock_release(&guarded.lock);
    return true;
}

static void
rest(struct dice *dice)
{
    const size_t how = dice_roll(dice, 16);

    if (how == 0)
        nap_ns(20 * US);
    else if (how < 4)
        (void)sched_yield();
    else
        for (size_t i = dice_roll(dice, 200); i > 0; i--)
            wq__pause();
}

/* Often enough to own it, then a rest, in which others do. */
static void *
come_in_bursts(void *unused)
{
    const uint64_t me = atomic_fetch_add(&numbers, 1) + 1;
    struct dice    dice = own_dice();
    uint64_t       times = 0;

    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        for (size_t n = 1 + dice_roll(&dice, 40); n > 0; n--)
            times += come_and_go(me, &dice, 4);
        atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
        rest(&dice);
    }
    atomic_fetch_add(&entered, times);
    return unused;
}

/* Nothing but in and out, as the one thread of a program does; what the other
 * does is in its way. */
static void *
come_all_the_time(void *unused)
{
    const uint64_t me = atomic_fetch_add(&numbers, 1) + 1;
    struct dice    dice = own_dice();
    uint64_t       times = 0;

    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        for (int i = 0; i < 64; i++, times++) {
            wq__lock_take(&guarded.lock);
            be_in(me, &dice);
            wq__lock_release(&guarded.lock);
        }
        atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
    }
    atomic_fetch_add(&entered, times);
    return unused;
}

static void *
come_now_and_then(void *unused)
{
    const uint64_t me = atomic_fetch_add(&numbers, 1) + 1;
    struct dice    dice = own_dice();
    uint64_t       times = 0;

    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        times += come_and_go(me, &dice, 2);
        for (size_t i = dice_roll(&dice, 30); i > 0; i--)
            wq__pause();
    }
    atomic_fetch_add(&entered, times);
    return unused;
}

/* ---- the tests ----------------------------------------------------------- */

static void
open_game(void)
{
    memset(&guarded, 0, sizeof guarded);
    wq__lock_init(&guarded.lock);
    atomic_store(&entered, 0);
    atomic_store(&numbers, 0);
    atomic_store(&stop, false);
}

static void
close_game(struct crowd *crowd)
{
    atomic_store(&stop, true);
    crowd_join(crowd);
    expect_equal("times in, counted at first", atomic_load(&entered),
                 guarded.first);
    expect_equal("times in, counted at last", atomic_load(&entered),
                 guarded.last);
    expect_equal("who is in at the end", 0, guarded.who);
    wq__lock_fini(&guarded.lock);
}

/* Was it the side door that was tried? */
static void
expect_both_doors(uint64_t side, uint64_t doors)
{
    print_message("by the side door: %llu times; changes: %llu\n",
                  (unsigned long long)side, (unsigned long long)doors);
#if WQ__HAVE_FUTEX
    if (wq__barrier_available())
        assert_true(side > 0 && doors > 1);
#endif
}

TEST(threads_that_come_in_bursts_are_in_one_at_a_time)
{
    const int64_t slice_ns = share_ns() / (MOST - 1);
    struct crowd  dog, crowd = {.n = 0};
    uint64_t      side = 0, doors = 0;

    start_watchdog(&dog);
    for (int n = 2; n <= MOST; n++) {
        open_game();
        crowd_start(&crowd, n, come_in_bursts, NULL);
        nap_ns(slice_ns);
        close_game(&crowd);
        side += guarded.side;
        doors += guarded.doors;
    }
    stop_watchdog(&dog);
    expect_both_doors(side, doors);
}

/* K2, as often as can be: every visit is a moment at which the owner, who is
 * about to walk in, must not be missed. */
TEST(owner_and_a_visitor_do_not_miss_each_other)
{
    struct crowd dog, crowd = {.n = 0};

    start_watchdog(&dog);
    open_game();
    crowd_start(&crowd, 1, come_all_the_time, NULL);
    crowd_start(&crowd, 1, come_now_and_then, NULL);
    nap_ns(share_ns());
    close_game(&crowd);
    stop_watchdog(&dog);
    expect_both_doors(guarded.side, guarded.doors);
}

/* ---- threads that end: K6 ------------------------------------------------ */

enum { CHAINS = 4 };

static void *
come_a_few_times(void *unused)
{
    const uint64_t me = atomic_fetch_add(&numbers, 1) + 1;
    struct dice    dice = own_dice();
    uint64_t       times = 0;

    for (int i = 0; i < 20; i++)
        times += come_and_go(me, &dice, 4);
    atomic_fetch_add(&entered, times);
    atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
    return unused;
}

static void *
run_chain(void *unused)
{
    while (!atomic_load(&stop)) {
        struct crowd one = {.n = 0};
        crowd_start(&one, 1, come_a_few_times, NULL);
        crowd_join(&one);
    }
    return unused;
}

/* New threads are taken for owners that have ended, of other chains too. */
TEST(threads_that_end_leave_nobody_inside)
{
    struct crowd dog, crowd = {.n = 0};

    start_watchdog(&dog);
    open_game();
    crowd_start(&crowd, CHAINS, run_chain, NULL);
    nap_ns(share_ns());
    close_game(&crowd);
    stop_watchdog(&dog);
    print_message("%llu threads\n", (unsigned long long)atomic_load(&numbers));
}

WQ_TESTS(test(threads_that_come_in_bursts_are_in_one_at_a_time),
         test(owner_and_a_visitor_do_not_miss_each_other),
         test(threads_that_end_leave_nobody_inside));
