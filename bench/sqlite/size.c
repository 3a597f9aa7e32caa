/* SPDX-License-Identifier: MIT */
/* size.c: what does a queue of a million keys cost, compared with one of a
 * thousand?
 *
 * Both files are there at the same time. A slice is fifty keys that go through
 * all verbs of one file and then of the other; a round has two hundred of them. A
 * checkpoint of the large file moves what thirty slices have written. So each
 * round has several of them, and a verb has them in proportion to what it writes:
 * if it ran for long on its own, one checkpoint would decide its figure.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "measure.h"

enum { SMALL = 1000, LARGE = 1000000, STEPS = 2000, OPENS = 9 };
enum { SLICE = 50, SLICES = 200 };
enum { MB = 1 << 20 };

/* What database.c gives the page cache. */
enum { CACHE_MB = 4 };

enum verb { ADD, DUPLICATE, GET, DONE, VERBS };
static const char *const names[VERBS] = {"add", "duplicate add", "get", "done"};

/* A file, and which of its keys come next. */
struct stock {
    char      path[512];
    wq_queue *queue;
    size_t    next;                   /* the number of the next key */
    double    us[VERBS][MOST_ROUNDS]; /* CPU */
};

/* ---- filling --------------------------------------------------------------- */

static double
fill(struct stock *s, size_t n)
{
    enum { AT_ONCE = 500 };
    static char  text[AT_ONCE][KEY_LEN + 1];
    wq_key       keys[AT_ONCE];
    const double begin = bench_now_ns();

    (void)snprintf(s->path, sizeof s->path, "%s", files_new());
    s->queue = files_open(s->path, WQ_SQLITE_SYNC_LAZY);
    for (; s->next < n;) {
        size_t k = 0;
        for (; k < AT_ONCE && s->next < n; k++) {
            bench_write_key(text[k], s->next++);
            keys[k] = (wq_key){text[k], KEY_LEN};
        }
        must_ok(wq_add_with(s->queue, NULL, keys, k), "wq_add_with");
    }
    return (bench_now_ns() - begin) / (double)n / 1000;
}

/* ---- verbs ----------------------------------------------------------------- */

static void
add_keys(struct stock *s, size_t n)
{
    char text[KEY_LEN + 1];

    for (size_t i = 0; i < n; i++) {
        bench_write_key(text, s->next + i);
        must_ok(wq_add(s->queue, (wq_key){text, KEY_LEN}), "wq_add");
    }
}

static void
run_verb(struct stock *s, enum verb verb, wq_item **items, size_t n)
{
    switch (verb) {
    case ADD:
    case DUPLICATE:
        add_keys(s, n);
        break;
    case GET:
        for (size_t i = 0; i < n; i++)
            must_ok(wq_get(s->queue, &items[i]), "wq_get");
        break;
    case DONE:
        for (size_t i = 0; i < n; i++)
            must_ok(wq_done(s->queue, items[i]), "wq_done");
        break;
    case VERBS:
        break;
    }
}

static void
run_slice(struct stock *s, double ns[VERBS])
{
    wq_item *items[SLICE];

    for (enum verb v = 0; v < VERBS; v++) {
        const double begin = cpu_ns();
        run_verb(s, v, items, SLICE);
        ns[v] += cpu_ns() - begin;
    }
    s->next += SLICE;
}

static void
measure(struct stock *both, size_t round)
{
    const size_t slices = scaled(SLICES);
    double       ns[2][VERBS] = {{0}};

    for (size_t k = 0; k < slices; k++)
        for (size_t i = 0; i < 2; i++)
            run_slice(&both[i], ns[i]);
    for (enum verb v = 0; v < VERBS; v++)
        for (size_t i = 0; i < 2; i++)
            both[i].us[v][round] = ns[i][v] / (double)(slices * SLICE) / 1000;
}

/* ---- memory ---------------------------------------------------------------- */

static double
resident_mb(void)
{
    long  pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    must(file && fscanf(file, "%*d %ld", &pages) == 1, "/proc/self/statm");
    if (file)
        (void)fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / MB;
}

