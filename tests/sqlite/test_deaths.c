/* SPDX-License-Identifier: MIT */
/* test_deaths.c: what becomes of a queue in a file when its processes die, stop
 * or fork? */
#define _DEFAULT_SOURCE /* setgroups() */

#include "sqlite/tasks.h"

/* ---- deaths: S-16 -------------------------------------------------------- */

TEST(key_of_a_killed_process_goes_to_another)
{
    struct actor *a = holder("", "k");
    struct actor *b = opener("");

    actor_post(b, do_get_at, "10000");
    sleep_ms(50);
    actor_signal(a, SIGKILL);
    const int64_t killed = now_ns(), got = actor_await(b);
    assert_true(got >= 0);
    assert_true(got - killed < KNOWN_WITHIN);
    print_message("got %lld us after the death\n",
                  (long long)(got - killed) / 1000);
    assert_true(actor_do(b, do_have, "k"));
    assert_int_equal(actor_do(b, do_expired, ""), 1);
    assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    expect_states(b, "k", 0);
    expect_clean(b);
}

TEST(key_of_a_killed_process_is_found_by_the_next_open)
{
    struct actor *a = holder("", "k");

    actor_signal(a, SIGKILL);
    struct actor *b = opener("");
    expect_gets(b, "k");
    expect_clean(b);
}

TEST(killed_holder_of_a_dirty_key_loses_no_add)
{
    struct actor *a = holder("", "k");
    struct actor *b = opener("");

    assert_err(actor_do(b, do_add, "k"), WQ_OK);
    assert_err(actor_do(b, do_add_after, "k 3600000"), WQ_OK);
    expect_states(b, "k", WQ_STATE_HELD | WQ_STATE_DIRTY | WQ_STATE_WAITING);
    actor_signal(a, SIGKILL);
    expect_gets(b, "k");
    expect_states(b, "k", WQ_STATE_HELD | WQ_STATE_WAITING);
    assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    expect_states(b, "k", WQ_STATE_WAITING);
    expect_clean(b);
}

TEST(key_that_kills_its_processes_becomes_dead)
{
    struct actor *b = opener("max_expiries=3");

    assert_err(actor_do(b, do_add, "k"), WQ_OK);
    for (int i = 0; i < 3; i++) {
        struct actor *a = opener("max_expiries=3");

        expect_states(b, "k", WQ_STATE_READY);
        expect_gets(a, "k");
        actor_signal(a, SIGKILL);
        if (i == 2)
            break;
        expect_gets(b, "k"); /* which is neither success nor failure: */
        assert_err(actor_do(b, do_finish, "back"), WQ_OK);
    }
    await_states(b, "k", WQ_STATE_DEAD);
    assert_true(actor_do(b, do_list_dead, "k"));
    assert_int_equal(actor_do(b, do_add_priority, "k 1"), WQ_ADDED_DEAD);
    assert_err(actor_do(b, do_get, "0"), WQ_ETIMEDOUT);
    expect_clean(b);
    assert_err(actor_do(b, do_revive, "k"), WQ_OK);
    expect_gets(b, "k");
    assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    expect_states(b, "k", 0);
    expect_clean(b);
}

TEST(keys_of_the_dead_keep_their_order_behind_others)
{
    static const char *const order[] = {"x", "k1", "k2", "k3"};
    struct actor            *a = holder("", "k1");
    struct actor            *b = opener("");

    assert_err(actor_do(a, do_add, "k2"), WQ_OK);
    expect_gets(a, "k2");
    assert_err(actor_do(a, do_add, "k3"), WQ_OK);
    expect_gets(a, "k3");
    assert_err(actor_do(b, do_add, "x"), WQ_OK);
    actor_signal(a, SIGKILL);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        expect_gets(b, order[i]);
    assert_int_equal(actor_do(b, do_expired, ""), 3);
    expect_clean(b);
}

TEST(success_between_deaths_keeps_a_key_alive)
{
    struct actor *b = opener("max_expiries=2");

    for (int i = 0; i < 3; i++) {
        struct actor *a = holder("max_expiries=2", "k");

        actor_signal(a, SIGKILL);
        expect_gets(b, "k");
        assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    }
    expect_clean(b);
}

TEST(closing_a_holder_is_no_expiry)
{
    struct actor *a = holder("max_expiries=1", "k");
    struct actor *b = opener("max_expiries=1");

    actor_post(b, do_get, "10000");
    sleep_ms(50);
    (void)actor_do(a, do_destroy, "");
    assert_err(actor_await(b), WQ_OK);
    assert_int_equal(actor_do(b, do_expired, ""), 0);
    assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    expect_clean(b);
}

/* ---- stops: S-16 --------------------------------------------------------- */

