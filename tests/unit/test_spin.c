/* SPDX-License-Identifier: MIT */
/* test_spin.c: does spinning pay, and does a getter that spins hold up keys?
 *
 * The account of spin.h by itself; then a queue in which a getter seems to spin
 * and never runs: what the scheduler can do to any thread.
 */
#include "support/wq_test.h"

#include "memory/gate.h"
#include "support/worker.h"
#include "unit/dice.h"

#define assert_err(actual, expected)                                           \
    assert_string_equal(wq_err_name((wq_err)(actual)), wq_err_name(expected))

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

static wq_queue          *q;
static struct wq__memory *m;
static struct worker     *sleeper; /* in wq_get() */
static wq_item           *item;    /* what it got */
static const char         other;   /* its address stands for another thread */

static int
open_queue(void **state)
{
    (void)state;
    assert_err(wq_create(NULL, &q), WQ_OK);
    m = (struct wq__memory *)(void *)q;
    item = NULL;
    sleeper = worker_get(q, &item);
    worker_await_blocked(sleeper);
    return 0;
}

/* A getter spins from now on; producers hand keys over to it. */
static void
begin_to_spin(void)
{
    wq__gate_enter(m);
    wq__inbox_open(&m->inbox);
    atomic_store(&m->getter, &other);
    m->spinning = true;
    wq__gate_leave(m);
}

static void
stop_spinning(void)
{
    wq__gate_enter(m);
    m->spinning = false;
    (void)wq__gate_catch_up(m);
    wq__gate_leave(m);
}

static int
close_queue(void **state)
{
    (void)state;
    wq_destroy(q);
    return 0;
}

static void
hand_over(const char *key)
{
    const size_t before = wq__inbox_len(&m->inbox);

    assert_err(wq_add_str(q, key), WQ_OK);
    assert_int_equal(wq__inbox_len(&m->inbox), before + 1);
}

/* O-12: nobody is woken for the key that the spinning getter will take. */
TEST(one_key_is_left_to_the_getter_that_spins)
{
    begin_to_spin();
    hand_over("one");
    worker_await_blocked(sleeper);
    stop_spinning();
    assert_err(worker_join(sleeper), WQ_OK);
    assert_memory_equal(item->key.data, "one", 3);
}

/* O-12 */
TEST(second_key_wakes_a_sleeper_though_a_getter_spins)
{
    begin_to_spin();
    hand_over("one");
    assert_err(wq_add_str(q, "two"), WQ_OK);
    assert_err(worker_join(sleeper), WQ_OK);
    assert_memory_equal(item->key.data, "one", 3);
    stop_spinning();
    assert_int_equal(wq_len(q), 1);
}

/* O-12: the key that the spinning getter will take may be READY already. */
TEST(key_behind_a_ready_one_wakes_a_sleeper_though_a_getter_spins)
{
    begin_to_spin();
    hand_over("one");
    assert_int_equal(wq_len(q), 1); /* taken in */
    assert_err(wq_add_str(q, "two"), WQ_OK);
    assert_err(worker_join(sleeper), WQ_OK);
    stop_spinning();
    assert_int_equal(wq_len(q), 1);
}

/* O-12: both keys came just before the getter began to sleep. */
TEST(two_keys_in_the_inbox_keep_a_getter_awake_though_one_spins)
{
    begin_to_spin();
    wq__lock_take(&m->lock);
    atomic_store(&m->rouse_from, WQ__ROUSE_NOBODY);
    hand_over("one");
    hand_over("two");
    wq__lock_release(&m->lock);
    wq__gate_enter(m);
    wq__gate_leave(m); /* the last look */
    assert_err(worker_join(sleeper), WQ_OK);
    stop_spinning();
}

#define queue_test(name) test_with(name, open_queue, close_queue)

WQ_TESTS(
    test(spins_never_cost_more_than_they_saved),
    test(getter_that_spins_in_vain_tries_once_in_eight_sleeps),
    test(getter_that_finds_keys_soon_may_wait_longer),
    queue_test(one_key_is_left_to_the_getter_that_spins),
    queue_test(second_key_wakes_a_sleeper_though_a_getter_spins),
    queue_test(key_behind_a_ready_one_wakes_a_sleeper_though_a_getter_spins),
    queue_test(two_keys_in_the_inbox_keep_a_getter_awake_though_one_spins));
