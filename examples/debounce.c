/* SPDX-License-Identifier: MIT */
/* debounce.c: many events, few runs: debounce waits until events stop, throttle
 * runs at once and then at intervals. */
#include <stdio.h>
#include <string.h>

#include <wq/clock.h>
#include <wq/wq.h>

/* begin: events */
/* A file changes often: rebuild when it has not changed for 50 ms, but at the
 * latest 200 ms after the first change. */
static wq_err
file_changed(wq_queue *q)
{
    return wq_add_one_str(
        q, "rebuild",
        WQ_ADD(.debounce_ns = WQ_MS(50), .max_wait_ns = WQ_MS(200)));
}

/* Progress changes all the time: show it at once, but at most every 100 ms, and
 * always show the last state. */
static wq_err
progress_made(wq_queue *q)
{
    return wq_add_one_str(q, "display", WQ_ADD(.throttle_ns = WQ_MS(100)));
}
/* end: events */

/* Run all READY keys, and append the times to `times`. */
static void
run(wq_queue *q, long long ms, char *times)
{
    wq_item *item;

    while (wq_get_within(q, 0, &item) == WQ_OK) {
        const char name = *(const char *)item->key.data;

        printf("%3lld ms: %.*s\n", ms, (int)item->key.len,
               (const char *)item->key.data);
        sprintf(times + strlen(times), "%c%lld ", name, ms);
        wq_done(q, item);
    }
}

int
main(void)
{
    wq_clock *clock = wq_clock_fake_create(0); /* a real program has none */
    wq_queue *q;
    char      times[256] = "";

    if (!clock || wq_create(WQ_CONFIG(.clock = clock), &q))
        return 1;
    for (long long ms = 0; ms <= 500; ms += 10) {
        if (ms <= 280 && (file_changed(q) || progress_made(q)))
            return 1; /* 29 events of each kind */
        run(q, ms, times);
        wq_clock_fake_step(clock, WQ_MS(10));
    }
    wq_destroy(q);
    wq_clock_destroy(clock);
    return strcmp(times, "d0 d100 d200 r200 d300 r330 ") == 0 ? 0 : 1;
}
