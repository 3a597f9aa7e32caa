/* SPDX-License-Identifier: MIT */
/* hello.c: three events, two runs, one of them again. */
#include <stdio.h>

#include <wq/wq.h>

int
main(void)
{
    wq_queue *q;
    wq_item  *item;
    int       runs = 0;

    if (wq_create(NULL, &q) || wq_add_str(q, "default/nginx") ||
        wq_add_str(q, "default/redis") || wq_add_str(q, "default/nginx"))
        return 1;

    while (wq_get_within(q, 0, &item) == WQ_OK) {
        printf("%.*s\n", (int)item->key.len, (const char *)item->key.data);
        if (++runs == 1 && wq_add(q, item->key)) /* it changed meanwhile */
            return 1;
        wq_done(q, item); /* only now it is ready again, behind redis */
    }
    wq_destroy(q);
    return runs == 3 ? 0 : 1;
}
