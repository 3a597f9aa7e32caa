/* SPDX-License-Identifier: MIT */
/* proxy.h: how does a test damage the connections to a server?
 *
 * A thread that listens on a socket beside that of the server, or on a port, and
 * passes on what comes, as the mode says.
 */
#ifndef WQ_TEST_REDIS_PROXY_H
#define WQ_TEST_REDIS_PROXY_H

#include "support/redis_server.h"

enum proxy_mode {
    PROXY_PASS,     /* all */
    PROXY_SPLIT,    /* all, byte by byte */
    PROXY_LOSE,     /* requests; the first reply is lost with its connection */
    PROXY_CUT,      /* nothing: a request ends its connection */
    PROXY_HANG,     /* nothing, and the connection stays: half open */
    PROXY_HOLD,     /* requests; replies wait for the next mode */
    PROXY_HOLD_ONE, /* all, but the connection of the first request with the
                       key PROXY_KEY: its replies wait for the next mode */
    PROXY_LATE,     /* all, but the first request: it arrives with the next
                       mode, also if its connection has ended */
    PROXY_DELAY,    /* all, replies PROXY_DELAY_MS late */
    PROXY_NOISE,    /* nothing; the answer is not of Redis */
    PROXY_HALF, /* all, but the first request is passed on and its connection
                   half closed: the client reads an end, not a reply */
};

enum { PROXY_DELAY_MS = 100 };
#define PROXY_KEY "held-by-proxy"

struct proxy;

struct proxy *proxy_start(const struct redis_server *server);
const char   *proxy_socket(const struct proxy *p);
/* The same for a server on a port of this machine; listens on another one. */
struct proxy *proxy_start_tcp(const char *server_port, char port[16]);
void          proxy_set(struct proxy *p, enum proxy_mode mode);
/* PROXY_LOSE after so many replies. */
void proxy_lose_after(struct proxy *p, int replies);
/* How many connections there were. */
unsigned proxy_connections(const struct proxy *p);
void     proxy_stop(struct proxy *p);

#endif
