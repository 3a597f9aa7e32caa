/* SPDX-License-Identifier: MIT */
/* proxy.c: damaged connections; see proxy.h. */
#define _GNU_SOURCE
#include "redis/proxy.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST = 64 };

struct proxy {
    struct sockaddr_storage there_addr; /* of the server */
    char                    path[200];
    int                     listener, stop_fd;
    atomic_int              mode;
    atomic_int              replies; /* to pass before one is lost */
    atomic_uint             connections;
    pthread_t               thread;
    int                     client[MOST], there[MOST];
    bool                    held[MOST]; /* its replies wait */
    bool                    late[MOST]; /* its requests wait */
};

static struct sockaddr_storage
path_of(const char *path)
{
    struct sockaddr_storage all = {.ss_family = AF_UNIX};
    struct sockaddr_un     *addr = (struct sockaddr_un *)(void *)&all;
    const size_t            len = strlen(path);

    if (len >= sizeof addr->sun_path)
        abort();
    memcpy(addr->sun_path, path, len + 1);
    return all;
}

/* A port of this machine; 0: any. */
static struct sockaddr_storage
port_of(unsigned port)
{
    struct sockaddr_storage all = {.ss_family = AF_INET};
    struct sockaddr_in     *addr = (struct sockaddr_in *)(void *)&all;

    addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    addr->sin_port = htons((uint16_t)port);
    return all;
}

static int
open_socket(const struct sockaddr_storage *addr, bool listens)
{
    const struct sockaddr *a = (const struct sockaddr *)(const void *)addr;
    const socklen_t        len = addr->ss_family == AF_UNIX
                                     ? sizeof(struct sockaddr_un)
                                     : sizeof(struct sockaddr_in);
    const int fd = socket(addr->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || (listens ? bind(fd, a, len) || listen(fd, MOST)
                           : connect(fd, a, len))) {
        if (fd >= 0)
            (void)close(fd);
        return -1;
    }
    return fd;
}

static void
end(struct proxy *p, int i)
{
    (void)close(p->client[i]);
    (void)close(p->there[i]);
    p->client[i] = p->there[i] = -1;
}

static void
begin(struct proxy *p)
{
    const int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);
    const int there = open_socket(&p->there_addr, false);
    int       i = 0;

    while (i < MOST && p->client[i] >= 0)
        i++;
    if (client < 0 || there < 0 || i == MOST) {
        if (client >= 0)
            (void)close(client);
        if (there >= 0)
            (void)close(there);
        return;
    }
    atomic_fetch_add(&p->connections, 1);
    p->client[i] = client;
    p->there[i] = there;
    p->held[i] = p->late[i] = false;
}

