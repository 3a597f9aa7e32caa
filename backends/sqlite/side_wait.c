/* SPDX-License-Identifier: MIT */
/* side_wait.c: how does a handle sleep until something happens elsewhere?
 *
 * In one poll() of an epoll set with the FIFO of the session and the pidfds of
 * others (which is also what fd() returns), an eventfd for kick(), and a beacon
 * that the clock makes readable. No thread, no signal; one wake-up a second while
 * nothing happens: then the caller looks at the database, and finds out, too, if
 * its file was deleted. A program that sleeps on fd() does the same: a timer in
 * the epoll set makes the descriptor readable once a second, until the next look.
 *
 * Where the file system has no FIFOs, or the system no beacons, it looks at the
 * epoch and at the clock every STEP_MS instead.
 */
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "port/time.h"
#include "side_inside.h"

enum { STEP_MS = 20 }; /* a delay that people do not notice */

/* ---- kicks --------------------------------------------------------------- */

void
wq__side_kick(struct wq__side *s)
{
    const uint64_t one = 1;

    if (write(s->kick_fd, &one, sizeof one) != sizeof one)
        errno = 0; /* the counter is full: the kick is there */
}

static void
take_kick(struct wq__side *s)
{
    uint64_t count;

    if (read(s->kick_fd, &count, sizeof count) != sizeof count)
        errno = 0;
}

/* ---- the clock ----------------------------------------------------------- */

static void
set_timer(struct wq__side *s, wq_clock *clock, int64_t until_ns)
{
    if (!s->clock) {
        if (until_ns == WQ_FOREVER || wq__beacon_init(&s->beacon, clock->timer))
            return;
        s->watch.beacon = &s->beacon;
        s->watch.sleeps = true;
        s->clock = clock;
    }
    clock->watch(clock, &s->watch, until_ns);
}

/* A timer of the system may stay armed; a fake clock keeps a list of watches,
 * which a child of fork() should not find this one in. */
static void
stop_timer(struct wq__side *s)
{
    if (s->watch.listed)
        s->clock->watch(s->clock, &s->watch, WQ_FOREVER);
}

/* ---- waiting ------------------------------------------------------------- */

/* With s->lock: was the own session found ended? */
static bool
is_lost(const struct wq__side *s)
{
    if (s->slot < 0)
        return false;
    const struct wq__side_slot *slot = wq__side_slot(s, s->slot);
    return atomic_load_explicit(&slot->id, memory_order_relaxed) != s->id ||
           atomic_load_explicit(&slot->until, memory_order_relaxed) ==
               WQ__SIDE_ENDED;
}

/* With s->lock: is there something that a user of fd() must still see? Then the
 * FIFO stays readable, and a sleeper would be woken at once. */
static bool
is_unread(const struct wq__side *s)
{
    return wq__side_has_news(s) ||
           (s->watched &&
            atomic_load_explicit(&s->peer_died, memory_order_relaxed));
}

/* Fall asleep, unless there is a reason not to. */
static bool
may_sleep(struct wq__side *s)
{
    wq__lock_take(&s->lock);
    s->waiting = true;
    bool may = !is_lost(s);
    if (may) {
        (void)wq__side_open_bell(s); /* without: in steps */
        wq__side_lie_down(s);
        wq__side_watch_peers(s);
        may = !is_unread(s);
    }
    wq__lock_release(&s->lock);
    return may;
}

static void
wake_up(struct wq__side *s)
{
    wq__lock_take(&s->lock);
    s->waiting = false;
    if (!s->watched)
        wq__side_stand_up(s);
    wq__lock_release(&s->lock);
    stop_timer(s);
}

/* The FIFO or a pidfd was readable. A byte can be for a session that has begun,
 * whose process must be watched now, or for nothing: then wait() sleeps on. The
 * FIFO stays readable for a user of fd() who must look. */
static void
take_news(struct wq__side *s)
{
    wq__lock_take(&s->lock);
    wq__side_sweep_peers(s);
    wq__side_drain_bell(s);
    if (s->watched && is_unread(s))
        wq__side_ring_self(s);
    wq__lock_release(&s->lock);
}

