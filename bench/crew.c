/* SPDX-License-Identifier: MIT */
/* crew.c: threads that use a queue at once; see crew.h. */
#include "crew.h"

#include <pthread.h>
#include <stdatomic.h>

#include "bench.h"

/* Of the crew that runs. */
static struct {
    const struct crew *crew;
    pthread_barrier_t  start;
    atomic_bool        stop;
} now;

static void *
work(void *arg)
{
    struct member *m = arg;
    const size_t   number = (size_t)(m - now.crew->members);
    char           text[KEY_LEN + 1];

    if (now.crew->begin)
        now.crew->begin();
    pthread_barrier_wait(&now.start);
    while (!atomic_load_explicit(&now.stop, memory_order_relaxed)) {
        bench_write_key(text, number * 1000000000 + m->n);
        now.crew->cycle(m, (wq_key){text, KEY_LEN});
        m->n++;
    }
    if (m->item)
        must(!wq_done(m->queue, m->item), "wq_done");
    return NULL;
}

size_t
crew_run(struct crew *crew, wq_queue *q, double span_ns, double *took_ns)
{
    pthread_t ids[CREW_MOST];
    size_t    cycles = 0;

    now.crew = crew;
    atomic_store(&now.stop, false);
    must(!pthread_barrier_init(&now.start, NULL, (unsigned)crew->threads + 1),
         "pthread_barrier_init");
    for (size_t i = 0; i < crew->threads; i++) {
        struct member *m = &crew->members[i];

        m->queue = q;
        must(!pthread_create(&ids[i], NULL, work, m), "pthread_create");
    }
    pthread_barrier_wait(&now.start);
    const double begin = bench_now_ns();
    bench_sleep_ns((int64_t)span_ns);
    atomic_store(&now.stop, true);
    for (size_t i = 0; i < crew->threads; i++) {
        pthread_join(ids[i], NULL);
        cycles += crew->members[i].n;
    }
    *took_ns = bench_now_ns() - begin;
    pthread_barrier_destroy(&now.start);
    return cycles;
}
