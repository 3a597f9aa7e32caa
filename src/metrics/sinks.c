/* SPDX-License-Identifier: MIT */
/* sinks.c: calling the sinks of metrics; see sinks.h. */
#include "metrics/sinks.h"

#include "core/sized.h"
#include "error/error.h"

/* A sink of an older program has no `next`. */
size_t
wq__sinks_count(const wq_metrics *metrics)
{
    wq_metrics known = {0};
    size_t     n = 0;

    for (; metrics; metrics = known.next, n++)
        (void)wq__sized_read(metrics, sizeof known, &known);
    return n;
}

void
wq__sinks_close(const struct wq__sink *sinks, size_t n)
{
    while (n-- > 0)
        if (sinks[n].to.close)
            sinks[n].to.close(sinks[n].handle);
}

/* If open() fails without a sentence of its own, set one. */
static wq_err
open_sink(struct wq__sink *sink, wq_queue *q, const char *name)
{
    const unsigned before = wq__fail_count();

    if (!sink->to.open)
        return WQ_OK;
    const wq_err err = sink->to.open(sink->to.self, q, name, &sink->handle);
    if (err && wq__fail_count() == before)
        return wq_fail(err, "wq_metrics.open for queue '%s' returned %s: %s",
                       name, wq_err_name(err), wq_strerror(err));
    return err;
}

wq_err
wq__sinks_open(struct wq__sink *sinks, size_t n, const wq_metrics *metrics,
               wq_queue *q, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        (void)wq__sized_read(metrics, sizeof sinks[i].to, &sinks[i].to);
        sinks[i].handle = NULL;
        const wq_err err = open_sink(&sinks[i], q, name);
        if (err) {
            wq__sinks_close(sinks, i);
            return err;
        }
        metrics = sinks[i].to.next;
    }
    return WQ_OK;
}

bool
wq__sinks_want_changes(const struct wq__sink *sinks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (sinks[i].to.changed)
            return true;
    return false;
}

void
wq__sinks_change(const struct wq__sink *sinks, size_t n,
                 const wq_change *change)
{
    for (size_t i = 0; i < n; i++)
        if (sinks[i].to.changed)
            sinks[i].to.changed(sinks[i].handle, change);
}

void
wq__sinks_duration(const struct wq__sink *sinks, size_t n,
                   enum wq__duration what, int64_t ns)
{
    for (size_t i = 0; i < n; i++) {
        wq__on_duration *callback = wq__sink_callback(&sinks[i].to, what);
        if (callback)
            callback(sinks[i].handle, ns);
    }
}
