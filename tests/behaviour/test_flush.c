/* SPDX-License-Identifier: MIT */
/* test_flush.c: what do wq_flush(), wq_wait_idle() and wq_flush_key() wait for?
 * What ends them? */
#include "waits.h"

#include <stdatomic.h>

#include <wq/limiter.h>
#include <wq/metrics.h>

/* ---- no wait ------------------------------------------------------------- */

static void
assert_no_wait(wq_queue *q, const char *key)
{
    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        assert_err(call_wait(what, q, key, 0), WQ_OK);
        assert_err(call_wait(what, q, key, WQ_FOREVER), WQ_OK);
    }
}

/* O-81 O-82 O-83 */
TEST(idle_queue_is_no_wait)
{
    struct timed *t = *state;

    assert_no_wait(t->q, "a");
    add(t->q, "a");
    work_on(t->q, "a");
    assert_no_wait(t->q, "a");
    wq_shutdown(t->q);
    assert_no_wait(t->q, "a");
}

/* O-81 O-82 O-83 */
TEST(deadline_to_come_is_no_wait)
{
    struct timed *t = *state;

    add_after(t, "a", S);
    assert_no_wait(t->q, "a");
    assert_due_in(t, "a", S);
}

/* O-81 O-82 O-83: a deadline that has come acts as an add, seen or not. */
TEST(deadline_that_has_come_is_waited_for)
{
    struct timed *t = *state;

    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct wait w;

        add_after(t, "a", S);
        step(t, S);
        begin_wait(&w, what, t->q, "a");
        work_on(t->q, "a");
        assert_ends(&w, WQ_OK);
    }
}

/* O-81 O-83: it comes after the call. */
TEST(deadline_that_comes_meanwhile_is_not_waited_for)
{
    struct timed *t = *state;
    struct wait   all, one;

    add(t->q, "a");
    add_after(t, "a", S);
    add_after(t, "b", S);
    wq_item *item = take(t->q);
    begin_wait(&all, FOR_FLUSH, t->q, NULL);
    begin_wait(&one, FOR_KEY, t->q, "a");
    step(t, S);
    assert_int_equal(wq_len(t->q), 1); /* "a" is DIRTY, "b" is READY */
    assert_waits(&all);
    finish(t->q, item);
    assert_ends(&all, WQ_OK);
    assert_ends(&one, WQ_OK);
    assert_int_equal(wq_len(t->q), 2);
}

/* ---- what is waited for -------------------------------------------------- */

/* O-81 O-82 O-83 */
TEST(ready_key_is_waited_for_until_done)
{
    struct timed *t = *state;

    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct wait w;

        add(t->q, "a");
        begin_wait(&w, what, t->q, "a");
        wq_item *item = take(t->q);
        assert_waits(&w);
        finish(t->q, item);
        assert_ends(&w, WQ_OK);
    }
}

/* O-81 O-82 O-83 */
TEST(held_key_is_waited_for)
{
    struct timed *t = *state;

    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct wait w;

        add(t->q, "a");
        wq_item *item = take(t->q);
        begin_wait(&w, what, t->q, "a");
        finish(t->q, item);
        assert_ends(&w, WQ_OK);
    }
}

/* O-81 O-82 O-83 */
TEST(dirty_key_is_waited_for_until_its_second_done)
{
    struct timed *t = *state;

    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct wait w;

        add(t->q, "a");
        wq_item *item = take(t->q);
        add(t->q, "a");
        begin_wait(&w, what, t->q, "a");
        finish(t->q, item);
        assert_waits(&w);
        item = take(t->q);
        assert_waits(&w);
        finish(t->q, item);
        assert_ends(&w, WQ_OK);
    }
}

