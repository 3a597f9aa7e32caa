/* SPDX-License-Identifier: MIT */
/* crowds.c: what does a key cost when many threads use the queue?
 *
 * The time is measured from before the first thread starts until the last one
 * has ended after the shutdown.
 */
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"

enum { KEYS = 1000000, TRIPS = 100000, MOST = 8 };

struct crew {
    const struct side *side;
    void              *queue;
    size_t             from, to; /* a producer's keys */
    size_t             got;      /* a consumer's count */
    double            *added;  /* when each key was added; NULL: not measured */
    double            *waited; /* from then until its get */
};

static void *
produce(void *arg)
{
    const struct crew *c = arg;

    for (size_t i = c->from; i < c->to; i++) {
        if (c->added)
            c->added[i] = bench_now_ns();
        c->side->add(c->queue, bench_key(i));
    }
    return NULL;
}

static void *
consume(void *arg)
{
    struct crew *c = arg;
    size_t       got = 0; /* local, so that threads do not share a cache line */

    for (void *item; c->side->get(c->queue, &item); got++) {
        if (c->added) {
            const size_t i = bench_key_number(c->side->key(item));
            c->waited[i] = bench_now_ns() - c->added[i];
        }
        c->side->done(c->queue, item);
    }
    c->got = got;
    return NULL;
}

static void
start(pthread_t *thread, void *(*run)(void *), void *arg)
{
    must(!pthread_create(thread, NULL, run, arg), "pthread_create");
}

/* `n` producers and `n` consumers, every key different; ns for each key */
static double
time_crowd(const struct crew *all, size_t n)
{
    const size_t each = all->to / n;
    pthread_t    threads[2 * MOST];
    struct crew  crews[2 * MOST];
    size_t       got = 0;

    const double begin = bench_now_ns();
    for (size_t i = 0; i < 2 * n; i++) {
        crews[i] = *all;
        crews[i].from = i % n * each;
        crews[i].to = crews[i].from + each;
        start(&threads[i], i < n ? consume : produce, &crews[i]);
    }
    for (size_t i = n; i < 2 * n; i++)
        pthread_join(threads[i], NULL);
    all->side->shutdown(all->queue);
    for (size_t i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        got += crews[i].got;
    }
    const double took = bench_now_ns() - begin;
    must(got == each * n, "number of keys handed out");
    return took / (double)got;
}

static void
crowd(const struct side *s, size_t n)
{
    const size_t keys = bench_scaled(KEYS);

    bench_make_keys(keys);
    void             *q = s->create();
    const struct crew all = {.side = s, .queue = q, .to = keys};
    bench_print("ns", time_crowd(&all, n));
    s->destroy(q);
}

/* How long does a key wait between its add and its get, in such a crowd? */
static void
fair(const struct side *s, size_t n)
{
    const size_t keys = bench_scaled(KEYS);
    double      *added = calloc(keys, sizeof *added);
    double      *waited = calloc(keys, sizeof *waited);

    bench_need(s->key);
    must(added && waited, "calloc");
    bench_make_keys(keys);
    void             *q = s->create();
    const struct crew all = {
        .side = s, .queue = q, .to = keys, .added = added, .waited = waited};
    bench_print("ns", time_crowd(&all, n));
    bench_print_spread(waited, keys);
    s->destroy(q);
    free(added);
    free(waited);
}

/* ---- ping-pong ---------------------------------------------------------- */

struct table {
    const struct side *side;
    void              *here, *there;
};

static void *
play(void *arg)
{
    const struct table *t = arg;

    for (void *item; t->side->get(t->here, &item);) {
        t->side->done(t->here, item);
        t->side->add(t->there, bench_key(0));
    }
    return NULL;
}

/* one key there and back, between two threads and two queues */
static void
ping_pong(const struct side *s, size_t n)
{
    const size_t trips = bench_scaled(n);
    struct table far = {s, s->create(), s->create()};
    pthread_t    partner;

    bench_make_keys(1);
    const double begin = bench_now_ns();
    start(&partner, play, &far);
    for (size_t i = 0; i < trips; i++) {
        void *item;
        s->add(far.here, bench_key(0));
        must(s->get(far.there, &item), "get");
        s->done(far.there, item);
    }
    s->shutdown(far.here);
    pthread_join(partner, NULL);
    bench_print("ns", (bench_now_ns() - begin) / (double)trips);
    s->destroy(far.here);
    s->destroy(far.there);
}

/* ---- a pool ------------------------------------------------------------- */

static double
time_pool(const struct side *s, void *q, size_t keys)
{
    const double begin = bench_now_ns();
    void        *pool = s->pool(q);

    for (size_t i = 0; i < keys; i++)
        s->add(q, bench_key(i));
    must(s->pool_drain(pool) == keys, "number of keys worked on");
    return (bench_now_ns() - begin) / (double)keys;
}

/* the loop written by hand, for sides that have no pool of their own */
static double
time_loop(const struct side *s, void *q, size_t keys)
{
    pthread_t   threads[POOL_THREADS];
    struct crew crews[POOL_THREADS];
    size_t      got = 0;

    const double begin = bench_now_ns();
    for (size_t i = 0; i < POOL_THREADS; i++) {
        crews[i] = (struct crew){.side = s, .queue = q};
        start(&threads[i], consume, &crews[i]);
    }
    for (size_t i = 0; i < keys; i++)
        s->add(q, bench_key(i));
    s->shutdown(q);
    for (size_t i = 0; i < POOL_THREADS; i++) {
        pthread_join(threads[i], NULL);
        got += crews[i].got;
    }
    const double took = bench_now_ns() - begin;
    must(got == keys, "number of keys worked on");
    return took / (double)keys;
}

/* a pool of eight threads whose handlers do nothing, and one producer */
static void
pool(const struct side *s, size_t n)
{
    bench_print_timed(s, s->create, bench_scaled(n),
                      s->pool ? time_pool : time_loop);
}

const struct row rows_crowds[] = {
    {"1x1", crowd, 1},    {"2x2", crowd, 2}, {"4x4", crowd, 4},
    {"8x8", crowd, 8},    {"fair", fair, 4}, {"ping-pong", ping_pong, TRIPS},
    {"pool", pool, KEYS}, {NULL, NULL, 0},
};
