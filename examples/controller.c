/* SPDX-License-Identifier: MIT */
/* controller.c: what does a program built on wq look like?
 *
 * A small controller. Watchers receive many events, in bursts, about a few
 * hundred objects; each event only means "this object has changed". Workers
 * reconcile the object: that takes a while, and fails now and then. The queue
 * turns many events into few runs, never hands an object to two workers at
 * once, and never loses an event that arrives during a run.
 *
 *     controller [SECONDS]        (3 by default; Ctrl-C ends it early)
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <wq/wq.h>

enum { OBJECTS = 300, WATCHERS = 4, WORKERS = 8, MAX_TRIES = 5 };

/* One object. The worker that holds its key owns `seen` and `tries`: the queue
 * hands a key to one worker at a time. */
struct object {
    char        key[32];
    atomic_uint events; /* seen by watchers */
    unsigned    seen;   /* events before the last run */
    unsigned    tries;  /* failures in a row */
    atomic_bool running;
};

static struct object objects[OBJECTS];
static wq_queue     *queue;

static atomic_bool  stop; /* lock-free: a signal handler may set it */
static atomic_ulong events, runs, failures, given_up, overlaps;

static double
seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
rest(unsigned microseconds)
{
    const struct timespec t = {.tv_nsec = (long)microseconds * 1000};
    (void)nanosleep(&t, NULL);
}

/* A small random number generator: one per thread. */
static unsigned
draw(unsigned *seed, unsigned below)
{
    *seed = *seed * 1664525U + 1013904223U;
    return (*seed >> 8) % below;
}

/* ---- watchers ----------------------------------------------------------- */

static void *
watch(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;

    while (!atomic_load(&stop)) {
        /* A burst: one object changes many times, for example in a rollout. */
        struct object *object = &objects[draw(&seed, OBJECTS)];
        for (unsigned n = 1 + draw(&seed, 40); n > 0; n--) {
            atomic_fetch_add(&object->events, 1);
            if (wq_add_str(queue, object->key) != WQ_OK)
                return NULL; /* shut down */
            atomic_fetch_add(&events, 1);
        }
        rest(500);
    }
    return NULL;
}

/* ---- workers ------------------------------------------------------------ */

/* Make the actual state of `object` match its desired state. */
static bool
reconcile(struct object *object, unsigned *seed)
{
    if (atomic_exchange(&object->running, true))
        atomic_fetch_add(&overlaps, 1); /* the queue prevents this */
    object->seen = atomic_load(&object->events);
    rest(200 + draw(seed, 1000));
    atomic_store(&object->running, false);
    return draw(seed, 10) != 0;
}

static struct object *
object_of(wq_key key)
{
    for (struct object *o = objects; o < objects + OBJECTS; o++)
        if (key.len == strlen(o->key) && !memcmp(key.data, o->key, key.len))
            return o;
    abort(); /* no other keys were added */
}

static void *
work(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    wq_item *item;

    while (wq_get(queue, &item) == WQ_OK) {
        struct object *object = object_of(item->key);

        atomic_fetch_add(&runs, 1);
        if (reconcile(object, &seed)) {
            object->tries = 0;
        } else if (++object->tries < MAX_TRIES) {
            atomic_fetch_add(&failures, 1);
            /* Run it again after done. Refused after the shutdown. */
            if (wq_add(queue, item->key) != WQ_OK)
                atomic_fetch_add(&given_up, 1);
        } else {
            atomic_fetch_add(&given_up, 1);
            object->tries = 0;
        }
        wq_done(queue, item);
    }
    return NULL;
}

/* ---- the program -------------------------------------------------------- */

static void
on_signal(int number)
{
    (void)number;
    atomic_store(&stop, true);
}

static void
progress(double left)
{
    if (!isatty(STDOUT_FILENO))
        return;
    printf("\r\033[K%4.1f s left   %lu events   %lu runs   %lu failed   "
           "%zu ready",
           left, atomic_load(&events), atomic_load(&runs),
           atomic_load(&failures), wq_len(queue));
    (void)fflush(stdout);
}

static void
start(pthread_t *threads, unsigned n, void *(*body)(void *))
{
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, body,
                           (void *)(uintptr_t)(i + 1)) != 0) {
            (void)fputs("controller: cannot start a thread\n", stderr);
            exit(1);
        }
}

static void
join(const pthread_t *threads, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        (void)pthread_join(threads[i], NULL);
}

/* Objects with events after their last run: the queue would have lost them. */
static unsigned
count_missed(void)
{
    unsigned missed = 0;
    for (struct object *o = objects; o < objects + OBJECTS; o++)
        missed += o->seen != atomic_load(&o->events);
    return missed;
}

static void
summary(double took, unsigned missed)
{
    const unsigned long n = atomic_load(&events), r = atomic_load(&runs);

    if (isatty(STDOUT_FILENO))
        (void)fputs("\r\033[K", stdout);
    printf("%.1f s: %lu events about %d objects became %lu runs "
           "(%.1f events a run)\n",
           took, n, OBJECTS, r, r ? (double)n / (double)r : 0.0);
    printf("%lu runs failed and were tried again; %lu objects were given up\n",
           atomic_load(&failures), atomic_load(&given_up));
    printf("%lu times two workers held the same object; %u objects missed an "
           "event\n",
           atomic_load(&overlaps), missed);
}

int
main(int argc, char **argv)
{
    const double duration = argc > 1 ? strtod(argv[1], NULL) : 3.0;
    pthread_t    watchers[WATCHERS], workers[WORKERS];

    if (!(duration > 0)) {
        (void)fprintf(stderr, "controller: '%s' is not a number of seconds\n",
                      argv[1]);
        return 2;
    }
    if (wq_create(NULL, &queue)) {
        (void)fprintf(stderr, "controller: %s\n", wq_last_error());
        return 1;
    }
    for (int i = 0; i < OBJECTS; i++)
        (void)snprintf(objects[i].key, sizeof objects[i].key, "default/pod-%d",
                       i);
    (void)signal(SIGINT, on_signal);
    (void)signal(SIGTERM, on_signal);

    const double begin = seconds();
    start(workers, WORKERS, work);
    start(watchers, WATCHERS, watch);
    while (!atomic_load(&stop) && seconds() - begin < duration) {
        progress(duration - (seconds() - begin));
        rest(50000);
    }
    atomic_store(&stop, true);
    join(watchers, WATCHERS);
    (void)wq_shutdown_with_drain(queue); /* workers finish what is left */
    join(workers, WORKERS);

    const unsigned missed = count_missed();
    summary(seconds() - begin, missed);
    wq_destroy(queue);
    return missed || atomic_load(&overlaps) ? 1 : 0;
}
