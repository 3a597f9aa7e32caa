/* SPDX-License-Identifier: MIT */
/* test_server.c: what if the server dies, forgets, or refuses? (S-20, S-21)
 *
 * Each test has a server of its own.
 */
#include "redis/served.h"

#include <stdlib.h>

#include <hiredis/hiredis.h>

/* ---- the server is gone --------------------------------------------------- */

TEST(killed_server_that_kept_all_goes_on_where_it_was)
{
    (void)state;
    assert_err(wq_add(f.a, wq_str("held")), WQ_OK);
    assert_err(wq_add(f.a, wq_str("ready")), WQ_OK);
    wq_item *item = take_key(f.a, "held");
    redis_server_kill(&f.server);
    redis_server_restart(&f.server, aof);
    assert_err(wq_done(f.a, item), WQ_OK);
    assert_err(wq_done(f.b, take_key(f.b, "ready")), WQ_OK);
    check(f.b);
}

TEST(call_while_the_server_is_away_changes_nothing)
{
    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    wq_item *item = take_key(f.a, "k");
    redis_server_kill(&f.server);
    assert_err(wq_add(f.a, wq_str("other")), WQ_EAWAY);
    last_error_has("cannot connect to '");
    assert_err(wq_done(f.a, item), WQ_EAWAY);
    wq_item *none = NULL;
    assert_err(wq_get_within(f.a, 0, &none), WQ_EAWAY);
    assert_err(wq_renew(f.a), WQ_EAWAY);

    redis_server_restart(&f.server, aof);
    assert_err(add_until_answered(f.a, "later"), WQ_OK);
    assert_err(wq_done(f.a, item), WQ_OK); /* it was on loan all the time */
    assert_err(wq_done(f.a, take_key(f.a, "later")), WQ_OK);
    get_nothing(f.a);
    check(f.a);
}

/* Another one lives, and its batches are usual. */
TEST(session_that_is_gone_is_noticed_by_its_next_batch)
{
    (void)state;
    (void)redis_server_say(&f.server, "DEL wq:{q}:sess");
    (void)redis_server_say(&f.server, "HDEL wq:{q}:meta calm");
    for (int i = 0; i < 2; i++) {
        assert_err(wq_add(f.b, wq_str("k")), WQ_OK);
        assert_err(wq_done(f.b, take_key(f.b, "k")), WQ_OK);
    }
    assert_string_equal(redis_server_say(&f.server, "HEXISTS wq:{q}:meta calm"),
                        "1");
    const uint64_t before = wq_redis_session(f.a);
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    assert_true(wq_redis_session(f.a) != before);
    check(f.b);
}

TEST(clock_before_its_zero_is_a_clock)
{
    wq_clock *clock = wq_clock_fake_create(-WQ_SECONDS(1000));

    (void)state;
    assert_non_null(clock);
    wq_queue *q = open_at(f.server.socket, "early", LEASE, clock);
    for (int i = 0; i < 3; i++) {
        assert_err(wq_add(q, wq_str("k")), WQ_OK);
        assert_err(wq_done(q, take_key(q, "k")), WQ_OK);
        wq_clock_fake_step(clock, WQ_SECONDS(1));
    }
    check(q);
    wq_destroy(q);
    wq_clock_destroy(clock);
}

TEST(empty_server_loses_all_holds_and_fences_grow)
{
    static const char *const nothing[] = {NULL};

    (void)state;
    for (int i = 0; i < 100; i++) { /* numbers are used up */
        assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
        assert_err(wq_done(f.a, take_key(f.a, "k")), WQ_OK);
    }
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    wq_item       *item = take_key(f.a, "k");
    const uint64_t fence = item->fence;
    (void)redis_server_say(&f.server, "FLUSHALL");
    redis_server_kill(&f.server);
    redis_server_restart(&f.server, nothing);
    assert_err(add_until_answered(f.b, "k"), WQ_OK);
    wq_item *again = take_key(f.b, "k");
    assert_true(again->fence > fence);
    assert_err(wq_done(f.a, item), WQ_ELOST);
    assert_err(wq_done(f.b, again), WQ_OK);
    check(f.a);
}

/* It was finished, but the server knows only what was on its disk: nobody would
 * finish it again for as long as the session lives. */
TEST(key_that_a_restarted_server_still_holds_is_given_back)
{
    (void)state;
    (void)redis_server_say(&f.server, "CONFIG SET appendonly no");
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    wq_item *item = take_key(f.a, "k");
    assert_string_equal(redis_server_say(&f.server, "SAVE"), "OK");
    assert_err(wq_done(f.a, item), WQ_OK);
    redis_server_kill(&f.server);
    redis_server_restart(&f.server, NULL);
    assert_int_equal(stats_of(f.b).held, 1);
    assert_int_equal(stats_of(f.a).held, 0);
    assert_err(wq_done(f.b, take_key(f.b, "k")), WQ_OK);
    check(f.b);
}