/* O-81 O-82 O-83: a worker that calls wq_next() does both under one lock. */
TEST(wait_follows_a_key_through_next)
{
    struct timed *t = *state;

    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct wait w;

        add(t->q, "a");
        wq_item *item = take(t->q);
        add(t->q, "a");
        begin_wait(&w, what, t->q, "a");
        assert_err(wq_next(t->q, 0, &item), WQ_OK); /* "a" once more */
        assert_waits(&w);
        assert_err(wq_next(t->q, 0, &item), WQ_ETIMEDOUT);
        assert_ends(&w, WQ_OK);
    }
}

/* O-81 O-83: merged adds need no run of their own. */
TEST(merged_and_raised_adds_do_not_prolong_a_wait)
{
    struct timed *t = *state;
    struct wait   all, one;

    add(t->q, "a");
    add(t->q, "b");
    begin_wait(&all, FOR_FLUSH, t->q, NULL);
    begin_wait(&one, FOR_KEY, t->q, "b");
    add(t->q, "a");
    add_at(t->q, 5, "b");
    work_on_at(t->q, "b", 5);
    assert_ends(&one, WQ_OK);
    assert_waits(&all);
    work_on(t->q, "a");
    assert_ends(&all, WQ_OK);
}

/* O-81 O-82 O-83: keys that producers handed over just before count. */
TEST(key_handed_over_just_before_is_waited_for)
{
    struct timed *t = *state;

    have_another_getter(t->q);
    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct wait w;

        add(t->q, "a");
        assert_err(call_wait(what, t->q, "a", 0), WQ_ETIMEDOUT);
        work_on(t->q, "a");
        have_another_getter(t->q);
        add(t->q, "a");
        begin_wait(&w, what, t->q, "a");
        work_on(t->q, "a");
        assert_ends(&w, WQ_OK);
        have_another_getter(t->q);
    }
}

/* O-81 O-83 O-82: the done of a batch. */
TEST(done_of_many_ends_waits)
{
    struct timed *t = *state;

    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct wait w;
        wq_item    *items[3];
        size_t      n;

        add(t->q, "a");
        add(t->q, "b");
        add(t->q, "c");
        begin_wait(&w, what, t->q, "b");
        assert_err(wq_get_many(t->q, items, 3, 0, &n), WQ_OK);
        assert_int_equal(n, 3);
        assert_waits(&w);
        assert_err(wq_done_many(t->q, items, 3), WQ_OK);
        assert_ends(&w, WQ_OK);
    }
}

/* O-81 O-82 O-83 */
TEST(done_by_key_ends_waits)
{
    struct timed *t = *state;

    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct wait w;

        add(t->q, "a");
        (void)take(t->q);
        begin_wait(&w, what, t->q, "a");
        assert_err(wq_done_key(t->q, wq_str("a")), WQ_OK);
        assert_ends(&w, WQ_OK);
    }
}

/* ---- what is not waited for ---------------------------------------------- */

/* O-81: a flush returns though the queue is never idle. */
TEST(flush_returns_though_new_keys_keep_coming)
{
    struct timed *t = *state;
    struct wait   flush, idle;

    add(t->q, "a");
    add(t->q, "b");
    begin_wait(&flush, FOR_FLUSH, t->q, NULL);
    begin_wait(&idle, FOR_IDLE, t->q, NULL);
    add(t->q, "c");
    work_on(t->q, "a");
    add(t->q, "a"); /* again: it is a new request */
    assert_waits(&flush);
    work_on(t->q, "b");
    assert_ends(&flush, WQ_OK);
    assert_int_equal(wq_len(t->q), 2);
    assert_waits(&idle);
    work_on(t->q, "c");
    work_on(t->q, "a");
    assert_ends(&idle, WQ_OK);
}

