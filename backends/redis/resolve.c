/* SPDX-License-Identifier: MIT */
/* resolve.c: looking up names of hosts by a deadline; see resolve.h. */
#include "resolve.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire.h"

/* Shared by the thread that looks up and the one that waits. */
struct wq__lookup {
    atomic_int       users;    /* the last one frees it */
    int              ended_fd; /* an eventfd: it has ended */
    atomic_bool      ended;    /* the next two are set: released, acquired */
    int              code;
    struct addrinfo *list;
    char            *port; /* behind the host */
    char             host[];
};

static const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                      .ai_socktype = SOCK_STREAM};

/* ---- the lookup ----------------------------------------------------------- */

/* The release of one user is acquired by the other, which frees what both have
 * written. */
static void
leave(struct wq__lookup *l)
{
    if (atomic_fetch_sub(&l->users, 1) > 1)
        return;
    if (l->list)
        freeaddrinfo(l->list);
    if (l->ended_fd >= 0)
        (void)close(l->ended_fd);
    free(l);
}

static void *
look_up(void *arg)
{
    struct wq__lookup *l = arg;
    const uint64_t     one = 1;

    l->code = getaddrinfo(l->host, l->port, &hints, &l->list);
    atomic_store(&l->ended, true);
    if (write(l->ended_fd, &one, sizeof one) != sizeof one)
        errno = 0; /* cannot be: the counter was 0 */
    leave(l);
    return NULL;
}

/* Signals of the program are for its own threads. */
static bool
start_thread(struct wq__lookup *l)
{
    pthread_t      thread;
    pthread_attr_t attr;
    sigset_t       all, before;

    if (pthread_attr_init(&attr))
        return false;
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_fetch_add(&l->users, 1);
    const bool started = pthread_create(&thread, &attr, look_up, l) == 0;
    if (!started) /* nobody else has it */
        atomic_fetch_sub(&l->users, 1);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return started;
}

/* NULL: out of memory, descriptors or threads. */
static struct wq__lookup *
start(const char *host, const char *port)
{
    const size_t       len = strlen(host) + 1;
    struct wq__lookup *l = calloc(1, sizeof *l + len + strlen(port) + 1);

    if (!l)
        return NULL;
    atomic_init(&l->users, 1);
    memcpy(l->host, host, len);
    l->port = l->host + len;
    memcpy(l->port, port, strlen(port) + 1);
    l->ended_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->ended_fd >= 0 && start_thread(l))
        return l;
    leave(l);
    return NULL;
}

/* ---- interface ------------------------------------------------------------ */

void
wq__resolve_abandon(struct wq__lookup **pending)
{
    if (*pending)
        leave(*pending);
    *pending = NULL;
}

int
wq__resolve(struct wq__lookup **pending, const char *host, const char *port,
            int64_t deadline_ns, struct addrinfo **out)
{
    struct addrinfo numeric = hints;

    numeric.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
    if (getaddrinfo(host, port, &numeric, out) == 0)
        return 0;
    if (*pending && (strcmp((*pending)->host, host) != 0 ||
                     strcmp((*pending)->port, port) != 0))
        wq__resolve_abandon(pending); /* the server is another one now */
    if (!*pending)
        *pending = start(host, port);
    if (!*pending)
        return EAI_MEMORY;
    if (!wq__wire_await((*pending)->ended_fd, POLLIN, deadline_ns) ||
        !atomic_load(&(*pending)->ended))
        return EAI_AGAIN;
    const int code = (*pending)->code;
    if (!code) {
        *out = (*pending)->list;
        (*pending)->list = NULL;
    }
    wq__resolve_abandon(pending);
    return code;
}
