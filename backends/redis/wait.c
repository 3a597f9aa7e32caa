/* SPDX-License-Identifier: MIT */
/* wait.c: how does a handle sleep until another one has changed the store?
 *
 * On a connection of its own. It enters the set of sleeping sessions, unless
 * there is news already, and waits in BLPOP for a token in a list of its own. A
 * script that makes n keys READY, or brings the earliest deadline forward, takes
 * up to n other sessions out of the set and gives each a token: so a key wakes
 * one process, and nobody wakes itself.
 *
 * A session that stops sleeping for another reason says so with its next batch;
 * if a token was on its way to it, that batch wakes another session instead. The
 * token of a process that was killed is lost, and nothing comes from a server
 * that is away: so a thread that sleeps in wait() looks at the store once a
 * second, and fd() is readable at least so often. Deadlines are timers here, not
 * calls.
 *
 * The timer of fd() is set again by a batch, but not more than four times a
 * second: so busy handles hardly pay for it, and idle ones look every second.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
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
    atomic_init(&e->next_ns, WQ_FOREVER);
    e->look_ns = LOOK_NS;
    e->kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    e->unread_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    e->look_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    e->news_fd = epoll_create1(EPOLL_CLOEXEC);
    e->has_fds = true;
    if (e->kick_fd < 0 || e->unread_fd < 0 || e->look_fd < 0 ||
        e->news_fd < 0 ||
        epoll_ctl(e->news_fd, EPOLL_CTL_ADD, e->unread_fd, &event) ||
        epoll_ctl(e->news_fd, EPOLL_CTL_ADD, e->look_fd, &event))
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
    const int fds[] = {e->kick_fd, e->unread_fd, e->look_fd, e->news_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
}

/* With the lock: a user of fd() looks now; the next look is due later. */
static void
set_look(struct wq__redis *e)
{
    const int64_t now_ns = wq__time_now();
    const int64_t at_ns = now_ns + e->look_ns;

    if (e->look_at_ns - now_ns > e->look_ns / 4 * 3)
        return;
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(e->look_ns / WQ_SECONDS(1)),
                     .tv_nsec = (long)(e->look_ns % WQ_SECONDS(1))}};
    if (timerfd_settime(e->look_fd, 0, &when, NULL) == 0)
        e->look_at_ns = at_ns;
}

/* ---- the token ------------------------------------------------------------ */

/* With the lock: the list is that of the current session. */
static void
make_bed(struct wq__redis *e)
{
    const int64_t session = atomic_load(&e->session);

    if (e->bed_of == session)
        return;
    (void)snprintf(e->bed, sizeof e->bed, "%s:%016" PRIx64, e->names.name[6],
                   (uint64_t)session);
    e->bed_of = session;
    atomic_store(&e->listed, false);
    if (e->in_bed)
        wq__wire_close(&e->wait_wire, false);
    e->in_bed = false;
}

/* With the lock: a BLPOP is under way. False: the server cannot be reached. */
static bool
lie_down(struct wq__redis *e)
{
    struct wq__wire   *w = &e->wait_wire;
    struct epoll_event event = {.events = EPOLLIN};

    make_bed(e);
    if (e->in_bed && w->fd >= 0 && !wq__route_is_elsewhere(w))
        return true;
    if (e->in_bed) {
        wq__wire_close(w, false);
        atomic_store(&e->listed, false);
    }
    e->in_bed = false;
    const uint64_t before = w->connects;
    if (wq__wire_open(w))
        return false;
    if (w->connects != before)
        (void)epoll_ctl(e->news_fd, EPOLL_CTL_ADD, w->fd, &event);
    wq__wire_add_words(w, (const char *[]){"BLPOP", e->bed, "0"}, 3);
    e->in_bed = wq__wire_send(w) == WQ_OK;
    return e->in_bed;
}

/* With the lock: let the server count the session as asleep. False: there is
 * news. */
static bool
enlist(struct wq__redis *e, const char *how)
{
    const int64_t next_ns = atomic_load(&e->next_ns);
    redisReply   *reply = NULL;

    wq__lock_take(&e->side_lock);
    wq__args_begin(&e->side_args);
    wq__redis_put_session(&e->side_args, e->bed_of);
    wq__redis_put_time(e, &e->side_args);
    wq__args_bytes(&e->side_args, how, 5);
    wq__args_int(&e->side_args, next_ns / 1000);
    wq__args_int(&e->side_args, (int64_t)atomic_load(&e->ready));
    wq__args_int(&e->side_args, (int64_t)atomic_load(&e->held));
    const wq_err err = wq__script_run(
        &e->side_wire, &e->names, WQ__SCRIPT_SESSION, &e->side_args, &reply);
    wq__lock_release(&e->side_lock);
    const bool news = err || wq__reply_is(reply, "NEWS");
    atomic_store(&e->listed, !err && (!news || *how == 'w'));
    if (reply)
        freeReplyObject(reply);
    return !news;
}