/* O-81: keys that come later may even be worked on first. */
TEST(flush_does_not_count_later_keys_of_higher_priority)
{
    struct timed *t = *state;
    struct wait   w;

    add(t->q, "a");
    begin_wait(&w, FOR_FLUSH, t->q, NULL);
    for (int i = 0; i < 3; i++) {
        add_at(t->q, 9, "high");
        work_on_at(t->q, "high", 9);
        assert_waits(&w);
    }
    add_at(t->q, 9, "high");
    wq_item *high = take_at(t->q, "high", 9);
    work_on(t->q, "a");
    assert_ends(&w, WQ_OK);
    finish(t->q, high);
}

/* O-81 O-83: the run that the worker asks for itself is a later one. */
TEST(key_added_again_by_its_worker_is_not_waited_for)
{
    struct timed *t = *state;
    struct wait   all, one;

    add(t->q, "a");
    wq_item *item = take(t->q);
    begin_wait(&all, FOR_FLUSH, t->q, NULL);
    begin_wait(&one, FOR_KEY, t->q, "a");
    add(t->q, "a");
    finish(t->q, item);
    assert_ends(&all, WQ_OK);
    assert_ends(&one, WQ_OK);
    work_on(t->q, "a");
}

/* O-83: the waited-for run is handed out after the call, and again. */
TEST(later_runs_of_a_ready_key_are_not_waited_for)
{
    struct timed *t = *state;
    struct wait   w;

    add(t->q, "a");
    begin_wait(&w, FOR_KEY, t->q, "a");
    wq_item *item = take(t->q);
    add(t->q, "a");
    assert_err(wq_next(t->q, 0, &item),
               WQ_OK); /* its next run begins at once */
    assert_ends(&w, WQ_OK);
    finish(t->q, item);
}

/* O-83 */
TEST(other_keys_do_not_hold_up_a_flush_of_one)
{
    struct timed *t = *state;
    struct wait   w;

    add(t->q, "a");
    add(t->q, "b");
    assert_err(wq_flush_key(t->q, wq_str("c"), 0), WQ_OK);
    wq_item *a = take(t->q);
    begin_wait(&w, FOR_KEY, t->q, "b");
    wq_item *b = take_key(t->q, "b");
    add(t->q, "d"); /* nor do they end it */
    assert_waits(&w);
    finish(t->q, b);
    assert_ends(&w, WQ_OK);
    finish(t->q, a);
}

/* O-81 O-82 O-83 */
TEST(removed_key_is_not_waited_for)
{
    struct timed *t = *state;

    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct wait w;

        add(t->q, "a");
        begin_wait(&w, what, t->q, "a");
        assert_err(wq_remove(t->q, wq_str("a")), WQ_OK);
        assert_ends(&w, WQ_OK);
    }
}

/* O-81 O-83: the run that is under way is. */
TEST(dirty_key_that_is_removed_is_waited_for_until_done)
{
    struct timed *t = *state;

    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct wait w;

        add(t->q, "a");
        wq_item *item = take(t->q);
        add(t->q, "a");
        begin_wait(&w, what, t->q, "a");
        assert_err(wq_remove(t->q, wq_str("a")), WQ_OK);
        assert_waits(&w);
        finish(t->q, item);
        assert_ends(&w, WQ_OK);
    }
}

/* O-81 O-83: what is asked after the removal is a later request. */
TEST(key_added_after_a_removal_is_not_waited_for)
{
    struct timed *t = *state;

    for (int dirty = 0; dirty < 2; dirty++) {
        struct wait all, one;

        add(t->q, "a");
        wq_item *item = dirty ? take(t->q) : NULL;
        if (dirty)
            add(t->q, "a");
        begin_wait(&all, FOR_FLUSH, t->q, NULL);
        begin_wait(&one, FOR_KEY, t->q, "a");
        assert_err(wq_remove(t->q, wq_str("a")), WQ_OK);
        add(t->q, "a");
        if (dirty)
            finish(t->q, item);
        assert_ends(&all, WQ_OK);
        assert_ends(&one, WQ_OK);
        work_on(t->q, "a");
    }
}

