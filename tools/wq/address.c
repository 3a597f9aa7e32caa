/* SPDX-License-Identifier: MIT */
/* address.c: where does --listen listen? See address.h. */
#include "address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* An address of the internet, either kind. */
union internet {
    struct sockaddr     any;
    struct sockaddr_in  v4;
    struct sockaddr_in6 v6;
};

#define FORMS "127.0.0.1:PORT, [::1]:PORT, PORT or unix:PATH"

/* ---- reading ------------------------------------------------------------- */

static bool
starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

__attribute__((format(printf, 3, 4))) static bool
refuse(char *why, size_t len, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(why, len, format, arguments);
    va_end(arguments);
    return false;
}

static bool
read_port(const char *s, in_port_t *port)
{
    char *end;

    if (*s < '0' || *s > '9')
        return false;
    const unsigned long n = strtoul(s, &end, 10);
    if (*end || n > UINT16_MAX || end - s > 5)
        return false;
    *port = htons((uint16_t)n);
    return true;
}

/* `host`, without the brackets of IPv6. */
static bool
read_host(const char *host, union internet *to)
{
    if (strcasecmp(host, "localhost") == 0 || !*host)
        host = "127.0.0.1";
    memset(to, 0, sizeof *to);
    if (inet_pton(AF_INET, host, &to->v4.sin_addr) == 1)
        to->any.sa_family = AF_INET;
    else if (inet_pton(AF_INET6, host, &to->v6.sin6_addr) == 1)
        to->any.sa_family = AF_INET6;
    else
        return false;
    return true;
}

static bool
is_loopback(const union internet *to)
{
    if (to->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&to->v6.sin6_addr);
    return ntohl(to->v4.sin_addr.s_addr) >> 24 == 127;
}

/* ADDRESS:PORT into its halves; `host` has room for any address. */
static bool
split(const char *where, char *host, size_t room, const char **port)
{
    const char *colon = strrchr(where, ':');
    const char *from = where;
    const char *to = colon;

    if (!colon) {
        *host = '\0';
        *port = where;
        return true;
    }
    if (*where == '[' && colon > where && colon[-1] == ']') {
        from++;
        to--;
    } else if (memchr(where, ':', (size_t)(colon - where)))
        return false; /* IPv6 without brackets: which colon is it? */
    if ((size_t)(to - from) >= room)
        return false;
    memcpy(host, from, (size_t)(to - from));
    host[to - from] = '\0';
    *port = colon + 1;
    return true;
}

static bool
read_internet(const char *where, union internet *to, char *why, size_t len)
{
    const bool public = starts(where, "public:");
    char        host[64];
    const char *digits;
    in_port_t   port;

    where += public ? strlen("public:") : 0;
    if (!split(where, host, sizeof host, &digits) || !read_port(digits, &port))
        return refuse(why, len, "expected " FORMS);
    if (!read_host(host, to))
        return refuse(why, len,
                      "%s is not an address (names are not looked up); "
                      "expected " FORMS,
                      host);
    if (!public && !is_loopback(to))
        return refuse(why, len,
                      "others could read the keys there: only loopback "
                      "addresses are accepted, unless you write public:%s",
                      where);
    if (to->any.sa_family == AF_INET6)
        to->v6.sin6_port = port;
    else
        to->v4.sin_port = port;
    return true;
}

/* ---- the internet -------------------------------------------------------- */

