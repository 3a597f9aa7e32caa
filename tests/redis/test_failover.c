/* SPDX-License-Identifier: MIT */
/* test_failover.c: what if a replica becomes the primary? (S-20)
 *
 * By hand: the primary is killed, the replica is promoted, and its socket takes
 * the place of the primary's, as an address does that moves. Replication is
 * asynchronous: what the replica had not read is lost.
 */
#include "redis/served.h"

#include <stdlib.h>

static struct redis_server replica;

static int
set_up_pair(void **state)
{
    char        port[16];
    const char *primary_args[] = {
        "--port", port, "--bind", "127.0.0.1", "--repl-diskless-sync-delay",
        "0",      NULL};
    const char *replica_args[] = {"--replicaof", "127.0.0.1", port, NULL};

    (void)state;
    need_server();
    (void)snprintf(port, sizeof port, "%u", redis_server_free_port());
    redis_server_start(&f.server, primary_args);
    redis_server_start(&replica, replica_args);
    f.a = open_at(f.server.socket, "q", LEASE, NULL);
    f.b = open_at(f.server.socket, "q", LEASE, NULL);
    return 0;
}

static int
tear_down_pair(void **state)
{
    (void)tear_down(state);
    redis_server_stop(&replica);
    return 0;
}

/* A number of INFO; -1: it is not there. */
static long long
number_of(const struct redis_server *s, const char *name)
{
    const char *at = strstr(redis_server_say(s, "INFO replication"), name);

    return at ? atoll(at + strlen(name)) : -1;
}

/* The replica has read all that was written until now. */
static void
catch_up(void)
{
    for (int i = 0; i < 60000; i++) {
        const bool linked =
            strstr(redis_server_say(&replica, "INFO replication"),
                   "master_link_status:up");
        const long long all = number_of(&f.server, "master_repl_offset:");
        if (linked && number_of(&replica, "slave_repl_offset:") >= all)
            return;
        (void)poll(NULL, 0, 1);
    }
    fail_msg("the replica does not catch up");
}

static void
fail_over(void)
{
    redis_server_kill(&f.server);
    assert_int_equal(rename(replica.socket, f.server.socket), 0);
    (void)snprintf(replica.socket, sizeof replica.socket, "%s",
                   f.server.socket);
    assert_string_equal(redis_server_say(&replica, "REPLICAOF NO ONE"), "OK");
}

TEST(promoted_replica_goes_on_where_the_primary_was)
{
    (void)state;
    assert_err(wq_add(f.a, wq_str("held")), WQ_OK);
    assert_err(wq_add(f.a, wq_str("ready")), WQ_OK);
    wq_item       *item = take_key(f.a, "held");
    const uint64_t fence = item->fence;
    catch_up();
    fail_over();
    assert_err(add_until_answered(f.a, "later"), WQ_OK);
    assert_err(wq_renew(f.a), WQ_OK);
    assert_err(wq_done(f.a, item), WQ_OK);
    wq_item *next = take_key(f.b, "ready");
    assert_true(next->fence > fence);
    assert_err(wq_done(f.b, next), WQ_OK);
    check(f.b);
}

/* The replica does not know of the hold: for it, the key is READY. */
TEST(hold_that_was_not_replicated_is_lost_and_fences_grow)
{
    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    catch_up();
    assert_string_equal(redis_server_say(&replica, "REPLICAOF NO ONE"), "OK");
    wq_item       *item = take_key(f.a, "k");
    const uint64_t fence = item->fence;
    fail_over();
    assert_err(add_until_answered(f.b, "k"), WQ_OK);
    wq_item *again = take_key(f.b, "k");
    assert_true(again->fence > fence);
    /* the handle is certain of its hold: only the server knows better */
    assert_true(wq_hold_left(f.a, item) > 0);
    assert_err(wq_done(f.a, item), WQ_ELOST);
    assert_int_equal(stats_of(f.b).held, 1);
    assert_err(wq_done(f.b, again), WQ_OK);
    assert_int_equal(stats_of(f.b).known, 0);
    check(f.b);
}

#define with_pair(name)                                                        \
    cmocka_unit_test_setup_teardown(name, set_up_pair, tear_down_pair)

WQ_TESTS(with_pair(promoted_replica_goes_on_where_the_primary_was),
         with_pair(hold_that_was_not_replicated_is_lost_and_fences_grow));
