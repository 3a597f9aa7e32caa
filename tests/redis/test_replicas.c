/* SPDX-License-Identifier: MIT */
/* test_replicas.c: is what a call promised in the replica, too? (S-22)
 *
 * A server and its replica. The link between them is cut by sending the replica
 * to a primary that does not exist: it keeps what it has.
 */
#include "redis/fixture.h"

#include <signal.h>

#define LEASE WQ_SECONDS(60)

static struct {
    struct redis_server primary, replica;
    char                port[16]; /* of the primary */
    wq_queue           *q;
} f;

static wq_queue *
open_confirmed(const char *socket, int64_t replicas_timeout_ns)
{
    wq_queue *q = NULL;

    assert_err(
        wq_redis_open(
            url_of(socket, "q"),
            WQ_REDIS_OPTIONS(.lease_ns = LEASE, .timeout_ns = WQ_SECONDS(30),
                             .manual_renew = true, .replicas = 1,
                             .replicas_timeout_ns = replicas_timeout_ns),
            NULL, &q),
        WQ_OK);
    return q;
}

static void
cut_link(void)
{
    tell(&f.replica, "REPLICAOF 127.0.0.1 1");
    redis_server_await(&f.primary, "INFO replication", "connected_slaves:0");
}

static void
join_link(void)
{
    redis_server_follow(&f.replica, &f.primary, f.port);
}

static int
set_up(void **state)
{
    (void)state;
    need_server();
    redis_server_start_tcp(&f.primary, f.port, NULL);
    redis_server_start(&f.replica, NULL);
    join_link();
    f.q = open_confirmed(f.primary.socket, WQ_MS(100));
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    wq_destroy(f.q);
    redis_server_stop(&f.primary);
    redis_server_stop(&f.replica);
    return 0;
}

/* The primary dies, and the replica takes its place. */
static wq_queue *
fail_over(void)
{
    redis_server_kill(&f.primary);
    tell(&f.replica, "REPLICAOF NO ONE");
    return open_at(f.replica.socket, "q", LEASE, NULL);
}

/* A busy machine may take longer than the time that replicas have: so what must
 * be confirmed is repeated. */
static wq_item *
take_in_the_end(const char *key)
{
    wq_item *item = NULL;
    wq_err   err = WQ_EIO;

    for (int i = 0; err == WQ_EIO && i < 300; i++)
        err = wq_get_within(f.q, 0, &item);
    assert_err(err, WQ_OK);
    assert_memory_equal(item->key.data, key, strlen(key));
    return item;
}

static void
finish_in_the_end(wq_item *item, wq_result result)
{
    wq_err err = WQ_EIO;

    for (int i = 0; err == WQ_EIO && i < 300; i++)
        err = wq_finish(f.q, item, result);
    assert_err(err, WQ_OK);
}

enum { KEYS = 24, CUT = 20 };

/* Add keys, the last ones without a link; which of them were acknowledged? */
static void
add_keys(wq_queue *q, bool acknowledged[KEYS])
{
    char key[16];

    for (int i = 0; i < KEYS; i++) {
        if (i == CUT)
            cut_link();
        (void)snprintf(key, sizeof key, "key-%d", i);
        acknowledged[i] = (i < CUT ? add_in_the_end(q, key)
                                   : wq_add(q, wq_str(key))) == WQ_OK;
    }
}

/* How many keys that were acknowledged does the queue not know? */
static int
count_lost(wq_queue *q, const bool acknowledged[KEYS])
{
    int  lost = 0;
    char key[16];

    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(key, sizeof key, "key-%d", i);
        lost += acknowledged[i] && !info_of(q, key).states;
    }
    return lost;
}

TEST(acknowledged_add_survives_the_primary)
{
    bool acknowledged[KEYS];

    (void)state;
    add_keys(f.q, acknowledged);
    assert_true(acknowledged[CUT - 1]);
    wq_queue *after = fail_over();
    assert_int_equal(count_lost(after, acknowledged), 0);
    assert_int_equal(stats_of(after).ready, CUT);
    check(after);
    wq_destroy(after);
}

