/* SPDX-License-Identifier: MIT */
/* test_spin.c: does spinning pay, and does a getter that spins hold up keys?
 *
 * The account of spin.h by itself; then a queue in which a getter seems to spin
 * and never runs: what the scheduler can do to any thread.
 */
#include "unit/dice.h"
#include "unit/queue_fixture.h"

/* ---- the account -------------------------------------------------------- */

/* O-12: whatever comes, looks are paid by what spinning saved, by an eighth of
 * a sleep for each sleep, and by the opening balance. */
TEST(spins_never_cost_more_than_they_saved)
{
    struct dice     dice = dice_seeded("spins");
    struct wq__spin spin;
    int64_t         spent = 0, saved = 0, trials = 0;

    wq__spin_init(&spin);
    for (int i = 0; i < 1000000; i++) {
        const bool lucky = dice_roll(&dice, 100) < (size_t)(i / 10000);
        const int  limit = wq__spin_limit(&spin);

        assert_in_range(limit, 0, WQ__SPIN_MOST);
        const int  looks = limit ? (int)dice_roll(&dice, (size_t)limit + 1) : 0;
        const bool got = limit && lucky;
        wq__spin_pay(&spin, got ? looks : limit, got);
        spent += got ? looks : limit;
        saved += got ? WQ__SPIN_WORTH : 0;
        if (!got) {
            wq__spin_note_sleep(&spin);
            trials += WQ__SPIN_WORTH / 8;
        }
        assert_true(spent <= saved + trials + WQ__SPIN_WORTH);
        assert_in_range(spin.account, 0, WQ__SPIN_MOST);
    }
}

TEST(getter_that_spins_in_vain_tries_once_in_eight_sleeps)
{
    struct wq__spin spin;
    int             spins = 0;

    wq__spin_init(&spin);
    for (int sleeps = 0; sleeps < 800; sleeps++) {
        const int limit = wq__spin_limit(&spin);

        spins += limit > 0;
        wq__spin_pay(&spin, limit, false);
        wq__spin_note_sleep(&spin);
    }
    assert_int_equal(spins, 100);
}

TEST(getter_that_finds_keys_soon_may_wait_longer)
{
    struct wq__spin spin;

    wq__spin_init(&spin);
    for (int i = 0; i < 100; i++) {
        assert_true(wq__spin_limit(&spin) >= WQ__SPIN_WORTH);
        wq__spin_pay(&spin, 10, true);
    }
    assert_int_equal(wq__spin_limit(&spin), WQ__SPIN_MOST);
}

/* ---- a getter that spins and does not run ------------------------------- */

static struct worker *sleeper; /* in wq_get() */
static wq_item       *item;    /* what it got */
static const char     other;   /* its address stands for another thread */

/* A getter spins from now on; producers hand keys over to it. */
static void
begin_to_spin(void)
{
    wq__gate_enter(m);
    wq__inbox_open(&m->inbox);
    atomic_store(&m->getter, &other);
    m->spinner = ++m->spins;
    atomic_store(&m->spin_ends_ns, INT64_MAX);
    wq__gate_leave(m);
}

static void
stop_spinning(void)
{
    wq__gate_enter(m);
    m->spinner = 0;
    (void)wq__gate_catch_up(m);
    wq__gate_leave(m);
}

/* A queue with a getter that sleeps, and one that spins. */
static int
open_spinning(void **state)
{
    (void)open_queue(state);
    item = NULL;
    sleeper = worker_get(q, &item);
    worker_await_blocked(sleeper);
    begin_to_spin();
    return 0;
}

/* Key number `n`, through the inbox, without a wake-up. */
static void
hand_over(uint64_t n)
{
    const size_t before = wq__inbox_len(&m->inbox);

    assert_err(wq_add(q, wq_u64(&n)), WQ_OK);
    assert_int_equal(wq__inbox_len(&m->inbox), before + 1);
}

static void
hand_over_many(uint64_t from, uint64_t to)
{
    for (uint64_t n = from; n < to; n++)
        hand_over(n);
    worker_await_blocked(sleeper);
}

/* The sleeper was woken, and has the first key. */
static void
expect_woken(void)
{
    const uint64_t first = 0;

    assert_err(worker_join(sleeper), WQ_OK);
    assert_memory_equal(item->key.data, &first, sizeof first);
}

/* O-12: a getter that spins sees keys soon, and wakes others if need be. */
TEST(few_keys_are_left_to_the_getter_that_spins)
{
    hand_over_many(0, WQ__SPARED);
    stop_spinning();
    expect_woken();
}

/* O-12 */
TEST(many_keys_wake_a_sleeper_though_a_getter_spins)
{
    const uint64_t last = WQ__SPARED;

    hand_over_many(0, WQ__SPARED);
    assert_err(wq_add(q, wq_u64(&last)), WQ_OK);
    expect_woken();
    stop_spinning();
    assert_int_equal(wq_len(q), WQ__SPARED);
}

/* O-12: keys that are READY count, too. */
TEST(keys_behind_ready_ones_wake_a_sleeper_despite_a_spinner)
{
    const uint64_t last = WQ__SPARED;

    hand_over(0);
    assert_int_equal(wq_len(q), 1); /* taken in */
    hand_over_many(1, WQ__SPARED);
    assert_err(wq_add(q, wq_u64(&last)), WQ_OK);
    expect_woken();
    stop_spinning();
}

/* O-12: the first key, if the getter has spun for longer than any spin lasts. */
TEST(key_wakes_a_sleeper_when_the_spinner_does_not_run)
{
    const uint64_t first = 0;

    atomic_store(&m->spin_ends_ns, 0);
    assert_err(wq_add(q, wq_u64(&first)), WQ_OK);
    expect_woken();
    stop_spinning();
}

/* O-12: both keys came just before the getter began to sleep. */
TEST(two_keys_in_the_inbox_keep_a_second_getter_awake)
{
    wq__lock_take(&m->lock);
    atomic_store(&m->wake_from, WQ__WAKE_NOBODY);
    hand_over(0);
    hand_over(1);
    wq__lock_release(&m->lock);
    wq__gate_enter(m);
    wq__gate_leave(m); /* the last look */
    expect_woken();
    stop_spinning();
}

#define spin_test(name) test_with(name, open_spinning, close_queue)

WQ_TESTS(test(spins_never_cost_more_than_they_saved),
         test(getter_that_spins_in_vain_tries_once_in_eight_sleeps),
         test(getter_that_finds_keys_soon_may_wait_longer),
         spin_test(few_keys_are_left_to_the_getter_that_spins),
         spin_test(many_keys_wake_a_sleeper_though_a_getter_spins),
         spin_test(keys_behind_ready_ones_wake_a_sleeper_despite_a_spinner),
         spin_test(key_wakes_a_sleeper_when_the_spinner_does_not_run),
         spin_test(two_keys_in_the_inbox_keep_a_second_getter_awake));
