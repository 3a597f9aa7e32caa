/* SPDX-License-Identifier: MIT */
/* inspect.c: why is my key stuck? It is READY, or HELD by a worker, or WAITING
 * for its backoff, or the queue does not have it. */
#include <stdio.h>
#include <string.h>

#include <wq/clock.h>
#include <wq/inspect.h>

/* begin: create */
/* .ages: without it, and without metrics, every age is -1. */
static wq_err
create(wq_clock *clock, wq_queue **q)
{
    return wq_create(WQ_CONFIG(.name = "pods", .clock = clock, .ages = true),
                     q);
}
/* end: create */

/* begin: explain */
static unsigned
explain(wq_queue *q, const char *name)
{
    wq_key_info info = {.size = sizeof info};

    if (wq_read_key(q, wq_str(name), &info))
        return 0;
    printf("%s:", name);
    if (info.states & WQ_STATE_READY)
        printf(" READY for %lld s", (long long)(info.ready_ns / WQ_SECONDS(1)));
    if (info.states & WQ_STATE_HELD)
        printf(" HELD for %lld s", (long long)(info.held_ns / WQ_SECONDS(1)));
    if (info.states & WQ_STATE_DIRTY)
        printf(", then once more");
    if (info.states & WQ_STATE_BACKOFF)
        printf(" failures: %u,", info.requeues);
    if (info.states & WQ_STATE_WAITING)
        printf(" runs in %lld ms", (long long)(info.wait_ns / WQ_MS(1)));
    printf("%s\n", info.states ? "" : " not added, or done already");
    return info.states;
}
/* end: explain */

/* begin: each */
/* Report keys that a worker has held for too long. */
static bool
report(void *count, wq_key key, const wq_key_info *info)
{
    if (info->held_ns > WQ_SECONDS(60)) {
        printf("held too long: %.*s\n", (int)key.len, (const char *)key.data);
        ++*(int *)count;
    }
    return true; /* go on */
}
/* end: each */

int
main(void)
{
    wq_clock *clock = wq_clock_fake_create(0); /* a real program has none */
    wq_queue *q;
    wq_item  *item;

    if (!clock || create(clock, &q))
        return 1;
    if (wq_add_str(q, "slow") || wq_get_within(q, 0, &item) ||
        wq_add_str(q, "slow")) /* added again while it is HELD */
        return 1;
    wq_clock_fake_step(clock, WQ_SECONDS(90));
    if (wq_add_str(q, "next") || wq_add_rate_limited_str(q, "failed"))
        return 1;

    const int wrong =
        explain(q, "slow") != (WQ_STATE_HELD | WQ_STATE_DIRTY) ||
        explain(q, "next") != WQ_STATE_READY ||
        explain(q, "failed") != (WQ_STATE_WAITING | WQ_STATE_BACKOFF) ||
        explain(q, "other") != 0;
    int slow = 0;
    if (wq_each(q, WQ_STATE_HELD, report, &slow) ||
        wq_dump(q, wq_write_file, stdout)) /* everything, as JSON lines */
        return 1;
    wq_done(q, item);
    wq_destroy(q);
    wq_clock_destroy(clock);
    return wrong || slow != 1 ? 1 : 0;
}
