/* SPDX-License-Identifier: MIT */
/* redis.c: a program outside this tree with a queue in a Redis server. The
 * library must be found; the server is not there. */
#include <stdio.h>

#ifdef BY_NAME
#include <wq/wq.h>
#else
#include <wq/redis.h>
#endif

int
main(void)
{
    wq_queue *q;
    wq_err    err;

#ifndef BY_NAME
    if (wq_register_scheme("redis", wq_open_redis))
        return 1;
#endif
    err = wq_open("redis+unix:///nonexistent/socket?queue=jobs", NULL, &q);
    if (err != WQ_EAWAY) {
        fprintf(stderr, "redis: %s: %s\n", wq_err_name(err), wq_last_error());
        return 1;
    }
    return 0;
}
