/* SPDX-License-Identifier: MIT */
/* cycles.c: how many calls of its threads does a shared queue serve by one call
 * of the store?
 *
 * Each thread adds a key and gets a key (wq_next_with()) in turn: two calls and
 * three operations. The store takes 100 us for each of its calls.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "bench.h"
#include "crew.h"
#include "measure.h"
#include "shared/shared.h"
#include "slow_engine.h"

enum {
    CALL_NS = 100000,
    SPAN_NS = 300000000, /* of a measurement */
    TIMES = 100000,      /* so many cycles of a thread are timed */
};

/* ---- threads ------------------------------------------------------------- */

static void
sleep_precisely(void)
{
    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
}

static void
cycle(struct member *m, wq_key key)
{
    float       *ns = m->own; /* what each cycle took */
    const double begin = bench_now_ns();

    must(!wq_add(m->queue, key), "wq_add");
    must(!wq_next_with(m->queue, wq_result_done(), WQ_FOREVER, &m->item),
         "wq_next_with");
    if (m->n < TIMES)
        ns[m->n] = (float)(bench_now_ns() - begin);
}

struct measured {
    double per_second;     /* cycles */
    double calls;          /* of the queue, for each batch */
    double operations;     /* for each batch */
    double p50_us, p99_us; /* how long a cycle takes */
};

static int
ascending(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static void
read_times(const struct crew *crew, size_t cycles, struct measured *m)
{
    float *all = malloc(cycles * sizeof *all);
    size_t n = 0;

    if (!all) {
        must(false, "malloc");
        return;
    }
    for (size_t i = 0; i < crew->threads; i++)
        for (size_t k = 0; k < crew->members[i].n && k < TIMES; k++)
            all[n++] = ((const float *)crew->members[i].own)[k];
    qsort(all, n, sizeof *all, ascending);
    m->p50_us = (double)all[n / 2] / 1000;
    m->p99_us = (double)all[n * 99 / 100] / 1000;
    free(all);
}

static struct measured
run(enum slow_how how, bool gathers, size_t threads)
{
    wq_queue          *q = slow_queue_open(how, CALL_NS);
    struct wq__shared *s = wq__shared_of(q);
    struct crew        crew = {
               .threads = threads, .begin = sleep_precisely, .cycle = cycle};
    double took;

    s->gathers = gathers;
    for (size_t i = 0; i < threads; i++) {
        crew.members[i].own = malloc(TIMES * sizeof(float));
        must(crew.members[i].own != NULL, "malloc");
    }
    const size_t cycles =
        crew_run(&crew, q, shared_quick ? SPAN_NS / 20 : SPAN_NS, &took);

    struct measured m = {
        .per_second = (double)cycles * 1e9 / took,
        .calls = (double)(2 * cycles + threads) / (double)s->batches,
        .operations = (double)s->operations / (double)s->batches,
    };
    read_times(&crew, cycles, &m);
    for (size_t i = 0; i < threads; i++)
        free(crew.members[i].own);
    must(wq_len(q) == 0, "number of keys handed out");
    wq_destroy(q);
    return m;
}

/* ---- tables -------------------------------------------------------------- */

static const size_t thread_counts[] = {1, 2, 8, 64};
enum { COUNTS = 4, FIGURES = 5 };

static double figures[2][2][COUNTS][FIGURES][MOST_ROUNDS];

void
cycles_measure(size_t round)
{
    for (int how = 0; how < 2; how++)
        for (int gathers = 0; gathers < 2; gathers++)
            for (size_t c = 0; c < COUNTS; c++) {
                const struct measured m =
                    run((enum slow_how)how, gathers, thread_counts[c]);
                double(*f)[MOST_ROUNDS] = figures[how][gathers][c];
                f[0][round] = m.per_second;
                f[1][round] = m.calls;
                f[2][round] = m.operations;
                f[3][round] = m.p50_us;
                f[4][round] = m.p99_us;
            }
}

void
cycles_print(size_t rounds)
{
    puts("| store | gather | threads | cycles/s | of one thread | calls/batch "
         "| operations/batch | cycle p50, us | p99, us |\n"
         "|---|---|--:|--:|--:|--:|--:|--:|--:|");
    for (int how = 0; how < 2; how++)
        for (int gathers = 1; gathers >= 0; gathers--) {
            double one = 0;
            for (size_t c = 0; c < COUNTS; c++) {
                double(*f)[MOST_ROUNDS] = figures[how][gathers][c];
                const double per_second = bench_median(f[0], rounds);
                if (c == 0)
                    one = per_second;
                printf("| %s | %s | %zu | %.0f | %.1f | %.1f | %.1f | %.0f | "
                       "%.0f |\n",
                       how == SLOW_SLEEPS ? "sleeps" : "spins",
                       gathers ? "yes" : "no", thread_counts[c], per_second,
                       per_second / one, bench_median(f[1], rounds),
                       bench_median(f[2], rounds), bench_median(f[3], rounds),
                       bench_median(f[4], rounds));
            }
        }
}
