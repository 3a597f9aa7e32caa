/* SPDX-License-Identifier: MIT */
/* keeper.c: holding keys for a script; see keeper.h.
 *
 * A request is a packet: a letter, for TAKE the session in 8 bytes, and a key.
 * The answer to SESSION is the number; to others "" if it was done, else why not.
 */
#include "queue/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <wq/inspect.h>
#ifdef WQ_HAVE_REDIS
#include <wq/redis.h>
#endif

#include "base/report.h"
#include "options/url.h"
#include "queue/open.h"

enum { SESSION = 'S', TAKE = 'T', FORGET = 'F', LOST = 'L' };
enum {
    HEAD = 1 + sizeof(uint64_t), /* bytes of a request before the key */
    ANSWER = 400,                /* of an answer, at most */
    ANSWER_S = 30,               /* seconds until it must be there */
    CLIENTS = 256,               /* at the same time */
    IDLE_MS = 5000,              /* a keeper without keys ends after this */
    LOOK_MS = 1000,              /* is the holder there? */
    START_MS = 30000             /* of a keeper, on a slow machine */
};

#ifdef WQ_HAVE_REDIS

/* ----------------------------------------------------------------- names -- */

/* When the process began, in ticks since the boot: with it a pid is that of one
 * process only. 0: there is no such process. */
static unsigned long long
start_of(int pid)
{
    char               path[64], text[1024];
    unsigned long long start = 0;
    const char        *at;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    const size_t len = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[len] = '\0';
    at = strrchr(text, ')'); /* the name may contain anything */
    if (at && (strncmp(at, ") Z", 3) == 0 || strncmp(at, ") X", 3) == 0))
        return 0; /* it has ended, and nobody has waited for it yet */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    if (at)
        start = strtoull(at, NULL, 10);
    return start;
}

