/* SPDX-License-Identifier: MIT */
/* wait.c: how does a handle sleep until another one has changed the store?
 *
 * On a connection of its own, in BLPOP of a list that has at most one token. A
 * script that makes keys READY, or brings the earliest deadline forward, puts
 * the token there. It wakes one handle, whose next batch puts it back if keys
 * are left: so a key wakes one process, and many keys wake many, one by one.
 *
 * A token can be lost with the process that took it, or be taken by one whose
 * threads are busy: so every sleeper looks at the store once a second, and no
 * BLPOP lasts longer. Deadlines are timers here, not calls.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "error/error.h"
#include "port/time.h"
#include "store.h"

#define LOOK_NS WQ_SECONDS(1)

static struct wq__redis *
engine_of(struct wq__engine *e)
{
    return (struct wq__redis *)(void *)e;
}

/* ---- eventfds ------------------------------------------------------------- */

static void
raise_event(int fd)
{
    const uint64_t one = 1;

    if (write(fd, &one, sizeof one) != sizeof one)
        errno = 0; /* the counter is full: it is raised */
}

static void
clear_event(int fd)
{
    uint64_t count;

    if (read(fd, &count, sizeof count) != sizeof count)
        errno = 0; /* it was not raised */
}

void
wq__redis_kick(struct wq__engine *base)
{
    raise_event(engine_of(base)->kick_fd);
}

wq_err
wq__redis_wait_init(struct wq__redis *e)
{
    struct epoll_event event = {.events = EPOLLIN};

    wq__lock_init(&e->wait_lock);
    e->look_ns = LOOK_NS;
    e->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    e->unread_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    e->news_fd = epoll_create1(EPOLL_CLOEXEC);
    e->has_fds = true;
    if (e->kick_fd < 0 || e->unread_fd < 0 || e->news_fd < 0 ||
        epoll_ctl(e->news_fd, EPOLL_CTL_ADD, e->unread_fd, &event))
        return wq_fail(WQ_ENOMEM, "redis: no more descriptors");
    return WQ_OK;
}

void
wq__redis_wait_fini(struct wq__redis *e, bool forked)
{
    wq__wire_fini(&e->wait_wire, forked);
    if (!e->has_fds)
        return;
    if (e->has_beacon && forked)
        wq__beacon_fini(&e->beacon);
    else if (e->has_beacon)
        wq__clock_unwatch(e->base.clock, &e->watch);
    if (e->kick_fd >= 0)
        (void)close(e->kick_fd);
    if (e->unread_fd >= 0)
        (void)close(e->unread_fd);
    if (e->news_fd >= 0)
        (void)close(e->news_fd);
}

/* ---- the token ------------------------------------------------------------ */

/* With the lock: a BLPOP is under way. False: the server cannot be reached. */
static bool
park(struct wq__redis *e)
{
    struct wq__wire   *w = &e->wait_wire;
    const uint64_t     before = w->connects;
    struct epoll_event event = {.events = EPOLLIN};

    if (e->parked && w->fd >= 0)
        return true;
    e->parked = false;
    if (wq__wire_open(w))
        return false;
    if (w->connects != before)
        (void)epoll_ctl(e->news_fd, EPOLL_CTL_ADD, w->fd, &event);
    wq__wire_add_words(w, (const char *[]){"BLPOP", e->names.name[6], "1"}, 3);
    if (wq__wire_send(w))
        return false;
    e->parked = true;
    return true;
}

/* With the lock: what the server has answered. True: look at the store. */
static bool
has_answer(struct wq__redis *e)
{
    redisReply *reply = NULL;

    if (!e->parked)
        return false;
    if (wq__wire_poll(&e->wait_wire, &reply)) {
        e->parked = false; /* the connection is gone: changes may be missed */
        return true;
    }
    if (!reply)
        return false;
    e->parked = false;
    e->wait_wire.touched = false;
    const bool token = reply->type == REDIS_REPLY_ARRAY;
    if (token)
        atomic_store(&e->woken, true);
    if (reply->type == REDIS_REPLY_ERROR)
        wq__wire_close(&e->wait_wire, false);
    freeReplyObject(reply);
    return token;
}

/* A batch is about to know all that happened until now. */
void
wq__redis_catch_up(struct wq__redis *e)
{
    wq__lock_take(&e->wait_lock);
    if (e->watched) {
        const struct wq__sentence said = wq__fail_save();
        clear_event(e->unread_fd);
        if (!e->waiting) {
            (void)has_answer(e);
            (void)park(e);
        }
        wq__fail_restore(&said);
    }
    wq__lock_release(&e->wait_lock);
}

/* ---- waiting -------------------------------------------------------------- */

static void
set_timer(struct wq__redis *e, int64_t until_ns)
{
    wq_clock *clock = e->base.clock;

    if (!e->has_beacon) {
        if (until_ns == WQ_FOREVER || wq__beacon_init(&e->beacon, clock->timer))
            return;
        e->watch.beacon = &e->beacon;
        e->watch.sleeps = true;
        e->has_beacon = true;
    }
    clock->watch(clock, &e->watch, until_ns);
}

/* Sleep once, without the lock. False: wait() must return. */
static bool
sleep_once(struct wq__redis *e, bool parked, int64_t look_ns)
{
    struct pollfd fds[] = {
        {.fd = e->kick_fd, .events = POLLIN},
        {.fd = e->has_beacon ? wq__beacon_fd(&e->beacon) : -1,
         .events = POLLIN},
        {.fd = parked ? e->wait_wire.fd : -1, .events = POLLIN},
    };
    const int64_t left_ns = look_ns - wq__time_now();
    const int left_ms = left_ns > 0 ? (int)((left_ns + 999999) / 1000000) : 0;

    if (poll(fds, 3, left_ms) < 0)
        return errno == EINTR;
    if (fds[0].revents)
        clear_event(e->kick_fd);
    return !fds[0].revents && !fds[1].revents && wq__time_now() < look_ns;
}

void
wq__redis_wait(struct wq__engine *base, int64_t until_ns)
{
    struct wq__redis         *e = engine_of(base);
    const struct wq__sentence said = wq__fail_save();
    const int64_t             look_ns = wq__time_now() + e->look_ns;
    bool                      goes_on = true;

    set_timer(e, until_ns);
    wq__lock_take(&e->wait_lock);
    e->waiting = true;
    while (goes_on) {
        const bool parked = park(e);
        goes_on = !has_answer(e);
        if (!goes_on)
            break;
        wq__lock_release(&e->wait_lock);
        goes_on = sleep_once(e, parked, look_ns);
        wq__lock_take(&e->wait_lock);
    }
    e->waiting = false;
    if (e->watched)
        raise_event(e->unread_fd);
    wq__lock_release(&e->wait_lock);
    if (e->has_beacon && e->watch.listed)
        base->clock->watch(base->clock, &e->watch, WQ_FOREVER);
    wq__fail_restore(&said);
}

/* ---- event loops ---------------------------------------------------------- */

int
wq__redis_fd(struct wq__engine *base)
{
    struct wq__redis *e = engine_of(base);

    wq__lock_take(&e->wait_lock);
    e->watched = true;
    if (!e->waiting)
        (void)park(e);
    wq__lock_release(&e->wait_lock);
    return e->news_fd;
}
