/* SPDX-License-Identifier: MIT */
/* outbox.c: how is output written without blocking?
 *
 * While nothing waits, adding is a write() (after a poll(), unless the target
 * cannot block us); nothing is copied or allocated. Output in a file, and that of
 * a run that has stdout for itself, does not pass through our memory.
 */
#include "output/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/report.h"

/* More is congestion: bytes in memory, and pieces, each of which may have an
 * open file. */
#define MAX_BYTES (4 * (size_t)1024 * 1024)
#define MAX_PIECES 128
/* Adjacent small pieces are merged up to this size. */
#define MAX_MERGED (64 * (size_t)1024)
/* Bytes written before the loop goes on. */
#define TURN (1024 * (size_t)1024)

/* Output that waits. */
struct piece {
    struct piece *next;
    enum target   target; /* where it goes */
    struct store  store;  /* never spills: nothing is added to a large one */
    uint64_t      done;   /* bytes of it that are written */
};

struct outbox {
    struct loop  *loop;
    struct piece *first, **end;  /* in order of arrival */
    size_t        pieces;        /* how many */
    size_t        bytes;         /* of all pieces, in memory */
    struct timer  soon;          /* continues after a turn */
    bool          was_congested; /* and on_progress() was not called since */
    bool          failed;        /* output was lost */
    struct watch  reader;        /* of a copy of stdout: its reader is gone */

    struct target_state {
        int          fd;          /* to write to; owned unless it is stdout or
                                     stderr */
        struct watch watch;       /* set while `first` waits for it */
        bool         awaited;     /* outbox_await_space() was called */
        bool         always;      /* a write never blocks: a regular file,
                                     /dev/null, a pipe with O_NONBLOCK */
        bool         movable;     /* splice() and sendfile() can write to it */
        bool         terminal;    /* the display may be on it */
        bool         gone;        /* writing to it has failed */
        bool         within_line; /* the last byte did not end a line */
    } targets[2];

    void (*on_progress)(void *ctx);
    void *ctx;
};

static const int         target_fds[] = {STDOUT_FILENO, STDERR_FILENO};
static const char *const target_names[] = {"stdout", "stderr"};

static void go_on_soon(struct outbox *box);

/* -------------------------------------------------------------- writing -- */

static void
lose(struct outbox *box, enum target target)
{
    box->targets[target].gone = true;
    if (errno != EPIPE) { /* a reader that closes it is no error */
        report_errno("cannot write to %s", target_names[target]);
        box->failed = true;
    }
    go_on_soon(box); /* calls on_progress() */
}

static bool
is_ready(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};

    /* POLLERR and the like: write() reports the error. */
    return poll(&poll_fd, 1, 0) > 0;
}

/* Writes what can be written without blocking; returns the number of bytes.
 * Bytes for a failed target count as written. */
static size_t
push(struct outbox *box, enum target target, const char *data, size_t len)
{
    struct target_state *d = &box->targets[target];
    size_t               done = 0;

    if (d->terminal)
        display_hide();
    while (done < len && !d->gone) {
        size_t most = len - done;
        if (!d->always) {
            if (!is_ready(d->fd))
                return done;
            most = most < PIPE_BUF ? most : PIPE_BUF;
        }
        const ssize_t n = write(d->fd, data + done, most);
        if (n >= 0)
            done += (size_t)n;
        else if (errno == EAGAIN)
            return done; /* a full pipe; or others have set O_NONBLOCK */
        else if (errno != EINTR)
            lose(box, target);
    }
    return len;
}

/* An append-only file and old kernels refuse. */
static bool
is_refusal(int err)
{
    return err == EINVAL || err == ENOSYS || err == EBADF;
}

/* Likewise without a copy. False: this is not possible. */
static bool
send_file(struct outbox *box, struct piece *piece, size_t *done)
{
    struct target_state *d = &box->targets[piece->target];
    const uint64_t       left = piece->store.in_file - piece->done;
    off_t                at = (off_t)piece->done;

    if (!d->movable || d->gone)
        return false;
    const ssize_t n = sendfile(d->fd, piece->store.fd, &at,
                               left < TURN ? (size_t)left : TURN);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) {
        *done = n > 0 ? (size_t)n : 0;
        return true;
    }
    if (n < 0 && is_refusal(errno))
        d->movable = false;
    return false; /* write() or store_read() reports other errors */
}

/* Writes some bytes of the file; returns 0 if it would block. */
static size_t
push_file(struct outbox *box, struct piece *piece)
{
    char   data[65536];
    size_t sent;

    if (send_file(box, piece, &sent))
        return sent;
    const size_t n = store_read(&piece->store, piece->done, data, sizeof data);

    if (n > 0)
        return push(box, piece->target, data, n);
    box->failed = true;
    return (size_t)(piece->store.in_file - piece->done); /* lost */
}