/* That the test above can fail. */
TEST(acknowledged_add_without_replicas_can_be_lost)
{
    bool acknowledged[KEYS];

    (void)state;
    wq_queue *q = open_at(f.primary.socket, "q", LEASE, NULL);
    add_keys(q, acknowledged);
    wq_queue *after = fail_over();
    assert_true(count_lost(after, acknowledged) >= KEYS - CUT);
    wq_destroy(after);
    wq_destroy(q);
}

TEST(add_that_a_stopped_replica_lacks_can_be_repeated)
{
    (void)state;
    assert_int_equal(kill(f.replica.pid, SIGSTOP), 0);
    assert_err(wq_add(f.q, wq_str("k")), WQ_EIO);
    last_error_has("0 of 1 replicas");
    assert_int_equal(kill(f.replica.pid, SIGCONT), 0);
    wq_queue *patient = open_confirmed(f.primary.socket, WQ_SECONDS(20));
    assert_err(wq_add(patient, wq_str("k")), WQ_OK);
    wq_destroy(patient);
    wq_queue *after = fail_over();
    assert_err(wq_done(after, take_key(after, "k")), WQ_OK);
    wq_destroy(after);
}

/* It promises what another handle has written. */
TEST(add_that_only_merges_is_confirmed)
{
    (void)state;
    wq_queue *hasty = open_at(f.primary.socket, "q", LEASE, NULL);
    cut_link();
    assert_err(wq_add(hasty, wq_str("k")), WQ_OK);
    assert_err(wq_add_after(hasty, wq_str("waits"), WQ_SECONDS(100)), WQ_OK);
    assert_err(wq_add(f.q, wq_str("k")), WQ_EIO);
    assert_err(wq_add_after(f.q, wq_str("waits"), WQ_SECONDS(200)), WQ_EIO);
    join_link();
    assert_err(add_in_the_end(f.q, "k"), WQ_OK);
    wq_destroy(hasty);
}

/* Else it would be HELD in one server and READY in the next. */
TEST(key_whose_get_is_not_confirmed_is_given_back)
{
    wq_item *item = NULL;

    (void)state;
    assert_err(add_in_the_end(f.q, "k"), WQ_OK);
    cut_link();
    assert_err(wq_get_within(f.q, 0, &item), WQ_EIO);
    assert_int_equal(stats_of(f.q).held, 0);
    join_link();
    finish_in_the_end(take_in_the_end("k"), wq_result_done());
    get_nothing(f.q); /* nothing is promised: nothing to confirm */
    cut_link();
    get_nothing(f.q);
    check(f.q);
}

/* The next primary would not know of it. */
TEST(renewal_that_is_not_confirmed_does_not_count)
{
    (void)state;
    assert_err(add_in_the_end(f.q, "k"), WQ_OK);
    wq_item *item = take_in_the_end("k");
    cut_link();
    const int64_t left_ns = wq_hold_left(f.q, item);
    assert_err(wq_renew(f.q), WQ_EIO);
    assert_true(wq_hold_left(f.q, item) <= left_ns);
    join_link();
    finish_in_the_end(item, wq_result_done());
}

/* However long calls may wait for replicas. */
TEST(renewal_that_is_not_confirmed_leaves_time_for_another_one)
{
    const int64_t lease_ns = WQ_SECONDS(6), long_ns = WQ_SECONDS(20);
    wq_queue     *q = NULL;

    (void)state;
    assert_err(
        wq_redis_open(url_of(f.primary.socket, "q"),
                      WQ_REDIS_OPTIONS(.lease_ns = lease_ns,
                                       .timeout_ns = 2 * long_ns, .replicas = 1,
                                       .replicas_timeout_ns = long_ns,
                                       .manual_renew = true),
                      NULL, &q),
        WQ_OK);
    cut_link();
    const int64_t begin_ns = now_ns();
    assert_err(wq_renew(q), WQ_EIO);
    assert_true(now_ns() - begin_ns < lease_ns);
    wq_destroy(q);
}

TEST(hold_that_is_taken_over_is_confirmed)
{
    wq_item *item = NULL;

    (void)state;
    wq_queue *holder = open_at(f.primary.socket, "q", LEASE, NULL);
    assert_err(wq_add(holder, wq_str("k")), WQ_OK);
    (void)take_key(holder, "k");
    cut_link();
    assert_err(
        wq_redis_take_over(f.q, wq_redis_session(holder), wq_str("k"), &item),
        WQ_EIO);
    assert_int_equal(stats_of(f.q).held, 0); /* given back */
    check(f.q);
    wq_destroy(holder);
}

