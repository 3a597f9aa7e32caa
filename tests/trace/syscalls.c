/* SPDX-License-Identifier: MIT */
/* syscalls.c: the programs that syscalls.sh traces.
 *
 *     syscalls cycle    add, get, done by one thread, 100,000 times
 *     syscalls metrics  the same with metrics, for 1 to 2 seconds, by two
 *                       threads that have a queue each
 *     syscalls hour     one thread sleeps in wq_get() for two seconds, while a
 *                       key is due in an hour
 */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include <wq/metrics.h>

static int
cycle(wq_queue *q)
{
    wq_item *item;

    for (int i = 0; i < 100000; i++)
        if (wq_add_str(q, "key") || wq_get(q, &item) || wq_done(q, item))
            return 1;
    return 0;
}

static void *
cycle_for_a_while(void *registry)
{
    struct timespec begin, now;
    wq_queue       *q;
    void           *failed = NULL;

    if (wq_create(
            WQ_CONFIG(.name = "test", .metrics = wq_registry_sink(registry)),
            &q))
        return registry;
    (void)clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        if (cycle(q))
            failed = registry;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec < 2 && !failed);
    wq_destroy(q);
    return failed;
}

static int
metrics(void)
{
    wq_registry *registry;
    pthread_t    thread;
    void        *failed;

    if (wq_registry_create(&registry) ||
        pthread_create(&thread, NULL, cycle_for_a_while, registry))
        return 1;
    const void *here = cycle_for_a_while(registry);
    if (pthread_join(thread, &failed))
        return 1;
    wq_registry_destroy(registry);
    return here || failed;
}

static void *
get(void *q)
{
    wq_item *item;
    return wq_get(q, &item) == WQ_ESHUTDOWN ? NULL : q;
}

static int
hour(wq_queue *q)
{
    const struct timespec nap = {.tv_sec = 2};
    pthread_t             thread;
    void                 *failed;

    if (wq_add_after(q, wq_str("key"), INT64_C(3600000000000)) ||
        pthread_create(&thread, NULL, get, q))
        return 1;
    (void)nanosleep(&nap, NULL);
    wq_shutdown(q);
    return pthread_join(thread, &failed) || failed;
}

int
main(int argc, char **argv)
{
    wq_queue *q;

    if (argc == 2 && strcmp(argv[1], "metrics") == 0)
        return metrics();
    if (argc != 2 || wq_create(NULL, &q))
        return 2;
    const int status = strcmp(argv[1], "hour") == 0 ? hour(q) : cycle(q);
    wq_destroy(q);
    return status;
}
