/* SPDX-License-Identifier: MIT */
/* correct.c: does a race detector report a program without races?
 *
 * Each scene uses one part of the API as programs do. All memory that threads
 * share is plain: only the queue, and the start and the end of threads, order
 * the accesses. So every report is a false positive. Only the main thread
 * starts threads: if several do, Helgrind reports the memset in glibc's
 * get_cached_stack, with this library or without.
 *
 *     correct N    N is the number of keys in the largest scenes
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/backend.h>
#include <wq/inspect.h>
#include <wq/limiter.h>
#include <wq/metrics.h>
#include <wq/workers.h>
#include <wq/wq.h>

#include "../support/unlocked_allocator.h"
#include "check.h"

#define MS INT64_C(1000000)

enum { THREADS = 3, LONG_KEY = 300 };

static unsigned number; /* N; written before the first thread */

/* What a key stands for. A producer fills in `input` before the add; the worker
 * that holds the key changes the rest. */
struct object {
    char     input[16];
    unsigned runs;
    char    *output; /* allocated by one worker, replaced by the next */
};

static wq_key
key_of(struct object *const *o)
{
    return (wq_key){o, sizeof *o};
}

static struct object *
object_of(const wq_item *item)
{
    struct object *o;

    memcpy(&o, item->key.data, sizeof o);
    return o;
}

static void
work_on(struct object *o)
{
    CHECK(strcmp(o->input, "ready") == 0);
    free(o->output);
    o->output = malloc(32);
    CHECK(o->output);
    snprintf(o->output, 32, "run %u", ++o->runs);
}

static struct object *
make_object(void)
{
    struct object *o = calloc(1, sizeof *o);

    CHECK(o);
    strcpy(o->input, "ready");
    return o;
}

static void
free_object(struct object *o)
{
    CHECK(o->runs && o->output);
    free(o->output);
    free(o);
}

static pthread_t
start(void *(*run)(void *), void *arg)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, run, arg) == 0);
    return thread;
}

/* ---- producers and consumers --------------------------------------------- */

struct producer {
    wq_queue       *q;
    struct object **objects;
};

static void *
produce(void *arg)
{
    const struct producer *p = arg;
    char                   wide[LONG_KEY];

    for (unsigned i = 0; i < number; i++) {
        p->objects[i] = make_object();
        CHECK(wq_add(p->q, key_of(&p->objects[i])) == WQ_OK);
        CHECK(wq_add(p->q, key_of(&p->objects[i / 2])) == WQ_OK);
        if (i % 16 == 0) { /* too long for the inbox */
            memset(wide, 'a' + (int)(i % 26), sizeof wide);
            memcpy(wide, &p->objects[i], sizeof p->objects[i]);
            CHECK(wq_add(p->q, (wq_key){wide, sizeof wide}) == WQ_OK);
        }
    }
    return NULL;
}

static void *
consume(void *arg)
{
    wq_queue *q = arg;
    wq_item  *item;

    while (wq_get(q, &item) == WQ_OK) {
        if (item->key.len != LONG_KEY)
            work_on(object_of(item));
        CHECK(wq_done(q, item) == WQ_OK);
    }
    return NULL;
}

