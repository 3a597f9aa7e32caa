/* SPDX-License-Identifier: MIT */
/* crowds.c: what does a key cost when many threads use the queue?
 *
 * If nothing else is said, the time is measured from before the first thread
 * starts until the last one has ended after the shutdown.
 */
#include <pthread.h>
#include <stdlib.h>

#include "bench.h"

enum { KEYS = 1000000, TRIPS = 100000, MOST = 8 };

/* The number of a row: producers and consumers. */
#define CREW(producers, consumers) ((producers)*16 + (consumers))

struct crew {
    const struct side *side;
    void              *queue;
    size_t             from, to; /* a producer's keys */
    size_t             got;      /* a consumer's count */
    double            *added;  /* when each key was added; NULL: not measured */
    double            *waited; /* from then until its get */
    bool               batches; /* BATCH keys with each call */
    bool               one_key; /* a producer's: always key 0 */
    void (*work)(void);         /* a consumer's, for each key; NULL: none */
};

/* BATCH keys with each call. */
static void *
produce_batches(void *arg)
{
    const struct crew *c = arg;
    wq_key             keys[BATCH];

    for (size_t i = c->from; i + BATCH <= c->to; i += BATCH) {
        for (size_t k = 0; k < BATCH; k++)
            keys[k] = bench_key(i + k);
        c->side->add_batch(c->queue, keys);
    }
    return NULL;
}

/* Up to BATCH keys with each call. */
static void *
consume_batches(void *arg)
{
    struct crew *c = arg;
    void        *items[BATCH];
    size_t       n;

    while ((n = c->side->get_some(c->queue, items)) > 0) {
        c->side->done_some(c->queue, items, n);
        c->got += n;
    }
    return NULL;
}