void
size_run_memory(const char *path)
{
    enum { TURNS = 5 };
    static wq_item *items[STEPS];
    const double    before = resident_mb();
    struct stock    s = {.next = (size_t)LARGE * 2}; /* keys that are new */

    s.queue = files_open(path, WQ_SQLITE_SYNC_LAZY);
    for (int i = 0; i < TURNS; i++) {
        for (enum verb v = 0; v < VERBS; v++)
            run_verb(&s, v, items, scaled(STEPS));
        s.next += STEPS;
    }
    printf("%f\n", resident_mb() - before);
    wq_destroy(s.queue);
}

/* In a new process: one that has filled a queue before would have memory left
 * over from that. */
static double
measure_memory(const struct stock *s)
{
    char   command[600];
    double mb = 0;

    (void)snprintf(command, sizeof command, "'%s' %s --memory '%s'",
                   bench_program(), bench_is_quick ? "--quick" : "", s->path);
    FILE *pipe = popen(command, "re");
    must(pipe && fscanf(pipe, "%lf", &mb) == 1 && pclose(pipe) == 0,
         "process that measures memory");
    return mb;
}

/* ---- opening --------------------------------------------------------------- */

static double
open_ms(const struct stock *s)
{
    const double begin = bench_now_ns();
    wq_queue    *q = files_open(s->path, WQ_SQLITE_SYNC_LAZY);
    const double took = bench_now_ns() - begin;

    wq_destroy(q);
    return took / 1e6;
}

/* `anew`: without what the processes know of each other; then wq counts. */
static double
median_open_ms(const struct stock *s, bool anew)
{
    double       ms[OPENS];
    const size_t n = anew ? 3 : OPENS;

    for (size_t i = 0; i < n; i++) {
        if (anew)
            files_delete_side(s->path);
        ms[i] = open_ms(s);
    }
    return bench_median(ms, n);
}

/* ---- tables ---------------------------------------------------------------- */

static void
print_verbs(struct stock *both, size_t rounds, size_t large)
{
    printf("\n### Size\n\n| CPU us | %d keys | %zu keys | ratio |\n"
           "|---|--:|--:|--:|\n",
           SMALL, large);
    for (enum verb v = 0; v < VERBS; v++) {
        const double small = bench_median(both[0].us[v], rounds);
        const double big = bench_median(both[1].us[v], rounds);
        printf("| %s | %.1f | %.1f | %.2f |\n", names[v], small, big,
               big / small);
        demand_at_most(2, big / small, "x", "1 M keys vs 1 k: %s (CPU)",
                       names[v]);
    }
}

static void
print_file(const struct stock *s, size_t keys, double fill_us)
{
    struct stat  st;
    const double ms = median_open_ms(s, false);
    const double anew_ms = median_open_ms(s, true);
    const double mb = measure_memory(s);

    must(stat(s->path, &st) == 0, "stat");
    printf("\n| %zu keys | |\n|---|--:|\n"
           "| open, `PATH-wq` exists, ms | %.1f |\n"
           "| open, `PATH-wq` is missing: counts the keys, ms | %.0f |\n"
           "| memory, MB | %.1f |\n"
           "| file, bytes for each key | %.0f |\n"
           "| filling it by 500 keys a call, us for each key | %.1f |\n",
           keys, ms, anew_ms, mb, (double)st.st_size / (double)keys, fill_us);
    demand_at_most(10, ms, " ms", "1 M keys: open");
    demand_at_most(CACHE_MB + 10, mb, " MB", "1 M keys: memory");
}

void
size_print(size_t rounds)
{
    static struct stock both[2];
    const size_t        large = scaled(LARGE);

    (void)fill(&both[0], SMALL);
    const double fill_us = fill(&both[1], large);
    for (size_t i = 0; i < rounds; i++)
        measure(both, i);
    print_verbs(both, rounds, large);
    for (size_t i = 0; i < 2; i++)
        wq_destroy(both[i].queue);
    print_file(&both[1], large, fill_us);
    files_delete(both[0].path);
    files_delete(both[1].path);
}
