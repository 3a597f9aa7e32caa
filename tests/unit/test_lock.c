/* SPDX-License-Identifier: MIT */
/* test_lock.c: who comes in by which door of the lock?
 *
 * The steps K1 to K6 of lock.h, one at a time: the test's own thread and one
 * that does what it is told and nothing meanwhile. What happens when they come
 * at the same moment, tests/stress/test_lock.c asks; and what the barrier has
 * to do with it, test_barrier.c.
 */
#define _GNU_SOURCE /* syscall() */

#include "support/wq_test.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "port/lock.h"
#include "support/stage.h"
#include "support/worker.h"

#if WQ__HAVE_FUTEX
#include <sys/syscall.h>
#include <unistd.h>

static struct wq__lock lock;
static uint64_t        guarded; /* by the lock; not atomic on purpose */

/* ---- the other thread ---------------------------------------------------- */

static struct {
    pthread_t thread;
    sem_t     told, done; /* 1: `act` is set; it has returned */
    int (*act)(void);     /* NULL: go home */
    int         result;   /* what it returned */
    const void *mark;     /* which thread it is to the lock */
} other;

static void *
do_as_told(void *unused)
{
    other.mark = wq__slot_mark();
    for (;;) {
        (void)sem_post(&other.done);
        while (sem_wait(&other.told) != 0)
            ;
        if (!other.act)
            return unused;
        other.result = other.act();
    }
}

static void
tell_other(int (*act)(void))
{
    other.act = act;
    assert_int_equal(sem_post(&other.told), 0);
}

static bool
other_is_done(void)
{
    int value = 0;

    (void)sem_getvalue(&other.done, &value);
    return value > 0;
}

static int
await_other(void)
{
    while (sem_wait(&other.done) != 0)
        ;
    return other.result;
}

static int
other_does(int (*act)(void))
{
    tell_other(act);
    return await_other();
}

static int
open_lock(void **state)
{
    (void)state;
    guarded = 0;
    wq__lock_init(&lock);
    assert_int_equal(sem_init(&other.told, 0, 0), 0);
    assert_int_equal(sem_init(&other.done, 0, 0), 0);
    assert_int_equal(pthread_create(&other.thread, NULL, do_as_told, NULL), 0);
    (void)await_other();
    return 0;
}

static int
close_lock(void **state)
{
    (void)state;
    tell_other(NULL);
    assert_int_equal(pthread_join(other.thread, NULL), 0);
    (void)sem_destroy(&other.told);
    (void)sem_destroy(&other.done);
    wq__lock_fini(&lock);
    return 0;
}

/* ---- words: what any thread does ----------------------------------------- */

static int
take(void)
{
    wq__lock_take(&lock);
    wq__lock_assert_taken(&lock);
    guarded++;
    return 0;
}

static int
try(void)
{
    return wq__lock_try(&lock);
}

static int
leave(void)
{
    wq__lock_release(&lock);
    return 0;
}

static int
come_and_go(void)
{
    take();
    leave();
    return 0;
}

/* More often than it takes to become the owner. */
static int
come_often(void)
{
    for (uint32_t i = 0; i < 3 * lock.patience; i++)
        come_and_go();
    return 0;
}

/* ---- words: what is to be seen ------------------------------------------- */

static const void *
owner(void)
{
    return atomic_load(&lock.owner);
}

static uint32_t
word(void)
{
    return atomic_load(&lock.word);
}

static bool
inside(void)
{
    return atomic_load(&lock.inside);
}

static void
expect_in_by_front_door(void)
{
    assert_int_equal(word(), 1);
    assert_false(inside());
    assert_false(lock.sideways);
}

static void
expect_in_by_side_door(void)
{
    assert_int_equal(word(), 0);
    assert_true(inside());
    assert_true(lock.sideways);
}

static void
expect_nobody_in(void)
{
    assert_int_equal(word(), 0);
    assert_false(inside());
}

/* This thread becomes the owner. */
static void
own(void)
{
    if (!wq__barrier_available())
        wq_test_skip("the system has no barrier for others");
    come_often();
    assert_ptr_equal(owner(), wq__slot_mark());
}

/* ---- becoming the owner -------------------------------------------------- */

TEST(thread_becomes_the_owner_by_coming_often)
{
    uint32_t times = 0;

    if (!wq__barrier_available())
        wq_test_skip("the system has no barrier for others");
    while (!owner()) {
        take();
        expect_in_by_front_door();
        leave();
        expect_nobody_in();
        times++;
    }
    assert_int_equal(times, lock.patience + 1); /* once, and again so often */
    assert_ptr_equal(owner(), wq__slot_mark());
    assert_ptr_equal(lock.keyholder, wq__slot_mark());
}

TEST(threads_that_alternate_own_nothing)
{
    for (uint32_t i = 0; i < 10 * lock.patience; i++) {
        come_and_go();
        other_does(come_and_go);
        assert_null(owner());
    }
}