/* O-81 O-83 O-53 */
TEST(key_that_is_put_off_is_not_waited_for)
{
    const wq_add_options *later =
        WQ_ADD(.after_ns = S, .waiting = WQ_IF_WAITING_REPLACE);
    struct timed *t = *state;

    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct wait w;

        add(t->q, "a");
        begin_wait(&w, what, t->q, "a");
        assert_added(add_how(t->q, later, "a"), WQ_ADDED_LATER);
        assert_ends(&w, WQ_OK);
        assert_due_in(t, "a", S);
    }
}

/* O-81 O-83 O-16: a DIRTY key whose backoff is respected waits for that. */
TEST(key_put_off_at_done_is_not_waited_for)
{
    struct timed *t =
        timed_create(WQ_CONFIG(.retry = WQ_RETRY_RESPECT,
                               .limiter = wq_limiter_exponential(S, S)));

    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct wait w;

        add(t->q, "a");
        wq_item *item = take(t->q);
        add(t->q, "a");
        begin_wait(&w, what, t->q, "a");
        assert_err(wq_add_rate_limited(t->q, wq_str("a")), WQ_OK);
        assert_waits(&w);
        finish(t->q, item);
        assert_states(t->q, "a", WQ_STATE_WAITING | WQ_STATE_BACKOFF);
        assert_ends(&w, WQ_OK);
        assert_due_in(t, "a", S);
    }
    timed_destroy(t);
}

/* O-81 O-83 O-55 */
TEST(key_that_made_room_is_not_waited_for)
{
    struct timed *t = timed_create(
        WQ_CONFIG(.max_len = 1, .overflow = WQ_OVERFLOW_DROP_OLDEST));
    struct wait all, one;

    add(t->q, "a");
    begin_wait(&all, FOR_FLUSH, t->q, NULL);
    begin_wait(&one, FOR_KEY, t->q, "a");
    add(t->q, "b");
    assert_ends(&all, WQ_OK);
    assert_ends(&one, WQ_OK);
    work_on(t->q, "b");
    timed_destroy(t);
}

/* ---- a moment that passes ------------------------------------------------ */

/* O-82: the waiter cannot look before the next key is HELD. */
TEST(idle_moment_that_passes_is_not_missed)
{
    struct timed *t = *state;
    struct wait   w;

    add(t->q, "a");
    wq_item *item = take(t->q);
    begin_wait(&w, FOR_IDLE, t->q, NULL);
    freeze(&w);
    finish(t->q, item); /* idle */
    add(t->q, "b");
    item = take(t->q);
    thaw();
    assert_ends(&w, WQ_OK);
    finish(t->q, item);
    close_ice();
}

/* O-82: there is no such moment when a READY key remains. */
TEST(idle_is_not_reached_from_key_to_key)
{
    struct timed *t = *state;
    struct wait   w;

    add(t->q, "a");
    begin_wait(&w, FOR_IDLE, t->q, NULL);
    wq_item *item = take(t->q);
    for (int i = 0; i < 5; i++) {
        add(t->q, i % 2 ? "a" : "b");
        assert_err(wq_next(t->q, 0, &item), WQ_OK);
        assert_waits(&w);
    }
    finish(t->q, item);
    assert_ends(&w, WQ_OK);
}

/* O-83: nor is the end of a run, if the key runs again at once. */
TEST(end_of_a_run_that_passes_is_not_missed)
{
    struct timed *t = *state;
    struct wait   w;

    add(t->q, "a");
    begin_wait(&w, FOR_KEY, t->q, "a");
    freeze(&w);
    work_on(t->q, "a");
    add(t->q, "a");
    wq_item *item = take(t->q);
    thaw();
    assert_ends(&w, WQ_OK);
    finish(t->q, item);
    close_ice();
}

/* A sink that does something to the queue once, when it hears of a change. */
static struct {
    struct timed *t;
    wq_item      *item; /* what it took last */
    wq_err        err;
    atomic_bool   armed;
} meddler;

