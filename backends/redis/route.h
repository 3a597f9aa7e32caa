/* SPDX-License-Identifier: MIT */
/* route.h: at which address is the server of a queue now?
 *
 * Servers move. A wire asks for an address each time it connects:
 *
 *   FIXED     the address in the URL, or a unix socket
 *   SENTINEL  the sentinels know the primary (sentinel.c)
 *   CLUSTER   the queue is in one hash slot; a node that does not have it names
 *             the one that has (cluster.c)
 *
 * All wires of an engine share the route. When one of them finds the server at
 * another address, the others leave the old one with their next command.
 */
#ifndef WQ_REDIS_ROUTE_H
#define WQ_REDIS_ROUTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#include <wq/wq.h>

#include "login.h"
#include "port/lock.h"

struct wq__wire;

enum { WQ__HOST_BYTES = 256, WQ__ADDRESSES = 32 };

struct wq__address {
    char host[WQ__HOST_BYTES]; /* "": none */
    char port[8];
};

enum wq__route_kind { WQ__ROUTE_FIXED, WQ__ROUTE_SENTINEL, WQ__ROUTE_CLUSTER };

struct wq__route {
    /* ---- set when the engine is opened ---- */
    char            *primary; /* SENTINEL: its name there; owned */
    struct wq__login login;   /* ... and how to log in there */

    struct wq__lock     lock; /* guards what follows */
    enum wq__route_kind kind;
    /* FIXED: one, or none with a unix socket. SENTINEL: the sentinels. CLUSTER:
     * nodes; those of the URL come first. */
    struct wq__address known[WQ__ADDRESSES];
    size_t             len;
    size_t             next;  /* the one to try next */
    struct wq__address at;    /* where the server was last; "": not known */
    struct wq__address tried; /* the one that a wire tried last */
    struct wq__address away;  /* where it should be, but cannot be reached */
    atomic_uint        moves; /* how often that has changed */
};

void wq__route_init(struct wq__route *r);
void wq__route_fini(struct wq__route *r);

/* Read "HOST[:PORT]" or "[ADDRESS][:PORT]", in place. Messages do not quote it.
 */
wq_err wq__address_read(char *host, unsigned default_port,
                        struct wq__address *out);

/* HOST:PORT, or [ADDRESS]:PORT; cut if it does not fit. */
void wq__address_print(const struct wq__address *address, char *out,
                       size_t size);

/* The server that the handle talks to, or tries to; its path, or address. */
void wq__route_print(const struct wq__wire *w, char *out, size_t size);

/* With the lock, or before there are other threads: one more address, unless it
 * is there or there is no space. */
void wq__route_learn(struct wq__route *r, const struct wq__address *address);

/* How many addresses is a wire to try before it gives up? */
size_t wq__route_tries(struct wq__route *r);

/* Choose the address that a wire connects to, w->at; none: the unix socket.
 * Asks the sentinels, until the deadline. WQ_EAWAY, WQ_EINVAL. */
wq_err wq__route_choose(struct wq__wire *w, int64_t deadline_ns);

/* A script has run over this connection: the node has the slot, so that other wires
 * connect to it at once. */
void wq__route_served(struct wq__wire *w);

/* The address that was chosen last is of no use. */
void wq__route_failed(struct wq__wire *w);

/* The server is at another address than this connection. */
bool wq__route_is_elsewhere(struct wq__wire *w);

/* With the lock: the server is at this address. */
void wq__route_set(struct wq__route *r, const struct wq__address *address);

/* After log in: commands that find out whether this is the server that is meant,
 * and their replies. */
void   wq__route_add_checks(struct wq__wire *w);
wq_err wq__route_receive_checks(struct wq__wire *w, int64_t deadline_ns);

/* An error reply: has the server moved? Then the wire is closed, the address is
 * forgotten, or replaced by the one in the reply, and nothing has happened.
 * *again: the command may be sent again. */
void wq__route_note(struct wq__wire *w, const redisReply *reply, bool *again);

/* ---- sentinel.c ----------------------------------------------------------- */

/* Ask the sentinels where the primary is. */
wq_err wq__sentinel_ask(struct wq__wire *w, int64_t deadline_ns,
                        struct wq__address *out);

/* ---- cluster.c ------------------------------------------------------------ */

/* "MOVED SLOT HOST:PORT"; a reply without a host means that of the wire. False:
 * it has no address. */
bool wq__cluster_read_moved(const struct wq__wire *w, const redisReply *reply,
                            struct wq__address *out);

/* This server is a node of a cluster: remember that, and ask it for others. */
wq_err wq__cluster_begin(struct wq__wire *w);

#endif
