/* SPDX-License-Identifier: MIT */
/* machines.c: a worker that runs on as many machines as you like.
 *
 *     machines URL    redis://queue.example.org/0?queue=photos
 *
 * A key is the name of a file, whose bytes it counts. It works until SIGTERM.
 */
#define _POSIX_C_SOURCE 200809L /* sigset_t */
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <wq/limiter.h>
#include <wq/redis.h>
#include <wq/workers.h>

static void
warn(void *ctx, const char *text)
{
    (void)ctx;
    fprintf(stderr, "warning: %s\n", text);
}

/* Too many failures: the server keeps the key as DEAD. */
static void
give_up(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    (void)ctx;
    fprintf(stderr, "%s: given up after %u retries: %s\n",
            (const char *)key.data, retries, wq_strerror(why));
}

/* The server was away for longer than the lease, for example. */
static void
report_lost(void *ctx, const wq_item *item)
{
    (void)ctx;
    fprintf(stderr, "%s: lost; another worker may have it\n",
            (const char *)item->key.data);
}

/* Stops when the hold is lost: the result does not count then. */
static wq_result
work(void *q, const wq_item *item)
{
    const char   *name = item->key.data;
    FILE         *file = fopen(name, "r");
    char          block[4096];
    unsigned long bytes = 0;
    size_t        n;

    if (!file)
        return wq_result_retry();
    while (wq_hold_left(q, item) > 0 &&
           (n = fread(block, 1, sizeof block, file)) > 0)
        bytes += n;
    const bool ok = feof(file) && wq_hold_left(q, item) > 0;
    (void)fclose(file);
    if (!ok || printf("%s: %lu bytes\n", name, bytes) < 0 || fflush(stdout))
        return wq_result_retry();
    return wq_result_done();
}

int
main(int argc, char **argv)
{
    sigset_t    term;
    wq_queue   *q;
    wq_workers *pool;
    int         signum;

    (void)sigemptyset(&term); /* before threads start: they inherit the mask */
    (void)sigaddset(&term, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &term, NULL);
    if (wq_redis_open(argc > 1 ? argv[1] : "redis://localhost",
                      WQ_REDIS_OPTIONS(.on_warning = warn),
                      WQ_CONFIG(.limiter = wq_limiter_exponential(
                                    WQ_MS(100), WQ_SECONDS(60)),
                                .max_retries = 5),
                      &q)) {
        fprintf(stderr, "machines: %s\n", wq_last_error());
        return 1;
    }
    if (wq_workers_start(q,
                         WQ_WORKERS(.threads = 4, .handler = work, .ctx = q,
                                    .on_drop = give_up, .on_lost = report_lost),
                         &pool)) {
        fprintf(stderr, "machines: %s\n", wq_last_error());
        wq_destroy(q);
        return 1;
    }
    (void)sigwait(&term, &signum);
    if (wq_workers_stop_within(pool, WQ_SECONDS(20)))
        _exit(1); /* a handler hangs: its key is READY after the lease */
    wq_workers_destroy(pool);
    wq_destroy(q);
    return 0;
}
