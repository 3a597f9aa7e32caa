/* SPDX-License-Identifier: MIT */
/* bench.c: how long does a key take, here and in the obvious version?
 *
 *     wq_bench [--rounds N] [--quick]
 *     wq_bench --timers          how late are delayed keys? See timers.c
 *     wq_bench --features        what do features cost? See features.c
 *
 * Every row runs on every side in turn, round after round, so that whatever
 * else the machine does hits all sides alike. Printed: the median in ns per key
 * with the smallest and largest in brackets, and the ratio of the medians,
 * which is what survives a change of machine. --quick shrinks the counts to
 * prove that the program works; its figures mean nothing.
 */
#include "bench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { KEY_LEN = 31, MOST_ROUNDS = 101, MOST_THREADS = 8 };

static const struct side *const sides[] = {&side_wq, &side_naive};
enum { SIDES = sizeof sides / sizeof sides[0] };

static char (*keys)[KEY_LEN + 1];
static size_t million = 1000000;

void
must(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "wq_bench: %s failed; no figure is valid\n", what);
    exit(1);
}

wq_key
bench_key(size_t i)
{
    return (wq_key){keys[i], KEY_LEN};
}

static void
make_keys(size_t n)
{
    keys = malloc(n * sizeof *keys);
    must(keys != NULL, "malloc");
    for (size_t i = 0; i < n; i++)
        (void)snprintf(keys[i], sizeof keys[i], "namespace-%04u/pod-%012u",
                       (unsigned)(i % 1000), (unsigned)(i % 1000000000));
}

double
bench_now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- rows: each returns ns per key -------------------------------------- */

static void
get_and_done(const struct side *s, void *q)
{
    void *item;
    must(s->get(q, &item), "get");
    s->done(q, item);
}

/* add, get and done by one thread, `n` different keys in turn */
static double
cycle(const struct side *s, size_t n)
{
    const size_t total = million;
    void        *q = s->create();

    const double begin = bench_now_ns();
    for (size_t i = 0; i < total; i++) {
        s->add(q, bench_key(i % n));
        get_and_done(s, q);
    }
    const double took = bench_now_ns() - begin;
    s->destroy(q);
    return took / (double)total;
}

/* add `n` keys, then get and done them all; small ones several times over */
static double
fill_and_drain(const struct side *s, size_t n)
{
    const size_t laps = n < 100000 ? 100000 / n : 1;
    void        *q = s->create();

    const double begin = bench_now_ns();
    for (size_t lap = 0; lap < laps; lap++) {
        for (size_t i = 0; i < n; i++)
            s->add(q, bench_key(i));
        for (size_t i = 0; i < n; i++)
            get_and_done(s, q);
    }
    const double took = bench_now_ns() - begin;
    s->destroy(q);
    return took / (double)(n * laps);
}

/* add keys that are READY already, `n` of them, in scattered order */
static double
duplicate_add(const struct side *s, size_t n)
{
    const size_t total = million;
    void        *q = s->create();

    for (size_t i = 0; i < n; i++)
        s->add(q, bench_key(i));
    const double begin = bench_now_ns();
    for (size_t i = 0; i < total; i++)
        s->add(q, bench_key(i * 7919 % n));
    const double took = bench_now_ns() - begin;
    s->destroy(q);
    return took / (double)total;
}

struct crew {
    const struct side *side;
    void              *queue;
    size_t             from, to; /* a producer's keys */
    size_t             got;      /* a consumer's count */
};

static void *
produce(void *arg)
{
    struct crew *c = arg;
    for (size_t i = c->from; i < c->to; i++)
        c->side->add(c->queue, bench_key(i));
    return NULL;
}

static void *
consume(void *arg)
{
    struct crew *c = arg;
    for (void *item; c->side->get(c->queue, &item); c->got++)
        c->side->done(c->queue, item);
    return NULL;
}

/* `n` producers and `n` consumers, every key different */
static double
crowd(const struct side *s, size_t n)
{
    const size_t each = million / n;
    pthread_t    threads[2 * MOST_THREADS];
    struct crew  crews[2 * MOST_THREADS];
    void        *q = s->create();
    size_t       got = 0;

    const double begin = bench_now_ns();
    for (size_t i = 0; i < 2 * n; i++) {
        const size_t p = i % n;
        crews[i] = (struct crew){s, q, p * each, (p + 1) * each, 0};
        must(!pthread_create(&threads[i], NULL, i < n ? consume : produce,
                             &crews[i]),
             "pthread_create");
    }
    for (size_t i = n; i < 2 * n; i++)
        pthread_join(threads[i], NULL);
    s->shutdown(q);
    for (size_t i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        got += crews[i].got;
    }
    const double took = bench_now_ns() - begin;
    must(got == each * n, "counting what came out");
    s->destroy(q);
    return took / (double)got;
}

