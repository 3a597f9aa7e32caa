/* SPDX-License-Identifier: MIT */
/* events.h: what happens, for machines? One JSON object a line.
 *
 * --json writes them to stdout (through output_line(), so that they do not mix
 * with other output) or to a file; --listen's /events taps them. While nobody
 * listens the calls cost a comparison.
 *
 *     {"event":"added","time":...,"key":"a","how":"new"}
 *     {"event":"started","time":...,"key":"a","run":1,"slot":1,"attempt":1,...}
 *     {"event":"finished",...,"outcome":"ok","exit":0,"seconds":0.012}
 *     {"event":"finished",...,"outcome":"retry","exit":1,"retry_in":1.7}
 *     {"event":"summary",...}
 */
#ifndef WQ_TOOL_EVENTS_H
#define WQ_TOOL_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include <wq/wq.h>

#include "options.h"
#include "output.h"
#include "run.h"
#include "view.h"

struct events; /* opaque */

/* Always makes one (for taps). False: told on stderr. */
bool events_create(const struct options *options, struct output *output,
                   struct events **out);
void events_destroy(struct events *events); /* NULL is allowed */

/* Call line(ctx, json, len) for each, too; without a newline at the end. NULL:
 * no more. One tap at a time. */
void events_tap(struct events *events,
                void (*line)(void *ctx, const char *json, size_t len),
                void *ctx);

/* A key came in. `how`: what the queue made of it. */
void events_added(struct events *events, wq_key key, wq_added how, int priority,
                  int64_t after_ns);
/* --resume left it out. */
void events_skipped(struct events *events, wq_key key);
/* The child was started. */
void events_started(struct events *events, const struct run *run);
/* It is over; run->outcome says how. */
void events_finished(struct events *events, const struct run *run);
/* The phase has changed. `why`: "INT", "halt", "drain timeout", "end of
 * input", ... */
void events_phase(struct events *events, enum phase phase, const char *why);
/* --json=FILE could not be written, which was told on stderr; nothing is written
 * there any more: exit with STATUS_ERROR. */
bool events_failed(const struct events *events);
/* The last one. */
void events_summary(struct events *events, const struct view *view, int status);

#endif
