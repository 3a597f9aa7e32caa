/* SPDX-License-Identifier: MIT */
/* real_time.c: how long does a real-time thread wait for a queue?
 *
 * A thread with a real-time priority gets keys; ordinary threads on the same
 * processor add them, and the real-time thread preempts them at any point. The
 * program prints how many calls took longer than 100 us, with an ordinary queue
 * and with a real-time one. Needs permission to use SCHED_FIFO.
 */
#define _GNU_SOURCE /* CPU_SET */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <wq/wq.h>

#define US INT64_C(1000)
enum { PRODUCERS = 2 };

static atomic_bool stop;

static int64_t
now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return WQ_SECONDS(t.tv_sec) + t.tv_nsec;
}

static void *
produce(void *q)
{
    for (uint64_t n = 0; !atomic_load(&stop); n++) {
        const uint64_t key = n % 1000;
        if (wq_add(q, wq_u64(&key)))
            return q;
    }
    return NULL;
}

/* One period of a control loop. */
static void
take_some(wq_queue *q, long *calls, long *late, int64_t *longest_ns)
{
    wq_item *item;

    for (int i = 0; i < 10; i++) {
        const int64_t begin = now_ns();
        const wq_err  err = wq_get_within(q, 0, &item);
        const int64_t took = now_ns() - begin;

        ++*calls;
        *late += took > 100 * US;
        *longest_ns = took > *longest_ns ? took : *longest_ns;
        if (err)
            return;
        wq_done(q, item);
    }
}

/* begin: queue */
/* No call of the real-time thread waits for a preempted producer: the producer
 * inherits its priority until it has released the queue's lock. */
static wq_err
create(bool real_time, wq_queue **q)
{
    return wq_create(WQ_CONFIG(.real_time = real_time), q);
}
/* end: queue */

static int
measure(bool real_time, int64_t duration_ns)
{
    const struct sched_param ordinary = {0}, urgent = {.sched_priority = 50};
    const struct timespec    period = {.tv_nsec = 200 * US};
    pthread_t                producers[PRODUCERS];
    long                     calls = 0, late = 0;
    int64_t                  longest_ns = 0;
    wq_queue                *q;

    const wq_err err = create(real_time, &q);
    if (err) {
        printf("cannot create the queue: %s\n", wq_last_error());
        return 1;
    }
    (void)pthread_setschedparam(pthread_self(), SCHED_OTHER, &ordinary);
    atomic_store(&stop, false);
    for (int i = 0; i < PRODUCERS; i++)
        if (pthread_create(&producers[i], NULL, produce, q))
            return 1;
    (void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &urgent);
    for (const int64_t end = now_ns() + duration_ns; now_ns() < end;) {
        (void)nanosleep(&period, NULL);
        take_some(q, &calls, &late, &longest_ns);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < PRODUCERS; i++)
        (void)pthread_join(producers[i], NULL);
    wq_destroy(q);
    printf("%-9s %ld of %ld calls took more than 100 us, the longest %lld us\n",
           real_time ? "real time" : "ordinary", late, calls,
           (long long)(longest_ns / US));
    return 0;
}

int
main(int argc, char **argv)
{
    const int64_t duration_ns = argc > 1 ? WQ_MS(atoi(argv[1])) : WQ_SECONDS(2);
    const struct sched_param urgent = {.sched_priority = 50};
    cpu_set_t                one;

    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    (void)sched_setaffinity(0, sizeof one, &one);
    if (pthread_setschedparam(pthread_self(), SCHED_FIFO, &urgent)) {
        puts("this user may not use SCHED_FIFO");
        return 0;
    }
    return measure(false, duration_ns) || measure(true, duration_ns);
}
