/* SPDX-License-Identifier: MIT */
/* test_drain.c: what does wq_shutdown_with_drain() wait for? What ends it? */
#include "fixture.h"

#include "support/worker.h"

/* A drain that waits, in another thread. */
static struct worker *
start_drain(wq_queue *q)
{
    struct worker *w = worker_drain(q);

    worker_await_blocked(w);
    return w;
}

static void
assert_still_waits(struct worker *drain)
{
    worker_await_blocked(drain);
}

/* */
TEST(get_tells_of_the_shutdown_while_the_drain_waits)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "bar");
    wq_item       *foo = take(q);
    wq_item       *bar = take(q);
    struct worker *drain = start_drain(q);
    assert_none_ready(q, WQ_ESHUTDOWN);

    finish(q, foo);
    assert_still_waits(drain);
    finish(q, bar);
    assert_err(worker_join(drain), WQ_OK);
}

/* Q-09 O-07 */
TEST(shutdown_ends_a_drain_that_waits)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "bar");
    (void)take(q);
    (void)take(q);
    struct worker *drain = start_drain(q);

    wq_shutdown(q);

    assert_err(worker_join(drain), WQ_EINTERRUPTED);
}

/* Q-10 O-07 */
TEST(drain_waits_for_a_dirty_key_to_be_worked_on_again)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);
    add(q, "foo");
    struct worker *drain = start_drain(q);
    assert_none_ready(q, WQ_ESHUTDOWN);

    finish(q, item);
    assert_still_waits(drain);
    item = take_key(q, "foo");
    assert_still_waits(drain);
    finish(q, item);
    assert_none_ready(q, WQ_ESHUTDOWN);
    assert_err(worker_join(drain), WQ_OK);
}

/* Q-20 O-07 */
TEST(drain_waits_for_ready_keys)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "bar");
    struct worker *drain = start_drain(q);

    work_on(q, "foo");
    assert_still_waits(drain);
    work_on(q, "bar");
    assert_err(worker_join(drain), WQ_OK);
}

/* Q-20 O-07: client-go returns at the done of the first. */
TEST(drain_waits_for_ready_keys_when_nothing_is_held)
{
    wq_queue *q = *state;

    add(q, "foo");
    add(q, "bar");
    wq_item       *foo = take(q);
    struct worker *drain = start_drain(q);

    finish(q, foo);
    assert_still_waits(drain);
    work_on(q, "bar");
    assert_err(worker_join(drain), WQ_OK);
}

/* O-07 */
TEST(done_by_key_ends_the_drain)
{
    wq_queue *q = *state;

    add(q, "foo");
    (void)take(q);
    struct worker *drain = start_drain(q);

    assert_err(wq_done_key(q, wq_str("foo")), WQ_OK);

    assert_err(worker_join(drain), WQ_OK);
}

/* Q-20 O-07 */
TEST(every_drainer_is_woken_when_the_work_is_done)
{
    enum { DRAINERS = 3 };
    wq_queue      *q = *state;
    struct worker *all[DRAINERS];

    add(q, "foo");
    wq_item *item = take(q);
    for (int i = 0; i < DRAINERS; i++)
        all[i] = worker_drain(q);
    worker_await_all_blocked(all, DRAINERS);
    finish(q, item);

    for (int i = 0; i < DRAINERS; i++)
        assert_err(worker_join(all[i]), WQ_OK);
}

/* Q-09 O-07 */
TEST(shutdown_ends_every_drain_that_waits)
{
    enum { DRAINERS = 3 };
    wq_queue      *q = *state;
    struct worker *all[DRAINERS];

    add(q, "foo");
    for (int i = 0; i < DRAINERS; i++)
        all[i] = worker_drain(q);
    worker_await_all_blocked(all, DRAINERS);
    wq_shutdown(q);

    for (int i = 0; i < DRAINERS; i++)
        assert_err(worker_join(all[i]), WQ_EINTERRUPTED);
}

/* */
TEST(drain_after_a_shutdown_waits_again)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item *item = take(q);
    wq_shutdown(q);
    struct worker *drain = start_drain(q);

    finish(q, item);
    assert_err(worker_join(drain), WQ_OK);
}

