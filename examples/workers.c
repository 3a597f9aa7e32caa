/* SPDX-License-Identifier: MIT */
/* workers.c: a controller is one function. Failed keys are retried with a
 * growing delay, and given up in the end; the pool does the rest. */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

#include <wq/limiter.h>
#include <wq/workers.h>

static sem_t      settled; /* one post per key that is finished */
static atomic_int up_to_date, given_up;

/* begin: handler */
/* Every key fails twice, and "c" always. */
static wq_result
reconcile(void *q, const wq_item *item)
{
    const char     name = *(const char *)item->key.data;
    const unsigned failures = wq_num_requeues(q, item->key);

    if (failures < 2 || name == 'c') {
        printf("%c: failed (%u times before)\n", name, failures);
        return wq_result_retry();
    }
    printf("%c: up to date\n", name);
    up_to_date++;
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
    const char *const names[] = {"a", "b", "c"};
    wq_err            err = WQ_OK;

    for (int i = 0; i < 3 && !err; i++)
        err = wq_add_str(q, names[i]);
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
    return !err && up_to_date == 2 && given_up == 1 ? 0 : 1;
}
/* end: pool */
