/* SPDX-License-Identifier: MIT */
/* test_lock.c: does the lock let one thread in at a time?
 *
 * K1 and K2 of src/port/lock.h, and the same for a lock with priority
 * inheritance. The guarded data is not atomic: two threads that have the lock
 * at the same time lose a count, or see each other. After a lost wake-up a
 * thread never ends.
 */
#include "stress/crowd.h"

#include <sched.h>

#include "port/lock.h"
#include "port/relax.h"

enum { MOST = 8 }; /* threads at a time; at least 2 */

/* Not atomic, but volatile, so that the compiler keeps every access. */
static struct {
    struct wq__lock   lock;
    volatile uint64_t who;   /* has the lock; 0: no thread */
    volatile uint64_t first; /* times the lock was taken */
    volatile uint64_t last;  /* the same, counted before the release */
} guarded;

static _Atomic uint64_t entered; /* the same, added up by the threads */
static _Atomic uint64_t numbers; /* each thread takes one, from 1 on */

/* ---- with the lock ------------------------------------------------------- */

static void
delay_release(struct dice *dice)
{
    const size_t how = dice_roll(dice, 64);

    if (how == 0)
        (void)sched_yield(); /* so that others find it taken */
    else if (how < 8)
        for (size_t i = 0; i < how; i++)
            wq__pause();
}

static void
hold(uint64_t me, struct dice *dice)
{
    wq__lock_assert_taken(&guarded.lock);
    if (guarded.who)
        broken("thread %llu took the lock, and %llu had it",
               (unsigned long long)me, (unsigned long long)guarded.who);
    guarded.who = me;
    guarded.first++;
    delay_release(dice);
    guarded.last++;
    if (guarded.who != me)
        broken("thread %llu had the lock, and %llu took it",
               (unsigned long long)me, (unsigned long long)guarded.who);
    guarded.who = 0;
}

/* ---- taking and releasing ------------------------------------------------ */

/* One call in `try_one_in` only tries; false: it did not get the lock. */
static bool
take_and_release(uint64_t me, struct dice *dice, size_t try_one_in)
{
    if (dice_roll(dice, try_one_in) == 0) {
        if (!wq__lock_try(&guarded.lock))
            return false;
    } else {
        wq__lock_take(&guarded.lock);
    }
    hold(me, dice);
    wq__lock_release(&guarded.lock);
    return true;
}

static void
pause_somehow(struct dice *dice)
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

static void *
take_in_bursts(void *unused)
{
    const uint64_t me = atomic_fetch_add(&numbers, 1) + 1;
    struct dice    dice = own_dice();
    uint64_t       times = 0;

    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        for (size_t n = 1 + dice_roll(&dice, 40); n > 0; n--)
            times += take_and_release(me, &dice, 4);
        atomic_fetch_add_explicit(&progress, 1, memory_order_relaxed);
        pause_somehow(&dice);
    }
    atomic_fetch_add(&entered, times);
    return unused;
}

/* ---- the tests ----------------------------------------------------------- */

static void
open_run(bool inherits)
{
    memset(&guarded, 0, sizeof guarded);
    if (!inherits)
        wq__lock_init(&guarded.lock);
    else if (wq__lock_init_inheriting(&guarded.lock))
        wq_test_skip("the system has no mutexes with priority inheritance");
    atomic_store(&entered, 0);
    atomic_store(&numbers, 0);
    atomic_store(&stop, false);
}

static void
close_run(struct crowd *crowd)
{
    atomic_store(&stop, true);
    crowd_join(crowd);
    expect_equal("times taken", atomic_load(&entered), guarded.first);
    expect_equal("times released", atomic_load(&entered), guarded.last);
    expect_equal("holder at the end", 0, guarded.who);
    wq__lock_fini(&guarded.lock);
}

static void
run_crowds(bool inherits)
{
    const int64_t slice_ns = share_ns() / (MOST - 1);
    struct crowd  dog, crowd = {.n = 0};

    start_watchdog(&dog);
    for (int n = 2; n <= MOST; n++) {
        open_run(inherits);
        crowd_start(&crowd, n, take_in_bursts, NULL);
        nap_ns(slice_ns);
        close_run(&crowd);
    }
    stop_watchdog(&dog);
}

TEST(lock_admits_one_thread_at_a_time)
{
    run_crowds(false);
}

TEST(inheriting_lock_admits_one_thread_at_a_time)
{
    run_crowds(true);
}

WQ_TESTS(test(lock_admits_one_thread_at_a_time),
         test(inheriting_lock_admits_one_thread_at_a_time));