/* FNV-1a: only to tell the few queues of one user apart. */
static uint64_t
hash_of(const char *text)
{
    uint64_t hash = 14695981039346656037u;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

struct name {
    struct sockaddr_un addr;
    socklen_t          len;
};

/* Abstract: it begins with a NUL. Each `wq done` finds it, also if its URL has
 * other options. Out of memory: a name that nobody has. */
static struct name
name_of(const struct options *options, int holder, unsigned long long start)
{
    struct name name = {.addr = {.sun_family = AF_UNIX}};
    char       *queue = url_identity(options->queue);
    const int   len =
        snprintf(name.addr.sun_path + 1, sizeof name.addr.sun_path - 1,
                 "wq-keeper-%u-%d-%llu-%016" PRIx64, (unsigned)geteuid(),
                 holder, start, queue ? hash_of(queue) : 0);

    free(queue);
    name.len =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    return name;
}

static int
open_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

/* Another user could have taken the name. */
static bool
is_ours(int fd)
{
    struct ucred peer;
    socklen_t    len = sizeof peer;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           peer.uid == geteuid();
}

static int
connect_to(const struct name *name)
{
    const struct timeval limit = {.tv_sec = ANSWER_S};
    const int            fd = open_socket();

    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&name->addr, name->len) == 0 &&
        is_ours(fd) &&
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

int
keeper_connect(const struct options *options, int holder)
{
    const struct name name = name_of(options, holder, start_of(holder));

    return connect_to(&name);
}

/* ------------------------------------------------------------- the keeper -- */

/* A key that it holds, or has lost: until `wq done` asks for it. */
struct held {
    wq_item *item;
    bool     unwanted; /* to be given back, as soon as the server answers */
};

struct keeper {
    wq_queue          *q;
    int                holder;
    unsigned long long start;     /* of the holder */
    int                holder_fd; /* a pidfd; -1: the system has none */
    int                listener;
    int                clients[CLIENTS]; /* -1: none */
    struct held       *held;
    size_t             n, cap;
};

static void
answer(int client, const char *text)
{
    (void)send(client, text, strlen(text) + 1, MSG_NOSIGNAL);
}

/* A hold that another session has taken over, or that was lost, changes nothing
 * by that. If the server does not answer, it is tried again later. */
static void
give_back(struct keeper *k, size_t i)
{
    const wq_err err = wq_finish(k->q, k->held[i].item, wq_result_back());

    k->held[i].unwanted = true;
    if (err != WQ_EAWAY && err != WQ_EIO)
        k->held[i] = k->held[--k->n];
}

static bool
is_key(wq_key a, wq_key b)
{
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

static void
drop(struct keeper *k, wq_key key)
{
    for (size_t i = k->n; i-- > 0;)
        if (is_key(k->held[i].item->key, key))
            give_back(k, i);
}

static void
take(struct keeper *k, int client, uint64_t session, wq_key key)
{
    wq_item *item = NULL;

    drop(k, key); /* one that it has lost, or somebody else could not have it */
    if (k->n == k->cap) {
        const size_t cap = k->cap ? 2 * k->cap : 16;
        struct held *held = realloc(k->held, cap * sizeof *held);
        if (!held) {
            answer(client, "out of memory");
            return;
        }
        k->held = held;
        k->cap = cap;
    }
    const wq_err err = wq_redis_take_over(k->q, session, key, &item);
    if (!err)
        k->held[k->n++] = (struct held){.item = item};
    answer(client, err ? queue_error(err) : "");
}

/* The server says that our session does not hold the key. If it is still on loan
 * here, the hold was lost; nobody asks again. */
static bool
find_lost(struct keeper *k, wq_key key)
{
    for (size_t i = 0; i < k->n; i++)
        if (!k->held[i].unwanted && is_key(k->held[i].item->key, key)) {
            give_back(k, i);
            return true;
        }
    return false;
}

static void
drop_unwanted(struct keeper *k)
{
    for (size_t i = k->n; i-- > 0;)
        if (k->held[i].unwanted)
            give_back(k, i);
}

/* False: the client has gone. */
static bool
serve(struct keeper *k, int client)
{
    static char   request[HEAD + WQ_KEY_MAX];
    uint64_t      session = wq_redis_session(k->q);
    const ssize_t n = recv(client, request, sizeof request, MSG_DONTWAIT);

    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    if (*request == SESSION) {
        (void)send(client, &session, sizeof session, MSG_NOSIGNAL);
    } else if (n > HEAD) {
        const wq_key key = wq_bytes(request + HEAD, (size_t)n - HEAD);
        memcpy(&session, request + 1, sizeof session);
        if (*request == TAKE) {
            take(k, client, session, key);
        } else if (*request == LOST) {
            answer(client, find_lost(k, key) ? "" : "not lost");
        } else {
            drop(k, key);
            answer(client, "");
        }
    }
    return true;
}

static void
accept_client(struct keeper *k)
{
    const int client = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC);
    size_t    i = 0;

    while (i < CLIENTS && k->clients[i] >= 0)
        i++;
    if (client >= 0 && i < CLIENTS && is_ours(client))
        k->clients[i] = client;
    else if (client >= 0)
        (void)close(client);
}

static bool
has_clients(const struct keeper *k)
{
    for (size_t i = 0; i < CLIENTS; i++)
        if (k->clients[i] >= 0)
            return true;
    return false;
}

/* One turn. False: the keeper ends. */
static bool
wait_and_serve(struct keeper *k)
{
    struct pollfd fds[2 + CLIENTS] = {
        {.fd = k->listener, .events = POLLIN},
        {.fd = k->holder_fd, .events = POLLIN},
    };
    const bool idle = k->n == 0 && !has_clients(k);

    for (size_t i = 0; i < CLIENTS; i++)
        fds[2 + i] = (struct pollfd){.fd = k->clients[i], .events = POLLIN};
    const int ready = poll(fds, 2 + CLIENTS, idle ? IDLE_MS : LOOK_MS);
    if (ready == 0 && idle)
        return false;
    for (size_t i = 0; ready > 0 && i < CLIENTS; i++)
        if (fds[2 + i].revents && !serve(k, k->clients[i])) {
            (void)close(k->clients[i]);
            k->clients[i] = -1;
        }
    if (ready > 0 && fds[0].revents)
        accept_client(k);
    drop_unwanted(k);
    return !(ready > 0 && fds[1].revents) && start_of(k->holder) == k->start;
}

/* ------------------------------------------------------------ starting it -- */

/* In the child: nothing of the script stays open: it waits for the end of its
 * pipes. */
static void
leave_script(int ready)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)setsid();
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        (void)dup2(null, fd);
    for (int fd = 3; fd < 1024; fd++) {
        const int flags = fcntl(fd, F_GETFD);
        if (flags >= 0 && !(flags & FD_CLOEXEC) && fd != ready)
            (void)close(fd);
    }
    if (chdir("/") != 0)
        errno = 0; /* it stays where it is */
    (void)prctl(PR_SET_NAME, "wq-keeper");
    (void)signal(SIGPIPE, SIG_IGN);
}

