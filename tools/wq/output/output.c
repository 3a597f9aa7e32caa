/* SPDX-License-Identifier: MIT */
/* output.c: where does the output of a run go?
 *
 * A run without output costs two pipes and one poll(). Pipes are watched only
 * when a run has lasted for UNWATCHED_NS, or when recent runs wrote much: a pipe
 * holds 64 KiB by itself. Watching every pipe would wake us up to three times
 * at the end of a run.
 *
 * A process that outlives its run and still has the pipe does not delay the end
 * of the run, nor the next one. For --output-grace the end of the pipe is
 * awaited, and the output stays in one piece; after that, output is printed line
 * by line while wq runs. wq does not end while an end is awaited.
 */
#include "output/output.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/report.h"
#include "output/capture.h"

/* Too short for people to notice that a full pipe blocked a child. */
#define UNWATCHED_NS 5000000
/* A run that wrote more than this may have filled a pipe ... */
#define LARGE_OUTPUT 16384
/* ... and then so many runs are watched from the start. */
#define EAGER_RUNS 32
/* How long a run waits for the reader of its output. */
#define PATIENCE_NS 1000000000
/* Late captures that are read; then the oldest is closed. */
#define MAX_LATE 64

/* ----------------------------------------------------------------- lists -- */

static void
append(struct captures *list, struct capture *c)
{
    c->before = list->last;
    c->after = NULL;
    *(c->before ? &c->before->after : &list->first) = c;
    list->last = c;
    list->len++;
}

static void
remove_from(struct captures *list, struct capture *c)
{
    *(c->before ? &c->before->after : &list->first) = c->after;
    *(c->after ? &c->after->before : &list->last) = c->before;
    list->len--;
}

static void
release(struct capture *c)
{
    append(&c->output->free, c);
}

/* A free capture, or a new one; NULL: out of memory. */
static struct capture *
get_capture(struct output *output)
{
    struct capture *c = output->free.last;

    if (c) {
        remove_from(&output->free, c);
    } else if ((c = calloc(1, sizeof *c))) {
        c->streams[0].store.fd = c->streams[1].store.fd = -1;
    }
    return c;
}

/* --------------------------------------------------------------- reading -- */

/* Its output is complete. */
static void
end_turn(struct capture *c)
{
    if (c->ticket)
        order_end_wait(c->output->order, c->ticket);
    c->ticket = 0;
}

/* Do not await the end of its pipes any longer. */
static void
stop_awaiting(struct capture *c)
{
    if (c->await_until_ns)
        c->output->awaited--;
    c->await_until_ns = 0;
}

/* Keeps the capture for another run, if its late pipes are closed. */
static void
retire(struct capture *c)
{
    if (!capture_is_closed(c))
        return;
    stop_awaiting(c);
    end_turn(c);
    remove_from(&c->output->late, c);
    release(c);
}

static void
flush(struct capture *c)
{
    stream_flush(&c->streams[TARGET_OUT]);
    stream_flush(&c->streams[TARGET_ERR]);
}

/* The pipes are closed although a process may write to them. */
static void
report_cut(struct capture *c)
{
    if (c->output->cut++ == 0 && !c->output->options->quiet)
        report("%s: a process that it started still has its output open; what "
               "that writes now is lost",
               report_key(c->key.data, c->key.len));
}

/* Closes the pipes even if a process still writes to them. */
static void
end_late(struct capture *c)
{
    if (!capture_is_closed(c))
        report_cut(c);
    stream_close(&c->streams[TARGET_OUT]);
    stream_close(&c->streams[TARGET_ERR]);
    flush(c);
    retire(c);
}

/* Under congestion, pipes that are printed line by line or directly are not read,
 * so that their writers block. Grouped output goes to the store. */
static bool
must_pause(const struct stream *s)
{
    const struct capture *c = s->capture;

    return (s->direct || capture_is_by_line(c)) &&
           outbox_congested(c->output->box);
}

static void on_sweep(void *ctx);

/* The reader has not read for PATIENCE_NS: the run shall not wait for it. */
static void
on_patience(void *ctx)
{
    struct output *output = ctx;

    if (!output->owner)
        return;
    output->owner->impatient = true;
    output->owner->streams[TARGET_OUT].direct = false;
    output->owner->streams[TARGET_ERR].direct = false;
    output->owner = NULL; /* other runs may start */
    on_sweep(output);
}