/* ---- rounds, medians, table --------------------------------------------- */

static const struct row {
    const char *name;
    double (*run)(const struct side *s, size_t n);
    size_t n; /* 0: a million */
} rows[] = {
    {"add, get, done by one thread, 1 k keys", cycle, 1000},
    {"fill 1 k keys, then drain", fill_and_drain, 1000},
    {"fill 100 k keys, then drain", fill_and_drain, 100000},
    {"fill 1 M keys, then drain", fill_and_drain, 0},
    {"duplicate add, 1 k pending", duplicate_add, 1000},
    {"duplicate add, 1 M pending", duplicate_add, 0},
    {"1 producer x 1 consumer, 1 M keys", crowd, 1},
    {"2 x 2", crowd, 2},
    {"4 x 4", crowd, 4},
    {"8 x 8", crowd, 8},
};
enum { ROWS = sizeof rows / sizeof rows[0] };

static double figures[ROWS][SIDES][MOST_ROUNDS];

static int
ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double
bench_median(double *figures_of_one, size_t n)
{
    qsort(figures_of_one, n, sizeof *figures_of_one, ascending);
    return figures_of_one[n / 2];
}

static void
print_row(size_t r, size_t rounds)
{
    double medians[SIDES];

    printf("| %-38s |", rows[r].name);
    for (size_t s = 0; s < SIDES; s++) {
        double *f = figures[r][s];
        medians[s] = bench_median(f, rounds);
        printf(" %6.0f [%.0f..%.0f] |", medians[s], f[0], f[rounds - 1]);
    }
    printf(" %5.2f |\n", medians[1] / medians[0]);
}

static void
run_round(size_t round)
{
    for (size_t r = 0; r < ROWS; r++) {
        for (size_t i = 0; i < SIDES; i++) {
            /* Who comes first pays for memory that who comes next finds warm:
             * every round another side is first. */
            const size_t s = (i + round) % SIDES;
            const size_t n = rows[r].n ? rows[r].n : million;
            figures[r][s][round] = rows[r].run(sides[s], n);
        }
        (void)fputc('.', stderr);
    }
    (void)fputc('\n', stderr);
}

static size_t
parse_rounds(const char *text)
{
    char               *end;
    const unsigned long n = text ? strtoul(text, &end, 10) : 0;

    if (!text || *end || n < 1 || n > MOST_ROUNDS) {
        (void)fprintf(stderr, "wq_bench: --rounds takes 1 to %d, not '%s'\n",
                      MOST_ROUNDS, text ? text : "");
        exit(2);
    }
    return n;
}

int
main(int argc, char **argv)
{
    size_t rounds = 5;
    bool   features = false;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--timers")) {
            bench_timers();
            return 0;
        }
        if (!strcmp(argv[i], "--quick")) {
            million = 10000;
            rounds = 1;
        } else if (!strcmp(argv[i], "--features")) {
            features = true;
        } else if (!strcmp(argv[i], "--rounds")) {
            rounds = parse_rounds(argv[++i]);
        } else {
            (void)fprintf(stderr, "usage: wq_bench [--rounds N] [--quick] "
                                  "[--timers | --features]\n");
            return 2;
        }
    }
    make_keys(million > 100000 ? million : 100000);
    if (features) {
        bench_features(rounds);
        free(keys);
        return 0;
    }
    for (size_t round = 0; round < rounds; round++)
        run_round(round);

    printf("ns per key, median of %zu rounds [smallest..largest], %d-byte "
           "keys; %ld processors, compiled by %s\n"
           "%s/%s above 1: wq is faster. On a machine that does something else "
           "meanwhile, crowds say little.\n\n",
           rounds, KEY_LEN, sysconf(_SC_NPROCESSORS_ONLN), __VERSION__,
           sides[1]->name, sides[0]->name);
    printf("| row | %s | %s | %s/%s |\n|---|---|---|---|\n", sides[0]->name,
           sides[1]->name, sides[1]->name, sides[0]->name);
    for (size_t r = 0; r < ROWS; r++)
        print_row(r, rounds);
    for (size_t s = 0; s < SIDES; s++)
        printf("%s: %s\n", sides[s]->name, sides[s]->what);
    free(keys);
    return 0;
}
