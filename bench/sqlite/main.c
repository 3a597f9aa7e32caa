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
#include <sys/utsname.h>

#include "bench.h"
#include "measure.h"

enum { KEYS = 20000 };

bool sqlite_quick;

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
            *(name[2] == 'q' ? &sqlite_quick : &o->check) = true;
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
    if (sqlite_quick)
        o->rounds = 1;
    return o->rounds > 0 && o->rounds <= MOST_ROUNDS;
}

/* What the figures depend on. */
static void
print_machine(const char *when)
{
    double         load[3] = {0};
    struct utsname u;

    (void)getloadavg(load, 3);
    must(uname(&u) == 0, "uname");
    printf("%s: load %.2f %.2f %.2f; SQLite %s; %s %s\n", when, load[0],
           load[1], load[2], wq_sqlite_version(), u.sysname, u.release);
}

/* Parts with rounds take turns; then the others follow one by one. */
static const struct part {
    const char *name;
    void (*measure)(size_t round); /* NULL: print() measures, too */
    void (*print)(size_t rounds);
} parts[] = {
    {"threads", cycles_measure, cycles_print},
    {"peers", peers_measure, peers_print},
    {"verbs", verbs_measure, verbs_print},
    {"size", NULL, size_print},
    {"processes", NULL, processes_print},
    {"wakeups", NULL, wakeups_print},
    {"idle", NULL, idle_print},
};
enum { PARTS = sizeof parts / sizeof *parts };

static bool
is_chosen(const struct options *o, const struct part *p)
{
    return !o->only || strstr(o->only, p->name);
}

static void
run(const struct options *o)
{
    peers_use(o->goqite, o->litequeue);
    print_machine("begin");
    for (size_t i = 0; i < o->rounds; i++)
        for (size_t k = 0; k < PARTS; k++)
            if (parts[k].measure && is_chosen(o, &parts[k]))
                parts[k].measure(i);
    for (size_t k = 0; k < PARTS; k++)
        if (is_chosen(o, &parts[k]))
            parts[k].print(o->rounds);
}

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
    run(&o);
    const bool reached = demands_print();
    (void)putchar('\n');
    print_machine("end");
    return o.check && !reached;
}
