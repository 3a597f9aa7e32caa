/* SPDX-License-Identifier: MIT */
/* redis_net.c: a server of any bytes; see redis_net.h. */
#include "redis_net.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

struct redis_net redis_net;

/* An answer that is not of the stream; "" if there is none. */
static const char *own = "";

const char *
redis_net_socket(void)
{
    return getenv("WQ_FUZZ_SERVER");
}

static void
record(const void *bytes, ssize_t n)
{
    const char *path = getenv("WQ_FUZZ_RECORD");
    FILE       *file = path && n > 0 ? fopen(path, "ab") : NULL;

    if (!file)
        return;
    (void)fwrite(bytes, 1, (size_t)n, file);
    (void)fclose(file);
}

int     __real_socket(int family, int type, int protocol);
int     __wrap_socket(int family, int type, int protocol);
int     __real_connect(int fd, const struct sockaddr *addr, socklen_t len);
int     __wrap_connect(int fd, const struct sockaddr *addr, socklen_t len);
int     __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int     __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
ssize_t __real_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);
ssize_t __real_recv(int fd, void *data, size_t len, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t len, int flags);
int     __wrap_getaddrinfo(const char *host, const char *port,
                           const struct addrinfo *hints, struct addrinfo **out);

/* Something that can be polled and closed. */
int
__wrap_socket(int family, int type, int protocol)
{
    return redis_net_socket() ? __real_socket(family, type, protocol)
                              : eventfd(0, EFD_CLOEXEC);
}

int
__wrap_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    if (redis_net_socket())
        return __real_connect(fd, addr, len);
    errno = ECONNREFUSED;
    return redis_net.refuses ? -1 : 0;
}

int
__wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    if (redis_net_socket())
        return __real_poll(fds, n, timeout);
    for (nfds_t i = 0; i < n; i++)
        fds[i].revents = fds[i].fd >= 0 ? fds[i].events : (short)0;
    return (int)n;
}

static bool
begins_with(const void *data, size_t len, const char *text)
{
    return len >= strlen(text) && memcmp(data, text, strlen(text)) == 0;
}

ssize_t
__wrap_send(int fd, const void *data, size_t len, int flags)
{
    if (begins_with(data, len, "*3\r\n$6\r\nCLIENT"))
        own = "+OK\r\n";
    else if (!redis_net.info && begins_with(data, len, "*2\r\n$4\r\nINFO"))
        own = "$0\r\n\r\n";
    if (!redis_net_socket())
        return (ssize_t)len;
    return __real_send(fd, data, len, flags);
}

static ssize_t
receive_really(int fd, void *data, size_t len, int flags)
{
    const ssize_t n = __real_recv(fd, data, len, flags);

    if (flags & MSG_PEEK)
        return n;
    if (!*own)
        record(data, n);
    else if (n > 0)
        own = "";
    return n;
}

ssize_t
__wrap_recv(int fd, void *data, size_t len, int flags)
{
    if (redis_net_socket())
        return receive_really(fd, data, len, flags);
    if (flags & MSG_PEEK) { /* nothing that nobody asked for */
        errno = EAGAIN;
        return -1;
    }
    if (*own) {
        *(char *)data = *own++;
        return 1;
    }
    size_t n = 0;
    while (n < len && redis_net.at < redis_net.end &&
           (!n || redis_net.at[-1] != '\n'))
        ((uint8_t *)data)[n++] = *redis_net.at++;
    return (ssize_t)n;
}

int
__wrap_getaddrinfo(const char *host, const char *port,
                   const struct addrinfo *hints, struct addrinfo **out)
{
    (void)host, (void)port, (void)hints, (void)out;
    return EAI_NONAME;
}
