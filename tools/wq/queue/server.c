/* SPDX-License-Identifier: MIT */
/* server.c: what is known of the server of a queue? See server.h. */
#include "queue/server.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#ifdef WQ_HAVE_REDIS
#include <wq/redis.h>
#endif

bool
server_read(wq_queue *q, struct server *out)
{
#ifdef WQ_HAVE_REDIS
    wq_redis_server s = {.size = sizeof s};

    if (wq_redis_read_server(q, &s) != WQ_OK)
        return false;
    *out = (struct server){.reachable = s.reachable,
                           .lease_left_ns = s.lease_left_ns,
                           .reconnects = s.reconnects,
                           .partitions = s.partitions,
                           .partitions_away = s.partitions_away};
    (void)snprintf(out->name, sizeof out->name, "%s", s.name);
    (void)snprintf(out->version, sizeof out->version, "%s", s.version);
    (void)snprintf(out->role, sizeof out->role, "%s", s.role);
    return true;
#else
    (void)q, (void)out;
    return false;
#endif
}

static void
add_text(struct wq__text *out, const char *name, const char *value)
{
    text_print(out, ",\"%s\":", name);
    wq__text_json(out, value, strlen(value));
}

void
server_json(const struct server *server, struct wq__text *out)
{
    text_print(out,
               "{\"reachable\":%s,\"lease_left\":%" PRId64 ".%03" PRId64
               ",\"reconnects\":%" PRIu64,
               server->reachable ? "true" : "false",
               server->lease_left_ns / 1000000000,
               server->lease_left_ns % 1000000000 / 1000000,
               server->reconnects);
    add_text(out, "name", server->name);
    add_text(out, "version", server->version);
    add_text(out, "role", server->role);
    if (server->partitions > 1)
        text_print(out, ",\"partitions\":%u,\"partitions_away\":%u",
                   server->partitions, server->partitions_away);
    wq__text_char(out, '}');
}
