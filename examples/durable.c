/* SPDX-License-Identifier: MIT */
/* durable.c: a queue in a file survives its processes.
 *
 * Two producers and three workers, each a process of its own, share a queue in a
 * file. In the middle all of them are killed (kill -9), in whatever they are
 * doing. Then other workers are started. At the end every key whose add was
 * acknowledged has been worked on.
 *
 *     durable [KEYS]
 */
#define _XOPEN_SOURCE 700 /* nftw() */
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <wq/sqlite.h>

enum { PRODUCERS = 2, WORKERS = 3, PROCESSES = PRODUCERS + WORKERS };

static char directory[] = "/tmp/wq-durable-XXXXXX";
static int  keys = 2000; /* of each producer */

static const char *
path_of(const char *name)
{
    static char path[256];

    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

/* Every process opens the queue for itself. */
static wq_queue *
open_queue(void)
{
    wq_queue *q = NULL;

    if (wq_sqlite_open(path_of("queue.db"), NULL, NULL, &q)) {
        fprintf(stderr, "durable: %s\n", wq_last_error());
        exit(1);
    }
    return q;
}

/* One write() per line: lines of several processes do not mix. */
static void
note(int log, int number)
{
    char         line[16];
    const size_t n = (size_t)snprintf(line, sizeof line, "%d\n", number);

    if (write(log, line, n) != (ssize_t)n)
        exit(1);
}

static int
open_log(const char *name)
{
    const int log = open(path_of(name), O_WRONLY | O_CREAT | O_APPEND, 0600);

    if (log < 0)
        exit(1);
    return log;
}

static void
pass_millisecond(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---- the processes ------------------------------------------------------- */

/* Add the keys from `first` on; note those whose add was acknowledged. */
static void
produce(int first)
{
    wq_queue *q = open_queue();
    const int added = open_log("added");
    char      key[32];

    for (int i = first; i < first + keys; i++) {
        (void)snprintf(key, sizeof key, "order/%d", i);
        if (wq_add_str(q, key) == WQ_OK)
            note(added, i);
    }
    wq_destroy(q);
    exit(0);
}

/* Work on keys, a millisecond each, until the parent ends the process. */
static void
work(void)
{
    wq_queue *q = open_queue();
    const int done = open_log("done");
    wq_item  *item;

    while (wq_get(q, &item) == WQ_OK) {
        pass_millisecond();
        note(done, atoi((const char *)item->key.data + strlen("order/")));
        if (wq_finish(q, item, wq_result_done()))
            exit(1);
    }
    exit(0);
}

static void
start(pid_t pids[PROCESSES], bool producers)
{
    (void)fflush(stdout);
    for (int i = producers ? 0 : PRODUCERS; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0 && i < PRODUCERS)
            produce(i * keys);
        if (pids[i] == 0)
            work();
    }
}

static void
kill_all(pid_t pids[PROCESSES])
{
    for (int i = 0; i < PROCESSES; i++)
        if (pids[i] > 0)
            (void)kill(pids[i], SIGKILL);
    for (int i = 0; i < PROCESSES; i++)
        if (pids[i] > 0)
            (void)waitpid(pids[i], NULL, 0);
    memset(pids, 0, PROCESSES * sizeof *pids);
}

/* ---- the proof ----------------------------------------------------------- */

/* Mark the numbers of a log; returns how many lines it has. */
static int
read_log(const char *name, char *seen)
{
    int   n = 0, number;
    FILE *log = fopen(path_of(name), "r");

    while (log && fscanf(log, "%d", &number) == 1) {
        seen[number] = 1;
        n++;
    }
    if (log)
        (void)fclose(log);
    return n;
}

static int
count_lost(int *added, int *runs)
{
    const size_t n = (size_t)PRODUCERS * (size_t)keys;
    char        *acknowledged = calloc(n, 1), *done = calloc(n, 1);
    int          lost = 0;

    if (!acknowledged || !done)
        exit(1);
    (void)read_log("added", acknowledged);
    *runs = read_log("done", done);
    *added = 0;
    for (size_t i = 0; i < n; i++) {
        *added += acknowledged[i];
        lost += acknowledged[i] && !done[i];
    }
    free(acknowledged);
    free(done);
    return lost;
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void
finish_all(void)
{
    wq_queue *q = open_queue();

    if (wq_wait_idle(q, WQ_SECONDS(60)))
        fprintf(stderr, "durable: %s\n", wq_last_error());
    wq_destroy(q);
}

int
main(int argc, char **argv)
{
    pid_t pids[PROCESSES] = {0};
    int   added, runs;

    if (argc > 1)
        keys = atoi(argv[1]);
    if (keys < 1 || !mkdtemp(directory))
        return 1;

    printf("%d processes add keys, %d run them; kill -9 ends all of them in "
           "the middle\n",
           PRODUCERS, WORKERS);
    start(pids, true);
    while (count_lost(&added, &runs), added < keys) /* half of them */
        pass_millisecond();
    kill_all(pids);
    const int left = count_lost(&added, &runs);
    printf("killed all processes: %d keys were added, %d of them ran, %d are "
           "left\n",
           added, added - left, left);

    start(pids, false);
    finish_all();
    kill_all(pids);
    const int lost = count_lost(&added, &runs);
    printf("started workers again: %d runs in all; keys whose workers were "
           "killed ran again\nlost: %d of %d keys\n",
           runs, lost, added);
    (void)nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return lost == 0 && added >= keys ? 0 : 1;
}
