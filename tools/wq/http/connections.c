/* SPDX-License-Identifier: MIT */
/* connections.c: which connections are open, and which one must go?
 *
 * libmicrohttpd has a timeout, but each byte restarts it. And it does not always
 * notice that a client has left (0.9.75): its epoll is edge-triggered, and it
 * reads once per edge. If half a request and the end of the stream arrive before
 * that read, there is one edge for both, and the end stays unread.
 *
 * There is no call that closes a connection of the daemon. So this file shuts the
 * socket down. That is a new edge, and the daemon closes the socket.
 */
#include "http/connections.h"

#include <sys/socket.h>

#include "http/listener.h"

/* How long a request may take to arrive, from the accept or the last response.
 * A request has some hundred bytes. A client that keeps a connection open for
 * longer without a request must reconnect. */
#define REQUEST_NS INT64_C(10000000000)

static struct connection *
connection_of(struct MHD_Connection *client)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(client, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

static void
drop(struct connection *one)
{
    (void)shutdown(one->fd, SHUT_RDWR);
    one->state = CONNECTION_DROPPED;
}

/* The one that has been in this state for longest; NULL: there is none. */
static struct connection *
oldest(struct connections *c, enum connection_state state)
{
    struct connection *found = NULL;

    for (size_t i = 0; i < CONNECTIONS; i++)
        if (c->all[i].state == state &&
            (!found || c->all[i].since_ns < found->since_ns))
            found = &c->all[i];
    return found;
}

/* Has the client closed the connection? What it sent before was read. */
static bool
has_left(const struct connection *one)
{
    char byte;

    return recv(one->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* ---- callbacks of the daemon --------------------------------------------- */

static void
started(struct listener *l, struct MHD_Connection *client, void **connection)
{
    const int fd =
        MHD_get_connection_info(client, MHD_CONNECTION_INFO_CONNECTION_FD)
            ->connect_fd;
    struct connection *one = oldest(&l->connections, CONNECTION_NONE);

    *connection = one;
    if (one)
        *one = (struct connection){.state = CONNECTION_ARRIVING,
                                   .since_ns = loop_now(l->loop),
                                   .fd = fd};
    else /* unreachable: the daemon has the same limit */
        (void)shutdown(fd, SHUT_RDWR);
}

void
connections_notify(void *listener, struct MHD_Connection *client,
                   void **connection, enum MHD_ConnectionNotificationCode what)
{
    struct connection *one = *connection;

    if (what == MHD_CONNECTION_NOTIFY_STARTED)
        started(listener, client, connection);
    else if (one)
        one->state = CONNECTION_NONE;
}

static void
set_state(const struct listener *l, struct MHD_Connection *client,
          enum connection_state state)
{
    struct connection *one = connection_of(client);

    if (!one || one->state == CONNECTION_DROPPED)
        return;
    one->state = state;
    one->since_ns = loop_now(l->loop);
}

void
connections_completed(void *listener, struct MHD_Connection *client,
                      void **state, enum MHD_RequestTerminationCode how)
{
    (void)state, (void)how;
    set_state(listener, client, CONNECTION_ARRIVING);
}

/* ---- the interface ------------------------------------------------------- */

void
connections_answer(struct listener *l, struct MHD_Connection *client,
                   bool is_stream)
{
    set_state(l, client,
              is_stream ? CONNECTION_STREAMING : CONNECTION_ANSWERED);
}

bool
connections_make_room(struct connections *c)
{
    struct connection *one;

    if (oldest(c, CONNECTION_NONE))
        return true;
    if (!(one = oldest(c, CONNECTION_DROPPED)) &&
        !(one = oldest(c, CONNECTION_ARRIVING)))
        one = oldest(c, CONNECTION_ANSWERED);
    if (one) /* not all are streams */
        drop(one);
    return false;
}

void
connections_sweep(struct connections *c, int64_t now_ns)
{
    for (size_t i = 0; i < CONNECTIONS; i++) {
        struct connection *one = &c->all[i];
        if (one->state == CONNECTION_ARRIVING &&
            (now_ns - one->since_ns >= REQUEST_NS || has_left(one)))
            drop(one);
    }
}
