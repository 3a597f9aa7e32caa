/* SPDX-License-Identifier: MIT */
/* loop_epoll.c: a queue as one of the things that epoll waits for. */
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "loop.h"

/* begin: work */
/* The queue is readable: work on what there is, but let others have their turn
 * (it is still readable then). False: nothing will come any more. */
static bool
on_keys(wq_queue *q)
{
    wq_item *item;
    wq_err   err = WQ_OK;

    for (int i = 0; i < 64 && !(err = wq_get_within(q, 0, &item)); i++) {
        work_on(q, item->key);
        wq_done(q, item);
    }
    return err != WQ_ESHUTDOWN; /* another thread was faster: WQ_ETIMEDOUT */
}
/* end: work */

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
        wq_shutdown(q); /* on_keys() sees it */
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
            open = on_keys(q);
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
    (void)close(loop); /* before the descriptor it watches */
    (void)close(signals);
    return close_queue(q);
}
/* end: main */
