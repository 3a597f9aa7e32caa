/* SPDX-License-Identifier: MIT */
/* one_thread.c: what does a key cost when one thread uses the queue? */
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "bench.h"

enum { CYCLES = 1000000, SMALL_FILL = 100000, LEVELS = 5 };

static double
time_cycles(const struct side *s, void *q, size_t n)
{
    const size_t total = bench_scaled(CYCLES);

    const double begin = bench_now_ns();
    for (size_t i = 0; i < total; i++) {
        s->add(q, bench_key(i % n));
        bench_get_and_done(s, q);
    }
    return (bench_now_ns() - begin) / (double)total;
}

/* add, get and done, `n` different keys in turn */
static void
cycle(const struct side *s, size_t n)
{
    bench_print_timed(s, s->create, n, time_cycles);
}

static void *
sleep_until_told(void *told)
{
    (void)sem_wait(told);
    return NULL;
}

/* the same while another thread exists, which sleeps: a C library may leave out
 * atomic instructions in a process with one thread */
static void
cycle_beside(const struct side *s, size_t n)
{
    pthread_t other;
    sem_t     told;

    if (sem_init(&told, 0, 0) ||
        pthread_create(&other, NULL, sleep_until_told, &told))
        abort();
    cycle(s, n);
    (void)sem_post(&told);
    (void)pthread_join(other, NULL);
    (void)sem_destroy(&told);
}

/* the same with keys of `len` bytes, 1 k of them */
static void
long_keys(const struct side *s, size_t len)
{
    enum { KEYS = 1000 };

    bench_make_long_keys(KEYS, len);
    void *q = s->create();
    bench_print("ns", time_cycles(s, q, KEYS));
    s->destroy(q);
}

/* the same with metrics on */
static void
metered(const struct side *s, size_t n)
{
    bench_need(s->create_metered);
    bench_print_timed(s, s->create_metered, n, time_cycles);
}

/* add `n` keys, then get and done of them all; repeated if `n` is small */
static void
fill_and_drain(const struct side *s, size_t n)
{
    const size_t total = bench_scaled(n > SMALL_FILL ? n : SMALL_FILL);
    const size_t keys = n < total ? n : total;
    const size_t laps = total / keys;

    bench_make_keys(keys);
    void *q = s->create();

    const double begin = bench_now_ns();
    for (size_t lap = 0; lap < laps; lap++) {
        for (size_t i = 0; i < keys; i++)
            s->add(q, bench_key(i));
        for (size_t i = 0; i < keys; i++)
            bench_get_and_done(s, q);
    }
    bench_print("ns", (bench_now_ns() - begin) / (double)(keys * laps));
    s->destroy(q);
}

/* add keys that are READY already, `n` of them, in random order */
static void
duplicate_add(const struct side *s, size_t n)
{
    const size_t total = bench_scaled(CYCLES);
    const size_t keys = n < total ? n : total;

    bench_make_keys(keys);
    void *q = s->create();
    for (size_t i = 0; i < keys; i++)
        s->add(q, bench_key(i));

    const double begin = bench_now_ns();
    for (size_t i = 0; i < total; i++)
        s->add(q, bench_key(i * 7919 % keys));
    bench_print("ns", (bench_now_ns() - begin) / (double)total);

    for (size_t i = 0; i < keys; i++)
        bench_get_and_done(s, q);
    s->destroy(q);
}

static double
time_priorities(const struct side *s, void *q, size_t keys)
{
    size_t first = 0;

    const double begin = bench_now_ns();
    for (size_t i = 0; i < keys; i++)
        s->add_priority(q, bench_key(i), (int)(i % LEVELS));
    for (size_t i = 0; i < keys; i++) {
        void *item;
        must(s->get(q, &item), "get");
        if (i == 0)
            first = bench_key_number(s->key(item));
        s->done(q, item);
    }
    const double took = bench_now_ns() - begin;
    must(first == LEVELS - 1, "order by priority");
    return took / (double)keys;
}

/* fill with `n` keys of five priorities in turn, then drain. They must leave in
 * order: the first one has the highest priority. */
static void
priorities(const struct side *s, size_t n)
{
    bench_need(s->add_priority);
    bench_print_timed(s, s->create, bench_scaled(n), time_priorities);
}

