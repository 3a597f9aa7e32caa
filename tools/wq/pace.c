/* SPDX-License-Identifier: MIT */
/* pace.c: how fast does it go, and how long will it take? See pace.h. */
#include "pace.h"

#define SECOND INT64_C(1000000000)

void
pace_take(struct pace *pace, const struct view *view)
{
    if (pace->n == 0) /* at the beginning nothing had ended */
        pace->ring[pace->n++] = (struct pace_sample){view->started_ns, 0, 0};
    pace->now = (struct pace_sample){
        .at_ns = view->now_ns,
        .ended = view->runs - view->running,
        .settled = view->ok + view->failed,
    };
    const struct pace_sample *last = &pace->ring[(pace->n - 1) % PACE_SAMPLES];
    if (pace->now.at_ns - last->at_ns >= PACE_APART_NS)
        pace->ring[pace->n++ % PACE_SAMPLES] = pace->now;
}

static const struct pace_sample *
oldest(const struct pace *pace)
{
    return &pace->ring[pace->n > PACE_SAMPLES ? pace->n % PACE_SAMPLES : 0];
}

static double
per_second(const struct pace *pace, uint64_t events)
{
    const int64_t ns = pace->now.at_ns - oldest(pace)->at_ns;

    return ns > 0 ? (double)events * (double)SECOND / (double)ns : 0;
}

double
pace_runs(const struct pace *pace)
{
    return per_second(pace, pace->now.ended - oldest(pace)->ended);
}

double
pace_keys(const struct pace *pace)
{
    return per_second(pace, pace->now.settled - oldest(pace)->settled);
}

int64_t
pace_left_ns(const struct pace *pace, const struct view *view)
{
    const double keys = pace_keys(pace);

    if (!view->finite || keys <= 0)
        return -1;
    const double left = (double)view->left / keys * (double)SECOND;
    if (left >= (double)WQ_FOREVER)
        return -1;
    /* While all of them wait, the first one must come due before. */
    if (!view->running && !view->ready && view->next_ns != WQ_FOREVER &&
        (double)view->next_ns > left)
        return view->next_ns;
    return (int64_t)left;
}
