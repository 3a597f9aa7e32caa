/* SPDX-License-Identifier: MIT */
/* finish.c: how does a worker loop of your own say what becomes of a key?
 *
 * "a" succeeds at the third attempt; "c" never does, and is given up.
 */
#include <stdio.h>

#include <wq/limiter.h>
#include <wq/wq.h>

enum { KEYS = 2 };

static wq_queue *queue;
static int       settled; /* keys that succeeded or were given up */

/* After the last key, the loop must end. */
static void
settle(void)
{
    if (++settled == KEYS)
        wq_shutdown(queue);
}

static wq_result
reconcile(wq_queue *q, wq_key key)
{
    const char name = *(const char *)key.data;

    if (name == 'c' || wq_num_requeues(q, key) < 2) {
        printf("%c: failed\n", name);
        return wq_result_retry();
    }
    printf("%c: up to date\n", name);
    settle();
    return wq_result_done();
}

static void
give_up(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    (void)ctx;
    printf("%s: given up after %u retries: %s\n", (const char *)key.data,
           retries, wq_strerror(why));
    settle();
}

/* begin: loop */
static wq_err
work(wq_queue *q)
{
    wq_item  *item = NULL;
    wq_result result = wq_result_done();
    wq_err    err;

    while ((err = wq_next_with(q, result, WQ_FOREVER, &item)) == WQ_OK)
        result = reconcile(q, item->key);
    return err == WQ_ESHUTDOWN ? WQ_OK : err;
}
/* end: loop */

int
main(void)
{
    wq_err err = wq_create(
        WQ_CONFIG(.max_retries = 3, .on_drop = give_up,
                  .limiter = wq_limiter_exponential(WQ_MS(1), WQ_SECONDS(1))),
        &queue);

    if (err)
        return 1;
    err = wq_add_str(queue, "a");
    if (!err)
        err = wq_add_str(queue, "c");
    if (!err)
        err = work(queue);
    wq_destroy(queue);
    return err ? 1 : 0;
}