TEST(handle_knows_whether_its_server_answers)
{
    wq_queue       *memory = NULL;
    wq_redis_server s = server_of(f.a);

    (void)state;
    assert_true(s.reachable);
    assert_true(strncmp(s.version, "Redis ", 6) == 0 ||
                strncmp(s.version, "Valkey ", 7) == 0);
    assert_string_equal(s.role, "primary");
    assert_string_equal(s.name, f.server.socket);
    /* the server's time is an estimate, and gets better with each call */
    assert_true(s.lease_left_ns > 0 &&
                s.lease_left_ns <= LEASE + WQ_SECONDS(1));
    assert_int_equal(s.reconnects, 0);

    redis_server_kill(&f.server);
    assert_err(wq_add(f.a, wq_str("k")), WQ_EAWAY);
    assert_false(server_of(f.a).reachable);
    assert_true(server_of(f.b).reachable); /* it has not asked */
    assert_err(wq_renew(f.b), WQ_EAWAY);
    assert_false(server_of(f.b).reachable);
    redis_server_restart(&f.server, aof);
    assert_err(add_until_answered(f.a, "k"), WQ_OK);
    assert_true(server_of(f.a).reachable);
    assert_true(server_of(f.a).reconnects >= 1);

    assert_err(wq_create(NULL, &memory), WQ_OK);
    assert_err(wq_redis_read_server(memory, &s), WQ_EINVAL);
    last_error_has("not in a Redis server");
    wq_destroy(memory);
}

/* All connections stay; only the data is gone. */
TEST(flushed_server_loses_all_holds_and_fences_grow)
{
    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    wq_item       *item = take_key(f.a, "k");
    const uint64_t fence = item->fence;
    assert_string_equal(redis_server_say(&f.server, "FLUSHALL"), "OK");
    assert_err(wq_renew(f.a), WQ_ELOST);
    assert_int_equal(wq_hold_left(f.a, item), 0);
    assert_err(wq_add(f.b, wq_str("k")), WQ_OK);
    wq_item *again = take_key(f.b, "k");
    assert_true(again->fence > fence);
    assert_err(wq_done(f.a, item), WQ_ELOST);
    assert_err(wq_done(f.b, again), WQ_OK);
    check(f.a);
    assert_err(wq_renew(f.a), WQ_OK); /* the sessions are new ones */
    assert_err(wq_renew(f.b), WQ_OK);
}

/* ---- the server forgets, or refuses --------------------------------------- */

TEST(flushed_scripts_are_loaded_again)
{
    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    assert_string_equal(redis_server_say(&f.server, "SCRIPT FLUSH"), "OK");
    wq_item *item = take_key(f.a, "k");
    assert_string_equal(redis_server_say(&f.server, "SCRIPT FLUSH"), "OK");
    assert_err(wq_finish(f.a, item, wq_result_retry()), WQ_OK);
    assert_string_equal(redis_server_say(&f.server, "SCRIPT FLUSH"), "OK");
    assert_err(wq_renew(f.a), WQ_OK);
    check(f.a);
}

TEST(full_server_refuses_adds_and_lets_keys_be_finished)
{
    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    assert_err(wq_add(f.a, wq_str("next")), WQ_OK);
    wq_item *item = take_key(f.a, "k");
    assert_string_equal(redis_server_say(&f.server, "CONFIG SET maxmemory 1"),
                        "OK");
    assert_err(wq_add(f.a, wq_str("other")), WQ_EAWAY);
    last_error_has("out of memory (maxmemory)");
    assert_err(wq_add_after(f.a, wq_str("other"), WQ_SECONDS(100)), WQ_EAWAY);
    assert_err(wq_renew(f.a), WQ_OK); /* else all holds would be lost */
    assert_err(wq_finish(f.a, item, wq_result_back()), WQ_OK);
    assert_err(wq_done(f.a, take_key(f.a, "next")), WQ_OK);
    item = take_key(f.a, "k");
    assert_err(wq_done(f.a, item), WQ_OK);
    assert_string_equal(redis_server_say(&f.server, "CONFIG SET maxmemory 0"),
                        "OK");
    check(f.a);
    assert_int_equal(stats_of(f.a).known, 0);
}

