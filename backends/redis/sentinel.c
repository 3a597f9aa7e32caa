/* SPDX-License-Identifier: MIT */
/* sentinel.c: where do the sentinels say that the primary is?
 *
 * They are asked one after the other, each time a wire connects, until one of
 * them knows it; the one that knew it last comes first. Each has its part of the
 * time, so that one that hangs does not use up that of the others. What they say
 * may be late: route.c asks the server for its role, too.
 */
#include <stdio.h>
#include <string.h>

#include "error/error.h"
#include "port/time.h"
#include "wire.h"

/* WQ_ENOTFOUND: it does not know a primary of this name. */
static wq_err
read_answer(const struct wq__wire *w, const redisReply *reply,
            struct wq__address *out)
{
    if (reply->type == REDIS_REPLY_NIL)
        return WQ_ENOTFOUND;
    if (wq__reply_is_error(reply, NULL))
        return wq_fail(WQ_EAWAY, "redis: the sentinel %s answers: %.100s",
                       w->target->name, reply->str);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_STRING ||
        (size_t)reply->element[0]->len >= sizeof out->host ||
        (size_t)reply->element[1]->len >= sizeof out->port)
        return wq_fail(WQ_EAWAY, "redis: %s does not answer as a sentinel",
                       w->target->name);
    *out = (struct wq__address){.host = ""};
    memcpy(out->host, reply->element[0]->str, (size_t)reply->element[0]->len);
    memcpy(out->port, reply->element[1]->str, (size_t)reply->element[1]->len);
    return WQ_OK;
}

/* Ask one; its connection lasts for one question. What it needs of the target is
 * borrowed. */
static wq_err
ask(struct wq__target *whole, const struct wq__address *sentinel,
    int64_t timeout_ns, struct wq__address *out)
{
    struct wq__target t = {.login = whole->route.login,
                           .ca_file = whole->ca_file,
                           .cert_file = whole->cert_file,
                           .key_file = whole->key_file,
                           .tls = whole->tls,
                           .timeout_ns = timeout_ns,
                           .tls_ctx = whole->tls_ctx};
    const char *const words[] = {"SENTINEL", "get-master-addr-by-name",
                                 whole->route.primary};
    struct wq__arg    args[3];
    struct wq__wire   w;
    redisReply       *reply = NULL;

    for (size_t i = 0; i < 3; i++)
        args[i] = (struct wq__arg){words[i], strlen(words[i])};
    wq__route_init(&t.route);
    wq__route_learn(&t.route, sentinel);
    wq__address_print(sentinel, t.name, sizeof t.name);
    wq__wire_init(&w, &t);
    wq_err err = wq__wire_call(&w, args, 3, &reply);
    if (!err) {
        err = read_answer(&w, reply, out);
        freeReplyObject(reply);
    }
    const struct wq__sentence said = wq__fail_save();
    wq__wire_fini(&w, false);
    wq__fail_restore(&said);
    if (!whole->tls_ctx) /* the first connection of an engine makes it */
        whole->tls_ctx = t.tls_ctx;
    return err == WQ_EIO ? WQ_EAWAY : err;
}

/* `said`: about the last one that did not answer; `strangers`: how many do not
 * know the name. */
static wq_err
fail_all(const struct wq__route *r, size_t strangers, wq_err last)
{
    if (strangers)
        return wq_fail(
            WQ_EINVAL,
            "redis: %zu of %zu sentinels answer, and know no primary "
            "'%.60s'",
            strangers, r->len, r->primary);
    char why[200];
    (void)snprintf(why, sizeof why, "%s", wq_last_error());
    return wq_fail(last, "%s (of %zu sentinels none names the primary)", why,
                   r->len);
}

wq_err
wq__sentinel_ask(struct wq__wire *w, int64_t deadline_ns,
                 struct wq__address *out)
{
    struct wq__route *r = &w->target->route;
    size_t            strangers = 0;
    wq_err            err = WQ_EAWAY;

    wq__lock_take(&r->lock);
    const size_t first = r->next;
    wq__lock_release(&r->lock);
    for (size_t i = 0; i < r->len; i++) {
        const size_t  at = (first + i) % r->len;
        const int64_t left_ns = deadline_ns - wq__time_now();
        const int64_t part_ns = left_ns / (int64_t)(r->len - i + 1);

        err = part_ns > 0 ? ask(w->target, &r->known[at], part_ns, out)
                          : wq_fail(WQ_EAWAY, "redis: no time is left");
        if (!err) {
            wq__lock_take(&r->lock);
            r->next = at;
            wq__lock_release(&r->lock);
            return WQ_OK;
        }
        strangers += err == WQ_ENOTFOUND;
    }
    return fail_all(r, strangers, err == WQ_ENOTFOUND ? WQ_EAWAY : err);
}
