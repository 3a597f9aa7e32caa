/* SPDX-License-Identifier: MIT */
/* listener.h: what do the files of the HTTP server share?
 *
 * listen.c runs the server in the event loop, connections.c decides which
 * connections are dropped, serve.c answers requests, and stream.c writes the
 * server-sent events of /events.
 */
#ifndef WQ_TOOL_LISTENER_H
#define WQ_TOOL_LISTENER_H

#include <microhttpd.h>

#include "base/loop.h"
#include "base/text.h"
#include "display/rate.h"
#include "http/connections.h"
#include "http/history.h"
#include "http/keys.h"
#include "http/socket.h"
#include "options/options.h"
#include "run/view.h"

/* A client that reads /events. Owned by its response, which frees it. */
struct event_stream {
    struct listener       *listener;
    struct MHD_Connection *connection;
    struct keys            keys;         /* what it searches for, and found */
    uint64_t               history_from; /* samples before it were sent */
    uint64_t               failed_from;  /* failures before it were sent */
    struct wq__text        out;          /* the event being sent */
    size_t                 sent;         /* bytes of it that were sent */
    int64_t                written_ns;   /* when the event was written */
    bool                   suspended;    /* all is sent; waits for the next */
    bool                   due;          /* it gets an event in this tick */
    bool                   last;         /* nothing comes after `out` */
    struct event_stream   *next;         /* in listener->streams */
};

struct listener {
    const struct options *options;
    struct loop          *loop;
    struct runner        *runner;
    struct listen_socket  socket;
    struct MHD_Daemon    *daemon;
    struct connections    connections;
    struct watch          watch;    /* the daemon's epoll descriptor */
    struct watch          arrivals; /* new connections */
    struct timer          again;    /* when the daemon must run next */
    struct timer          tick;     /* when streams are looked at next */
    struct view           view;     /* the last one taken */
    struct run_rate       rate;
    struct history        history;
    struct keys_ration    ration;
    struct event_stream  *streams;
    size_t                n_streams;
    bool                  finished; /* the program is about to end */
};

/* ---- serve.c ------------------------------------------------------------- */

/* The MHD_AccessHandlerCallback; `listener` is a struct listener. */
enum MHD_Result serve(void *listener, struct MHD_Connection *client,
                      const char *url, const char *method, const char *version,
                      const char *upload, size_t *upload_size, void **state);

/* Refresh listener->view, its rate and its history. */
void listener_take_view(struct listener *l);

/* Add the state of listener->view as JSON (state.h). False: out of memory. */
bool listener_add_state(struct listener *l, const struct keys *keys,
                        uint64_t history_from, uint64_t failed_from,
                        struct wq__text *out);

/* ---- stream.c ------------------------------------------------------------ */

/* Start a stream, and write its first event. NULL: out of memory. */
struct MHD_Response *stream_create(struct listener         *l,
                                   struct MHD_Connection   *client,
                                   const struct keys_query *query);

/* Give the stream its next event if it has sent the last one. */
void stream_continue(struct event_stream *s);

/* Walk over the keys for the streams that are due, the oldest table first, as
 * far as the ration goes. */
void streams_look(struct listener *l);

/* Resume it without an event: the daemon must not be stopped while a connection
 * is suspended. */
void stream_resume(struct event_stream *s);

/* ---- listen.c ------------------------------------------------------------ */

/* Look at the streams soon: one was added. */
void listener_tick_soon(struct listener *l);

#endif
