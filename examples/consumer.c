/* SPDX-License-Identifier: MIT */
/* consumer.c: the loop of a worker that retries failed keys, and gives up in
 * the end. */
#include <stdio.h>
#include <string.h>

#include <wq/limiter.h>
#include <wq/wq.h>

static wq_queue *queue;
static int       tries, given_up;

/* One key succeeds, one at the third attempt, one never. */
static int
reconcile(wq_key key)
{
    const char *name = key.data;

    tries++;
    if (!strncmp(name, "default/works", key.len))
        return 0;
    if (!strncmp(name, "default/flaky", key.len))
        return tries < 5;
    return -1;
}

static void
give_up(wq_key key)
{
    printf("gave up %.*s\n", (int)key.len, (const char *)key.data);
    given_up++;
    wq_shutdown(queue); /* so that the example ends */
}

/* begin: loop */
static void
work(wq_queue *q)
{
    wq_item *item;

    while (wq_get(q, &item) == WQ_OK) {
        if (reconcile(item->key) == 0)
            wq_forget(q, item->key);
        else if (wq_add_rate_limited(q, item->key) != WQ_OK)
            give_up(item->key); /* WQ_EGIVENUP, WQ_ESHUTDOWN, WQ_ENOMEM */
        wq_done(q, item);
    }
}
/* end: loop */

int
main(void)
{
    if (wq_create(
            WQ_CONFIG(.limiter = wq_limiter_exponential(WQ_MS(1), WQ_MS(8)),
                      .max_retries = 5),
            &queue))
        return 1;
    const int added = !wq_add_str(queue, "default/works") &&
                      !wq_add_str(queue, "default/flaky") &&
                      !wq_add_str(queue, "default/broken");
    if (added)
        work(queue);
    printf("%d tries\n", tries);
    wq_destroy(queue);
    return added && given_up == 1 ? 0 : 1;
}
