/* SPDX-License-Identifier: MIT */
/* processes.c: is a file fair to the processes that use it?
 *
 * Four processes add and get (wq_next_with()) as fast as they can. How many keys
 * has each of them got after two seconds, and how long did a cycle take?
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "measure.h"

enum { PROCESSES = 4, TIMES = 200000 };

/* Shared by all of them. */
struct arena {
    _Atomic unsigned ready;
    _Atomic bool     start, stop;
    struct {
        size_t n;         /* cycles */
        double ns[TIMES]; /* of the first ones */
    } each[PROCESSES];
};

static void
run_process(struct arena *a, size_t number, const char *path)
{
    wq_queue *q = files_open(path, WQ_SQLITE_SYNC_LAZY);
    wq_item  *item = NULL;
    char      text[KEY_LEN + 1];
    size_t    n = 0;

    a->ready++;
    while (!a->start)
        bench_sleep_ns(100000);
    while (!atomic_load_explicit(&a->stop, memory_order_relaxed)) {
        const double begin = bench_now_ns();
        bench_write_key(text, number * 1000000000 + n);
        must_ok(wq_add(q, (wq_key){text, KEY_LEN}), "wq_add");
        must_ok(wq_next_with(q, wq_result_done(), WQ_FOREVER, &item),
                "wq_next_with");
        if (n < TIMES)
            a->each[number].ns[n] = bench_now_ns() - begin;
        n++;
    }
    a->each[number].n = n;
    must_ok(wq_done(q, item), "wq_done");
    wq_destroy(q);
    _exit(0);
}

static void
start_processes(struct arena *a, const char *path, pid_t ids[PROCESSES])
{
    (void)fflush(stdout);
    for (size_t i = 0; i < PROCESSES; i++) {
        ids[i] = fork();
        must(ids[i] >= 0, "fork");
        if (ids[i] == 0)
            run_process(a, i, path);
    }
    while (a->ready < PROCESSES) {
        must(waitpid(-1, NULL, WNOHANG) == 0, "one of the processes");
        bench_sleep_ns(1000000);
    }
}

static void
run(struct arena *a, const char *path)
{
    pid_t ids[PROCESSES];
    int   status = -1;

    a->ready = 0;
    a->start = a->stop = false;
    start_processes(a, path, ids);
    a->start = true;
    bench_sleep_ns((int64_t)(span_ns() * 7));
    a->stop = true;
    for (size_t i = 0; i < PROCESSES; i++)
        must(waitpid(ids[i], &status, 0) == ids[i] && status == 0,
             "one of the processes");
}

/* ---- figures --------------------------------------------------------------- */

enum figure { RATE, FAIRNESS, P50, P99, MAX, MAX_TO_P99, FIGURES };

static int
ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void
read_times(const struct arena *a, double *all, double out[FIGURES])
{
    size_t n = 0;

    for (size_t i = 0; i < PROCESSES; i++)
        for (size_t k = 0; k < a->each[i].n && k < TIMES; k++)
            all[n++] = a->each[i].ns[k];
    must(n > 0, "cycles of several processes");
    qsort(all, n, sizeof *all, ascending);
    out[P50] = all[n / 2] / 1e6;
    out[P99] = all[n * 99 / 100] / 1e6;
    out[MAX] = all[n - 1] / 1e6;
    out[MAX_TO_P99] = out[MAX] / out[P99];
}

static void
read_figures(const struct arena *a, double *all, double out[FIGURES])
{
    size_t least = a->each[0].n, most = least, sum = 0;

    for (size_t i = 0; i < PROCESSES; i++) {
        const size_t n = a->each[i].n;
        least = n < least ? n : least;
        most = n > most ? n : most;
        sum += n;
    }
    out[RATE] = (double)sum * 1e9 / (span_ns() * 7);
    out[FAIRNESS] = (double)least / (double)most;
    read_times(a, all, out);
}

void
processes_print(size_t rounds)
{
    static double figures[FIGURES][MOST_ROUNDS];
    double        out[FIGURES];
    struct arena *a = mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double       *all = malloc(PROCESSES * TIMES * sizeof *all);

    must(a != MAP_FAILED && all, "memory for times");
    for (size_t i = 0; i < rounds; i++) {
        const char *path = files_new();
        run(a, path);
        read_figures(a, all, out);
        for (size_t f = 0; f < FIGURES; f++)
            figures[f][i] = out[f];
        files_delete(path);
    }
    for (size_t f = 0; f < FIGURES; f++)
        out[f] = bench_median(figures[f], rounds);
    printf("\n### Processes\n\n| %d processes, sync=lazy | |\n|---|--:|\n"
           "| keys/s of all | %.0f |\n| least / most served | %.2f |\n"
           "| cycle p50, ms | %.2f |\n| p99, ms | %.2f |\n"
           "| longest, ms | %.1f |\n",
           PROCESSES, out[RATE], out[FAIRNESS], out[P50], out[P99], out[MAX]);
    demand_at_least(0.7, out[FAIRNESS], "", "4 processes: least / most served");
    demand_at_most(10, out[MAX_TO_P99], "x",
                   "4 processes: longest cycle vs p99");
    (void)munmap(a, sizeof *a);
    free(all);
}
