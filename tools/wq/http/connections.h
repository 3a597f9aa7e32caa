/* SPDX-License-Identifier: MIT */
/* connections.h: which connections are open, and which one must go?
 *
 *     accept ──► ARRIVING ──► ANSWERED, STREAMING     connections_answer()
 *                   ▲               │
 *                   └───────────────┘                 connections_completed()
 *
 *     any but STREAMING ──► DROPPED                   connections_make_room()
 *     ARRIVING          ──► DROPPED                   connections_sweep()
 *
 * Clients that send half a request, slowly or never the rest, must not keep
 * others out. So there is always room for one more connection: the one whose
 * request has been arriving for longest makes room. If there is none, the oldest
 * one that reads an answer goes. A stream never goes: serve.c bounds them.
 *
 * Cost: O(CONNECTIONS) for each function.
 */
#ifndef WQ_TOOL_CONNECTIONS_H
#define WQ_TOOL_CONNECTIONS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

/* Far more than the streams of serve.c, and far fewer than the 1024 file
 * descriptors that a program has by default. */
#define CONNECTIONS 128

struct listener;

enum connection_state {
    CONNECTION_NONE,
    CONNECTION_ARRIVING,  /* its next request is not complete */
    CONNECTION_ANSWERED,  /* the response is being sent */
    CONNECTION_STREAMING, /* the response is a stream of events */
    CONNECTION_DROPPED,   /* shut down; the daemon closes it when it runs */
};

struct connection {
    enum connection_state state;
    int64_t               since_ns; /* when the state began: loop_now() */
    int                   fd;       /* owned by the daemon */
};

/* Zero has none. */
struct connections {
    struct connection all[CONNECTIONS];
};

/* The two callbacks of the daemon; `listener` is a struct listener. */
void connections_notify(void *listener, struct MHD_Connection *client,
                        void                              **connection,
                        enum MHD_ConnectionNotificationCode what);
void connections_completed(void *listener, struct MHD_Connection *client,
                           void **state, enum MHD_RequestTerminationCode how);

/* The request of `client` is complete; the response follows. */
void connections_answer(struct listener *l, struct MHD_Connection *client,
                        bool is_stream);

/* Is there room for another connection? False: one was dropped, and there is room
 * after the daemon has run. */
bool connections_make_room(struct connections *c);

/* Drop connections whose request arrives too slowly, or never, because the
 * client has left. The daemon must run after it. */
void connections_sweep(struct connections *c, int64_t now_ns);

#endif
