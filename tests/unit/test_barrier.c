/* SPDX-License-Identifier: MIT */
/* test_barrier.c: who pays when the owner of a lock must not be missed?
 *
 * K2 of lock.h. The barrier is a system call, made through the C function
 * syscall(). This program has one of its own, which the library, linked in
 * statically, finds before the C library's: it counts, refuses, or lets
 * something happen at just that moment.
 */
#define _GNU_SOURCE /* RTLD_NEXT, syscall() */

#include "support/wq_test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "port/barrier.h"
#include "port/lock.h"
#include "support/worker.h"

#if WQ__HAVE_FUTEX && !WQ__BARRIER_SYMMETRIC
#include <sys/syscall.h>

#include "unit/syscalls.h"

enum { EXPEDITED = 1 << 3, REGISTER_EXPEDITED = 1 << 4 };

static atomic_size_t barriers;      /* how many were asked for */
static atomic_size_t registrations; /* how often it was asked whether */
static atomic_bool   refuses;       /* the system has none */
static void (*at_barrier)(void);    /* what happens just then; or NULL */

/* Is it answered here? */
static bool
refuse(int command)
{
    if (command == EXPEDITED) {
        barriers++;
        if (at_barrier)
            at_barrier();
    }
    registrations += command == REGISTER_EXPEDITED;
    if (refuses)
        errno = ENOSYS;
    return refuses;
}

static bool
intercept(long number, const long arguments[6], long *result)
{
    *result = -1;
    return number == SYS_membarrier && refuse((int)arguments[0]);
}

/* ---- words --------------------------------------------------------------- */

static struct wq__lock lock;

static void
come_often(void)
{
    for (uint32_t i = 0; i < 3 * lock.patience; i++) {
        wq__lock_take(&lock);
        wq__lock_release(&lock);
    }
}

static int
open_lock(void **state)
{
    (void)state;
    wq__lock_init(&lock);
    return 0;
}

static int
close_lock(void **state)
{
    (void)state;
    at_barrier = NULL;
    wq__lock_fini(&lock);
    return 0;
}

/* This thread becomes the owner. */
static void
own(void)
{
    if (!wq__barrier_available())
        wq_test_skip("the system has no barrier for others");
    come_often();
    assert_ptr_equal(atomic_load(&lock.owner), wq__slot_mark());
    barriers = 0;
}

static int
try_in_a_thread(struct worker *self)
{
    (void)self;
    const bool taken = wq__lock_try(&lock);
    if (taken)
        wq__lock_release(&lock);
    return taken;
}

static int
take_in_a_thread(struct worker *self)
{
    (void)self;
    wq__lock_take(&lock);
    wq__lock_release(&lock);
    return 0;
}

/* ---- there is none ------------------------------------------------------- */

/* In a process of its own, which has not asked yet. */
static int
come_often_without_barrier(void)
{
    refuses = true;
    wq__lock_init(&lock);
    come_often();
    come_often();
    if (atomic_load(&lock.owner) || lock.keyholder)
        return 1;
    return registrations == 1 ? 0 : 2; /* it asks once */
}

/* The first test of the program, for that reason. */
TEST(nobody_becomes_the_owner_where_there_is_no_barrier)
{
    int         status;
    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(come_often_without_barrier());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- who pays ------------------------------------------------------------ */

TEST(owner_asks_for_no_barrier)
{
    own();
    come_often();
    assert_int_equal(barriers, 0);
}

TEST(who_takes_the_side_door_away_asks_for_one)
{
    own();
    assert_true(worker_join(worker_start(try_in_a_thread, NULL)));
    assert_int_equal(barriers, 1);
    /* From now on nobody does. */
    assert_true(worker_join(worker_start(try_in_a_thread, NULL)));
    assert_int_equal(worker_join(worker_start(take_in_a_thread, NULL)), 0);
    assert_int_equal(barriers, 1);
}

/* The owner said `inside` some time ago, and only now that shows. There must
 * be no owner any more: who says `inside` later, and then looks, finds none. */
static bool had_owner;

static void
let_inside_show(void)
{
    had_owner = atomic_load(&lock.owner) != NULL;
    atomic_store(&lock.inside, true);
}

static void
let_inside_show_and_end(void)
{
    let_inside_show();
    atomic_store(&lock.inside, false);
}

/* K2 */
TEST(what_shows_at_the_barrier_is_looked_at_after_it)
{
    own();
    at_barrier = let_inside_show;
    assert_false(worker_join(worker_start(try_in_a_thread, NULL)));
    assert_false(had_owner);
    assert_int_equal(barriers, 1);
    atomic_store(&lock.inside, false);

    assert_true(worker_join(worker_start(try_in_a_thread, NULL)));
}

/* K2 */
TEST(owner_that_left_before_the_barrier_is_not_waited_for)
{
    own();
    at_barrier = let_inside_show_and_end;
    assert_int_equal(worker_join(worker_start(take_in_a_thread, NULL)), 0);
    assert_false(had_owner);
    assert_int_equal(barriers, 1);
}

/* The child of a fork may have to do with threads of its own. [O-71] */
TEST(child_has_the_barrier_too)
{
    int status;

    own();
    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(syscall(SYS_membarrier, EXPEDITED, 0, 0) == 0 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

#define lock_test(name) test_with(name, open_lock, close_lock)

WQ_TESTS(test(nobody_becomes_the_owner_where_there_is_no_barrier),
         lock_test(owner_asks_for_no_barrier),
         lock_test(who_takes_the_side_door_away_asks_for_one),
         lock_test(what_shows_at_the_barrier_is_looked_at_after_it),
         lock_test(owner_that_left_before_the_barrier_is_not_waited_for),
         lock_test(child_has_the_barrier_too));

#else

/* No system call is made: both sides pay, or there is one door. */
TEST(answer_is_the_same_every_time)
{
    assert_int_equal(wq__barrier_available(), wq__barrier_available());
}

WQ_TESTS(test(answer_is_the_same_every_time));

#endif
