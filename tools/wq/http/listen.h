/* SPDX-License-Identifier: MIT */
/* listen.h: what does --listen serve?
 *
 *     GET /          the live page (page.html)
 *     GET /metrics   Prometheus text, or OpenMetrics if the client accepts it
 *     GET /healthz   "ok" while the event loop responds
 *     GET /readyz    the same, or 503 while the server of the queue is away
 *     GET /view      the current state as JSON (state.h)
 *     GET /events    the same as server-sent events, until the client leaves
 *
 * /view and /events take ?q=TEXT (only keys that contain it) and ?show=STATE
 * (all, running, retrying, waiting, ready or dead).
 * options/address.h says which addresses are accepted.
 *
 * Why a stream and not a page that polls: the server sends an event as soon as
 * something has changed, and fewer events while nothing changes; and the last
 * numbers arrive before the program exits, which a polling page would miss.
 *
 * This room needs libmicrohttpd. CMake leaves its .c files out if there is none;
 * then the functions below do nothing, and options.c refuses --listen.
 */
#ifndef WQ_TOOL_LISTEN_H
#define WQ_TOOL_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/loop.h"
#include "options/options.h"
#include "run/view.h"

struct listener; /* opaque */

#if WQ_HTTP

/* *out is NULL if options->listen is. False: reported on stderr. Prints the
 * address on stderr unless options->quiet; always if the system chose the port
 * (it was 0). */
bool listen_create(const struct options *options, struct loop *loop,
                   struct runner *runner, struct listener **out);
/* Send the last event to all streams, and stop. Takes at most some tenths of a
 * second. NULL is allowed. */
void listen_destroy(struct listener *listener);

#else

static inline bool
listen_create(const struct options *options, struct loop *loop,
              struct runner *runner, struct listener **out)
{
    (void)options, (void)loop, (void)runner;
    *out = NULL;
    return true;
}

static inline void
listen_destroy(struct listener *listener)
{
    (void)listener;
}

#endif

#endif