static int
stream_socket(int family)
{
    return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static void
write_url(struct address *a)
{
    union internet at = {.any = {0}};
    socklen_t      size = sizeof at;
    char           host[INET6_ADDRSTRLEN] = "?";

    (void)getsockname(a->fd, &at.any, &size);
    const bool six = at.any.sa_family == AF_INET6;
    (void)inet_ntop(at.any.sa_family,
                    six ? (void *)&at.v6.sin6_addr : (void *)&at.v4.sin_addr,
                    host, sizeof host);
    (void)snprintf(a->url, sizeof a->url, "http://%s%s%s:%u/", six ? "[" : "",
                   host, six ? "]" : "",
                   ntohs(six ? at.v6.sin6_port : at.v4.sin_port));
}

static bool
open_internet(struct address *a, const char *where, char *why, size_t len)
{
    const int      on = 1;
    union internet to = {.any = {0}};

    if (!read_internet(where, &to, why, len))
        return false;
    const bool six = to.any.sa_family == AF_INET6;
    a->chosen = !(six ? to.v6.sin6_port : to.v4.sin_port);
    a->fd = stream_socket(to.any.sa_family);
    if (a->fd < 0)
        return refuse(why, len, "%s", strerror(errno));
    (void)setsockopt(a->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(a->fd, &to.any, six ? sizeof to.v6 : sizeof to.v4) ||
        listen(a->fd, SOMAXCONN)) {
        (void)refuse(why, len, "%s", strerror(errno));
        (void)close(a->fd);
        return false;
    }
    write_url(a);
    return true;
}

/* ---- a socket in the file system ----------------------------------------- */

/* Does nobody listen there any more? A program that was killed leaves its
 * socket behind; who connects to it is refused. */
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

/* The file is the user's alone from its first moment on. */
static int
bind_privately(int fd, const struct sockaddr_un *path)
{
    const mode_t before = umask(0177);
    const int    err =
        bind(fd, (const struct sockaddr *)path, sizeof *path) ? errno : 0;

    (void)umask(before);
    return err;
}

static bool
is_path(const char *path, char *why, size_t len)
{
    const size_t most = sizeof((struct sockaddr_un *)0)->sun_path - 1;

    return (*path && strlen(path) <= most) ||
           refuse(why, len,
                  "the path of a socket has 1 to %zu bytes; expected " FORMS,
                  most);
}

static bool
open_local(struct address *a, const char *path, char *why, size_t len)
{
    struct stat file;

    if (!is_path(path, why, len))
        return false;
    a->is_local = true;
    a->path.sun_family = AF_UNIX;
    memcpy(a->path.sun_path, path, strlen(path) + 1);
    a->fd = stream_socket(AF_UNIX);
    if (a->fd < 0)
        return refuse(why, len, "%s", strerror(errno));
    int err = bind_privately(a->fd, &a->path);
    if (err == EADDRINUSE && is_stale(&a->path) && unlink(path) == 0)
        err = bind_privately(a->fd, &a->path);
    if (err || listen(a->fd, SOMAXCONN) || lstat(path, &file)) {
        (void)refuse(why, len, "%s",
                     err == EADDRINUSE ? "it exists, and is in use or no socket"
                                       : strerror(err ? err : errno));
        (void)close(a->fd);
        return false;
    }
    a->dev = file.st_dev;
    a->inode = file.st_ino;
    (void)snprintf(a->url, sizeof a->url, "unix:%s", path);
    return true;
}

/* ---- what is offered ----------------------------------------------------- */

bool
address_check(const char *where, char *why, size_t why_len)
{
    union internet to;

    if (starts(where, "unix:"))
        return is_path(where + strlen("unix:"), why, why_len);
    return read_internet(where, &to, why, why_len);
}

bool
address_open(struct address *a, const char *where, char *why, size_t why_len)
{
    bool open;

    *a = (struct address){.fd = -1};
    if (starts(where, "unix:"))
        open = open_local(a, where + strlen("unix:"), why, why_len);
    else
        open = open_internet(a, where, why, why_len);
    if (!open)
        a->fd = -1;
    return open;
}

void
address_close(struct address *a)
{
    struct stat file;

    if (a->fd < 0)
        return;
    if (a->is_local && lstat(a->path.sun_path, &file) == 0 &&
        file.st_dev == a->dev && file.st_ino == a->inode)
        (void)unlink(a->path.sun_path);
    (void)close(a->fd);
    a->fd = -1;
}

bool
address_is_host(const char *host)
{
    char           name[64];
    union internet to;

    if (!host)
        return true;
    /* The port may be that of a tunnel: any will do. */
    const size_t len = *host == '[' ? strcspn(host, "]") : strcspn(host, ":");
    const size_t skip = *host == '[' ? 1 : 0;
    if (len <= skip || len - skip >= sizeof name || (skip && !host[len]))
        return false;
    memcpy(name, host + skip, len - skip);
    name[len - skip] = '\0';
    return read_host(name, &to);
}