/* Stops reading until on_box_progress(). */
static void
pause_reading(struct stream *s)
{
    struct output *output = s->capture->output;

    output->paused = true;
    loop_unwatch(output->loop, &s->watch);
    if (s->direct && !output->patience.set)
        loop_timer_set(output->loop, &output->patience,
                       loop_now(output->loop) + PATIENCE_NS, on_patience,
                       output);
    if (s->full)
        outbox_await_space(output->box, s->target);
    s->full = false;
}

/* A pipe of a run that is over has ended. */
static void
end_stream(struct stream *s)
{
    if (!s->capture->await_until_ns)
        stream_flush(s);
    else if (capture_is_closed(s->capture))
        flush(s->capture);
    retire(s->capture);
}

static void
on_ready(void *ctx)
{
    struct stream *s = ctx;
    const bool     open = must_pause(s) || stream_read(s);

    if (open && (s->full || must_pause(s)))
        pause_reading(s);
    else if (!open && !s->capture->run)
        end_stream(s);
}

/* False: one of the pipes could not be watched. */
static bool
watch(struct capture *c)
{
    bool all = true;

    for (int i = 0; i < 2; i++) {
        struct stream *s = &c->streams[i];
        if (s->fd < 0 || s->watch.set)
            continue;
        /* capture_drain() may take the bytes that epoll has reported. */
        all &=
            fcntl(s->fd, F_SETFL, O_NONBLOCK) == 0 &&
            loop_watch(c->output->loop, &s->watch, s->fd, EPOLLIN, on_ready, s);
    }
    return all;
}

static void sweep_soon(struct output *output);

/* Watches all pipes that are not watched yet. */
static void
on_sweep(void *ctx)
{
    struct output *output = ctx;
    bool           all = true;

    for (struct capture *c = output->running.first; c; c = c->after)
        all &= watch(c);
    for (struct capture *c = output->late.first; c; c = c->after)
        all &= watch(c);
    if (!all)
        sweep_soon(output); /* the kernel was out of memory: try again */
}

static void
sweep_soon(struct output *output)
{
    if (!output->sweep.set)
        loop_timer_set(output->loop, &output->sweep,
                       loop_now(output->loop) + UNWATCHED_NS, on_sweep, output);
}

static void
on_box_progress(void *ctx)
{
    struct output *output = ctx;

    if (output->paused && !outbox_congested(output->box)) {
        output->paused = false;
        loop_timer_clear(output->loop, &output->patience);
        on_sweep(output);
    }
    if (output->order)
        order_go_on(output->order);
    output->on_progress(output->ctx);
}

/* --------------------------------------------------------- the interface -- */

bool
output_begin(struct output *output, struct run *run, int fds[2])
{
    run->capture = NULL;
    fds[0] = fds[1] = -1;
    if (output->options->grouping == GROUP_NONE)
        return true;
    struct capture *c = get_capture(output);
    if (!c) {
        report("out of memory: cannot read the output of a run");
        return false;
    }
    if (!capture_open(c, output, run)) {
        release(c);
        return false;
    }
    c->run = run;
    c->ticket = run->ticket;
    if (c->ticket)
        order_await(output->order, c->ticket);
    run->capture = c;
    append(&output->running, c);
    fds[0] = c->streams[TARGET_OUT].child_fd;
    fds[1] = c->streams[TARGET_ERR].child_fd;
    return true;
}

void
output_started(struct output *output, struct run *run)
{
    const bool eager = output->eager > 0;

    if (!run->capture)
        return;
    capture_close_child(run->capture);
    output->eager -= eager;
    if ((!eager && output->options->grouping != GROUP_LINE) ||
        !watch(run->capture))
        sweep_soon(output);
}

static void on_grace(void *ctx);

/* The grace is the same for all: they end in the order of the list. */
static void
set_grace(struct output *output)
{
    for (struct capture *c = output->late.first; c; c = c->after)
        if (c->await_until_ns) {
            loop_timer_set(output->loop, &output->grace, c->await_until_ns,
                           on_grace, output);
            return;
        }
}

/* Prints what late captures have, and goes on reading line by line. */
static void
on_grace(void *ctx)
{
    struct output *output = ctx;
    const int64_t  now_ns = loop_now(output->loop);

    for (struct capture *c = output->late.first; c; c = c->after)
        if (c->await_until_ns && c->await_until_ns <= now_ns) {
            stop_awaiting(c);
            flush(c);
            end_turn(c);
        }
    set_grace(output);
}

static void
begin_awaiting(struct output *output, struct capture *c)
{
    c->over_at = capture_bytes(c);
    c->await_until_ns =
        loop_now(output->loop) + output->options->output_grace_ns;
    output->awaited++;
    if (!output->grace.set)
        set_grace(output);
}

