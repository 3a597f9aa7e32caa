/* SPDX-License-Identifier: MIT */
/* waiting.c: what do deadlines and sleep cost, and how exact are they?
 *
 * All rows use the real clock. With a fake one they would measure the clock:
 * client-go's has a lock of its own, and can miss a step.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "bench.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define HOUR (3600 * 1000 * MS)

enum { WAKES = 500, TIMERS = 1000 };

/* ---- add_after ---------------------------------------------------------- */

/* add_after of `n` keys, and get and done of them all.
 *
 * All deadlines are in one millisecond, in random order, so far in the future
 * that all keys are WAITING before the first is due. The row counts the time of
 * the adds and the time from the first deadline to the last done, but not the
 * idle time in between. If the adds take so long that there is no idle time,
 * the row counts all of it.
 */
static void
after(const struct side *s, size_t n)
{
    const size_t  keys = bench_scaled(n);
    const int64_t ahead = (int64_t)keys * 3 * US + 10 * MS;
    uint64_t      state = 1;

    bench_need(s->add_after);
    bench_make_keys(keys);
    void *q = s->create();

    const double begin = bench_now_ns();
    const double first = begin + (double)ahead;
    for (size_t i = 0; i < keys; i++) {
        const int64_t random = (int64_t)(bench_random(&state) % (uint64_t)MS);
        s->add_after(q, bench_key(i),
                     (int64_t)(first - bench_now_ns()) + random);
    }
    const double added = bench_now_ns();
    bench_sleep_ns((int64_t)(first - added));
    for (size_t i = 0; i < keys; i++)
        bench_get_and_done(s, q);
    const double end = bench_now_ns();

    const double fired = end - (added > first ? added : first);
    bench_print("ns", (added - begin + fired) / (double)keys);
    bench_print("add_ns", (added - begin) / (double)keys);
    bench_print("fire_ns", fired / (double)keys);
    s->destroy(q);
}

/* How late are keys that were added with delays of 1 to 50 ms? From the
 * deadline until get has returned: the kernel's timer, the wake-up of a
 * sleeping thread, and the queue's own part. */
static void
late(const struct side *s, size_t n)
{
    double  *due = calloc(n, sizeof *due), *lateness = calloc(n, sizeof *due);
    uint64_t state = 1;

    bench_need(s->add_after);
    must(due && lateness, "calloc");
    bench_make_keys(n);
    void *q = s->create();
    for (size_t i = 0; i < n; i++) {
        const int64_t delay = MS + (int64_t)(bench_random(&state) % 49000) * US;
        due[i] = bench_now_ns() + (double)delay;
        s->add_after(q, bench_key(i), delay);
    }
    for (size_t k = 0; k < n; k++) {
        void *item;
        must(s->get(q, &item), "get");
        const size_t i = bench_key_number(s->key(item));
        lateness[k] = bench_now_ns() - due[i];
        s->done(q, item);
    }
    bench_print_spread(lateness, n);
    s->destroy(q);
    free(due);
    free(lateness);
}

/* ---- sleep -------------------------------------------------------------- */

struct sleeper {
    const struct side *side;
    void              *queue;
    double            *added; /* when each key was added; NULL: not measured */
    double            *took;  /* from then until its get returned */
};

static void *
sleep_and_get(void *arg)
{
    const struct sleeper *l = arg;
    size_t                n = 0;

    for (void *item; l->side->get(l->queue, &item); n++) {
        if (l->added)
            l->took[n] = bench_now_ns() - l->added[n];
        l->side->done(l->queue, item);
    }
    return NULL;
}

/* How long until a sleeping consumer has the key? It gets 2 ms to fall asleep
 * first. */
static void
wake(const struct side *s, size_t n)
{
    const size_t   times = n < bench_scaled(n * 10) ? n : bench_scaled(n * 10);
    double        *added = calloc(times, sizeof *added);
    double        *took = calloc(times, sizeof *took);
    pthread_t      consumer;
    struct sleeper sleeper = {s, s->create(), added, took};

    must(added && took, "calloc");
    bench_make_keys(times);
    must(!pthread_create(&consumer, NULL, sleep_and_get, &sleeper), "thread");
    for (size_t i = 0; i < times; i++) {
        bench_sleep_ns(2 * MS);
        added[i] = bench_now_ns();
        s->add(sleeper.queue, bench_key(i));
    }
    s->shutdown(sleeper.queue);
    pthread_join(consumer, NULL);
    bench_print_spread(took, times);
    s->destroy(sleeper.queue);
    free(added);
    free(took);
}

static double
cpu_us(void)
{
    struct rusage u;
    must(!getrusage(RUSAGE_SELF, &u), "getrusage");
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* How much processor time does an idle queue use? One consumer sleeps in it,
 * one key is due in an hour; the figure is the processor time of the whole
 * process in a second. */
static void
idle(const struct side *s, size_t n)
{
    const int64_t ms = (int64_t)bench_scaled(10 * n) / 10;
    pthread_t     consumer;

    bench_need(s->add_after);
    bench_make_keys(1);
    struct sleeper sleeper = {s, s->create(), NULL, NULL};
    must(!pthread_create(&consumer, NULL, sleep_and_get, &sleeper), "thread");
    s->add_after(sleeper.queue, bench_key(0), HOUR);
    bench_sleep_ns(100 * MS);
    const double before = cpu_us();
    bench_sleep_ns(ms * MS);
    bench_print("cpu_us", cpu_us() - before);
    s->shutdown(sleeper.queue);
    pthread_join(consumer, NULL);
    s->destroy(sleeper.queue);
}

/* What does a key cost whose consumer is asleep? `n` keys per second for a
 * second, at equal intervals. The figure is the processor time of the whole
 * process per key: the producer's sleeps are the same on every side. */
static void
trickle(const struct side *s, size_t n)
{
    const int64_t  pause = 1000 * MS / (int64_t)n;
    const size_t   keys = bench_scaled(n);
    pthread_t      consumer;
    struct sleeper sleeper = {s, s->create(), NULL, NULL};

    bench_make_keys(keys);
    must(!pthread_create(&consumer, NULL, sleep_and_get, &sleeper), "thread");
    bench_sleep_ns(10 * MS);
    const double begin = bench_now_ns(), before = cpu_us();
    for (size_t i = 0; i < keys; i++) {
        const double at = begin + (double)pause * (double)(i + 1);

        bench_sleep_ns((int64_t)(at - bench_now_ns()));
        s->add(sleeper.queue, bench_key(i));
    }
    bench_print("cpu_us", (cpu_us() - before) / (double)keys);
    s->shutdown(sleeper.queue);
    pthread_join(consumer, NULL);
    s->destroy(sleeper.queue);
}

const struct row rows_waiting[] = {
    {"after-100k", after, 100000},
    {"after-1m", after, 1000000},
    {"late", late, TIMERS},
    {"wake", wake, WAKES},
    {"idle", idle, 1000},
    {"trickle-1k", trickle, 1000},
    {"trickle-10k", trickle, 10000},
    {NULL, NULL, 0},
};
