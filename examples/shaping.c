/* SPDX-License-Identifier: MIT */
/* shaping.c: a burst of 20 keys is handed out as a steady stream: 5 at once,
 * then one per second. */
#include <stdio.h>

#include <wq/clock.h>
#include <wq/limiter.h>
#include <wq/wq.h>

enum { KEYS = 20, BURST = 5 };
int
main(void)
{
    wq_clock *clock = wq_clock_fake_create(0); /* the example does not sleep */
    wq_queue *q;
    wq_item  *item;
    int       wrong = 0;

    if (!clock || wq_create(WQ_CONFIG(.clock = clock,
                                      .limiter = wq_limiter_bucket(1, BURST)),
                            &q))
        return 1;
    for (uint64_t id = 0; id < KEYS; id++)
        if (wq_add_rate_limited(q, wq_u64(&id)))
            return 1;

    for (uint64_t n = 0; n < KEYS; wq_clock_fake_step(clock, WQ_SECONDS(1)))
        while (wq_get_within(q, 0, &item) == WQ_OK) {
            const int64_t second = wq_clock_now(clock) / WQ_SECONDS(1);
            const int64_t due = n < BURST ? 0 : (int64_t)(n - BURST + 1);

            printf("%2lld s  key %llu\n", (long long)second,
                   (unsigned long long)n);
            wrong += second != due;
            wq_done(q, item);
            n++;
        }
    wq_destroy(q);
    wq_clock_destroy(clock);
    return wrong ? 1 : 0;
}
