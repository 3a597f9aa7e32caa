/* SPDX-License-Identifier: MIT */
/* test_race.c: does the library work alike with a race detector and without?
 *
 * What detectors make of it is tested in tests/races. Here none is: the locks
 * are made as if there were one. */
#include "support/wq_test.h"

#include <sched.h>

#include "port/lock.h"
#include "port/race.h"
#include "support/worker.h"

enum { THREADS = 4, ROUNDS = 20000 };

static struct wq__lock fixed = WQ__LOCK_STATIC;

struct guarded {
    struct wq__lock *lock;
    unsigned         count; /* guarded, and not atomic on purpose */
};

static int
count_up(struct worker *self)
{
    struct guarded *g = self->arg;

    for (int i = 0; i < ROUNDS; i++) {
        while (i % 2 && !wq__lock_try(g->lock))
            (void)sched_yield();
        if (i % 2 == 0)
            wq__lock_take(g->lock);
        wq__lock_assert_taken(g->lock);
        g->count++;
        wq__lock_release(g->lock);
    }
    return 0;
}

static void
expect_one_at_a_time(struct wq__lock *lock)
{
    struct guarded g = {.lock = lock};
    struct worker *workers[THREADS];

    for (int i = 0; i < THREADS; i++)
        workers[i] = worker_start(count_up, &g);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(worker_join(workers[i]), 0);
    assert_int_equal(g.count, THREADS * ROUNDS);
}

/* Otherwise every lock would be slower, and no queue would have an inbox. */
TEST(no_race_detector_watches_a_plain_run)
{
    assert_false(wq__race_is_watched());
}

TEST(watched_lock_lets_one_thread_in_at_a_time)
{
    struct wq__lock lock;

    wq__lock_init(&lock);
#if WQ__HAVE_FUTEX
    lock.kind = WQ__LOCK_WATCHED;
#endif
    expect_one_at_a_time(&lock);
    wq__lock_fini(&lock);
}

TEST(static_lock_lets_one_thread_in_at_a_time)
{
    expect_one_at_a_time(&fixed);
}

WQ_TESTS(test(no_race_detector_watches_a_plain_run),
         test(watched_lock_lets_one_thread_in_at_a_time),
         test(static_lock_lets_one_thread_in_at_a_time));
