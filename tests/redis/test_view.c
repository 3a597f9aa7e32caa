/* SPDX-License-Identifier: MIT */
/* test_view.c: are all keys seen, and is damage? (S-08)
 *
 * The bytes of a key may be anything: here they include those that Redis, its
 * protocol and Lua use themselves.
 */
#include "redis/fixture.h"

#include <stdlib.h>

enum { MANY = 5000 };

static struct {
    wq_queue *q;
    unsigned  number;
    char      name[32];
} f;

static int
set_up(void **state)
{
    (void)state;
    need_server();
    (void)snprintf(f.name, sizeof f.name, "view%u", f.number++);
    f.q = open_at(redis_server_of_process()->socket, f.name, WQ_SECONDS(60),
                  NULL);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    wq_destroy(f.q);
    return 0;
}

static bool
count(void *ctx, wq_key key, const wq_key_info *info)
{
    unsigned char *times = ctx;
    uint64_t       number;

    (void)info;
    memcpy(&number, key.data, sizeof number);
    assert_true(number < MANY);
    times[number]++;
    return true;
}

static void
add_numbers(uint64_t from, uint64_t to, const wq_add_options *how)
{
    uint64_t *numbers = calloc(MANY, sizeof *numbers);
    wq_key   *keys = calloc(MANY, sizeof *keys);
    size_t    n = 0;

    assert_true(numbers && keys);
    for (uint64_t i = from; i < to; i++, n++) {
        numbers[n] = i;
        keys[n] = (wq_key){&numbers[n], sizeof *numbers};
    }
    assert_err(wq_add_with(f.q, how, keys, n), WQ_OK);
    free(numbers);
    free(keys);
}

TEST(walk_visits_each_of_many_keys_once)
{
    static unsigned char times[MANY];

    (void)state;
    add_numbers(0, MANY - 1000, WQ_ADD(.priority = 1));
    add_numbers(MANY - 1000, MANY, WQ_ADD(.after_ns = WQ_SECONDS(3600)));
    assert_err(wq_each(f.q, 0, count, times), WQ_OK);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(times[i], 1);
    memset(times, 0, sizeof times);
    assert_err(wq_each(f.q, WQ_STATE_WAITING, count, times), WQ_OK);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(times[i], i >= MANY - 1000);
    check(f.q);
}

/* Keys of bytes that Redis, its protocol, Lua, the scripts or C mean something
 * by; the long ones are made by the test. */
TEST(any_bytes_can_be_a_key)
{
    static unsigned char longest[WQ_KEY_MAX], last[80];
    const wq_key         keys[] = {{"\r\n$3\r\n", 6},
                                   {"\r\n", 2},
                                   {"{q}", 3},
                                   {"{}", 2},
                                   {"%d%s%n", 6},
                                   {"*", 1},
                                   {"'; return 1 --", 14},
                                   {"\0", 1},
                                   {"\0\0", 2},
                                   {"\xff", 1},
                                   {last, sizeof last},
                                   {longest, sizeof longest}};
    const size_t         n = sizeof keys / sizeof *keys;

    (void)state;
    memset(longest, 0xff, sizeof longest);
    memset(last, 0xff, sizeof last);
    for (size_t i = 0; i < n; i++) {
        assert_err(wq_add(f.q, keys[i]), WQ_OK);
        check(f.q);
    }
    for (size_t i = 0; i < n; i++) { /* the short way, and the long one */
        wq_item *item = NULL;

        assert_err(wq_get_within(f.q, 0, &item), WQ_OK);
        assert_int_equal(item->key.len, keys[i].len);
        assert_memory_equal(item->key.data, keys[i].data, keys[i].len);
        check(f.q);
        assert_err(wq_add_after(f.q, keys[i], WQ_SECONDS(3600)), WQ_OK);
        check(f.q);
        assert_err(
            wq_finish(f.q, item, i % 2 ? wq_result_done() : wq_result_bury()),
            WQ_OK);
        check(f.q);
        if (i % 2)
            assert_err(wq_remove(f.q, keys[i]), WQ_OK);
        else
            assert_err(wq_revive(f.q, keys[i]), WQ_OK);
        check(f.q);
    }
}

static void
count_problem(void *ctx, const char *text)
{
    assert_true(*text);
    ++*(int *)ctx;
}

/* "COMMAND KIND WORDS...": to the key of this kind of the queue. */
static void
say(const char *command, const char *kind, const char *words)
{
    char text[200];

    (void)snprintf(text, sizeof text, "%s wq:{%s}:%s %s", command, f.name, kind,
                   words);
    assert_true(*redis_server_say(redis_server_of_process(), text) != '-');
}

static void
note_problem(void *ctx, const char *text)
{
    char *const all = ctx;

    assert_true(strlen(all) + strlen(text) < 2000);
    strcat(all, text);
    strcat(all, "\n");
}

