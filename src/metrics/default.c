/* SPDX-License-Identifier: MIT */
/* default.c: which sink do queues use whose config names none?
 *
 * One for the whole process, set once.
 */
#include "metrics/default.h"

#include "config/read.h"
#include "core/sized.h"
#include "error/error.h"
#include "port/lock.h"

static struct wq__lock lock = WQ__LOCK_STATIC; /* guards the two below */
static bool            is_set;
static wq_metrics      sink;

wq_err
wq__metrics_check(const wq_metrics *metrics)
{
    wq_metrics known; /* a sink of an older program has no `next` */

    for (; metrics; metrics = known.next) {
        const wq_err err =
            wq__read_sized(metrics, "wq_metrics", NULL, sizeof known, &known);
        if (err)
            return err;
    }
    return WQ_OK;
}

wq_err
wq_metrics_set_default(const wq_metrics *metrics)
{
    wq_metrics checked = {0};
    wq_err     err = wq__metrics_check(metrics);

    if (err)
        return err;
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
    return err ? wq_fail(
                     err,
                     "wq_metrics_set_default: a default sink is already set")
               : WQ_OK;
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

wq_err
wq__metrics_choose(const char *name, const wq_metrics **metrics,
                   wq_metrics *process_wide)
{
    const wq_err err = wq__metrics_check(*metrics);

    if (err)
        return err;
    if (!name)
        *metrics = NULL;
    else if (!*metrics && wq__metrics_default(process_wide))
        *metrics = process_wide;
    return WQ_OK;
}