static double
time_next(const struct side *s, void *q, size_t keys)
{
    void  *item = NULL;
    size_t got = 0;

    const double begin = bench_now_ns();
    for (size_t i = 0; i < keys; i++)
        s->add(q, bench_key(i));
    if (s->next)
        for (; s->next(q, &item); got++)
            ;
    else
        for (; got < keys; got++)
            bench_get_and_done(s, q);
    const double took = bench_now_ns() - begin;
    must(got == keys, "number of keys handed out");
    return took / (double)keys;
}

/* fill, then drain by `next`, which is a done and a get in one call; a side
 * without it calls get and done */
static void
next(const struct side *s, size_t n)
{
    bench_print_timed(s, s->create, bench_scaled(n), time_next);
}

static void
single_batch(const struct side *s, void *q, size_t at)
{
    void *items[BATCH];

    for (size_t k = 0; k < BATCH; k++)
        s->add(q, bench_key(at + k));
    for (size_t k = 0; k < BATCH; k++)
        must(s->get(q, &items[k]), "get");
    for (size_t k = 0; k < BATCH; k++)
        s->done(q, items[k]);
}

static void
one_batch(const struct side *s, void *q, size_t at)
{
    void  *items[BATCH];
    wq_key keys[BATCH];

    for (size_t k = 0; k < BATCH; k++)
        keys[k] = bench_key(at + k);
    s->add_batch(q, keys);
    s->get_batch(q, items);
    s->done_batch(q, items);
}

/* 32 adds, 32 gets, 32 dones, repeated; three calls if the side has batches */
static void
batches(const struct side *s, size_t n)
{
    const size_t laps = bench_scaled(CYCLES) / BATCH;
    const size_t places = n / BATCH;

    bench_make_keys(n);
    void *q = s->create();

    const double begin = bench_now_ns();
    for (size_t lap = 0; lap < laps; lap++) {
        const size_t at = lap % places * BATCH;
        if (s->add_batch)
            one_batch(s, q, at);
        else
            single_batch(s, q, at);
    }
    bench_print("ns", (bench_now_ns() - begin) / (double)(laps * BATCH));
    s->destroy(q);
}

/* The longest single add while `n` keys are added. */
static void
growth(const struct side *s, size_t n)
{
    const size_t keys = bench_scaled(n);
    char         text[KEY_LEN + 1];
    void        *q = s->create();
    double       longest = 0;

    for (size_t i = 0; i < keys; i++) {
        bench_write_key(text, i);
        const double begin = bench_now_ns();
        s->add(q, (wq_key){text, KEY_LEN});
        const double took = bench_now_ns() - begin;
        if (took > longest)
            longest = took;
    }
    bench_print("max_ns", longest);
    s->destroy(q);
}

/* `n` queues, each with one key that is added, handed out and done; then all are
 * destroyed: ns for each queue */
static void
many_queues(const struct side *s, size_t n)
{
    const size_t queues = bench_scaled(n);
    void       **q = calloc(queues, sizeof *q);

    must(q != NULL, "calloc");
    bench_make_keys(queues);
    const double begin = bench_now_ns();
    for (size_t i = 0; i < queues; i++) {
        q[i] = s->create();
        s->add(q[i], bench_key(i));
    }
    for (size_t i = 0; i < queues; i++)
        bench_get_and_done(s, q[i]);
    for (size_t i = 0; i < queues; i++)
        s->destroy(q[i]);
    bench_print("ns", (bench_now_ns() - begin) / (double)queues);
    free(q);
}

const struct row rows_one_thread[] = {
    {"cycle", cycle, 1000},
    {"cycle-beside", cycle_beside, 1000},
    {"metrics", metered, 1000},
    {"fill-1k", fill_and_drain, 1000},
    {"fill-100k", fill_and_drain, 100000},
    {"fill-1m", fill_and_drain, 1000000},
    {"fill-10m", fill_and_drain, 10000000},
    {"growth", growth, 10000000},
    {"long-200", long_keys, 200},
    {"long-4k", long_keys, 4096},
    {"queues", many_queues, 10000},
    {"dup-1k", duplicate_add, 1000},
    {"dup-1m", duplicate_add, 1000000},
    {"priority", priorities, 100000},
    {"next", next, 100000},
    {"batch", batches, 1000},
    {NULL, NULL, 0},
};
