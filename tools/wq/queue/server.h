/* SPDX-License-Identifier: MIT */
/* server.h: what is known of the server of a queue?
 *
 * For `wq status`, the page and /metrics. Only queues in a server have one.
 */
#ifndef WQ_TOOL_SERVER_H
#define WQ_TOOL_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/wq.h>

#include "base/text.h"

struct server {
    bool     reachable;
    int64_t  lease_left_ns; /* for how long holds are certain */
    uint64_t reconnects;
    char     name[160];   /* HOST:PORT or PATH */
    char     version[32]; /* "Redis 7.0.15"; may be empty */
    char     role[16];    /* "primary"; may be empty */
    unsigned partitions;  /* of the queue; 1: it has none */
    unsigned partitions_away;
};

/* False: the queue is not in a server. */
bool server_read(wq_queue *q, struct server *out);

/* Add it as an object of JSON. */
void server_json(const struct server *server, struct wq__text *out);

#endif
