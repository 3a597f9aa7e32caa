/* SPDX-License-Identifier: MIT */
/* test_fd.c: does an event loop ever sleep while its queue has keys?
 *
 * O-70. Many threads add, by all ways there are, and one loop polls the queue's
 * descriptor and empties the queue, again and again: the beacon is put out
 * while the next key is on its way.
 *
 * WQ_STRESS_SECONDS says how long the second test takes (2).
 */
#include "support/wq_test.h"

#include "port/futex.h"

#if WQ__HAVE_FUTEX

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "memory/gate.h"
#include "memory/memory.h"
#include "port/time.h"

#define SECOND INT64_C(1000000000)

static wq_queue        *q;
static _Atomic uint64_t got;

static void
wait_a_moment(unsigned *seed, unsigned longest)
{
    *seed = *seed * 1664525U + 1013904223U;
    for (volatile unsigned i = (*seed >> 16) % longest; i > 0; i--)
        ;
}

/* ---- the loop ------------------------------------------------------------ */

/* Takes all there is; false: nothing will come any more. */
static bool
take_all(wq_item **item)
{
    wq_err err;

    while ((err = wq_next(q, 0, item)) == WQ_OK)
        atomic_fetch_add(&got, 1);
    return err != WQ_ESHUTDOWN;
}

/* Takes one, and does not look at the queue again before it polls. */
static bool
take_one(wq_item **item)
{
    const wq_err err = wq_next(q, 0, item);

    if (!err)
        atomic_fetch_add(&got, 1);
    return err != WQ_ESHUTDOWN;
}

/* How often poll() returned; 0: it slept for longer than anything takes. */
static uint64_t
run_loop(bool (*take)(wq_item **item))
{
    struct pollfd p = {.fd = wq_fd(q), .events = POLLIN};
    wq_item      *item = NULL;
    uint64_t      rounds = 0;

    do {
        if (poll(&p, 1, 20000) != 1)
            return 0;
        rounds++;
    } while (take(&item));
    return rounds;
}

static void *
loop_main(void *rounds)
{
    *(uint64_t *)rounds = run_loop(take_one);
    return NULL;
}

/* ---- many producers ------------------------------------------------------ */

enum { PRODUCERS = 4, KEYS_EACH = 50000 };

static atomic_int       producers;
static _Atomic uint64_t put;

/* Far more than the loop takes at a time would keep it from ever polling. */
static void
await_room(void)
{
    while (atomic_load(&put) - atomic_load(&got) > 2 * PRODUCERS)
        (void)sched_yield();
    atomic_fetch_add(&put, 1);
}

/* Every 64th comes later, so that the timer is armed meanwhile. */
static void *
produce(void *number)
{
    const uint64_t first = *(const uint64_t *)number * KEYS_EACH;
    unsigned       seed = (unsigned)first;
    wq_err         err = WQ_OK;

    for (uint64_t key = first; key < first + KEYS_EACH && !err; key++) {
        await_room();
        err = key % 64 ? wq_add(q, wq_u64(&key))
                       : wq_add_after(q, wq_u64(&key), (int64_t)(key % 100000));
        wait_a_moment(&seed, 400);
    }
    if (atomic_fetch_sub(&producers, 1) == 1)
        wq_shutdown(q); /* what waits is kept */
    return err ? q : NULL;
}

/* O-70 */
TEST(loop_sees_every_key_of_many_producers)
{
    uint64_t  numbers[PRODUCERS], rounds;
    pthread_t threads[PRODUCERS];

    atomic_store(&got, 0);
    atomic_store(&put, 0);
    atomic_store(&producers, PRODUCERS);
    assert_int_equal(wq_create(WQ_CONFIG(.waiting = WQ_WAITING_KEEP), &q),
                     WQ_OK);
    for (uint64_t i = 0; i < PRODUCERS; i++) {
        numbers[i] = i;
        assert_int_equal(
            pthread_create(&threads[i], NULL, produce, &numbers[i]), 0);
    }
    rounds = run_loop(take_all);
    for (int i = 0; i < PRODUCERS; i++) {
        void *failed;
        (void)pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    print_message("%llu rounds\n", (unsigned long long)rounds);
    assert_true(rounds > 0);
    assert_int_equal(atomic_load(&got), PRODUCERS * KEYS_EACH);
    wq_destroy(q);
}

/* ---- every key through the ring ------------------------------------------ */

/* What wq_add() does when the lock is taken. */
static void
hand_over(struct wq__memory *m, uint64_t n)
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
await_got(uint64_t n)
{
    const int64_t limit = wq__time_now() + 10 * SECOND;

    for (uint64_t i = 0; atomic_load(&got) != n; i++)
        if (i % 65536 == 65535 && wq__time_now() > limit)
            fail_msg("key %llu is in the ring, and the loop sleeps",
                     (unsigned long long)n);
}

/* One key wakes the loop; the other comes some time until it sleeps again. */
static void
hand_over_two(struct wq__memory *m, uint64_t n, unsigned *seed)
{
    hand_over(m, n);
    wait_a_moment(seed, 8000);
    hand_over(m, n + 1);
    await_got(n + 1);
}

/* O-70, by the argument I4 of src/memory/inbox.h */
TEST(no_key_stays_in_the_ring_while_the_loop_sleeps)
{
    const char *seconds = getenv("WQ_STRESS_SECONDS");
    pthread_t   thread;
    unsigned    seed = 1;
    uint64_t    n = 0, rounds;

    atomic_store(&got, 0);
    assert_int_equal(wq_create(NULL, &q), WQ_OK);
    assert_true(wq_fd(q) >= 0);
    struct wq__memory *m = (struct wq__memory *)(void *)q;
    wq__gate_enter(m);
    wq__inbox_open(&m->inbox);
    wq__gate_leave(m);
    assert_int_equal(pthread_create(&thread, NULL, loop_main, &rounds), 0);

    const int64_t end =
        wq__time_now() + (seconds ? strtoll(seconds, NULL, 10) : 2) * SECOND;
    for (; wq__time_now() < end; n += 2)
        hand_over_two(m, n + 1, &seed);
    wq_shutdown(q);
    (void)pthread_join(thread, NULL);
    print_message("%llu keys, %llu rounds\n", (unsigned long long)n,
                  (unsigned long long)rounds);
    assert_true(rounds > 0);
    wq_destroy(q);
}

WQ_TESTS(test(loop_sees_every_key_of_many_producers),
         test(no_key_stays_in_the_ring_while_the_loop_sleeps));

#else

#include <wq/wq.h>

/* O-70: there is no descriptor to poll. */
TEST(system_has_no_descriptors)
{
    wq_queue *q = NULL;

    assert_int_equal(wq_create(NULL, &q), WQ_OK);
    assert_int_equal(wq_fd(q), -1);
    wq_destroy(q);
}

WQ_TESTS(test(system_has_no_descriptors));

#endif
