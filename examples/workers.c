/* SPDX-License-Identifier: MIT */
/* workers.c: a controller is one function. What fails is tried again, later
 * each time; what cannot be helped is given up; the pool does the rest. */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

#include <wq/limiter.h>
#include <wq/workers.h>

#define MS INT64_C(1000000)

static sem_t      settled; /* one for each key that is through */
static atomic_int in_order, given_up;

/* begin: handler */
/* Nothing works at the first attempt, and "c" never does. */
static wq_result
reconcile(void *q, const wq_item *item)
{
    const char     name = *(const char *)item->key.data;
    const unsigned failures = wq_num_requeues(q, item->key);

    if (failures < 2 || name == 'c') {
        printf("%c: failed (%u times before)\n", name, failures);
        return wq_result_retry();
    }
    printf("%c: in order\n", name);
    in_order++;
    sem_post(&settled);
    return wq_result_done();
}
/* end: handler */

/* begin: drop */
/* WQ_OK is a reason, too: the handler said wq_result_drop(). */
static void
give_up(void *q, wq_key key, unsigned retries, wq_err why)
{
    (void)q;
    printf("%c: given up after %u retries: %s\n", *(const char *)key.data,
           retries, why ? wq_strerror(why) : "as the handler said");
    given_up++;
    sem_post(&settled);
}
/* end: drop */

/* begin: pool */
int
main(void)
{
    wq_queue   *q;
    wq_workers *pool;

    if (sem_init(&settled, 0, 0) ||
        wq_create(
            WQ_CONFIG(.limiter = wq_limiter_exponential(10 * MS, 80 * MS)),
            &q) ||
        wq_workers_start(q,
                         WQ_WORKERS(.threads = 4, .handler = reconcile,
                                    .ctx = q, .max_retries = 4,
                                    .on_drop = give_up),
                         &pool) ||
        wq_add_str(q, "a") || wq_add_str(q, "b") || wq_add_str(q, "c"))
        return 1;

    for (int keys = 3; keys > 0; keys--) /* a daemon waits for SIGTERM here */
        sem_wait(&settled);
    if (wq_workers_drain(pool, 1000 * MS) || wq_workers_destroy(pool))
        return 1;
    wq_destroy(q);
    return in_order == 2 && given_up == 1 ? 0 : 1;
}
/* end: pool */
