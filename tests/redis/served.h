/* SPDX-License-Identifier: MIT */
/* served.h: what do tests share that have a server, two handles, and perhaps a
 * proxy, each of its own? */
#ifndef WQ_TEST_REDIS_SERVED_H
#define WQ_TEST_REDIS_SERVED_H

#include "redis/fixture.h"

#include <poll.h>

#include "redis/proxy.h"

#define LEASE WQ_SECONDS(60)

static const char *const aof[] = {"--appendonly", "yes", "--appendfsync",
                                  "always", NULL};

static struct {
    struct redis_server server;
    struct proxy       *proxy; /* if the test has one */
    wq_queue           *a, *b;
} f;

static inline int
set_up(void **state)
{
    (void)state;
    need_server();
    redis_server_start(&f.server, aof);
    f.a = open_at(f.server.socket, "q", LEASE, NULL);
    f.b = open_at(f.server.socket, "q", LEASE, NULL);
    return 0;
}

static inline int
tear_down(void **state)
{
    (void)state;
    wq_destroy(f.a);
    wq_destroy(f.b);
    if (f.proxy)
        proxy_stop(f.proxy);
    f.proxy = NULL;
    redis_server_stop(&f.server);
    return 0;
}

/* Handle a is behind a proxy from now on. */
static inline void
put_proxy(void)
{
    wq_destroy(f.a);
    f.proxy = proxy_start(&f.server);
    f.a = open_at(proxy_socket(f.proxy), "q", LEASE, NULL);
}

/* After a failure the next attempt to connect may have to wait: at most 1 s. An
 * add whose reply was lost can be repeated. */
static inline wq_err
add_until_answered(wq_queue *q, const char *key)
{
    wq_err err = WQ_EAWAY;

    for (int i = 0; (err == WQ_EAWAY || err == WQ_EIO) && i < 3000; i++) {
        err = wq_add(q, wq_str(key));
        if (err)
            (void)poll(NULL, 0, 1);
    }
    return err;
}

#define with_server(name)                                                      \
    cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
