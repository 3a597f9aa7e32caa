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
 *
 * A queue that is spread over partitions (spread.h) sleeps on all of them at the
 * same time: wait() is the same for one engine and for several. It takes their
 * locks one after the other, or in their order.
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

/* With the lock: ask the server to count the session as asleep. The lock of the
 * side wire is kept until end_enlist(). */
static void
begin_enlist(struct wq__redis *e, const char *how)
{
    struct wq__args *a = &e->side_args;

    wq__lock_take(&e->side_lock);
    wq__args_begin(a);
    wq__redis_put_session(a, e->bed_of);
    wq__redis_put_time(e, a);
    wq__args_bytes(a, how, 5);
    wq__args_int(a, atomic_load(&e->next_ns) / 1000);
    wq__args_int(a, (int64_t)atomic_load(&e->ready));
    wq__args_int(a, (int64_t)atomic_load(&e->held));
    (void)wq__script_send_ahead(&e->side_wire, &e->names, WQ__SCRIPT_SESSION,
                                a);
}

/* With both locks; false: there is news. */
static bool
end_enlist(struct wq__redis *e, const char *how)
{
    redisReply *reply = NULL;

    wq__wire_resume(&e->side_wire);
    const wq_err err = wq__script_run(
        &e->side_wire, &e->names, WQ__SCRIPT_SESSION, &e->side_args, &reply);
    wq__lock_release(&e->side_lock);
    const bool news = err || wq__reply_is(reply, "NEWS");
    atomic_store(&e->listed, !err && (!news || *how == 'w'));
    if (news)
        atomic_store(&e->has_news, true);
    if (reply)
        freeReplyObject(reply);
    return !news;
}

/* With the lock: let the server count the session as asleep. False: there is
 * news. */
static bool
enlist(struct wq__redis *e, const char *how)
{
    begin_enlist(e, how);
    return end_enlist(e, how);
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
    atomic_store(&e->has_news, true);
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
    if (!atomic_load(&e->waiting) && !atomic_load(&e->out) && lie_down(e) &&
        !enlist(e, "watch"))
        raise_event(e->unread_fd);
}

void
wq__redis_skip(struct wq__redis *e)
{
    if (!atomic_load(&e->watched))
        return;
    wq__lock_take(&e->wait_lock);
    clear_event(e->unread_fd);
    set_look(e);
    wq__lock_release(&e->wait_lock);
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

/* Engines whose sessions sleep together. */
struct bedroom {
    struct wq__redis *const *at;
    size_t                   n;
};

/* Take all locks, in order. A partition that is out has no part in it. */
static void
lock_all(struct bedroom b)
{
    for (size_t i = 0; i < b.n; i++)
        wq__lock_take(&b.at[i]->wait_lock);
}

static void
unlock_all(struct bedroom b)
{
    for (size_t i = 0; i < b.n; i++)
        wq__lock_release(&b.at[i]->wait_lock);
}

/* With the locks: those that `wanted` names enlist, all at the same time. The
 * last that was asked is awaited first: mostly the others have answered then, and
 * the process wakes up once. False: there is news. */
static bool
enlist_all(struct bedroom b, const bool *wanted)
{
    bool calm = true;

    for (size_t i = 0; i < b.n; i++)
        if (wanted[i])
            begin_enlist(b.at[i], "sleep");
    for (size_t i = b.n; i-- > 0;)
        if (wanted[i])
            calm &= end_enlist(b.at[i], "sleep");
    return calm;
}

/* With the locks: sleep on the servers, too. False: look at the store instead. If
 * a server cannot be reached, there is nothing to look at. */
static bool
fall_asleep(struct bedroom b)
{
    bool wanted[WQ__PARTS_MAX] = {false};
    bool calm = true;

    for (size_t i = 0; i < b.n; i++)
        calm &= !has_answer(b.at[i]);
    for (size_t i = 0; calm && i < b.n; i++)
        wanted[i] = !atomic_load(&b.at[i]->out) && lie_down(b.at[i]) &&
                    !atomic_load(&b.at[i]->listed);
    return calm && enlist_all(b, wanted);
}

/* With the locks: is there news that no token has told of? All still count as
 * asleep; so if there is, the next batch says that they are awake, also if a
 * token was under way. */
static bool
look(struct bedroom b)
{
    bool wanted[WQ__PARTS_MAX] = {false};
    bool calm = true;

    for (size_t i = 0; i < b.n; i++) {
        wanted[i] = atomic_load(&b.at[i]->listed);
        calm &= wanted[i];
    }
    calm &= enlist_all(b, wanted);
    for (size_t i = 0; i < b.n; i++)
        if (wanted[i]) {
            calm &= !has_answer(b.at[i]);
            atomic_store(&b.at[i]->listed, true);
        }
    return !calm;
}

/* Sleep once, without the locks. False: wait() must return. */
static bool
sleep_once(struct bedroom b, int64_t look_ns)
{
    enum { KICK, TIMER, OWN };
    const struct wq__redis *first = b.at[0];
    struct pollfd           fds[OWN + WQ__PARTS_MAX] = {
                  [KICK] = {.fd = first->kick_fd, .events = POLLIN},
                  [TIMER] = {.fd = first->has_beacon ? wq__beacon_fd(&first->beacon) : -1,
                             .events = POLLIN}};
    const int64_t left_ns = look_ns - wq__time_now();
    const int left_ms = left_ns > 0 ? (int)((left_ns + 999999) / 1000000) : 0;

    for (size_t i = 0; i < b.n; i++)
        fds[OWN + i] =
            (struct pollfd){.fd = b.at[i]->wait_wire.fd, .events = POLLIN};
    if (poll(fds, OWN + b.n, left_ms) < 0)
        return errno == EINTR;
    if (fds[KICK].revents)
        clear_event(first->kick_fd);
    return !fds[KICK].revents && !fds[TIMER].revents;
}

/* A look is two wake-ups: the timer, and the reply. An idle process shall not
 * have more than two a second. */
static int64_t
next_look(const struct wq__redis *e)
{
    return wq__time_now() + e->look_ns + e->look_ns / 4;
}

void
wq__redis_wait_on(struct wq__redis *const *parts, size_t n, int64_t until_ns)
{
    const struct bedroom      b = {parts, n};
    struct wq__redis         *first = parts[0];
    wq_clock                 *clock = first->base.clock;
    const struct wq__sentence said = wq__fail_save();
    int64_t                   look_ns = next_look(first);
    bool                      goes_on = true;

    set_timer(first, until_ns);
    lock_all(b);
    for (size_t i = 0; i < n; i++)
        atomic_store(&parts[i]->waiting, true);
    while (goes_on && fall_asleep(b)) {
        unlock_all(b);
        goes_on = sleep_once(b, look_ns);
        lock_all(b);
        if (goes_on && wq__time_now() >= look_ns) {
            goes_on = !look(b);
            look_ns = next_look(first);
        }
    }
    for (size_t i = 0; i < n; i++) {
        atomic_store(&parts[i]->waiting, false);
        /* the next batch may not concern all partitions */
        if (atomic_load(&parts[i]->watched) &&
            (n == 1 || atomic_load(&parts[i]->has_news)))
            raise_event(parts[i]->unread_fd);
    }
    unlock_all(b);
    if (first->has_beacon && first->watch.listed)
        clock->watch(clock, &first->watch, WQ_FOREVER);
    wq__fail_restore(&said);
}

void
wq__redis_wait(struct wq__engine *base, int64_t until_ns)
{
    struct wq__redis *e = engine_of(base);

    wq__redis_wait_on(&e, 1, until_ns);
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
