/* SPDX-License-Identifier: MIT */
/* history.c: how did the numbers change over time? See history.h. */
#include "http/history.h"

#define SECOND INT64_C(1000000000)

void
history_take(struct history *history, const struct view *view)
{
    const int64_t at_ns = view->now_ns - view->started_ns;

    if (history->n &&
        at_ns / SECOND == history_at(history, history->n - 1)->at_ns / SECOND)
        return;
    history->ring[history->n++ % HISTORY_SAMPLES] = (struct history_sample){
        .at_ns = at_ns,
        .ready = view->ready,
        .running = view->running,
        .waiting = view->waiting - view->retrying,
        .retrying = view->retrying,
        .runs = view->counts.runs - view->running,
        .bad = view->counts.retries + view->counts.failed - view->counts.bad,
    };
}

uint64_t
history_first(const struct history *history, uint64_t from)
{
    const uint64_t kept =
        history->n > HISTORY_SAMPLES ? history->n - HISTORY_SAMPLES : 0;

    return from > kept ? from : kept;
}

const struct history_sample *
history_at(const struct history *history, uint64_t number)
{
    return &history->ring[number % HISTORY_SAMPLES];
}
