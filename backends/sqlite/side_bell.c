/* SPDX-License-Identifier: MIT */
/* side_bell.c: how does one session wake another, and which one?
 *
 * Each session has a FIFO, bell.SLOT. A byte in it wakes the session. The bytes
 * mean nothing else: what is new is in the database.
 *
 * No wake-up is lost. The publisher raises the epoch of the queue, and then
 * reads `sleeping` of each session. The sleeper sets `sleeping`, and then reads
 * the epoch. These four are sequentially consistent, so they have one order for
 * all processes. If the sleeper sets `sleeping` before the publisher reads it,
 * the publisher rings. Otherwise the publisher has read `sleeping`, and before
 * that raised the epoch, before the sleeper set `sleeping`, and before the
 * sleeper reads the epoch: it sees the new one and does not sleep.
 *
 * A session that was rung (RUNG) is not rung again before it has looked: either
 * at the epoch, in wait(), after it has set SLEEPING again, or at the database,
 * before catch_up(), which runs with the writer lock, as publishers do. A
 * publisher that is killed between marking a session and writing the byte leaves
 * it RUNG without a byte; the pidfd of the publisher, or the look every second,
 * wakes it.
 *
 * FIFOs are opened for reading and writing, by both sides: opening never waits
 * for the other side, and a write to the FIFO of a process that has just died is
 * no SIGPIPE.
 *
 * Cost: publish without sleepers: a few ns for each slot in use; a ring 5 us,
 * after which the other process is awake.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "side_inside.h"

/* ---- FIFOs --------------------------------------------------------------- */

struct name {
    char text[24];
};

static struct name
name_of(int slot)
{
    struct name name;

    (void)snprintf(name.text, sizeof name.text, "bell.%d", slot);
    return name;
}

static int
open_fifo(const struct wq__side *s, int slot)
{
    return openat(s->dir_fd, name_of(slot).text,
                  O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
}

/* If the FIFO is full, the session will wake up without this byte. */
static void
put_byte(int fd)
{
    if (write(fd, "", 1) != 1)
        errno = 0;
}

void
wq__side_unlink_bell(struct wq__side *s, int i)
{
    (void)unlinkat(s->dir_fd, name_of(i).text, 0);
}

/* ---- the own FIFO -------------------------------------------------------- */

static struct wq__side_slot *
own_slot(const struct wq__side *s)
{
    return wq__side_slot(s, s->slot);
}

static int
make_fifo(struct wq__side *s)
{
    if (mkfifoat(s->dir_fd, name_of(s->slot).text, s->mode) != 0) {
        if (errno != EEXIST)
            return -1;
        wq__side_unlink_bell(s, s->slot); /* left by a killed process */
        if (mkfifoat(s->dir_fd, name_of(s->slot).text, s->mode) != 0)
            return -1;
    }
    const int fd = open_fifo(s, s->slot);
    if (fd >= 0)
        wq__side_fit_rights(s, fd, s->mode);
    return fd;
}

int
wq__side_open_bell(struct wq__side *s)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0};

    if (s->news_fd < 0 && (s->news_fd = epoll_create1(EPOLL_CLOEXEC)) < 0)
        return -1;
    if (s->bell_fd >= 0 || s->slot < 0)
        return 0;
    if ((s->bell_fd = make_fifo(s)) < 0)
        return -1;
    if (epoll_ctl(s->news_fd, EPOLL_CTL_ADD, s->bell_fd, &event) != 0) {
        const int cause = errno;
        wq__side_close_fd(&s->bell_fd);
        errno = cause;
        return -1;
    }
    return 0;
}

void
wq__side_close_bell(struct wq__side *s)
{
    wq__side_close_fd(&s->bell_fd); /* leaves the epoll set by that */
    s->rung = false;
}