static void
hand_over(void)
{
    wq_queue       *q;
    pthread_t       producers[THREADS], consumers[THREADS];
    struct producer of[THREADS];

    CHECK(wq_create(WQ_CONFIG(.allocator = &unlocked_allocator, .ages = true),
                    &q) == WQ_OK);
    for (int i = 0; i < THREADS; i++) {
        of[i].q = q;
        of[i].objects = calloc(number, sizeof *of[i].objects);
        CHECK(of[i].objects);
        consumers[i] = start(consume, q);
        producers[i] = start(produce, &of[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(producers[i], NULL);
    CHECK(wq_shutdown_with_drain(q) == WQ_OK);
    for (int i = 0; i < THREADS;
         i++) { /* after the drain, the workers have ended */
        for (unsigned k = 0; k < number; k++)
            free_object(of[i].objects[k]);
        free(of[i].objects);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(consumers[i], NULL);
    wq_destroy(q);
    CHECK(unlocked_bytes == 0);
}

/* ---- a worker pool with retries, delays and metrics ---------------------- */

struct pool {
    struct object **objects;
    wq_queue       *q;
    wq_registry    *registry;
    unsigned        stuck; /* written by the watchdog only */
};

static wq_result
reconcile(void *ctx, const wq_item *item)
{
    struct object *o = object_of(item);

    (void)ctx;
    work_on(o);
    return o->runs == 1   ? wq_result_retry()
           : o->runs == 2 ? wq_result_after(MS)
                          : wq_result_done();
}

static void
notice_stuck(void *ctx, const wq_item *item, int64_t running_ns)
{
    struct pool *p = ctx;

    (void)item;
    (void)running_ns;
    p->stuck++;
}

static void *
scrape(void *arg)
{
    struct pool *p = arg;
    wq_stats     counts = {.size = sizeof counts};
    char        *text;
    size_t       len;

    while (!wq_shutting_down(p->q)) {
        CHECK(wq_registry_text(p->registry, WQ_TEXT_OPENMETRICS, &text, &len) ==
              WQ_OK);
        free(text);
        CHECK(wq_read_stats(p->q, &counts) == WQ_OK);
        poll(NULL, 0, 1);
    }
    return NULL;
}

static void
run_pool(void)
{
    struct pool      p = {0};
    wq_workers      *pool;
    wq_workers_stats counts = {.size = sizeof counts};
    const unsigned   n = number / 4;

    CHECK(wq_registry_create(&p.registry) == WQ_OK);
    CHECK(wq_metrics_set_default(wq_registry_sink(p.registry)) == WQ_OK);
    CHECK(wq_create(WQ_CONFIG(.name = "pool", .waiting = WQ_WAITING_KEEP,
                              .limiter = wq_limiter_exponential(MS / 10, MS)),
                    &p.q) == WQ_OK);
    CHECK(wq_workers_start(p.q,
                           WQ_WORKERS(.threads = THREADS, .handler = reconcile,
                                      .ctx = &p, .item_deadline_ns = 50 * MS,
                                      .on_stuck = notice_stuck),
                           &pool) == WQ_OK);
    const pthread_t scraper = start(scrape, &p);
    p.objects = calloc(n, sizeof *p.objects);
    CHECK(p.objects);
    for (unsigned i = 0; i < n; i++) {
        p.objects[i] = make_object();
        CHECK(wq_add_after(p.q, key_of(&p.objects[i]), (i % 3) * MS / 2) ==
              WQ_OK);
        if (i == n / 2)
            CHECK(wq_workers_resize(pool, THREADS - 1) == WQ_OK &&
                  wq_workers_resize(pool, THREADS + 1) == WQ_OK &&
                  wq_workers_read_stats(pool, &counts) == WQ_OK);
    }
    CHECK(wq_workers_drain(pool, WQ_FOREVER) == WQ_OK);
    pthread_join(scraper, NULL);
    for (unsigned i = 0; i < n; i++)
        free_object(p.objects[i]);
    free(p.objects);
    CHECK(wq_workers_destroy(pool) == WQ_OK);
    wq_destroy(p.q);
    CHECK(wq_metrics_set_default(NULL) == WQ_OK);
    wq_registry_destroy(p.registry);
}

/* ---- without a queue ---------------------------------------------------- */

struct pieces {
    struct object *objects[32];
    bool           cancelled;
};

static void
work_on_piece(void *ctx, size_t piece)
{
    struct pieces *p = ctx;

    p->objects[piece] = make_object();
    work_on(p->objects[piece]);
}

static bool
is_cancelled(void *ctx)
{
    const struct pieces *p = ctx;

    return p->cancelled;
}

static void
run_parallel(void)
{
    struct pieces             p = {.cancelled = false};
    const wq_parallel_options how = {.size = sizeof how,
                                     .cancelled = is_cancelled};

    CHECK(wq_parallelize(THREADS, 32, work_on_piece, &p, &how) == WQ_OK);
    for (int i = 0; i < 32; i++)
        free_object(p.objects[i]);
    p.cancelled = true;
    CHECK(wq_parallelize(THREADS, 32, work_on_piece, &p, &how) ==
          WQ_EINTERRUPTED);
}

/* ---- an event loop ------------------------------------------------------ */

static void *
loop(void *arg)
{
    wq_queue     *q = arg;
    struct pollfd watched = {.fd = wq_fd(q), .events = POLLIN};
    wq_item      *item;
    wq_err        err = WQ_OK;

    while (watched.fd >= 0 && err != WQ_ESHUTDOWN) {
        (void)poll(&watched, 1, -1);
        while ((err = wq_get_within(q, 0, &item)) == WQ_OK) {
            work_on(object_of(item));
            CHECK(wq_done(q, item) == WQ_OK);
        }
    }
    return watched.fd < 0 ? consume(q) : NULL; /* the system has no wq_fd() */
}

static void
run_loop(void)
{
    wq_queue       *q;
    struct producer p;
    const unsigned  n = number / 4;

    CHECK(wq_create(NULL, &q) == WQ_OK);
    p.objects = calloc(n, sizeof *p.objects);
    CHECK(p.objects);
    const pthread_t thread = start(loop, q);
    for (unsigned i = 0; i < n; i++) {
        p.objects[i] = make_object();
        CHECK((i % 2
                   ? wq_add(q, key_of(&p.objects[i]))
                   : wq_add_after(q, key_of(&p.objects[i]), MS / 2)) == WQ_OK);
        if (i % 8 == 0)
            poll(NULL, 0, 1);
    }
    poll(NULL, 0, 2);
    while (wq_len(q))
        sched_yield();
    wq_shutdown(q);
    pthread_join(thread, NULL);
    for (unsigned i = 0; i < n; i++)
        if (p.objects[i]->runs) /* the last one may have been dropped */
            free_object(p.objects[i]);
        else
            free(p.objects[i]);
    free(p.objects);
    wq_destroy(q);
}

/* ---- batches, priorities, bounds, buckets, layers ----------------------- */

static void *
consume_batches(void *arg)
{
    wq_queue *q = arg;
    wq_item  *items[8], *item = NULL;
    size_t    n;

    while (wq_get_many(q, items, 8, WQ_FOREVER, &n) == WQ_OK) {
        for (size_t i = 0; i < n; i++)
            work_on(object_of(items[i]));
        CHECK(wq_done_many(q, items, n) == WQ_OK);
        while (wq_next(q, 0, &item) == WQ_OK)
            work_on(object_of(item));
    }
    return NULL;
}

struct bounded {
    wq_queue       *q;
    wq_bucket      *bucket;
    struct object **objects;
};

static void *
produce_batches(void *arg)
{
    struct bounded *b = arg;

    for (unsigned i = 0; i + 4 <= number / 4; i += 4) {
        wq_key keys[4];

        CHECK(wq_bucket_wait(b->bucket, WQ_FOREVER) == WQ_OK);
        for (unsigned k = 0; k < 4; k++) {
            b->objects[i + k] = make_object();
            keys[k] = key_of(&b->objects[i + k]);
        }
        CHECK(wq_add_with(b->q, WQ_ADD(.priority = (int)(i % 3)), keys, 4) ==
              WQ_OK);
    }
    return NULL;
}

static void
run_bounded(void)
{
    struct bounded b[2];
    pthread_t      producers[2], consumers[2];
    wq_queue      *q;
    wq_bucket     *bucket = wq_bucket_create(20000, 2, NULL);

    CHECK(bucket &&
          wq_create(WQ_CONFIG(.max_len = 16, .overflow = WQ_OVERFLOW_BLOCK),
                    &q) == WQ_OK);
    for (int i = 0; i < 2; i++) {
        b[i] = (struct bounded){q, bucket,
                                calloc(number, sizeof(struct object *))};
        CHECK(b[i].objects);
        producers[i] = start(produce_batches, &b[i]);
        consumers[i] = start(consume_batches, q);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(producers[i], NULL);
    wq_shutdown(q);
    for (int i = 0; i < 2; i++)
        pthread_join(consumers[i], NULL);
    for (int i = 0; i < 2; i++) {
        for (unsigned k = 0; k < number && b[i].objects[k]; k++)
            free_object(b[i].objects[k]);
        free(b[i].objects);
    }
    wq_destroy(q);
    wq_bucket_destroy(bucket);
}

static void
run_layers(void)
{
    wq_queue       *q, *inner;
    pthread_t       consumers[2];
    const unsigned  n = number / 8;
    struct object **objects = calloc(n, sizeof *objects);

    CHECK(objects && wq_create(NULL, &inner) == WQ_OK);
    CHECK(wq_delaying_wrap(inner, NULL, &q) == WQ_OK);
    for (int i = 0; i < 2; i++)
        consumers[i] = start(consume, q);
    for (unsigned i = 0; i < n; i++) {
        objects[i] = make_object();
        CHECK(wq_add_after(q, key_of(&objects[i]), (i % 2) * MS) == WQ_OK);
    }
    poll(NULL, 0, 5);
    CHECK(wq_shutdown_with_drain(q) == WQ_OK);
    for (int i = 0; i < 2; i++)
        pthread_join(consumers[i], NULL);
    for (unsigned i = 0; i < n; i++) {
        free(objects[i]->output); /* WAITING keys may have been dropped */
        free(objects[i]);
    }
    free(objects);
    wq_destroy(q);
}

/* ---- a fake clock, shutdown and destroy while threads wait ------------- */

static void
step_clock(void)
{
    wq_clock      *clock = wq_clock_fake_create(0);
    struct object *o = make_object();
    wq_queue      *q;

    CHECK(clock && wq_create(WQ_CONFIG(.clock = clock), &q) == WQ_OK);
    const pthread_t thread = start(consume, q);
    CHECK(wq_add_after(q, key_of(&o), 10 * MS) == WQ_OK);
    wq_clock_fake_wait_for_waiters(clock, 1);
    wq_clock_fake_step(clock, 10 * MS);
    CHECK(wq_shutdown_with_drain(q) == WQ_OK);
    free_object(o);
    pthread_join(thread, NULL);
    wq_destroy(q);
    wq_clock_destroy(clock);
}

struct last_words {
    wq_queue *q;
    unsigned  words;
};

static void *
await_shutdown(void *arg)
{
    struct last_words *last = arg;

    while (!wq_shutting_down(last->q))
        sched_yield();
    CHECK(last->words == 42);
    return NULL;
}

static void
say_last_words(void)
{
    struct last_words last = {.words = 0};

    CHECK(wq_create(NULL, &last.q) == WQ_OK);
    const pthread_t thread = start(await_shutdown, &last);
    last.words = 42;
    wq_shutdown(last.q);
    pthread_join(thread, NULL);
    wq_destroy(last.q);
}

/* A get that is blocked when the queue is destroyed. */
static void *
sleep_in_get(void *arg)
{
    wq_item *item;

    CHECK(wq_get_within(arg, MS, &item) == WQ_ESHUTDOWN);
    return NULL;
}

static void
destroy_under_getter(void)
{
    wq_clock *clock = wq_clock_fake_create(0);
    wq_queue *q;

    CHECK(clock && wq_create(WQ_CONFIG(.clock = clock), &q) == WQ_OK);
    const pthread_t thread = start(sleep_in_get, q);
    wq_clock_fake_wait_for_waiters(clock, 1);
    wq_destroy(q);
    pthread_join(thread, NULL);
    wq_clock_destroy(clock);
}

/* A worker that runs every key twice, unless the key is removed. */
static void *
consume_twice(void *arg)
{
    wq_queue *q = arg;
    wq_item  *item;

    while (wq_get(q, &item) == WQ_OK) {
        struct object *o = object_of(item);

        work_on(o);
        if (o->runs == 1)
            CHECK(wq_add(q, item->key) == WQ_OK);
        CHECK(wq_done(q, item) == WQ_OK);
    }
    return NULL;
}

/* An object that a worker may or may not have used. */
static void
free_removed(struct object *o)
{
    free(o->output);
    free(o);
}

/* Each call that waits is the only thing that orders the workers' accesses and
 * this thread's. */
static void
wait_for_workers(void)
{
    pthread_t      consumers[2];
    wq_queue      *q;
    const unsigned n = number / 4;

    CHECK(wq_create(NULL, &q) == WQ_OK);
    for (int i = 0; i < 2; i++)
        consumers[i] = start(consume_twice, q);
    for (unsigned i = 0; i < n; i++) {
        struct object *o = make_object();

        CHECK(wq_add(q, key_of(&o)) == WQ_OK);
        if (i % 4 == 0)
            poll(NULL, 0, 1);
        switch (i % 4) {
        case 0:
            CHECK(wq_pause(q) == WQ_OK && wq_resume(q) == WQ_OK);
            break;
        case 1:
            CHECK(wq_flush_key(q, key_of(&o), WQ_FOREVER) == WQ_OK);
            break;
        case 2:
            CHECK(wq_flush(q, WQ_FOREVER) == WQ_OK);
            break;
        default:
            CHECK(wq_wait_idle(q, WQ_FOREVER) == WQ_OK);
            CHECK(o->runs == 2);
        }
        CHECK(wq_remove_wait(q, key_of(&o), WQ_FOREVER) == WQ_OK);
        free_removed(o);
    }
    wq_shutdown(q);
    for (int i = 0; i < 2; i++)
        pthread_join(consumers[i], NULL);
    wq_destroy(q);
}

/* A user's limiter, with state that only calls of the layer use. */
static int64_t
no_delay(void *undone, wq_key key)
{
    (void)undone;
    (void)key;
    return 0;
}

static void
count_undo(void *undone, wq_key key)
{
    (void)key;
    ++*(unsigned *)undone;
}

static void
check_undone(void *undone)
{
    CHECK(*(unsigned *)undone == 1);
    free(undone);
}

static void *
wait_in_limited_add(void *q)
{
    CHECK(wq_add_rate_limited(q, wq_str("new")) == WQ_ESHUTDOWN);
    return NULL;
}

/* Layers that are destroyed while a get, or an add, is blocked in them. */
static void
destroy_layers(void)
{
    const wq_limiter_ops ops = {.size = sizeof ops,
                                .when = no_delay,
                                .undo = count_undo,
                                .destroy = check_undone};
    wq_clock            *clock = wq_clock_fake_create(0);
    wq_queue            *inner, *q;
    wq_item             *item;

    CHECK(clock && wq_create(WQ_CONFIG(.clock = clock), &inner) == WQ_OK);
    CHECK(wq_delaying_wrap(inner, WQ_CONFIG(.clock = clock), &q) == WQ_OK);
    pthread_t thread = start(sleep_in_get, q);
    wq_clock_fake_wait_for_waiters(clock, 1);
    wq_destroy(q);
    pthread_join(thread, NULL);
    wq_clock_destroy(clock);

    CHECK(wq_create(WQ_CONFIG(.max_len = 1, .overflow = WQ_OVERFLOW_BLOCK),
                    &inner) == WQ_OK);
    CHECK(wq_add_str(inner, "held") == WQ_OK && wq_get(inner, &item) == WQ_OK);
    CHECK(
        wq_rate_limiting_wrap(inner,
                              WQ_CONFIG(.limiter = wq_limiter_create(
                                            &ops, calloc(1, sizeof(unsigned)))),
                              &q) == WQ_OK);
    thread = start(wait_in_limited_add, q);
    poll(NULL, 0, 100); /* until it is blocked, which nothing reports */
    wq_destroy(q);
    pthread_join(thread, NULL);
}

/* The memory of one queue becomes that of the next. */
static void
come_and_go(void)
{
    for (unsigned i = 0; i < 5; i++) {
        struct object *o = make_object();
        wq_workers    *pool;
        wq_queue      *q;

        CHECK(wq_create(NULL, &q) == WQ_OK);
        CHECK(wq_workers_start(q,
                               WQ_WORKERS(.threads = 2, .handler = reconcile),
                               &pool) == WQ_OK);
        const pthread_t thread = start(consume, q);
        CHECK(wq_add(q, key_of(&o)) == WQ_OK);
        CHECK(wq_workers_drain(pool, WQ_FOREVER) == WQ_OK);
        pthread_join(thread, NULL);
        free_object(o);
        CHECK(wq_workers_destroy(pool) == WQ_OK);
        wq_destroy(q);
    }
}

int
main(int argc, char **argv)
{
    CHECK(argc == 2);
    number = (unsigned)atoi(argv[1]);
    hand_over();
    run_pool();
    run_parallel();
    run_loop();
    run_bounded();
    run_layers();
    destroy_layers();
    step_clock();
    say_last_words();
    destroy_under_getter();
    wait_for_workers();
    come_and_go();
    return 0;
}
