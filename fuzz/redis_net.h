/* SPDX-License-Identifier: MIT */
/* redis_net.h: how does a fuzz target stand for a Redis server?
 *
 * The linker lets the backend call these instead of socket(), connect(), poll(),
 * send() and recv() (--wrap in CMakeLists.txt): no byte leaves the process. All
 * connections succeed. What the server answers is a stream of bytes, of which
 * each recv() has a line; when it ends, the server closes the connection. A reply
 * ends with a line: so the backend itself finds where.
 * The greeting of a connection (CLIENT SETNAME) is answered as it should be.
 *
 * With WQ_FUZZ_SERVER=SOCKET in the environment the calls are real ones, to a
 * server at this socket, and what it answers is appended to the file
 * WQ_FUZZ_RECORD: an input for the next run.
 */
#ifndef WQ_FUZZ_REDIS_NET_H
#define WQ_FUZZ_REDIS_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct redis_net {
    const uint8_t *at, *end; /* what the server will answer */
    bool           info;     /* INFO is answered by that, too */
    bool           refuses;  /* no connection succeeds */
};

extern struct redis_net redis_net;

/* The socket to connect to. */
const char *redis_net_socket(void);

#endif
