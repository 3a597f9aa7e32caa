/* SPDX-License-Identifier: MIT */
/* test_system_calls.c: does the queue bother the system when nobody sleeps?
 *
 * O-12. On Linux the port room sleeps and wakes through the C function
 * syscall(). This program has one of its own, which counts before it passes
 * on; the library, linked in statically, finds it before the C library's.
 */
#define _GNU_SOURCE /* RTLD_NEXT, syscall() */

#include "support/wq_test.h"

#include <stdatomic.h>
#include <unistd.h>

#include <wq/wq.h>

#include "port/futex.h"
#include "support/worker.h"

#if WQ__HAVE_FUTEX
#include <linux/futex.h>
#include <sys/syscall.h>

#include "unit/syscalls.h"

static atomic_size_t wakes, waits;

static void
count(long number, long operation)
{
    if (number != SYS_futex)
        return;
    if ((operation & FUTEX_CMD_MASK) == FUTEX_WAKE)
        wakes++;
    else
        waits++;
}

static bool
intercept(long number, const long arguments[6], long *result)
{
    (void)result;
    count(number, arguments[1]);
    return false;
}

static void
expect_calls(size_t expected_wakes, size_t expected_waits)
{
    assert_int_equal(wakes, expected_wakes);
    assert_int_equal(waits, expected_waits);
}

#else

/* Nothing can be counted here; that the calls work is all that is asked. */
static size_t wakes, waits;

static void
expect_calls(size_t expected_wakes, size_t expected_waits)
{
    (void)expected_wakes;
    (void)expected_waits;
}

#endif

static wq_queue *q;

static int
open_queue(void **state)
{
    (void)state;
    assert_int_equal(wq_create(NULL, &q), WQ_OK);
    wakes = waits = 0;
    return 0;
}

static int
close_queue(void **state)
{
    (void)state;
    wq_destroy(q);
    return 0;
}

static void
cycle(void)
{
    wq_item *item;

    assert_int_equal(wq_add_str(q, "foo"), WQ_OK);
    assert_int_equal(wq_get(q, &item), WQ_OK);
    assert_int_equal(wq_add_str(q, "foo"), WQ_OK);
    assert_int_equal(wq_done(q, item), WQ_OK);
    assert_int_equal(wq_get(q, &item), WQ_OK);
    assert_int_equal(wq_done_key(q, wq_str("foo")), WQ_OK);
}

TEST(work_of_one_thread_makes_no_system_call)
{
    for (int i = 0; i < 100000; i++)
        cycle();
    expect_calls(0, 0);
}

TEST(looking_at_an_empty_queue_makes_no_system_call)
{
    wq_item *item;

    assert_int_equal(wq_get_within(q, 0, &item), WQ_ETIMEDOUT);
    assert_int_equal(wq_len(q), 0);
    assert_false(wq_shutting_down(q));
    expect_calls(0, 0);
}

TEST(shutdown_and_interrupt_of_nobody_make_no_system_call)
{
    wq_interrupt(q);
    wq_shutdown(q);
    assert_int_equal(wq_shutdown_with_drain(q), WQ_OK);
    expect_calls(0, 0);
}

/* That the counting works at all, and that a wake-up is not paid twice. */
TEST(sleeper_costs_one_wait_and_one_wake)
{
    wq_item       *item = NULL;
    struct worker *w = worker_get(q, &item);

    worker_await_blocked(w);
    expect_calls(0, 1);
    assert_int_equal(wq_add_str(q, "foo"), WQ_OK);
    assert_int_equal(worker_join(w), WQ_OK);
    /* One for the sleeper, at most one for a fight about the lock. */
    expect_calls(wakes > 1 ? 2 : 1, waits);
}

TEST(queue_whose_sleeper_has_gone_is_silent_again)
{
    wq_item       *item = NULL;
    struct worker *w = worker_get(q, &item);

    worker_await_blocked(w);
    assert_int_equal(wq_add_str(q, "bar"), WQ_OK);
    assert_int_equal(worker_join(w), WQ_OK);
    wakes = waits = 0;
    for (int i = 0; i < 1000; i++)
        cycle();
    expect_calls(0, 0);
}

#define call_test(name) test_with(name, open_queue, close_queue)

WQ_TESTS(call_test(work_of_one_thread_makes_no_system_call),
         call_test(looking_at_an_empty_queue_makes_no_system_call),
         call_test(shutdown_and_interrupt_of_nobody_make_no_system_call),
         call_test(sleeper_costs_one_wait_and_one_wake),
         call_test(queue_whose_sleeper_has_gone_is_silent_again));
