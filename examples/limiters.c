/* SPDX-License-Identifier: MIT */
/* limiters.c: a queue and its limiter in one expression, with one check. */
#include <stdio.h>
#include <string.h>

#include <wq/limiter.h>
#include <wq/wq.h>

/* begin: create */
/* Failing keys back off, and all keys together are paced: 50 a second. */
static wq_err
create(int64_t base_ns, wq_queue **q)
{
    const wq_err err = wq_create(
        WQ_CONFIG(.limiter = wq_limiter_max_of(
                      2,
                      (wq_limiter *[]){
                          wq_limiter_exponential(base_ns, WQ_SECONDS(30)),
                          wq_limiter_bucket(50, 50),
                      })),
        q);

    if (err)
        printf("cannot create the queue: %s\n", wq_last_error());
    return err;
}
/* end: create */

int
main(void)
{
    wq_queue *q;

    if (create(WQ_MS(100), &q))
        return 1;
    wq_destroy(q);
    return create(WQ_MS(-100), &q) == WQ_EINVAL &&
                   strstr(wq_last_error(), "base_ns is negative")
               ? 0
               : 1;
}
