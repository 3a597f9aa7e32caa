/* SPDX-License-Identifier: MIT */
/* input.c: where do keys come from, and where does one end?
 *
 * Pipes, sockets and terminals are read when epoll says so. A regular file is
 * always ready and epoll does not take it: it is read piece by piece, whenever
 * the loop has nothing else to do (a timer that is due at once); under --follow
 * inotify tells when it has grown.
 */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <wq/wq.h>

#include "json.h"
#include "tell.h"

/* Read at one go. Not more: starting a child must not wait for long. */
#define PIECE 65536
/* Longest record: a key of which every byte is written as \u00XX, and the
 * other members. A plain key is held against WQ_KEY_MAX by itself. */
#define LONGEST_JSON (6 * WQ_KEY_MAX + 4096)

/* -------------------------------------------------------------- records -- */

void
records_init(struct records *records, const struct options *options,
             const struct input_sink *sink, const char *name)
{
    *records = (struct records){
        .options = options, .sink = sink, .name = name, .line = 1};
}

void
records_fini(struct records *records)
{
    free(records->part);
    records->part = NULL;
    records->len = records->room = 0;
}

static void
bad(struct records *records, const char *what)
{
    tell("%s:%llu: %s", records->name, (unsigned long long)records->line, what);
    records->sink->bad(records->sink->ctx);
}

static void
give(struct records *records, const char *data, size_t len, int64_t after_ns,
     bool prioritized, int priority)
{
    if (len > WQ_KEY_MAX)
        bad(records, "a key longer than 65536 bytes");
    else if (memchr(data, 0, len))
        bad(records, "a key with a NUL in it (are these NUL-separated? -0)");
    else if (len > 0)
        records->sink->key(records->sink->ctx, data, len, after_ns, prioritized,
                           priority);
}

/* Only JSON is written to while it is read. */
static void
give_json(struct records *records, char *data, size_t len)
{
    struct json_line line = {.after_ns = -1};

    if (strspn(data, " \t\r") >= len)
        return;
    const char *wrong = json_read_line(data, len, &line);
    if (wrong)
        bad(records, wrong);
    else if (line.key_len == 0)
        bad(records, "an empty key");
    else
        give(records, line.key, line.key_len, line.after_ns, line.prioritized,
             line.priority);
}

/* True: the bytes are kept behind the others, and a NUL behind them. */
static bool
keep(struct records *records, const char *data, size_t len)
{
    const size_t longest = records->options->jsonl ? LONGEST_JSON : WQ_KEY_MAX;

    if (records->overlong || records->len + len > longest) {
        records->overlong = true;
        return false;
    }
    if (records->len + len + 1 > records->room) {
        const size_t room = records->len + len + 1 + records->room;
        char        *part = realloc(records->part, room);
        if (!part) {
            records->overlong = true;
            return false;
        }
        records->part = part;
        records->room = room;
    }
    if (len > 0)
        (void)memcpy(records->part + records->len, data, len);
    records->len += len;
    records->part[records->len] = '\0';
    return true;
}

/* A record ends with these bytes. */
static void
end_record(struct records *records, const char *data, size_t len)
{
    if (records->len == 0 && !records->overlong && !records->options->jsonl)
        give(records, data, len, -1, false, 0); /* no copy needed */
    else if (!keep(records, data, len))
        bad(records, "a key longer than 65536 bytes");
    else if (records->options->jsonl)
        give_json(records, records->part, records->len);
    else
        give(records, records->part, records->len, -1, false, 0);
    records->len = 0;
    records->overlong = false;
    records->line++;
}

void
records_feed(struct records *records, const char *data, size_t len)
{
    const char *end;

    while ((end = memchr(data, records->options->delimiter, len))) {
        const size_t n = (size_t)(end - data);
        end_record(records, data, n);
        data += n + 1;
        len -= n + 1;
    }
    if (len > 0)
        (void)keep(records, data, len);
}

void
records_end(struct records *records)
{
    if (records->len > 0 || records->overlong)
        end_record(records, "", 0);
}

/* --------------------------------------------------------------- a file -- */