/* "a" is worked on, and a key is HELD again before anybody can look. */
static void
meddle(void *handle, const wq_change *change)
{
    wq_queue *q = meddler.t->q;

    (void)handle;
    (void)change;
    if (!atomic_exchange(&meddler.armed, false))
        return;
    meddler.err = wq_get_within(q, 0, &meddler.item);
    if (!meddler.err)
        meddler.err = wq_done(q, meddler.item);
    if (!meddler.err)
        meddler.err = wq_add_str(q, "a");
    if (!meddler.err)
        meddler.err = wq_get_within(q, 0, &meddler.item);
}

/* O-82 O-83: a waiter tells the sinks before it sleeps, without the lock. */
TEST(end_of_work_while_telling_a_sink_is_seen)
{
    const wq_metrics sink = {.size = sizeof sink, .changed = meddle};

    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct timed *t =
            timed_create(WQ_CONFIG(.name = "test", .metrics = &sink));

        meddler.t = t;
        meddler.item = NULL;
        add_after(t, "a", S);
        step(t, S);
        assert_int_equal(wq_len(t->q), 1); /* to look is to tell nobody */
        atomic_store(&meddler.armed, true);
        assert_err(elsewhere(what, t->q, "a", WQ_FOREVER), WQ_OK);
        assert_false(atomic_load(&meddler.armed));
        assert_err(meddler.err, WQ_OK);
        assert_states(t->q, "a", WQ_STATE_HELD);
        finish(t->q, meddler.item);
        timed_destroy(t);
    }
}

/* ---- several at once ----------------------------------------------------- */

enum { MANY = 6, TOLD_APART = 3 };

static const char *const names[] = {"k0", "k1", "k2", "k3", "k4", "k5"};

/* O-81: flush i begins when keys 0 to i are READY. Of up to three, each ends at
 * the done of its own last key; a later one may wait for the others' keys, but
 * not for what comes when the first has ended. */
TEST(each_of_several_flushes_waits_for_its_own_keys)
{
    for (int n = 1; n <= MANY; n++) {
        struct timed *t = timed_create(WQ_CONFIG(.order = NULL));
        struct wait   all[MANY];

        for (int i = 0; i < n; i++) {
            add(t->q, names[i]);
            begin_wait(&all[i], FOR_FLUSH, t->q, NULL);
        }
        add(t->q, "before");
        work_on(t->q, names[0]);
        assert_ends(&all[0], WQ_OK);
        add(t->q, "after");
        for (int i = 1; i < n; i++) {
            wq_item *item = take_key(t->q, names[i]);
            for (int k = i; k < n; k++)
                assert_waits(&all[k]);
            finish(t->q, item);
            if (i < TOLD_APART)
                assert_ends(&all[i], WQ_OK);
        }
        work_on(t->q, "before");
        for (int i = TOLD_APART; i < n; i++)
            assert_ends(&all[i], WQ_OK);
        work_on(t->q, "after");
        timed_destroy(t);
    }
}

/* O-81 */
TEST(flushes_of_the_same_keys_end_together)
{
    struct timed *t = *state;
    struct wait   all[MANY];

    add(t->q, "a");
    for (int i = 0; i < MANY; i++)
        begin_wait(&all[i], FOR_FLUSH, t->q, NULL);
    add(t->q, "b");
    work_on(t->q, "a");
    for (int i = 0; i < MANY; i++)
        assert_ends(&all[i], WQ_OK);
    work_on(t->q, "b");
}

/* O-81: keys need not be done in the order they were added in. */
TEST(later_flush_waits_for_earlier_keys)
{
    struct timed *t = *state;
    struct wait   first, second;

    add(t->q, "a");
    wq_item *a = take(t->q);
    begin_wait(&first, FOR_FLUSH, t->q, NULL);
    add(t->q, "b");
    begin_wait(&second, FOR_FLUSH, t->q, NULL);
    work_on(t->q, "b");
    assert_waits(&second);
    finish(t->q, a);
    assert_ends(&first, WQ_OK);
    assert_ends(&second, WQ_OK);
}

