/* SPDX-License-Identifier: MIT */
/* cycles.c: how many calls of its threads does a shared queue serve by one call
 * of the store?
 *
 * Each thread adds a key and gets a key (wq_next_with()) in turn: two calls and
 * three operations. The store takes 100 us for each of its calls.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "bench.h"
#include "measure.h"
#include "shared/shared.h"
#include "slow_engine.h"

enum {
    CALL_NS = 100000,
    SPAN_NS = 300000000, /* of a measurement */
    TIMES = 100000,      /* so many cycles of a thread are timed */
    MOST_THREADS = 64,
};

/* ---- threads ------------------------------------------------------------- */

struct crew {
    wq_queue          *queue;
    size_t             number;
    pthread_barrier_t *start;
    atomic_bool       *stop;
    size_t             n;  /* out: cycles */
    float             *ns; /* out: what each took; owned */
};

static void *
cycle(void *arg)
{
    struct crew *c = arg;
    wq_item     *item = NULL;
    char         text[KEY_LEN + 1];
    const wq_key key = {text, KEY_LEN};

    (void)prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
    pthread_barrier_wait(c->start);
    while (!atomic_load_explicit(c->stop, memory_order_relaxed)) {
        const double begin = bench_now_ns();
        bench_write_key(text, c->number * 1000000000 + c->n);
        must(!wq_add(c->queue, key), "wq_add");
        must(!wq_next_with(c->queue, wq_result_done(), WQ_FOREVER, &item),
             "wq_next_with");
        if (c->n < TIMES)
            c->ns[c->n] = (float)(bench_now_ns() - begin);
        c->n++;
    }
    if (item)
        must(!wq_done(c->queue, item), "wq_done");
    return NULL;
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
read_times(const struct crew *crews, size_t threads, size_t cycles,
           struct measured *m)
{
    float *all = malloc(cycles * sizeof *all);
    size_t n = 0;

    if (!all) {
        must(false, "malloc");
        return;
    }
    for (size_t i = 0; i < threads; i++)
        for (size_t k = 0; k < crews[i].n && k < TIMES; k++)
            all[n++] = crews[i].ns[k];
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
    pthread_barrier_t  start;
    atomic_bool        stop = false;
    pthread_t          ids[MOST_THREADS];
    static struct crew crews[MOST_THREADS];
    size_t             cycles = 0;

    s->gathers = gathers;
    must(!pthread_barrier_init(&start, NULL, (unsigned)threads + 1),
         "pthread_barrier_init");
    for (size_t i = 0; i < threads; i++) {
        crews[i] = (struct crew){.queue = q,
                                 .number = i,
                                 .start = &start,
                                 .stop = &stop,
                                 .ns = malloc(TIMES * sizeof(float))};
        must(crews[i].ns != NULL, "malloc");
        must(!pthread_create(&ids[i], NULL, cycle, &crews[i]),
             "pthread_create");
    }
    pthread_barrier_wait(&start);
    const double begin = bench_now_ns();
    bench_sleep_ns(shared_quick ? SPAN_NS / 20 : SPAN_NS);
    atomic_store(&stop, true);
    for (size_t i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        cycles += crews[i].n;
    }
    const double took = bench_now_ns() - begin;

    struct measured m = {
        .per_second = (double)cycles * 1e9 / took,
        .calls = (double)(2 * cycles + threads) / (double)s->batches,
        .operations = (double)s->operations / (double)s->batches,
    };
    read_times(crews, threads, cycles, &m);
    for (size_t i = 0; i < threads; i++)
        free(crews[i].ns);
    pthread_barrier_destroy(&start);
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
