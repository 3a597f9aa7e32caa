/* SPDX-License-Identifier: MIT */
/* loop_libuv.c: a queue in a loop of libuv. */
#include <uv.h>

#include "loop.h"

/* begin: loop */
static uv_poll_t   keys;
static uv_signal_t term;

/* Without handles the loop ends. */
static void
stop_watching(void)
{
    uv_close((uv_handle_t *)&keys, NULL);
    uv_close((uv_handle_t *)&term, NULL);
}

static void
on_keys(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    if (!work_on_keys(handle->data))
        stop_watching();
}

static void
on_term(uv_signal_t *handle, int signum)
{
    (void)signum;
    wq_shutdown(handle->data); /* on_keys() sees it */
}

static int
run(wq_queue *q)
{
    uv_loop_t *loop = uv_default_loop();
    int        err = uv_poll_init(loop, &keys, wq_fd(q));

    if (!err)
        err = uv_signal_init(loop, &term);
    if (err)
        return err;
    keys.data = term.data = q;
    err = uv_signal_start(&term, on_term, SIGTERM);
    if (!err)
        err = uv_poll_start(&keys, UV_READABLE, on_keys);
    return err ? err : uv_run(loop, UV_RUN_DEFAULT);
}
/* end: loop */

int
main(int argc, char **argv)
{
    wq_queue *q = open_queue(argc, argv);
    const int err = q ? run(q) : UV_ENOMEM;

    if (err) {
        fprintf(stderr, "loop_libuv: %s\n", uv_strerror(err));
        return 1;
    }
    (void)uv_loop_close(uv_default_loop()); /* the handles are closed */
    return close_queue(q);
}