/* With the lock: what the server has answered. True: look at the store. */
static bool
has_answer(struct wq__redis *e)
{
    redisReply *reply = NULL;

    if (!e->in_bed)
        return false;
    const wq_err err = wq__wire_poll(&e->wait_wire, &reply);
    if (!err && !reply)
        return false;
    e->in_bed = false;
    atomic_store(&e->listed, false);
    if (err)
        return true; /* the connection is gone: changes may be missed */
    e->wait_wire.touched = false;
    bool moved = false;
    if (reply->type == REDIS_REPLY_ERROR)
        wq__route_note(&e->wait_wire, reply, &moved);
    if (reply->type == REDIS_REPLY_ERROR && !moved) {
        /* for example: no right to BLPOP */
        wq__wire_close(&e->wait_wire, false);
        e->wait_wire.failures = 1; /* not again before the next look */
        e->wait_wire.retry_ns = wq__time_now() + e->look_ns;
    }
    freeReplyObject(reply);
    return true;
}

/* With the lock: sleep on the server, too. False: look at the store instead. If
 * the server cannot be reached, there is nothing to look at. */
static bool
fall_asleep(struct wq__redis *e)
{
    if (has_answer(e))
        return false;
    return !lie_down(e) || atomic_load(&e->listed) || enlist(e, "sleep");
}

/* ---- batches -------------------------------------------------------------- */

/* A user of fd() is always asleep for the server: news that came until now will
 * be known by the batch. */
static void
turn_over(struct wq__redis *e)
{
    const struct wq__sentence said = wq__fail_save();

    wq__lock_take(&e->wait_lock);
    clear_event(e->unread_fd);
    set_look(e);
    if (!atomic_load(&e->waiting)) {
        (void)has_answer(e);
        if (lie_down(e) && !atomic_load(&e->listed))
            (void)enlist(e, "watch");
    }
    wq__lock_release(&e->wait_lock);
    wq__fail_restore(&said);
}

/* With the lock: from now on the user of fd() is asleep for the server. */
static void
begin_watch(struct wq__redis *e)
{
    if (!atomic_load(&e->waiting) && lie_down(e) && !enlist(e, "watch"))
        raise_event(e->unread_fd);
}

void
wq__redis_session_changed(struct wq__redis *e)
{
    const struct wq__sentence said = wq__fail_save();

    if (!atomic_load(&e->watched))
        return;
    wq__lock_take(&e->wait_lock);
    begin_watch(e);
    wq__lock_release(&e->wait_lock);
    wq__fail_restore(&said);
}

/* If the session counts as asleep, but no thread of it waits, the batch says so:
 * until it has, no thread may begin to wait, and keeps the lock from that. */
void
wq__redis_wake_up(struct wq__redis *e)
{
    e->awake = false;
    if (atomic_load(&e->watched)) {
        turn_over(e);
        return;
    }
    if (!atomic_load(&e->listed) || atomic_load(&e->waiting))
        return;
    wq__lock_take(&e->wait_lock);
    e->awake = atomic_load(&e->listed) && !atomic_load(&e->waiting);
    if (!e->awake)
        wq__lock_release(&e->wait_lock);
}

void
wq__redis_woke_up(struct wq__redis *e, bool told)
{
    if (!e->awake)
        return;
    if (told)
        atomic_store(&e->listed, false);
    e->awake = false;
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

/* With the lock: is there news that no token has told of? It still counts as
 * asleep; so if there is, the next batch says that it is awake, also if a token
 * was under way. */
static bool
look(struct wq__redis *e)
{
    const bool calm = enlist(e, "sleep") && !has_answer(e);

    atomic_store(&e->listed, true);
    return !calm;
}

/* Sleep once, without the lock. False: wait() must return. */
static bool
sleep_once(struct wq__redis *e, int64_t look_ns)
{
    struct pollfd fds[] = {
        {.fd = e->kick_fd, .events = POLLIN},
        {.fd = e->has_beacon ? wq__beacon_fd(&e->beacon) : -1,
         .events = POLLIN},
        {.fd = e->wait_wire.fd, .events = POLLIN},
    };
    const int64_t left_ns = look_ns - wq__time_now();
    const int left_ms = left_ns > 0 ? (int)((left_ns + 999999) / 1000000) : 0;

    if (poll(fds, 3, left_ms) < 0)
        return errno == EINTR;
    if (fds[0].revents)
        clear_event(e->kick_fd);
    return !fds[0].revents && !fds[1].revents;
}

/* A look is two wake-ups: the timer, and the reply. An idle process shall not
 * have more than two a second. */
static int64_t
next_look(const struct wq__redis *e)
{
    return wq__time_now() + e->look_ns + e->look_ns / 4;
}

void
wq__redis_wait(struct wq__engine *base, int64_t until_ns)
{
    struct wq__redis         *e = engine_of(base);
    const struct wq__sentence said = wq__fail_save();
    int64_t                   look_ns = next_look(e);
    bool                      goes_on = true;

    set_timer(e, until_ns);
    wq__lock_take(&e->wait_lock);
    atomic_store(&e->waiting, true);
    while (goes_on && fall_asleep(e)) {
        wq__lock_release(&e->wait_lock);
        goes_on = sleep_once(e, look_ns);
        wq__lock_take(&e->wait_lock);
        if (goes_on && wq__time_now() >= look_ns) {
            goes_on = atomic_load(&e->listed) && !look(e);
            look_ns = next_look(e);
        }
    }
    atomic_store(&e->waiting, false);
    if (atomic_load(&e->watched))
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
    atomic_store(&e->watched, true);
    set_look(e);
    begin_watch(e);
    wq__lock_release(&e->wait_lock);
    return e->news_fd;
}
