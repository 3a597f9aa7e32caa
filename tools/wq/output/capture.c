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
#include "process/words.h"

/* Output that comes after the run is printed with it up to this size. A process
 * that writes for ever must not fill a file. */
#define LATE_GROUP (1024 * (uint64_t)1024)

uint64_t
capture_bytes(const struct capture *c)
{
    return c->streams[TARGET_OUT].bytes + c->streams[TARGET_ERR].bytes;
}

bool
capture_is_by_line(const struct capture *c)
{
    const bool awaited =
        c->await_until_ns && capture_bytes(c) - c->over_at <= LATE_GROUP;

    return c->output->options->grouping == GROUP_LINE || (!c->run && !awaited);
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

/* Output that comes when it is not awaited any longer cannot keep the order. */
static void
print(struct stream *s)
{
    const struct capture *c = s->capture;

    if (c->ticket)
        order_add(c->output->order, c->ticket, s->target, &s->store);
    else
        outbox_add_store(c->output->box, s->target, &s->store);
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

/* Ends the last line, which the run did not end, if another line must not follow
 * it: with --tag, or if a process that outlives the run may write the rest
 * later. */
static void
end_line(struct stream *s)
{
    const struct capture *c = s->capture;
    const bool            late = !c->run && !c->await_until_ns;

    if (s->within_line && (late || c->tag.len > 0 || s->fd >= 0))
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

/* Output of this size is large. */
#define LARGE (STORE_MAX / 2)

/* May its output be printed before the end of the run? Nothing else may be
 * printed meanwhile, and a slow reader must not cause a timeout. */
static bool
may_be_direct(const struct stream *s)
{
    const struct capture *c = s->capture;
    const struct options *options = c->output->options;

    return s->store.memory.len >= LARGE && !s->store.in_file && c->run &&
           !c->impatient && options->slots == 1 && !c->ticket &&
           c->output->running.len == 1 && c->output->late.len == 0 &&
           !options->timeout_ns && (!options->json || options->json_file);
}

/* A large pipe makes fewer wake-ups; it is a matter of speed only. */
static void
enlarge_pipe(const struct stream *s)
{
    (void)fcntl(s->fd, F_SETPIPE_SZ, 1 << 20);
}

static void
keep_group(struct stream *s, const char *data, size_t len)
{
    const uint64_t in_file = s->store.in_file;

    keep_tagged(s, data, len);
    if (!s->direct && may_be_direct(s)) {
        s->direct = true;
        s->capture->output->owner = s->capture;
        enlarge_pipe(s);
    }
    if (!in_file && s->store.in_file)
        enlarge_pipe(s);
    if (s->direct)
        print(s);
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
        keep_group(s, data, len);
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

/* Moves bytes on without a copy in our memory. True: done, or it cannot go on. */
static bool
move(struct stream *s)
{
    const struct capture *c = s->capture;
    enum moved            moved = MOVED_REFUSED;
    size_t                n = 0;

    if (c->tag.len > 0 || s->copy >= 0 || capture_is_by_line(c) ||
        s->target == TARGET_ERR) /* its last line is kept */
        return false;
    if (s->direct)
        moved = outbox_move(c->output->box, s->target, s->fd, &n);
    else if ((n = store_move(&s->store, s->fd)) > 0)
        moved = MOVED;
    s->bytes += n;
    s->full = moved == MOVED_FULL;
    if (moved == MOVED_ALL)
        stream_close(s);
    if (moved == MOVED)
        s->within_line = false; /* not known */
    return moved != MOVED_REFUSED;
}

bool
stream_read(struct stream *s)
{
    if (move(s))
        return s->fd >= 0;
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

    c->streams[0].direct = c->streams[1].direct = false;
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

/* Words have the same values as in COMMAND. */
static void
make_tag(struct wq__text *tag, const struct options *options,
         const struct run *run)
{
    const char *from = options->tag ? options->tag : "";
    const char *at;
    struct word word;
    char        buffer[WORD_MAX];

    text_clear(tag);
    for (; (at = word_find(options, from, &word)); from = at + word.len) {
        wq__text_add(tag, from, (size_t)(at - from));
        add_key(tag, word_value(options, &word, run, buffer));
        if (word.kind == WORD_KEY && run->rest)
            text_print(tag, "+%zu", run_rest(run));
    }
    wq__text_str(tag, from);
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
    c->await_until_ns = 0;
    c->impatient = false;
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
    wq__text_fini(&c->key);
    free(c);
}
