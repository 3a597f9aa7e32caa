/* SPDX-License-Identifier: MIT */
/* view.c: what is going on? */
#include "view.h"

#include "runner.h"

void
view_take(struct runner *runner, struct view *out)
{
    const struct options *options = runner->options;
    wq_stats              counts = {.size = sizeof counts};

    (void)wq_read_stats(runner->q, &counts); /* zero if it cannot tell */
    *out = (struct view){
        .now_ns = loop_refresh(runner->loop),
        .started_ns = runner->started_ns,
        .phase = runner->phase,
        .finite = runner->open == 0 && !options->follow,
        .adds = runner->adds,
        .merged = runner->merged,
        .skipped = runner->skipped,
        .bad = runner->bad,
        .runs = runner->runs,
        .ok = runner->ok,
        .failed = runner->failed,
        .retries = runner->retries,
        .tempfails = runner->tempfails,
        .timeouts = runner->timeouts,
        .ready = counts.ready,
        .waiting = counts.waiting,
        .retrying = runner->retrying < counts.waiting ? runner->retrying
                                                      : counts.waiting,
        .running = runner->running,
        .again = counts.dirty,
        .slots = runner->slots,
        .left = counts.known,
        .paced = runner->paced,
        .next_ns = counts.next_ns,
    };
}

struct run *const *
view_runs(struct runner *runner, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < runner->n_places; i++)
        if (runner->pids[i] > 0)
            runner->shown[(*n)++] = &runner->places[i]->run;
    return runner->shown;
}

wq_queue *
view_queue(struct runner *runner)
{
    return runner->q;
}

wq_registry *
view_registry(struct runner *runner)
{
    return runner->registry;
}

const struct options *
view_options(struct runner *runner)
{
    return runner->options;
}

struct events *
view_events(struct runner *runner)
{
    return runner->events;
}