/* Else nobody could get keys, which is what frees memory. */
TEST(full_server_lets_sessions_begin_and_end)
{
    (void)state;
    wq_queue *holder = open_at(f.server.socket, "q", WQ_MS(50), NULL);
    wq_item  *item = NULL;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    (void)take_key(holder, "k");
    assert_string_equal(redis_server_say(&f.server, "CONFIG SET maxmemory 1"),
                        "OK");
    wq_queue *late = open_at(f.server.socket, "q", LEASE, NULL);
    assert_err(wq_get_within(late, WQ_SECONDS(30), &item), WQ_OK);
    assert_int_equal(stats_of(late).expired, 1);
    assert_err(wq_done(late, item), WQ_OK);
    assert_string_equal(redis_server_say(&f.server, "CONFIG SET maxmemory 0"),
                        "OK");
    wq_destroy(late);
    wq_destroy(holder);
}

static long long
bytes_sent(void)
{
    static const char name[] = "total_net_output_bytes:";
    const char *at = strstr(redis_server_say(&f.server, "INFO stats"), name);

    assert_non_null(at);
    return atoll(at + strlen(name));
}

TEST(look_at_one_key_does_not_read_the_others)
{
    enum { KEYS = 2000 };
    static char   text[KEYS][16];
    static wq_key keys[KEYS];

    (void)state;
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(text[i], sizeof text[i], "key-%d", i);
        keys[i] = wq_str(text[i]);
    }
    assert_err(wq_add_with(f.a, NULL, keys, KEYS), WQ_OK);
    const long long before = bytes_sent();
    assert_int_equal(info_of(f.a, "key-7").states, WQ_STATE_READY);
    assert_int_equal(wq_num_requeues(f.a, wq_str("key-7")), 0);
    assert_true(bytes_sent() - before < 20000); /* INFO itself is some 3000 */
}

TEST(replica_refuses_with_what_to_do)
{
    wq_queue *q = NULL;

    (void)state;
    assert_err(wq_add(f.a, wq_str("merged")), WQ_OK);
    assert_string_equal(redis_server_say(&f.server, "REPLICAOF 127.0.0.1 1"),
                        "OK");
    assert_err(wq_add(f.a, wq_str("k")), WQ_EAWAY);
    last_error_has("read-only");
    /* the primary may have handed it out since */
    assert_err(wq_add(f.a, wq_str("merged")), WQ_EAWAY);
    assert_err(wq_add_with(f.a, WQ_ADD(.priority = -1),
                           (wq_key[]){wq_str("merged")}, 1),
               WQ_EAWAY);
    assert_err(wq_open_redis(url_of(f.server.socket, "q"), NULL, &q), WQ_EAWAY);
    last_error_has("connect to its primary, 127.0.0.1:1");
    assert_string_equal(redis_server_say(&f.server, "REPLICAOF NO ONE"), "OK");
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
}

TEST(server_that_evicts_keys_is_refused)
{
    wq_queue *q = NULL;

    (void)state;
    (void)redis_server_say(&f.server,
                           "CONFIG SET maxmemory-policy allkeys-lru");
    assert_err(wq_open_redis(url_of(f.server.socket, "q"), NULL, &q),
               WQ_EINVAL);
    last_error_has("'maxmemory-policy noeviction'");
    (void)redis_server_say(&f.server,
                           "CONFIG SET maxmemory-policy volatile-lru");
    assert_err(wq_open_redis(url_of(f.server.socket, "q"), NULL, &q), WQ_OK);
    wq_destroy(q);
}

/* Nothing can be done, now, by an open handle or a new one. */
static void
all_is_refused(wq_item *item, const char *words)
{
    wq_queue *q = NULL;

    assert_err(wq_add(f.a, wq_str("other")), WQ_EAWAY);
    last_error_has(words);
    assert_err(wq_done(f.a, item), WQ_EAWAY);
    assert_err(wq_renew(f.a), WQ_EAWAY);
    assert_err(wq_open_redis(url_of(f.server.socket, "q"), NULL, &q), WQ_EAWAY);
    last_error_has(words);
}

/* It answers while it loads, and nothing but that it loads. */
TEST(loading_server_is_away)
{
    static const char *const slow[] = {"--appendonly",
                                       "no",
                                       "--key-load-delay",
                                       "1000",
                                       "--loading-process-events-interval-"
                                       "bytes",
                                       "1024",
                                       NULL};

    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    wq_item *item = take_key(f.a, "k");
    (void)redis_server_say(&f.server, "DEBUG POPULATE 20000");
    assert_string_equal(redis_server_say(&f.server, "SAVE"), "OK");
    redis_server_kill(&f.server);
    redis_server_launch(&f.server, slow);
    redis_server_await(&f.server, "PING", "-LOADING");
    all_is_refused(item, "loading its data into memory");
    (void)redis_server_say(&f.server, "CONFIG SET key-load-delay 0");
    assert_true(redis_server_gets_ready(&f.server));
    assert_err(add_until_answered(f.a, "later"), WQ_OK);
    assert_err(wq_done(f.a, item), WQ_OK);
    assert_int_equal(stats_of(f.a).ready, 1);
    check(f.a);
}