/* O-81: one flush after the other, more than marks tell apart. */
TEST(flushes_one_after_the_other_all_end)
{
    struct timed *t = *state;

    for (int i = 0; i < 3 * MANY; i++) {
        struct wait w;

        add(t->q, "a");
        wq_item *item = take(t->q);
        add(t->q, "a"); /* for the next one */
        begin_wait(&w, FOR_FLUSH, t->q, NULL);
        finish(t->q, item);
        assert_waits(&w);
        work_on(t->q, "a");
        assert_ends(&w, WQ_OK);
    }
}

/* ---- time-outs ----------------------------------------------------------- */

/* O-81 O-82 O-83: and the queue is as if nobody had waited. */
TEST(wait_of_no_time_asks_once)
{
    struct timed *t = *state;

    add(t->q, "a");
    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++)
        assert_err(call_wait(what, t->q, "a", 0), WQ_ETIMEDOUT);
    wq_item *item = take(t->q);
    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++)
        assert_err(elsewhere(what, t->q, "a", 0), WQ_ETIMEDOUT);
    finish(t->q, item);
    assert_no_wait(t->q, "a");
}

/* O-81 O-82 O-83: on the queue's clock. */
TEST(wait_times_out_when_its_time_is_up)
{
    struct timed *t = *state;

    add(t->q, "a");
    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct wait w;

        start_wait(&w, what, t->q, "a", S);
        await_sleepers(t, 1);
        step(t, S - 1);
        assert_waits(&w);
        step(t, 1);
        assert_ends(&w, WQ_ETIMEDOUT);
    }
    work_on(t->q, "a");
    assert_no_wait(t->q, "a");
}

/* O-81: those who gave up leave nothing behind. */
TEST(flush_after_many_that_timed_out_waits_for_its_keys)
{
    struct timed *t = *state;
    struct wait   w;

    for (int i = 0; i < MANY; i++) {
        add(t->q, names[i]);
        assert_err(wq_flush(t->q, 0), WQ_ETIMEDOUT);
    }
    begin_wait(&w, FOR_FLUSH, t->q, NULL);
    for (int i = 0; i < MANY; i++) {
        assert_waits(&w);
        work_on(t->q, names[i]);
    }
    assert_ends(&w, WQ_OK);
    assert_none_due(t);
}

/* ---- who may wait -------------------------------------------------------- */

/* O-81 O-82 O-83: it would wait for itself. */
TEST(thread_that_holds_a_key_may_not_wait)
{
    struct timed *t = *state;

    add(t->q, "a");
    wq_item *item = take(t->q);
    assert_err(wq_flush(t->q, WQ_FOREVER), WQ_ESTATE);
    assert_err(wq_wait_idle(t->q, WQ_FOREVER), WQ_ESTATE);
    assert_err(wq_flush_key(t->q, wq_str("a"), WQ_FOREVER), WQ_ESTATE);
    assert_err(wq_flush_key(t->q, wq_str("b"), WQ_FOREVER), WQ_OK);
    finish(t->q, item);
    assert_no_wait(t->q, "a");
}

/* O-81: however it got the key. */
TEST(thread_that_got_keys_in_any_way_holds_them)
{
    struct timed *t = *state;
    wq_item      *items[2], *item = NULL;
    size_t        n;

    add(t->q, "a");
    add(t->q, "b");
    assert_err(wq_get_many(t->q, items, 2, 0, &n), WQ_OK);
    assert_err(wq_flush(t->q, 0), WQ_ESTATE);
    finish(t->q, items[0]);
    assert_err(wq_flush(t->q, 0), WQ_ESTATE);
    assert_err(wq_flush_key(t->q, wq_str("b"), 0), WQ_ESTATE);
    finish(t->q, items[1]);
    assert_err(wq_flush(t->q, 0), WQ_OK);

    add(t->q, "a");
    add(t->q, "b");
    assert_err(wq_next(t->q, 0, &item), WQ_OK);
    assert_err(wq_next(t->q, 0, &item), WQ_OK);
    assert_err(wq_flush_key(t->q, wq_str("b"), 0), WQ_ESTATE);
    assert_err(wq_wait_idle(t->q, 0), WQ_ESTATE);
    assert_err(wq_next(t->q, 0, &item), WQ_ETIMEDOUT);
    assert_no_wait(t->q, "b");
}

