/* SPDX-License-Identifier: MIT */
/* report.c: telling the metrics' sinks; see report.h. */
#include "memory/report.h"

#include "core/mem.h"
#include "core/sized.h"

static size_t
count_sinks(const wq_metrics *metrics)
{
    size_t n = 0;

    for (; metrics; metrics = metrics->next)
        n++;
    return n;
}

static void
close_sinks(struct wq__memory *m, size_t n)
{
    while (n-- > 0)
        if (m->sinks[n].to.close)
            m->sinks[n].to.close(m->sinks[n].handle);
}

static wq_err
open_sink(struct wq__memory *m, const wq_metrics *from, struct wq__sink *sink)
{
    sink->handle = NULL;
    if (!wq__sized_read(from, sizeof sink->to, &sink->to))
        return WQ_EINVAL;
    m->tells |= sink->to.changed != NULL;
    if (!sink->to.open)
        return WQ_OK;
    return sink->to.open(sink->to.self, &m->base, m->name, &sink->handle);
}

wq_err
wq__report_open(struct wq__memory *m, const wq_metrics *metrics)
{
    const size_t n = count_sinks(metrics);
    if (n == 0)
        return WQ_OK;

    m->sinks = wq__mem_array(&m->shared_mem, n, sizeof *m->sinks);
    if (!m->sinks)
        return WQ_ENOMEM;
    m->sinks_len = n;
    for (size_t i = 0; i < n; i++, metrics = metrics->next) {
        const wq_err err = open_sink(m, metrics, &m->sinks[i]);
        if (err) {
            close_sinks(m, i);
            wq__mem_free(&m->shared_mem, m->sinks, n * sizeof *m->sinks);
            m->sinks = NULL;
            m->sinks_len = 0;
            return err;
        }
    }
    return WQ_OK;
}

void
wq__report_close(struct wq__memory *m)
{
    close_sinks(m, m->sinks_len);
    wq__mem_free(&m->shared_mem, m->sinks, m->sinks_len * sizeof *m->sinks);
    m->sinks = NULL;
    m->sinks_len = 0;
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
                                            &m->given_up, memory_order_relaxed),
                       &told->drops),
    };
    told->depth = depth;
    return change->depth || change->adds || change->merged || change->retries ||
           change->drops;
}

void
wq__report_change(struct wq__memory *m, const wq_change *change)
{
    for (size_t i = 0; i < m->sinks_len; i++)
        if (m->sinks[i].to.changed)
            m->sinks[i].to.changed(m->sinks[i].handle, change);
}

void
wq__report_each_latency(struct wq__memory *m, int64_t ns)
{
    for (size_t i = 0; i < m->sinks_len; i++)
        if (m->sinks[i].to.latency)
            m->sinks[i].to.latency(m->sinks[i].handle, ns);
}

void
wq__report_each_work(struct wq__memory *m, int64_t ns)
{
    for (size_t i = 0; i < m->sinks_len; i++)
        if (m->sinks[i].to.work)
            m->sinks[i].to.work(m->sinks[i].handle, ns);
}

void
wq__report_each_limited(struct wq__memory *m, int64_t ns)
{
    for (size_t i = 0; i < m->sinks_len; i++)
        if (m->sinks[i].to.limited)
            m->sinks[i].to.limited(m->sinks[i].handle, ns);
}
