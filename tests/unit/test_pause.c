/* SPDX-License-Identifier: MIT */
/* test_pause.c: what does a key in the inbox of a paused queue change?
 *
 * Nothing, until the queue is resumed. */
#include "unit/queue_fixture.h"

/* A key has come, and no thread has looked since. */
static void
leave_a_key_in_the_inbox(void)
{
    wq__gate_enter(m);
    put_while_locked("a");
    wq__gate_leave(m);
    assert_true(wq__inbox_holds(&m->inbox));
}

#if defined(__linux__) && !defined(WQ_PORT_POSIX)

/* O-85 O-70 */
TEST(key_in_the_inbox_leaves_a_paused_queue_unreadable)
{
    assert_true(wq_fd(q) >= 0);
    assert_err(wq_pause(q), WQ_OK);
    leave_a_key_in_the_inbox();
    assert_false(m->lit);
    assert_err(wq_resume(q), WQ_OK);
    assert_true(m->lit);
    wq_item *item = take("a");
    assert_false(m->lit);
    assert_err(wq_done(q, item), WQ_OK);
}

#define fd_tests queue_test(key_in_the_inbox_leaves_a_paused_queue_unreadable),
#else
#define fd_tests /* there is no wq_fd() */
#endif

/* O-85: a get that comes then finds nothing, and it stays READY. */
TEST(key_in_the_inbox_is_not_handed_out_while_paused)
{
    assert_err(wq_pause(q), WQ_OK);
    leave_a_key_in_the_inbox();
    expect_get(WQ_ETIMEDOUT);
    assert_int_equal(wq_len(q), 1);
    assert_err(wq_resume(q), WQ_OK);
    work_on("a");
}

WQ_TESTS(fd_tests queue_test(key_in_the_inbox_is_not_handed_out_while_paused));
