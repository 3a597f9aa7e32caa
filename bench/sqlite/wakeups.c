/* SPDX-License-Identifier: MIT */
/* wakeups.c: how soon does another process have a key, and what does one cost
 * that waits?
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "measure.h"

enum { TIMES = 400 };

/* How long the other process sleeps before the next key comes. */
#define REST_NS INT64_C(2000000)

/* Shared by both processes. */
struct arena {
    _Atomic size_t got;             /* keys so far */
    double         added_ns[TIMES]; /* when wq_add() was called */
    double         got_ns[TIMES];   /* when wq_get() had returned */
};

/* ---- another process ------------------------------------------------------- */

static void
receive(struct arena *a, const char *path, wq_sqlite_sync sync, size_t n)
{
    wq_queue *q = files_open(path, sync);
    wq_item  *item;

    for (size_t i = 0; i < n; i++) {
        must_ok(wq_get(q, &item), "wq_get");
        a->got_ns[i] = bench_now_ns();
        must_ok(wq_done(q, item), "wq_done");
        a->got = i + 1;
    }
    wq_destroy(q);
    _exit(0);
}

static void
send(struct arena *a, wq_queue *q, pid_t receiver, size_t n, double *call_ns)
{
    char text[KEY_LEN + 1];

    for (size_t i = 0; i < n; i++) {
        bench_sleep_ns(REST_NS);
        bench_write_key(text, i);
        a->added_ns[i] = bench_now_ns();
        must_ok(wq_add(q, (wq_key){text, KEY_LEN}), "wq_add");
        call_ns[i] = bench_now_ns() - a->added_ns[i];
        while (a->got <= i) {
            must(i + 1 == n || waitpid(receiver, NULL, WNOHANG) == 0,
                 "process that gets keys");
            bench_sleep_ns(50000);
        }
    }
}

static int
ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void
measure_wakeups(struct arena *a, wq_sqlite_sync sync)
{
    static double call_ns[TIMES], way_ns[TIMES];
    const size_t  n = scaled(TIMES);
    const char   *path = files_new();
    int           status = -1;

    a->got = 0;
    (void)fflush(stdout);
    const pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0)
        receive(a, path, sync, n);
    wq_queue *q = files_open(path, sync);
    send(a, q, child, n, call_ns);
    must(waitpid(child, &status, 0) == child && status == 0,
         "process that gets keys");
    wq_destroy(q);
    files_delete(path);
    for (size_t i = 0; i < n; i++)
        way_ns[i] = a->got_ns[i] - a->added_ns[i];
    qsort(call_ns, n, sizeof *call_ns, ascending);
    qsort(way_ns, n, sizeof *way_ns, ascending);
    printf("| %s | %.0f | %.0f | %.0f | %.0f |\n", sync_name(sync),
           call_ns[n / 2] / 1000, call_ns[n * 9 / 10] / 1000,
           way_ns[n / 2] / 1000, way_ns[n * 9 / 10] / 1000);
}

void
wakeups_print(size_t rounds)
{
    struct arena *a = mmap(NULL, sizeof *a, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)rounds; /* there are enough wake-ups in one */
    must(a != MAP_FAILED, "mmap");
    puts("\n### Wake-ups\n\n"
         "| sync | add call p50, us | p90 | from the call of add until the get "
         "of another process returns: p50, us | p90 |\n"
         "|---|--:|--:|--:|--:|");
    measure_wakeups(a, WQ_SQLITE_SYNC_LAZY);
    measure_wakeups(a, WQ_SQLITE_SYNC_ADDS);
    (void)munmap(a, sizeof *a);
}

/* ---- idle ------------------------------------------------------------------ */

void
idle_print(size_t rounds)
{
    const char *path = files_new();
    wq_queue   *q = files_open(path, WQ_SQLITE_SYNC_ADDS);

    (void)rounds;
    print_idle(q);
    wq_destroy(q);
    files_delete(path);
}