/* A script of somebody else that does not end. */
TEST(busy_server_is_away)
{
    int done = 0;

    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    wq_item *item = take_key(f.a, "k");
    (void)redis_server_say(&f.server, "CONFIG SET busy-reply-threshold 1");
    redisContext *c = redisConnectUnix(f.server.socket);
    assert_non_null(c);
    (void)redisAppendCommand(c, "EVAL %s 0", "while true do end");
    while (!done)
        assert_int_equal(redisBufferWrite(c, &done), REDIS_OK);
    redis_server_await(&f.server, "PING", "-BUSY");
    all_is_refused(item, "running a script of another client");
    assert_string_equal(redis_server_say(&f.server, "SCRIPT KILL"), "OK");
    redis_server_await(&f.server, "PING", "PONG");
    assert_err(add_until_answered(f.a, "later"), WQ_OK);
    assert_err(wq_done(f.a, item), WQ_OK);
    redisFree(c);
    check(f.a);
}

/* A handle that loses its connection then does not believe that its URL is
 * wrong. The server may have hung up before its reason is read. */
TEST(server_with_too_many_clients_is_away)
{
    wq_queue *q = NULL;

    (void)state;
    assert_err(wq_add(f.a, wq_str("k")), WQ_OK);
    assert_string_equal(redis_server_say(&f.server, "CONFIG SET maxclients 1"),
                        "OK");
    assert_err(wq_open_redis(url_of(f.server.socket, "q"), NULL, &q), WQ_EAWAY);
}

static void
keep_warning(void *ctx, const char *text)
{
    (void)snprintf(ctx, 400, "%s", text);
}

TEST(server_without_a_log_is_warned_of)
{
    wq_queue *q = NULL;
    char      text[400] = "";

    (void)state;
    (void)redis_server_say(&f.server, "CONFIG SET appendonly no");
    assert_err(wq_redis_open(url_of(f.server.socket, "q"),
                             WQ_REDIS_OPTIONS(.on_warning = keep_warning,
                                              .warning_ctx = text),
                             NULL, &q),
               WQ_OK);
    wq_destroy(q);
    assert_non_null(strstr(text, "'appendonly yes'"));
}

TEST(password_is_asked_for_and_never_shown)
{
    wq_queue *q = NULL;
    char      url[400];

    (void)state;
    (void)redis_server_say(&f.server, "CONFIG SET requirepass s3cret");
    assert_err(wq_open_redis(url_of(f.server.socket, "q"), NULL, &q),
               WQ_EINVAL);
    last_error_has("password_file=PATH");
    (void)snprintf(url, sizeof url, "redis+unix://:wr0ng@%s", f.server.socket);
    assert_err(wq_open_redis(url, NULL, &q), WQ_EINVAL);
    last_error_has("refuses the user or the password");
    assert_null(strstr(wq_last_error(), "wr0ng"));
    (void)snprintf(url, sizeof url, "redis+unix://:s3cret@%s", f.server.socket);
    assert_err(wq_open_redis(url, NULL, &q), WQ_OK);
    wq_destroy(q);
}

WQ_TESTS(with_server(killed_server_that_kept_all_goes_on_where_it_was),
         with_server(call_while_the_server_is_away_changes_nothing),
         with_server(session_that_is_gone_is_noticed_by_its_next_batch),
         with_server(clock_before_its_zero_is_a_clock),
         with_server(empty_server_loses_all_holds_and_fences_grow),
         with_server(key_that_a_restarted_server_still_holds_is_given_back),
         with_server(handle_knows_whether_its_server_answers),
         with_server(flushed_server_loses_all_holds_and_fences_grow),
         with_server(flushed_scripts_are_loaded_again),
         with_server(full_server_refuses_adds_and_lets_keys_be_finished),
         with_server(full_server_lets_sessions_begin_and_end),
         with_server(look_at_one_key_does_not_read_the_others),
         with_server(replica_refuses_with_what_to_do),
         with_server(loading_server_is_away), with_server(busy_server_is_away),
         with_server(server_with_too_many_clients_is_away),
         with_server(server_that_evicts_keys_is_refused),
         with_server(server_without_a_log_is_warned_of),
         with_server(password_is_asked_for_and_never_shown));
