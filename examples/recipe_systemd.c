/* SPDX-License-Identifier: MIT */
/* recipe_systemd.c: how does a service end without losing work? It tells
 * systemd what it does, and drains its pool.
 *
 *     recipe_systemd [--once]    --once: sends itself SIGTERM
 */
#define _GNU_SOURCE /* SOCK_CLOEXEC */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <wq/workers.h>

/* begin: notify */
/* sd_notify(3) without its library: one datagram to the socket that systemd
 * names. Without systemd there is none, and nothing to do. */
static void
notify(const char *state)
{
    const char        *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const size_t       len = path ? strlen(path) : 0;

    if (len == 0 || len > sizeof to.sun_path)
        return;
    memcpy(to.sun_path, path, len);
    if (*path == '@')
        to.sun_path[0] = '\0'; /* an abstract name */
    const int s = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0)
        return;
    (void)sendto(s, state, strlen(state), MSG_NOSIGNAL,
                 (const struct sockaddr *)&to,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    (void)close(s);
}
/* end: notify */

static wq_result
work(void *ctx, const wq_item *item)
{
    (void)ctx;
    (void)item;
    return wq_result_done();
}

/* begin: leave */
/* Drain the pool. systemd waits for TimeoutStopSec=, and for longer each time
 * that the service asks for it; this one asks for at most a minute. */
static wq_err
leave(wq_workers *pool)
{
    wq_err err = WQ_ETIMEDOUT;

    notify("STOPPING=1\nSTATUS=Finishing the work");
    for (int i = 0; i < 12 && err == WQ_ETIMEDOUT; i++) {
        notify("EXTEND_TIMEOUT_USEC=10000000");
        err = wq_workers_drain(pool, WQ_SECONDS(5));
    }
    if (err)
        fprintf(stderr, "work remains: %s\n", wq_strerror(err));
    return err;
}
/* end: leave */

/* begin: main */
int
main(int argc, char **argv)
{
    sigset_t    term;
    wq_queue   *q;
    wq_workers *pool;
    int         signum;

    /* Before threads start, because they inherit the mask. */
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &term, NULL);
    /* Debounced keys run before the end; keys in BACKOFF are dropped. */
    if (wq_create(WQ_CONFIG(.waiting = WQ_WAITING_FLUSH), &q) ||
        wq_workers_start(q, WQ_WORKERS(.threads = 4, .handler = work), &pool)) {
        fprintf(stderr, "%s\n", wq_last_error());
        return 1;
    }
    notify("READY=1");
    if (argc > 1 && strcmp(argv[1], "--once") == 0)
        (void)kill(getpid(), SIGTERM);
    (void)sigwait(&term, &signum);
    const wq_err err = leave(pool);
    if (err)
        _exit(1); /* a handler hangs: the threads end with the process */
    wq_workers_destroy(pool);
    wq_destroy(q);
    return 0;
}
/* end: main */
