/* SPDX-License-Identifier: MIT */
/* test_port.c: do the lock, the parker and the clock keep their promises?
 *
 * What race detectors make of the lock is tested in tests/races. Here none is:
 * one lock is made as if there were. */
#include "support/wq_test.h"

#include <limits.h>
#include <sched.h>

#include <wq/wq.h>

#include "port/lock.h"
#include "port/park.h"
#include "port/race.h"
#include "port/random.h"
#include "port/relax.h"
#include "port/time.h"
#include "support/worker.h"

#define MS INT64_C(1000000)

/* ---- lock --------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 50000 };

static struct {
    struct wq__lock *lock;
    uint64_t         count;  /* guarded, and not atomic on purpose */
    uint64_t         inside; /* threads in the critical section */
    uint64_t         most;   /* the most there ever were */
} guarded;

static struct wq__lock fixed = WQ__LOCK_STATIC, made;

static void
guard_by(struct wq__lock *lock)
{
    guarded.lock = lock;
    guarded.count = guarded.inside = guarded.most = 0;
}

static struct wq__parker parker;

static int
open_both(void **state)
{
    (void)state;
    wq__lock_init(&made);
    guard_by(&made);
    wq__parker_init(&parker);
    return 0;
}

static int
close_both(void **state)
{
    (void)state;
    wq__parker_fini(&parker);
    wq__lock_fini(&made);
    return 0;
}

static void
enter_and_count(bool try, bool yield)
{
    while (try && !wq__lock_try(guarded.lock))
        (void)sched_yield();
    if (!try)
        wq__lock_take(guarded.lock);
    wq__lock_assert_taken(guarded.lock);
    guarded.inside++;
    if (guarded.inside > guarded.most)
        guarded.most = guarded.inside;
    if (yield) /* so that others come and find it taken */
        (void)sched_yield();
    guarded.count++;
    guarded.inside--;
    wq__lock_release(guarded.lock);
}

static int
count_up(struct worker *self)
{
    (void)self;
    for (int i = 0; i < ROUNDS; i++)
        enter_and_count(i % 3 == 1, i % 64 == 0);
    return 0;
}