static int
give_back(struct worker *self)
{
    struct timed *t = self->arg;

    return (int)wq_done(t->q, t->item);
}

/* O-81: the thread that got the key counts; another may say done. */
TEST(thread_whose_key_another_gave_back_may_wait)
{
    struct timed *t = *state;

    add(t->q, "a");
    t->item = take(t->q);
    assert_err(wq_flush(t->q, 0), WQ_ESTATE);
    assert_err(elsewhere(FOR_FLUSH, t->q, NULL, 0), WQ_ETIMEDOUT);
    assert_err(worker_join(worker_start(give_back, t)), WQ_OK);
    assert_no_wait(t->q, "a");
}

/* O-81: another queue's keys do not matter. */
TEST(thread_that_holds_a_key_of_another_queue_may_wait)
{
    struct timed *t = *state, *other = timed_create(WQ_CONFIG(.order = NULL));

    add(other->q, "a");
    wq_item *item = take(other->q);
    assert_no_wait(t->q, "a");
    finish(other->q, item);
    timed_destroy(other);
}

/* O-81 O-82 O-83 */
TEST(bad_arguments_are_refused)
{
    static char   large[WQ_KEY_MAX + 1];
    const wq_key  too_long = {large, sizeof large};
    struct timed *t = *state;

    assert_err(wq_flush(NULL, 0), WQ_EINVAL);
    assert_err(wq_flush(t->q, -1), WQ_EINVAL);
    assert_err(wq_wait_idle(NULL, 0), WQ_EINVAL);
    assert_err(wq_wait_idle(t->q, -1), WQ_EINVAL);
    assert_err(wq_flush_key(NULL, wq_str("a"), 0), WQ_EINVAL);
    assert_err(wq_flush_key(t->q, wq_str("a"), -1), WQ_EINVAL);
    assert_err(wq_flush_key(t->q, wq_str(""), 0), WQ_EINVAL);
    assert_err(wq_flush_key(t->q, wq_str(NULL), 0), WQ_EINVAL);
    assert_err(wq_flush_key(t->q, too_long, 0), WQ_ETOOLONG);
}

/* ---- the end of the queue ------------------------------------------------ */

/* O-81 O-82 O-83: what is READY is still worked on. */
TEST(shutdown_does_not_end_a_wait)
{
    for (enum wait_for what = FOR_FLUSH; what <= FOR_KEY; what++) {
        struct timed *t = timed_create(WQ_CONFIG(.order = NULL));
        struct wait   w;

        add(t->q, "a");
        wq_item *item = take(t->q);
        add(t->q, "a");
        begin_wait(&w, what, t->q, "a");
        wq_shutdown(t->q);
        assert_waits(&w);
        finish(t->q, item);
        assert_waits(&w);
        work_on(t->q, "a");
        assert_ends(&w, WQ_OK);
        timed_destroy(t);
    }
}

/* O-81: a drain waits for what a flush waits for. */
TEST(drain_and_flush_wait_side_by_side)
{
    struct timed *t = *state;
    struct wait   w;

    add(t->q, "a");
    begin_wait(&w, FOR_FLUSH, t->q, NULL);
    struct worker *drain = worker_drain(t->q);
    worker_await_blocked(drain);
    assert_waits(&w);
    work_on(t->q, "a");
    assert_ends(&w, WQ_OK);
    assert_err(worker_join(drain), WQ_OK);
}