/* Writes some bytes of the first piece; returns 0 if it would block. */
static size_t
push_piece(struct outbox *box, struct piece *piece)
{
    const struct store *store = &piece->store;

    if (piece->done < store->in_file)
        return push_file(box, piece);
    const size_t at = (size_t)(piece->done - store->in_file);
    return push(box, piece->target, store->memory.data + at,
                store->memory.len - at);
}

static void
drop_first(struct outbox *box)
{
    struct piece *piece = box->first;

    box->first = piece->next;
    if (!box->first)
        box->end = &box->first;
    box->pieces--;
    box->bytes -= piece->store.memory.len;
    store_fini(&piece->store);
    free(piece);
}

/* Writes at most about `most` bytes. False: the first piece would block. */
static bool
pump(struct outbox *box, size_t most)
{
    size_t total = 0;

    while (box->first && total < most) {
        struct piece *piece = box->first;
        const size_t  n = push_piece(box, piece);
        piece->done += n;
        total += n;
        if (piece->done == piece->store.in_file + piece->store.memory.len)
            drop_first(box);
        else if (n == 0)
            return false;
    }
    return true;
}

/* -------------------------------------------------------------- waiting -- */

static void turn(void *ctx);

static void
go_on_soon(struct outbox *box)
{
    if (!box->soon.set)
        loop_timer_set(box->loop, &box->soon, 0, turn, box);
}

/* Watches the target of the first piece, and no other. */
static void
wait_for_target(struct outbox *box)
{
    for (int i = 0; i < 2; i++) {
        struct target_state *d = &box->targets[i];
        if (!d->awaited && (!box->first || (int)box->first->target != i))
            loop_unwatch(box->loop, &d->watch);
        else if (!d->watch.set &&
                 !loop_watch(box->loop, &d->watch, d->fd, EPOLLOUT, turn, box))
            /* epoll refuses it: try again after 10 ms. */
            loop_timer_set(box->loop, &box->soon,
                           loop_now(box->loop) + 10000000, turn, box);
    }
}

static void
stop_waiting(struct outbox *box)
{
    for (int i = 0; i < 2; i++)
        loop_unwatch(box->loop, &box->targets[i].watch);
}

/* The callback of the watches and of `soon`: writes some bytes, and reports
 * progress. */
static void
turn(void *ctx)
{
    struct outbox *box = ctx;
    const bool     awaited = box->targets[0].awaited || box->targets[1].awaited;

    box->targets[0].awaited = box->targets[1].awaited = false;
    if (!pump(box, TURN)) {
        wait_for_target(box);
    } else {
        stop_waiting(box);
        if (box->first)
            go_on_soon(box);
    }
    const bool congested = outbox_congested(box);
    if (!box->first || outbox_broken(box) || awaited ||
        (box->was_congested && !congested))
        box->on_progress(box->ctx);
    box->was_congested = congested;
}

/* --------------------------------------------------------------- adding -- */

static struct piece *
add_piece(struct outbox *box, enum target target)
{
    struct piece *piece = calloc(1, sizeof *piece);

    if (!piece)
        return NULL;
    *piece = (struct piece){.target = target, .store = STORE_EMPTY};
    *box->end = piece;
    box->end = &piece->next;
    box->pieces++;
    return piece;
}

/* The last piece, if bytes for this target may be appended to it. */
static struct piece *
mergeable(struct outbox *box, enum target target, size_t len)
{
    struct piece *last = box->first;

    if (!last)
        return NULL;
    /* `end` is the `next` of the last one, its first member. */
    last = (struct piece *)(void *)box->end;
    return last->target == target && !last->store.in_file &&
                   last->store.memory.len + len <= MAX_MERGED
               ? last
               : NULL;
}

void
outbox_lost(struct outbox *box)
{
    if (!box->failed)
        report("out of memory: output is lost");
    box->failed = true;
}

/* Something was added: go on writing later. */
static void
added(struct outbox *box)
{
    if (!box->targets[0].watch.set && !box->targets[1].watch.set)
        go_on_soon(box);
    box->was_congested |= outbox_congested(box);
}

void
outbox_add(struct outbox *box, enum target target, const void *data, size_t len)
{
    const char *from = data;

    if (len == 0)
        return;
    box->targets[target].within_line = from[len - 1] != '\n';
    const size_t done = box->first ? 0 : push(box, target, from, len);
    if (done == len)
        return;

    const size_t  rest = len - done;
    struct piece *piece = mergeable(box, target, rest);
    if (!piece)
        piece = add_piece(box, target);
    if (piece && store_add(&piece->store, from + done, rest))
        box->bytes += rest;
    else
        outbox_lost(box);
    added(box);
}

static char
last_byte(const struct store *store)
{
    char last = '\0';

    if (store->memory.len > 0)
        last = store->memory.data[store->memory.len - 1];
    else
        (void)store_read(store, store->in_file - 1, &last, 1);
    return last;
}

