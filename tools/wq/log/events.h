/* SPDX-License-Identifier: MIT */
/* events.h: what does --json write? One JSON object per line.
 *
 * To stdout (through output_line(), so that lines do not mix with other output)
 * or to a file. Without --json a call costs a comparison.
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

#include "base/text.h"
#include "options/options.h"
#include "output/output.h"
#include "process/run.h"
#include "run/view.h"

struct events {
    struct output  *output; /* for stdout; NULL: not there */
    const char     *file;   /* name of the file; NULL: none */
    int             fd;     /* of the file; -1: none */
    bool            failed; /* an event is lost */
    struct wq__text line;   /* the current one */
};

/* False: reported on stderr. Call events_close() in both cases. */
bool events_open(struct events *events, const struct options *options,
                 struct output *output);
void events_close(struct events *events);

/* A key was added. `how`: the result of the add. */
void events_added(struct events *events, wq_key key, wq_added how, int priority,
                  int64_t after_ns);
/* --resume skipped it. */
void events_skipped(struct events *events, wq_key key);
/* The child was started. */
void events_started(struct events *events, const struct run *run);
/* The run is over; run->outcome says how. */
void events_finished(struct events *events, const struct run *run);
/* The phase has changed. `why`: "INT", "halt", "drain timeout", "end of
 * input", ... */
void events_phase(struct events *events, enum phase phase, const char *why);
/* Did writing --json=FILE fail? It was reported on stderr, and nothing more is
 * written there: exit with STATUS_ERROR. */
bool events_failed(const struct events *events);
/* The last event. `status`: the exit status, or minus a signal. */
void events_summary(struct events *events, const struct view *view, int status);

#endif
