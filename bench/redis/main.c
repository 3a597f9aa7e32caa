/* SPDX-License-Identifier: MIT */
/* main.c: how fast are queues in Redis, and is that what is demanded?
 *
 *     bench_redis [OPTION...]      print all tables
 *
 *     --rounds N        5 unless given; the tables show medians
 *     --quick           one short round, to show that it works
 *     --only PARTS      some of threads,peers,idle
 *     --check           exit with 1 if a demand is not reached
 *     --beanstalkd CMD  the server; without it: measure without it
 *     --asynq CMD       a program that measures asynq: bench/peers/redis
 *     --bullmq CMD      likewise: bench/peers/bullmq.js
 *     --spin THREADS    only add and next for 5 s, for a profiler
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure.h"
#include "support/redis_server.h"

static void
idle_print(size_t rounds)
{
    wq_queue *q = queue_open(PLAIN);

    (void)rounds;
    print_idle(q);
    wq_destroy(q);
}

static const struct part parts[] = {
    {"threads", threads_measure, threads_print},
    {"peers", peers_measure, peers_print},
    {"idle", NULL, idle_print},
};

struct options {
    const char *rounds, *only, *beanstalkd, *asynq, *bullmq, *spin;
    int         quick, check;
};

static bool
read_options(int argc, char **argv, struct options *o)
{
    const struct {
        const char  *name;
        const char **value;
    } valued[] = {
        {"rounds", &o->rounds}, {"only", &o->only},
        {"asynq", &o->asynq},   {"beanstalkd", &o->beanstalkd},
        {"bullmq", &o->bullmq}, {"spin", &o->spin},
    };
    enum { VALUED = sizeof valued / sizeof *valued };
    struct option table[VALUED + 3] = {{"quick", no_argument, &o->quick, 1},
                                       {"check", no_argument, &o->check, 1}};

    for (int i = 0; i < VALUED; i++)
        table[i + 2] =
            (struct option){valued[i].name, required_argument, NULL, 'a' + i};
    for (;;) {
        const int c = getopt_long(argc, argv, "", table, NULL);

        if (c == -1)
            return optind == argc;
        if (c >= 'a' && c < 'a' + VALUED)
            *valued[c - 'a'].value = optarg;
        else if (c)
            return false;
    }
}

int
main(int argc, char **argv)
{
    struct options o = {.rounds = "5"};

    const bool   valid = read_options(argc, argv, &o);
    const size_t rounds = o.quick ? 1 : strtoul(o.rounds, NULL, 10);
    if (!valid || !rounds || rounds > MOST_ROUNDS) {
        (void)fprintf(stderr,
                      "usage: %s [--rounds N] [--quick] [--only PARTS] "
                      "[--check] [--beanstalkd CMD] [--asynq CMD] "
                      "[--bullmq CMD] [--spin THREADS]\n",
                      argv[0]);
        return 2;
    }
    if (!parts_exist(parts, sizeof parts / sizeof *parts, o.only))
        return 2;
    if (!redis_server_is_installed()) {
        puts("bench_redis: redis-server is not installed; nothing to measure");
        return 0;
    }
    bench_is_quick = o.quick;
    servers_begin(o.beanstalkd);
    if (o.spin) {
        threads_spin(strtoul(o.spin, NULL, 10), 5);
        return 0;
    }
    peers_use(o.asynq, o.bullmq);
    print_machine("begin", "Redis", server_version());
    parts_run(parts, sizeof parts / sizeof *parts, o.only, rounds);
    const bool reached = demands_print();
    (void)putchar('\n');
    print_machine("end", "Redis", server_version());
    return o.check && !reached;
}
