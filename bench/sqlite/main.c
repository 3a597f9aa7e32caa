/* SPDX-License-Identifier: MIT */
/* main.c: how fast are queues in SQLite files, and is that what is demanded?
 *
 *     bench_sqlite [OPTION...]     print all tables
 *
 *     --rounds N        5 unless given; the tables show medians
 *     --quick           one short round, to show that it works
 *     --only PARTS      some of threads,verbs,size,processes,wakeups,idle,peers
 *     --check           exit with 1 if a demand is not reached
 *     --dir DIR         where the files are; /var/tmp unless given
 *     --goqite CMD      a program that measures goqite: bench/peers/sqlite
 *     --litequeue CMD   likewise: bench/peers/litequeue.py
 *     --cycles N        only add and next N times with one thread and sync=lazy,
 *                       to count instructions and system calls
 *     --batches N       only add, get and finish N keys by 64, likewise
 *     --memory FILE     only use the queue in FILE, and print the MB that took
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "measure.h"

enum { KEYS = 20000 };

struct options {
    size_t      rounds, cycles, batches;
    const char *dir, *goqite, *litequeue;
    const char *only;   /* NULL: all parts */
    const char *memory; /* NULL, or a file: see size.c */
    bool        check;
};

static bool
read_options(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (!strcmp(name, "--quick") || !strcmp(name, "--check")) {
            *(name[2] == 'q' ? &bench_is_quick : &o->check) = true;
            continue;
        }
        if (!value)
            return false;
        i++;
        if (!strcmp(name, "--rounds"))
            o->rounds = strtoul(value, NULL, 10);
        else if (!strcmp(name, "--cycles"))
            o->cycles = strtoul(value, NULL, 10);
        else if (!strcmp(name, "--batches"))
            o->batches = strtoul(value, NULL, 10);
        else if (!strcmp(name, "--only"))
            o->only = value;
        else if (!strcmp(name, "--memory"))
            o->memory = value;
        else if (!strcmp(name, "--dir"))
            o->dir = value;
        else if (!strcmp(name, "--goqite"))
            o->goqite = value;
        else if (!strcmp(name, "--litequeue"))
            o->litequeue = value;
        else
            return false;
    }
    if (bench_is_quick)
        o->rounds = 1;
    return o->rounds > 0 && o->rounds <= MOST_ROUNDS;
}

static const struct part parts[] = {
    {"threads", cycles_measure, cycles_print},
    {"peers", peers_measure, peers_print},
    {"verbs", verbs_measure, verbs_print},
    {"size", NULL, size_print},
    {"processes", NULL, processes_print},
    {"wakeups", NULL, wakeups_print},
    {"idle", NULL, idle_print},
};

int
main(int argc, char **argv)
{
    struct options o = {.rounds = 5};

    if (!read_options(argc, argv, &o)) {
        (void)fprintf(
            stderr,
            "usage: %s [--rounds N] [--quick] [--only PARTS] [--check] "
            "[--dir DIR] [--goqite CMD] [--litequeue CMD] [--cycles N] "
            "[--batches N] [--memory FILE]\n",
            argv[0]);
        return 2;
    }
    if (!parts_exist(parts, sizeof parts / sizeof *parts, o.only))
        return 2;
    if (o.memory) {
        size_run_memory(o.memory);
        return 0;
    }
    files_begin(o.dir);
    bench_make_keys(KEYS);
    if (o.cycles)
        cycles_run(WQ_SQLITE_SYNC_LAZY, o.cycles);
    if (o.batches)
        verbs_run_batches(o.batches);
    if (o.cycles || o.batches)
        return 0;
    peers_use(o.goqite, o.litequeue);
    print_machine("begin", "SQLite", wq_sqlite_version());
    parts_run(parts, sizeof parts / sizeof *parts, o.only, o.rounds);
    const bool reached = demands_print();
    (void)putchar('\n');
    print_machine("end", "SQLite", wq_sqlite_version());
    return o.check && !reached;
}
