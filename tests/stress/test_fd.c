/* SPDX-License-Identifier: MIT */
/* test_fd.c: does an event loop ever sleep while its queue has keys?
 *
 * O-70. Many threads add in every way, and one loop polls the queue's
 * descriptor and empties the queue, again and again: the loop resets the beacon
 * while the next key is on its way.
 */
#include "support/wq_test.h"

#include "port/futex.h"

#if WQ__HAVE_FUTEX

#include <poll.h>
#include <sched.h>

#include "stress/ring.h"

static wq_queue        *q;
static _Atomic uint64_t got;

/* ---- the loop ------------------------------------------------------------ */

/* Take all READY keys; false: the queue is shut down and empty. */
static bool
take_all(wq_item **item)
{
    wq_err err;

    while ((err = wq_next(q, 0, item)) == WQ_OK)
        atomic_fetch_add(&got, 1);
    return err != WQ_ESHUTDOWN;
}

/* Take one key, and poll before looking at the queue again. */
static bool
take_one(wq_item **item)
{
    const wq_err err = wq_next(q, 0, item);

    if (!err)
        atomic_fetch_add(&got, 1);
    return err != WQ_ESHUTDOWN;
}

/* How often poll() returned; 0: it timed out. */
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

static atomic_int       producers; /* that have not ended */
static _Atomic uint64_t numbers;   /* each producer takes one */
static _Atomic uint64_t put;

/* The loop polls only if it empties the queue: producers stay a few keys ahead
 * of it, and no more. */
static void
await_loop(void)
{
    while (atomic_load(&put) - atomic_load(&got) > 2 * PRODUCERS)
        (void)sched_yield();
    atomic_fetch_add(&put, 1);
}

/* Every 64th add has a delay, so that the timer is armed, too. */
static void *
produce(void *unused)
{
    const uint64_t first = atomic_fetch_add(&numbers, 1) * KEYS_EACH;
    struct dice    dice = own_dice();

    for (uint64_t key = first; key < first + KEYS_EACH; key++) {
        await_loop();
        expect_err(
            "add", WQ_OK,
            key % 64 ? wq_add(q, wq_u64(&key))
                     : wq_add_after(q, wq_u64(&key), (int64_t)(key % 100000)));
        spin_a_moment(&dice, 400);
    }
    if (atomic_fetch_sub(&producers, 1) == 1)
        wq_shutdown(q); /* WAITING keys are kept */
    return unused;
}

/* O-70 */
TEST(loop_sees_every_key_of_many_producers)
{
    struct crowd crowd = {.n = 0};

    atomic_store(&got, 0);
    atomic_store(&put, 0);
    atomic_store(&numbers, 0);
    atomic_store(&producers, PRODUCERS);
    expect_err("create", WQ_OK,
               wq_create(WQ_CONFIG(.waiting = WQ_WAITING_KEEP), &q));
    crowd_start(&crowd, PRODUCERS, produce, NULL);
    const uint64_t rounds = run_loop(take_all);
    crowd_join(&crowd);
    print_message("%llu rounds\n", (unsigned long long)rounds);
    assert_true(rounds > 0);
    assert_int_equal(atomic_load(&got), PRODUCERS * KEYS_EACH);
    wq_destroy(q);
}

/* ---- every key through the ring ------------------------------------------ */

/* One key wakes the loop; the other arrives before it sleeps again. */
static void
hand_over_two(struct wq__memory *m, uint64_t n, struct dice *dice)
{
    hand_over(m, n);
    spin_a_moment(dice, 8000);
    hand_over(m, n + 1);
    await_taken(&got, n + 1, "loop");
}

/* O-70, by the argument I4 of src/memory/inbox.h */
TEST(no_key_stays_in_the_ring_while_the_loop_sleeps)
{
    struct crowd crowd = {.n = 0};
    struct dice  dice = own_dice();
    uint64_t     n = 0, rounds = 0;

    atomic_store(&got, 0);
    expect_err("create", WQ_OK, wq_create(NULL, &q));
    assert_true(wq_fd(q) >= 0);
    struct wq__memory *m = open_ring(q);
    crowd_start(&crowd, 1, loop_main, &rounds);

    /* The other test takes no share of the time. */
    const int64_t end = wq__time_now() + 2 * share_or_ns(SECOND);
    for (; wq__time_now() < end; n += 2)
        hand_over_two(m, n + 1, &dice);
    wq_shutdown(q);
    crowd_join(&crowd);
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
