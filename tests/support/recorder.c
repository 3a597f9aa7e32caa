/* SPDX-License-Identifier: MIT */
/* recorder.c: a sink that keeps what is reported to it; see recorder.h. */
#include "support/recorder.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_size_t closes; /* of all recorders */

static void
begin(struct recorder *r, enum recorder_call call)
{
    (void)pthread_mutex_lock(&r->mutex);
    r->calls[call]++;
}

static void
end(struct recorder *r, enum recorder_call call)
{
    (void)pthread_mutex_unlock(&r->mutex);
    if (r->hook)
        r->hook(r, call);
}

static wq_err
on_open(void *self, wq_queue *q, const char *name, void **handle)
{
    struct recorder *r = self;

    begin(r, RECORDER_OPEN);
    r->q = q;
    (void)snprintf(r->name, sizeof r->name, "%s", name);
    end(r, RECORDER_OPEN);
    *handle = r;
    return r->answer;
}

static void
on_close(void *handle)
{
    struct recorder *r = handle;
    wq_stats         last = {.size = sizeof last};

    (void)wq_read_stats(r->q, &last);
    begin(r, RECORDER_CLOSE);
    r->last = last;
    r->order = 1 + atomic_fetch_add(&closes, 1);
    end(r, RECORDER_CLOSE);
}

static void
on_changed(void *handle, const wq_change *change)
{
    struct recorder *r = handle;

    begin(r, RECORDER_CHANGED);
    r->sum.depth += change->depth;
    r->sum.adds += change->adds;
    r->sum.merged += change->merged;
    r->sum.retries += change->retries;
    r->sum.drops += change->drops;
    r->empty += change->size != sizeof *change ||
                !(change->depth || change->adds || change->merged ||
                  change->retries || change->drops);
    end(r, RECORDER_CHANGED);
}

static void
keep(struct recorder *r, enum recorder_call call, struct series *series,
     int64_t ns)
{
    begin(r, call);
    if (series->n < RECORDER_KEPT)
        series->ns[series->n] = ns;
    series->n++;
    series->sum += ns;
    if (ns < series->least)
        series->least = ns;
    end(r, call);
}

static void
on_latency(void *handle, int64_t ns)
{
    struct recorder *r = handle;
    keep(r, RECORDER_LATENCY, &r->latency, ns);
}

static void
on_work(void *handle, int64_t ns)
{
    struct recorder *r = handle;
    keep(r, RECORDER_WORK, &r->work, ns);
}

static void
on_limited(void *handle, int64_t ns)
{
    struct recorder *r = handle;
    keep(r, RECORDER_LIMITED, &r->limited, ns);
}

void
recorder_init(struct recorder *r)
{
    memset(r, 0, sizeof *r);
    (void)pthread_mutex_init(&r->mutex, NULL);
    r->latency.least = r->work.least = r->limited.least = INT64_MAX;
    r->sink = (wq_metrics){
        .size = sizeof r->sink,
        .self = r,
        .open = on_open,
        .close = on_close,
        .changed = on_changed,
        .latency = on_latency,
        .work = on_work,
        .limited = on_limited,
    };
}

bool
recorder_agrees(const struct recorder *r, const wq_stats *counts)
{
    return r->sum.depth == (int64_t)(counts->ready + counts->dirty) &&
           r->sum.adds == counts->adds && r->sum.merged == counts->merged &&
           r->sum.retries == counts->retries && r->sum.drops == counts->drops &&
           r->empty == 0;
}