/* */
TEST(drain_after_a_drain_that_was_ended_waits_again)
{
    wq_queue *q = *state;

    add(q, "foo");
    struct worker *drain = start_drain(q);
    wq_shutdown(q);
    assert_err(worker_join(drain), WQ_EINTERRUPTED);

    drain = start_drain(q);
    work_on(q, "foo");
    assert_err(worker_join(drain), WQ_OK);
}

/* Q-19 Q-22 */
TEST(add_after_a_drain_began_is_refused)
{
    wq_queue *q = *state;

    add(q, "foo");
    wq_item       *item = take(q);
    struct worker *drain = start_drain(q);
    assert_true(wq_shutting_down(q));
    assert_err(wq_add_str(q, "foo"), WQ_ESHUTDOWN);
    assert_err(wq_add_str(q, "bar"), WQ_ESHUTDOWN);

    finish(q, item);
    assert_err(worker_join(drain), WQ_OK);
    assert_none_ready(q, WQ_ESHUTDOWN);
}

/* Q-19 O-07 */
TEST(drain_wakes_every_blocked_get)
{
    enum { GETTERS = 2 };
    wq_queue      *q = *state;
    struct worker *all[GETTERS];

    for (int i = 0; i < GETTERS; i++)
        all[i] = worker_get(q, NULL);
    worker_await_all_blocked(all, GETTERS);

    assert_err(wq_shutdown_with_drain(q), WQ_OK);

    for (int i = 0; i < GETTERS; i++)
        assert_err(worker_join(all[i]), WQ_ESHUTDOWN);
}

/* O-07 */
TEST(drain_of_an_idle_queue_returns_at_once)
{
    wq_queue *q = *state;

    assert_err(wq_shutdown_with_drain(q), WQ_OK);
    assert_true(wq_shutting_down(q));
    assert_err(wq_shutdown_with_drain(q), WQ_OK);
    assert_err(wq_shutdown_with_drain_within(q, 0), WQ_OK);
}

/* O-07 */
TEST(drain_within_no_time_asks_once)
{
    wq_queue *q = *state;

    add(q, "foo");
    assert_err(wq_shutdown_with_drain_within(q, 0), WQ_ETIMEDOUT);
    assert_true(wq_shutting_down(q));

    wq_item *item = take(q);
    assert_err(wq_shutdown_with_drain_within(q, 0), WQ_ETIMEDOUT);
    finish(q, item);
    assert_err(wq_shutdown_with_drain_within(q, 0), WQ_OK);
}

/* O-07 */
TEST(drain_gives_up_when_its_time_is_up_and_not_before)
{
    const int64_t timeout_ns = 3000000;
    wq_queue     *q = *state;

    add(q, "foo");
    const int64_t begin_ns = now_ns();
    assert_err(wq_shutdown_with_drain_within(q, timeout_ns), WQ_ETIMEDOUT);

    assert_true(now_ns() - begin_ns >= timeout_ns);
    assert_true(wq_shutting_down(q));
    work_on(q, "foo");
}

/* O-07 O-08 */
TEST(interrupt_does_not_end_a_drain)
{
    wq_queue *q = *state;

    add(q, "foo");
    struct worker *drain = start_drain(q);

    wq_interrupt(q);
    assert_still_waits(drain);

    work_on(q, "foo");
    assert_err(worker_join(drain), WQ_OK);
}

WQ_TESTS(with_queue(get_tells_of_the_shutdown_while_the_drain_waits),
         with_queue(shutdown_ends_a_drain_that_waits),
         with_queue(drain_waits_for_a_dirty_key_to_be_worked_on_again),
         with_queue(drain_waits_for_ready_keys),
         with_queue(drain_waits_for_ready_keys_when_nothing_is_held),
         with_queue(done_by_key_ends_the_drain),
         with_queue(every_drainer_is_woken_when_the_work_is_done),
         with_queue(shutdown_ends_every_drain_that_waits),
         with_queue(drain_after_a_shutdown_waits_again),
         with_queue(drain_after_a_drain_that_was_ended_waits_again),
         with_queue(add_after_a_drain_began_is_refused),
         with_queue(drain_wakes_every_blocked_get),
         with_queue(drain_of_an_idle_queue_returns_at_once),
         with_queue(drain_within_no_time_asks_once),
         with_queue(drain_gives_up_when_its_time_is_up_and_not_before),
         with_queue(interrupt_does_not_end_a_drain));
