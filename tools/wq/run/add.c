/* SPDX-License-Identifier: MIT */
/* add.c: what happens to a key that comes in? */
#include "base/report.h"
#include "run/runner.h"

/* `after_ns` is -1 if the input gives no delay. One run covers all adds before
 * it starts, and also a pending retry of the key. */
static wq_add_options
options_of(const struct options *options, int64_t after_ns, int priority)
{
    wq_add_options how = {.size = sizeof how, .priority = priority};

    if (after_ns < 0 && options->debounce_ns) {
        how.debounce_ns = options->debounce_ns;
        how.max_wait_ns = options->debounce_max_ns;
    } else {
        how.after_ns = after_ns < 0 ? options->after_ns : after_ns;
        how.waiting = WQ_IF_WAITING_MERGE;
    }
    return how;
}

static void
add(struct runner *runner, wq_key key, int64_t after_ns, int priority)
{
    wq_add_options how = options_of(runner->options, after_ns, priority);
    wq_added       added;

    how.results = &added;
    const wq_err err = wq_add_one(runner->q, key, &how);
    if (err) {
        report("cannot add %s: %s", report_key(key.data, key.len),
               wq_strerror(err));
        runner->counts.failed++;
        runner->fatal = STATUS_ERROR; /* before_sleep() begins the drain */
        return;
    }
    runner->counts.adds++;
    if (added != WQ_ADDED_NEW && added != WQ_ADDED_DIRTY &&
        added != WQ_ADDED_SCHEDULED)
        runner->counts.merged++;
    events_added(&runner->events, key, added, priority,
                 how.debounce_ns ? how.debounce_ns : how.after_ns);
}

static void
on_key(void *ctx, const void *data, size_t len, int64_t after_ns,
       bool prioritized, int priority)
{
    struct runner *runner = ctx;
    const wq_key   key = {data, len};

    if (joblog_skips(&runner->joblog, key)) {
        runner->counts.adds++;
        runner->counts.skipped++;
        events_skipped(&runner->events, key);
    } else {
        add(runner, key, after_ns,
            prioritized ? priority : runner->options->priority);
    }
}

static void
on_bad(void *ctx)
{
    struct runner *runner = ctx;

    runner->counts.bad++;
    runner->counts.failed++;
}

static void
on_ended(void *ctx, bool failed)
{
    struct runner *runner = ctx;

    runner->open--;
    if (failed)
        runner->input_failed = true;
}

static void
on_result_add(void *ctx, struct run *run, const void *data, size_t len)
{
    struct runner *runner = ctx;

    add(runner, (wq_key){data, len}, -1,
        run->result.prioritized ? run->result.priority
                                : runner->options->priority);
}

void
add_connect(struct runner *runner)
{
    runner->sink = (struct input_sink){on_key, on_bad, on_ended, runner};
    runner->result_sink = (struct result_sink){on_result_add, runner};
}
