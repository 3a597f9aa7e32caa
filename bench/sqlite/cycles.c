/* SPDX-License-Identifier: MIT */
/* cycles.c: how many keys go through a file in a second, with 1, 8 and 64
 * threads?
 *
 * Each thread adds a key of its own, gets a key, any, and finishes it: with
 * wq_get() and wq_done(), three calls, or with wq_next_with(), two.
 */
#include <stdio.h>

#include "bench.h"
#include "crew.h"
#include "measure.h"
#include "shared/shared.h"

/* In the order in which the tables show them. */
static const wq_sqlite_sync syncs[SYNCS] = {
    WQ_SQLITE_SYNC_LAZY, WQ_SQLITE_SYNC_ADDS, WQ_SQLITE_SYNC_ALL};

enum how { GET_DONE, NEXT, HOWS };
enum figure { RATE, CPU_US, OPERATIONS, FIGURES };

static double figures[SYNCS][HOWS][THREAD_COUNTS][FIGURES][MOST_ROUNDS];

/* ---- threads --------------------------------------------------------------- */

static void
measure(wq_sqlite_sync sync, enum how how, size_t threads, double out[FIGURES])
{
    const char        *path = files_new();
    wq_queue          *q = files_open(path, sync);
    struct wq__shared *s = wq__shared_of(q);
    const uint64_t     batches = s->batches, operations = s->operations;
    double             took_ns;
    const double       cpu = cpu_ns();
    struct crew        crew = {.threads = threads,
                               .cycle =
                            how == NEXT ? cycle_with_next : cycle_with_get};
    const double       n = (double)crew_run(&crew, q, span_ns(), &took_ns);

    out[RATE] = n * 1e9 / took_ns;
    out[CPU_US] = (cpu_ns() - cpu) / n / 1000;
    out[OPERATIONS] =
        (double)(s->operations - operations) / (double)(s->batches - batches);
    must(wq_len(q) == 0, "number of keys handed out");
    wq_destroy(q);
    files_delete(path);
}

void
cycles_run(wq_sqlite_sync sync, size_t n)
{
    const char   *path = files_new();
    wq_queue     *q = files_open(path, sync);
    struct member m = {.queue = q};
    char          text[KEY_LEN + 1];

    for (size_t i = 0; i < n; i++) {
        bench_write_key(text, i);
        cycle_with_next(&m, (wq_key){text, KEY_LEN});
    }
    must_ok(wq_done(q, m.item), "wq_done");
    wq_destroy(q);
}

/* ---- tables ---------------------------------------------------------------- */

void
cycles_measure(size_t round)
{
    double out[FIGURES];

    for (size_t t = 0; t < THREAD_COUNTS; t++)
        for (size_t how = 0; how < HOWS; how++)
            for (size_t s = 0; s < SYNCS; s++) {
                measure(syncs[s], (enum how)how, thread_counts[t], out);
                for (size_t f = 0; f < FIGURES; f++)
                    figures[s][how][t][f][round] = out[f];
            }
}

/* Medians replace the figures of the first round. */
static void
find_medians(size_t rounds)
{
    for (size_t s = 0; s < SYNCS; s++)
        for (size_t how = 0; how < HOWS; how++)
            for (size_t t = 0; t < THREAD_COUNTS; t++)
                for (size_t f = 0; f < FIGURES; f++)
                    figures[s][how][t][f][0] =
                        bench_median(figures[s][how][t][f], rounds);
}

static double
rate(size_t sync, size_t how, size_t t)
{
    return figures[sync][how][t][RATE][0];
}

double
cycles_rate(wq_sqlite_sync sync, size_t threads)
{
    for (size_t s = 0; s < SYNCS; s++)
        for (size_t t = 0; t < THREAD_COUNTS; t++)
            if (syncs[s] == sync && thread_counts[t] == threads)
                return rate(s, GET_DONE, t);
    return 0;
}

static void
demand(void)
{
    static const char *const names[] = {"add, get, done", "add, next"};

    for (size_t how = 0; how < HOWS; how++) {
        demand_at_least(3.5, rate(0, how, 2) / rate(0, how, 0), "x",
                        "lazy, 64 threads vs 1: %s", names[how]);
        demand_at_least(12, rate(2, how, 2) / rate(2, how, 0), "x",
                        "all, 64 threads vs 1: %s", names[how]);
    }
}

void
cycles_print(size_t rounds)
{
    find_medians(rounds);
    puts("\n### Threads\n\n"
         "| cycle | sync | threads | keys/s | of one thread | us/key | CPU "
         "us/key | operations/batch |\n|---|---|--:|--:|--:|--:|--:|--:|");
    for (size_t how = 0; how < HOWS; how++)
        for (size_t s = 0; s < SYNCS; s++)
            for (size_t t = 0; t < THREAD_COUNTS; t++)
                printf("| %s | %s | %zu | %.0f | %.1f | %.1f | %.1f | %.1f |\n",
                       how == NEXT ? "add, next" : "add, get, done",
                       sync_name(syncs[s]), thread_counts[t], rate(s, how, t),
                       rate(s, how, t) / rate(s, how, 0), 1e6 / rate(s, how, t),
                       figures[s][how][t][CPU_US][0],
                       figures[s][how][t][OPERATIONS][0]);
    demand();
}
