/* SPDX-License-Identifier: MIT */
/* test_handover.c: does a getter ever sleep while a key is in the ring?
 *
 * L3, by the argument I4 of src/memory/inbox.h, which is about one moment: a
 * getter falls asleep while a producer hands a key over. The tests in
 * test_queue.c seldom meet that moment, since a producer mostly finds the lock
 * free. Here every key goes through the ring, the getter never spins, and the
 * producer waits for a random time before each key. With `wake_from` stored in
 * a weaker order (release) this fails within some 100,000 keys in an optimised
 * build; without optimisation the store is over before the next load begins.
 */
#include "stress/ring.h"

static wq_queue        *q;
static _Atomic uint64_t got;

/* ---- every key through the ring ------------------------------------------ */

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

/* L3 */
TEST(no_key_stays_in_the_ring_while_the_getter_sleeps)
{
    struct crowd getter = {.n = 0};
    struct dice  dice = own_dice();
    uint64_t     n = 0;

    expect_err("create", WQ_OK, wq_create(NULL, &q));
    struct wq__memory *m = open_ring(q);
    m->may_spin = false;
    crowd_start(&getter, 1, get_all, NULL);

    const int64_t end = wq__time_now() + share_or_ns(SECOND);
    while (wq__time_now() < end)
        for (int i = 0; i < 100; i++) {
            spin_a_moment(&dice, 400);
            hand_over(m, ++n);
            await_taken(&got, n, "getter");
        }
    print_message("%llu keys\n", (unsigned long long)n);
    wq_shutdown(q);
    crowd_join(&getter);
    wq_destroy(q);
}

/* ---- a fake clock that never stands still -------------------------------- */

static wq_clock *fake;

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

/* C-08: a sleeper that times out while a thread wakes it waits for that thread,
 * which still uses the sleeper's memory. A sanitizer reports it otherwise. */
TEST(sleeper_that_times_out_waits_for_its_waker)
{
    struct crowd crowd = {.n = 0};
    struct dice  dice = own_dice();

    atomic_store(&stop, false);
    fake = wq_clock_fake_create(0);
    assert_non_null(fake);
    expect_err("create", WQ_OK, wq_create(WQ_CONFIG(.clock = fake), &q));
    crowd_start(&crowd, 1, tick, NULL);
    crowd_start(&crowd, 2, get_for_a_tick, NULL);
    const int64_t end = wq__time_now() + share_or_ns(SECOND);
    while (wq__time_now() < end) {
        expect_err("add", WQ_OK, wq_add_str(q, "key"));
        spin_a_moment(&dice, 400);
    }
    atomic_store(&stop, true);
    wq_shutdown(q);
    crowd_join(&crowd);
    wq_destroy(q);
    wq_clock_destroy(fake);
}

WQ_TESTS(test(no_key_stays_in_the_ring_while_the_getter_sleeps),
         test(sleeper_that_times_out_waits_for_its_waker));
