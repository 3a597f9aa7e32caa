/* SPDX-License-Identifier: MIT */
/* default.c: which sink do queues have that bring none of their own?
 *
 * One for the whole program, set once.
 */
#include "metrics/default.h"

#include "core/sized.h"
#include "port/lock.h"

static struct wq__lock lock = WQ__LOCK_STATIC; /* guards the two below */
static bool            is_set;
static wq_metrics      sink;

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
    wq__lock_take(&lock);
    if (metrics && is_set)
        err = WQ_ESTATE;
    else {
        is_set = metrics != NULL;
        sink = checked;
    }
    wq__lock_release(&lock);
    return err;
}

bool
wq__metrics_default(wq_metrics *out)
{
    wq__lock_take(&lock);
    const bool there = is_set;
    if (there)
        *out = sink;
    wq__lock_release(&lock);
    return there;
}
