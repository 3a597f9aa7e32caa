/* SPDX-License-Identifier: MIT */
/* test_patience.c: are keys left to getters that are awake, and not for long?
 *
 * The counts of patience.h by themselves; then a queue in which keys seem to be
 * handed out fast, with this thread as the getter that is awake, and others that
 * sleep.
 */
#include "unit/queue_fixture.h"

/* ---- the counts --------------------------------------------------------- */

enum { GETS = WQ__PATIENCE_GETS };

static struct wq__patience
fast_patience(void)
{
    struct wq__patience p;

    wq__patience_init(&p, true);
    wq__patience_time(&p, WQ__PATIENCE_NS);
    assert_true(p.fast);
    return p;
}

/* O-12 */
TEST(gets_are_timed_in_bunches)
{
    struct wq__patience p;
    int64_t             now = WQ_SECONDS(1);

    wq__patience_init(&p, true);
    for (int bunch = 0; bunch < 3; bunch++) {
        for (int i = 1; i < GETS; i++)
            assert_false(wq__patience_count(&p));
        assert_true(wq__patience_count(&p));
        wq__patience_time(&p, now);
        assert_int_equal(p.fast, bunch == 1); /* the first is not known */
        now += WQ__PATIENCE_NS + bunch;
    }
}

TEST(gets_are_not_timed_where_patience_is_not_allowed)
{
    struct wq__patience p;

    wq__patience_init(&p, false);
    for (int i = 0; i < 2 * GETS; i++)
        assert_false(wq__patience_count(&p));
}

/* O-12: what was fast may be slow now. */
TEST(no_nap_begins_long_after_a_burst)
{
    struct wq__patience p = fast_patience();

    wq__patience_nap(&p, 100, 3, p.timed_ns + WQ__PATIENCE_STALE_NS);
    assert_true(wq__patience_naps(&p));
    (void)wq__patience_wake(&p, 103);
    wq__patience_nap(&p, 103, 3, p.timed_ns + WQ__PATIENCE_STALE_NS + 1);
    assert_false(wq__patience_naps(&p));
    assert_false(p.fast);
}

/* O-12 */
TEST(nap_follows_a_nap_while_those_awake_keep_up)
{
    struct wq__patience p = fast_patience();

    assert_false(wq__patience_naps(&p));
    wq__patience_nap(&p, 100, 3, 70000);
    assert_true(wq__patience_naps(&p));
    assert_int_equal(p.nap_ends_ns, 70000 + WQ__NAP_NS);
    assert_true(wq__patience_wake(&p, 103));
    assert_false(wq__patience_naps(&p));
    assert_true(p.fast);
}

/* O-12 */
TEST(key_that_is_left_for_a_nap_ends_the_patience)
{
    struct wq__patience p = fast_patience();

    wq__patience_nap(&p, 100, 3, 0);
    assert_false(wq__patience_wake(&p, 102));
    assert_false(p.fast);
}

TEST(no_nap_follows_when_nothing_is_handed_out)
{
    struct wq__patience p = fast_patience();

    wq__patience_nap(&p, 100, 0, 0);
    assert_false(wq__patience_wake(&p, 100));
    assert_true(p.fast);
}

/* ---- a queue ------------------------------------------------------------ */

static struct worker *sleepers[2]; /* in wq_get() */
static wq_item       *items[2];    /* what they got */
static wq_item       *held;        /* what this thread works on */

/* Keys are handed out fast from now on. */
static void
be_fast(void)
{
    wq__gate_enter(m);
    m->patience.fast = true;
    m->patience.timed_ns = WQ_FOREVER / 2; /* and nobody has forgotten it */
    wq__gate_leave(m);
}

static void
sleep_one_more(int i)
{
    items[i] = NULL;
    sleepers[i] = worker_get(q, &items[i]);
    worker_await_blocked(sleepers[i]);
}

/* A nap begins that takes as long as the test. */
static void
nap_for_long(void)
{
    wq__gate_enter(m);
    wq__patience_nap(&m->patience, m->core.fence, 0, WQ_FOREVER / 2);
    wq__gate_leave(m);
    worker_await_blocked(sleepers[0]); /* as the timekeeper */
}

/* This thread works on a key, another one sleeps. */
static int
open_patient(void **state)
{
    (void)open_queue(state);
    add("held");
    held = take("held");
    sleep_one_more(0);
    be_fast();
    return 0;
}

static void
expect_key(int i, const char *key)
{
    assert_err(worker_join(sleepers[i]), WQ_OK);
    assert_string_equal(items[i]->key.data, key);
    assert_err(wq_done(q, items[i]), WQ_OK);
}

/* O-12 */
TEST(key_is_left_to_the_getter_that_is_awake)
{
    nap_for_long();
    add("a");
    worker_await_blocked(sleepers[0]);
    assert_int_equal(wq_len(q), 1);
    assert_err(wq_next(q, WQ_FOREVER, &held), WQ_OK);
    assert_string_equal(held->key.data, "a");
    wq_shutdown(q);
    assert_err(worker_join(sleepers[0]), WQ_ESHUTDOWN);
}

/* O-12: through the inbox, too, without the lock. */
TEST(producer_wakes_nobody_during_a_nap)
{
    nap_for_long();
    wq__gate_enter(m);
    wq__gate_leave(m);
    assert_true(atomic_load(&m->wake_from) == WQ__WAKE_NOBODY);
    assert_err(wq_done(q, held), WQ_OK); /* nobody is awake any more */
    assert_true(atomic_load(&m->wake_from) == 0);
    add("a");
    expect_key(0, "a");
}

