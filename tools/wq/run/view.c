/* SPDX-License-Identifier: MIT */
/* view.c: what is the program doing right now? */
#include "run/view.h"

#include "run/runner.h"

void
view_take(struct runner *runner, struct view *out)
{
    const struct options *options = runner->options;
    wq_stats              stats = {.size = sizeof stats};

    const bool known =
        !store_is_away(runner) && wq_read_stats(runner->q, &stats) == WQ_OK;
    if (known)
        runner->stats = stats;
    else
        stats = runner->stats; /* zero at first */
    *out = (struct view){
        .now_ns = loop_refresh(runner->loop),
        .started_ns = runner->started_ns,
        .phase = runner->phase,
        .finite = runner->open == 0 && !options->follow &&
                  (!options->shared || options->until_empty),
        .counts = runner->counts,
        .outdated = !known,
        .ready = stats.ready,
        .waiting = stats.waiting,
        .retrying =
            runner->retrying < stats.waiting ? runner->retrying : stats.waiting,
        .running = runner->running,
        .again = stats.dirty,
        .slots = runner->max_running,
        .left = stats.known > stats.dead ? stats.known - stats.dead : 0,
        .dead = stats.dead,
        .next_ns = stats.next_ns,
        .unread = runner->unread,
        .distinct = runner->settled.full ? 0 : runner->settled.n,
    };
}

struct run *const *
view_runs(struct runner *runner, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < runner->n_slots; i++)
        if (runner->slots[i].pid > 0)
            runner->listed[(*n)++] = &runner->slots[i].slot->run;
    return runner->listed;
}

const char *
phase_name(enum phase phase)
{
    static const char *const names[] = {
        [PHASE_RUNNING] = "running",   [PHASE_FINISHING] = "finishing",
        [PHASE_DRAINING] = "draining", [PHASE_STOPPING] = "stopping",
        [PHASE_KILLING] = "killing",
    };

    return names[phase];
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

const struct failures *
view_failures(const struct runner *runner)
{
    return &runner->failures;
}

const struct queue_durations *
view_durations(const struct runner *runner)
{
    return &runner->durations;
}
