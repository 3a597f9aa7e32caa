/* SPDX-License-Identifier: MIT */
/* route.c: choosing an address; see route.h. */
#include "route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error/error.h"
#include "shared/url.h"
#include "wire.h"

/* ---- life ----------------------------------------------------------------- */

void
wq__route_init(struct wq__route *r)
{
    wq__lock_init(&r->lock);
    atomic_init(&r->moves, 0);
}

void
wq__route_fini(struct wq__route *r)
{
    free(r->primary);
    wq__login_fini(&r->login);
}

/* ---- addresses ------------------------------------------------------------ */

static bool
is_same(const struct wq__address *a, const struct wq__address *b)
{
    return strcmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0;
}

static wq_err
read_port(const char *text, unsigned port, struct wq__address *out)
{
    unsigned long n = port;

    if (text && (!wq__url_count(text, 65535, &n) || n == 0))
        return wq_fail(WQ_EINVAL, /* it may be a password without its host */
                       "redis: the port in the URL is not a number from 1 to "
                       "65535");
    (void)snprintf(out->port, sizeof out->port, "%hu", (unsigned short)n);
    return WQ_OK;
}

wq_err
wq__address_read(char *host, unsigned default_port, struct wq__address *out)
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
    if (strlen(host) >= sizeof out->host)
        return wq_fail(WQ_EINVAL,
                       "redis: a host in the URL has more than %zu bytes",
                       sizeof out->host - 1);
    (void)snprintf(out->host, sizeof out->host, "%s", host);
    return read_port(port, default_port, out);
}

void
wq__address_print(const struct wq__address *address, char *out, size_t size)
{
    const bool numeric = strchr(address->host, ':') != NULL;

    (void)snprintf(out, size, "%s%.140s%s:%s", numeric ? "[" : "",
                   address->host, numeric ? "]" : "", address->port);
}

void
wq__route_learn(struct wq__route *r, const struct wq__address *address)
{
    for (size_t i = 0; i < r->len; i++)
        if (is_same(&r->known[i], address))
            return;
    if (r->len < WQ__ADDRESSES)
        r->known[r->len++] = *address;
}

void
wq__route_set(struct wq__route *r, const struct wq__address *address)
{
    if (is_same(&r->at, address))
        return;
    r->at = *address;
    atomic_fetch_add(&r->moves, 1);
}

/* ---- choosing ------------------------------------------------------------- */

static enum wq__route_kind
kind_of(struct wq__route *r)
{
    wq__lock_take(&r->lock);
    const enum wq__route_kind kind = r->kind;
    wq__lock_release(&r->lock);
    return kind;
}

size_t
wq__route_tries(struct wq__route *r)
{
    wq__lock_take(&r->lock);
    const size_t n = r->kind == WQ__ROUTE_CLUSTER ? r->len + !!*r->at.host : 1;
    wq__lock_release(&r->lock);
    return n ? n : 1;
}

wq_err
wq__route_choose(struct wq__wire *w, int64_t deadline_ns)
{
    struct wq__route *r = &w->target->route;

    if (kind_of(r) == WQ__ROUTE_SENTINEL) {
        struct wq__address primary;
        const wq_err       err = wq__sentinel_ask(w, deadline_ns, &primary);
        if (err)
            return err;
        wq__lock_take(&r->lock);
        wq__route_set(r, &primary);
        wq__lock_release(&r->lock);
    }
    wq__lock_take(&r->lock);
    w->moves = atomic_load(&r->moves);
    w->at = r->at;
    if (!*w->at.host && r->len)
        w->at = r->known[r->next++ % r->len];
    r->tried = w->at;
    wq__lock_release(&r->lock);
    return WQ_OK;
}

void
wq__route_served(struct wq__wire *w)
{
    struct wq__route *r = &w->target->route;

    if (w->serves)
        return;
    w->serves = true;
    wq__lock_take(&r->lock);
    if (r->kind == WQ__ROUTE_CLUSTER && !*r->at.host)
        r->at = w->at;
    wq__lock_release(&r->lock);
}

