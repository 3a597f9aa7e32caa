/* SPDX-License-Identifier: MIT */
/* test_system_calls.c: does the queue make system calls when no thread sleeps?
 *
 * O-12. On Linux the port room sleeps and wakes through the C function
 * syscall(). This program's own counts the calls.
 */
#define _GNU_SOURCE /* RTLD_NEXT, syscall() */

#include "unit/queue_fixture.h"

#include <stdatomic.h>
#include <unistd.h>

#include "port/futex.h"

#if WQ__HAVE_FUTEX
#include <linux/futex.h>
#include <sys/syscall.h>

#define INTERPOSE_SYSCALL
#include "unit/interpose.h"

static atomic_size_t wakes, waits;

static bool
intercept(long number, const long arguments[6], long *result)
{
    (void)result;
    if (number == SYS_futex) {
        if ((arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAKE)
            wakes++;
        else
            waits++;
    }
    return false;
}

static void
expect_calls(size_t expected_wakes, size_t expected_waits)
{
    assert_int_equal(wakes, expected_wakes);
    assert_int_equal(waits, expected_waits);
}

#else

/* Nothing can be counted here: the tests only see that the calls work. */
static size_t wakes, waits;

static void
expect_calls(size_t expected_wakes, size_t expected_waits)
{
    (void)expected_wakes;
    (void)expected_waits;
}

#endif

static int
open_counted(void **state)
{
    (void)open_queue(state);
    wakes = waits = 0;
    return 0;
}

static void
cycle(void)
{
    wq_item *item;

    add("foo");
    assert_err(wq_get(q, &item), WQ_OK);
    add("foo");
    assert_err(wq_done(q, item), WQ_OK);
    assert_err(wq_get(q, &item), WQ_OK);
    assert_err(wq_done_key(q, wq_str("foo")), WQ_OK);
}

TEST(work_of_one_thread_makes_no_system_call)
{
    for (int i = 0; i < 100000; i++)
        cycle();
    expect_calls(0, 0);
}

TEST(empty_queue_without_sleepers_makes_no_system_call)
{
    expect_get(WQ_ETIMEDOUT);
    assert_int_equal(wq_len(q), 0);
    assert_false(wq_shutting_down(q));
    wq_interrupt(q);
    wq_shutdown(q);
    assert_err(wq_shutdown_with_drain(q), WQ_OK);
    expect_calls(0, 0);
}

/* That the counting works at all, and that a wake-up is not paid twice. */
TEST(sleeper_costs_one_wait_and_one_wake)
{
    wq_item       *item = NULL;
    struct worker *w = worker_get(q, &item);

    worker_await_blocked(w);
    expect_calls(0, 1);
    add("foo");
    assert_err(worker_join(w), WQ_OK);
    /* One for the sleeper, at most one for a fight about the lock. */
    expect_calls(wakes > 1 ? 2 : 1, waits);

    wakes = waits = 0; /* the sleeper has gone */
    assert_err(wq_done(q, item), WQ_OK);
    for (int i = 0; i < 1000; i++)
        cycle();
    expect_calls(0, 0);
}

#define call_test(name) test_with(name, open_counted, close_queue)

WQ_TESTS(call_test(work_of_one_thread_makes_no_system_call),
         call_test(empty_queue_without_sleepers_makes_no_system_call),
         call_test(sleeper_costs_one_wait_and_one_wake));
