/* SPDX-License-Identifier: MIT */
/* test_wake_order.c: is a thread woken before or after the lock is released?
 *
 * Before, in a real-time queue (O-74); after, in any other, so that the woken
 * thread does not find the lock taken. This program has a syscall() of its own,
 * which looks at the lock when a thread is woken.
 */
#define _GNU_SOURCE /* RTLD_NEXT, syscall() */

#include "unit/queue_fixture.h"

#if WQ__HAVE_FUTEX
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INTERPOSE_SYSCALL
#include "unit/interpose.h"

/* The queue whose wake-ups are looked at; NULL: none. Only the thread that set
 * it is meant. */
static _Thread_local struct wq__memory *watched;
static unsigned                         wakes, wakes_with_lock;

static bool
intercept(long number, const long arguments[6], long *result)
{
    (void)result;
    if (watched && number == SYS_futex &&
        (arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAKE) {
        wakes++;
        wakes_with_lock += lock_is_taken(&watched->lock);
    }
    return false;
}

/* Wake a getter by an add, and count. */
static void
wake_a_getter(bool real_time)
{
    wakes = wakes_with_lock = 0;
    create(WQ_CONFIG(.real_time = real_time));
    struct worker *w = worker_get(q, NULL);
    worker_await_blocked(w);
    watched = m;
    const wq_err err = wq_add_str(q, "foo");
    watched = NULL;
    assert_err(err, WQ_OK);
    assert_err(worker_join(w), WQ_OK);
    (void)close_queue(NULL);
    assert_int_equal(wakes, 1);
}

TEST(ordinary_queue_wakes_after_the_lock_is_released)
{
    wake_a_getter(false);
    assert_int_equal(wakes_with_lock, 0);
}

/* O-74 */
TEST(real_time_queue_wakes_before_the_lock_is_released)
{
    wake_a_getter(true);
    assert_int_equal(wakes_with_lock, 1);
}

WQ_TESTS(test(ordinary_queue_wakes_after_the_lock_is_released),
         test(real_time_queue_wakes_before_the_lock_is_released));

#else

/* POSIX threads do not show their system calls. */
TEST(wake_up_cannot_be_seen_here)
{
}

WQ_TESTS(test(wake_up_cannot_be_seen_here));

#endif