/* How long may one poll() take, in ms, if the look is due at `look_ns`? */
static int
sleep_ms(int64_t look_ns, bool in_steps)
{
    const int64_t left_ns = look_ns - wq__time_now();
    const int64_t left_ms = left_ns > 0 ? (left_ns + 999999) / 1000000 : 0;

    return (int)(in_steps && left_ms > STEP_MS ? STEP_MS : left_ms);
}

/* Sleep once. False: wait() must return. */
static bool
sleep_once(struct wq__side *s, wq_clock *clock, int64_t until_ns,
           int64_t look_ns)
{
    wq__lock_take(&s->lock);
    struct pollfd fds[] = {
        {.fd = s->news_fd, .events = POLLIN},
        {.fd = s->kick_fd, .events = POLLIN},
        {.fd = wq__beacon_fd(&s->beacon), .events = POLLIN},
        {.fd = s->look_fd, .events = POLLIN},
    };
    const bool in_steps = (s->slot >= 0 && s->bell_fd < 0) ||
                          (fds[2].fd < 0 && until_ns != WQ_FOREVER);
    wq__lock_release(&s->lock);

    const int n = poll(fds, 4, sleep_ms(look_ns, in_steps));
    if (n < 0)
        return errno == EINTR;
    if (fds[1].revents) {
        take_kick(s);
        return false;
    }
    if (fds[0].revents)
        take_news(s);
    if (fds[2].revents || (in_steps && clock->now(clock) >= until_ns))
        return false;
    if (fds[3].revents) /* stays readable until looks() */
        return false;
    return wq__time_now() < look_ns;
}

void
wq__side_wait(struct wq__side *s, uint32_t queue, wq_clock *clock,
              int64_t until_ns)
{
    const int64_t look_ns = wq__time_now() + s->look_ns;

    assert(s->slot < 0 || queue == s->queue);
    (void)queue;
    set_timer(s, clock, until_ns);
    while (may_sleep(s) && sleep_once(s, clock, until_ns, look_ns))
        ;
    wake_up(s);
}

/* ---- event loops --------------------------------------------------------- */

/* With s->lock: if a look of a user of fd() was due, the next one is due `look_ns`
 * from now. A look that is not due yet is not put off: batches of other threads,
 * and of the one that renews the lease, must not keep the descriptor silent. */
static void
set_look(struct wq__side *s)
{
    if (s->look_fd < 0)
        return;
    const int64_t now = wq__time_now();
    if (now < s->look_at_ns)
        return;
    const int64_t           at_ns = now + s->look_ns;
    const struct itimerspec at = {
        .it_value = {.tv_sec = (time_t)(at_ns / 1000000000),
                     .tv_nsec = (long)(at_ns % 1000000000)}};
    if (timerfd_settime(s->look_fd, TFD_TIMER_ABSTIME, &at, NULL) == 0)
        s->look_at_ns = at_ns;
}

void
wq__side_looks(struct wq__side *s)
{
    wq__lock_take(&s->lock);
    set_look(s);
    wq__lock_release(&s->lock);
}

/* With s->lock: -1: errno. */
static int
open_look(struct wq__side *s)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0};

    if (s->look_fd >= 0)
        return 0;
    s->look_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (s->look_fd < 0)
        return -1;
    if (epoll_ctl(s->news_fd, EPOLL_CTL_ADD, s->look_fd, &event) != 0) {
        const int cause = errno;
        wq__side_close_fd(&s->look_fd);
        errno = cause;
        return -1;
    }
    set_look(s);
    return 0;
}

int
wq__side_fd(struct wq__side *s)
{
    wq__lock_take(&s->lock);
    int fd = -1;
    if ((is_lost(s) ? s->news_fd >= 0 : wq__side_open_bell(s) == 0) &&
        open_look(s) == 0) {
        fd = s->news_fd;
        s->watched = true;
        wq__side_lie_down(s);
        wq__side_watch_peers(s);
        if (wq__side_has_news(s))
            wq__side_ring_self(s);
    }
    const int cause = errno;
    wq__lock_release(&s->lock);
    errno = cause;
    return fd;
}
