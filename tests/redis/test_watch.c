/* SPDX-License-Identifier: MIT */
/* test_watch.c: does a program that sleeps on wq_fd() learn what it must?
 *
 * Handle a is the one that sleeps; b changes the queue. Each test has a server
 * of its own.
 */
#include "redis/served.h"

enum { LONG_MS = 30000 }; /* far more than a slow machine needs */

static int fd; /* of handle a */

static int
set_up_watched(void **state)
{
    (void)set_up(state);
    fd = wq_fd(f.a);
    assert_true(fd >= 0);
    get_nothing(f.a);
    return 0;
}

/* Sleep as an event loop does. */
static void
sleep_on_descriptor(void)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    assert_int_equal(poll(&p, 1, LONG_MS), 1);
}

static void
sleep_until_key(void)
{
    wq_item *item = NULL;
    wq_err   err;

    do {
        sleep_on_descriptor();
        err = wq_get_within(f.a, 0, &item);
        assert_true(err == WQ_OK || err == WQ_ETIMEDOUT || err == WQ_EAWAY);
    } while (err);
    assert_err(wq_done(f.a, item), WQ_OK);
}

TEST(idle_descriptor_is_readable_at_most_twice_a_second)
{
    enum { LOOKS = 3 };
    const int64_t begin_ns = now_ns();

    (void)state;
    for (int i = 0; i < LOOKS; i++) {
        sleep_on_descriptor();
        get_nothing(f.a);
    }
    assert_true(now_ns() - begin_ns >= LOOKS * WQ_MS(500));
}

/* The token went to a process that was killed: nobody wakes this one. */
TEST(key_whose_wake_up_was_lost_is_found)
{
    char words[120];

    (void)state;
    (void)snprintf(words, sizeof words, "DEL %s", name_of("q", "k", "idle"));
    assert_string_equal(redis_server_say(&f.server, words), "1");
    assert_err(wq_add(f.b, wq_str("k")), WQ_OK);
    sleep_until_key();
}

TEST(server_that_was_away_while_idle_is_found_again)
{
    wq_item *item = NULL;

    (void)state;
    redis_server_kill(&f.server);
    sleep_on_descriptor(); /* the connection broke */
    assert_err(wq_get_within(f.a, 0, &item), WQ_EAWAY);
    redis_server_restart(&f.server, aof);
    wq_queue *late = open_at(f.server.socket, "q", LEASE, NULL);
    assert_err(wq_add(late, wq_str("k")), WQ_OK);
    sleep_until_key();
    wq_destroy(late);
}

/* The sessions that sleep are those that live. */
TEST(new_session_of_a_watched_handle_counts_as_asleep)
{
    char idle[100], words[250];

    (void)state;
    assert_string_equal(redis_server_say(&f.server, "FLUSHALL"), "OK");
    get_nothing(f.a);
    (void)snprintf(idle, sizeof idle, "%s", name_of("q", "k", "idle"));
    (void)snprintf(words, sizeof words, "ZCARD %s", idle);
    assert_string_equal(redis_server_say(&f.server, words), "1");
    (void)snprintf(words, sizeof words, "ZINTERCARD 2 %s %s", idle,
                   name_of("q", "k", "sess"));
    assert_string_equal(redis_server_say(&f.server, words), "1");
}

#define watched(name)                                                          \
    cmocka_unit_test_setup_teardown(name, set_up_watched, tear_down)

WQ_TESTS(watched(idle_descriptor_is_readable_at_most_twice_a_second),
         watched(key_whose_wake_up_was_lost_is_found),
         watched(server_that_was_away_while_idle_is_found_again),
         watched(new_session_of_a_watched_handle_counts_as_asleep));
