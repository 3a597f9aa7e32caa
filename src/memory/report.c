/* SPDX-License-Identifier: MIT */
/* report.c: reporting to the sinks of metrics; see report.h. */
#include "memory/report.h"

#include "memory/gate.h"

/* Report from now on. With the lock: an open sink may already query the queue
 * in another thread. */
static void
begin_reporting(struct wq__memory *m, size_t n)
{
    const bool reports = wq__sinks_want_changes(m->sinks, n);

    wq__lock_take(&m->lock);
    atomic_store_explicit(&m->sinks_len, n, memory_order_release);
    atomic_store_explicit(&m->reports_changes, reports, memory_order_release);
    m->interested += reports;
    wq__lock_release(&m->lock);
}

/* Report what has changed so far. */
static void
report_changes(struct wq__memory *m)
{
    wq_change change;

    wq__lock_take(&m->lock);
    const bool changed =
        wq__gate_reports_changes(m) && wq__report_take(m, &change);
    wq__lock_release(&m->lock);
    if (changed)
        wq__report_change(m, &change);
}

wq_err
wq__report_open(struct wq__memory *m, const wq_metrics *metrics)
{
    size_t       n = 0;
    const wq_err err = wq__sinks_open(&m->shared_mem, metrics, &m->base,
                                      m->name, "wq_create", &m->sinks, &n);

    if (err || n == 0)
        return err;
    begin_reporting(m, n);
    wq__gate_report(m); /* what the sinks did to the queue in open() */
    return WQ_OK;
}

void
wq__report_close(struct wq__memory *m)
{
    report_changes(m); /* what the destroy dropped */
    const size_t n = wq__report_sinks(m);
    wq__sinks_close(m->sinks, n);
    wq__sinks_free(&m->shared_mem, m->sinks, n);
    m->sinks = NULL;
}

static uint64_t
since(uint64_t now, uint64_t *reported)
{
    const uint64_t more = now - *reported;
    *reported = now;
    return more;
}

bool
wq__report_take(struct wq__memory *m, wq_change *change)
{
    const struct wq__core *c = &m->core;
    wq_change             *reported = &m->reported;
    const int64_t          depth = (int64_t)(c->ready.len + c->dirty);

    *change = (wq_change){
        .size = sizeof *change,
        .depth = depth - reported->depth,
        .adds = since(c->tally.adds, &reported->adds),
        .merged = since(c->tally.merged, &reported->merged),
        .retries =
            since(atomic_load_explicit(&m->retries, memory_order_relaxed),
                  &reported->retries),
        .drops = since(c->tally.drops + atomic_load_explicit(
                                            &m->dropped, memory_order_relaxed),
                       &reported->drops),
    };
    reported->depth = depth;
    return change->depth || change->adds || change->merged || change->retries ||
           change->drops;
}

void
wq__report_change(struct wq__memory *m, const wq_change *change)
{
    wq__sinks_change(m->sinks, wq__report_sinks(m), change);
}
