/* SPDX-License-Identifier: MIT */
/* report.c: telling the metrics' sinks; see report.h. */
#include "memory/report.h"

#include "core/mem.h"
#include "core/sized.h"
#include "error/error.h"
#include "memory/gate.h"

/* They are valid. A sink of an older program has no `next`. */
static size_t
count_sinks(const wq_metrics *metrics)
{
    wq_metrics known = {0};
    size_t     n = 0;

    for (; metrics; metrics = known.next, n++)
        (void)wq__sized_read(metrics, sizeof known, &known);
    return n;
}

static void
close_sinks(struct wq__memory *m, size_t n)
{
    while (n-- > 0)
        if (m->sinks[n].to.close)
            m->sinks[n].to.close(m->sinks[n].handle);
}

/* A sink that gives no reason of its own gets one. */
static wq_err
open_sink(struct wq__memory *m, struct wq__sink *sink)
{
    const unsigned before = wq__fail_count();

    if (!sink->to.open)
        return WQ_OK;
    const wq_err err =
        sink->to.open(sink->to.self, &m->base, m->name, &sink->handle);
    if (err && wq__fail_count() == before)
        return wq_fail(err, "wq_metrics.open for queue '%s' returned %s: %s",
                       m->name, wq_err_name(err), wq_strerror(err));
    return err;
}

/* The first `n` of the array, from the list. */
static wq_err
open_sinks(struct wq__memory *m, const wq_metrics *metrics, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct wq__sink *sink = &m->sinks[i];

        (void)wq__sized_read(metrics, sizeof sink->to, &sink->to);
        sink->handle = NULL;
        const wq_err err = open_sink(m, sink);
        if (err) {
            close_sinks(m, i);
            return err;
        }
        metrics = sink->to.next;
    }
    return WQ_OK;
}

static void
free_sinks(struct wq__memory *m, size_t n)
{
    wq__mem_free(&m->shared_mem, m->sinks, n * sizeof *m->sinks);
    m->sinks = NULL;
}

/* From now on they are told. With the lock: one that is open may be asking the
 * queue already, in another thread. */
static void
begin_telling(struct wq__memory *m, size_t n)
{
    bool tells = false;

    for (size_t i = 0; i < n; i++)
        tells |= m->sinks[i].to.changed != NULL;
    wq__lock_take(&m->lock);
    atomic_store_explicit(&m->sinks_len, n, memory_order_release);
    atomic_store_explicit(&m->tells, tells, memory_order_release);
    m->company += tells;
    wq__lock_release(&m->lock);
}

/* What has changed so far. */
static void
tell(struct wq__memory *m)
{
    wq_change change;

    wq__lock_take(&m->lock);
    const bool changed = wq__gate_tells(m) && wq__report_take(m, &change);
    wq__lock_release(&m->lock);
    if (changed)
        wq__report_change(m, &change);
}

wq_err
wq__report_open(struct wq__memory *m, const wq_metrics *metrics)
{
    const size_t n = count_sinks(metrics);

    if (n == 0)
        return WQ_OK;
    m->sinks = wq__mem_array(&m->shared_mem, n, sizeof *m->sinks);
    if (!m->sinks)
        return wq_fail(WQ_ENOMEM, "wq_create: out of memory");
    const wq_err err = open_sinks(m, metrics, n);
    if (err) {
        free_sinks(m, n);
        return err;
    }
    begin_telling(m, n);
    wq__gate_tell(m); /* what they did to the queue when they were opened */
    return WQ_OK;
}

void
wq__report_close(struct wq__memory *m)
{
    tell(m); /* what was dropped by the destroy */
    const size_t n = wq__report_sinks(m);
    close_sinks(m, n);
    free_sinks(m, n);
}

static uint64_t
since(uint64_t now, uint64_t *told)
{
    const uint64_t more = now - *told;
    *told = now;
    return more;
}

bool
wq__report_take(struct wq__memory *m, wq_change *change)
{
    const struct wq__core *c = &m->core;
    wq_change             *told = &m->told;
    const int64_t          depth = (int64_t)(c->ready.len + c->dirty);

    *change = (wq_change){
        .size = sizeof *change,
        .depth = depth - told->depth,
        .adds = since(c->tally.adds, &told->adds),
        .merged = since(c->tally.merged, &told->merged),
        .retries =
            since(atomic_load_explicit(&m->retries, memory_order_relaxed),
                  &told->retries),
        .drops = since(c->tally.drops + atomic_load_explicit(
                                            &m->dropped, memory_order_relaxed),
                       &told->drops),
    };
    told->depth = depth;
    return change->depth || change->adds || change->merged || change->retries ||
           change->drops;
}

void
wq__report_change(struct wq__memory *m, const wq_change *change)
{
    for (size_t i = 0, n = wq__report_sinks(m); i < n; i++)
        if (m->sinks[i].to.changed)
            m->sinks[i].to.changed(m->sinks[i].handle, change);
}

void
wq__report_each_latency(struct wq__memory *m, int64_t ns)
{
    for (size_t i = 0, n = wq__report_sinks(m); i < n; i++)
        if (m->sinks[i].to.latency)
            m->sinks[i].to.latency(m->sinks[i].handle, ns);
}

void
wq__report_each_work(struct wq__memory *m, int64_t ns)
{
    for (size_t i = 0, n = wq__report_sinks(m); i < n; i++)
        if (m->sinks[i].to.work)
            m->sinks[i].to.work(m->sinks[i].handle, ns);
}

void
wq__report_each_limited(struct wq__memory *m, int64_t ns)
{
    for (size_t i = 0, n = wq__report_sinks(m); i < n; i++)
        if (m->sinks[i].to.limited)
            m->sinks[i].to.limited(m->sinks[i].handle, ns);
}
