/* SPDX-License-Identifier: MIT */
/* priority.c: urgent keys first, also a key that was less urgent before, and a
 * key that failed. */
#include <stdio.h>
#include <string.h>

#include <wq/clock.h>
#include <wq/limiter.h>
#include <wq/wq.h>

enum { BACKGROUND = -10, NORMAL = 0, URGENT = 10 };

/* begin: add */
static wq_err
add(wq_queue *q, const char *name, int priority)
{
    return wq_add_one_str(q, name, WQ_ADD(.priority = priority));
}

/* Retry like wq_add_rate_limited(), but with the priority of the item. */
static wq_err
retry(wq_queue *q, const wq_item *item)
{
    return wq_add_one(q, item->key,
                      WQ_ADD(.priority = item->priority, .rate_limited = true));
}
/* end: add */

int
main(void)
{
    wq_clock *clock = wq_clock_fake_create(0); /* a real program has none */
    wq_queue *q;
    wq_item  *item;
    char      order[6] = "";

    if (!clock ||
        wq_create(WQ_CONFIG(.clock = clock, .limiter = wq_limiter_exponential(
                                                WQ_MS(1), WQ_SECONDS(1))),
                  &q))
        return 1;
    if (add(q, "a", BACKGROUND) || add(q, "b", BACKGROUND) || /* at start */
        add(q, "c", NORMAL) ||                                /* an event */
        add(q, "b", URGENT)) /* raises the priority of b */
        return 1;

    while (wq_get_within(q, 0, &item) == WQ_OK) {
        const char name = *(const char *)item->key.data;

        printf("%c, priority %d\n", name, item->priority);
        strncat(order, &name, 1);
        if (strcmp(order, "b") == 0 && retry(q, item)) /* it fails once */
            return 1;
        wq_done(q, item);
        wq_clock_fake_step(clock, WQ_MS(1));
    }
    wq_destroy(q);
    wq_clock_destroy(clock);
    return strcmp(order, "bbca") == 0 ? 0 : 1;
}
