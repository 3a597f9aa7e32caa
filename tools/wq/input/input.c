/* SPDX-License-Identifier: MIT */
/* input.c: how are keys read from a file, a pipe or stdin?
 *
 * Pipes, sockets and terminals are read when epoll reports them ready. epoll
 * refuses regular files, which are always ready: these are read piece by piece
 * by a timer that is due at once.
 *
 * With --follow, inotify reports that a file has grown. As `tail -F` does, we
 * also look once a second whether it was truncated, or another file has its
 * name (a log that was rotated): that is read then, from its start.
 */
#include "input/input.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/report.h"

/* Bytes read at a time. Small enough not to delay the start of a child. */
#define PIECE 65536
/* How often a file that is followed is looked at: as tail does. */
#define LOOK_NS 1000000000

struct input {
    const struct options    *options;
    struct loop             *loop;
    const struct input_sink *sink;
    struct records           records;
    int                      fd;
    bool                     owned;   /* close it; stdin stays open */
    bool                     regular; /* a regular file: always ready */
    bool                     at_end;  /* nothing was left at the last read */
    struct watch             watch;   /* of fd, unless `regular` */
    struct timer             next;    /* next piece of a regular file */

    /* A regular file that is followed. */
    const char  *file;     /* its path; NULL: stdin */
    int          inotify;  /* -1: none */
    int          notes_of; /* the watch of inotify; -1: none */
    struct watch changed;  /* of inotify */
    struct timer look;     /* the next look */
    bool         replaced; /* `file` is another file now */
    bool         missing;  /* reported that there is none, or no regular one */
};

static void
stop(struct input *input)
{
    loop_unwatch(input->loop, &input->watch);
    loop_unwatch(input->loop, &input->changed);
    loop_timer_clear(input->loop, &input->next);
    loop_timer_clear(input->loop, &input->look);
}

static void
end(struct input *input, bool failed)
{
    stop(input);
    records_end(&input->records);
    input->sink->ended(input->sink->ctx, failed);
}

/* ---- a file that is followed ---------------------------------------------- */

static void read_piece(void *ctx);

static void
read_soon(struct input *input)
{
    loop_timer_set(input->loop, &input->next, 0, read_piece, input);
}

/* The end of the record that was read last is gone with the file's content. */
static bool
begin_anew_if_truncated(struct input *input)
{
    struct stat about;

    if (fstat(input->fd, &about) != 0 ||
        about.st_size >= lseek(input->fd, 0, SEEK_CUR) ||
        lseek(input->fd, 0, SEEK_SET) != 0)
        return false;
    report("%s was truncated; reading it from its start", input->records.name);
    records_begin_anew(&input->records);
    return true;
}

/* Watches the file that is open, whatever its name is now. */
static bool
watch_file(struct input *input)
{
    char path[32];

    if (input->notes_of >= 0)
        (void)inotify_rm_watch(input->inotify, input->notes_of);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", input->fd);
    input->notes_of = inotify_add_watch(input->inotify, path,
                                        IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF);
    return input->notes_of >= 0;
}

/* The file has been read to its end, and another one has its name: that has
 * ended, and its last record needs no delimiter. */
