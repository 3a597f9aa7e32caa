/* SPDX-License-Identifier: MIT */
/* url.c: which server and which queue does a URL mean?
 *
 * A URL may contain a password, also where it must not: no message quotes the
 * part before '@', or a part that a wrong separator may have joined to one.
 */
#include <assert.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error/error.h"
#include "shared/url.h"
#include "store.h"

/* ---- options -------------------------------------------------------------- */

static const char **
word_option(const char *name, wq_redis_options *o)
{
    return strcmp(name, "queue") == 0           ? &o->queue
           : strcmp(name, "user") == 0          ? &o->user
           : strcmp(name, "password_file") == 0 ? &o->password_file
           : strcmp(name, "ca_file") == 0       ? &o->ca_file
           : strcmp(name, "cert_file") == 0     ? &o->cert_file
           : strcmp(name, "key_file") == 0      ? &o->key_file
           : strcmp(name, "client") == 0        ? &o->client
           : strcmp(name, "sentinel_user") == 0 ? &o->sentinel_user
           : strcmp(name, "sentinel_password_file") == 0
               ? &o->sentinel_password_file
               : NULL;
}

static int64_t *
duration_option(const char *name, wq_redis_options *o)
{
    return strcmp(name, "lease") == 0              ? &o->lease_ns
           : strcmp(name, "timeout") == 0          ? &o->timeout_ns
           : strcmp(name, "replicas_timeout") == 0 ? &o->replicas_timeout_ns
                                                   : NULL;
}

static unsigned *
count_option(const char *name, wq_redis_options *o)
{
    return strcmp(name, "max_expiries") == 0 ? &o->max_expiries
           : strcmp(name, "replicas") == 0   ? &o->replicas
           : strcmp(name, "partitions") == 0 ? &o->partitions
                                             : NULL;
}

/* What a URL is read into. */
struct reading {
    struct wq__target *target;
    wq_redis_options  *options;
};

static wq_err
refuse_value(const char *name, const char *value, const char *allowed)
{
    return wq__url_refuse("redis", name, value, allowed);
}

static wq_err
read_option(void *ctx, const char *name, const char *value)
{
    const struct reading *r = ctx;
    wq_redis_options     *o = r->options;

    assert(o);
    const char  **word = word_option(name, o);
    int64_t      *duration = duration_option(name, o);
    unsigned     *count = count_option(name, o);
    unsigned long n = 0;

    if (word || duration || count) {
        if (word ? *word != NULL : duration ? *duration != 0 : *count != 0)
            return wq_fail(WQ_EINVAL,
                           "redis: '%s' is given twice: in the URL and in the "
                           "options",
                           name);
        if (word)
            *word = value;
        else if (duration && !wq__url_duration(value, duration))
            return refuse_value(name, value, WQ__URL_DURATIONS);
        else if (count && !wq__url_count(value, UINT_MAX, &n))
            return refuse_value(name, value, "a number");
        else if (count && count != &o->replicas && n == 0)
            return refuse_value(name, value, "1 or more");
        if (count)
            *count = (unsigned)n;
    } else if (strcmp(name, "db") == 0) {
        if (!wq__url_count(value, INT_MAX, &n))
            return refuse_value(name, value, "a number");
        if (r->target->db && r->target->db != (int)n)
            return wq_fail(WQ_EINVAL,
                           "redis: the path and the option db of the URL name "
                           "different databases");
        r->target->db = (int)n;
    } else {
        return wq_fail(
            WQ_EINVAL,
            "redis: there is no option '%s' in a URL; options: "
            "queue, lease, timeout, max_expiries, replicas, "
            "replicas_timeout, partitions, user, password_file, ca_file, "
            "cert_file, key_file, db, client, sentinel_user, "
            "sentinel_password_file",
            name);
    }
    return WQ_OK;
}

/* ---- the server ----------------------------------------------------------- */

static wq_err
copy_to(char **to, const char *text)
{
    wq__wipe(*to);
    *to = strdup(text);
    return *to ? WQ_OK : wq_fail(WQ_ENOMEM, "wq_redis_open: out of memory");
}

/* "USER[:PASSWORD]" */
static wq_err
read_login(char *login, struct wq__target *t)
{
    char *password = strchr(login, ':');

    if (password)
        *password++ = '\0';
    if (!wq__url_decode(login) || (password && !wq__url_decode(password)))
        return wq_fail(WQ_EINVAL,
                       "redis: '%%' in the user or the password of the URL "
                       "must be followed by two hexadecimal digits other than "
                       "00");
    wq_err err = *login ? copy_to(&t->login.user, login) : WQ_OK;
    return !err && password ? copy_to(&t->login.password, password) : err;
}

/* "HOST[:PORT][,HOST[:PORT]...]" */
static wq_err
read_hosts(char *hosts, unsigned port, struct wq__route *r)
{
    wq_err err = WQ_OK;

    while (!err && hosts) {
        struct wq__address address;
        char              *next = strchr(hosts, ',');
        if (next)
            *next++ = '\0';
        const char *colon = strchr(hosts, ':');
        if (*hosts != '[' && colon && strchr(colon + 1, ':'))
            return wq_fail(WQ_EINVAL,
                           "redis: a host in the URL has more than one ':': "
                           "write '@' after a password, and an IPv6 address "
                           "as [::1]");
        err = wq__address_read(hosts, port, &address);
        if (!err && r->len == WQ__ADDRESSES)
            err = wq_fail(WQ_EINVAL, "redis: the URL has more than %d hosts",
                          WQ__ADDRESSES);
        if (!err)
            wq__route_learn(r, &address);
        hosts = next;
    }
    return err;
}

