/* SPDX-License-Identifier: MIT */
/* capture.c: how is the output of one run read? See capture.h. */
#include "output/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/report.h"
#include "base/write.h"

bool
capture_is_by_line(const struct capture *c)
{
    return c->output->options->grouping == GROUP_LINE || !c->run;
}

/* --------------------------------------------------------- what was read -- */

static void
keep(struct stream *s, const char *data, size_t len)
{
    if (!store_add(&s->store, data, len))
        outbox_lost(s->capture->output->box);
}

/* Stores it with the tag before each line. */
static void
keep_tagged(struct stream *s, const char *data, size_t len)
{
    const struct wq__text *tag = &s->capture->tag;

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
print(struct stream *s)
{
    outbox_add_store(s->capture->output->box, s->target, &s->store);
}

/* Prints all complete lines. */
static void
take_lines(struct stream *s, const char *data, size_t len)
{
    const char  *newline = memrchr(data, '\n', len);
    const size_t n = newline ? (size_t)(newline - data) + 1 : 0;

    if (n > 0) {
        keep_tagged(s, data, n);
        print(s);
    }
    if (len > n)
        keep_tagged(s, data + n, len - n);
}

/* Ends the last line if another line may follow it: with --line-buffer or
 * --tag, or if a process that outlives the run may write the rest later. */
static void
end_line(struct stream *s)
{
    const struct capture *c = s->capture;

    if (s->within_line &&
        (capture_is_by_line(c) || c->tag.len > 0 || s->fd >= 0))
        keep(s, "\n", 1);
    s->within_line = false;
}

/* A copy that cannot be written is reported once; the run goes on. */
static void
copy(struct stream *s, const char *data, size_t len)
{
    struct output *output = s->capture->output;

    if (s->copy < 0 || write_all(s->copy, data, len, NULL))
        return;
    if (!output->copy_failed)
        report_errno("--results: cannot write output below '%s'",
                     output->options->results);
    output->copy_failed = true;
    (void)close(s->copy);
    s->copy = -1;
}

static void
take(struct stream *s, const char *data, size_t len)
{
    struct capture *c = s->capture;

    s->bytes += len;
    copy(s, data, len);
    if (s->target == TARGET_ERR)
        tail_add(&c->tail, data, len);
    if (capture_is_by_line(c))
        take_lines(s, data, len);
    else
        keep_tagged(s, data, len);
}

void
stream_flush(struct stream *s)
{
    end_line(s);
    print(s);
}

/* ----------------------------------------------------------------- pipes -- */

static void
close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

void
stream_close(struct stream *s)
{
    /* close() alone is not enough: until its exec, a child has copies of our
     * descriptors, and epoll forgets a file when its last copy is closed. */
    loop_unwatch(s->capture->output->loop, &s->watch);
    close_fd(&s->fd);
    close_fd(&s->copy);
}

bool
stream_read(struct stream *s)
{
    char         *piece = s->capture->output->piece;
    const ssize_t n = read(s->fd, piece, CAPTURE_PIECE);

    if (n > 0)
        take(s, piece, (size_t)n);
    else if (n == 0 || (errno != EINTR && errno != EAGAIN))
        stream_close(s);
    return s->fd >= 0;
}

bool
capture_is_closed(const struct capture *c)
{
    return c->streams[0].fd < 0 && c->streams[1].fd < 0;
}

/* At most 32 pieces: a writer that never stops is not part of the run. */
void
capture_drain(struct capture *c)
{
    bool more = true;

    for (int pieces = 0; more && pieces < 32; pieces++) {
        struct pollfd fds[2];
        for (int i = 0; i < 2; i++) /* poll() ignores those below 0 */
            fds[i] = (struct pollfd){c->streams[i].fd, POLLIN, 0};
        more = false;
        if (capture_is_closed(c) || poll(fds, 2, 0) <= 0)
            return;
        for (int i = 0; i < 2; i++) {
            if (fds[i].revents & POLLIN)
                more |= stream_read(&c->streams[i]);
            else if (fds[i].revents)
                stream_close(&c->streams[i]); /* all writers have closed it */
        }
    }
}

/* ------------------------------------------------------- open and close -- */

static bool
open_pipe(struct stream *s)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    s->fd = ends[0]; /* blocking until it is watched; see poll() */
    s->child_fd = ends[1];
    return true;
}

void
capture_close(struct capture *c)
{
    for (int i = 0; i < 2; i++) {
        stream_close(&c->streams[i]);
        close_fd(&c->streams[i].child_fd);
    }
}

static void
reset(struct stream *s, struct capture *c, enum target target)
{
    struct store store = s->store;

    store_clear(&store);
    *s = (struct stream){.capture = c,
                         .target = target,
                         .fd = -1,
                         .child_fd = -1,
                         .copy = -1,
                         .store = store};
}

/* A key in a tag must neither end the line nor move the cursor. */
static void
add_key(struct wq__text *tag, wq_key key)
{
    const unsigned char *s = key.data;

    for (size_t i = 0; i < key.len; i++) {
        if (s[i] == '\n')
            wq__text_str(tag, "\\n");
        else if (s[i] == '\t')
            wq__text_str(tag, "\\t");
        else if (s[i] < 0x20 || s[i] == 0x7f)
            text_print(tag, "\\x%02x", s[i]);
        else
            wq__text_add(tag, s + i, 1);
    }
}

/* `replace` stands for the key, {#} for the number of the run, {%} for its slot. */
static void
make_tag(struct wq__text *tag, const struct options *options,
         const struct run *run)
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
            wq__text_add(tag, at++, 1);
        }
    }
}

static bool
open_files(struct capture *c, const struct run *run)
{
    int fds[2];

    if (c->output->results.fd < 0)
        return true;
    if (!results_dir_open(&c->output->results, run, fds))
        return false;
    c->streams[TARGET_OUT].copy = fds[0];
    c->streams[TARGET_ERR].copy = fds[1];
    return true;
}

static bool
open_pipes(struct capture *c)
{
    if (open_pipe(&c->streams[TARGET_OUT]) &&
        open_pipe(&c->streams[TARGET_ERR]))
        return true;
    report_errno("cannot create a pipe for the output of a run");
    return false;
}

bool
capture_open(struct capture *c, struct output *output, const struct run *run)
{
    c->output = output;
    c->tail = (struct tail){0};
    reset(&c->streams[TARGET_OUT], c, TARGET_OUT);
    reset(&c->streams[TARGET_ERR], c, TARGET_ERR);
    make_tag(&c->tag, output->options, run);
    if (open_pipes(c) && open_files(c, run))
        return true;
    capture_close(c);
    return false;
}

void
capture_close_child(struct capture *c)
{
    for (int i = 0; i < 2; i++)
        close_fd(&c->streams[i].child_fd);
}

void
capture_free(struct capture *c)
{
    capture_close(c);
    for (int i = 0; i < 2; i++)
        store_fini(&c->streams[i].store);
    wq__text_fini(&c->tag);
    free(c);
}
