/* SPDX-License-Identifier: MIT */
/* url.c: which server and which queue does a URL mean?
 *
 * A URL may contain a password: no message quotes the part before '@'.
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
    unsigned long n;

    if (word || duration) {
        if (word ? *word != NULL : *duration != 0)
            return wq_fail(WQ_EINVAL,
                           "redis: '%s' is given twice: in the URL, and in the "
                           "URL or the options",
                           name);
        if (word)
            *word = value;
        else if (!wq__url_duration(value, duration))
            return refuse_value(name, value, "a duration such as 30s");
    } else if (strcmp(name, "max_expiries") == 0 ||
               strcmp(name, "replicas") == 0) {
        if (!wq__url_count(value, UINT_MAX, &n))
            return refuse_value(name, value, "a number");
        *(*name == 'r' ? &o->replicas : &o->max_expiries) = (unsigned)n;
    } else if (strcmp(name, "db") == 0) {
        if (!wq__url_count(value, INT_MAX, &n))
            return refuse_value(name, value, "a number");
        r->target->db = (int)n;
    } else {
        return wq_fail(WQ_EINVAL,
                       "redis: there is no option '%s' in a URL; options: "
                       "queue, lease, timeout, max_expiries, replicas, "
                       "replicas_timeout, user, password_file, ca_file, "
                       "cert_file, key_file, db",
                       name);
    }
    return WQ_OK;
}

/* ---- the server ----------------------------------------------------------- */

static wq_err
copy_to(char **to, const char *text)
{
    free(*to);
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
                       "must be followed by two hexadecimal digits, not 00");
    wq_err err = *login ? copy_to(&t->user, login) : WQ_OK;
    return !err && password ? copy_to(&t->password, password) : err;
}

static wq_err
read_port(const char *port, struct wq__target *t)
{
    unsigned long n = 6379;

    if (port && (!wq__url_count(port, 65535, &n) || n == 0))
        return wq_fail(WQ_EINVAL, /* it may be a password without its host */
                       "redis: the port in the URL is not one: use 1 to 65535");
    char text[8];
    (void)snprintf(text, sizeof text, "%hu", (unsigned short)n);
    return copy_to(&t->port, text);
}

/* "HOST[:PORT]", "[ADDRESS][:PORT]" */
static wq_err
read_host(char *host, struct wq__target *t)
{
    char *port = strrchr(host, ':');
    char *end = strchr(host, ']');

    if (*host == '[') {
        if (!end || (end[1] && end[1] != ':'))
            return wq_fail(WQ_EINVAL,
                           "redis: the address in the URL begins with '[', but "
                           "does not end with ']'");
        port = end[1] ? end + 1 : NULL;
        *end = '\0';
        host++;
    }
    if (port)
        *port++ = '\0';
    if (!wq__url_decode(host) || !*host)
        return wq_fail(WQ_EINVAL, "redis: the URL has no host: use "
                                  "redis://HOST[:PORT][/DB]?queue=NAME");
    const wq_err err = copy_to(&t->host, host);
    return err ? err : read_port(port, t);
}

static wq_err
read_server(char *rest, struct wq__target *t)
{
    char         *db = strchr(rest, '/');
    unsigned long n = 0;

    if (db)
        *db++ = '\0';
    if (db && *db && !wq__url_count(db, INT_MAX, &n))
        return wq_fail(
            WQ_EINVAL,
            "redis: the path in the URL is '%s'; it is the number of "
            "the database",
            db);
    t->db = (int)n;
    char *host = strrchr(rest, '@');
    if (host)
        *host++ = '\0';
    const wq_err err = host ? read_login(rest, t) : WQ_OK;
    return err ? err : read_host(host ? host : rest, t);
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
    wq_err err = copy_to(&t->path, path);
    if (!err && !wq__url_decode(t->path))
        err =
            wq_fail(WQ_EINVAL, "redis: '%%' in the URL must be followed by two "
                               "hexadecimal digits, not 00");
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

wq_err
wq__redis_read_url(const char *url, struct wq__target *t, wq_redis_options *o,
                   char **copy)
{
    static const struct {
        const char *begin;
        bool        tls, path;
    } kinds[] = {{"redis://", false, false},
                 {"rediss://", true, false},
                 {"redis+unix://", false, true}};
    size_t kind = 0;

    while (kind < 3 && !begins_with(url, kinds[kind].begin))
        kind++;
    if (kind == 3)
        return wq_fail(WQ_EINVAL, "redis: the URL begins with redis://, "
                                  "rediss:// or redis+unix://");
    *copy = strdup(url + strlen(kinds[kind].begin));
    if (!*copy)
        return wq_fail(WQ_ENOMEM, "wq_redis_open: out of memory");
    if (!kinds[kind].path && !has_clear_login(*copy))
        return wq_fail(WQ_EINVAL,
                       "redis: '/', '?' and '#' in the user or the password of "
                       "the URL must be written as %%2F, %%3F and %%23, and "
                       "'@' elsewhere as %%40");
    t->tls = kinds[kind].tls;
    char *options = strchr(*copy, '?');
    if (options)
        *options++ = '\0';
    wq_err err =
        kinds[kind].path ? read_socket(*copy, t) : read_server(*copy, t);
    if (!err)
        err = wq__url_options("redis", options, read_option,
                              &(struct reading){t, o});
    if (t->path)
        (void)snprintf(t->name, sizeof t->name, "'%s'", t->path);
    else
        (void)snprintf(t->name, sizeof t->name, "%s:%s", t->host ? t->host : "",
                       t->port ? t->port : "");
    return err;
}
