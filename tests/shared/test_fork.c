/* SPDX-License-Identifier: MIT */
/* test_fork.c: what can a child of fork() do with a handle of its parent?
 *
 * Nothing but destroy it. The child reports what it found by its exit status:
 * only the parent can use cmocka's assertions. In most tests another thread
 * of the parent had the lock of the handle at the fork, so that a child that
 * takes it blocks for ever: an alarm ends it.
 */
#include "shared/fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include "shared/readable.h"
#include "shared/shared.h"

static wq_item *held;

static int
in_child(int (*run)(void))
{
    const pid_t child = fork();
    int         status = -1;

    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(10);
        _exit(run());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* The same while the parent has the lock of handle a. */
static int
in_child_of_a_busy_parent(int (*run)(void))
{
    wq__shared_enter(wq__shared_of(f.a));
    const int status = in_child(run);
    wq__shared_leave(wq__shared_of(f.a));
    return status;
}

/* The number of the first call that is not WQ_ESTATE; 0: all are. */
static int
call_everything(void)
{
    const wq_result done = wq_result_done();
    const wq_key    key = wq_str("k");
    wq_item        *item = held, *items[] = {held};
    wq_err          errs[1] = {WQ_OK};
    wq_stats        s = {.size = sizeof s};
    wq_key_info     info = {.size = sizeof info};
    wq_depth        depths[1];
    size_t          n;
    const wq_err    all[] = {
           wq_add(f.a, key),
           wq_add_after(f.a, key, 1),
           wq_add_rate_limited(f.a, key),
           wq_add_with(f.a, WQ_ADD(.priority = 1), &key, 1),
           wq_get_within(f.a, 0, &item),
           wq_get(f.a, &item),
           wq_get_many(f.a, items, 1, 0, &n),
           wq_done(f.a, held),
           wq_done_key(f.a, key),
           wq_done_many(f.a, items, 1),
           wq_finish(f.a, held, done),
           wq_finish_many(f.a, items, &done, errs, 1),
           errs[0],
           wq_next(f.a, 0, &item),
           wq_next_with(f.a, done, 0, &item),
           wq_remove(f.a, key),
           wq_cancel_after(f.a, key),
           wq_forget(f.a, key),
           wq_revive(f.a, key),
           wq_count_drops(f.a, 1),
           wq_renew(f.a),
           wq_pause(f.a),
           wq_resume(f.a),
           wq_wait_idle(f.a, 0),
           wq_shutdown_with_drain_within(f.a, 0),
           wq_shutdown_with_drain(f.a),
           wq_read_stats(f.a, &s),
           wq_read_depths(f.a, depths, 1, &n),
           wq_read_key(f.a, key, &info),
           wq_each(f.a, 0, count_visit, &n),
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] != WQ_ESTATE)
            return (int)i + 1;
    wq_interrupt(f.a);
    wq_shutdown(f.a);
    if (wq_hold_left(f.a, held) != 0 || wq_len(f.a) != 0 ||
        wq_num_requeues(f.a, key) != 0 || wq_fd(f.a) != -1)
        return 100;
    return 0;
}

static int
destroy_handle(void)
{
    wq_destroy(f.a);
    return 0;
}

static int
call_everything_and_destroy(void)
{
    const int failed = call_everything();

    wq_destroy(f.a);
    return failed;
}

static void
expect_parent_works_on(void)
{
    expect_sound();
    assert_false(wq_shutting_down(f.a));
    assert_int_equal(states(f.b, "k"), WQ_STATE_HELD);
    assert_true(wq_hold_left(f.a, held) > 0);
    assert_int_equal(count_lost(), 0);
    assert_err(wq_done(f.a, held), WQ_OK);
    add(f.b, "l");
    work_on(f.a, "l");
}

/* S-09 */
TEST(child_cannot_use_the_handle)
{
    add(f.a, "k");
    held = take_key(f.a, "k");
    assert_int_equal(in_child(call_everything), 0);
    expect_parent_works_on();
}

/* S-09 */
TEST(child_of_a_busy_parent_does_not_block)
{
    add(f.a, "k");
    held = take_key(f.a, "k");
    assert_int_equal(in_child_of_a_busy_parent(call_everything), 0);
    expect_parent_works_on();
}

/* S-09 */
TEST(child_that_destroys_the_handle_leaves_the_parent_alone)
{
    add(f.a, "k");
    held = take_key(f.a, "k");
    assert_int_equal(in_child(destroy_handle), 0);
    assert_int_equal(in_child(call_everything_and_destroy), 0);
    expect_parent_works_on();
}

/* S-09: with threads for the lease, of which the child has none. */
TEST(child_destroys_a_handle_with_a_thread)
{
    add(f.a, "k");
    held = take_key(f.a, "k");
    await_sleepers(THREADS_OF_LEASES);
    assert_int_equal(in_child(call_everything_and_destroy), 0);
    for (int i = 0; i < 4; i++) {
        await_sleepers(THREADS_OF_LEASES);
        pass(LEASE / 3);
    }
    await_sleepers(THREADS_OF_LEASES);
    assert_int_equal(wq_hold_left(f.a, held), LEASE);
    expect_parent_works_on();
}

/* S-09: threads of the parent sleep in the handle. */
TEST(child_does_not_wake_sleepers_of_the_parent)
{
    wq_item *item = NULL;

    add(f.a, "k");
    held = take_key(f.a, "k");
    struct worker *w = worker_get(f.a, &item);
    worker_await_blocked(w);
    assert_int_equal(in_child(call_everything_and_destroy), 0);
    worker_await_blocked(w);
    add(f.b, "l");
    assert_err(worker_join(w), WQ_OK);
    assert_err(wq_done(f.a, item), WQ_OK);
    expect_parent_works_on();
}

#if defined(__linux__) && !defined(WQ_PORT_POSIX)
/* S-09 */
TEST(child_leaves_the_descriptor_of_the_parent)
{
    assert_false(is_readable(f.a));
    assert_int_equal(in_child(destroy_handle), 0);
    assert_false(is_readable(f.a));
    add(f.b, "k");
    assert_true(is_readable(f.a));
    held = take_key(f.a, "k");
    assert_false(is_readable(f.a));
    assert_int_equal(in_child(destroy_handle), 0);
    assert_err(wq_add_after_str(f.a, "later", 10), WQ_OK);
    assert_int_equal(in_child(destroy_handle), 0);
    assert_false(is_readable(f.a));
    pass(10);
    assert_true(is_readable(f.a));
    work_on(f.a, "later");
}
#define DESCRIPTOR_TESTS                                                       \
    , with_handles(child_leaves_the_descriptor_of_the_parent)
#else
#define DESCRIPTOR_TESTS /* there is no wq_fd() */
#endif

WQ_TESTS(with_handles(child_cannot_use_the_handle),
         with_leases(child_of_a_busy_parent_does_not_block),
         with_leases(child_that_destroys_the_handle_leaves_the_parent_alone),
         with_threads(child_destroys_a_handle_with_a_thread),
         with_handles(child_does_not_wake_sleepers_of_the_parent)
             DESCRIPTOR_TESTS);
