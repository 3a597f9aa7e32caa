/* SPDX-License-Identifier: MIT */
/* recipe_resync.c: how does a controller look at everything from time to time,
 * without delaying events? A key of low priority stands for the list. */
#include <stdio.h>
#include <string.h>

#include <wq/clock.h>
#include <wq/workers.h>

/* begin: resync */
enum { RESYNC = -10 }; /* a priority below that of events, which is 0 */

static const char *const objects[] = {"a", "b", "c"}; /* what a list returns */

/* The run of the key "resync" adds every object, and comes back in an hour. An
 * object that has an event meanwhile is raised to the event's priority, and
 * runs once for both. */
static wq_result
resync(wq_queue *q)
{
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        if (wq_add_one_str(q, objects[i], WQ_ADD(.priority = RESYNC)))
            return wq_result_retry();
    return wq_result_after(WQ_SECONDS(3600));
}
/* end: resync */

static char order[64]; /* the objects in the order of their runs */

/* begin: handler */
static wq_result
reconcile(void *q, const wq_item *item)
{
    const char *name = item->key.data;

    if (strcmp(name, "resync") == 0)
        return resync(q);
    strncat(order, name, sizeof order - strlen(order) - 1);
    return wq_result_done();
}
/* end: handler */

/* Work on all keys that are READY, in this thread. */
static wq_err
work(wq_queue *q)
{
    const wq_workers_config *config =
        WQ_WORKERS(.handler = reconcile, .ctx = q);
    wq_err err;

    while ((err = wq_work_one(q, config, 0)) == WQ_OK)
        ;
    return err == WQ_ETIMEDOUT ? WQ_OK : err;
}

/* begin: start */
/* At the start; from then on the key adds itself. */
static wq_err
start(wq_queue *q)
{
    return wq_add_one_str(q, "resync", WQ_ADD(.priority = RESYNC));
}
/* end: start */

int
main(void)
{
    wq_clock *clock = wq_clock_fake_create(0);
    wq_queue *q;

    if (!clock || wq_create(WQ_CONFIG(.clock = clock), &q) || start(q))
        return 1;
    wq_err err = wq_work_one(q, WQ_WORKERS(.handler = reconcile, .ctx = q),
                             0); /* "resync" */
    if (!err)
        err = wq_add_str(q, "c"); /* an event during the resync: c is first */
    if (!err)
        err = work(q);
    wq_clock_fake_step(clock, WQ_SECONDS(3600));
    if (!err)
        err = work(q);
    printf("%s\n", order);
    wq_destroy(q);
    wq_clock_destroy(clock);
    return !err && strcmp(order, "cababc") == 0 ? 0 : 1;
}
