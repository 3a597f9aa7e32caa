/* SPDX-License-Identifier: MIT */
/* test_lease.c: what if a handle does not renew its lease in time? (S-03, S-20)
 *
 * Two handles of one queue, on a fake clock: the server is told the time.
 */
#include "redis/fixture.h"

#include <poll.h>
#include <pthread.h>

#define LEASE WQ_SECONDS(30)

static struct {
    wq_clock *clock;
    wq_queue *a, *b;
    unsigned  number; /* of the queue */
} f;

static wq_queue *
open_number(unsigned number)
{
    char name[32];

    (void)snprintf(name, sizeof name, "lease%u", number);
    return open_at(redis_server_of_process()->socket, name, LEASE, f.clock);
}

static int
set_up(void **state)
{
    (void)state;
    need_server();
    f.clock = wq_clock_fake_create(WQ_SECONDS(1000));
    f.a = open_number(f.number);
    f.b = open_number(f.number++);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    check(f.b);
    wq_destroy(f.a);
    wq_destroy(f.b);
    wq_clock_destroy(f.clock);
    return 0;
}

/* Time passes; only b renews. */
static void
outlive(void)
{
    wq_clock_fake_step(f.clock, LEASE / 2);
    assert_err(wq_renew(f.b), WQ_OK);
    wq_clock_fake_step(f.clock, LEASE / 2);
}

TEST(finish_after_the_lease_is_lost_and_changes_nothing)
{
    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    wq_item       *old = take_key(f.a, "k");
    const uint64_t fence = old->fence;
    outlive();
    wq_item *item = take_key(f.b, "k");
    assert_true(item->fence > fence);

    assert_err(wq_finish(f.a, old, wq_result_retry()), WQ_ELOST);
    assert_int_equal(wq_num_requeues(f.b, wq_str("k")), 0);
    wq_stats stats = stats_of(f.b);
    assert_int_equal(stats.held, 1);
    assert_int_equal(stats.waiting, 0);
    assert_err(wq_finish(f.b, item, wq_result_done()), WQ_OK);
    assert_int_equal(stats_of(f.b).known, 0);
}

/* The server compares fences: the client's own watch is not what saves the key. */
TEST(renewal_after_the_lease_does_not_revive_the_session)
{
    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    wq_item *old = take_key(f.a, "k");
    outlive();
    assert_err(wq_renew(f.a), WQ_ELOST);
    assert_int_equal(wq_hold_left(f.a, old), 0);
    wq_item *item = take_key(f.b, "k");
    assert_err(wq_renew(f.a), WQ_ELOST);
    assert_err(wq_done(f.a, old), WQ_ELOST);
    assert_err(wq_done(f.b, item), WQ_OK);
}

TEST(handle_whose_lease_ended_goes_on_with_a_new_session)
{
    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    wq_item *old = take_key(f.a, "k");
    outlive();
    assert_err(wq_add(f.a, wq_str("other")), WQ_OK);
    assert_err(wq_done(f.a, old), WQ_ELOST);
    assert_err(wq_renew(f.a), WQ_OK);
    for (int i = 0; i < 2; i++) {
        wq_item *item = NULL;
        assert_err(wq_get_within(f.a, 0, &item), WQ_OK);
        assert_true(wq_hold_left(f.a, item) > 0);
        assert_err(wq_done(f.a, item), WQ_OK);
    }
    assert_int_equal(stats_of(f.a).lost, 1);
}

TEST(renewed_lease_keeps_its_keys)
{
    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    wq_item *item = take_key(f.a, "k");
    for (int i = 0; i < 4; i++) {
        wq_clock_fake_step(f.clock, LEASE / 2);
        assert_err(wq_renew(f.a), WQ_OK);
        assert_err(wq_renew(f.b), WQ_OK);
        get_nothing(f.b);
    }
    assert_err(wq_done(f.a, item), WQ_OK);
}

TEST(lease_ends_exactly_at_its_end)
{
    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    (void)take_key(f.a, "k");
    wq_clock_fake_step(f.clock, LEASE / 2);
    assert_err(wq_renew(f.b), WQ_OK);
    wq_clock_fake_step(f.clock, LEASE / 2 - 1000); /* scores: microseconds */
    get_nothing(f.b);
    wq_clock_fake_step(f.clock, 1000);
    assert_err(wq_done(f.b, take_key(f.b, "k")), WQ_OK);
}

