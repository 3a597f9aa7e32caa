/* SPDX-License-Identifier: MIT */
/* test_sentinel.c: does a queue follow the primary that sentinels name? (S-23)
 *
 * A primary, a replica and a sentinel, which takes 200 ms of silence for the
 * primary's death and needs nobody's agreement.
 */
#include "redis/fixture.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define LEASE WQ_SECONDS(60)

static struct {
    struct redis_server primary, replica, sentinel, second;
    char                ports[4][16]; /* of these */
    wq_queue           *q;
} f;

enum { PRIMARY, REPLICA, SENTINEL, SECOND };

/* A sentinel of the primary; it knows the replica when this returns. */
static void
start_sentinel(struct redis_server *s, int which)
{
    char              path[200], words[64];
    const char *const args[] = {path, "--sentinel", NULL};

    (void)snprintf(path, sizeof path, "%s/sentinel-%d", f.primary.dir, which);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file,
                  "sentinel monitor main 127.0.0.1 %s 1\n"
                  "sentinel down-after-milliseconds main 200\n"
                  "sentinel failover-timeout main 2000\n",
                  f.ports[PRIMARY]);
    (void)fclose(file);
    redis_server_start_tcp(s, f.ports[which], args);
    (void)snprintf(words, sizeof words, ":%s", f.ports[REPLICA]);
    redis_server_await(s, "SENTINEL REPLICAS main", words);
}

/* Nobody listens at the first address. */
static const char *
url(const char *name, const char *options)
{
    static char text[400];

    (void)snprintf(text, sizeof text,
                   "redis+sentinel://127.0.0.1:1,127.0.0.1:%s/%s?queue=q%s",
                   f.ports[SENTINEL], name, options);
    return text;
}

static wq_queue *
open_main(const char *options)
{
    wq_queue *q = NULL;

    assert_err(wq_redis_open(url("main", options),
                             WQ_REDIS_OPTIONS(.lease_ns = LEASE,
                                              .timeout_ns = WQ_SECONDS(10)),
                             NULL, &q),
               WQ_OK);
    return q;
}

static int
set_up(void **state)
{
    (void)state;
    need_server();
    redis_server_start_tcp(&f.primary, f.ports[PRIMARY], NULL);
    redis_server_start_tcp(&f.replica, f.ports[REPLICA], NULL);
    redis_server_follow(&f.replica, &f.primary, f.ports[PRIMARY]);
    start_sentinel(&f.sentinel, SENTINEL);
    return 0;
}

static int
tear_down(void **state)
{
    (void)state;
    wq_destroy(f.q);
    f.q = NULL;
    if (*f.second.dir)
        redis_server_stop(&f.second);
    f.second.dir[0] = '\0';
    redis_server_stop(&f.sentinel);
    if (*f.replica.dir)
        redis_server_stop(&f.replica);
    redis_server_stop(&f.primary);
    return 0;
}

/* The queue goes on at the replica, which was promoted, with all keys. */
TEST(queue_goes_on_at_the_promoted_replica)
{
    wq_item *next = NULL;

    (void)state;
    f.q = open_main("&replicas=1&replicas_timeout=5s");
    assert_err(wq_add(f.q, wq_str("held")), WQ_OK);
    assert_err(wq_add(f.q, wq_str("ready")), WQ_OK);
    wq_item *held = take_key(f.q, "held");
    expect_at(f.q, f.ports[PRIMARY]);
    redis_server_kill(&f.primary);
    /* the next one has no replica of its own: a handle that asks for none */
    wq_queue *late = NULL;
    wq_err    err = WQ_EAWAY;
    for (int i = 0; err == WQ_EAWAY && i < 6000; i++) {
        err = wq_open_redis(url("main", ""), NULL, &late);
        if (err)
            (void)poll(NULL, 0, 5);
    }
    assert_err(err, WQ_OK);
    assert_int_equal(stats_of(late).held, 1);
    assert_int_equal(stats_of(f.q).ready, 1); /* without reopening */
    assert_err(wq_get_within(late, 0, &next), WQ_OK);
    assert_memory_equal(next->key.data, "ready", 5);
    assert_err(wq_done(late, next), WQ_OK);
    assert_int_equal(wq_hold_left(f.q, held) > 0, true);
    expect_at(f.q, f.ports[REPLICA]);
    check(late);
    wq_destroy(late);
}

