/* SPDX-License-Identifier: MIT */
/* verbs.c: how much processor time does each verb take, alone and in batches of
 * 64, and how much does SQLite itself take?
 *
 * One thread, sync=lazy. SQLite alone is bare.c.
 */
#include <stdio.h>

#include "bench.h"
#include "measure.h"

enum { KEYS = 4096, MANY = 64 };

enum verb {
    FLOOR, /* INSERT and DELETE */
    BARE,  /* the statements of ADD_NEXT */
    ADD_NEXT,
    ADD,
    DUPLICATE,
    GET,
    DONE,
    ADD_MANY,
    GET_MANY,
    DONE_MANY,
    SHORT_ALONE, /* add, get and done in a queue of 64 keys */
    SHORT_MANY,
    VERBS,
};

static const char *const names[VERBS] = {
    "INSERT, DELETE (SQLite alone)",
    "the statements of the next line (SQLite alone)",
    "`wq_add()`, `wq_next_with()`",
    "`wq_add()`, new key",
    "`wq_add()`, key that is READY",
    "`wq_get()`",
    "`wq_done()`",
    "`wq_add_with()` of 64, for each key",
    "`wq_get_many()` of 64, for each key",
    "`wq_finish_many()` of 64, for each key",
    "`wq_add()`, `wq_get()`, `wq_done()`, with 64 keys in the queue",
    "the same by 64, for each key",
};

static double figures[VERBS][MOST_ROUNDS]; /* CPU us for each key */

/* ---- single calls ---------------------------------------------------------- */

static double
run_add_next(wq_queue *q, size_t n)
{
    wq_item     *item = NULL;
    const double begin = cpu_ns();

    for (size_t i = 0; i < n; i++) {
        must_ok(wq_add(q, bench_key(i)), "wq_add");
        must_ok(wq_next_with(q, wq_result_done(), WQ_FOREVER, &item),
                "wq_next_with");
    }
    const double took = cpu_ns() - begin;
    must_ok(wq_done(q, item), "wq_done");
    return took;
}

static double
run_add(wq_queue *q, size_t n)
{
    const double begin = cpu_ns();

    for (size_t i = 0; i < n; i++)
        must_ok(wq_add(q, bench_key(i)), "wq_add");
    return cpu_ns() - begin;
}

static double
run_get(wq_queue *q, wq_item **items, size_t n)
{
    const double begin = cpu_ns();

    for (size_t i = 0; i < n; i++)
        must_ok(wq_get(q, &items[i]), "wq_get");
    return cpu_ns() - begin;
}

static double
run_done(wq_queue *q, wq_item **items, size_t n)
{
    const double begin = cpu_ns();

    for (size_t i = 0; i < n; i++)
        must_ok(wq_done(q, items[i]), "wq_done");
    return cpu_ns() - begin;
}

/* ---- batches --------------------------------------------------------------- */

static double
run_add_many(wq_queue *q, size_t n)
{
    wq_key       keys[MANY];
    const double begin = cpu_ns();

    for (size_t i = 0; i + MANY <= n; i += MANY) {
        for (size_t k = 0; k < MANY; k++)
            keys[k] = bench_key(i + k);
        must_ok(wq_add_with(q, NULL, keys, MANY), "wq_add_with");
    }
    return cpu_ns() - begin;
}

static double
run_get_many(wq_queue *q, wq_item **items, size_t n)
{
    size_t       got;
    const double begin = cpu_ns();

    for (size_t i = 0; i + MANY <= n; i += MANY) {
        must_ok(wq_get_many(q, &items[i], MANY, WQ_FOREVER, &got),
                "wq_get_many");
        must(got == MANY, "keys of wq_get_many");
    }
    return cpu_ns() - begin;
}

static double
run_done_many(wq_queue *q, wq_item **items, size_t n)
{
    wq_result    results[MANY];
    const double begin = cpu_ns();

    for (size_t k = 0; k < MANY; k++)
        results[k] = wq_result_done();
    for (size_t i = 0; i + MANY <= n; i += MANY)
        must_ok(wq_finish_many(q, &items[i], results, NULL, MANY),
                "wq_finish_many");
    return cpu_ns() - begin;
}

void
verbs_run_batches(size_t n)
{
    static wq_item *items[KEYS];
    const char     *path = files_new();
    wq_queue       *q = files_open(path, WQ_SQLITE_SYNC_LAZY);

    for (size_t i = 0; i < n; i += KEYS) {
        (void)run_add_many(q, KEYS);
        (void)run_get_many(q, items, KEYS);
        (void)run_done_many(q, items, KEYS);
    }
    wq_destroy(q);
}

/* ---- a short queue --------------------------------------------------------- */

/* All keys go through a queue that has 64 of them at most. */
static void
run_short(wq_queue *q, wq_item **items, size_t n, double *alone, double *many)
{
    *alone = *many = 0;
    for (size_t i = 0; i + MANY <= n; i += MANY) {
        *alone += run_add(q, MANY);
        *alone += run_get(q, items, MANY);
        *alone += run_done(q, items, MANY);
        *many += run_add_many(q, MANY);
        *many += run_get_many(q, items, MANY);
        *many += run_done_many(q, items, MANY);
    }
}

/* ---- tables ---------------------------------------------------------------- */

void
verbs_measure(size_t round)
{
    static wq_item *items[KEYS];
    const size_t    n = bench_is_quick ? MANY : KEYS;
    const char     *path = files_new();
    wq_queue       *q = files_open(path, WQ_SQLITE_SYNC_LAZY);
    double          ns[VERBS];

    ns[FLOOR] = bare_run_floor(n);
    ns[BARE] = bare_run_statements(n);
    ns[ADD_NEXT] = run_add_next(q, n);
    ns[ADD] = run_add(q, n);
    ns[DUPLICATE] = run_add(q, n);
    ns[GET] = run_get(q, items, n);
    ns[DONE] = run_done(q, items, n);
    ns[ADD_MANY] = run_add_many(q, n);
    ns[GET_MANY] = run_get_many(q, items, n);
    ns[DONE_MANY] = run_done_many(q, items, n);
    run_short(q, items, n, &ns[SHORT_ALONE], &ns[SHORT_MANY]);
    for (size_t v = 0; v < VERBS; v++)
        figures[v][round] = ns[v] / (double)n / 1000;
    must(wq_len(q) == 0, "number of keys handed out");
    wq_destroy(q);
    files_delete(path);
}

void
verbs_print(size_t rounds)
{
    double us[VERBS];

    puts("\n### Verbs\n\n"
         "| one thread, sync=lazy | CPU us |\n|---|--:|");
    for (size_t v = 0; v < VERBS; v++) {
        us[v] = bench_median(figures[v], rounds);
        printf("| %s | %.1f |\n", names[v], us[v]);
    }
    demand_at_most(2, us[ADD_NEXT] / us[FLOOR], "x",
                   "add, next vs INSERT, DELETE (CPU)");
    demand_at_most(0.25, us[DUPLICATE] / us[ADD], "x",
                   "add of a READY key vs a new one (CPU)");
    demand_at_most(0.17,
                   (us[ADD_MANY] + us[GET_MANY] + us[DONE_MANY]) /
                       (us[ADD] + us[GET] + us[DONE]),
                   "x", "a key in batches of 64 vs alone, queue of %d (CPU)",
                   bench_is_quick ? MANY : KEYS);
    demand_at_most(0.17, us[SHORT_MANY] / us[SHORT_ALONE], "x",
                   "a key in batches of 64 vs alone, queue of 64 (CPU)");
}