static void
open_replacement(struct input *input)
{
    const int fd =
        open(input->file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    input->replaced = false;
    if (fd < 0)
        return; /* on_look() tries again */
    report("%s was replaced; reading the new file", input->records.name);
    records_end(&input->records);
    records_begin_anew(&input->records);
    (void)close(input->fd);
    input->fd = fd;
    (void)watch_file(input); /* if it fails, on_look() reads what is new */
    read_soon(input);
}

/* Is another file found under the name? */
static bool
is_replaced(struct input *input)
{
    struct stat now, then;

    if (!input->file || fstat(input->fd, &then) != 0)
        return false;
    const bool found = stat(input->file, &now) == 0 && S_ISREG(now.st_mode) &&
                       access(input->file, R_OK) == 0;
    if (!found && !input->missing)
        report("%s cannot be read any more; waiting for a new file",
               input->records.name);
    input->missing = !found;
    return found && (now.st_dev != then.st_dev || now.st_ino != then.st_ino);
}

/* What was written to the old file before this moment is read first. */
static void
look(struct input *input)
{
    if (!input->at_end)
        return; /* it is being read: the next look is soon enough */
    input->replaced = is_replaced(input);
    read_piece(input);
}

static void
on_look(void *ctx)
{
    struct input *input = ctx;

    loop_timer_set(input->loop, &input->look, loop_now(input->loop) + LOOK_NS,
                   on_look, input);
    look(input);
}

static void
on_changed(void *ctx)
{
    struct input *input = ctx;
    char          notes[4096]; /* read and ignored: they only wake us up */

    while (read(input->inotify, notes, sizeof notes) > 0)
        ;
    look(input);
}

static bool
follow(struct input *input, const char *file)
{
    input->file = strcmp(file, "-") == 0 ? NULL : file;
    loop_timer_set(input->loop, &input->look, loop_now(input->loop) + LOOK_NS,
                   on_look, input);
    input->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    return input->inotify >= 0 && watch_file(input) &&
           loop_watch(input->loop, &input->changed, input->inotify, EPOLLIN,
                      on_changed, input);
}

/* ---- reading --------------------------------------------------------------- */

/* A file that is followed may grow, and its last record with it. A pipe that is
 * followed has ended, but the program goes on. */
static void
reach_end(struct input *input)
{
    input->at_end = true;
    if (!input->options->follow) {
        end(input, false);
    } else if (!input->regular) {
        stop(input);
        records_end(&input->records);
    } else if (begin_anew_if_truncated(input)) {
        read_soon(input);
    } else if (input->replaced) {
        open_replacement(input);
    }
}

/* The callback of `watch` and `next`. */
static void
read_piece(void *ctx)
{
    static char   piece[PIECE];
    struct input *input = ctx;
    const ssize_t n = read(input->fd, piece, sizeof piece);

    if (n > 0) {
        input->at_end = false;
        records_feed(&input->records, piece, (size_t)n);
        if (input->regular)
            read_soon(input);
    } else if (n == 0) {
        reach_end(input);
    } else if (errno != EINTR && errno != EAGAIN) {
        report_errno("cannot read %s", input->records.name);
        input->at_end = true;
        end(input, true);
    }
}

/* ---- open and close -------------------------------------------------------- */

/* A FIFO that is followed is opened for writing as well: otherwise it would end
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

/* False: errno says why. */
static bool
begin(struct input *input, const char *file)
{
    struct stat about;

    input->fd = open_file(file, input->options->follow);
    input->owned = input->fd > STDIN_FILENO;
    if (input->fd < 0 || fstat(input->fd, &about) != 0)
        return false;
    if (S_ISDIR(about.st_mode)) {
        errno = EISDIR;
        return false;
    }
    if (loop_watch(input->loop, &input->watch, input->fd, EPOLLIN, read_piece,
                   input))
        return true;
    if (errno != EPERM)
        return false;
    input->regular = true;
    read_soon(input);
    return !input->options->follow || follow(input, file);
}

bool
input_open(const struct options *options, struct loop *loop, const char *file,
           const struct input_sink *sink, struct input **out)
{
    const char   *name = strcmp(file, "-") == 0 ? "stdin" : file;
    struct input *input = calloc(1, sizeof *input);

    if (input) {
        *input = (struct input){.options = options,
                                .loop = loop,
                                .sink = sink,
                                .inotify = -1,
                                .notes_of = -1};
        records_init(&input->records, options, sink, name);
    }
    if (!input || !begin(input, file)) {
        report_errno("cannot read %s", name);
        input_close(input);
        return false;
    }
    *out = input;
    return true;
}

/* Have all writers of the pipe closed it, and is it empty? */
static bool
has_ended(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

    return poll(&poll_fd, 1, 0) > 0 && !(poll_fd.revents & POLLIN);
}

/* A file that is followed may have grown since its end was last reached. */
void
input_read_rest(struct input *input)
{
    if (input->regular && input->options->follow) {
        input->at_end = false;
        read_soon(input);
    }
    if (input->at_end || input->regular)
        return;
    records_feed_pipe(&input->records, input->fd);
    if (has_ended(input->fd))
        reach_end(input);
}

bool
input_is_over(const struct input *input)
{
    return input->at_end || !input->regular;
}

/* A FIFO that is followed never ends. */
bool
input_is_unread(const struct input *input)
{
    int bytes = 0;

    if (input->at_end || (input->options->follow && !input->regular))
        return records_has_part(&input->records) ||
               (!input->at_end && ioctl(input->fd, FIONREAD, &bytes) == 0 &&
                bytes > 0);
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
    if (input->owned)
        (void)close(input->fd);
    free(input);
}
