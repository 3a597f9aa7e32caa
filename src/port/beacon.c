/* SPDX-License-Identifier: MIT */
/* beacon.c: a descriptor that event loops can watch; see beacon.h. */
#include "port/beacon.h"

#include <errno.h>

#if WQ__HAVE_FUTEX

#include <assert.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "port/cancel.h"
#include "port/fork.h"
#include "port/time.h"

static void
close_if_open(int fd)
{
    const int cause = errno; /* the caller reports why init failed */
    const int state = wq__cancel_off();

    if (fd >= 0)
        (void)close(fd);
    wq__cancel_restore(state);
    errno = cause;
}

static int
make_timer(enum wq__timer timer)
{
    return timerfd_create(timer == WQ__TIMER_BOOTTIME ? CLOCK_BOOTTIME
                                                      : CLOCK_MONOTONIC,
                          TFD_CLOEXEC | TFD_NONBLOCK);
}

static int
watch(int epoll_fd, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

wq_err
wq__beacon_init(struct wq__beacon *b, enum wq__timer timer)
{
    *b = (struct wq__beacon){
        .epoll_fd = -1,
        .event_fd = -1,
        .timer_fd = -1,
        .armed_ns = WQ_FOREVER,
        .forks = wq__fork_begin(),
    };
    wq__lock_init(&b->lock);

    if ((b->epoll_fd = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
        (b->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0 ||
        watch(b->epoll_fd, b->event_fd) != 0)
        goto fail;
    if (timer != WQ__TIMER_NONE && ((b->timer_fd = make_timer(timer)) < 0 ||
                                    watch(b->epoll_fd, b->timer_fd) != 0))
        goto fail;
    b->open = true;
    return WQ_OK;

fail:
    close_if_open(b->timer_fd);
    close_if_open(b->event_fd);
    close_if_open(b->epoll_fd);
    return WQ_EIO;
}

void
wq__beacon_fini(struct wq__beacon *b)
{
    if (!b || !b->open)
        return;
    close_if_open(b->timer_fd);
    close_if_open(b->event_fd);
    close_if_open(b->epoll_fd);
    wq__lock_fini(&b->lock);
    b->open = false;
}

int
wq__beacon_fd(const struct wq__beacon *b)
{
    return b->open ? b->epoll_fd : -1;
}

wq_err
wq__beacon_include(struct wq__beacon *b, int fd)
{
    return watch(b->epoll_fd, fd) ? WQ_EIO : WQ_OK;
}

static bool
is_ours(const struct wq__beacon *b)
{
    return b->forks == wq__forks;
}

/* Neither call can fail: the counter is 0 or 1, and the descriptor is ours. */
static void
show(struct wq__beacon *b, bool lit)
{
    uint64_t      one = 1;
    const int     state = wq__cancel_off();
    const ssize_t n = lit ? write(b->event_fd, &one, sizeof one)
                          : read(b->event_fd, &one, sizeof one);

    wq__cancel_restore(state);
    assert(n == sizeof one);
    (void)n;
}

static void
set(struct wq__beacon *b, unsigned reason, bool on)
{
    if (((atomic_load_explicit(&b->reasons, memory_order_relaxed) & reason) !=
         0) == on)
        return;

    wq__lock_take(&b->lock);
    const unsigned was =
        atomic_load_explicit(&b->reasons, memory_order_relaxed);
    const unsigned is = on ? was | reason : was & ~reason;
    atomic_store_explicit(&b->reasons, is, memory_order_relaxed);
    if ((was != 0) != (is != 0) && is_ours(b))
        show(b, is != 0);
    wq__lock_release(&b->lock);
}

void
wq__beacon_light(struct wq__beacon *b, enum wq__lit reason)
{
    set(b, reason, true);
}

void
wq__beacon_dim(struct wq__beacon *b, enum wq__lit reason)
{
    set(b, reason, false);
}

/* Zero would stop the timer, so a deadline of zero or less becomes 1 ns, which
 * is long past, too. */
static struct timespec
timer_value(int64_t deadline_ns)
{
    if (deadline_ns == WQ_FOREVER)
        return (struct timespec){0};
    if (deadline_ns < 1)
        deadline_ns = 1;
    return wq__time_spec(deadline_ns);
}

void
wq__beacon_arm(struct wq__beacon *b, int64_t deadline_ns)
{
    const struct itimerspec until = {.it_value = timer_value(deadline_ns)};

    assert(b->timer_fd >= 0);
    if (deadline_ns == b->armed_ns)
        return;
    b->armed_ns = deadline_ns;
    if (is_ours(b)) /* cannot fail: the time is valid */
        (void)timerfd_settime(b->timer_fd, TFD_TIMER_ABSTIME, &until, NULL);
}

#else

wq_err
wq__beacon_init(struct wq__beacon *b, enum wq__timer timer)
{
    (void)timer;
    *b = (struct wq__beacon){.open = false};
    errno = ENOSYS;
    return WQ_ENOTSUP;
}

void
wq__beacon_fini(struct wq__beacon *b)
{
    (void)b;
}

int
wq__beacon_fd(const struct wq__beacon *b)
{
    (void)b;
    return -1;
}

wq_err
wq__beacon_include(struct wq__beacon *b, int fd)
{
    (void)b;
    (void)fd;
    errno = ENOSYS;
    return WQ_ENOTSUP;
}

void
wq__beacon_light(struct wq__beacon *b, enum wq__lit reason)
{
    (void)b;
    (void)reason;
}

void
wq__beacon_dim(struct wq__beacon *b, enum wq__lit reason)
{
    (void)b;
    (void)reason;
}

void
wq__beacon_arm(struct wq__beacon *b, int64_t deadline_ns)
{
    (void)b;
    (void)deadline_ns;
}

#endif
