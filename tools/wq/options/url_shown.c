/* SPDX-License-Identifier: MIT */
/* url_shown.c: what of the URL of a queue may be shown?
 *
 * A URL may contain a password, also where it must not, with any separator before
 * it, or none. So only what cannot be one is shown: each part that has the form
 * which it must have. All else is ***, also a part with a mistake.
 *
 *     SCHEME://USER:***@HOST:PORT,HOST:PORT/PATH?NAME=VALUE&NAME=***
 */
#include <stdlib.h>
#include <string.h>

#include "options/url.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"
#define WORD LOWER UPPER DIGITS "._-"
#define PATH WORD "/+~%"

/* The URL is shown here. */
struct shown {
    char   text[2000];
    size_t len;
};

/* What does not fit is left out. */
static void
put(struct shown *s, const char *text, size_t len)
{
    const size_t left = sizeof s->text - 1 - s->len;
    const size_t n = len < left ? len : left;

    memcpy(s->text + s->len, text, n);
    s->len += n;
    s->text[s->len] = '\0';
}

/* A part, or *** if it must not be shown. */
static void
put_part(struct shown *s, const char *part, size_t len, bool may)
{
    if (may)
        put(s, part, len);
    else
        put(s, "***", 3);
}

/* Are there only such characters in this part? */
static bool
has_only(const char *part, size_t len, const char *allowed)
{
    return strspn(part, allowed) >= len;
}

/* Like strcspn(), in the first `len` bytes. */
static size_t
length_to(const char *part, size_t len, const char *ends)
{
    const size_t n = strcspn(part, ends);

    return n < len ? n : len;
}

/* ---------------------------------------------------------------- server -- */

/* "USER", "USER:PASSWORD" */
static void
put_login(struct shown *s, const char *login, size_t len)
{
    const size_t user = length_to(login, len, ":");

    put_part(s, login, user, has_only(login, user, WORD "%+"));
    if (user < len)
        put(s, ":***", 4);
    put(s, "@", 1);
}

/* Longer ones may be passwords. */
static bool
is_port(const char *port, size_t len)
{
    return len <= 5 && has_only(port, len, DIGITS) && atol(port) <= 65535;
}

/* "NAME", "NAME:PORT", "[ADDRESS]", "[ADDRESS]:PORT" */
static bool
is_host(const char *host, size_t len)
{
    size_t name = length_to(host, len, ":");

    if (len && *host == '[') {
        name = strspn(host + 1, DIGITS "abcdefABCDEF:.") + 2;
        if (name > len || host[name - 1] != ']')
            return false;
    } else if (!has_only(host, name, WORD)) {
        return false;
    }
    return name == len ||
           (host[name] == ':' && is_port(host + name + 1, len - name - 1));
}

static void
put_hosts(struct shown *s, const char *hosts, size_t len)
{
    for (;;) {
        const size_t n = length_to(hosts, len, ",");

        put_part(s, hosts, n, is_host(hosts, n));
        if (n == len)
            return;
        put(s, ",", 1);
        hosts += n + 1;
        len -= n + 1;
    }
}

/* What follows the '/' after the hosts: "DB"; the path of a socket; or "NAME[/DB]",
 * for sentinels. */
static bool
is_path(const char *url, const char *path, size_t len)
{
    const bool   sentinel = strstr(url, "+sentinel:") != NULL;
    const size_t name = sentinel ? length_to(path, len, "/") : 0;

    if (strncmp(url, "redis+unix:", strlen("redis+unix:")) == 0)
        return has_only(path, len, PATH);
    return has_only(path, name, WORD) &&
           has_only(path + name, len - name, DIGITS "/");
}

/* "[LOGIN@]HOSTS[/PATH]" */
static void
put_server(struct shown *s, const char *url, const char *server, size_t len)
{
    size_t login = 0;

    for (size_t i = 0; i < len; i++)
        if (server[i] == '@')
            login = i + 1;
    if (login)
        put_login(s, server, login - 1);
    server += login;
    len -= login;
    const size_t hosts = length_to(server, len, "/");

    put_hosts(s, server, hosts);
    if (hosts < len)
        put(s, "/", 1);
    if (hosts + 1 < len)
        put_part(s, server + hosts + 1, len - hosts - 1,
                 is_path(url, server + hosts + 1, len - hosts - 1));
}

/* --------------------------------------------------------------- options -- */

/* Do we know it? The value of another one may be a password. */
static bool
is_option(const char *name, size_t len)
{
    static const char *const names[] = {
        "queue",         "lease",     "timeout",  "max_expiries",
        "replicas",      "user",      "db",       "replicas_timeout",
        "partitions",    "ca_file",   "key_file", "password_file",
        "sentinel_user", "cert_file", "sync",     "sentinel_password_file",
        "client",        "hold",      "busy",     "create",
        "holder"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == len && strncmp(names[i], name, len) == 0)
            return true;
    return false;
}

/* "NAME=VALUE" */
static void
put_option(struct shown *s, const char *option, size_t len)
{
    const size_t name = length_to(option, len, "=");

    if (name == len || !has_only(option, name, LOWER UPPER "_")) {
        put_part(s, option, len, len == 0);
        return;
    }
    put(s, option, name + 1);
    put_part(s, option + name + 1, len - name - 1,
             is_option(option, name) &&
                 has_only(option + name + 1, len - name - 1, PATH));
}

static void
put_options(struct shown *s, const char *options)
{
    for (;;) {
        const size_t n = strcspn(options, "&");

        put_option(s, options, n);
        if (!options[n])
            return;
        put(s, "&", 1);
        options += n + 1;
    }
}

/* ------------------------------------------------------------------- URL -- */

/* Something without a scheme, or without what follows it. */
static void
put_other(struct shown *s, const char *text)
{
    size_t n = strspn(text, PATH);

    if (text[n] != ':' && strchr(text + n, '@')) /* it may be a password */
        n = 0;
    if (text[n] == ':')
        n++;
    put(s, text, n);
    if (text[n])
        put(s, "***", 3);
}

const char *
url_shown(const char *url)
{
    static struct shown s;
    const size_t        main = strcspn(url, "?");
    const size_t        scheme = strspn(url, LOWER DIGITS "+.-");
    const bool          is_path = url_is_sqlite(url) || url_is_memory(url);

    s.len = 0;
    s.text[0] = '\0';
    if (is_path) {
        put(&s, url, main);
    } else if (!scheme || strncmp(url + scheme, "://", 3) != 0) {
        put_other(&s, url);
        return s.text;
    } else {
        put(&s, url, scheme + 3);
        if (strchr(url + main, '@')) { /* a '?' in a password */
            put(&s, "***", 3);
            return s.text;
        }
        put_server(&s, url, url + scheme + 3, main - scheme - 3);
    }
    if (url[main]) {
        put(&s, "?", 1);
        put_options(&s, url + main + 1);
    }
    return s.text;
}