static bool
pass(int from, int to, bool split)
{
    char    bytes[65536];
    ssize_t n = recv(from, bytes, sizeof bytes, 0);

    if (n <= 0)
        return false;
    for (ssize_t at = 0; at < n;) {
        const ssize_t sent =
            send(to, bytes + at, split ? 1 : (size_t)(n - at), MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += sent;
    }
    return true;
}

static bool
names_key(int client)
{
    char          bytes[65536];
    const ssize_t n = recv(client, bytes, sizeof bytes, MSG_PEEK);

    return n > 0 && memmem(bytes, (size_t)n, PROXY_KEY, strlen(PROXY_KEY));
}

/* What the mode asks for once is done: pass all. Before anybody can see that, so
 * that a mode which the test sets then stays. */
static void
end_mode(struct proxy *p, int mode)
{
    (void)atomic_compare_exchange_strong(&p->mode, &mode, PROXY_PASS);
}

/* A side of connection `i` is readable. */
static void
serve(struct proxy *p, int i, bool from_client)
{
    const int mode = atomic_load(&p->mode);
    const int from = from_client ? p->client[i] : p->there[i];
    const int to = from_client ? p->there[i] : p->client[i];

    if (mode == PROXY_CUT || (mode == PROXY_LOSE && !from_client &&
                              atomic_fetch_sub(&p->replies, 1) <= 0)) {
        if (mode == PROXY_LOSE)
            end_mode(p, mode);
        end(p, i);
        return;
    }
    if (mode == PROXY_NOISE) {
        static const char noise[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
        (void)send(p->client[i], noise, strlen(noise), MSG_NOSIGNAL);
        end(p, i);
        return;
    }
    if (mode == PROXY_LATE && from_client) {
        p->late[i] = true;
        end_mode(p, mode);
        return;
    }
    const bool holds =
        from_client &&
        (mode == PROXY_HALF || (mode == PROXY_HOLD_ONE && names_key(from)));
    if (mode == PROXY_DELAY && !from_client)
        (void)poll(NULL, 0, PROXY_DELAY_MS);
    if (!pass(from, to, mode == PROXY_SPLIT)) {
        end(p, i);
    } else if (holds) {
        p->held[i] = true;
        end_mode(p, mode);
        if (mode == PROXY_HALF)
            (void)shutdown(from, SHUT_WR);
    }
}

/* Which sides of the connections are read? */
static void
watch(const struct proxy *p, struct pollfd *fds)
{
    const int mode = atomic_load(&p->mode);

    for (int i = 0; i < MOST; i++) {
        const bool waits = mode == PROXY_HOLD || p->held[i];

        fds[2 * i] = (struct pollfd){
            .fd = mode == PROXY_HANG || p->late[i] ? -1 : p->client[i],
            .events = POLLIN};
        fds[2 * i + 1] = (struct pollfd){
            .fd = mode == PROXY_HANG || waits ? -1 : p->there[i],
            .events = POLLIN};
    }
}

static void *
run(void *arg)
{
    struct proxy *p = arg;

    for (;;) {
        struct pollfd fds[2 + 2 * MOST];

        fds[0] = (struct pollfd){.fd = p->stop_fd, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = p->listener, .events = POLLIN};
        watch(p, fds + 2);
        if (poll(fds, 2 + 2 * MOST, -1) < 0)
            continue;
        if (fds[0].revents) {
            uint64_t count;
            if (read(p->stop_fd, &count, sizeof count) < 0 || count > 1000)
                return NULL;
            memset(p->held, 0, sizeof p->held);
            memset(p->late, 0, sizeof p->late);
            continue; /* the mode has changed */
        }
        for (int i = 0; i < MOST; i++) {
            if (fds[2 + 2 * i].revents && p->client[i] >= 0)
                serve(p, i, true);
            if (fds[3 + 2 * i].revents && p->client[i] >= 0)
                serve(p, i, false);
        }
        if (fds[1].revents)
            begin(p);
    }
}

static void
tell(struct proxy *p, uint64_t n)
{
    if (write(p->stop_fd, &n, sizeof n) != sizeof n)
        abort();
}

static struct proxy *
start(struct sockaddr_storage here, struct sockaddr_storage there)
{
    struct proxy *p = calloc(1, sizeof *p);

    if (!p)
        abort();
    p->there_addr = there;
    p->listener = open_socket(&here, true);
    p->stop_fd = eventfd(0, EFD_CLOEXEC);
    for (int i = 0; i < MOST; i++)
        p->client[i] = p->there[i] = -1;
    if (p->listener < 0 || p->stop_fd < 0 ||
        pthread_create(&p->thread, NULL, run, p))
        abort();
    return p;
}

struct proxy *
proxy_start(const struct redis_server *server)
{
    char path[200];

    (void)snprintf(path, sizeof path, "%s/proxy", server->dir);
    (void)remove(path);
    struct proxy *p = start(path_of(path), path_of(server->socket));
    (void)snprintf(p->path, sizeof p->path, "%s", path);
    return p;
}

struct proxy *
proxy_start_tcp(const char *server_port, char port[16])
{
    struct sockaddr_in addr;
    socklen_t          len = sizeof addr;
    struct proxy      *p =
        start(port_of(0), port_of((unsigned)strtoul(server_port, NULL, 10)));

    if (getsockname(p->listener, (struct sockaddr *)(void *)&addr, &len))
        abort();
    (void)snprintf(port, 16, "%hu", ntohs(addr.sin_port));
    return p;
}

const char *
proxy_socket(const struct proxy *p)
{
    return p->path;
}

void
proxy_set(struct proxy *p, enum proxy_mode mode)
{
    atomic_store(&p->mode, mode);
    tell(p, 1);
}

void
proxy_lose_after(struct proxy *p, int replies)
{
    atomic_store(&p->replies, replies);
    proxy_set(p, PROXY_LOSE);
}

unsigned
proxy_connections(const struct proxy *p)
{
    return atomic_load(&p->connections);
}

void
proxy_stop(struct proxy *p)
{
    tell(p, 100000);
    (void)pthread_join(p->thread, NULL);
    for (int i = 0; i < MOST; i++)
        if (p->client[i] >= 0)
            end(p, i);
    (void)close(p->listener);
    (void)close(p->stop_fd);
    free(p);
}
