/* SPDX-License-Identifier: MIT */
/* test_handover.c: is a getter ever left asleep with a key in the ring?
 *
 * L3, by the argument I4 of src/memory/inbox.h, which is about one moment: a
 * getter falls asleep while a producer hands a key over. The tests in
 * test_queue.c seldom meet it, since a producer mostly finds the lock free.
 * Here every key goes through the ring, the getter never spins, and the
 * producer waits a random moment before each. With `rouse_from` stored in a
 * weaker order (release) this fails within some 100,000 keys, in an optimised
 * build: without optimisation the store is over before the next load begins.
 *
 * WQ_STRESS_SECONDS says how long the whole program takes (2).
 */
#include "support/wq_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "memory/gate.h"
#include "memory/memory.h"
#include "port/time.h"

#define SECOND INT64_C(1000000000)

/* ---- every key through the ring ------------------------------------------ */

static wq_queue          *q;
static struct wq__memory *m;
static _Atomic uint64_t   got;

static void *
get_all(void *unused)
{
    wq_item *item;

    while (wq_get(q, &item) == WQ_OK) {
        (void)wq_done(q, item);
        atomic_fetch_add(&got, 1);
    }
    return unused;
}

/* What wq_add() does when the lock is taken. */
static void
hand_over(uint64_t n)
{
    const wq_key   key = wq_u64(&n);
    const uint32_t hash = wq__core_hash(&m->core, key);
    uint64_t       position;

    assert_true(wq__inbox_put(&m->inbox, key, hash, 0, &position));
    if (position < atomic_load(&m->rouse_from))
        return;
    wq__gate_enter(m);
    (void)wq__gate_catch_up(m);
    wq__gate_leave(m);
}

static void
wait_a_moment(unsigned *seed)
{
    *seed = *seed * 1664525U + 1013904223U;
    for (volatile unsigned i = (*seed >> 16) % 400; i > 0; i--)
        ;
}

/* The producer does not let go of its processor: it is the race that counts. */
static void
await_got(uint64_t n)
{
    const int64_t limit = wq__time_now() + 20 * SECOND;

    for (uint64_t i = 0; atomic_load(&got) != n; i++)
        if (i % 65536 == 65535 && wq__time_now() > limit)
            fail_msg("key %llu is in the ring, and the getter sleeps",
                     (unsigned long long)n);
}

static int64_t
duration(void)
{
    const char *seconds = getenv("WQ_STRESS_SECONDS");
    return (seconds ? strtoll(seconds, NULL, 10) : 2) * SECOND / 2;
}

/* L3 */
TEST(no_key_stays_in_the_ring_while_the_getter_sleeps)
{
    pthread_t thread;
    unsigned  seed = 1;
    uint64_t  n = 0;

    assert_int_equal(wq_create(NULL, &q), WQ_OK);
    m = (struct wq__memory *)(void *)q;
    wq__gate_enter(m);
    wq__inbox_open(&m->inbox);
    wq__gate_leave(m);
    m->may_spin = false;
    assert_int_equal(pthread_create(&thread, NULL, get_all, NULL), 0);

    const int64_t end = wq__time_now() + duration();
    while (wq__time_now() < end)
        for (int i = 0; i < 100; i++) {
            wait_a_moment(&seed);
            hand_over(++n);
            await_got(n);
        }
    print_message("%llu keys\n", (unsigned long long)n);
    wq_shutdown(q);
    (void)pthread_join(thread, NULL);
    wq_destroy(q);
}

/* ---- a fake clock that never stands still -------------------------------- */

static wq_clock   *fake;
static atomic_bool stop;

static void *
get_for_a_tick(void *unused)
{
    wq_item *item;

    while (!atomic_load(&stop))
        if (wq_get_within(q, 1, &item) == WQ_OK)
            (void)wq_done(q, item);
    return unused;
}

static void *
tick(void *unused)
{
    while (!atomic_load(&stop))
        wq_clock_fake_step(fake, 1);
    return unused;
}

/* C-08: a sleeper whose time is up while it is being woken stays until it was:
 * its waker is still looking at it. A sanitizer would see the difference. */
TEST(sleeper_whose_time_is_up_waits_for_its_waker)
{
    pthread_t threads[3];

    atomic_store(&stop, false);
    fake = wq_clock_fake_create(0);
    assert_non_null(fake);
    assert_int_equal(wq_create(WQ_CONFIG(.clock = fake), &q), WQ_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, i ? get_for_a_tick : tick, NULL),
            0);
    const int64_t end = wq__time_now() + duration();
    unsigned      seed = 1;
    while (wq__time_now() < end) {
        assert_int_equal(wq_add_str(q, "key"), WQ_OK);
        wait_a_moment(&seed);
    }
    atomic_store(&stop, true);
    wq_shutdown(q);
    for (int i = 0; i < 3; i++)
        (void)pthread_join(threads[i], NULL);
    wq_destroy(q);
    wq_clock_destroy(fake);
}

WQ_TESTS(test(no_key_stays_in_the_ring_while_the_getter_sleeps),
         test(sleeper_whose_time_is_up_waits_for_its_waker));
