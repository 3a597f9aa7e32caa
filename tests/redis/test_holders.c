/* SPDX-License-Identifier: MIT */
/* test_holders.c: who holds a key, and who is connected, for people? (S-29) */
#define _GNU_SOURCE
#include "redis/served.h"

#include <string.h>
#include <unistd.h>

/* Handle a is that of "web1:7" from now on. */
static void
name_handle(void)
{
    wq_destroy(f.a);
    f.a = NULL;
    assert_err(
        wq_redis_open(url_of(f.server.socket, "q"),
                      WQ_REDIS_OPTIONS(.client = "web1:7", .lease_ns = LEASE,
                                       .manual_renew = true),
                      NULL, &f.a),
        WQ_OK);
}

static wq_item *
hold(wq_queue *q, const char *key)
{
    assert_err(wq_add_str(q, key), WQ_OK);
    return take_key(q, key);
}

static int
count_names(void)
{
    return atoi(redis_server_say(&f.server, "HLEN wq:{q}:who"));
}

static bool
compare_with_key_info(void *n, wq_key key, const wq_key_info *info)
{
    assert_string_equal(info->holder, info_of(f.b, key.data).holder);
    *(int *)n += strcmp(info->holder, "web1:7") == 0;
    return true;
}

TEST(holder_of_a_key_is_named)
{
    int n = 0;

    (void)state;
    name_handle();
    wq_item *item = hold(f.a, "k");
    assert_err(wq_add_str(f.a, "k"), WQ_OK); /* DIRTY, too */
    assert_err(wq_add_str(f.a, "other"), WQ_OK);
    assert_string_equal(info_of(f.b, "k").holder, "web1:7");
    assert_string_equal(info_of(f.b, "other").holder, "");
    assert_err(wq_each(f.b, 0, compare_with_key_info, &n), WQ_OK);
    assert_int_equal(n, 1);
    assert_err(wq_done(f.a, item), WQ_OK);
    assert_string_equal(info_of(f.b, "k").holder, "");
}

TEST(holders_of_several_keys_are_told_apart)
{
    (void)state;
    name_handle();
    wq_item *first = hold(f.a, "a"), *second = hold(f.b, "b"),
            *third = hold(f.a, "c");
    int n = 0;
    assert_err(wq_each(f.b, WQ_STATE_HELD, compare_with_key_info, &n), WQ_OK);
    assert_int_equal(n, 2);
    assert_err(wq_done(f.a, first), WQ_OK);
    assert_err(wq_done(f.b, second), WQ_OK);
    assert_err(wq_done(f.a, third), WQ_OK);
}

TEST(process_without_a_name_is_host_and_pid)
{
    char host[256] = "", name[300];

    (void)state;
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    (void)snprintf(name, sizeof name, "%.67s:%d", host, (int)getpid());
    wq_item *item = hold(f.a, "k");
    assert_string_equal(info_of(f.b, "k").holder, name);
    assert_err(wq_done(f.a, item), WQ_OK);
}

TEST(hold_that_was_taken_over_is_named_anew)
{
    wq_item *item = NULL;

    (void)state;
    name_handle();
    (void)hold(f.b, "k");
    assert_err(
        wq_redis_take_over(f.a, wq_redis_session(f.b), wq_str("k"), &item),
        WQ_OK);
    assert_string_equal(info_of(f.b, "k").holder, "web1:7");
    assert_err(wq_done(f.a, item), WQ_OK);
}

TEST(connections_have_the_name_of_the_process)
{
    (void)state;
    name_handle();
    assert_non_null(
        strstr(redis_server_say(&f.server, "CLIENT LIST"), " name=wq:web1:7 "));
}

/* A process that was killed leaves its name until the next one begins. */
TEST(names_of_ended_sessions_are_forgotten)
{
    const int sessions = 2;

    (void)state;
    assert_int_equal(count_names(), sessions * TEST_PARTITIONS);
    assert_true(*redis_server_say(&f.server, "HSET wq:{q}:who deadbeef gone") !=
                '-');
    assert_true(*redis_server_say(&f.server, "HSET wq:{q}:who 12345678 away") !=
                '-');
    name_handle();
    assert_int_equal(count_names(), sessions * TEST_PARTITIONS);
    wq_destroy(f.a);
    wq_destroy(f.b);
    f.a = f.b = NULL;
    assert_int_equal(count_names(), 0);
}

/* What another program, or a defect, has written there. */
TEST(name_that_cannot_be_printed_is_shown_as_one_that_can)
{
    char holder[WQ_HOLDER_BYTES];

    (void)state;
    wq_item *item = hold(f.a, "k");
    assert_string_equal(
        redis_server_say(
            &f.server,
            "EVAL for\t_,id\tin\tipairs(redis.call('HKEYS',KEYS[1]))do\t"
            "redis.call('HSET',KEYS[1],id,'\\27[1m\\0\\n'..string.rep('x',200))"
            "end\treturn\t'OK' 1 wq:{q}:who"),
        "OK");
    memset(holder, 'x', sizeof holder);
    holder[sizeof holder - 1] = '\0';
    memcpy(holder, "?[1m??", 6);
    assert_string_equal(info_of(f.b, "k").holder, holder);
    redis_server_say(&f.server, "DEL wq:{q}:who");
    assert_string_equal(info_of(f.b, "k").holder, "");
    assert_err(wq_done(f.a, item), WQ_OK);
    check(f.b);
}

TEST(bad_names_are_refused)
{
    static const char *const names[] = {"", "a b", "a\n", "\xc3\xa4"};
    char                     longest[WQ_HOLDER_BYTES + 1], url[300];
    wq_queue                *q = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const wq_redis_options *o = WQ_REDIS_OPTIONS(.client = names[i]);
        assert_err(wq_redis_open(url_of(f.server.socket, "q"), o, NULL, &q),
                   WQ_EINVAL);
        last_error_has("'client' must be 1 to 79 printable ASCII characters");
    }
    memset(longest, 'n', sizeof longest);
    longest[WQ_HOLDER_BYTES] = '\0';
    (void)snprintf(url, sizeof url, "redis+unix://%s?client=%s",
                   f.server.socket, longest);
    assert_err(wq_open_redis(url, NULL, &q), WQ_EINVAL);
    url[strlen(url) - 1] = '\0';
    assert_err(wq_open_redis(url, NULL, &q), WQ_OK);
    wq_destroy(q);
}

WQ_TESTS(with_server(holder_of_a_key_is_named),
         with_server(holders_of_several_keys_are_told_apart),
         with_server(process_without_a_name_is_host_and_pid),
         with_server(hold_that_was_taken_over_is_named_anew),
         with_server(connections_have_the_name_of_the_process),
         with_server(names_of_ended_sessions_are_forgotten),
         with_server(name_that_cannot_be_printed_is_shown_as_one_that_can),
         with_server(bad_names_are_refused));
