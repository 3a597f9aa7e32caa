/* SPDX-License-Identifier: MIT */
/* actor.c: children that do as they are told; see actor.h. */
#include "support/actor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/wq_test.h"

enum { ACTORS = 16 };

struct actor {
    pid_t pid; /* 0: none */
    int   fd;
};

struct order {
    actor_task task;
    char       arg[ACTOR_ARG];
};

static struct actor actors[ACTORS];

static _Noreturn void
act(int fd)
{
    struct order order;

    while (recv(fd, &order, sizeof order, 0) == sizeof order) {
        const int64_t answer = order.task(order.arg);

        if (send(fd, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer)
            break;
    }
    _exit(0);
}

/* Only the test has the other ends: an actor ends when the test does. */
static void
close_others(void)
{
    for (size_t i = 0; i < ACTORS; i++)
        if (actors[i].pid)
            (void)close(actors[i].fd);
}

struct actor *
actor_start(void)
{
    struct actor *a = actors;
    int           fds[2];

    while (a->pid)
        assert_true(++a < actors + ACTORS);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    (void)fflush(NULL);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close_others();
        (void)close(fds[0]);
        act(fds[1]);
    }
    (void)close(fds[1]);
    a->pid = pid;
    a->fd = fds[0];
    return a;
}

void
actor_post(struct actor *a, actor_task task, const char *arg)
{
    struct order order = {.task = task};

    assert_true(strlen(arg) < sizeof order.arg);
    (void)snprintf(order.arg, sizeof order.arg, "%s", arg);
    assert_int_equal(send(a->fd, &order, sizeof order, MSG_NOSIGNAL),
                     sizeof order);
}

static void
bury(struct actor *a)
{
    while (waitpid(a->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    (void)close(a->fd);
    *a = (struct actor){0, -1};
}

bool
actor_answers(struct actor *a, int64_t *answer)
{
    struct pollfd p = {.fd = a->fd, .events = POLLIN};

    if (poll(&p, 1, ACTOR_LIMIT_S * 1000) != 1)
        fail_msg("no answer from process %ld", (long)a->pid);
    if (recv(a->fd, answer, sizeof *answer, 0) == sizeof *answer)
        return true;
    bury(a);
    return false;
}

int64_t
actor_await(struct actor *a)
{
    const pid_t pid = a->pid;
    int64_t     answer = 0;

    if (!actor_answers(a, &answer))
        fail_msg("process %ld has died", (long)pid);
    return answer;
}

int64_t
actor_do(struct actor *a, actor_task task, const char *arg)
{
    actor_post(a, task, arg);
    return actor_await(a);
}

void
actor_signal(struct actor *a, int signal)
{
    assert_int_equal(kill(a->pid, signal), 0);
    if (signal == SIGKILL)
        bury(a);
}

pid_t
actor_pid(const struct actor *a)
{
    return a->pid;
}

int
actor_end_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < ACTORS; i++) {
        if (!actors[i].pid)
            continue;
        (void)kill(actors[i].pid, SIGKILL);
        bury(&actors[i]);
    }
    return 0;
}
