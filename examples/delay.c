/* SPDX-License-Identifier: MIT */
/* delay.c: keys that shall be worked on later, and what a second request
 * does. */
#include <stdio.h>

#include <wq/clock.h>
#include <wq/wq.h>

/* All keys that are there at this moment, on one line. */
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
    wq_clock *clock = wq_clock_fake_create(0); /* a real program has none */
    wq_queue *q;
    int       seen = 0;

    if (!clock || wq_create(WQ_CONFIG(.clock = clock), &q))
        return 1;
    if (wq_add_after_str(q, "report", WQ_MS(50)) ||
        wq_add_after_str(q, "report", WQ_MS(30)) || /* the earlier stays */
        wq_add_after_str(q, "report", WQ_MS(70)) || /* no change */
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
