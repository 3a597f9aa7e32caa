/* SPDX-License-Identifier: MIT */
/* test_destroy.c: who is still inside when a queue is destroyed? */
#include "fixture.h"

#include "support/worker.h"

static wq_queue *
create(void)
{
    wq_queue *q = NULL;

    assert_err(wq_create(NULL, &q), WQ_OK);
    return q;
}

/* O-03 */
TEST(destroy_sends_every_blocked_get_home)
{
    enum { GETTERS = 4 };
    wq_queue      *q = create();
    struct worker *all[GETTERS];

    for (int i = 0; i < GETTERS; i++)
        all[i] = worker_get(q, NULL);
    worker_await_all_blocked(all, GETTERS);

    wq_destroy(q);

    for (int i = 0; i < GETTERS; i++)
        assert_err(worker_join(all[i]), WQ_ESHUTDOWN);
}

/* O-03 */
TEST(destroy_ends_every_blocked_drain)
{
    enum { DRAINERS = 3 };
    wq_queue      *q = create();
    struct worker *all[DRAINERS];

    add(q, "foo");
    add(q, "bar");
    (void)take(q);
    for (int i = 0; i < DRAINERS; i++)
        all[i] = worker_drain(q);
    worker_await_all_blocked(all, DRAINERS);

    wq_destroy(q);

    for (int i = 0; i < DRAINERS; i++)
        assert_err(worker_join(all[i]), WQ_EINTERRUPTED);
}

/* O-03 */
TEST(destroy_drops_what_is_ready_held_or_dirty)
{
    wq_queue *q = create();
    char      long_key[1000];

    memset(long_key, 'x', sizeof long_key);
    add(q, "held");
    add(q, "dirty");
    add(q, "ready");
    assert_err(wq_add(q, (wq_key){long_key, sizeof long_key}), WQ_OK);
    (void)take_key(q, "held");
    (void)take_key(q, "dirty");
    add(q, "dirty");

    wq_destroy(q); /* what it forgets, a leak checker finds */
}

/* O-03 */
TEST(destroy_after_shutdown_and_drain_is_fine)
{
    wq_queue *q = create();

    add(q, "foo");
    work_on(q, "foo");
    assert_err(wq_shutdown_with_drain(q), WQ_OK);
    wq_shutdown(q);

    wq_destroy(q);
}

/* O-03 */
TEST(destroy_of_nothing_does_nothing)
{
    wq_destroy(NULL);
}

/* O-03: a get that was woken for a key has it, or is sent home; never is it
 * left behind in a queue that is gone. */
TEST(destroy_meets_a_get_that_is_just_waking_up)
{
    enum { ROUNDS = 50, GETTERS = 2 };

    for (int round = 0; round < ROUNDS; round++) {
        wq_queue      *q = create();
        struct worker *all[GETTERS];

        for (int i = 0; i < GETTERS; i++)
            all[i] = worker_get(q, NULL);
        worker_await_all_blocked(all, GETTERS);
        add(q, "foo");
        wq_destroy(q);

        int handed_out = 0;
        for (int i = 0; i < GETTERS; i++) {
            const int err = worker_join(all[i]);
            handed_out += err == WQ_OK;
            if (err)
                assert_err(err, WQ_ESHUTDOWN);
        }
        assert_in_range(handed_out, 0, 1);
    }
}

WQ_TESTS(test(destroy_sends_every_blocked_get_home),
         test(destroy_ends_every_blocked_drain),
         test(destroy_drops_what_is_ready_held_or_dirty),
         test(destroy_after_shutdown_and_drain_is_fine),
         test(destroy_of_nothing_does_nothing),
         test(destroy_meets_a_get_that_is_just_waking_up));
