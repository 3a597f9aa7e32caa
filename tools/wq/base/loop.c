/* SPDX-License-Identifier: MIT */
/* loop.c: how does one thread wait for descriptors, timers and signals?
 *
 * One epoll with one timerfd and one signalfd. The timerfd is set only if the
 * earliest timer is earlier than what it is set to: a spurious wake-up now and
 * then is cheaper than a system call at each change.
 */
#include "base/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NEVER INT64_MAX
#define BATCH 64 /* events of one epoll_wait() */

struct loop {
    int     epoll;
    bool    stopped;
    int64_t now_ns; /* of the last wake-up */

    int           timerfd;
    struct watch  timer_watch;
    int64_t       armed_ns;     /* what timerfd is set to; NEVER: not set */
    struct timer *first, *last; /* by at_ns */

    int          signalfd; /* -1: none */
    struct watch signal_watch;
    void (*signal_got)(void *ctx, int number);
    void *signal_ctx;

    void (*work)(void *ctx); /* before each sleep */
    void *work_ctx;

    struct epoll_event events[BATCH]; /* of the last epoll_wait() */
    int                n, at;         /* how many, and the next one */
};

int64_t
loop_refresh(struct loop *loop)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    loop->now_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    return loop->now_ns;
}

int64_t
loop_now(const struct loop *loop)
{
    return loop->now_ns;
}

/* -------------------------------------------------------------- watches -- */

static bool
control(struct loop *loop, int verb, struct watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};

    return epoll_ctl(loop->epoll, verb, watch->fd, &event) == 0;
}

bool
loop_watch(struct loop *loop, struct watch *watch, int fd, uint32_t events,
           void (*ready)(void *ctx), void *ctx)
{
    *watch = (struct watch){.fd = fd, .set = true, .ready = ready, .ctx = ctx};
    watch->set = control(loop, EPOLL_CTL_ADD, watch, events);
    return watch->set;
}

void
loop_rewatch(struct loop *loop, struct watch *watch, uint32_t events)
{
    if (watch->set)
        (void)control(loop, EPOLL_CTL_MOD, watch, events);
}

void
loop_unwatch(struct loop *loop, struct watch *watch)
{
    if (!watch->set)
        return;
    (void)control(loop, EPOLL_CTL_DEL, watch, 0);
    watch->set = false;
    for (int i = loop->at; i < loop->n; i++)
        if (loop->events[i].data.ptr == watch)
            loop->events[i].data.ptr = NULL; /* it may be freed */
}

/* --------------------------------------------------------------- timers -- */

void
loop_timer_clear(struct loop *loop, struct timer *timer)
{
    if (!timer->set)
        return;
    *(timer->before ? &timer->before->after : &loop->first) = timer->after;
    *(timer->after ? &timer->after->before : &loop->last) = timer->before;
    timer->set = false;
}

void
loop_timer_set(struct loop *loop, struct timer *timer, int64_t at_ns,
               void (*due)(void *ctx), void *ctx)
{
    loop_timer_clear(loop, timer);
    if (at_ns <= loop->now_ns)
        at_ns = loop->now_ns + 1; /* not in the current round */
    struct timer *before = loop->last;
    while (before && before->at_ns > at_ns)
        before = before->before;

    *timer = (struct timer){.at_ns = at_ns,
                            .set = true,
                            .due = due,
                            .ctx = ctx,
                            .before = before,
                            .after = before ? before->after : loop->first};
    *(timer->before ? &timer->before->after : &loop->first) = timer;
    *(timer->after ? &timer->after->before : &loop->last) = timer;
}

/* Calls all that are due. Timers they set wait for the next round. */
static void
call_due(struct loop *loop)
{
    const int64_t now = loop->now_ns;

    for (struct timer *t; (t = loop->first) && t->at_ns <= now;) {
        loop_timer_clear(loop, t);
        t->due(t->ctx);
        if (loop->stopped)
            return;
    }
}

static void
on_timerfd(void *ctx)
{
    struct loop *loop = ctx;
    uint64_t     times;

    const ssize_t n = read(loop->timerfd, &times, sizeof times);
    (void)n; /* only the wake-up matters */
    loop->armed_ns = NEVER;
}

static void
arm(struct loop *loop)
{
    if (!loop->first || loop->first->at_ns >= loop->armed_ns)
        return;
    const int64_t at = loop->first->at_ns > 1 ? loop->first->at_ns : 1;
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(at / 1000000000),
                     .tv_nsec = (long)(at % 1000000000)}};
    (void)timerfd_settime(loop->timerfd, TFD_TIMER_ABSTIME, &when, NULL);
    loop->armed_ns = loop->first->at_ns;
}

/* -------------------------------------------------------------- signals -- */

static void
on_signalfd(void *ctx)
{
    struct loop            *loop = ctx;
    struct signalfd_siginfo got;

    while (read(loop->signalfd, &got, sizeof got) == sizeof got)
        loop->signal_got(loop->signal_ctx, (int)got.ssi_signo);
}

bool
loop_signals(struct loop *loop, const int *numbers, size_t n,
             void (*got)(void *ctx, int number), void *ctx)
{
    sigset_t         set;
    struct sigaction was;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < n; i++)
        if (sigaction(numbers[i], NULL, &was) == 0 && was.sa_handler != SIG_IGN)
            (void)sigaddset(&set, numbers[i]);
    loop->signal_got = got;
    loop->signal_ctx = ctx;
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
        return false;
    loop->signalfd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return loop->signalfd >= 0 &&
           loop_watch(loop, &loop->signal_watch, loop->signalfd, EPOLLIN,
                      on_signalfd, loop);
}

/* ------------------------------------------------------------- the loop -- */

struct loop *
loop_create(void)
{
    struct loop *loop = calloc(1, sizeof *loop);

    if (!loop)
        return NULL;
    loop->armed_ns = NEVER;
    loop->signalfd = -1;
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    loop->timerfd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->epoll < 0 || loop->timerfd < 0 ||
        !loop_watch(loop, &loop->timer_watch, loop->timerfd, EPOLLIN,
                    on_timerfd, loop)) {
        loop_destroy(loop);
        return NULL;
    }
    (void)loop_refresh(loop);
    return loop;
}

void
loop_destroy(struct loop *loop)
{
    const int err = errno;

    if (!loop)
        return;
    if (loop->signalfd >= 0)
        (void)close(loop->signalfd);
    if (loop->timerfd >= 0)
        (void)close(loop->timerfd);
    if (loop->epoll >= 0)
        (void)close(loop->epoll);
    free(loop);
    errno = err;
}

void
loop_before_sleep(struct loop *loop, void (*work)(void *ctx), void *ctx)
{
    loop->work = work;
    loop->work_ctx = ctx;
}

void
loop_stop(struct loop *loop)
{
    loop->stopped = true;
}

static void
call_ready(struct loop *loop)
{
    while (loop->at < loop->n && !loop->stopped) {
        const struct epoll_event *event = &loop->events[loop->at++];
        struct watch             *watch = event->data.ptr;
        if (watch)
            watch->ready(watch->ctx);
    }
    loop->at = loop->n = 0;
}

bool
loop_run(struct loop *loop)
{
    loop->stopped = false;
    for (;;) {
        if (loop->work)
            loop->work(loop->work_ctx);
        if (loop->stopped)
            return true;
        arm(loop);
        const int n = epoll_wait(loop->epoll, loop->events, BATCH, -1);
        if (n < 0 && errno != EINTR)
            return false;
        (void)loop_refresh(loop);
        loop->n = n < 0 ? 0 : n;
        call_ready(loop);
        if (!loop->stopped)
            call_due(loop);
    }
}
