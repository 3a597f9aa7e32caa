/* SPDX-License-Identifier: MIT */
/* sinks.c: calling the sinks of metrics; see sinks.h. */
#include "metrics/sinks.h"

#include "core/mem.h"
#include "core/sized.h"
#include "error/error.h"

/* A sink of an older program has no `next`. */
static size_t
count(const wq_metrics *metrics)
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

static wq_err
open_all(struct wq__sink *sinks, size_t n, const wq_metrics *metrics,
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

void
wq__sinks_free(const wq_allocator *mem, struct wq__sink *sinks, size_t n)
{
    if (sinks)
        wq__mem_free(mem, sinks, n * sizeof *sinks);
}

wq_err
wq__sinks_open(const wq_allocator *mem, const wq_metrics *metrics, wq_queue *q,
               const char *name, const char *who, struct wq__sink **sinks,
               size_t *n)
{
    const size_t     len = count(metrics);
    struct wq__sink *all = NULL;

    if (len) {
        all = wq__mem_array(mem, len, sizeof *all);
        if (!all)
            return wq_fail(WQ_ENOMEM, "%s: out of memory", who);
    }
    const wq_err err = open_all(all, len, metrics, q, name);
    if (err) {
        wq__sinks_free(mem, all, len);
        return err;
    }
    *sinks = all;
    *n = len;
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
