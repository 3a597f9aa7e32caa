/* SPDX-License-Identifier: MIT */
/* default.c: which sink do queues have that bring none of their own?
 *
 * One for the whole program, set once. The lock is a flag: it is held for as
 * long as it takes to copy a struct, and must be there before main().
 */
#include "metrics/default.h"

#include <stdatomic.h>

#include "core/sized.h"
#include "port/relax.h"

static atomic_flag busy = ATOMIC_FLAG_INIT; /* guards the two below */
static bool        is_set;
static wq_metrics  sink;

/* Acquire pairs with the release in leave(): the struct is whole. */
static void
enter(void)
{
    for (unsigned round = 0;
         atomic_flag_test_and_set_explicit(&busy, memory_order_acquire);
         round++)
        wq__relax(round);
}

static void
leave(void)
{
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

bool
wq__metrics_are_valid(const wq_metrics *metrics)
{
    wq_metrics known; /* a sink of an older program has no `next` */

    for (; metrics; metrics = known.next)
        if (!wq__sized_read(metrics, sizeof known, &known))
            return false;
    return true;
}

wq_err
wq_metrics_set_default(const wq_metrics *metrics)
{
    wq_metrics checked = {0};
    wq_err     err = WQ_OK;

    if (!wq__metrics_are_valid(metrics))
        return WQ_EINVAL;
    if (metrics)
        (void)wq__sized_read(metrics, sizeof checked, &checked);
    checked.size = sizeof checked;
    enter();
    if (metrics && is_set)
        err = WQ_ESTATE;
    else {
        is_set = metrics != NULL;
        sink = checked;
    }
    leave();
    return err;
}

bool
wq__metrics_default(wq_metrics *out)
{
    enter();
    const bool there = is_set;
    if (there)
        *out = sink;
    leave();
    return there;
}
