/* SPDX-License-Identifier: MIT */
/* rate.c: how many per second, and how much time is left? See rate.h. */
#include "display/rate.h"

#define SECOND INT64_C(1000000000)

void
rate_take(struct run_rate *rate, const struct view *view)
{
    if (rate->n == 0) /* at the start nothing had ended */
        rate->ring[rate->n++] = (struct rate_sample){view->started_ns, 0, 0};
    rate->now = (struct rate_sample){
        .at_ns = view->now_ns,
        .ended = view->counts.runs - view->running,
        .settled = view->counts.ok + view->counts.failed,
    };
    const struct rate_sample *last = &rate->ring[(rate->n - 1) % RATE_SAMPLES];
    if (rate->now.at_ns - last->at_ns >= RATE_SAMPLE_NS)
        rate->ring[rate->n++ % RATE_SAMPLES] = rate->now;
}

static const struct rate_sample *
oldest(const struct run_rate *rate)
{
    return &rate->ring[rate->n > RATE_SAMPLES ? rate->n % RATE_SAMPLES : 0];
}

static double
per_second(const struct run_rate *rate, uint64_t events)
{
    const int64_t ns = rate->now.at_ns - oldest(rate)->at_ns;

    return ns > 0 ? (double)events * (double)SECOND / (double)ns : 0;
}

double
rate_runs(const struct run_rate *rate)
{
    return per_second(rate, rate->now.ended - oldest(rate)->ended);
}

double
rate_keys(const struct run_rate *rate)
{
    return per_second(rate, rate->now.settled - oldest(rate)->settled);
}

int64_t
rate_left_ns(const struct run_rate *rate, const struct view *view)
{
    const double keys = rate_keys(rate);

    if (!view->finite || keys <= 0)
        return -1;
    const double left = (double)view->left / keys * (double)SECOND;
    if (left >= (double)WQ_FOREVER)
        return -1;
    /* While all keys wait, it takes at least until the first one is due. */
    if (!view->running && !view->ready && view->next_ns != WQ_FOREVER &&
        (double)view->next_ns > left)
        return view->next_ns;
    return (int64_t)left;
}
