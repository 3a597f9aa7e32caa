/* SPDX-License-Identifier: MIT */
/* test_timeout.c: how long does wq_get_within() wait? */
#include "fixture.h"

#include "support/worker.h"

/* O-05 */
TEST(get_within_no_time_takes_what_is_there)
{
    wq_queue *q = *state;
    wq_item  *item;

    add(q, "foo");

    assert_err(wq_get_within(q, 0, &item), WQ_OK);
    assert_key(item, "foo");
}

/* O-05 */
TEST(get_within_no_time_does_not_wait)
{
    wq_queue *q = *state;
    wq_item  *item = NULL;

    assert_err(wq_get_within(q, 0, &item), WQ_ETIMEDOUT);
    assert_null(item);
}

/* O-05 */
TEST(get_gives_up_when_its_time_is_up_and_not_before)
{
    const int64_t timeout_ns = 3000000;
    wq_queue     *q = *state;
    wq_item      *item = NULL;

    const int64_t begin_ns = now_ns();
    assert_err(wq_get_within(q, timeout_ns, &item), WQ_ETIMEDOUT);

    assert_true(now_ns() - begin_ns >= timeout_ns);
    assert_null(item);
}

/* O-05 */
TEST(shortest_timeout_gives_up_too)
{
    wq_queue *q = *state;
    wq_item  *item;

    assert_err(wq_get_within(q, 1, &item), WQ_ETIMEDOUT);
}

static int
get_within(struct worker *self)
{
    wq_item *item;

    return (int)wq_get_within(self->arg, LONG_NS, &item);
}

/* O-05 */
TEST(key_ends_the_wait_before_its_time_is_up)
{
    wq_queue *q = *state;

    struct worker *w = worker_start(get_within, q);
    worker_await_blocked(w);
    add(q, "foo");

    assert_err(worker_join(w), WQ_OK);
}

static int
get_within_a_century(struct worker *self)
{
    const int64_t century_ns = INT64_C(100) * 365 * 86400 * 1000000000;
    wq_item      *item;

    return (int)wq_get_within(self->arg, century_ns, &item);
}

/* O-15: longer than a time_t of 32 bits can say; the thread sleeps. */
TEST(get_within_a_century_sleeps)
{
    wq_queue *q = *state;

    struct worker *w = worker_start(get_within_a_century, q);
    worker_await_blocked(w);
    add(q, "foo");

    assert_err(worker_join(w), WQ_OK);
}

static int
get_within_almost_for_ever(struct worker *self)
{
    wq_item *item;

    return (int)wq_get_within(self->arg, WQ_FOREVER - 1, &item);
}

/* O-05: now and the timeout together are more than the clock can say. */
TEST(timeout_of_nearly_for_ever_does_not_overflow)
{
    wq_queue *q = *state;

    struct worker *w = worker_start(get_within_almost_for_ever, q);
    worker_await_blocked(w);
    add(q, "foo");

    assert_err(worker_join(w), WQ_OK);
}

/* O-05: the queue is none the worse for it. */
TEST(key_added_after_a_timeout_is_for_the_next_get)
{
    wq_queue *q = *state;
    wq_item  *item;

    for (int i = 0; i < 100; i++) {
        assert_err(wq_get_within(q, 1000, &item), WQ_ETIMEDOUT);
        add(q, "foo");
        work_on(q, "foo");
    }
}

/* O-05 */
TEST(negative_timeout_is_refused_even_if_a_key_is_there)
{
    wq_queue *q = *state;
    wq_item  *item = NULL;

    add(q, "foo");

    assert_err(wq_get_within(q, -1, &item), WQ_EINVAL);
    assert_err(wq_get_within(q, INT64_MIN, &item), WQ_EINVAL);
    assert_null(item);
    assert_int_equal(wq_len(q), 1);
}

WQ_TESTS(with_queue(get_within_no_time_takes_what_is_there),
         with_queue(get_within_no_time_does_not_wait),
         with_queue(get_gives_up_when_its_time_is_up_and_not_before),
         with_queue(shortest_timeout_gives_up_too),
         with_queue(key_ends_the_wait_before_its_time_is_up),
         with_queue(get_within_a_century_sleeps),
         with_queue(timeout_of_nearly_for_ever_does_not_overflow),
         with_queue(key_added_after_a_timeout_is_for_the_next_get),
         with_queue(negative_timeout_is_refused_even_if_a_key_is_there));
