/* SPDX-License-Identifier: MIT */
/* delay.c: keys with a delay, and what a second add of such a key does. */
#include <stdio.h>

#include <wq/clock.h>
#include <wq/wq.h>

/* Print all keys that are READY now, on one line. */
static int
show(wq_queue *q, wq_clock *clock)
{
    wq_item *item;
    int      n = 0;

    printf("%3lld ms:", (long long)(wq_clock_now(clock) / WQ_MS(1)));
    for (; wq_get_within(q, 0, &item) == WQ_OK; n++) {
        printf(" %.*s", (int)item->key.len, (const char *)item->key.data);
        wq_done(q, item);
    }
    printf("\n");
    return n;
}

int
main(void)
{
    /* For this example only: by default a queue uses CLOCK_MONOTONIC. */
    wq_clock *clock = wq_clock_fake_create(0);
    wq_queue *q;
    int       seen = 0;

    if (!clock || wq_create(WQ_CONFIG(.clock = clock), &q))
        return 1;
    if (wq_add_after_str(q, "report", WQ_MS(50)) ||
        wq_add_after_str(q, "report", WQ_MS(30)) || /* earlier: replaces it */
        wq_add_after_str(q, "report", WQ_MS(70)) || /* later: no effect */
        wq_add_after_str(q, "backup", WQ_MS(60)) ||
        wq_add_str(q, "backup")) /* now, and again in 60 ms */
        return 1;

    for (int i = 0; i <= 7; i++) {
        seen += show(q, clock);
        wq_clock_fake_step(clock, WQ_MS(10));
    }
    wq_destroy(q);
    wq_clock_destroy(clock);
    return seen == 3 ? 0 : 1;
}
