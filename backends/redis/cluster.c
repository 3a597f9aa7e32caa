/* SPDX-License-Identifier: MIT */
/* cluster.c: which node of a cluster has the queue?
 *
 * All keys of a queue have one hash slot. A node that does not have it answers
 * MOVED, with the address of the one that has: that is remembered, and asked from
 * then on. If it cannot be reached, any other node that is known is asked.
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
