/* SPDX-License-Identifier: MIT */
/* test_allocator.c: is the allocator of a queue called under its lock only?
 *
 * The thread sanitizer reports a race if not. The queue's default limiter, which
 * has a lock of its own, allocates, too: one thread makes it do so while another
 * fills and empties the queue.
 */
#include "support/wq_test.h"

#include <pthread.h>

#include <wq/wq.h>

#include "support/unlocked_allocator.h"

enum { KEYS = 200, ROUNDS = 50 };

/* Failures are added and forgotten: the table of the limiter grows and
 * shrinks. */
static void *
fail_and_forget(void *q)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (uint64_t n = KEYS; n < 2 * KEYS; n++)
            if (wq_add_rate_limited(q, wq_u64(&n)) != WQ_OK)
                return q;
        for (uint64_t n = KEYS; n < 2 * KEYS; n++)
            (void)wq_forget(q, wq_u64(&n));
    }
    return NULL;
}

static void
fill_and_empty(wq_queue *q)
{
    wq_item *item;

    for (uint64_t n = 0; n < KEYS; n++)
        assert_int_equal(wq_add(q, wq_u64(&n)), WQ_OK);
    while (wq_get_within(q, 0, &item) == WQ_OK)
        assert_int_equal(wq_done(q, item), WQ_OK);
}

/* L7 O-03 */
TEST(allocator_is_called_under_the_lock_only)
{
    wq_queue *q;
    pthread_t thread;
    void     *failed;

    assert_int_equal(wq_create(WQ_CONFIG(.allocator = &unlocked_allocator), &q),
                     WQ_OK);
    assert_int_equal(pthread_create(&thread, NULL, fail_and_forget, q), 0);
    for (int round = 0; round < ROUNDS; round++)
        fill_and_empty(q);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    wq_destroy(q);
    assert_int_equal(unlocked_bytes, 0); /* no count was lost */
}

WQ_TESTS(test(allocator_is_called_under_the_lock_only));
