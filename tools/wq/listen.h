/* SPDX-License-Identifier: MIT */
/* listen.h: what can be asked over HTTP?
 *
 *     GET /          the live page (page.html)
 *     GET /metrics   Prometheus' text; OpenMetrics' if the client asks so
 *     GET /healthz   "ok", as long as the loop turns
 *     GET /view      what the page shows at this moment, as JSON (state.h)
 *     GET /events    the same as server-sent events, for as long as one likes
 *
 * /view and /events take ?q=TEXT (keys that have it in them) and ?show=STATE.
 * Where it listens, and for whom, is in address.h.
 *
 * Why a stream and not a page that asks every second: an answer can be given
 * when something has happened, which is sooner, and when nothing has, less
 * often; and the last numbers arrive before the program exits, which a page
 * that asks would miss.
 */
#ifndef WQ_TOOL_LISTEN_H
#define WQ_TOOL_LISTEN_H

#include <stdbool.h>

#include "loop.h"
#include "options.h"
#include "view.h"

struct listener; /* opaque */

/* Is `address` one that listen_create() takes? Returns NULL, or what is wrong
 * with it (also: that this wq was built without HTTP), valid until the next
 * call. */
const char *listen_check(const char *address);
/* *out is NULL if options->listen is. False: told on stderr. The address is
 * told on stderr, unless options->quiet; always if the system chose the port
 * (it was 0), since nobody could know. */
bool listen_create(const struct options *options, struct loop *loop,
                   struct runner *runner, struct listener **out);
/* Tell those who look at the page how it ended, and stop; takes at most some
 * tenths of a second. NULL is allowed. */
void listen_destroy(struct listener *listener);

#endif
