/* SPDX-License-Identifier: MIT */
/* loop_poll.c: a queue in a loop of poll(), with the handler of a worker pool
 * but without the pool. */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <unistd.h>

#include <wq/workers.h>

#include "loop.h"

static int term[2]; /* a pipe: the signal handler writes, the loop reads */

static void
on_term(int signum)
{
    (void)signum;
    if (write(term[1], "t", 1) != 1)
        _exit(1);
}

/* begin: work */
static wq_result
reconcile(void *q, const wq_item *item)
{
    work_on(q, item->key);
    return wq_result_done(); /* on failure: wq_result_retry() */
}

/* The queue is readable: work on some keys, then return to the loop. False: the
 * queue is shut down and empty. */
static bool
on_keys(wq_queue *q)
{
    const wq_workers_config config = {
        .size = sizeof config, .handler = reconcile, .ctx = q};
    wq_err err = WQ_OK;

    for (int i = 0; i < 64 && !err; i++)
        err = wq_work_one(q, &config, 0);
    return err != WQ_ESHUTDOWN;
}

static void
run(wq_queue *q)
{
    struct pollfd fds[] = {{.fd = wq_fd(q), .events = POLLIN},
                           {.fd = term[0], .events = POLLIN}};
    bool          open = true;

    while (open) {
        if (poll(fds, 2, -1) < 0)
            continue; /* interrupted */
        if (fds[1].revents) {
            wq_shutdown(q); /* on_keys() sees it */
            fds[1].fd = -1; /* once is enough */
        }
        open = on_keys(q);
    }
}
/* end: work */

int
main(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = on_term};

    if (pipe(term) || sigaction(SIGTERM, &action, NULL)) {
        perror("loop_poll");
        return 1;
    }
    wq_queue *q = open_queue(argc, argv);
    if (!q || wq_fd(q) < 0) {
        perror("loop_poll");
        wq_destroy(q);
        return 1;
    }
    run(q);
    return close_queue(q);
}
