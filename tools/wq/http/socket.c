/* SPDX-License-Identifier: MIT */
/* socket.c: how is the socket of --listen opened and closed? */
#include "http/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int
stream_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* ---- internet ------------------------------------------------------------ */

static void
write_url(struct listen_socket *s)
{
    union address at = {.any = {0}};
    socklen_t     size = sizeof at;
    char          host[INET6_ADDRSTRLEN] = "?";

    (void)getsockname(s->fd, &at.any, &size);
    const bool six = at.any.sa_family == AF_INET6;
    (void)inet_ntop(at.any.sa_family,
                    six ? (void *)&at.v6.sin6_addr : (void *)&at.v4.sin_addr,
                    host, sizeof host);
    (void)snprintf(s->url, sizeof s->url, "http://%s%s%s:%u/", six ? "[" : "",
                   host, six ? "]" : "",
                   ntohs(six ? at.v6.sin6_port : at.v4.sin_port));
}

/* Returns 0, or an errno. */
static int
open_internet(struct listen_socket *s, const union address *a)
{
    const int  on = 1;
    const bool six = a->any.sa_family == AF_INET6;

    s->chosen = !(six ? a->v6.sin6_port : a->v4.sin_port);
    (void)setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(s->fd, &a->any, six ? sizeof a->v6 : sizeof a->v4) ||
        listen(s->fd, SOMAXCONN))
        return errno;
    write_url(s);
    return 0;
}

/* ---- a socket in the file system ----------------------------------------- */

/* Is it the socket of a program that was killed? Then a connection to it is
 * refused. */
static bool
is_stale(const struct sockaddr_un *path)
{
    struct stat file;

    if (lstat(path->sun_path, &file) || !S_ISSOCK(file.st_mode))
        return false;
    const int  fd = stream_socket(AF_UNIX);
    const bool refused =
        fd >= 0 && connect(fd, (const struct sockaddr *)path, sizeof *path) &&
        errno == ECONNREFUSED;
    if (fd >= 0)
        (void)close(fd);
    return refused;
}

/* The umask makes the file accessible to its user only, from the start. */
static int
bind_privately(int fd, const struct sockaddr_un *path)
{
    const mode_t before = umask(0177);
    const int    err =
        bind(fd, (const struct sockaddr *)path, sizeof *path) ? errno : 0;

    (void)umask(before);
    return err;
}

/* Returns 0, or an errno. */
static int
open_local(struct listen_socket *s, const struct sockaddr_un *path)
{
    struct stat file;

    s->is_local = true;
    s->path = *path;
    int err = bind_privately(s->fd, path);
    if (err == EADDRINUSE && is_stale(path) && unlink(path->sun_path) == 0)
        err = bind_privately(s->fd, path);
    if (err)
        return err;
    if (listen(s->fd, SOMAXCONN) || lstat(path->sun_path, &file))
        return errno;
    s->dev = file.st_dev;
    s->inode = file.st_ino;
    (void)snprintf(s->url, sizeof s->url, "unix:%s", path->sun_path);
    return 0;
}

/* ---- the interface ------------------------------------------------------- */

bool
socket_open(struct listen_socket *s, const char *address, char *why,
            size_t why_len)
{
    union address a;

    *s = (struct listen_socket){.fd = -1};
    if (!address_read(address, &a, why, why_len))
        return false;
    s->fd = stream_socket(a.any.sa_family);
    const bool local = a.any.sa_family == AF_UNIX;
    const int  err = s->fd < 0 ? errno
                     : local   ? open_local(s, &a.local)
                               : open_internet(s, &a);
    if (!err)
        return true;

    if (s->fd >= 0)
        (void)close(s->fd);
    s->fd = -1;
    return address_refuse(why, why_len, "%s",
                          local && err == EADDRINUSE
                              ? "the file exists, and is in use or no socket"
                              : strerror(err));
}

void
socket_close(struct listen_socket *s)
{
    struct stat file;

    if (s->fd < 0)
        return;
    if (s->is_local && lstat(s->path.sun_path, &file) == 0 &&
        file.st_dev == s->dev && file.st_ino == s->inode)
        (void)unlink(s->path.sun_path);
    (void)close(s->fd);
    s->fd = -1;
}