void
outbox_add_store(struct outbox *box, enum target target, struct store *store)
{
    if (store_is_empty(store))
        return;
    if (store->memory.len <= MAX_MERGED && !store->in_file) {
        outbox_add(box, target, store->memory.data, store->memory.len);
        store_clear(store);
        return;
    }
    box->targets[target].within_line = last_byte(store) != '\n';
    struct piece *piece = add_piece(box, target);
    if (piece) {
        piece->store = *store;
        box->bytes += store->memory.len;
        *store = (struct store)STORE_EMPTY;
    } else {
        outbox_lost(box);
        store_clear(store);
    }
    added(box);
}

/* --------------------------------------------------------------- moving -- */

enum moved
outbox_move(struct outbox *box, enum target target, int pipe, size_t *n)
{
    struct target_state *d = &box->targets[target];

    if (box->first || !d->movable || d->gone)
        return MOVED_REFUSED;
    const ssize_t got = splice(pipe, NULL, d->fd, NULL, TURN,
                               SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (got > 0) {
        *n = (size_t)got;
        d->within_line = false; /* not known */
        return MOVED;
    }
    if (got == 0)
        return MOVED_ALL;
    if (errno == EAGAIN)
        return is_ready(d->fd) ? MOVED_NONE : MOVED_FULL;
    if (is_refusal(errno))
        d->movable = false;
    return MOVED_REFUSED; /* write() reports other errors */
}

void
outbox_await_space(struct outbox *box, enum target target)
{
    box->targets[target].awaited = true;
    wait_for_target(box);
}

/* ---------------------------------------------------------------- state -- */

bool
outbox_within_line(const struct outbox *box, enum target target)
{
    return box->targets[target].within_line;
}

bool
outbox_congested(const struct outbox *box)
{
    return box->bytes > MAX_BYTES || box->pieces > MAX_PIECES;
}

bool
outbox_idle(const struct outbox *box)
{
    return !box->first;
}

/* The other end of a pipe, socket or terminal is closed. */
void
outbox_check_reader(struct outbox *box)
{
    struct pollfd poll_fd = {.fd = STDOUT_FILENO};

    if (poll(&poll_fd, 1, 0) > 0 && poll_fd.revents & (POLLERR | POLLHUP))
        box->targets[TARGET_OUT].gone = true;
}

static void
stop_watching_reader(struct outbox *box)
{
    if (!box->reader.set)
        return;
    loop_unwatch(box->loop, &box->reader);
    (void)close(box->reader.fd);
}

static void
on_reader(void *ctx)
{
    struct outbox *box = ctx;

    stop_watching_reader(box);
    outbox_check_reader(box);
    box->on_progress(box->ctx);
}

/* epoll reports the end even if no event is asked for. A copy, as epoll knows
 * stdout itself while a piece waits for it. */
void
outbox_watch_reader(struct outbox *box)
{
    const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

    if (fd >= 0 && !loop_watch(box->loop, &box->reader, fd, 0, on_reader, box))
        (void)close(fd); /* a regular file, for example: it has no reader */
}

bool
outbox_broken(const struct outbox *box)
{
    return box->targets[TARGET_OUT].gone;
}

bool
outbox_failed(const struct outbox *box)
{
    return box->failed;
}

/* Opens the pipe once more, for us alone; -1: that is not possible. */
static int
open_pipe_anew(int fd)
{
    char path[32];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
}

static void
open_target(struct target_state *d, int fd)
{
    struct stat about = {0};
    const bool  known = fstat(fd, &about) == 0;
    const bool  pipe = known && S_ISFIFO(about.st_mode);
    const int   own = pipe ? open_pipe_anew(fd) : -1;

    d->fd = own < 0 ? fd : own;
    d->movable = own >= 0 || (known && S_ISREG(about.st_mode));
    d->always = d->movable || (known && S_ISCHR(about.st_mode) &&
                               about.st_rdev == makedev(1, 3)); /* /dev/null */
    d->terminal = isatty(fd);
}

struct outbox *
outbox_create(struct loop *loop, void (*on_progress)(void *ctx), void *ctx)
{
    struct outbox *box = calloc(1, sizeof *box);

    if (!box)
        return NULL;
    box->loop = loop;
    box->end = &box->first;
    box->on_progress = on_progress;
    box->ctx = ctx;
    for (int i = 0; i < 2; i++)
        open_target(&box->targets[i], target_fds[i]);
    return box;
}

void
outbox_destroy(struct outbox *box)
{
    if (!box)
        return;
    (void)pump(box, SIZE_MAX);
    stop_waiting(box);
    stop_watching_reader(box);
    for (int i = 0; i < 2; i++)
        if (box->targets[i].fd != target_fds[i])
            (void)close(box->targets[i].fd);
    loop_timer_clear(box->loop, &box->soon);
    while (box->first)
        drop_first(box);
    free(box);
}