/* A process that outlives the run has the pipes: goes on reading. */
static void
become_late(struct output *output, struct capture *c, wq_key key)
{
    text_clear(&c->key);
    wq__text_add(&c->key, key.data, key.len);
    append(&output->late, c);
    if (output->options->output_grace_ns > 0) {
        begin_awaiting(output, c);
    } else {
        flush(c);
        end_turn(c);
    }
    if (!watch(c))
        sweep_soon(output);
    if (output->late.len > MAX_LATE)
        end_late(output->late.first);
}

void
output_finish(struct output *output, struct run *run)
{
    struct capture *c = run->capture;

    if (!c)
        return;
    capture_drain(c);
    run->out_bytes = c->streams[TARGET_OUT].bytes;
    run->err_len = tail_read(&c->tail, run->err_line);
    if (capture_bytes(c) > LARGE_OUTPUT)
        output->eager = EAGER_RUNS;
    remove_from(&output->running, c);
    if (output->owner == c)
        output->owner = NULL;
    run->capture = NULL;
    if (capture_is_closed(c)) {
        flush(c);
        end_turn(c);
        c->run = NULL;
        release(c);
    } else {
        c->run = NULL;
        become_late(output, c, run->key);
    }
}

void
output_line(struct output *output, const char *text, size_t len)
{
    struct wq__text *line = &output->line;

    text_clear(line);
    if (outbox_within_line(output->box, TARGET_OUT))
        wq__text_char(line, '\n');
    wq__text_add(line, text, len);
    wq__text_char(line, '\n');
    if (line->err)
        outbox_lost(output->box);
    else
        outbox_add(output->box, TARGET_OUT, line->data, line->len);
}

bool
output_congested(const struct output *output)
{
    return outbox_congested(output->box) || output->owner;
}

bool
output_idle(const struct output *output)
{
    return outbox_idle(output->box) && output->awaited == 0 &&
           (!output->order || order_idle(output->order));
}

uint64_t
output_expect(struct output *output)
{
    return order_expect(output->order);
}

void
output_settle(struct output *output, uint64_t ticket)
{
    order_settle(output->order, ticket);
}

void
output_settle_all(struct output *output)
{
    if (output->order)
        order_settle_all(output->order);
}

bool
output_broken(const struct output *output)
{
    return outbox_broken(output->box);
}

bool
output_lost_reader(struct output *output)
{
    if (output->options->grouping == GROUP_NONE)
        outbox_check_reader(output->box);
    return output->options->grouping == GROUP_NONE && output_broken(output);
}

bool
output_failed(const struct output *output)
{
    return outbox_failed(output->box) || output->copy_failed;
}

bool
output_create(const struct options *options, struct loop *loop,
              void (*on_progress)(void *ctx), void *ctx, struct output **out)
{
    struct output *output = calloc(1, sizeof *output);

    if (output) {
        output->options = options;
        output->results.fd = -1;
        output->loop = loop;
        output->on_progress = on_progress;
        output->ctx = ctx;
        output->box = outbox_create(loop, on_box_progress, output);
        if (output->box && options->keep_order)
            output->order = order_create(loop, output->box);
    }
    if (!output || !output->box || (options->keep_order && !output->order)) {
        report("out of memory");
        if (output)
            outbox_destroy(output->box);
        free(output);
        return false;
    }
    if (options->grouping == GROUP_NONE)
        outbox_watch_reader(output->box);
    if (options->results && !options->dry_run &&
        !results_dir_create(&output->results, options->results)) {
        output_destroy(output);
        return false;
    }
    *out = output;
    return true;
}

static void
free_all(struct captures *list)
{
    for (struct capture *c = list->first, *next; c; c = next) {
        next = c->after;
        capture_free(c);
    }
    *list = (struct captures){0};
}

/* Prints what processes that outlived their runs have written. */
static void
end_all_late(struct output *output)
{
    for (struct capture *c; (c = output->late.first);) {
        capture_drain(c);
        end_late(c);
    }
    if (output->cut > 1 && !output->options->quiet)
        report("likewise for %llu more runs",
               (unsigned long long)output->cut - 1);
}

void
output_destroy(struct output *output)
{
    if (!output)
        return;
    end_all_late(output);
    loop_timer_clear(output->loop, &output->sweep);
    loop_timer_clear(output->loop, &output->grace);
    loop_timer_clear(output->loop, &output->patience);
    free_all(&output->running);
    free_all(&output->free);
    order_destroy(output->order);
    outbox_destroy(output->box);
    results_dir_close(&output->results);
    wq__text_fini(&output->line);
    free(output);
}
