/* SPDX-License-Identifier: MIT */
/* bounds.c: what happens to a key when the queue is full: it is refused, it
 * waits, or it displaces an older one. */
#include <pthread.h>
#include <stdio.h>

#include <wq/wq.h>

/* begin: refuse */
static int
refuse(void)
{
    wq_queue *q;

    if (wq_create(WQ_CONFIG(.max_len = 2), &q) || wq_add_str(q, "a") ||
        wq_add_str(q, "b"))
        return 1;
    const wq_err third = wq_add_str(q, "c"); /* WQ_EFULL: report it */
    const wq_err known = wq_add_str(q, "a"); /* not a new key: it fits */
    printf("the third: %s; the first again: %s\n", wq_strerror(third),
           wq_strerror(known));
    wq_destroy(q);
    return third != WQ_EFULL || known != WQ_OK;
}
/* end: refuse */

static void *
work(void *q)
{
    wq_item *item;

    while (wq_get(q, &item) == WQ_OK)
        wq_done(q, item);
    return NULL;
}

/* begin: block */
static int
block(void)
{
    wq_queue *q;
    pthread_t worker;
    wq_err    err = WQ_OK;

    if (wq_create(WQ_CONFIG(.max_len = 2, .overflow = WQ_OVERFLOW_BLOCK), &q) ||
        wq_add_str(q, "a") || wq_add_str(q, "b")) /* no worker yet */
        return 1;
    const wq_err full =
        wq_add_one_str(q, "late", WQ_ADD(.max_block_ns = WQ_MS(1)));
    printf("waited for room: %s\n", wq_strerror(full));

    if (pthread_create(&worker, NULL, work, q))
        return 1;
    for (uint64_t id = 0; id < 100 && !err; id++)
        err = wq_add(q, wq_u64(&id)); /* waits for the worker */
    wq_shutdown(q);
    pthread_join(worker, NULL);
    wq_destroy(q);
    return full != WQ_ETIMEDOUT || err;
}
/* end: block */

/* begin: drop */
/* The context of the callback. The config needs it before the queue exists. */
struct feed {
    wq_queue *q;
    int       drops;
};

static void
on_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    struct feed *feed = ctx;

    (void)retries; /* 0: the key was displaced, not given up */
    printf("dropped: %.*s (%s); READY: %zu\n", (int)key.len,
           (const char *)key.data, wq_strerror(why), wq_len(feed->q));
    feed->drops++;
}

static int
drop_oldest(void)
{
    struct feed feed = {.drops = 0};

    if (wq_create(WQ_CONFIG(.max_len = 2, .overflow = WQ_OVERFLOW_DROP_OLDEST,
                            .on_drop = on_drop, .drop_ctx = &feed),
                  &feed.q) ||
        wq_add_str(feed.q, "a") || wq_add_str(feed.q, "b") ||
        wq_add_str(feed.q, "c")) /* displaces a */
        return 1;
    wq_destroy(feed.q);
    return feed.drops != 1;
}
/* end: drop */

int
main(void)
{
    return refuse() || block() || drop_oldest() ? 1 : 0;
}