/* O-12: this thread does not come back for it. */
TEST(key_is_taken_at_the_end_of_a_nap)
{
    add("a");
    expect_key(0, "a");
    assert_false(m->patience.fast);
    assert_err(wq_done(q, held), WQ_OK);
}

TEST(keys_are_taken_by_all_who_sleep)
{
    sleep_one_more(1);
    add("a");
    add("b");
    assert_err(worker_join(sleepers[0]), WQ_OK);
    assert_err(worker_join(sleepers[1]), WQ_OK);
    assert_err(wq_done_many(q, items, 2), WQ_OK);
    assert_err(wq_done(q, held), WQ_OK);
}

/* O-12 */
TEST(key_wakes_a_getter_when_none_is_awake)
{
    assert_err(wq_done(q, held), WQ_OK);
    add("a");
    expect_key(0, "a");
    assert_true(m->patience.fast);
    assert_false(wq__patience_naps(&m->patience));
}

TEST(deadline_is_not_put_off_by_a_nap)
{
    nap_for_long();
    assert_err(wq_add_after(q, wq_str("a"), 1), WQ_OK);
    expect_key(0, "a");
    assert_err(wq_done(q, held), WQ_OK);
}

TEST(interrupt_ends_a_nap)
{
    nap_for_long();
    add("a");
    worker_await_blocked(sleepers[0]);
    wq_interrupt(q);
    assert_err(worker_join(sleepers[0]), WQ_EINTERRUPTED);
    work_on("a");
    assert_err(wq_done(q, held), WQ_OK);
}

TEST(get_times_out_during_a_nap)
{
    wq_item *item = NULL;

    nap_for_long();
    assert_err(wq_get_within(q, 1000000, &item), WQ_ETIMEDOUT);
    wq_shutdown(q);
    assert_err(worker_join(sleepers[0]), WQ_ESHUTDOWN);
    assert_err(wq_done(q, held), WQ_OK);
}

TEST(shutdown_does_not_wait_for_a_nap)
{
    nap_for_long();
    add("a");
    worker_await_blocked(sleepers[0]);
    wq_shutdown(q);
    expect_key(0, "a");
    assert_err(wq_done(q, held), WQ_OK);
}

/* O-12: keys of a higher priority would be handed out instead of it. */
TEST(key_behind_others_of_higher_priority_wakes_a_getter)
{
    const wq_key high = wq_str("high");

    nap_for_long();
    assert_err(wq_add_with(q, WQ_ADD(.priority = 1), &high, 1), WQ_OK);
    expect_key(0, "high");
    sleep_one_more(0);
    be_fast();
    add("low");
    expect_key(0, "low");
    assert_err(wq_done(q, held), WQ_OK);
}

/* With one thread there is nobody to be patient for. */
TEST(gets_are_counted_when_there_are_several_threads)
{
    add("a");
    work_on("a");
    assert_int_equal(m->patience.gets, 0);
    open_inbox();
    for (int i = 1; i < GETS; i++) {
        add("a");
        work_on("a");
        assert_int_equal(m->patience.gets, i);
    }
    assert_int_equal(m->patience.timed_ns, 0);
    add("a");
    work_on("a");
    assert_int_equal(m->patience.gets, 0);
    assert_int_not_equal(m->patience.timed_ns, 0);
}

TEST(real_time_queue_is_not_patient)
{
    wq_destroy(q);
    create(WQ_CONFIG(.real_time = true));
    assert_false(m->patience.allowed);
}

/* Its naps would never end. */
TEST(queue_with_a_fake_clock_is_not_patient)
{
    wq_clock *fake = wq_clock_fake_create(0);

    assert_non_null(fake);
    wq_destroy(q);
    create(WQ_CONFIG(.clock = fake));
    assert_false(m->patience.allowed);
    wq_destroy(q);
    wq_clock_destroy(fake);
    create(WQ_CONFIG(.clock = wq_clock_monotonic()));
    assert_true(m->patience.allowed);
}

#define patient_test(name) test_with(name, open_patient, close_queue)

WQ_TESTS(test(gets_are_timed_in_bunches),
         test(gets_are_not_timed_where_patience_is_not_allowed),
         test(no_nap_begins_long_after_a_burst),
         test(nap_follows_a_nap_while_those_awake_keep_up),
         test(key_that_is_left_for_a_nap_ends_the_patience),
         test(no_nap_follows_when_nothing_is_handed_out),
         patient_test(key_is_left_to_the_getter_that_is_awake),
         patient_test(producer_wakes_nobody_during_a_nap),
         patient_test(key_is_taken_at_the_end_of_a_nap),
         patient_test(keys_are_taken_by_all_who_sleep),
         patient_test(key_wakes_a_getter_when_none_is_awake),
         patient_test(deadline_is_not_put_off_by_a_nap),
         patient_test(interrupt_ends_a_nap),
         patient_test(get_times_out_during_a_nap),
         patient_test(shutdown_does_not_wait_for_a_nap),
         patient_test(key_behind_others_of_higher_priority_wakes_a_getter),
         queue_test(gets_are_counted_when_there_are_several_threads),
         queue_test(real_time_queue_is_not_patient),
         queue_test(queue_with_a_fake_clock_is_not_patient));