TEST(check_names_the_keys_of_what_it_finds)
{
    char text[2048] = "";

    (void)state;
    assert_err(wq_add(f.q, wq_bytes("k\n\x7f", 3)), WQ_OK);
    say("ZREMRANGEBYRANK", "ready", "0 0");
    say("HSET", "k", "broken x");
    say("HSET", "k", "b\n x");
    say("HSET", "k", "b\\x0a x");
    assert_err(wq_check(f.q, note_problem, text), WQ_OK);
    assert_non_null(strstr(text, "the key 'k\\x0a\\x7f' of state 1 is not"));
    assert_non_null(strstr(text, "the record of the key 'broken' is damaged"));
    assert_non_null(strstr(text, "the key 'broken': its record is damaged"));
    assert_non_null(strstr(text, "the key 'b\\x0a': its record is damaged"));
    assert_non_null(strstr(text, "the key 'b\\x5cx0a': its record is"));
    assert_non_null(strstr(text, "the record of the key 'b\\x5cx0a' is"));
    say("DEL", "k", "");
}

TEST(check_finds_what_does_not_fit_together)
{
    static const char *const damage[][3] = {
        {"ZREMRANGEBYRANK", "ready", "0 0"},
        {"ZADD", "ready", "0 1234567nobody"},
        {"HSET", "k", "broken x"},
        {"HSET", "meta", "dirty 3"},
        {"HSET", "meta", "calm x"},
        {"ZADD", "idle", "1 sleeper0"}, /* scripts would delete `calm` */
        {"HDEL", "k", "''"},            /* the guard; it stays away */
    };

    (void)state;
    for (size_t i = 0; i < sizeof damage / sizeof *damage; i++) {
        int problems = 0;

        assert_err(wq_add(f.q, wq_str("k")), WQ_OK);
        check(f.q);
        say(damage[i][0], damage[i][1], damage[i][2]);
        (void)wq_check(f.q, count_problem, &problems);
        assert_true(problems > 0);
        say("ZREMRANGEBYSCORE", "ready", "-inf (+inf");
        say("HDEL", "k", "k broken");
        say("HSET", "meta", "dirty 0");
        say("HDEL", "meta", "calm");
        say("DEL", "idle", "");
    }
}

/* In the list of what the session of the first HELD key holds: longer than a key
 * can be, and behind all others. */
static void
say_of_long_hold(const char *command)
{
    char text[300];

    (void)snprintf(text, sizeof text,
                   "EVAL redis.call(%s,redis.call('ZRANGE',KEYS[1],0,0)[1]:sub"
                   "(1,8)..string.rep('\\255',1000000)) 1 wq:{%s}:held",
                   command, f.name);
    assert_true(*redis_server_say(redis_server_of_process(), text) != '-');
}

/* It is the last one of a page, after which the next one begins. */
TEST(hold_that_is_longer_than_a_key_is_damage)
{
    enum { PAGE = 256 };
    wq_item  *items[PAGE], *item = NULL;
    size_t    n = 0;
    wq_queue *q =
        open_at(redis_server_of_process()->socket, f.name, WQ_MS(300), NULL);

    (void)state;
    add_numbers(0, PAGE - 1, WQ_ADD(.priority = 1));
    assert_err(wq_get_many(q, items, PAGE - 1, 0, &n), WQ_OK);
    assert_int_equal(n, PAGE - 1);
    say_of_long_hold("'ZADD',KEYS[1],0");
    wq_destroy(q); /* cannot give its keys back */
    say_of_long_hold("'ZREM',KEYS[1]");
    assert_err(wq_get_within(f.q, WQ_SECONDS(60), &item), WQ_OK);
    assert_err(wq_done(f.q, item), WQ_OK);
    check(f.q);
}

/* A server would search a small list of keys from the beginning, each time. */
TEST(server_hashes_few_keys_too)
{
    static const char *const encodings[][2] = {
        {"k", "hashtable"}, {"ready", "skiplist"}, {"held", "skiplist"}};

    (void)state;
    assert_err(wq_add(f.q, wq_str("k")), WQ_OK);
    assert_err(wq_done(f.q, take_key(f.q, "k")), WQ_OK);
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        char words[100];
        (void)snprintf(words, sizeof words, "OBJECT ENCODING wq:{%s}:%s",
                       f.name, encodings[i][0]);
        assert_string_equal(redis_server_say(redis_server_of_process(), words),
                            encodings[i][1]);
    }
}

#define with_queue(name)                                                       \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)

WQ_TESTS(with_queue(walk_visits_each_of_many_keys_once),
         with_queue(any_bytes_can_be_a_key),
         with_queue(hold_that_is_longer_than_a_key_is_damage),
         with_queue(server_hashes_few_keys_too),
         with_queue(check_names_the_keys_of_what_it_finds),
         with_queue(check_finds_what_does_not_fit_together));
