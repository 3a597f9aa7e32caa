/* SPDX-License-Identifier: MIT */
/* redis.c: a program outside this tree with a queue in a Redis server. The
 * library must be found. Without a URL, the server is not there; with one, a key
 * makes its way. */
#include <stdio.h>

#ifdef BY_NAME
#include <wq/wq.h>
#else
#include <wq/redis.h>
#endif

static int
fail(const char *what, wq_err err)
{
    fprintf(stderr, "redis: %s: %s: %s\n", what, wq_err_name(err),
            wq_last_error());
    return 1;
}

static int
use(wq_queue *q)
{
    wq_item *item;
    wq_err   err = wq_add_str(q, "a");

    if (err)
        return fail("add", err);
    err = wq_get(q, &item);
    if (err)
        return fail("get", err);
    wq_done(q, item);
    const size_t left = wq_len(q);
    wq_destroy(q);
    return left == 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
    wq_queue *q;

#ifndef BY_NAME
    if (wq_register_scheme("redis", wq_open_redis))
        return 1;
#endif
    if (argc > 1) {
        const wq_err err = wq_open(argv[1], NULL, &q);
        return err ? fail("open", err) : use(q);
    }
    const wq_err err =
        wq_open("redis+unix:///nonexistent/socket?queue=jobs", NULL, &q);
    return err == WQ_EAWAY ? 0 : fail("open", err);
}