/* Keys come back in the order in which they were handed out, behind others. These
 * are in one partition of three. */
TEST(keys_of_an_ended_session_come_back_in_order)
{
    (void)state;
    static const char *const keys[] = {"e", "b", "d"};
    for (int i = 0; i < 3; i++)
        assert_err(wq_add(f.a, wq_str(keys[i])), WQ_OK);
    for (int i = 0; i < 3; i++)
        (void)take_key(f.a, keys[i]);
    assert_err(wq_add(f.b, wq_str("z")), WQ_OK);
    outlive();
    assert_err(wq_done(f.b, take_key(f.b, "z")), WQ_OK);
    for (int i = 0; i < 3; i++)
        assert_err(wq_done(f.b, take_key(f.b, keys[i])), WQ_OK);
    assert_int_equal(stats_of(f.b).expired, 3);
}

/* A hundred times more than one step of the give-back. */
TEST(many_keys_of_an_ended_session_come_back)
{
    enum { MANY = 600 };
    wq_item *items[MANY];
    size_t   n = 0;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "k%d", i);
        assert_err(wq_add(f.a, wq_str(key)), WQ_OK);
    }
    assert_err(wq_get_many(f.a, items, MANY, 0, &n), WQ_OK);
    assert_int_equal(n, MANY);
    outlive();
    size_t back = 0;
    while (back < MANY) {
        assert_err(wq_get_many(f.b, items, MANY, 0, &n), WQ_OK);
        assert_err(wq_done_many(f.b, items, n), WQ_OK);
        back += n;
    }
    get_nothing(f.b);
}

TEST(look_comes_after_the_end_of_all_sessions)
{
    enum { HANDLES = 4 };
    wq_queue *q[HANDLES];

    (void)state;
    for (int i = 0; i < HANDLES; i++) {
        char key[16];

        (void)snprintf(key, sizeof key, "k%d", i);
        q[i] = open_number(f.number - 1);
        assert_err(wq_add(q[i], wq_str(key)), WQ_OK);
        (void)take_key(q[i], key);
    }
    outlive();
    const wq_stats stats = stats_of(f.b);
    assert_int_equal(stats.held, 0);
    assert_int_equal(stats.ready, HANDLES);
    for (int i = 0; i < HANDLES; i++)
        wq_destroy(q[i]);
}

TEST(key_that_outlives_its_holders_is_dead)
{
    wq_key_info info = {.size = sizeof info};

    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    (void)take_key(f.a, "k");
    outlive();
    assert_err(wq_renew(f.b), WQ_OK);
    wq_item *item = take_key(f.b, "k");
    assert_err(wq_renew(f.a), WQ_ELOST);
    get_nothing(f.a); /* a new session */
    wq_clock_fake_step(f.clock, LEASE / 2);
    assert_err(wq_renew(f.a), WQ_OK);
    wq_clock_fake_step(f.clock, LEASE / 2);
    get_nothing(f.a); /* max_expiries is 2 */
    assert_err(wq_read_key(f.a, wq_str("k"), &info), WQ_OK);
    assert_int_equal(info.states, WQ_STATE_DEAD);
    assert_err(wq_done(f.b, item), WQ_ELOST);
    assert_err(wq_revive(f.a, wq_str("k")), WQ_OK);
    assert_err(wq_done(f.a, take_key(f.a, "k")), WQ_OK);
}

TEST(destroyed_handle_gives_its_keys_back_without_an_expiry)
{
    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    (void)take_key(f.a, "k");
    wq_destroy(f.a);
    f.a = NULL;
    assert_err(wq_done(f.b, take_key(f.b, "k")), WQ_OK);
    assert_int_equal(stats_of(f.b).expired, 0);
}

/* ---- taking over ---------------------------------------------------------- */

TEST(hold_that_is_taken_over_is_lost_for_its_first_holder)
{
    wq_item *item = NULL;

    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    wq_item       *old = take_key(f.a, "k");
    const uint64_t fence = old->fence;
    assert_err(
        wq_redis_take_over(f.b, wq_redis_session(f.a), wq_str("k"), &item),
        WQ_OK);
    assert_true(item->fence == fence);
    assert_int_equal(info_of(f.b, "k").states, WQ_STATE_HELD);
    assert_err(wq_finish(f.a, old, wq_result_retry()), WQ_ELOST);
    wq_destroy(f.a); /* gives back what it holds: not this key */
    f.a = NULL;
    get_nothing(f.b);
    assert_err(wq_finish(f.b, item, wq_result_done()), WQ_OK);
    assert_int_equal(stats_of(f.b).known, 0);
}

