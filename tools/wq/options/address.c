/* SPDX-License-Identifier: MIT */
/* address.c: what does the ADDR of --listen mean? See address.h. */
#include "options/address.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool
address_refuse(char *why, size_t why_len, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(why, why_len, format, arguments);
    va_end(arguments);
    return false;
}

static bool
starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
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

/* `host`, without the brackets of IPv6; "" is this machine. */
static bool
read_host(const char *host, union address *out)
{
    if (strcasecmp(host, "localhost") == 0 || !*host)
        host = "127.0.0.1";
    memset(out, 0, sizeof *out);
    if (inet_pton(AF_INET, host, &out->v4.sin_addr) == 1)
        out->any.sa_family = AF_INET;
    else if (inet_pton(AF_INET6, host, &out->v6.sin6_addr) == 1)
        out->any.sa_family = AF_INET6;
    else
        return false;
    return true;
}

static bool
is_loopback(const union address *a)
{
    if (a->any.sa_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
    return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
}

/* Splits ADDRESS:PORT; `host` has `size` bytes. */
static bool
split(const char *text, char *host, size_t size, const char **port)
{
    const char *colon = strrchr(text, ':');
    const char *from = text;
    const char *to = colon;

    if (!colon) {
        *host = '\0';
        *port = text;
        return true;
    }
    if (*text == '[' && colon > text && colon[-1] == ']') {
        from++;
        to--;
    } else if (memchr(text, ':', (size_t)(colon - text)))
        return false; /* IPv6 without brackets is ambiguous */
    if ((size_t)(to - from) >= size)
        return false;
    memcpy(host, from, (size_t)(to - from));
    host[to - from] = '\0';
    *port = colon + 1;
    return true;
}

static bool
read_internet(const char *text, union address *out, char *why, size_t why_len)
{
    const bool  is_public = starts_with(text, "public:");
    char        host[64];
    const char *digits;
    in_port_t   port;

    text += is_public ? strlen("public:") : 0;
    if (!split(text, host, sizeof host, &digits) || !read_port(digits, &port))
        return address_refuse(why, why_len, "is not an address and a port");
    if (!*host && (is_public || *text == ':'))
        return address_refuse(why, why_len,
                              "has no address; write 127.0.0.1:%s for this "
                              "machine, public:0.0.0.0:%s for all hosts",
                              digits, digits);
    if (!read_host(host, out))
        return address_refuse(why, why_len,
                              "has a host that is neither a numeric address "
                              "nor localhost");
    if (!is_public && !is_loopback(out))
        return address_refuse(
            why, why_len,
            "can be reached by other hosts; write public:%s to allow that",
            text);
    if (out->any.sa_family == AF_INET6)
        out->v6.sin6_port = port;
    else
        out->v4.sin_port = port;
    return true;
}

static bool
read_local(const char *path, union address *out, char *why, size_t why_len)
{
    const size_t longest = sizeof out->local.sun_path - 1;

    if (!*path || strlen(path) > longest)
        return address_refuse(
            why, why_len, "does not have a path of 1 to %zu bytes", longest);
    memset(out, 0, sizeof *out);
    out->local.sun_family = AF_UNIX;
    memcpy(out->local.sun_path, path, strlen(path) + 1);
    return true;
}

bool
address_read(const char *text, union address *out, char *why, size_t why_len)
{
    if (starts_with(text, "unix:"))
        return read_local(text + strlen("unix:"), out, why, why_len);
    return read_internet(text, out, why, why_len);
}

bool
address_is_host(const char *host)
{
    char          name[64];
    union address address;

    if (!host)
        return true;
    /* Any port is accepted: it may be that of a tunnel. */
    const size_t len = *host == '[' ? strcspn(host, "]") : strcspn(host, ":");
    const size_t skip = *host == '[' ? 1 : 0;
    if (len <= skip || len - skip >= sizeof name || (skip && !host[len]))
        return false;
    memcpy(name, host + skip, len - skip);
    name[len - skip] = '\0';
    return read_host(name, &address);
}
