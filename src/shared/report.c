/* SPDX-License-Identifier: MIT */
/* report.c: reporting to the sinks of metrics; see report.h. */
#include "shared/report.h"

static uint64_t
since(uint64_t now, uint64_t *reported)
{
    const uint64_t more = now - *reported;
    *reported = now;
    return more;
}

/* With the lock: *change is how the counts have changed since the last call.
 * False: not at all. */
static bool
take_change(struct wq__shared *s, wq_change *change)
{
    wq_change    *reported = &s->reported;
    const int64_t depth = (int64_t)(s->seen.ready + s->seen.dirty);

    *change = (wq_change){
        .size = sizeof *change,
        .depth = depth - reported->depth,
        .adds = since(s->did.adds, &reported->adds),
        .merged = since(s->did.merged, &reported->merged),
        .retries = since(s->retries, &reported->retries),
        .drops = since(s->drops + s->did.drops, &reported->drops),
    };
    reported->depth = depth;
    return change->depth || change->adds || change->merged || change->retries ||
           change->drops;
}

void
wq__shared_report_changes(struct wq__shared *s)
{
    wq_change change;

    if (!s->reports)
        return;
    wq__shared_enter(s);
    const bool changed = take_change(s, &change);
    wq__lock_release(&s->lock);
    if (changed)
        wq__sinks_change(s->sinks, s->sinks_len, &change);
}

wq_err
wq__shared_report_open(struct wq__shared *s, const wq_metrics *metrics)
{
    size_t       n;
    const wq_err err = wq__sinks_open(&s->mem, metrics, &s->base, s->name,
                                      "wq_open", &s->sinks, &n);

    if (err)
        return err;
    s->sinks_len = n;
    s->reports = wq__sinks_want_changes(s->sinks, n);
    return WQ_OK;
}

void
wq__shared_report_close(struct wq__shared *s, bool calls)
{
    const size_t n = s->sinks_len;

    if (!n)
        return;
    if (calls) {
        wq__shared_report_changes(s);
        wq__sinks_close(s->sinks, n);
    }
    s->sinks_len = 0;
    s->reports = false;
    wq__sinks_free(&s->mem, s->sinks, n);
}
