/* SPDX-License-Identifier: MIT */
/* recipe_two.c: how do two programs share a queue? It is in a file that both
 * open.
 *
 *     recipe_two add FILE KEY...    adds keys
 *     recipe_two work FILE          works on keys until SIGTERM
 *     recipe_two                    does both, in processes of their own
 */
#define _XOPEN_SOURCE 700 /* mkdtemp() */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <wq/sqlite.h>
#include <wq/workers.h>

/* begin: open */
static wq_queue *
open_queue(const char *file)
{
    wq_queue *q;

    if (wq_sqlite_open(file, NULL, NULL, &q)) {
        fprintf(stderr, "%s\n", wq_last_error());
        exit(1);
    }
    return q;
}
/* end: open */

/* begin: add */
/* The first program. When it has ended, its keys are in the file. */
static int
add(wq_queue *q, char **keys)
{
    wq_err err = WQ_OK;

    for (; *keys && !err; keys++)
        err = wq_add_str(q, *keys);
    if (err)
        fprintf(stderr, "%s\n", wq_strerror(err));
    wq_destroy(q);
    return err ? 1 : 0;
}
/* end: add */

/* begin: work */
static wq_result
handle(void *ctx, const wq_item *item)
{
    (void)ctx;
    printf("%s\n", (const char *)item->key.data);
    return wq_result_done();
}

/* The second program, as often as you like. At SIGTERM it finishes the keys
 * that it holds; all others stay in the file, for other workers. */
static int
work(wq_queue *q)
{
    sigset_t    term;
    wq_workers *pool;
    int         signum;

    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &term, NULL);
    if (wq_workers_start(q, WQ_WORKERS(.threads = 2, .handler = handle),
                         &pool)) {
        fprintf(stderr, "%s\n", wq_last_error());
        return 1;
    }
    (void)sigwait(&term, &signum);
    if (wq_workers_stop_within(pool, WQ_SECONDS(20)))
        _exit(1); /* the keys become READY for other workers */
    wq_workers_destroy(pool);
    wq_destroy(q);
    return 0;
}
/* end: work */

/* ---- both ---------------------------------------------------------------- */

static pid_t
start_adding(const char *file)
{
    const pid_t pid = fork();

    if (pid == 0) {
        (void)execl("/proc/self/exe", "recipe_two", "add", file, "mail/1",
                    "mail/2", (char *)NULL);
        _exit(1);
    }
    return pid;
}

static pid_t
start_working(const char *file)
{
    const pid_t pid = fork();

    if (pid == 0) {
        (void)execl("/proc/self/exe", "recipe_two", "work", file, (char *)NULL);
        _exit(1);
    }
    return pid;
}

static bool
has_succeeded(pid_t pid)
{
    int status;

    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

static int
both(void)
{
    char directory[] = "/tmp/wq-two-XXXXXX";
    char file[64];

    if (!mkdtemp(directory))
        return 1;
    (void)snprintf(file, sizeof file, "%s/queue.db", directory);
    bool good = has_succeeded(start_adding(file));
    /* The worker blocks SIGTERM only once it has opened the queue: wait until
     * it has worked. */
    const pid_t worker = start_working(file);
    wq_queue   *q = open_queue(file);
    good = good && wq_wait_idle(q, WQ_SECONDS(60)) == WQ_OK;
    wq_destroy(q);
    (void)kill(worker, SIGTERM);
    good = has_succeeded(worker) && good;
    if (!good)
        return 1;
    (void)execlp("rm", "rm", "-rf", directory, (char *)NULL); /* returns 0 */
    return 1;
}

int
main(int argc, char **argv)
{
    if (argc == 1)
        return both();
    if (argc > 3 && strcmp(argv[1], "add") == 0)
        return add(open_queue(argv[2]), argv + 3);
    if (argc == 3 && strcmp(argv[1], "work") == 0)
        return work(open_queue(argv[2]));
    fprintf(stderr, "usage: recipe_two [add FILE KEY... | work FILE]\n");
    return 2;
}
