/* SPDX-License-Identifier: MIT */
/* shutdown.c: an orderly end: no more adds, finish all keys, but with a
 * timeout. */
#include <pthread.h>
#include <stdio.h>

#include <wq/wq.h>

static void *
work(void *q)
{
    wq_item *item;

    while (wq_get(q, &item) == WQ_OK) {
        printf("worked on %.*s\n", (int)item->key.len,
               (const char *)item->key.data);
        wq_done(q, item);
    }
    return NULL; /* WQ_ESHUTDOWN: nothing is left */
}

int
main(void)
{
    wq_queue *q;
    pthread_t worker;

    if (wq_create(NULL, &q) || wq_add_str(q, "a") || wq_add_str(q, "b") ||
        pthread_create(&worker, NULL, work, q))
        return 1;

    const wq_err drained = wq_shutdown_with_drain_within(q, WQ_SECONDS(5));
    const wq_err late = wq_add_str(q, "c");
    printf("drain: %s; a late add: %s\n", wq_strerror(drained),
           wq_strerror(late));
    /* After a timeout, too, the worker ends when no key is left. */
    pthread_join(worker, NULL);
    wq_destroy(q);
    return drained == WQ_OK && late == WQ_ESHUTDOWN ? 0 : 1;
}