/* In the child. `name` is bound already, if nobody else has it. */
static _Noreturn void
be_keeper(const struct options *options, int holder, int ready)
{
    struct keeper     k = {.holder = holder, .start = start_of(holder)};
    const struct name name = name_of(options, holder, k.start);

    k.listener = open_socket();
    if (k.listener < 0 ||
        bind(k.listener, (const struct sockaddr *)&name.addr, name.len) != 0)
        _exit(write(ready, "n", 1) != 1); /* another one has just begun */
    if (!queue_open_for(options, holder, WQ_CONFIG(.ages = true), &k.q))
        _exit(1);           /* reported */
    options_blank(options); /* it lives as long as the script */
    k.holder_fd = (int)syscall(SYS_pidfd_open, holder, 0);
    for (size_t i = 0; i < CLIENTS; i++)
        k.clients[i] = -1;
    leave_script(ready);
    if (listen(k.listener, CLIENTS) != 0 || write(ready, "y", 1) != 1)
        _exit(1);
    (void)close(ready);
    while (wait_and_serve(&k))
        ;
    (void)close(k.listener); /* the next one may begin */
    if (k.n == 0)
        wq_destroy(k.q);
    _exit(0);
}

/* False: the child has reported why. */
static bool
start(const struct options *options, int holder)
{
    int  ready[2];
    char byte;

    if (pipe2(ready, O_CLOEXEC) != 0) {
        report_errno("get: cannot start");
        return false;
    }
    const pid_t child = fork();
    if (child == 0) {
        (void)close(ready[0]);
        be_keeper(options, holder, ready[1]);
    }
    (void)close(ready[1]);
    if (child < 0)
        report_errno("get: cannot start");
    const bool answered = child > 0 && read(ready[0], &byte, 1) == 1;
    (void)close(ready[0]);
    if (child > 0 && (!answered || byte == 'n'))
        (void)waitpid(child, NULL, 0);
    return answered;
}

int
keeper_start(const struct options *options, int holder)
{
    const struct timespec moment = {.tv_nsec = 5000000};

    if (!start_of(holder)) {
        report("get: there is no process %d", holder);
        return -1;
    }
    for (int ms = 0; ms < START_MS; ms += 5) {
        const int fd = keeper_connect(options, holder);
        if (fd >= 0 && keeper_session(fd)) /* it has accepted us: it stays */
            return fd;
        if (fd >= 0)
            (void)close(fd);
        if (!start(options, holder))
            return -1;
        if (ms > 0) /* another one has begun, and is not ready */
            (void)nanosleep(&moment, NULL);
    }
    report("get: the process that holds keys for process %d does not answer",
           holder);
    return -1;
}

/* --------------------------------------------------------------- requests -- */

/* The length of the answer; below 0: the keeper has ended. */
static ssize_t
ask(int fd, char what, uint64_t session, wq_key key, char *out, size_t size)
{
    const size_t len = HEAD + key.len;
    char        *request = malloc(len);

    if (!request)
        return -1;
    *request = what;
    memcpy(request + 1, &session, sizeof session);
    if (key.len)
        memcpy(request + HEAD, key.data, key.len);
    const bool sent = send(fd, request, len, MSG_NOSIGNAL) == (ssize_t)len;
    free(request);
    const ssize_t n = sent ? recv(fd, out, size, 0) : -1;
    return n > 0 ? n : -1;
}

uint64_t
keeper_session(int fd)
{
    uint64_t      session = 0;
    char          out[sizeof session];
    const ssize_t n = ask(fd, SESSION, 0, wq_bytes("", 0), out, sizeof out);

    if (n == (ssize_t)sizeof session)
        memcpy(&session, out, sizeof session);
    return session;
}

bool
keeper_take(int fd, uint64_t session, wq_key key, const char **why)
{
    static char   text[ANSWER];
    const ssize_t n = ask(fd, TAKE, session, key, text, sizeof text);

    text[sizeof text - 1] = '\0';
    *why = n < 0 ? "the process that holds keys for scripts does not answer"
                 : text;
    return n > 0 && !*text;
}

void
keeper_forget(int fd, wq_key key)
{
    char text[ANSWER];

    (void)ask(fd, FORGET, 0, key, text, sizeof text);
}

bool
keeper_has_lost(int fd, wq_key key)
{
    char text[ANSWER];

    return ask(fd, LOST, 0, key, text, sizeof text) > 0 && !*text;
}

#else /* without the backend nobody asks */

int
keeper_connect(const struct options *options, int holder)
{
    (void)options, (void)holder;
    return -1;
}

int
keeper_start(const struct options *options, int holder)
{
    return keeper_connect(options, holder);
}

uint64_t
keeper_session(int fd)
{
    (void)fd;
    return 0;
}

bool
keeper_take(int fd, uint64_t session, wq_key key, const char **why)
{
    (void)fd, (void)session, (void)key;
    *why = "not supported";
    return false;
}

void
keeper_forget(int fd, wq_key key)
{
    (void)fd, (void)key;
}

bool
keeper_has_lost(int fd, wq_key key)
{
    (void)fd, (void)key;
    return false;
}
#endif
