/* SPDX-License-Identifier: MIT */
/* backoff.c: what adds during a backoff do, by default and with the options. */
#include <stdio.h>

#include <wq/clock.h>
#include <wq/limiter.h>
#include <wq/wq.h>

/* The key fails once and is then added ten times. When does it run, and how
 * many failures does the limiter count? */
static unsigned
fail_then_trigger(unsigned retry)
{
    wq_clock *clock = wq_clock_fake_create(0);
    wq_queue *q;
    wq_item  *item;

    if (!clock || wq_create(WQ_CONFIG(.clock = clock, .retry = retry,
                                      .limiter = wq_limiter_exponential(
                                          WQ_MS(5), WQ_SECONDS(1))),
                            &q))
        return 0;
    wq_err err = wq_add_str(q, "default/nginx");
    if (!err)
        err = wq_get_within(q, 0, &item);
    if (!err)
        err = wq_add_rate_limited(q, item->key); /* it failed */
    if (!err)
        err = wq_done(q, item);
    for (int i = 0; !err && i < 10; i++) /* it changes ten times */
        err = wq_add_rate_limited_str(q, "default/nginx");

    while (!err && wq_get_within(q, 0, &item) == WQ_ETIMEDOUT)
        wq_clock_fake_step(clock, WQ_MS(1));
    const unsigned failures = wq_num_requeues_str(q, "default/nginx");
    printf("runs after %lld ms, %u failures counted\n",
           (long long)(wq_clock_now(clock) / WQ_MS(1)), failures);
    wq_destroy(q);
    wq_clock_destroy(clock);
    return failures;
}

int
main(void)
{
    const unsigned as_client_go = fail_then_trigger(0);
    const unsigned only_failures =
        fail_then_trigger(WQ_RETRY_FAILURES_ONLY | WQ_RETRY_RESPECT);

    return as_client_go == 11 && only_failures == 1 ? 0 : 1;
}
