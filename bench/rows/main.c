/* SPDX-License-Identifier: MIT */
/* main.c: which row of its side does this program run?
 *
 *     bench_SIDE ROW [--quick]    print the figures of one row
 *     bench_SIDE --version        print the side's version, if it is not wq's
 *     bench_wq --features         print the cost of features (sides/features.c)
 *
 * --quick reduces the counts, to show that the program works; its figures mean
 * nothing.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

static bool quick;

size_t
bench_scaled(size_t n)
{
    return quick && n > 1000 ? n / 100 : n;
}

static const struct row *
find(const char *name)
{
    static const struct row *const all[] = {
        rows_one_thread, rows_crowds, rows_waiting, rows_limiters, rows_memory};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        for (const struct row *r = all[i]; r->name; r++)
            if (!strcmp(r->name, name))
                return r;
    return NULL;
}

static bool
offers(const struct side *s, const char *name)
{
    char word[40];

    (void)snprintf(word, sizeof word, " %s ", name);
    return !s->only || strstr(s->only, word);
}

int
main(int argc, char **argv)
{
    quick = argc == 3 && !strcmp(argv[2], "--quick");
    if (argc != 2 + quick) {
        (void)fprintf(stderr, "usage: %s ROW [--quick]\n", argv[0]);
        return 2;
    }
    if (!strcmp(argv[1], "--version")) {
        if (bench_side.version)
            puts(bench_side.version);
        return 0;
    }
    if (bench_side.features && !strcmp(argv[1], "--features")) {
        bench_side.features(quick ? 1 : 5);
        return 0;
    }
    const struct row *row = find(argv[1]);
    if (!row || !offers(&bench_side, row->name))
        return 3;
    row->run(&bench_side, row->n);
    return 0;
}