/* Who came almost often enough begins anew after somebody else. */
TEST(somebody_between_ends_the_streak)
{
    for (int round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < lock.patience; i++)
            come_and_go();
        assert_null(owner());
        other_does(come_and_go);
    }
}

/* ---- the side door ------------------------------------------------------- */

TEST(owner_comes_and_goes_by_the_side_door)
{
    own();
    for (int i = 0; i < 10; i++) {
        take();
        expect_in_by_side_door();
        leave();
        expect_nobody_in();
    }
    assert_true(wq__lock_try(&lock));
    expect_in_by_side_door();
    leave();
    expect_nobody_in();
}

/* As if others were at the front door all the time, not in yet: the owner does
 * not even look. */
TEST(owner_does_not_touch_the_front_door)
{
    own();
    for (uint32_t taken = 1; taken <= 2; taken++) {
        atomic_store(&lock.word, taken);
        take();
        assert_true(lock.sideways);
        assert_int_equal(word(), taken);
        leave();
        assert_int_equal(word(), taken);
    }
    atomic_store(&lock.word, 0);
}

/* K2 K4: and what the owner wrote, the other one sees. */
TEST(other_thread_takes_the_side_door_away)
{
    own();
    const uint64_t before = guarded;
    other_does(take);
    assert_null(owner());
    expect_in_by_front_door();
    assert_false(wq__lock_try(&lock)); /* it is taken */
    other_does(leave);
    expect_nobody_in();
    assert_int_equal(guarded, before + 1);

    take(); /* by the front door, as everybody */
    expect_in_by_front_door();
    leave();
}

TEST(try_takes_the_side_door_away_too)
{
    own();
    assert_true(other_does(try));
    assert_null(owner());
    expect_in_by_front_door();
    other_does(leave);
    expect_nobody_in();
}

/* K3: also the second one, who finds no owner, does not come in. Nobody waits:
 * this thread, which would have to leave, waits itself. */
TEST(try_fails_while_the_owner_is_inside)
{
    own();
    take();
    assert_false(other_does(try));
    assert_null(owner());
    expect_in_by_side_door(); /* the front door is free again */
    assert_false(other_does(try));
    expect_in_by_side_door();
    leave();
    expect_nobody_in();
    assert_true(other_does(try));
    expect_in_by_front_door();
    other_does(leave);
}

static bool
has_no_owner(void *unused)
{
    (void)unused;
    return !owner();
}

/* K2 K3 K4 */
TEST(take_waits_until_the_owner_has_left)
{
    own();
    take();
    const uint64_t before = guarded;
    tell_other(take);
    await_that(has_no_owner, NULL, "the owner to be dismissed");
    for (int i = 0; i < 1000; i++) /* it has come, and does not come in */
        assert_int_equal(guarded, before);
    assert_false(other_is_done());
    assert_true(inside());
    guarded += 100;
    leave();
    await_other();
    assert_int_equal(guarded, before + 101);
    expect_in_by_front_door();
    other_does(leave);
}

/* K3: as the last one, but somebody else has dismissed the owner before. */
TEST(take_waits_although_there_is_no_owner_any_more)
{
    own();
    take();
    assert_false(other_does(try));
    assert_null(owner());
    const uint64_t before = guarded;
    tell_other(take);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(guarded, before);
    assert_false(other_is_done());
    leave();
    await_other();
    assert_int_equal(guarded, before + 1);
    other_does(leave);
}

/* Each time it is taken away it is harder to get; in a debug build it is as
 * easy as ever. */
TEST(side_door_is_harder_to_get_each_time)
{
    uint32_t expected = lock.patience;

    for (int round = 0; round < 4; round++) {
        own();
        other_does(come_and_go);
        expected *= WQ_DEBUG ? 1 : 2;
        assert_int_equal(lock.patience, expected);
    }
}

/* ... but never so hard that the number wraps and it is easy. */
TEST(side_door_is_never_easy_to_get_by_being_hard)
{
    own();
    lock.patience = UINT32_C(1) << 31;
    other_does(come_and_go);
    assert_null(owner());
    assert_int_equal(lock.patience, UINT32_C(1) << 31);
}

/* ---- the key to it: K5 --------------------------------------------------- */

TEST(nobody_else_owns_it_until_the_former_owner_has_come)
{
    own();
    other_does(come_often);
    assert_null(owner());
    assert_ptr_equal(lock.keyholder, wq__slot_mark());
    other_does(come_often);
    assert_null(owner());

    come_and_go(); /* leaves the key */
    assert_null(lock.keyholder);
    other_does(come_often);
    assert_ptr_equal(owner(), other.mark);
    assert_ptr_equal(lock.keyholder, other.mark);
}

/* It must have come in: a try that finds the front door taken leaves no key. */
TEST(former_owner_that_is_turned_away_keeps_the_key)
{
    own();
    other_does(take);
    assert_false(wq__lock_try(&lock));
    assert_ptr_equal(lock.keyholder, wq__slot_mark());
    other_does(leave);
    assert_true(wq__lock_try(&lock));
    assert_null(lock.keyholder);
    leave();
}

