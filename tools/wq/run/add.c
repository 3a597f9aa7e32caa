/* SPDX-License-Identifier: MIT */
/* add.c: what happens to a key that comes in? */
#include "base/report.h"
#include "run/runner.h"

void
add_done(void *ctx, wq_key key, wq_added added, const wq_add_options *how)
{
    struct runner *runner = ctx;

    runner->counts.adds++;
    if (added != WQ_ADDED_NEW && added != WQ_ADDED_DIRTY &&
        added != WQ_ADDED_SCHEDULED)
        runner->counts.merged++;
    if (added == WQ_ADDED_DEAD && !runner->options->quiet)
        report("%s is DEAD and stays so; wq retry makes it READY",
               report_key(key.data, key.len));
    events_added(&runner->events, key, added, how->priority,
                 how->debounce_ns ? how->debounce_ns : how->after_ns);
}

/* A queue in memory. */
static wq_err
add_now(struct runner *runner, wq_key key, int64_t after_ns, int priority)
{
    const bool retrying = runner->retrying > 0 &&
                          batch_is_retrying(runner->options, runner->q, key);
    wq_add_options how =
        batch_options(runner->options, after_ns, priority, retrying);
    wq_added added;

    how.results = &added;
    const wq_err err = wq_add_one(runner->q, key, &how);
    if (!err)
        add_done(runner, key, added, &how);
    return err;
}

/* A shared queue: before_sleep() adds what has come in. */
static wq_err
add_later(struct runner *runner, wq_key key, int64_t after_ns, int priority)
{
    return batch_put(&runner->batch, key, after_ns, priority) ? WQ_OK
                                                              : WQ_ENOMEM;
}

static void
refuse(struct runner *runner, wq_key key, wq_err err)
{
    runner->add_failed = true;
    report("cannot add %s: %s", report_key(key.data, key.len),
           wq_strerror(err));
    runner->counts.failed++;
    runner->fatal = STATUS_ERROR; /* before_sleep() begins the drain */
}

/* --keep-order: the place of the next run's output. */
static wq_err
take_ticket(struct runner *runner, wq_key key)
{
    if (!runner->options->keep_order)
        return WQ_OK;
    struct note *note = notes_get(&runner->notes, key);
    if (note && !note->ticket)
        note->ticket = output_expect(runner->output);
    return note && note->ticket ? WQ_OK : WQ_ENOMEM;
}

/* False: refused. */
static bool
add(struct runner *runner, wq_key key, int64_t after_ns, int priority)
{
    wq_err err = take_ticket(runner, key);

    if (!err)
        err = runner->options->shared
                  ? add_later(runner, key, after_ns, priority)
                  : add_now(runner, key, after_ns, priority);
    if (err)
        refuse(runner, key, err);
    return !err;
}

static void
skip(struct runner *runner, wq_key key)
{
    runner->counts.adds++;
    runner->counts.skipped++;
    events_skipped(&runner->events, key);
}

/* --once */
static bool
has_succeeded(const struct runner *runner, wq_key key)
{
    const struct note *note = notes_find(&runner->notes, key);

    return note && note->succeeded;
}

/* The next run of the key is for this line. */
static wq_err
note_line(struct runner *runner, wq_key key, wq_key line)
{
    if (!runner->options->mapped)
        return WQ_OK;
    struct note *note = notes_get(&runner->notes, key);
    return note && note_set_line(note, line) ? WQ_OK : WQ_ENOMEM;
}

/* --restart: what the run of the key works on is out of date. */
static void
restart(struct runner *runner, wq_key key)
{
    struct run *run = slot_find_key(runner, key);

    if (!run || run->stopping || runner->phase >= PHASE_DRAINING)
        return;
    run->restarting = true;
    ending_stop_run(runner, run);
}

static void
on_key(void *ctx, const void *data, size_t len, int64_t after_ns,
       bool prioritized, int priority)
{
    struct runner *runner = ctx;
    const wq_key   line = {data, len};
    wq_key         key = line;
    wq_err         err = keymap_find(&runner->keymap, line, &key);

    if (err == WQ_ENOTFOUND) {
        runner->counts.unmatched++;
    } else if (!err && (joblog_skips(&runner->joblog, key) ||
                        has_succeeded(runner, key))) {
        skip(runner, key);
    } else if (err || (err = note_line(runner, key, line))) {
        refuse(runner, key, err);
    } else {
        if (add(runner, key, after_ns,
                prioritized ? priority : runner->options->priority) &&
            runner->options->restart)
            restart(runner, key);
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
    const wq_key   key = {data, len};

    if (has_succeeded(runner, key))
        skip(runner, key);
    else
        (void)add(runner, key, -1,
                  run->result.prioritized ? run->result.priority
                                          : runner->options->priority);
}

void
add_connect(struct runner *runner)
{
    runner->sink = (struct input_sink){on_key, on_bad, on_ended, runner};
    runner->result_sink = (struct result_sink){on_result_add, runner};
    runner->keymap.options = runner->options;
}