struct input {
    const struct options    *options;
    struct loop             *loop;
    const struct input_sink *sink;
    struct records           records;
    int                      fd;
    bool                     own;     /* close it; stdin is left alone */
    bool                     always;  /* ready: a regular file */
    struct watch             watch;   /* of fd, unless `always` */
    struct timer             next;    /* piece of a file */
    int                      inotify; /* -1: none */
    struct watch             grown;   /* of it */
};

static void
stop(struct input *input)
{
    loop_unwatch(input->loop, &input->watch);
    loop_unwatch(input->loop, &input->grown);
    loop_timer_clear(input->loop, &input->next);
}

static void
end(struct input *input, bool failed)
{
    stop(input);
    records_end(&input->records);
    input->sink->ended(input->sink->ctx, failed);
}

/* At its end: a file that is followed may grow, and its last record with it;
 * a pipe that is followed has ended, but we have not. */
static void
at_end(struct input *input)
{
    if (!input->options->follow) {
        end(input, false);
    } else if (!input->always) {
        stop(input);
        records_end(&input->records);
    }
}

static void read_file(void *ctx);

static void
read_piece(struct input *input)
{
    static char   piece[PIECE];
    const ssize_t n = read(input->fd, piece, sizeof piece);

    if (n > 0) {
        records_feed(&input->records, piece, (size_t)n);
        if (input->always)
            loop_timer_set(input->loop, &input->next, 0, read_file, input);
    } else if (n == 0) {
        at_end(input);
    } else if (errno != EINTR && errno != EAGAIN) {
        tell_errno("%s", input->records.name);
        end(input, true);
    }
}

static void
read_file(void *ctx)
{
    read_piece(ctx);
}

static void
on_ready(void *ctx, uint32_t events)
{
    (void)events;
    read_piece(ctx);
}

static void
on_grown(void *ctx, uint32_t events)
{
    struct input *input = ctx;
    char          notes[4096]; /* what they say is known: it has grown */

    (void)events;
    while (read(input->inotify, notes, sizeof notes) > 0)
        ;
    read_piece(input);
}

static bool
follow(struct input *input, const char *file)
{
    if (strcmp(file, "-") == 0)
        file = "/proc/self/fd/0";
    input->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    return input->inotify >= 0 &&
           inotify_add_watch(input->inotify, file, IN_MODIFY) >= 0 &&
           loop_watch(input->loop, &input->grown, input->inotify, EPOLLIN,
                      on_grown, input);
}

/* A FIFO is opened for writing as well where it is followed: else it would end
 * with its first writer. */
static int
open_file(const char *file, bool following)
{
    struct stat about;

    if (strcmp(file, "-") == 0)
        return STDIN_FILENO;
    const bool fifo = stat(file, &about) == 0 && S_ISFIFO(about.st_mode);
    const int  how = fifo && following ? O_RDWR : O_RDONLY;
    return open(file, how | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

static bool
begin(struct input *input, const char *file)
{
    struct stat about;

    input->fd = open_file(file, input->options->follow);
    input->own = input->fd > STDIN_FILENO;
    if (input->fd < 0 || fstat(input->fd, &about) != 0)
        return false;
    if (S_ISDIR(about.st_mode)) {
        errno = EISDIR;
        return false;
    }
    if (loop_watch(input->loop, &input->watch, input->fd, EPOLLIN, on_ready,
                   input))
        return true;
    if (errno != EPERM)
        return false;
    input->always = true;
    loop_timer_set(input->loop, &input->next, 0, read_file, input);
    return !input->options->follow || follow(input, file);
}

bool
input_open(const struct options *options, struct loop *loop, const char *file,
           const struct input_sink *sink, struct input **out)
{
    struct input *input = calloc(1, sizeof *input);
    const char   *name = strcmp(file, "-") == 0 ? "stdin" : file;

    if (!input) {
        tell_errno("%s", name);
        return false;
    }
    input->options = options;
    input->loop = loop;
    input->sink = sink;
    input->inotify = -1;
    records_init(&input->records, options, sink, name);
    if (!begin(input, file)) {
        tell_errno("cannot read %s", name);
        input_close(input);
        return false;
    }
    *out = input;
    return true;
}

void
input_close(struct input *input)
{
    if (!input)
        return;
    stop(input);
    records_fini(&input->records);
    if (input->inotify >= 0)
        (void)close(input->inotify);
    if (input->own)
        (void)close(input->fd);
    free(input);
}