TEST(former_owner_can_own_it_again)
{
    for (int round = 0; round < 3; round++) {
        own();
        other_does(come_and_go);
        assert_null(owner());
    }
    other_does(come_and_go);
    own();
}

/* ---- between two steps --------------------------------------------------- */

#if WQ_DEBUG

/* A debug build lets others run, now and then, between the owner's two looks at
 * `owner`: before it says `inside`, and after. It does so by sched_yield().
 * This program has one of its own, which the library, linked in statically,
 * finds before the C library's. */
static _Thread_local void (*at_yield)(void); /* NULL: nothing happens then */

int
sched_yield(void)
{
    if (at_yield)
        at_yield();
    return (int)syscall(SYS_sched_yield);
}

static bool        has_happened;
static bool        other_got_in;  /* by a try */
static const void *owner_by_then; /* after all that */

static void
visit_before_inside(void)
{
    if (inside())
        return;
    at_yield = NULL;
    has_happened = true;
    other_got_in = other_does(try);
    other_does(leave);
    other_does(come_often);
    owner_by_then = owner();
}

static void
visit_after_inside(void)
{
    if (!inside())
        return;
    at_yield = NULL;
    has_happened = true;
    other_got_in = other_does(try);
    owner_by_then = owner();
}

/* Take the lock as the owner again and again until `visit` comes between. */
static void
take_until(void (*visit)(void))
{
    own();
    has_happened = false;
    at_yield = visit;
    for (;;) {
        take();
        if (has_happened)
            return;
        expect_in_by_side_door();
        leave();
    }
}

/* K2, and K5: nobody else owns the side door while this thread may still say
 * `inside`. It does, takes that back, and comes in by the front door. */
TEST(owner_that_was_dismissed_before_it_said_inside_takes_it_back)
{
    take_until(visit_before_inside);
    assert_true(other_got_in);
    assert_null(owner_by_then);
    expect_in_by_front_door();
    assert_null(lock.keyholder);
    leave();
    expect_nobody_in();
    assert_true(other_does(try));
    other_does(leave);
}

/* K2 K3: the other one sees that, and does not come in. */
TEST(owner_that_was_dismissed_after_it_said_inside_takes_it_back)
{
    take_until(visit_after_inside);
    assert_false(other_got_in);
    assert_null(owner_by_then);
    expect_in_by_front_door();
    leave();
    expect_nobody_in();
    assert_true(other_does(try));
    other_does(leave);
}

#endif

/* ---- K6 ------------------------------------------------------------------ */

enum { GENERATIONS = 50 };

static int
come_often_in_a_thread(struct worker *self)
{
    (void)self;
    return come_often();
}

/* A new thread may be taken for the owner, which has ended; then it is. */
TEST(thread_after_thread_sees_what_the_one_before_did)
{
    for (int i = 0; i < GENERATIONS; i++) {
        const uint64_t before = guarded;
        const uint32_t patience = lock.patience;

        assert_int_equal(
            worker_join(worker_start(come_often_in_a_thread, NULL)), 0);
        expect_nobody_in();
        assert_true(guarded >= before + 3 * patience);
        lock.patience = patience;
    }
    come_and_go();
    expect_nobody_in();
}

#define lock_test(name) test_with(name, open_lock, close_lock)

#if WQ_DEBUG
#define TESTS_BETWEEN_STEPS                                                    \
    lock_test(owner_that_was_dismissed_before_it_said_inside_takes_it_back),   \
        lock_test(                                                             \
            owner_that_was_dismissed_after_it_said_inside_takes_it_back),
#else
#define TESTS_BETWEEN_STEPS
#endif

WQ_TESTS(
    TESTS_BETWEEN_STEPS lock_test(thread_becomes_the_owner_by_coming_often),
    lock_test(threads_that_alternate_own_nothing),
    lock_test(somebody_between_ends_the_streak),
    lock_test(owner_comes_and_goes_by_the_side_door),
    lock_test(owner_does_not_touch_the_front_door),
    lock_test(other_thread_takes_the_side_door_away),
    lock_test(try_takes_the_side_door_away_too),
    lock_test(try_fails_while_the_owner_is_inside),
    lock_test(take_waits_until_the_owner_has_left),
    lock_test(take_waits_although_there_is_no_owner_any_more),
    lock_test(side_door_is_harder_to_get_each_time),
    lock_test(side_door_is_never_easy_to_get_by_being_hard),
    lock_test(nobody_else_owns_it_until_the_former_owner_has_come),
    lock_test(former_owner_that_is_turned_away_keeps_the_key),
    lock_test(former_owner_can_own_it_again),
    lock_test(thread_after_thread_sees_what_the_one_before_did));

#else

/* One door: a mutex. test_port.c asks all there is to ask. */
TEST(lock_has_one_door)
{
    struct wq__lock lock;

    wq__lock_init(&lock);
    wq__lock_take(&lock);
    wq__lock_release(&lock);
    wq__lock_fini(&lock);
}

WQ_TESTS(test(lock_has_one_door));

#endif