static wq_err
read_db(const char *text, struct wq__target *t)
{
    unsigned long n = 0;

    if (text && *text && !wq__url_count(text, INT_MAX, &n))
        return wq_fail(
            WQ_EINVAL,
            "redis: the path in the URL is not the number of the database: use "
            "redis://HOST[:PORT][/DB]?queue=NAME");
    t->db = (int)n;
    return WQ_OK;
}

/* "NAME[/DB]" */
static wq_err
read_primary(char *path, struct wq__target *t)
{
    char *db = path ? strchr(path, '/') : NULL;

    if (db)
        *db++ = '\0';
    if (!path || !*path || !wq__url_decode(path))
        return wq_fail(WQ_EINVAL,
                       "redis: the URL does not name a primary: use "
                       "redis+sentinel://HOST[:PORT][,...]/NAME[/DB]");
    const wq_err err = copy_to(&t->route.primary, path);
    return err ? err : read_db(db, t);
}

/* "[LOGIN@]HOSTS[/PATH]" */
static wq_err
read_server(char *rest, struct wq__target *t)
{
    const bool sentinel = t->route.kind == WQ__ROUTE_SENTINEL;
    char      *path = strchr(rest, '/');

    if (path)
        *path++ = '\0';
    char *host = strrchr(rest, '@');
    if (host)
        *host++ = '\0';
    if (strpbrk(host ? host : rest, "&=;# ") ||
        (path && strpbrk(path, "&=;#, ")))
        return wq_fail(WQ_EINVAL,
                       "redis: the options of the URL follow a '?', as in "
                       "redis://HOST[:PORT][/DB]?queue=NAME");
    wq_err err = host ? read_login(rest, t) : WQ_OK;
    if (!err)
        err =
            read_hosts(host ? host : rest, sentinel ? 26379 : 6379, &t->route);
    if (!err) /* last: without a host, the path may be a part of a password */
        err = sentinel ? read_primary(path, t) : read_db(path, t);
    if (!err && !sentinel && t->route.len > 1)
        t->route.kind = WQ__ROUTE_CLUSTER;
    return err;
}

static wq_err
read_socket(char *rest, struct wq__target *t)
{
    char *path = strchr(rest, '/');
    char *login = NULL;

    if (path != rest && path) { /* USER:PASSWORD@/path */
        login = rest;
        if (path[-1] != '@')
            path = NULL;
        else
            path[-1] = '\0';
    }
    if (!path || !path[1])
        return wq_fail(WQ_EINVAL, "redis: the URL of a socket is "
                                  "redis+unix:///PATH?queue=NAME");
    const char wrong = path[strcspn(path, "&,;#= ")];
    if (wrong)
        return wq_fail(WQ_EINVAL,
                       "redis: there is a '%c' in the path of the socket: "
                       "options follow a '?', as in redis+unix:///PATH?queue="
                       "NAME, and %%%02X stands for a '%c'",
                       wrong, (unsigned)wrong, wrong);
    wq_err err = copy_to(&t->path, path);
    if (!err && !wq__url_decode(t->path))
        err =
            wq_fail(WQ_EINVAL, "redis: '%%' in the URL must be followed by two "
                               "hexadecimal digits other than 00");
    return !err && login ? read_login(login, t) : err;
}

static bool
begins_with(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Else a part of a password would be taken for a path or an option, and quoted in
 * a message. */
static bool
has_clear_login(const char *rest)
{
    const char *at = strrchr(rest, '@');

    return !at || strcspn(rest, "/?#") >= (size_t)(at - rest);
}

/* For messages. */
static void
name_target(struct wq__target *t)
{
    const struct wq__address *first = &t->route.known[0];

    if (t->path)
        (void)snprintf(t->name, sizeof t->name, "'%s'", t->path);
    else if (t->route.primary)
        (void)snprintf(t->name, sizeof t->name, "the primary '%.60s'",
                       t->route.primary);
    else
        wq__address_print(first, t->name, sizeof t->name);
}

wq_err
wq__redis_read_url(const char *url, struct wq__target *t, wq_redis_options *o,
                   char **copy)
{
    static const struct {
        const char *begin;
        bool        tls, path, sentinel;
    } kinds[] = {{"redis://", false, false, false},
                 {"rediss://", true, false, false},
                 {"redis+unix://", false, true, false},
                 {"redis+sentinel://", false, false, true},
                 {"rediss+sentinel://", true, false, true}};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    size_t kind = 0;

    while (kind < KINDS && !begins_with(url, kinds[kind].begin))
        kind++;
    if (kind == KINDS)
        return wq_fail(WQ_EINVAL,
                       "redis: the URL must begin with redis://, rediss://, "
                       "redis+unix://, redis+sentinel:// or "
                       "rediss+sentinel://");
    *copy = strdup(url);
    if (!*copy)
        return wq_fail(WQ_ENOMEM, "wq_redis_open: out of memory");
    char *rest = *copy + strlen(kinds[kind].begin);
    if (!(kinds[kind].path && *rest == '/') && !has_clear_login(rest))
        return wq_fail(WQ_EINVAL,
                       "redis: write '/', '?' and '#' in the user or the "
                       "password of the URL as %%2F, %%3F and %%23, and '@' in "
                       "its path or its options as %%40");
    t->tls = kinds[kind].tls;
    wq__route_init(&t->route);
    if (kinds[kind].sentinel)
        t->route.kind = WQ__ROUTE_SENTINEL;
    char *options = strchr(rest, '?');
    if (options)
        *options++ = '\0';
    wq_err err = kinds[kind].path ? read_socket(rest, t) : read_server(rest, t);
    if (!err)
        err = wq__url_options("redis", options, ",;?#= ", read_option,
                              &(struct reading){t, o});
    name_target(t);
    return err;
}