TEST(stopped_process_keeps_its_key)
{
    struct actor *a = holder("", "k");
    struct actor *b = opener("");

    actor_signal(a, SIGSTOP);
    assert_err(actor_do(b, do_get, "1500"), WQ_ETIMEDOUT);
    expect_states(b, "k", WQ_STATE_HELD);
    actor_signal(a, SIGCONT);
    assert_err(actor_do(a, do_finish, "done"), WQ_OK);
    expect_states(b, "k", 0);
    expect_clean(b);
}

TEST(process_killed_while_stopped_loses_its_key)
{
    struct actor *a = holder("", "k");
    struct actor *b = opener("");

    actor_signal(a, SIGSTOP);
    actor_post(b, do_get, "10000");
    sleep_ms(50);
    actor_signal(a, SIGKILL);
    assert_err(actor_await(b), WQ_OK);
}

/* Long enough for a loaded machine to renew it, and short to wait for. */
#define LEASE "hold=lease&lease=700ms"

/* `result` of the holder that has lost its lease changes nothing. */
static void
expect_lost(const char *result)
{
    struct actor *a = holder(LEASE, "k");
    struct actor *b = opener(LEASE);
    const int64_t fence = actor_do(a, do_fence, "");

    assert_true(actor_do(a, do_hold_left, "") > 0);
    actor_signal(a, SIGSTOP);
    expect_gets(b, "k");
    const int64_t later = actor_do(b, do_fence, "");
    assert_true(later > fence);
    assert_int_equal(actor_do(b, do_expired, ""), 1);
    actor_signal(a, SIGCONT);
    assert_int_equal(actor_do(a, do_hold_left, ""), 0);
    assert_err(actor_do(a, do_finish, result), WQ_ELOST);
    assert_int_equal(actor_do(a, do_lost_calls, ""), 1);
    expect_states(b, "k", WQ_STATE_HELD);
    assert_int_equal(actor_do(b, do_held_fence, "k"), later);
    assert_int_equal(actor_do(b, do_failures, "k"), 0);
    assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    expect_states(b, "k", 0);
    /* The first one works again. */
    assert_err(actor_do(a, do_add, "k"), WQ_OK);
    expect_gets(a, "k");
    expect_clean(b);
}

TEST(stopped_process_loses_its_lease_and_cannot_say_done)
{
    expect_lost("done");
}

TEST(stopped_process_loses_its_lease_and_cannot_retry)
{
    expect_lost("retry");
}

TEST(stopped_process_loses_its_lease_and_cannot_bury)
{
    expect_lost("bury");
}

/* No thread tells the handle of its loss before the store does. */
TEST(store_refuses_a_finish_after_the_lease)
{
    struct actor *a = actor_start();
    struct actor *b = opener(LEASE);

    assert_err(actor_do(a, do_open_unrenewed, ""), WQ_OK);
    assert_err(actor_do(a, do_add, "k"), WQ_OK);
    assert_err(actor_do(a, do_get, "5000"), WQ_OK);
    expect_gets(b, "k");
    assert_int_equal(actor_do(a, do_hold_left, ""), 0);
    assert_err(actor_do(a, do_finish, "done"), WQ_ELOST);
    expect_states(b, "k", WQ_STATE_HELD);
    assert_err(actor_do(b, do_finish, "done"), WQ_OK);
    expect_clean(b);
}

TEST(lost_holder_that_gets_its_key_again_has_a_new_fence)
{
    struct actor *a = holder(LEASE, "k");
    struct actor *b = opener(LEASE);

    actor_signal(a, SIGSTOP);
    expect_gets(b, "k");
    assert_err(actor_do(b, do_finish, "back"), WQ_OK);
    actor_signal(a, SIGCONT);
    assert_err(actor_do(a, do_finish, "done"), WQ_ELOST);
    expect_states(b, "k", WQ_STATE_READY);
    expect_gets(a, "k");
    assert_err(actor_do(a, do_finish, "done"), WQ_OK);
    expect_states(b, "k", 0);
}

/* By how much sleeps of this process took longer than they should, at most. */
static int64_t
watch_delays_until(int64_t end_ns)
{
    int64_t longest = 0;

    while (now_ns() < end_ns) {
        const int64_t began = now_ns();
        sleep_ms(20);
        const int64_t delay = now_ns() - began - WQ_MS(20);
        longest = delay > longest ? delay : longest;
    }
    return longest;
}

/* A machine on which the renewing thread does not run for a lease loses it: that
 * is allowed, so a failure tells how busy the machine was. */
