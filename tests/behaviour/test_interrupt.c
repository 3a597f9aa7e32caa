/* SPDX-License-Identifier: MIT */
/* test_interrupt.c: whom does wq_interrupt() send home, and what stays? */
#include "fixture.h"

#include <stdatomic.h>

#include "support/worker.h"

/* O-08 */
TEST(interrupt_ends_a_blocked_get_and_the_queue_goes_on)
{
    wq_queue *q = *state;

    struct worker *w = worker_get(q, NULL);
    worker_await_blocked(w);
    wq_interrupt(q);
    assert_err(worker_join(w), WQ_EINTERRUPTED);

    assert_false(wq_shutting_down(q));
    add(q, "foo");
    work_on(q, "foo");
}

/* O-08 */
TEST(interrupt_ends_every_blocked_get)
{
    enum { GETTERS = 4 };
    wq_queue      *q = *state;
    struct worker *all[GETTERS];

    for (int i = 0; i < GETTERS; i++)
        all[i] = worker_get(q, NULL);
    worker_await_all_blocked(all, GETTERS);
    wq_interrupt(q);

    for (int i = 0; i < GETTERS; i++)
        assert_err(worker_join(all[i]), WQ_EINTERRUPTED);
}

/* O-08 */
TEST(interrupt_that_ended_a_get_is_not_remembered)
{
    wq_queue *q = *state;
    wq_item  *item = NULL;

    struct worker *w = worker_get(q, NULL);
    worker_await_blocked(w);
    wq_interrupt(q);
    assert_err(worker_join(w), WQ_EINTERRUPTED);

    w = worker_get(q, &item);
    worker_await_blocked(w);
    add(q, "foo");
    assert_err(worker_join(w), WQ_OK);
}

/* O-08 */
TEST(interrupt_is_remembered_when_no_get_is_blocked)
{
    wq_queue *q = *state;
    wq_item  *item;

    wq_interrupt(q);

    assert_err(wq_get_within(q, LONG_NS, &item), WQ_EINTERRUPTED);
}

/* O-08 */
TEST(only_one_interrupt_is_remembered)
{
    wq_queue *q = *state;
    wq_item  *item = NULL;

    wq_interrupt(q);
    wq_interrupt(q);
    assert_err(wq_get_within(q, LONG_NS, &item), WQ_EINTERRUPTED);

    struct worker *w = worker_get(q, &item);
    worker_await_blocked(w);
    add(q, "foo");
    assert_err(worker_join(w), WQ_OK);
}

/* O-08 */
TEST(remembered_interrupt_waits_for_a_get_that_would_block)
{
    wq_queue *q = *state;
    wq_item  *item;

    add(q, "foo");
    wq_interrupt(q);

    work_on(q, "foo");
    assert_err(wq_get_within(q, 0, &item), WQ_ETIMEDOUT);
    assert_err(wq_get_within(q, LONG_NS, &item), WQ_EINTERRUPTED);
}

/* O-08 Q-13 */
TEST(shutdown_is_told_before_a_remembered_interrupt)
{
    wq_queue *q = *state;
    wq_item  *item;

    wq_interrupt(q);
    wq_shutdown(q);

    assert_err(wq_get(q, &item), WQ_ESHUTDOWN);
}

/* A worker as the manual of wq_interrupt() describes it. */
struct stop {
    wq_queue   *queue;
    atomic_bool stopping;
};

static int
work_until_stopped(struct worker *self)
{
    struct stop *stop = self->arg;
    wq_item     *item;

    while (!atomic_load(&stop->stopping)) {
        const wq_err err = wq_get(stop->queue, &item);
        if (err == WQ_OK)
            (void)wq_done(stop->queue, item);
        else if (err != WQ_EINTERRUPTED)
            return (int)err;
    }
    wq_interrupt(stop->queue); /* tell the next one */
    return WQ_OK;
}

/* O-08: without waiting for the workers to block, so that some are just about
 * to. */
TEST(workers_that_pass_an_interrupt_on_all_stop)
{
    enum { WORKERS = 6, ROUNDS = 20 };
    wq_queue *q = *state;

    for (int round = 0; round < ROUNDS; round++) {
        struct stop    stop = {.queue = q};
        struct worker *all[WORKERS];

        for (int i = 0; i < WORKERS; i++)
            all[i] = worker_start(work_until_stopped, &stop);
        add(q, "foo");
        atomic_store(&stop.stopping, true);
        wq_interrupt(q);
        for (int i = 0; i < WORKERS; i++)
            assert_err(worker_join(all[i]), WQ_OK);
    }
    assert_false(wq_shutting_down(q));
}

WQ_TESTS(with_queue(interrupt_ends_a_blocked_get_and_the_queue_goes_on),
         with_queue(interrupt_ends_every_blocked_get),
         with_queue(interrupt_that_ended_a_get_is_not_remembered),
         with_queue(interrupt_is_remembered_when_no_get_is_blocked),
         with_queue(only_one_interrupt_is_remembered),
         with_queue(remembered_interrupt_waits_for_a_get_that_would_block),
         with_queue(shutdown_is_told_before_a_remembered_interrupt),
         with_queue(workers_that_pass_an_interrupt_on_all_stop));