/* O-03 O-81 O-82 O-83 O-84 */
TEST(destroy_ends_every_wait)
{
    struct timed *t = timed_create(WQ_CONFIG(.order = NULL));
    struct wait   all[WAIT_KINDS];

    add(t->q, "a");
    (void)take(t->q);
    for (enum wait_for what = FOR_FLUSH; what < WAIT_KINDS; what++)
        begin_wait(&all[what], what, t->q, "a");
    timed_destroy(t);
    for (enum wait_for what = FOR_FLUSH; what < WAIT_KINDS; what++)
        assert_ends(&all[what], WQ_EINTERRUPTED);
}

/* O-08 O-81 */
TEST(interrupt_does_not_end_a_wait)
{
    struct timed *t = *state;
    struct wait   w;
    wq_item      *item;

    add(t->q, "a");
    begin_wait(&w, FOR_FLUSH, t->q, NULL);
    wq_interrupt(t->q);
    assert_waits(&w);
    work_on(t->q, "a");
    assert_ends(&w, WQ_OK);
    /* It is remembered for a get. */
    assert_err(wq_get_within(t->q, S, &item), WQ_EINTERRUPTED);
}

WQ_TESTS(with_time(idle_queue_is_no_wait),
         with_time(deadline_to_come_is_no_wait),
         with_time(deadline_that_has_come_is_waited_for),
         with_time(deadline_that_comes_meanwhile_is_not_waited_for),
         with_time(ready_key_is_waited_for_until_done),
         with_time(held_key_is_waited_for),
         with_time(dirty_key_is_waited_for_until_its_second_done),
         with_time(wait_follows_a_key_through_next),
         with_time(merged_and_raised_adds_do_not_prolong_a_wait),
         with_time(key_handed_over_just_before_is_waited_for),
         with_time(done_of_many_ends_waits), with_time(done_by_key_ends_waits),
         with_time(flush_returns_though_new_keys_keep_coming),
         with_time(flush_does_not_count_later_keys_of_higher_priority),
         with_time(key_added_again_by_its_worker_is_not_waited_for),
         with_time(later_runs_of_a_ready_key_are_not_waited_for),
         with_time(other_keys_do_not_hold_up_a_flush_of_one),
         with_time(removed_key_is_not_waited_for),
         with_time(dirty_key_that_is_removed_is_waited_for_until_done),
         with_time(key_added_after_a_removal_is_not_waited_for),
         with_time(key_that_is_put_off_is_not_waited_for),
         test(key_put_off_at_done_is_not_waited_for),
         test(key_that_made_room_is_not_waited_for),
         with_time(idle_moment_that_passes_is_not_missed),
         with_time(idle_is_not_reached_from_key_to_key),
         with_time(end_of_a_run_that_passes_is_not_missed),
         test(end_of_work_while_telling_a_sink_is_seen),
         test(each_of_several_flushes_waits_for_its_own_keys),
         with_time(flushes_of_the_same_keys_end_together),
         with_time(later_flush_waits_for_earlier_keys),
         with_time(flushes_one_after_the_other_all_end),
         with_time(wait_of_no_time_asks_once),
         with_time(wait_times_out_when_its_time_is_up),
         with_time(flush_after_many_that_timed_out_waits_for_its_keys),
         with_time(thread_that_holds_a_key_may_not_wait),
         with_time(thread_that_got_keys_in_any_way_holds_them),
         with_time(thread_whose_key_another_gave_back_may_wait),
         with_time(thread_that_holds_a_key_of_another_queue_may_wait),
         with_time(bad_arguments_are_refused),
         test(shutdown_does_not_end_a_wait),
         with_time(drain_and_flush_wait_side_by_side),
         test(destroy_ends_every_wait),
         with_time(interrupt_does_not_end_a_wait));
