/* SPDX-License-Identifier: MIT */
/* outbox.c: how does output get out while nobody may be kept waiting?
 *
 * While nothing waits, adding is a write() (with a poll() before it, unless the
 * door is a regular file) and nothing is copied or allocated.
 */
#include "outbox.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tell.h"

/* Beyond this no more runs are started: bytes in memory, and pieces, each of
 * which may have a file open. */
#define MOST_BYTES (4 * (size_t)1024 * 1024)
#define MOST_PIECES 128
/* Small pieces that follow each other become one up to this. */
#define MERGED (64 * (size_t)1024)
/* So much is written before others have their turn. */
#define TURN (1024 * (size_t)1024)

/* What waits. */
struct piece {
    struct piece *next;
    enum door     door;  /* that it is for */
    struct store  store; /* what it is; never spills, since nothing is added to
                            one that is large */
    uint64_t      done;  /* so much of it is out */
};

struct outbox {
    struct loop  *loop;
    struct piece *first, **end;  /* in the order they came in */
    size_t        pieces;        /* how many */
    size_t        bytes;         /* of them in memory */
    struct timer  soon;          /* goes on where a turn was over */
    bool          was_congested; /* and on_progress() was not called since */
    bool          failed;        /* output was lost */

    struct door_state {
        struct watch watch;       /* set while `first` waits for it */
        bool         always;      /* a regular file: never makes wait */
        bool         terminal;    /* the display may be on it */
        bool         gone;        /* it takes nothing any more */
        bool         within_line; /* what was last added did not end one */
    } doors[2];

    void (*on_progress)(void *ctx);
    void *ctx;
};

static const int         door_fds[] = {STDOUT_FILENO, STDERR_FILENO};
static const char *const door_names[] = {"stdout", "stderr"};

static void go_on_soon(struct outbox *box);

/* -------------------------------------------------------------- writing -- */

static void
lose(struct outbox *box, enum door door)
{
    box->doors[door].gone = true;
    if (errno != EPIPE) { /* a reader that has seen enough is no error */
        tell_errno("cannot write to %s", door_names[door]);
        box->failed = true;
    }
    go_on_soon(box); /* to tell the others */
}

static bool
is_ready(int fd)
{
    struct pollfd poll_fd = {.fd = fd, .events = POLLOUT};

    /* POLLERR and the like: write() will say what it is. */
    return poll(&poll_fd, 1, 0) > 0;
}

/* Writes what can be written without waiting, and returns how much. What is for
 * a door that is gone counts as written. */
static size_t
push(struct outbox *box, enum door door, const char *data, size_t len)
{
    struct door_state *d = &box->doors[door];
    size_t             done = 0;

    if (d->terminal)
        tell_clear();
    while (done < len && !d->gone) {
        size_t most = len - done;
        if (!d->always) {
            if (!is_ready(door_fds[door]))
                return done;
            most = most < PIPE_BUF ? most : PIPE_BUF;
        }
        const ssize_t n = write(door_fds[door], data + done, most);
        if (n >= 0)
            done += (size_t)n;
        else if (errno == EAGAIN)
            return done; /* somebody has set O_NONBLOCK, and it is full */
        else if (errno != EINTR)
            lose(box, door);
    }
    return len;
}

/* Some of what is in the file; 0: it has to wait. */
static size_t
push_file(struct outbox *box, struct piece *piece)
{
    char         data[65536];
    const size_t n = store_read(&piece->store, piece->done, data, sizeof data);

    if (n > 0)
        return push(box, piece->door, data, n);
    box->failed = true;
    return (size_t)(piece->store.in_file - piece->done); /* it is lost */
}

/* Lets out some of the first piece; 0: it has to wait. */
static size_t
push_piece(struct outbox *box, struct piece *piece)
{
    const struct store *store = &piece->store;

    if (piece->done < store->in_file)
        return push_file(box, piece);
    const size_t at = (size_t)(piece->done - store->in_file);
    return push(box, piece->door, store->data + at, store->len - at);
}

static void
drop_first(struct outbox *box)
{
    struct piece *piece = box->first;

    box->first = piece->next;
    if (!box->first)
        box->end = &box->first;
    box->pieces--;
    box->bytes -= piece->store.len;
    store_fini(&piece->store);
    free(piece);
}

/* Lets out up to `most` bytes. False: the first has to wait. */
static bool
pump(struct outbox *box, size_t most)
{
    size_t total = 0;

    while (box->first && total < most) {
        struct piece *piece = box->first;
        const size_t  n = push_piece(box, piece);
        piece->done += n;
        total += n;
        if (piece->done == piece->store.in_file + piece->store.len)
            drop_first(box);
        else if (n == 0)
            return false;
    }
    return true;
}

/* -------------------------------------------------------------- waiting -- */

static void turn(struct outbox *box);

static void
on_ready(void *ctx, uint32_t events)
{
    (void)events;
    turn(ctx);
}

static void
on_soon(void *ctx)
{
    turn(ctx);
}

static void
go_on_soon(struct outbox *box)
{
    if (!box->soon.set)
        loop_timer_set(box->loop, &box->soon, 0, on_soon, box);
}

