/* SPDX-License-Identifier: MIT */
/* timers.c: how late is a key that was added with a delay?
 *
 * A thousand keys with delays of 1 to 50 ms, on the real clock; one thread gets
 * them. Late is the time from the deadline until wq_get() has returned. That is
 * the kernel's timer, the wake-up of a sleeping thread and the queue's own
 * part; it says something only on a machine that is otherwise idle.
 */
#include <stdio.h>
#include <stdlib.h>

#include <wq/clock.h>

#include "bench.h"

enum { TIMERS = 1000 };
#define MS INT64_C(1000000)

static int
ascending(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void
bench_timers(void)
{
    static int64_t due[TIMERS], late[TIMERS];
    wq_queue      *q;
    wq_item       *item;

    must(wq_create(NULL, &q) == WQ_OK, "wq_create");
    for (uint64_t i = 0; i < TIMERS; i++) {
        const int64_t delay =
            MS + (int64_t)(i * 7919 % TIMERS) * 49 * MS / TIMERS;
        due[i] = wq_clock_now(NULL) + delay;
        must(wq_add_after(q, wq_u64(&i), delay) == WQ_OK, "wq_add_after");
    }
    for (size_t n = 0; n < TIMERS; n++) {
        must(wq_get(q, &item) == WQ_OK, "wq_get");
        uint64_t i;
        memcpy(&i, item->key.data, sizeof i);
        late[n] = wq_clock_now(NULL) - due[i];
        must(wq_done(q, item) == WQ_OK, "wq_done");
    }
    wq_destroy(q);
    qsort(late, TIMERS, sizeof late[0], ascending);
    printf("lateness of %d timers of 1 to 50 ms: p50 %.0f us, p99 %.0f us\n",
           TIMERS, (double)late[TIMERS / 2] / 1000,
           (double)late[TIMERS * 99 / 100] / 1000);
}