/* Primary and replica change places. A sentinel that does
 * this by itself takes ten seconds. */
static void
swap(void)
{
    char words[64];

    tell(&f.replica, "REPLICAOF NO ONE");
    (void)snprintf(words, sizeof words, "REPLICAOF 127.0.0.1 %s",
                   f.ports[REPLICA]);
    tell(&f.primary, words);
    tell(&f.sentinel, "SENTINEL REMOVE main");
    (void)snprintf(words, sizeof words, "SENTINEL MONITOR main 127.0.0.1 %s 1",
                   f.ports[REPLICA]);
    tell(&f.sentinel, words);
}

/* A get that fails while the server moves is repeated; for a moment no sentinel
 * knows the primary. */
static void *
get_in_the_end(void *q)
{
    wq_item *item = NULL;
    wq_err   err = WQ_EAWAY;

    for (int i = 0; (is_for_now(err) || err == WQ_EINVAL) && i < 6000; i++) {
        err = wq_get_within(q, WQ_SECONDS(60), &item);
        if (err)
            (void)poll(NULL, 0, 5);
    }
    return item;
}

/* The old primary lives on as a replica: READONLY, or a connection that it has
 * closed, makes a handle ask again, and the sleeping one wakes up there. */
TEST(sleeping_get_follows_the_primary)
{
    pthread_t thread;
    void     *got = NULL;

    (void)state;
    f.q = open_main("");
    wq_queue *other = open_main("");
    assert_err(wq_add(other, wq_str("before")), WQ_OK);
    wq_item *item = take_key(other, "before");
    assert_int_equal(pthread_create(&thread, NULL, get_in_the_end, f.q), 0);
    redis_server_await(&f.replica, "ZCARD wq:{q}:held",
                       "2"); /* one is its guard */
    swap();
    redis_server_await(&f.replica, "CLIENT LIST", "cmd=blpop");
    assert_err(add_in_the_end(other, "after"), WQ_OK);
    assert_int_equal(pthread_join(thread, &got), 0);
    assert_non_null(got);
    assert_memory_equal(((wq_item *)got)->key.data, "after", 5);
    assert_err(wq_done(f.q, got), WQ_OK);
    assert_err(wq_done(other, item), WQ_OK);
    check(f.q);
    wq_destroy(other);
}

TEST(sentinels_are_asked_one_after_the_other)
{
    wq_queue *q = NULL;
    char      text[400];

    (void)state;
    start_sentinel(&f.second, SECOND);
    (void)snprintf(
        text, sizeof text,
        "redis+sentinel://127.0.0.1:%s,127.0.0.1:%s/main/0?timeout=2s",
        f.ports[SENTINEL], f.ports[SECOND]);
    assert_err(wq_open_redis(text, NULL, &q), WQ_OK);
    wq_destroy(q);
    assert_int_equal(kill(f.sentinel.pid, SIGSTOP), 0); /* it hangs */
    assert_err(wq_open_redis(text, NULL, &q), WQ_OK);
    wq_destroy(q);
    redis_server_kill(&f.sentinel);
    assert_err(wq_open_redis(text, NULL, &q), WQ_OK);
    wq_destroy(q);
    redis_server_kill(&f.second);
    assert_err(wq_open_redis(text, NULL, &q), WQ_EAWAY);
    last_error_has("of 2 sentinels none names the primary");
}

TEST(unknown_primary_is_refused)
{
    wq_queue *q = NULL;

    (void)state;
    assert_err(wq_open_redis(url("other", ""), NULL, &q), WQ_EINVAL);
    last_error_has("know no primary 'other'");
}

TEST(sentinel_that_names_a_replica_is_not_believed)
{
    wq_queue *q = NULL;

    (void)state;
    /* the sentinel learns of it after some seconds */
    tell(&f.primary, "REPLICAOF 127.0.0.1 1");
    assert_err(wq_open_redis(url("main", ""), NULL, &q), WQ_EAWAY);
    last_error_has("but it is a replica");
}

