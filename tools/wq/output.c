/* SPDX-License-Identifier: MIT */
/* output.c: where does the output of a run go?
 *
 *     child ──pipe──► read ──► tag ──► store ──────────────► outbox ──► ours
 *                       └──► --results     run over, or line over
 *
 * Why pipes, where a file for each run (as GNU parallel has it) would need no
 * reading while the child runs: a child that opens /dev/stderr, as in
 * `echo oops >/dev/stderr` or `tee /dev/stderr`, truncates a file and loses
 * what it said before; a pipe takes it all. And files that are used again would
 * mix runs where a process outlives its run.
 *
 * A run that says nothing costs two pipes and one poll(): pipes are watched
 * only once a run has lasted for UNWATCHED_NS, or when the runs of late said
 * much, for a pipe keeps 64 KiB by itself. Otherwise its end would wake us up
 * to three times.
 *
 * A process that outlives its run and still has the pipe does not delay the end
 * of the run. What it says later is let out line by line, as long as wq runs.
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json.h"
#include "outbox.h"
#include "results.h"
#include "store.h"
#include "tell.h"

/* Too short for a person to notice that a full pipe held up a child. */
#define UNWATCHED_NS 5000000
/* A run that said so much may have filled a pipe ... */
#define MUCH 16384
/* ... and then so many runs are watched from the start. */
#define EAGER_RUNS 32
/* Pipes of so many runs that are over are read on; the oldest are closed. */
#define MOST_LATE 64
/* What is read at one go: as much as a pipe holds, if nobody enlarged it. */
#define PIECE 65536

/* One of the two pipes of a run. */
struct stream {
    struct capture *capture;     /* which it is part of */
    enum door       door;        /* where it goes */
    int             fd;          /* our end; -1: closed */
    int             child_fd;    /* the other end; -1: closed */
    struct watch    watch;       /* of fd */
    struct store    store;       /* what may not go out yet */
    bool            within_line; /* what came last did not end a line */
    int             copy;        /* file of --results; -1: none */
    uint64_t        bytes;       /* that came */
};

struct capture {
    struct output  *output;         /* which it belongs to */
    struct stream   streams[2];     /* by enum door */
    struct run     *run;            /* NULL: it is over */
    struct text     tag;            /* for each line */
    struct capture *before, *after; /* in `running` or `late`; or `free` */
};

struct list {
    struct capture *first, *last;
    size_t          len;
};

struct output {
    const struct options *options;
    struct loop          *loop;
    struct outbox        *box;
    struct results       *results; /* NULL: none */
    struct list           running; /* captures of runs that last */
    struct list           late;    /* of runs that are over; oldest first */
    struct list           free;    /* to be used again */
    struct timer          sweep;   /* set while a pipe is not watched */
    unsigned              eager;   /* so many runs are watched at once */
    bool                  paused;  /* some pipes wait for congestion to end */
    bool                  copy_failed;  /* --results could not be written */
    struct text           line;         /* for output_line() */
    char                  piece[PIECE]; /* that was read last */

    void (*on_progress)(void *ctx);
    void *ctx;
};

/* ----------------------------------------------------------------- lists -- */

static void
append(struct list *list, struct capture *c)
{
    c->before = list->last;
    c->after = NULL;
    *(c->before ? &c->before->after : &list->first) = c;
    list->last = c;
    list->len++;
}

static void
take_out(struct list *list, struct capture *c)
{
    *(c->before ? &c->before->after : &list->first) = c->after;
    *(c->after ? &c->after->before : &list->last) = c->before;
    list->len--;
}

/* --------------------------------------------------------- what was read -- */

static void
keep(struct stream *s, const char *data, size_t len)
{
    if (!store_add(&s->store, data, len))
        outbox_lost(s->capture->output->box);
}

/* Keeps it with the tag before each line. */
static void
keep_tagged(struct stream *s, const char *data, size_t len)
{
    const struct text *tag = &s->capture->tag;

    if (tag->len == 0) {
        keep(s, data, len);
        s->within_line = data[len - 1] != '\n';
        return;
    }
    while (len > 0) {
        const char  *newline = memchr(data, '\n', len);
        const size_t n = newline ? (size_t)(newline - data) + 1 : len;
        if (!s->within_line)
            keep(s, tag->data, tag->len);
        keep(s, data, n);
        s->within_line = !newline;
        data += n;
        len -= n;
    }
}

