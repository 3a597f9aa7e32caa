/* SPDX-License-Identifier: MIT */
/* waiting.c: wait until work is done, free the object of a key, pause the
 * workers. */
#include <stdio.h>
#include <stdlib.h>

#include <wq/inspect.h>
#include <wq/workers.h>

static wq_queue *q;

/* begin: device */
/* The object of the key "dev". A worker polls it every millisecond. */
static struct device {
    int polls;
} * device;

static wq_result
reconcile(void *saved, const wq_item *item)
{
    if (*(const char *)item->key.data == 'd') {
        device->polls++;
        return wq_result_after(WQ_MS(1));
    }
    ++*(int *)saved;
    if (wq_flush(q, WQ_FOREVER) != WQ_ESTATE) /* it would wait for itself */
        abort();
    return wq_result_done();
}
/* end: device */

/* begin: flush */
/* When this returns 0, all documents that had changed before are saved. It does
 * not wait for documents that change during the flush. */
static int
save_all(const int *saved)
{
    if (wq_add_str(q, "a") || wq_add_str(q, "b") || wq_flush(q, WQ_SECONDS(5)))
        return 1;
    printf("%d documents saved\n", *saved);
    if (wq_add_str(q, "a") || wq_flush_key(q, wq_str("a"), WQ_SECONDS(5)))
        return 1;
    printf("one of them again\n");
    return *saved != 3;
}
/* end: flush */

/* begin: remove */
/* The device is unplugged. wq_remove() is not enough: a worker may hold the
 * key, and its result adds the key again. */
static int
unplug(void)
{
    const wq_err err = wq_remove_wait(q, wq_str("dev"), WQ_SECONDS(5));

    if (err) /* WQ_ETIMEDOUT: a worker still uses it; do not free it */
        return 1;
    printf("polled: %s\n", device->polls > 0 ? "yes" : "no");
    free(device);
    device = NULL;
    return 0;
}
/* end: remove */

/* begin: pause */
/* Keys can be added; workers finish the keys they hold, and get no more. */
static int
maintain(const int *saved)
{
    wq_stats counts = {.size = sizeof counts};

    if (wq_pause(q) || wq_add_str(q, "c") ||
        wq_flush(q, WQ_MS(10)) != WQ_ETIMEDOUT || wq_read_stats(q, &counts))
        return 1;
    printf("paused, with %zu READY\n", counts.ready);
    if (!counts.paused || *saved != 3 || wq_resume(q) ||
        wq_wait_idle(q, WQ_SECONDS(5)))
        return 1;
    return *saved != 4;
}
/* end: pause */

int
main(void)
{
    int         saved = 0; /* written by one worker; read after a wait */
    wq_workers *pool;

    device = calloc(1, sizeof *device);
    if (!device || wq_create(NULL, &q) ||
        wq_workers_start(
            q, WQ_WORKERS(.threads = 1, .handler = reconcile, .ctx = &saved),
            &pool) ||
        wq_add_str(q, "dev"))
        return 1;
    const int wrong = save_all(&saved) || unplug() || maintain(&saved);
    if (wq_workers_destroy(pool))
        return 1;
    wq_destroy(q);
    return wrong;
}