TEST(sentinels_have_a_password_of_their_own)
{
    wq_queue *q = NULL;
    char      path[200], options[300];

    (void)state;
    (void)snprintf(path, sizeof path, "%s/password", f.sentinel.dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("s3cret\n", file);
    (void)fclose(file);
    tell(&f.sentinel, "ACL SETUSER guard on >s3cret -@all +auth "
                      "+client|setname +sentinel|get-master-addr-by-name");
    tell(&f.sentinel, "ACL SETUSER default off");
    assert_err(wq_open_redis(url("main", ""), NULL, &q), WQ_EINVAL);
    last_error_has("asks for a password: use sentinel_password_file=PATH");
    (void)snprintf(options, sizeof options,
                   "&sentinel_user=guard&sentinel_password_file=%s", path);
    assert_err(wq_open_redis(url("main", options), NULL, &q), WQ_OK);
    assert_err(wq_add(q, wq_str("k")), WQ_OK);
    wq_destroy(q);
    file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs("wr0ng\n", file);
    (void)fclose(file);
    assert_err(wq_open_redis(url("main", options), NULL, &q), WQ_EINVAL);
    last_error_has("refuses the user or the password (from sentinel_password_");
    assert_null(strstr(wq_last_error(), "wr0ng"));
}

/* rediss+sentinel://: TLS to the sentinel and to the server that it names. */
TEST(sentinel_and_primary_are_known_by_their_certificates)
{
    char        cert[200], key[200], port[2][16], path[200], text[700];
    const char *tls[] = {path,  "--tls-port",
                         NULL,  "--tls-cert-file",
                         cert,  "--tls-key-file",
                         key,   "--tls-ca-cert-file",
                         cert,  "--tls-auth-clients",
                         "no",  "--tls-replication",
                         "yes", NULL,
                         NULL};
    wq_queue   *q = NULL;

    (void)state;
    need_server();
    redis_server_start(&f.primary, NULL); /* for its directory */
    redis_server_kill(&f.primary);
    make_certificate(f.primary.dir, "IP:127.0.0.1");
    (void)snprintf(cert, sizeof cert, "%s/cert.pem", f.primary.dir);
    (void)snprintf(key, sizeof key, "%s/key.pem", f.primary.dir);
    (void)snprintf(path, sizeof path, "%s/sentinel", f.primary.dir);
    for (int i = 0; i < 2; i++)
        (void)snprintf(port[i], sizeof port[i], "%u", redis_server_free_port());
    tls[2] = port[0];
    start_tls(&f.primary, tls + 1);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(file, "sentinel monitor main 127.0.0.1 %s 1\n", port[0]);
    (void)fclose(file);
    tls[2] = port[1];
    tls[13] = "--sentinel";
    redis_server_start(&f.sentinel, tls);
    (void)snprintf(text, sizeof text,
                   "rediss+sentinel://127.0.0.1:%s/main?queue=q&ca_file=%s",
                   port[1], cert);
    assert_err(wq_open_redis(text, NULL, &q), WQ_OK);
    assert_err(wq_add(q, wq_str("k")), WQ_OK);
    assert_err(wq_done(q, take_key(q, "k")), WQ_OK);
    wq_destroy(q);
    *strrchr(text, '&') = '\0'; /* nobody vouches for it */
    assert_err(wq_open_redis(text, NULL, &q), WQ_EINVAL);
    last_error_has("not trusted");
}

#define with_sentinel(name)                                                    \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)

WQ_TESTS(with_sentinel(queue_goes_on_at_the_promoted_replica),
         with_sentinel(sleeping_get_follows_the_primary),
         with_sentinel(sentinels_are_asked_one_after_the_other),
         with_sentinel(unknown_primary_is_refused),
         with_sentinel(sentinel_that_names_a_replica_is_not_believed),
         with_sentinel(sentinels_have_a_password_of_their_own),
         cmocka_unit_test_teardown(
             sentinel_and_primary_are_known_by_their_certificates, tear_down));
