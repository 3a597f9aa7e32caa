/* SPDX-License-Identifier: MIT */
/* main.c: what does the shell of shared queues (src/shared) cost and save?
 *
 *     bench_shared [ROUNDS]     print all tables; 5 rounds unless given
 *     bench_shared --quick      one short round, to show that it works
 *     bench_shared --cycles N   add, get and done N times with one thread and a
 *                               store that takes no time, to count instructions
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "measure.h"
#include "slow_engine.h"

bool shared_quick;

static void
run_single(size_t n)
{
    wq_queue *q = slow_queue_open(SLOW_SLEEPS, 0);
    wq_item  *item;

    bench_make_keys(1000);
    for (size_t i = 0; i < n; i++) {
        must(!wq_add(q, bench_key(i % 1000)), "wq_add");
        must(!wq_get(q, &item), "wq_get");
        must(!wq_done(q, item), "wq_done");
    }
    wq_destroy(q);
}

int
main(int argc, char **argv)
{
    const char *option = argc > 1 ? argv[1] : "5";

    if (argc == 3 && !strcmp(option, "--cycles")) {
        run_single(strtoul(argv[2], NULL, 10));
        return 0;
    }
    shared_quick = !strcmp(option, "--quick");
    const size_t rounds = shared_quick ? 1 : strtoul(option, NULL, 10);
    if (argc > 2 || rounds == 0 || rounds > MOST_ROUNDS) {
        (void)fprintf(stderr, "usage: %s [ROUNDS | --quick | --cycles N]\n",
                      argv[0]);
        return 2;
    }
    for (size_t i = 0; i < rounds; i++)
        cycles_measure(i);
    cycles_print(rounds);
    wakeups_print();
    return 0;
}
