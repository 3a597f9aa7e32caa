/* SPDX-License-Identifier: MIT */
/* batches.c: add and get many keys in one call; and the shortest loop of a
 * worker. */
#include <stdio.h>

#include <wq/wq.h>

enum { KEYS = 7, BATCH = 4 };

/* begin: add */
/* Add all keys in one call. Returns how many were new. */
static int
add_all(wq_queue *q, const wq_key *keys, size_t n)
{
    wq_added what[KEYS];
    int      added = 0;

    if (n > KEYS || wq_add_with(q, WQ_ADD(.results = what), keys, n))
        return -1; /* no key was added */
    for (size_t i = 0; i < n; i++)
        added += what[i] == WQ_ADDED_NEW;
    return added;
}
/* end: add */

static void
show(const wq_item *item)
{
    printf(" %.*s", (int)item->key.len, (const char *)item->key.data);
}

/* begin: many */
/* Work on up to BATCH keys together, with one statement or one request. */
static int
write_in_batches(wq_queue *q)
{
    wq_item *items[BATCH];
    size_t   n;
    int      batches = 0;

    for (; wq_get_many(q, items, BATCH, 0, &n) == WQ_OK; batches++) {
        printf("write");
        for (size_t i = 0; i < n; i++)
            show(items[i]);
        printf("\n");
        if (wq_done_many(q, items, n))
            return -1;
    }
    return batches;
}
/* end: many */

/* begin: next */
/* wq_next() is the done of the last key and the get of the next one. */
static int
write_one_by_one(wq_queue *q)
{
    wq_item *item = NULL;
    int      n = 0;

    for (; wq_next(q, 0, &item) == WQ_OK; n++) /* a worker: WQ_FOREVER */
        show(item);
    printf("\n");
    return item ? -1 : n; /* NULL: the last one is done */
}
/* end: next */

int
main(void)
{
    const wq_key all[KEYS] = {
        wq_str("a"), wq_str("b"), wq_str("c"), wq_str("d"),
        wq_str("e"), wq_str("f"), wq_str("a"),
    };
    wq_queue *q;

    if (wq_create(NULL, &q))
        return 1;
    const int added = add_all(q, all, KEYS);
    const int batches = write_in_batches(q);
    const int again = add_all(q, all, 3);
    const int single = write_one_by_one(q);
    wq_destroy(q);
    return added == 6 && batches == 2 && again == 3 && single == 3 ? 0 : 1;
}
