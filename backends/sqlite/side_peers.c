/* SPDX-License-Identifier: MIT */
/* side_peers.c: how does a session that sleeps learn that another one has died?
 *
 * By a pidfd, which is readable when the process has ended. It watches the
 * WQ__SIDE_PEERS sessions of its queue in the slots behind its own. It cannot
 * watch sessions of its own process, whose death it does not live to see, nor
 * those in other pid namespaces: find_ended() asks the kernel about these.
 *
 * A process that has died is reported once for each of its sessions, and its
 * pidfd is closed then: a session that nobody buries does not keep others
 * awake.
 *
 * Cost: if no session has begun or ended, one load; else 5 us for each new one.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "side_inside.h"

/* -1: errno. */
static int
open_pidfd(uint32_t pid)
{
#ifdef SYS_pidfd_open
    return (int)syscall(SYS_pidfd_open, (pid_t)pid, 0); /* close-on-exec */
#else
    (void)pid;
    errno = ENOSYS;
    return -1;
#endif
}

static void
report_death(struct wq__side *s)
{
    atomic_store_explicit(&s->peer_died, true, memory_order_relaxed);
    if (s->waiting)
        wq__side_kick(s);
    if (s->watched)
        wq__side_ring_self(s);
}

/* The entry of session `id`; 0: one that is free; NULL: none. */
static struct wq__side_peer *
find_entry(struct wq__side *s, int64_t id)
{
    for (int i = 0; i < WQ__SIDE_PEERS; i++)
        if (s->peers[i].id == id)
            return &s->peers[i];
    return NULL;
}

static void
drop(struct wq__side_peer *entry)
{
    wq__side_close_fd(&entry->fd); /* leaves the epoll set by that */
    entry->id = 0;
}

void
wq__side_forget_peers(struct wq__side *s)
{
    for (int i = 0; i < WQ__SIDE_PEERS; i++)
        drop(&s->peers[i]);
    s->has_peers = false;
}

/* ---- which sessions? ----------------------------------------------------- */

struct wanted {
    int64_t            id;
    struct wq__process process;
};

/* Should this session watch the one in slot `i`? */
static bool
is_wanted(const struct wq__side *s, int i, struct wanted *out)
{
    const struct wq__side_slot *slot = wq__side_slot(s, i);

    if (i == s->slot ||
        atomic_load_explicit(&slot->queue, memory_order_relaxed) != s->queue ||
        atomic_load_explicit(&slot->until, memory_order_relaxed) ==
            WQ__SIDE_ENDED)
        return false;
    out->id = wq__side_read_process(s, i, &out->process);
    return out->id != 0 && out->process.pid != s->self.pid &&
           wq__process_is_near(&out->process, &s->self);
}

/* Without the writer lock `top` may be about to change: look at all slots. */
static int
list_wanted(const struct wq__side *s, struct wanted list[])
{
    int n = 0;

    for (int k = 1; k < WQ__SIDE_SESSIONS && n < WQ__SIDE_PEERS; k++)
        n += is_wanted(s, (s->slot + k) % WQ__SIDE_SESSIONS, &list[n]);
    return n;
}

static bool
is_listed(const struct wanted list[], int n, int64_t id)
{
    for (int k = 0; k < n; k++)
        if (list[k].id == id)
            return true;
    return false;
}

/* ---- watching ------------------------------------------------------------ */

/* The pidfd is opened before the process is checked: so a process that has the
 * pid, and is the right one, is the one behind the pidfd. */
static void
watch_peer(struct wq__side *s, struct wq__side_peer *entry,
           const struct wanted *w)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)w->id};

    entry->id = w->id;
    entry->fd = open_pidfd(w->process.pid);
    const bool gone = wq__process_is_gone(&w->process, &s->self);
    if (entry->fd >= 0 &&
        (gone || epoll_ctl(s->news_fd, EPOLL_CTL_ADD, entry->fd, &event) != 0))
        wq__side_close_fd(&entry->fd);
    if (gone)
        report_death(s);
}

static void
update_peers(struct wq__side *s)
{
    struct wanted list[WQ__SIDE_PEERS];
    const int     n = list_wanted(s, list);

    for (int i = 0; i < WQ__SIDE_PEERS; i++)
        if (!is_listed(list, n, s->peers[i].id))
            drop(&s->peers[i]);
    for (int k = 0; k < n; k++)
        if (!find_entry(s, list[k].id))
            watch_peer(s, find_entry(s, 0), &list[k]);
}

void
wq__side_watch_peers(struct wq__side *s)
{
    if (s->slot < 0 || s->news_fd < 0)
        return;
    const uint64_t members = atomic_load_explicit(
        &wq__side_queue(s, s->queue)->members, memory_order_acquire);
    if (s->has_peers && s->members == members)
        return;
    s->members = members;
    s->has_peers = true;
    update_peers(s);
}

void
wq__side_sweep_peers(struct wq__side *s)
{
    struct epoll_event events[16];
    const int n = s->news_fd < 0 ? 0 : epoll_wait(s->news_fd, events, 16, 0);

    for (int k = 0; k < n; k++) {
        if (events[k].data.u64 == 0)
            continue; /* the FIFO, or look_fd */
        struct wq__side_peer *entry =
            find_entry(s, (int64_t)events[k].data.u64);
        if (entry)
            wq__side_close_fd(&entry->fd);
        report_death(s);
    }
}