TEST(only_a_hold_of_that_session_is_taken_over)
{
    wq_item *item = NULL;

    (void)state;
    assert_true(wq_redis_session(f.a) != wq_redis_session(f.b));
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    assert_err(
        wq_redis_take_over(f.b, wq_redis_session(f.a), wq_str("k"), &item),
        WQ_ENOTFOUND); /* READY */
    wq_item *held = take_key(f.a, "k");
    assert_err(wq_redis_take_over(f.b, 12345, wq_str("k"), &item),
               WQ_ENOTFOUND);
    last_error_has("that session does not hold the key");
    assert_err(wq_redis_take_over(f.b, 0, wq_str("k"), &item), WQ_EINVAL);
    assert_err(
        wq_redis_take_over(f.a, wq_redis_session(f.a), wq_str("k"), &item),
        WQ_ESTATE);
    assert_err(wq_done(f.a, held), WQ_OK);
}

/* A session that has ended holds nothing, also if nobody has noticed. */
TEST(hold_of_an_ended_session_is_not_taken_over)
{
    wq_item *item = NULL;

    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    (void)take_key(f.a, "k");
    const uint64_t session = wq_redis_session(f.a);
    outlive();
    assert_err(wq_redis_take_over(f.b, session, wq_str("k"), &item),
               WQ_ENOTFOUND);
    assert_err(wq_done(f.b, take_key(f.b, "k")), WQ_OK);
}

/* ---- sleeping ------------------------------------------------------------- */

/* Until a set of the queue has so many members; nobody else looks meanwhile. */
static void
await_members(const char *set, const char *number)
{
    char words[120], queue[32];

    (void)snprintf(queue, sizeof queue, "lease%u", f.number - 1);
    (void)snprintf(words, sizeof words, "ZCARD %s", name_of(queue, "k", set));
    redis_server_await(redis_server_of_process(), words, number);
}

static void *
wait_idle(void *q)
{
    return (void *)(size_t)wq_wait_idle(q, WQ_FOREVER);
}

/* It could not know when that session would end. */
TEST(sleeper_finds_the_end_of_a_session_that_began_later)
{
    pthread_t thread;
    void     *err = NULL;

    (void)state;
    wq_destroy(f.a);
    f.a = NULL;
    assert_err(wq_add(f.b, wq_str("k")), WQ_OK);
    assert_err(wq_add(f.b, wq_str("other")), WQ_OK);
    assert_int_equal(pthread_create(&thread, NULL, wait_idle, f.b), 0);
    await_members("idle", "1");
    f.a = open_number(f.number - 1);
    (void)take_key(f.a, "k");
    outlive();
    await_members("held", "1"); /* the guard */
    for (int i = 0; i < 2; i++) {
        wq_item *item = NULL;
        assert_err(wq_get_within(f.b, 0, &item), WQ_OK);
        assert_err(wq_done(f.b, item), WQ_OK);
    }
    assert_int_equal(pthread_join(thread, &err), 0);
    assert_err((wq_err)(size_t)err, WQ_OK);
}

#define with_handles(name)                                                     \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)

WQ_TESTS(with_handles(finish_after_the_lease_is_lost_and_changes_nothing),
         with_handles(renewal_after_the_lease_does_not_revive_the_session),
         with_handles(handle_whose_lease_ended_goes_on_with_a_new_session),
         with_handles(renewed_lease_keeps_its_keys),
         with_handles(lease_ends_exactly_at_its_end),
         with_handles(keys_of_an_ended_session_come_back_in_order),
         with_handles(many_keys_of_an_ended_session_come_back),
         with_handles(look_comes_after_the_end_of_all_sessions),
         with_handles(key_that_outlives_its_holders_is_dead),
         with_handles(destroyed_handle_gives_its_keys_back_without_an_expiry),
         with_handles(hold_that_is_taken_over_is_lost_for_its_first_holder),
         with_handles(only_a_hold_of_that_session_is_taken_over),
         with_handles(hold_of_an_ended_session_is_not_taken_over),
         with_handles(sleeper_finds_the_end_of_a_session_that_began_later));
