/* SPDX-License-Identifier: MIT */
/* hello.c: three adds of two keys, and a key that changes during its run. */
#include <stdio.h>

#include <wq/wq.h>

static wq_err
add_events(wq_queue *q)
{
    wq_err err = wq_add_str(q, "default/nginx");

    if (!err)
        err = wq_add_str(q, "default/redis");
    if (!err)
        err = wq_add_str(q, "default/nginx"); /* READY already: no change */
    return err;
}

int
main(void)
{
    wq_queue *q;
    wq_item  *item;
    int       runs = 0;

    if (wq_create(NULL, &q) != WQ_OK)
        return 1;
    wq_err err = add_events(q);
    while (!err && wq_get_within(q, 0, &item) == WQ_OK) {
        printf("%s\n", (const char *)item->key.data); /* ends with a NUL */
        runs++;
        if (runs == 1)
            err = wq_add(q, item->key); /* it has changed */
        wq_done(q, item);               /* now it is READY again, after redis */
    }
    wq_destroy(q);
    return !err && runs == 3 ? 0 : 1;
}