/* Waits for the door of the first piece, and for no other. */
static void
wait_for_door(struct outbox *box)
{
    for (int i = 0; i < 2; i++) {
        struct door_state *d = &box->doors[i];
        if (!box->first || (int)box->first->door != i)
            loop_unwatch(box->loop, &d->watch);
        else if (!d->watch.set && !loop_watch(box->loop, &d->watch, door_fds[i],
                                              EPOLLOUT, on_ready, box))
            /* What epoll does not know is asked now and then. */
            loop_timer_set(box->loop, &box->soon,
                           loop_now(box->loop) + 10000000, on_soon, box);
    }
}

static void
stop_waiting(struct outbox *box)
{
    for (int i = 0; i < 2; i++)
        loop_unwatch(box->loop, &box->doors[i].watch);
}

/* Called by the loop: lets out a bit, and tells how things are. */
static void
turn(struct outbox *box)
{
    if (!pump(box, TURN)) {
        wait_for_door(box);
    } else {
        stop_waiting(box);
        if (box->first)
            go_on_soon(box);
    }
    const bool congested = outbox_congested(box);
    if (!box->first || outbox_broken(box) || (box->was_congested && !congested))
        box->on_progress(box->ctx);
    box->was_congested = congested;
}

/* --------------------------------------------------------------- adding -- */

static struct piece *
add_piece(struct outbox *box, enum door door)
{
    struct piece *piece = calloc(1, sizeof *piece);

    if (!piece)
        return NULL;
    *piece = (struct piece){.door = door, .store = STORE_EMPTY};
    *box->end = piece;
    box->end = &piece->next;
    box->pieces++;
    return piece;
}

/* The last piece, if more for this door may be put behind it. */
static struct piece *
mergeable(struct outbox *box, enum door door, size_t len)
{
    struct piece *last = box->first;

    if (!last)
        return NULL;
    /* `end` is the `next` of the last one, its first member. */
    last = (struct piece *)(void *)box->end;
    return last->door == door && !last->store.in_file &&
                   last->store.len + len <= MERGED
               ? last
               : NULL;
}

void
outbox_lost(struct outbox *box)
{
    if (!box->failed)
        tell("out of memory: output is lost");
    box->failed = true;
}

/* How it goes on after something was put in. */
static void
added(struct outbox *box)
{
    if (!box->doors[0].watch.set && !box->doors[1].watch.set)
        go_on_soon(box);
    box->was_congested |= outbox_congested(box);
}

void
outbox_add(struct outbox *box, enum door door, const void *data, size_t len)
{
    const char *from = data;

    if (len == 0)
        return;
    box->doors[door].within_line = from[len - 1] != '\n';
    const size_t done = box->first ? 0 : push(box, door, from, len);
    if (done == len)
        return;

    const size_t  rest = len - done;
    struct piece *piece = mergeable(box, door, rest);
    if (!piece)
        piece = add_piece(box, door);
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

    if (store->len > 0)
        last = store->data[store->len - 1];
    else
        (void)store_read(store, store->in_file - 1, &last, 1);
    return last;
}

void
outbox_add_store(struct outbox *box, enum door door, struct store *store)
{
    if (store_is_empty(store))
        return;
    if (store->len <= MERGED && !store->in_file) {
        outbox_add(box, door, store->data, store->len);
        store_clear(store);
        return;
    }
    box->doors[door].within_line = last_byte(store) != '\n';
    struct piece *piece = add_piece(box, door);
    if (piece) {
        piece->store = *store;
        box->bytes += store->len;
        *store = (struct store)STORE_EMPTY;
    } else {
        outbox_lost(box);
        store_clear(store);
    }
    added(box);
}

/* ---------------------------------------------------------------- state -- */

bool
outbox_within_line(const struct outbox *box, enum door door)
{
    return box->doors[door].within_line;
}

bool
outbox_congested(const struct outbox *box)
{
    return box->bytes > MOST_BYTES || box->pieces > MOST_PIECES;
}

bool
outbox_idle(const struct outbox *box)
{
    return !box->first;
}

bool
outbox_broken(const struct outbox *box)
{
    return box->doors[DOOR_OUT].gone;
}

bool
outbox_failed(const struct outbox *box)
{
    return box->failed;
}

struct outbox *
outbox_create(struct loop *loop, void (*on_progress)(void *ctx), void *ctx)
{
    struct outbox *box = calloc(1, sizeof *box);
    struct stat    about;

    if (!box)
        return NULL;
    box->loop = loop;
    box->end = &box->first;
    box->on_progress = on_progress;
    box->ctx = ctx;
    for (int i = 0; i < 2; i++) {
        box->doors[i].always =
            fstat(door_fds[i], &about) == 0 && S_ISREG(about.st_mode);
        box->doors[i].terminal = isatty(door_fds[i]);
    }
    return box;
}

void
outbox_destroy(struct outbox *box)
{
    if (!box)
        return;
    (void)pump(box, SIZE_MAX);
    stop_waiting(box);
    loop_timer_clear(box->loop, &box->soon);
    while (box->first)
        drop_first(box);
    free(box);
}
