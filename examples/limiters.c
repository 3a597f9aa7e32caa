/* SPDX-License-Identifier: MIT */
/* limiters.c: a queue and its limiter, created in one expression with one
 * check; a limiter as data. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <wq/limiter.h>
#include <wq/wq.h>

/* begin: create */
/* Failing keys back off, and all keys together are limited to 50 per second. */
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

/* begin: describe */
/* What would a store do for a key that has failed `failures` times? */
static wq_err
print_delay(const wq_limiter *limiter, unsigned failures)
{
    wq_limiter_spec spec = {.size = sizeof spec};
    const wq_err    err = wq_limiter_describe(limiter, &spec);

    if (err) {
        printf("cannot count in a store: %s\n", wq_last_error());
        return err;
    }
    printf("after %u failures: %" PRId64 " ms\n", failures,
           wq_limiter_spec_delay(&spec, failures, 0) / WQ_MS(1));
    if (spec.parts & WQ_PART_BUCKET)
        printf("at most %g a second, %u at once\n", spec.rate, spec.burst);
    return WQ_OK;
}
/* end: describe */

/* One limiter that can be described, and one that cannot. */
static bool
describe(void)
{
    wq_limiter *one = wq_limiter_default();
    wq_limiter *two =
        wq_limiter_max_of(2, (wq_limiter *[]){wq_limiter_bucket(50, 50),
                                              wq_limiter_bucket(1, 9)});
    const bool right =
        print_delay(one, 3) == WQ_OK && print_delay(two, 3) == WQ_ENOTSUP;

    wq_limiter_destroy(one);
    wq_limiter_destroy(two);
    return right;
}

int
main(void)
{
    wq_queue *q;

    if (!describe() || create(WQ_MS(100), &q))
        return 1;
    wq_destroy(q);
    return create(WQ_MS(-100), &q) == WQ_EINVAL &&
                   strstr(wq_last_error(), "base_ns is negative")
               ? 0
               : 1;
}