static void *
produce(void *arg)
{
    const struct crew *c = arg;

    for (size_t i = c->from; i < c->to; i++) {
        if (c->added)
            c->added[i] = bench_now_ns();
        c->side->add(c->queue, bench_key(c->one_key ? 0 : i));
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
        if (c->work)
            c->work();
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

/* Every key different; ns for each key. `crew`: see CREW(). */
static double
time_crowd(const struct crew *all, size_t crew)
{
    const size_t producers = crew / 16, consumers = crew % 16;
    const size_t each = all->to / producers / BATCH * BATCH;
    pthread_t    threads[2 * MOST];
    struct crew  crews[2 * MOST];
    size_t       got = 0;

    const double begin = bench_now_ns();
    for (size_t i = 0; i < consumers + producers; i++) {
        crews[i] = *all;
        if (i < consumers) {
            start(&threads[i], all->batches ? consume_batches : consume,
                  &crews[i]);
            continue;
        }
        crews[i].from = (i - consumers) * each;
        crews[i].to = crews[i].from + each;
        start(&threads[i], all->batches ? produce_batches : produce, &crews[i]);
    }
    for (size_t i = consumers; i < consumers + producers; i++)
        pthread_join(threads[i], NULL);
    all->side->shutdown(all->queue);
    for (size_t i = 0; i < consumers; i++) {
        pthread_join(threads[i], NULL);
        got += crews[i].got;
    }
    const double took = bench_now_ns() - begin;
    must(got == each * producers, "number of keys handed out");
    return took / (double)got;
}

static void
print_crowd(const struct side *s, size_t crew, bool batches)
{
    const size_t keys = bench_scaled(KEYS);

    bench_make_keys(keys);
    void             *q = s->create();
    const struct crew all = {
        .side = s, .queue = q, .to = keys, .batches = batches};
    bench_print("ns", time_crowd(&all, crew));
    s->destroy(q);
}

static void
crowd(const struct side *s, size_t crew)
{
    print_crowd(s, crew, false);
}

/* the same in batches of 32; one by one if the side has none */
static void
crowd_of_batches(const struct side *s, size_t crew)
{
    print_crowd(s, crew, s->add_batch && s->get_some);
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

/* ---- a hot key ---------------------------------------------------------- */

/* `n` producers add one key again and again, while a consumer works on it: ns for
 * each add */
static void
hot_key(const struct side *s, size_t n)
{
    const size_t each = bench_scaled(KEYS) / n;
    pthread_t    threads[MOST], consumer;
    struct crew  worker = {.side = s, .queue = s->create()};

    bench_make_keys(1);
    struct crew producer = worker;
    producer.to = each;
    producer.one_key = true;
    start(&consumer, consume, &worker);
    const double begin = bench_now_ns();
    for (size_t i = 0; i < n; i++)
        start(&threads[i], produce, &producer);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    const double took = bench_now_ns() - begin;
    s->shutdown(worker.queue);
    pthread_join(consumer, NULL);
    must(worker.got >= 1 && worker.got <= each * n, "number of runs");
    bench_print("ns", took / (double)(each * n));
    s->destroy(worker.queue);
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

/* The workers of a side: its own pool, or the loop written by hand. */
struct workers {
    void       *pool;
    pthread_t   threads[POOL_THREADS];
    struct crew crews[POOL_THREADS];
};

static void
start_workers(struct workers *w, const struct side *s, void *q,
              void (*work)(void))
{
    if (s->pool) {
        w->pool = s->pool(q, work);
        return;
    }
    for (size_t i = 0; i < POOL_THREADS; i++) {
        w->crews[i] = (struct crew){.side = s, .queue = q, .work = work};
        start(&w->threads[i], consume, &w->crews[i]);
    }
}

/* Shuts the queue down and returns the number of keys worked on. */
static size_t
end_workers(struct workers *w, const struct side *s, void *q)
{
    size_t got = 0;

    if (s->pool)
        return s->pool_drain(w->pool);
    s->shutdown(q);
    for (size_t i = 0; i < POOL_THREADS; i++) {
        pthread_join(w->threads[i], NULL);
        got += w->crews[i].got;
    }
    return got;
}

static double
time_pool(const struct side *s, void *q, size_t keys)
{
    struct workers workers;
    const double   begin = bench_now_ns();

    start_workers(&workers, s, q, NULL);
    for (size_t i = 0; i < keys; i++)
        s->add(q, bench_key(i));
    must(end_workers(&workers, s, q) == keys, "number of keys worked on");
    return (bench_now_ns() - begin) / (double)keys;
}

/* a pool of eight threads whose handlers do nothing, and one producer */
static void
pool(const struct side *s, size_t n)
{
    bench_print_timed(s, s->create, bench_scaled(n), time_pool);
}

/* ---- slow handlers ------------------------------------------------------ */

enum { SLOW_KEYS = 4000, HANDLER_NS = 1000000, REST_NS = 5000000 };

/* How many workers have begun their first key. */
static _Atomic size_t n_present;
/* How long each worker was free before its handler was called. */
static double         gaps[SLOW_KEYS];
static _Atomic size_t n_gaps;
/* Since when a worker is free; 0: since the first add. */
static _Thread_local double free_since;
static _Thread_local bool   is_present;
static double               slow_begin;

/* The first key of each worker: it ends when all workers have one, so that all
 * threads have started. */
static void
wait_for_the_others(void)
{
    is_present = true;
    n_present++;
    while (n_present < POOL_THREADS)
        bench_sleep_ns(HANDLER_NS);
}

static void
work_slowly(void)
{
    if (!is_present) {
        wait_for_the_others();
        return;
    }
    const double now = bench_now_ns();
    gaps[n_gaps++] = now - (free_since > 0 ? free_since : slow_begin);
    bench_sleep_ns(HANDLER_NS);
    free_since = bench_now_ns();
}

/* Handlers that take 1 ms: how long is a worker free while keys are READY? From
 * the end of a handler to the beginning of the next one; and for the first key
 * of each worker, from the first add, when all of them sleep. */
static void
slow_pool(const struct side *s, size_t n)
{
    struct workers workers;
    void          *q = s->create();

    bench_make_keys(n + POOL_THREADS);
    start_workers(&workers, s, q, work_slowly);
    for (size_t i = 0; i < POOL_THREADS; i++)
        s->add(q, bench_key(n + i));
    while (n_present < POOL_THREADS)
        bench_sleep_ns(HANDLER_NS);
    bench_sleep_ns(REST_NS);

    slow_begin = bench_now_ns();
    for (size_t i = 0; i < n; i++)
        s->add(q, bench_key(i));
    (void)end_workers(&workers, s, q);
    must(n_gaps == n, "number of handlers");
    bench_print_spread(gaps, n);
    s->destroy(q);
}

const struct row rows_crowds[] = {
    {"1x1", crowd, CREW(1, 1)},
    {"2x2", crowd, CREW(2, 2)},
    {"4x4", crowd, CREW(4, 4)},
    {"8x8", crowd, CREW(8, 8)},
    {"1x2", crowd, CREW(1, 2)},
    {"1x8", crowd, CREW(1, 8)},
    {"8x1", crowd, CREW(8, 1)},
    {"batch-4x4", crowd_of_batches, CREW(4, 4)},
    {"fair", fair, CREW(4, 4)},
    {"hot-key", hot_key, 8},
    {"ping-pong", ping_pong, TRIPS},
    {"pool", pool, KEYS},
    {"pool-slow", slow_pool, SLOW_KEYS},
    {NULL, NULL, 0},
};
