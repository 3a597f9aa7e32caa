/* SPDX-License-Identifier: MIT */
/* loop_epoll.c: a queue in a loop of epoll. */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "loop.h"

/* begin: loop */
static int
watch(int loop, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    return epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

static void
on_term(int signals, wq_queue *q)
{
    struct signalfd_siginfo info;

    if (read(signals, &info, sizeof info) == sizeof info)
        wq_shutdown(q); /* work_on_keys() sees it */
}

static void
run(int loop, int signals, wq_queue *q)
{
    struct epoll_event event;

    for (bool open = true; open;) {
        if (epoll_wait(loop, &event, 1, -1) != 1)
            continue; /* interrupted */
        if (event.data.fd == signals)
            on_term(signals, q);
        else
            open = work_on_keys(q);
    }
}
/* end: loop */

/* begin: main */
int
main(int argc, char **argv)
{
    wq_queue *q = open_queue(argc, argv);
    sigset_t  term;

    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &term, NULL);
    const int signals = signalfd(-1, &term, SFD_CLOEXEC);
    const int loop = epoll_create1(EPOLL_CLOEXEC);
    if (!q || watch(loop, signals) || watch(loop, wq_fd(q))) {
        perror("loop_epoll");
        return 1;
    }
    run(loop, signals, q);
    (void)close(loop); /* before the descriptors in it */
    (void)close(signals);
    return close_queue(q);
}
/* end: main */
