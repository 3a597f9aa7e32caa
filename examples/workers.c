/* SPDX-License-Identifier: MIT */
/* workers.c: a controller is one function. What fails is tried again, later
 * each time; what cannot be helped is given up; the pool does the rest. */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

#include <wq/limiter.h>
#include <wq/workers.h>

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
static void
give_up(void *q, wq_key key, unsigned retries, wq_err why)
{
    (void)q;
    printf("%c: given up after %u retries: %s\n", *(const char *)key.data,
           retries, wq_strerror(why));
    given_up++;
    sem_post(&settled);
}
/* end: drop */

static wq_err
add_all(wq_queue *q)
{
    wq_err err = wq_add_str(q, "a");

    if (!err)
        err = wq_add_str(q, "b");
    if (!err)
        err = wq_add_str(q, "c");
    return err;
}

/* begin: pool */
static wq_err
run(wq_queue *q)
{
    wq_workers *pool;
    wq_err      err =
        wq_workers_start(q,
                         WQ_WORKERS(.threads = 4, .ctx = q,
                                    .handler = reconcile, .on_drop = give_up),
                         &pool);

    if (err)
        return err;
    err = add_all(q);
    for (int keys = 3; !err && keys > 0; keys--)
        sem_wait(&settled); /* a daemon waits for SIGTERM here */
    if (!err)
        err = wq_workers_drain(pool, WQ_SECONDS(1));
    wq_workers_destroy(pool);
    return err;
}

int
main(void)
{
    wq_queue *q;

    if (wq_create(
            WQ_CONFIG(.limiter = wq_limiter_exponential(WQ_MS(10), WQ_MS(80)),
                      .max_retries = 4),
            &q))
        return 1;
    sem_init(&settled, 0, 0);
    const wq_err err = run(q);
    wq_destroy(q);
    return !err && in_order == 2 && given_up == 1 ? 0 : 1;
}
/* end: pool */