/* A wake-up that gets lost shows as a worker that never ends. */
static void
expect_one_at_a_time(struct wq__lock *lock)
{
    struct worker *workers[THREADS];

    guard_by(lock);
    for (int i = 0; i < THREADS; i++)
        workers[i] = worker_start(count_up, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(worker_join(workers[i]), 0);
    assert_int_equal(guarded.count, THREADS * ROUNDS);
    assert_int_equal(guarded.most, 1);
}

TEST(lock_lets_one_thread_in_at_a_time)
{
    expect_one_at_a_time(&made);
    expect_one_at_a_time(&fixed);
#if WQ__HAVE_FUTEX
    made.kind = WQ__LOCK_WATCHED; /* as with a race detector */
    expect_one_at_a_time(&made);
#endif
}

/* Otherwise every lock would be slower, and no queue would have an inbox. */
TEST(no_race_detector_watches_a_plain_run)
{
    assert_false(wq__race_is_watched());
}

/* K3: CTest runs each test in a process of its own, which has one thread here. */
TEST(lock_of_a_process_with_one_thread_is_taken_once)
{
#if WQ__HAVE_FUTEX && WQ__HAVE_SINGLE_THREADED
    if (!wq__lock_is_alone()) /* a sanitizer has a thread */
        skip();
#endif
    wq__lock_take(guarded.lock);
    wq__lock_assert_taken(guarded.lock);
    assert_false(wq__lock_try(guarded.lock));
    wq__lock_release(guarded.lock);
    assert_true(wq__lock_try(guarded.lock));
    wq__lock_release(guarded.lock);
}

static int
try_lock(struct worker *self)
{
    (void)self;
    const bool taken = wq__lock_try(guarded.lock);
    if (taken)
        wq__lock_release(guarded.lock);
    return taken;
}

TEST(try_takes_a_free_lock_and_no_other)
{
    assert_true(wq__lock_try(guarded.lock));
    assert_int_equal(worker_join(worker_start(try_lock, NULL)), false);
    wq__lock_release(guarded.lock);
    assert_int_equal(worker_join(worker_start(try_lock, NULL)), true);
}

static int
count_once(struct worker *self)
{
    (void)self;
    enter_and_count(false, false);
    return 0;
}

TEST(threads_asleep_for_the_lock_get_it_in_turn)
{
    struct worker *workers[THREADS];

    wq__lock_take(guarded.lock);
    for (int i = 0; i < THREADS; i++)
        workers[i] = worker_start(count_once, NULL);
    worker_await_all_blocked(workers, THREADS);
    assert_int_equal(guarded.count, 0);
    wq__lock_release(guarded.lock);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(worker_join(workers[i]), 0);
    assert_int_equal(guarded.count, THREADS);
}

/* ---- parker ------------------------------------------------------------- */

static int written_before_unpark; /* not atomic on purpose */

static int
park(struct worker *self)
{
    (void)self;
    return wq__park(&parker, WQ_FOREVER) ? written_before_unpark : -1;
}

TEST(unpark_wakes_a_parker_for_good_an_alarm_does_not)
{
    assert_false(wq__parker_is_woken(&parker));
    wq__alarm(&parker);
    assert_false(wq__parker_is_woken(&parker));
    assert_false(wq__park(&parker, WQ_FOREVER));
    wq__unpark(&parker); /* before it sleeps: not lost */
    assert_true(wq__parker_is_woken(&parker));
    assert_true(wq__park(&parker, WQ_FOREVER));
    assert_true(wq__parker_is_woken(&parker));
    assert_true(wq__park(&parker, 0));
}

TEST(unpark_wakes_a_sleeper_who_sees_what_was_written_before)
{
    written_before_unpark = 0;
    struct worker *w = worker_start(park, NULL);
    worker_await_blocked(w);
    written_before_unpark = 42;
    wq__unpark(&parker);
    assert_int_equal(worker_join(w), 42);
}

TEST(park_lasts_until_its_deadline)
{
    const int64_t until = wq__time_now() + 2 * MS;

    assert_false(wq__park(&parker, until));
    assert_true(wq__time_now() >= until);
    assert_false(wq__park(&parker, 0)); /* in the past: it returns at once */
    assert_false(wq__park(&parker, wq__time_now() - 1));
}

TEST(many_sleeps_and_wake_ups_lose_none)
{
    for (int i = 0; i < 300; i++) {
        wq__parker_init(&parker);
        written_before_unpark = i;
        struct worker *w = worker_start(park, NULL);
        wq__unpark(&parker); /* before, while or after it goes to sleep */
        assert_int_equal(worker_join(w), i);
        wq__parker_fini(&parker);
    }
    wq__parker_init(&parker);
}

/* ---- clock and random numbers ------------------------------------------- */

TEST(time_never_goes_back)
{
    int64_t last = wq__time_now();

    assert_true(last > 0);
    for (int i = 0; i < 10000; i++) {
        const int64_t now = wq__time_now();
        assert_true(now >= last);
        last = now;
    }
}

/* O-15: where time_t has 32 bits, a far deadline is the last that it can say. */
TEST(seconds_beyond_time_t_become_the_last_ones)
{
    const int64_t century = INT64_C(100) * 365 * 86400;

    assert_int_equal(wq__time_seconds(century * 1000000000, 4), INT32_MAX);
    assert_int_equal(wq__time_seconds(century * 1000000000, 8), century);
    assert_int_equal(wq__time_seconds(INT64_C(7999999999), 4), 7);
    assert_int_equal(wq__time_seconds(WQ_FOREVER, 8), WQ_FOREVER / 1000000000);
}

TEST(random_numbers_differ)
{
    uint64_t a[2] = {0}, b[2] = {0};

    assert_int_equal(wq__random(a, sizeof a), WQ_OK);
    assert_int_equal(wq__random(b, sizeof b), WQ_OK);
    assert_memory_not_equal(a, b, sizeof a);
}

/* Every way of waiting for a moment ends. */
TEST(moment_of_any_round_passes)
{
    for (unsigned round = 0; round < 300; round++)
        wq__relax(round);
    wq__relax(UINT_MAX);
}

#define port_test(name) test_with(name, open_both, close_both)

WQ_TESTS(port_test(lock_lets_one_thread_in_at_a_time),
         test(no_race_detector_watches_a_plain_run),
         port_test(lock_of_a_process_with_one_thread_is_taken_once),
         port_test(try_takes_a_free_lock_and_no_other),
         port_test(threads_asleep_for_the_lock_get_it_in_turn),
         port_test(unpark_wakes_a_parker_for_good_an_alarm_does_not),
         port_test(unpark_wakes_a_sleeper_who_sees_what_was_written_before),
         port_test(park_lasts_until_its_deadline),
         port_test(many_sleeps_and_wake_ups_lose_none),
         test(time_never_goes_back),
         test(seconds_beyond_time_t_become_the_last_ones),
         test(random_numbers_differ), test(moment_of_any_round_passes));