void
wq__side_drain_bell(struct wq__side *s)
{
    char bytes[256];

    s->rung = false;
    if (s->bell_fd < 0)
        return;
    while (read(s->bell_fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes)
        ;
}

void
wq__side_ring_self(struct wq__side *s)
{
    if (s->bell_fd < 0)
        return;
    s->rung = true;
    put_byte(s->bell_fd);
}

/* ---- sleeping ------------------------------------------------------------ */

static void
set_sleeping(struct wq__side *s, enum wq__side_sleep how)
{
    if (s->slot >= 0 &&
        atomic_exchange_explicit(&own_slot(s)->sleeping, (unsigned)how,
                                 memory_order_seq_cst) == WQ__RUNG)
        s->rung = true;
}

void
wq__side_lie_down(struct wq__side *s)
{
    set_sleeping(s, s->waiting ? WQ__SLEEPING : WQ__WATCHED);
}

void
wq__side_stand_up(struct wq__side *s)
{
    set_sleeping(s, WQ__AWAKE);
}

bool
wq__side_has_news(const struct wq__side *s)
{
    return s->slot >= 0 &&
           atomic_load_explicit(&wq__side_queue(s, s->queue)->epoch,
                                memory_order_seq_cst) !=
               atomic_load_explicit(&s->seen, memory_order_relaxed);
}

void
wq__side_catch_up(struct wq__side *s, uint32_t queue)
{
    const uint64_t epoch = atomic_load_explicit(
        &wq__side_queue(s, queue)->epoch, memory_order_seq_cst);

    wq__lock_take(&s->lock);
    atomic_store_explicit(&s->seen, epoch, memory_order_relaxed);
    if (s->waiting || s->watched) {
        wq__side_lie_down(s); /* to be rung again, if it was */
        wq__side_watch_peers(s);
    }
    /* All bytes are for what is known now, but for deaths: */
    if (s->rung)
        wq__side_drain_bell(s);
    if (s->watched && atomic_load_explicit(&s->peer_died, memory_order_relaxed))
        wq__side_ring_self(s);
    wq__lock_release(&s->lock);
}

/* ---- ringing ------------------------------------------------------------- */

/* The FIFO of the session in slot `i`; -1: none can be opened. An open FIFO is
 * used again as long as the slot has the same session. */
static int
bell_of(struct wq__side *s, int i, int64_t id)
{
    struct wq__side_bell *b = &s->bells[i % WQ__SIDE_BELLS];

    if (b->fd >= 0 && b->id == id)
        return b->fd;
    wq__side_close_fd(&b->fd);
    b->fd = open_fifo(s, i);
    b->id = id;
    return b->fd;
}

/* Wake the session in slot `i`, if it is in the state `from`. */
static bool
ring_from(struct wq__side *s, int i, uint32_t from)
{
    struct wq__side_slot *slot = wq__side_slot(s, i);

    if (!atomic_compare_exchange_strong_explicit(&slot->sleeping, &from,
                                                 WQ__RUNG, memory_order_seq_cst,
                                                 memory_order_seq_cst))
        return false;
    const int fd =
        bell_of(s, i, atomic_load_explicit(&slot->id, memory_order_relaxed));
    if (fd < 0)
        return false;
    put_byte(fd);
    return true;
}

/* In turn, so that each session gets its share, and one that does not answer
 * gets no more than that. Descriptors of event loops are always rung: their
 * program may be busy, and then another one must get the key. */
void
wq__side_ring(struct wq__side *s, uint32_t queue, size_t n)
{
    struct wq__side_queue *q = wq__side_queue(s, queue);
    const uint32_t         top = s->m->top;
    const uint32_t         from = top ? q->turn % top : 0;

    for (uint32_t k = 0; k < top; k++) {
        const int i = (int)((from + k) % top);
        if (i == s->slot || !wq__side_is_of(s, i, queue))
            continue;
        (void)ring_from(s, i, WQ__WATCHED);
        if (n == 0 || !ring_from(s, i, WQ__SLEEPING))
            continue;
        q->turn = (uint32_t)i + 1;
        n--;
    }
}

void
wq__side_publish(struct wq__side *s, uint32_t queue, unsigned news,
                 size_t n_ready)
{
    const uint64_t was = atomic_fetch_add_explicit(
        &wq__side_queue(s, queue)->epoch, 1, memory_order_seq_cst);
    uint64_t seen = was;

    (void)atomic_compare_exchange_strong_explicit(
        &s->seen, &seen, was + 1, memory_order_relaxed, memory_order_relaxed);
    wq__side_ring(s, queue,
                  news & WQ__NEWS_OTHER ? WQ__SIDE_SESSIONS : n_ready);
}
