/* SPDX-License-Identifier: MIT */
/* cluster.c: which node of a cluster has the queue?
 *
 * All keys of a queue have one hash slot. A node that does not have it answers
 * MOVED, with the address of the one that has: that is remembered, and asked from
 * then on. If it cannot be reached, other nodes are asked: those of the URL, and
 * those that the first node has named.
 *
 * While a slot moves, a part of its keys is in one node and a part in another. No
 * batch may run then: a script that a node begins because it has all keys would
 * end in the middle when it has deleted one. So scripts name a key, `none`, that
 * never exists: both nodes refuse them (ASK, TRYAGAIN) until the slot has moved.
 * This is why ASK is not followed.
 */
#include <stdio.h>
#include <string.h>

#include "error/error.h"
#include "wire.h"

bool
wq__cluster_read_moved(const struct wq__wire *w, const redisReply *reply,
                       struct wq__address *out)
{
    const char *at = strrchr(reply->str, ' ');
    const char *port = strrchr(reply->str, ':');

    if (!at || !port || port < at || !port[1] ||
        strlen(port + 1) >= sizeof out->port)
        return false;
    const size_t len = (size_t)(port - at - 1);
    if (len >= sizeof out->host || (len == 1 && at[1] == '?'))
        return false;
    *out = (struct wq__address){.host = ""};
    if (len)
        memcpy(out->host, at + 1, len);
    else
        (void)snprintf(out->host, sizeof out->host, "%s", w->at.host);
    (void)snprintf(out->port, sizeof out->port, "%s", port + 1);
    return *out->host != '\0';
}

static bool
read_node(const struct wq__wire *w, const redisReply *node,
          struct wq__address *out)
{
    if (node->type != REDIS_REPLY_ARRAY || node->elements < 2 ||
        node->element[1]->type != REDIS_REPLY_INTEGER)
        return false;
    const redisReply *host = node->element[0];
    const bool        named = host->type == REDIS_REPLY_STRING && host->len > 0;

    (void)snprintf(out->host, sizeof out->host, "%s",
                   named ? host->str : w->at.host);
    (void)snprintf(out->port, sizeof out->port, "%hu",
                   (unsigned short)node->element[1]->integer);
    return *out->host && strcmp(out->host, "?") != 0;
}

/* CLUSTER SLOTS: ranges, and the nodes of each, its primary first. Those without
 * a right to it know the nodes of the URL. */
static void
learn_nodes(struct wq__wire *w, const redisReply *slots)
{
    struct wq__route  *r = &w->target->route;
    struct wq__address node;

    if (slots->type != REDIS_REPLY_ARRAY)
        return;
    for (size_t i = 0; i < slots->elements; i++) {
        const redisReply *range = slots->element[i];
        for (size_t k = 2;
             range->type == REDIS_REPLY_ARRAY && k < range->elements; k++)
            if (read_node(w, range->element[k], &node))
                wq__route_learn(r, &node);
    }
}

wq_err
wq__cluster_begin(struct wq__wire *w)
{
    const struct wq__arg args[] = {{"CLUSTER", 7}, {"SLOTS", 5}};
    struct wq__route    *r = &w->target->route;
    redisReply          *reply = NULL;
    const wq_err         err = wq__wire_call(w, args, 2, &reply);

    if (err)
        return err == WQ_EIO ? WQ_EAWAY : err;
    wq__lock_take(&r->lock);
    r->kind = WQ__ROUTE_CLUSTER;
    learn_nodes(w, reply);
    wq__lock_release(&r->lock);
    freeReplyObject(reply);
    return WQ_OK;
}