TEST(finish_that_is_not_confirmed_can_be_repeated)
{
    (void)state;
    assert_err(add_in_the_end(f.q, "done"), WQ_OK);
    wq_item *done = take_in_the_end("done");
    assert_err(add_in_the_end(f.q, "retried"), WQ_OK);
    wq_item *retried = take_in_the_end("retried");
    cut_link();
    assert_err(wq_done(f.q, done), WQ_EIO);
    assert_err(wq_finish(f.q, retried, wq_result_retry()), WQ_EIO);
    assert_err(wq_done(f.q, done), WQ_EIO); /* it is not better yet */
    join_link();
    finish_in_the_end(done, wq_result_drop());
    finish_in_the_end(retried, wq_result_retry());
    assert_int_equal(wq_num_requeues(f.q, wq_str("retried")), 1);
    assert_int_equal(stats_of(f.q).held, 0);
    check(f.q);
}

/* A key could not be finished, and no memory be freed, otherwise. */
TEST(full_server_with_replicas_lets_keys_be_finished)
{
    (void)state;
    assert_err(add_in_the_end(f.q, "k"), WQ_OK);
    wq_item *item = take_in_the_end("k");
    assert_err(add_in_the_end(f.q, "next"), WQ_OK);
    tell(&f.primary, "CONFIG SET maxmemory 1");
    assert_err(wq_add(f.q, wq_str("new")), WQ_EAWAY);
    assert_err(wq_add(f.q, wq_str("next")), WQ_EIO);
    last_error_has("does not wait for replicas: OOM");
    finish_in_the_end(item, wq_result_done());
    finish_in_the_end(take_in_the_end("next"), wq_result_done());
}

static void
keep_warning(void *ctx, const char *text)
{
    if (strstr(text, "replicas"))
        (void)snprintf(ctx, 400, "%s", text);
}

TEST(server_with_too_few_replicas_is_warned_of)
{
    wq_queue *q = NULL;
    char      text[400] = "";

    (void)state;
    const wq_redis_options *o =
        WQ_REDIS_OPTIONS(.replicas = 2, .on_warning = keep_warning,
                         .warning_ctx = text);
    assert_err(wq_redis_open(url_of(f.primary.socket, "q"), o, NULL, &q),
               WQ_OK);
    wq_destroy(q);
    assert_non_null(
        strstr(text, "has 1 replicas that are online, and replicas=2"));
}

TEST(user_who_may_not_wait_is_told)
{
    wq_queue *q = NULL;
    char      url[400];

    (void)state;
    tell(&f.primary, "ACL SETUSER agent on nopass ~* &* +@all -wait");
    (void)snprintf(url, sizeof url,
                   "redis+unix://agent:x@%s?replicas=1&replicas_timeout=20ms",
                   f.primary.socket);
    assert_err(wq_open_redis(url, NULL, &q), WQ_OK);
    assert_err(wq_add(q, wq_str("k")), WQ_EIO);
    last_error_has("does not wait for replicas: NOPERM");
    wq_destroy(q);
}

#define with_replica(name)                                                     \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)

WQ_TESTS(
    with_replica(acknowledged_add_survives_the_primary),
    with_replica(acknowledged_add_without_replicas_can_be_lost),
    with_replica(add_that_a_stopped_replica_lacks_can_be_repeated),
    with_replica(add_that_only_merges_is_confirmed),
    with_replica(key_whose_get_is_not_confirmed_is_given_back),
    with_replica(renewal_that_is_not_confirmed_does_not_count),
    with_replica(renewal_that_is_not_confirmed_leaves_time_for_another_one),
    with_replica(hold_that_is_taken_over_is_confirmed),
    with_replica(finish_that_is_not_confirmed_can_be_repeated),
    with_replica(full_server_with_replicas_lets_keys_be_finished),
    with_replica(server_with_too_few_replicas_is_warned_of),
    with_replica(user_who_may_not_wait_is_told));
