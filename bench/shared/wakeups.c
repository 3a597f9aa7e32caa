/* SPDX-License-Identifier: MIT */
/* wakeups.c: how many threads does a key wake?
 *
 * Getters sleep, and keys come one at a time. A getter that is woken makes one
 * voluntary context switch when it sleeps again. The store takes no time: the
 * wait for a batch would be counted, too.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>

#include "bench.h"
#include "measure.h"
#include "shared/shared.h"
#include "slow_engine.h"

enum { GETTERS = 8, KEYS = 500 };

struct getter {
    wq_queue      *queue;
    atomic_size_t *got;
    long           switches; /* out */
};

static void *
get_all(void *arg)
{
    struct getter *g = arg;
    wq_item       *item = NULL;
    struct rusage  usage;

    while (!wq_next_with(g->queue, wq_result_done(), WQ_FOREVER, &item))
        atomic_fetch_add(g->got, 1);
    (void)getrusage(RUSAGE_THREAD, &usage);
    g->switches = usage.ru_nvcsw;
    return NULL;
}

/* Context switches of all getters for each key. */
static double
count_wakeups(size_t getters, double *batches)
{
    wq_queue          *q = slow_queue_open(SLOW_SLEEPS, 0);
    struct wq__shared *s = wq__shared_of(q);
    const size_t       keys = shared_quick ? KEYS / 20 : KEYS;
    atomic_size_t      got = 0;
    pthread_t          ids[GETTERS];
    struct getter      all[GETTERS];
    long               switches = 0;
    char               text[KEY_LEN + 1];

    for (size_t i = 0; i < getters; i++) {
        all[i] = (struct getter){.queue = q, .got = &got};
        must(!pthread_create(&ids[i], NULL, get_all, &all[i]),
             "pthread_create");
    }
    bench_sleep_ns(20000000);
    for (size_t i = 0; i < keys; i++) {
        bench_write_key(text, i);
        must(!wq_add(q, (wq_key){text, KEY_LEN}), "wq_add");
        while (atomic_load(&got) <= i)
            bench_sleep_ns(50000);
        bench_sleep_ns(300000); /* all sleep again */
    }
    wq__shared_enter(s);
    *batches = (double)s->batches / (double)keys;
    wq__lock_release(&s->lock);
    wq_shutdown(q);
    for (size_t i = 0; i < getters; i++) {
        pthread_join(ids[i], NULL);
        switches += all[i].switches;
    }
    wq_destroy(q);
    return (double)switches / (double)keys;
}

void
wakeups_print(void)
{
    double batches;

    puts("\n| sleeping getters | context switches of getters/key | batches/key "
         "|\n|--:|--:|--:|");
    for (size_t n = 1; n <= GETTERS; n *= 8) {
        const double switches = count_wakeups(n, &batches);
        printf("| %zu | %.2f | %.2f |\n", n, switches, batches);
    }
}