static void
let_out(struct stream *s)
{
    outbox_add_store(s->capture->output->box, s->door, &s->store);
}

/* Lets out all lines that are complete. */
static void
take_lines(struct stream *s, const char *data, size_t len)
{
    const char  *newline = memrchr(data, '\n', len);
    const size_t n = newline ? (size_t)(newline - data) + 1 : 0;

    if (n > 0) {
        keep_tagged(s, data, n);
        let_out(s);
    }
    if (len > n)
        keep_tagged(s, data + n, len - n);
}

/* Where output is mixed by lines, or each has a tag, the last one must end, or
 * the next would be a part of it; and so it must where the rest of it, by
 * somebody who outlives the run, can only come later. */
static void
end_line(struct stream *s)
{
    const struct capture *c = s->capture;
    const bool            lines = c->output->options->grouping == GROUP_LINE;

    if (s->within_line && (lines || c->tag.len > 0 || !c->run || s->fd >= 0))
        keep(s, "\n", 1);
    s->within_line = false;
}

/* A copy that cannot be written is told once; the run goes on. */
static void
copy(struct stream *s, const char *data, size_t len)
{
    struct output *output = s->capture->output;

    while (len > 0 && s->copy >= 0) {
        const ssize_t n = write(s->copy, data, len);
        if (n > 0) {
            data += n;
            len -= (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            if (!output->copy_failed)
                tell_errno("--results: cannot write output below '%s'",
                           output->options->results);
            output->copy_failed = true;
            (void)close(s->copy);
            s->copy = -1;
        }
    }
}

static void
take(struct stream *s, const char *data, size_t len)
{
    const struct capture *c = s->capture;

    s->bytes += len;
    copy(s, data, len);
    if (c->output->options->grouping == GROUP_LINE || !c->run)
        take_lines(s, data, len);
    else
        keep_tagged(s, data, len);
}

/* ----------------------------------------------------------------- pipes -- */

static void
close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static void
close_stream(struct stream *s)
{
    /* close() would not do: a child that was started just now has our
     * descriptors until its exec has closed them, although we run again by
     * then, and epoll does not forget what somebody has open. */
    loop_unwatch(s->capture->output->loop, &s->watch);
    close_fd(&s->fd);
    close_fd(&s->copy);
}

/* Reads a piece of a pipe that has something, or has no writer any more. False:
 * it has ended. */
static bool
read_piece(struct stream *s)
{
    char         *piece = s->capture->output->piece;
    const ssize_t n = read(s->fd, piece, PIECE);

    if (n > 0)
        take(s, piece, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        close_stream(s);
    return s->fd >= 0;
}

static bool
is_over(const struct capture *c)
{
    return c->streams[0].fd < 0 && c->streams[1].fd < 0;
}

static void
release(struct capture *c)
{
    append(&c->output->free, c);
}

/* What is left of a pipe that was closed. */
static void
flush(struct stream *s)
{
    end_line(s);
    let_out(s);
}

/* Nobody has the pipes of a run any more that was over before. */
static void
retire(struct capture *c)
{
    if (!is_over(c))
        return;
    take_out(&c->output->late, c);
    release(c);
}

/* Those who have them still must do without. */
static void
end_late(struct capture *c)
{
    for (int i = 0; i < 2; i++) {
        close_stream(&c->streams[i]);
        flush(&c->streams[i]);
    }
    retire(c);
}

/* While too much waits to go out, line by line is not read on: then the child
 * waits, too. A run that is grouped has its store. */
static bool
must_pause(const struct stream *s)
{
    const struct capture *c = s->capture;

    return (c->output->options->grouping == GROUP_LINE || !c->run) &&
           outbox_congested(c->output->box);
}

static void
on_ready(void *ctx, uint32_t events)
{
    struct stream *s = ctx;

    (void)events;
    if (must_pause(s)) {
        s->capture->output->paused = true;
        loop_unwatch(s->capture->output->loop, &s->watch);
    } else if (!read_piece(s) && !s->capture->run) {
        flush(s);
        retire(s->capture);
    }
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
        /* What epoll has seen may have been taken by drain() meanwhile. */
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
        sweep_soon(output); /* the kernel had no memory: try again */
}

static void
sweep_soon(struct output *output)
{
    if (!output->sweep.set)
        loop_timer_set(output->loop, &output->sweep,
                       loop_now(output->loop) + UNWATCHED_NS, on_sweep, output);
}

/* The outbox has made progress. */
static void
on_box_progress(void *ctx)
{
    struct output *output = ctx;

    if (output->paused && !outbox_congested(output->box)) {
        output->paused = false;
        on_sweep(output);
    }
    output->on_progress(output->ctx);
}

/* Takes what is in the pipes now, without waiting. A writer that never stops is
 * left alone after some pieces; it is none of the run's. */
static void
drain(struct capture *c)
{
    bool more = true;

    for (int pieces = 0; more && pieces < 32; pieces++) {
        struct pollfd fds[2];
        for (int i = 0; i < 2; i++) /* poll() leaves out those below 0 */
            fds[i] = (struct pollfd){c->streams[i].fd, POLLIN, 0};
        more = false;
        if (is_over(c) || poll(fds, 2, 0) <= 0)
            return;
        for (int i = 0; i < 2; i++) {
            if (fds[i].revents & POLLIN)
                more |= read_piece(&c->streams[i]);
            else if (fds[i].revents)
                close_stream(&c->streams[i]); /* nobody has the other end */
        }
    }
}

/* ------------------------------------------------------------- a capture -- */

static bool
open_pipe(struct stream *s)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    s->fd = ends[0]; /* blocks until it is watched; poll() is asked before */
    s->child_fd = ends[1];
    return true;
}

static void
close_pipes(struct capture *c)
{
    for (int i = 0; i < 2; i++) {
        close_stream(&c->streams[i]);
        close_fd(&c->streams[i].child_fd);
    }
}

static void
reset(struct stream *s, struct capture *c, enum door door)
{
    struct store store = s->store;

    store_clear(&store);
    *s = (struct stream){.capture = c,
                         .door = door,
                         .fd = -1,
                         .child_fd = -1,
                         .copy = -1,
                         .store = store};
}

/* One that is free, or a new one; NULL: no memory. */
static struct capture *
get_capture(struct output *output)
{
    struct capture *c = output->free.last;

    if (c) {
        take_out(&output->free, c);
    } else if ((c = calloc(1, sizeof *c))) {
        c->streams[0].store.fd = c->streams[1].store.fd = -1;
    } else {
        return NULL;
    }
    c->output = output;
    reset(&c->streams[DOOR_OUT], c, DOOR_OUT);
    reset(&c->streams[DOOR_ERR], c, DOOR_ERR);
    return c;
}

/* A key in a tag must not end the line, or move the cursor. */
static void
add_key(struct text *tag, wq_key key)
{
    const unsigned char *s = key.data;

    for (size_t i = 0; i < key.len; i++) {
        if (s[i] == '\n')
            text_add(tag, "\\n", 2);
        else if (s[i] == '\t')
            text_add(tag, "\\t", 2);
        else if (s[i] < 0x20 || s[i] == 0x7f)
            text_print(tag, "\\x%02x", s[i]);
        else
            text_add(tag, s + i, 1);
    }
}

/* `replace` is the key, {#} the number of the run, {%} its slot. */
static void
make_tag(struct text *tag, const struct options *options, const struct run *run)
{
    const size_t len = strlen(options->replace);

    text_clear(tag);
    for (const char *at = options->tag ? options->tag : ""; *at;) {
        if (strncmp(at, options->replace, len) == 0) {
            add_key(tag, run->key);
            at += len;
        } else if (strncmp(at, "{#}", 3) == 0) {
            text_print(tag, "%llu", (unsigned long long)run->number);
            at += 3;
        } else if (strncmp(at, "{%}", 3) == 0) {
            text_print(tag, "%u", run->slot);
            at += 3;
        } else {
            text_add(tag, at++, 1);
        }
    }
}

static bool
open_files(struct output *output, struct capture *c, const struct run *run)
{
    int fds[2];

    if (!output->results)
        return true;
    if (!results_open(output->results, run, fds))
        return false;
    c->streams[DOOR_OUT].copy = fds[0];
    c->streams[DOOR_ERR].copy = fds[1];
    return true;
}

static bool
open_pipes(struct capture *c)
{
    if (open_pipe(&c->streams[DOOR_OUT]) && open_pipe(&c->streams[DOOR_ERR]))
        return true;
    tell_errno("cannot make a pipe for the output of a command");
    return false;
}

/* --------------------------------------------------------------- offered -- */

bool
output_begin(struct output *output, struct run *run, int fds[2])
{
    run->capture = NULL;
    fds[0] = fds[1] = -1;
    if (output->options->grouping == GROUP_NONE)
        return true;
    struct capture *c = get_capture(output);
    if (!c) {
        tell("out of memory");
        return false;
    }
    make_tag(&c->tag, output->options, run);
    if (!open_pipes(c) || !open_files(output, c, run)) {
        close_pipes(c);
        release(c);
        return false;
    }
    c->run = run;
    run->capture = c;
    append(&output->running, c);
    fds[0] = c->streams[DOOR_OUT].child_fd;
    fds[1] = c->streams[DOOR_ERR].child_fd;
    return true;
}

void
output_started(struct output *output, struct run *run)
{
    struct capture *c = run->capture;

    if (!c)
        return;
    for (int i = 0; i < 2; i++)
        close_fd(&c->streams[i].child_fd);
    const bool eager = output->eager > 0;
    output->eager -= eager;
    if ((!eager && output->options->grouping != GROUP_LINE) || !watch(c))
        sweep_soon(output);
}

/* Reads on, line by line. */
static void
become_late(struct output *output, struct capture *c)
{
    append(&output->late, c);
    if (!watch(c))
        sweep_soon(output);
    if (output->late.len > MOST_LATE)
        end_late(output->late.first);
}

void
output_finish(struct output *output, struct run *run)
{
    struct capture *c = run->capture;

    if (!c)
        return;
    drain(c);
    run->out_bytes = c->streams[DOOR_OUT].bytes;
    if (c->streams[DOOR_OUT].bytes + c->streams[DOOR_ERR].bytes > MUCH)
        output->eager = EAGER_RUNS;
    flush(&c->streams[DOOR_OUT]);
    flush(&c->streams[DOOR_ERR]);
    take_out(&output->running, c);
    c->run = NULL;
    run->capture = NULL;
    if (is_over(c))
        release(c);
    else
        become_late(output, c);
}

void
output_line(struct output *output, const char *text, size_t len)
{
    struct text *line = &output->line;

    text_clear(line);
    if (outbox_within_line(output->box, DOOR_OUT))
        text_add(line, "\n", 1);
    text_add(line, text, len);
    text_add(line, "\n", 1);
    if (line->failed)
        outbox_lost(output->box);
    else
        outbox_add(output->box, DOOR_OUT, line->data, line->len);
}

bool
output_congested(const struct output *output)
{
    return outbox_congested(output->box);
}

bool
output_idle(const struct output *output)
{
    return outbox_idle(output->box);
}

bool
output_broken(const struct output *output)
{
    return outbox_broken(output->box);
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
        output->loop = loop;
        output->on_progress = on_progress;
        output->ctx = ctx;
        output->box = outbox_create(loop, on_box_progress, output);
    }
    if (!output || !output->box) {
        tell("out of memory");
        free(output);
        return false;
    }
    if (options->results && !options->dry_run &&
        !results_create(options->results, &output->results)) {
        output_destroy(output);
        return false;
    }
    *out = output;
    return true;
}

static void
free_all(struct list *list)
{
    for (struct capture *c = list->first, *next; c; c = next) {
        next = c->after;
        close_pipes(c);
        for (int i = 0; i < 2; i++)
            store_fini(&c->streams[i].store);
        text_fini(&c->tag);
        free(c);
    }
    *list = (struct list){0};
}

/* What is there of processes that outlived their runs is let out. */
static void
end_all_late(struct output *output)
{
    for (struct capture *c; (c = output->late.first);) {
        drain(c);
        end_late(c);
    }
}

void
output_destroy(struct output *output)
{
    if (!output)
        return;
    end_all_late(output);
    loop_timer_clear(output->loop, &output->sweep);
    free_all(&output->running);
    free_all(&output->free);
    outbox_destroy(output->box);
    results_destroy(output->results);
    text_fini(&output->line);
    free(output);
}
