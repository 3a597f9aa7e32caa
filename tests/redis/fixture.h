/* SPDX-License-Identifier: MIT */
/* fixture.h: what do tests of queues in a Redis server share? */
#ifndef WQ_TEST_REDIS_FIXTURE_H
#define WQ_TEST_REDIS_FIXTURE_H

#include "support/look.h"
#include "support/take.h"
#include "support/wq_test.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <wq/clock.h>
#include <wq/inspect.h>
#include <wq/redis.h>

#include "support/redis_queue.h"
#include "support/redis_server.h"

/* How many partitions the queues of a program have; see tests/CMakeLists.txt. */
#ifndef TEST_PARTITIONS
#define TEST_PARTITIONS 1
#endif

static inline void
need_server(void)
{
    if (!redis_server_is_installed())
        wq_test_skip("redis-server is not installed");
}

/* A URL of a queue at a socket, in a buffer of the thread. */
static inline const char *
url_of(const char *socket, const char *queue)
{
    static _Thread_local char url[300];

    const int len =
        snprintf(url, sizeof url, "redis+unix://%s?queue=%s", socket, queue);
    if (TEST_PARTITIONS > 1)
        (void)snprintf(url + len, sizeof url - (size_t)len, "&partitions=%d",
                       TEST_PARTITIONS);
    return url;
}

/* The name of a set of the server in which `key` is, or would be. In a static
 * buffer. */
static inline const char *
name_of(const char *queue, const char *key, const char *set)
{
    static char name[100];
    char        part[32] = "";

    if (TEST_PARTITIONS > 1)
        (void)snprintf(part, sizeof part, "/%d.%u", TEST_PARTITIONS,
                       redis_queue_partition(wq_str(key), TEST_PARTITIONS));
    (void)snprintf(name, sizeof name, "wq:{%s%s}:%s", queue, part, set);
    return name;
}

static inline wq_queue *
open_at(const char *socket, const char *queue, int64_t lease_ns,
        wq_clock *clock)
{
    wq_queue *q = NULL;

    assert_err(
        wq_redis_open(url_of(socket, queue),
                      WQ_REDIS_OPTIONS(.lease_ns = lease_ns,
                                       .timeout_ns = WQ_SECONDS(10),
                                       .max_expiries = 2, .manual_renew = true),
                      WQ_CONFIG(.clock = clock), &q),
        WQ_OK);
    return q;
}

static inline int64_t
now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void
get_nothing(wq_queue *q)
{
    wq_item *item = NULL;

    assert_err(wq_get_within(q, 0, &item), WQ_ETIMEDOUT);
}

static void
complain(void *ctx, const char *text)
{
    (void)ctx;
    fail_msg("wq_check() finds: %s", text);
}

/* All invariants hold. */
static inline void
check(wq_queue *q)
{
    assert_err(wq_check(q, complain, NULL), WQ_OK);
}

/* An error that passes while a server moves. */
static inline bool
is_for_now(wq_err err)
{
    return err == WQ_EAWAY || err == WQ_EIO;
}

/* Add again while the server moves; other errors end it. */
static inline wq_err
add_in_the_end(wq_queue *q, const char *key)
{
    wq_err err = WQ_EAWAY;

    for (int i = 0; is_for_now(err) && i < 6000; i++) {
        err = wq_add(q, wq_str(key));
        if (err)
            (void)poll(NULL, 0, 5);
    }
    return err;
}

/* The server must answer OK. */
static inline void
tell(const struct redis_server *s, const char *words)
{
    assert_string_equal(redis_server_say(s, words), "OK");
}

/* A certificate of these names, signed by itself: cert.pem and key.pem in `dir`.
 */
static inline void
make_certificate(const char *dir, const char *names)
{
    char command[600];

    (void)snprintf(command, sizeof command,
                   "cd '%s' && openssl req -x509 -newkey ec -pkeyopt "
                   "ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out "
                   "cert.pem -days 2 -subj /CN=localhost -addext "
                   "subjectAltName=%s 2>/dev/null",
                   dir, names);
    if (system(command) != 0)
        wq_test_skip("the command openssl is not installed");
}

/* Start a server that was stopped, with options for TLS. The test is skipped if
 * the server was built without it: one that the environment names may be. */
static inline void
start_tls(struct redis_server *s, const char *const *args)
{
    static const char why[] = "the server ends: was it built without TLS?";

    redis_server_launch(s, args);
    if (redis_server_gets_ready(s))
        return;
    if (getenv("WQ_REDIS_SERVER"))
        wq_test_leave_out(why);
    wq_test_skip(why);
}

static inline wq_redis_server
server_of(wq_queue *q)
{
    wq_redis_server s = {.size = sizeof s};

    assert_err(wq_redis_read_server(q, &s), WQ_OK);
    return s;
}

/* The address of the server that the handle talks to. */
static inline void
expect_at(wq_queue *q, const char *port)
{
    char address[40];

    (void)snprintf(address, sizeof address, "127.0.0.1:%s", port);
    assert_string_equal(server_of(q).name, address);
}

static inline void
last_error_has(const char *words)
{
    if (!strstr(wq_last_error(), words))
        fail_msg("'%s' is not in '%s'", words, wq_last_error());
}

#endif
