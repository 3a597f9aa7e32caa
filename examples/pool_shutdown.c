/* SPDX-License-Identifier: MIT */
/* pool_shutdown.c: how does a program with a worker pool end? At SIGTERM it
 * finishes all keys; at a second SIGTERM, only those that are HELD. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <wq/workers.h>

static sigset_t    term; /* SIGTERM; blocked before threads start */
static wq_queue   *q;
static wq_workers *pool;

/* "slow" sends the second SIGTERM, and then runs until the pool stops. */
static wq_result
work(void *ctx, const wq_item *item)
{
    (void)ctx;
    if (*(const char *)item->key.data != 's')
        return wq_result_done();
    while (!wq_shutting_down(q))
        (void)sched_yield();
    (void)kill(getpid(), SIGTERM);
    while (wq_workers_count(pool) > 0)
        (void)sched_yield();
    return wq_result_done();
}

/* begin: leave */
/* A second SIGTERM ends the drain. */
static void *
hurry(void *arg)
{
    int signum;

    (void)sigwait(&term, &signum);
    wq_shutdown(q); /* no effect if it is drained */
    return arg;
}

static wq_err
leave(void)
{
    pthread_t second;
    int       signum;

    (void)sigwait(&term, &signum); /* a daemon waits here */
    if (pthread_create(&second, NULL, hurry, NULL))
        return WQ_ENOMEM;
    const wq_err err = wq_workers_drain(pool, WQ_SECONDS(30));
    (void)pthread_kill(second, SIGTERM); /* if it still waits */
    (void)pthread_join(second, NULL);
    return err;
}
/* end: leave */

/* begin: serve */
static bool
serve(const char *first, wq_err expected, size_t expected_left)
{
    if (wq_create(NULL, &q) ||
        wq_workers_start(q, WQ_WORKERS(.threads = 1, .handler = work), &pool) ||
        wq_add_str(q, first) || wq_add_str(q, "b") || kill(getpid(), SIGTERM))
        return false;
    const wq_err err = leave();
    wq_workers_destroy(pool); /* waits for HELD keys only */
    const size_t left = wq_len(q);
    printf("drain: %s; keys left: %zu\n", wq_strerror(err), left);
    wq_destroy(q); /* after its pool */
    return err == expected && left == expected_left;
}
/* end: serve */

int
main(void)
{
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &term, NULL);
    return serve("a", WQ_OK, 0) && serve("slow", WQ_EINTERRUPTED, 1) ? 0 : 1;
}