TEST(lease_is_renewed_while_the_process_works)
{
    struct actor *a = holder("hold=lease&lease=3s", "k");
    struct actor *b = opener("hold=lease&lease=3s");
    const int64_t began = now_ns();

    actor_post(b, do_get_at, "4500");
    const int64_t delay = watch_delays_until(began + WQ_MS(4400));
    const int64_t got = actor_await(b);
    if (got >= 0)
        fail_msg("lost after %lld ms; longest delay of a sleep %lld ms; lost "
                 "calls %lld",
                 (long long)(got - began) / 1000000, (long long)delay / 1000000,
                 (long long)actor_do(a, do_lost_calls, ""));
    assert_err(actor_do(a, do_finish, "done"), WQ_OK);
}

TEST(key_with_a_lease_is_free_when_its_process_dies)
{
    struct actor *a = holder("hold=lease&lease=30s", "k");
    struct actor *b = opener("hold=lease&lease=30s");

    actor_signal(a, SIGKILL);
    expect_gets(b, "k");
}

/* ---- forks: S-09, S-16 --------------------------------------------------- */

/* Forks a child that only sleeps; returns its process id. */
static int64_t
do_fork(const char *arg)
{
    const pid_t child = fork();

    (void)arg;
    if (child == 0) {
        sleep_ms(ACTOR_LIMIT_S * 1000L);
        _exit(0);
    }
    return child;
}

TEST(child_of_a_killed_holder_does_not_keep_its_key)
{
    struct actor *a = holder("", "k");
    struct actor *b = opener("");
    const pid_t   child = (pid_t)actor_do(a, do_fork, "");

    assert_true(child > 0);
    actor_post(b, do_get_at, "10000");
    sleep_ms(50);
    actor_signal(a, SIGKILL);
    const int64_t killed = now_ns(), got = actor_await(b);
    (void)kill(child, SIGKILL);
    assert_true(got >= 0);
    assert_true(got - killed < KNOWN_WITHIN);
}

/* The number of the first call that the child may make; 0: none. */
static int
try_all(void)
{
    wq_item     *other;
    wq_stats     s = {.size = sizeof s};
    const wq_err all[] = {
        wq_add_str(queue, "x"),    wq_get_within(queue, 0, &other),
        wq_done(queue, item),      wq_finish(queue, item, wq_result_back()),
        wq_remove_str(queue, "k"), wq_forget_str(queue, "k"),
        wq_revive_str(queue, "k"), wq_renew(queue),
        wq_read_stats(queue, &s),
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] != WQ_ESTATE)
            return (int)i + 1;
    return 0;
}

static int64_t
do_fork_and_try(const char *destroy)
{
    const pid_t child = fork();
    int         status = -1;

    if (child == 0) {
        (void)alarm(10);
        const int refused = try_all();
        if (*destroy)
            wq_destroy(queue);
        _exit(refused);
    }
    MUST(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(verbs_of_a_forked_child_are_refused)
{
    struct actor *a = holder("", "k");
    struct actor *b = opener("");

    assert_int_equal(actor_do(a, do_fork_and_try, ""), 0);
    assert_int_equal(actor_do(a, do_fork_and_try, "destroy"), 0);
    assert_err(actor_do(b, do_get, "1200"), WQ_ETIMEDOUT);
    expect_states(b, "k", WQ_STATE_HELD);
    assert_err(actor_do(a, do_finish, "done"), WQ_OK);
    assert_err(actor_do(a, do_add, "again"), WQ_OK);
    expect_gets(b, "again");
    expect_clean(b);
}

#define IN_PLACE(name) test_with(name, make_place, end_all)

WQ_TESTS(IN_PLACE(key_of_a_killed_process_goes_to_another),
         IN_PLACE(key_of_a_killed_process_is_found_by_the_next_open),
         IN_PLACE(killed_holder_of_a_dirty_key_loses_no_add),
         IN_PLACE(key_that_kills_its_processes_becomes_dead),
         IN_PLACE(keys_of_the_dead_keep_their_order_behind_others),
         IN_PLACE(success_between_deaths_keeps_a_key_alive),
         IN_PLACE(closing_a_holder_is_no_expiry),
         IN_PLACE(stopped_process_keeps_its_key),
         IN_PLACE(process_killed_while_stopped_loses_its_key),
         IN_PLACE(stopped_process_loses_its_lease_and_cannot_say_done),
         IN_PLACE(stopped_process_loses_its_lease_and_cannot_retry),
         IN_PLACE(stopped_process_loses_its_lease_and_cannot_bury),
         IN_PLACE(store_refuses_a_finish_after_the_lease),
         IN_PLACE(lost_holder_that_gets_its_key_again_has_a_new_fence),
         IN_PLACE(lease_is_renewed_while_the_process_works),
         IN_PLACE(key_with_a_lease_is_free_when_its_process_dies),
         IN_PLACE(child_of_a_killed_holder_does_not_keep_its_key),
         IN_PLACE(verbs_of_a_forked_child_are_refused));