void
wq__route_print(const struct wq__wire *w, char *out, size_t size)
{
    struct wq__route *r = &w->target->route;

    if (w->target->path) {
        (void)snprintf(out, size, "%s", w->target->path);
        return;
    }
    wq__lock_take(&r->lock);
    const struct wq__address at = *r->at.host ? r->at : r->tried;
    wq__lock_release(&r->lock);
    wq__address_print(&at, out, size);
}

void
wq__route_failed(struct wq__wire *w)
{
    struct wq__route *r = &w->target->route;

    wq__lock_take(&r->lock);
    if (is_same(&r->at, &w->at)) {
        r->away = r->at;
        r->at.host[0] = '\0';
    }
    wq__lock_release(&r->lock);
}

bool
wq__route_is_elsewhere(struct wq__wire *w)
{
    return atomic_load_explicit(&w->target->route.moves,
                                memory_order_relaxed) != w->moves;
}

/* ---- checks --------------------------------------------------------------- */

void
wq__route_add_checks(struct wq__wire *w)
{
    const enum wq__route_kind kind = kind_of(&w->target->route);

    w->checks = kind;
    if (kind == WQ__ROUTE_SENTINEL)
        wq__wire_add_words(w, (const char *[]){"ROLE"}, 1);
    else if (kind == WQ__ROUTE_CLUSTER) /* READWRITE: Valkey has it anywhere */
        wq__wire_add_words(w, (const char *[]){"CLUSTER", "SLOTS"}, 2);
}

/* A user without the right to ask gets an error, and finds it out later. */
static wq_err
judge(const struct wq__wire *w, const redisReply *reply)
{
    char at[160];

    wq__address_print(&w->at, at, sizeof at);
    if (w->checks == WQ__ROUTE_SENTINEL && reply->type == REDIS_REPLY_ARRAY &&
        reply->elements && reply->element[0]->type == REDIS_REPLY_STRING &&
        strcmp(reply->element[0]->str, "master") != 0)
        return wq_fail(WQ_EAWAY,
                       "redis: the sentinels take %s for %s, but it is a "
                       "replica",
                       at, w->target->name);
    if (w->checks == WQ__ROUTE_CLUSTER &&
        wq__reply_is_error(reply, "ERR This instance has cluster support"))
        return wq_fail(WQ_EINVAL,
                       "redis: %s is not a node of a cluster: several hosts "
                       "in a URL must be nodes of one cluster; for sentinels "
                       "use redis+sentinel://",
                       at);
    return WQ_OK;
}

wq_err
wq__route_receive_checks(struct wq__wire *w, int64_t deadline_ns)
{
    redisReply *reply = NULL;

    if (w->checks == WQ__ROUTE_FIXED)
        return WQ_OK;
    if (wq__wire_receive(w, deadline_ns, &reply))
        return WQ_EAWAY;
    const wq_err err = judge(w, reply);
    freeReplyObject(reply);
    return err;
}

/* ---- replies -------------------------------------------------------------- */

/* This server cannot be the right one any more: ask again. */
static void
forget(struct wq__wire *w)
{
    wq__route_failed(w);
    wq__wire_close(w, false);
}

/* A node that could not be reached a moment ago is not tried again before the
 * next call: the others name it until they have another one. */
static void
follow(struct wq__wire *w, const redisReply *reply, bool *again)
{
    struct wq__route  *r = &w->target->route;
    struct wq__address to;

    *again = wq__cluster_read_moved(w, reply, &to);
    if (*again) {
        wq__lock_take(&r->lock);
        r->kind = WQ__ROUTE_CLUSTER;
        *again = !is_same(&r->away, &to);
        r->away.host[0] = '\0';
        wq__route_learn(r, &to);
        if (*again)
            wq__route_set(r, &to);
        wq__lock_release(&r->lock);
    }
    wq__wire_close(w, false);
    if (!*again)
        wq__wire_back_off(w);
}

void
wq__route_note(struct wq__wire *w, const redisReply *reply, bool *again)
{
    *again = false;
    if (wq__reply_is_error(reply, "MOVED "))
        follow(w, reply, again);
    else if (kind_of(&w->target->route) == WQ__ROUTE_SENTINEL &&
             (wq__reply_is_error(reply, "READONLY") ||
              wq__reply_is_error(reply, "MASTERDOWN") ||
              wq__reply_is_error(reply, "UNBLOCKED")))
        forget(w);
}
