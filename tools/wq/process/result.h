/* SPDX-License-Identifier: MIT */
/* result.h: what does a run write to $WQ_RESULT_FD?
 *
 * Lines, at any time until it ends:
 *
 *     requeue-after=30s   run this key again after 30s; after a failure, this
 *                         replaces the backoff
 *     priority=10         of this key's next run, and of later `add` lines
 *     add=OTHERKEY        add that key at once; the key ends with the line
 *
 * The newline of the last line may be missing. Other lines are ignored; the
 * first one of a run is reported on stderr.
 */
#ifndef WQ_TOOL_RESULT_H
#define WQ_TOOL_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/loop.h"
#include "base/text.h"

struct run;

/* Called for `add=`. */
struct result_sink {
    void (*add)(void *ctx, struct run *run, const void *key, size_t len);
    void *ctx;
};

struct result {
    int                       fd;    /* our end; -1: none */
    struct loop              *loop;  /* not owned */
    struct watch              watch; /* of fd, so that a child can write much */
    struct timer              late;  /* starts the watch */
    struct wq__text           line;  /* the beginning of a line */
    bool                      overlong;   /* the rest of this line is dropped */
    bool                      complained; /* a bad line was reported */
    bool                      requeue;    /* requeue-after was given */
    int64_t                   requeue_ns; /* ... its value */
    bool                      prioritized; /* priority was given */
    int                       priority;    /* ... its value */
    const struct result_sink *sink;        /* not owned */
};

/* Create the pipe. *child_fd is for the child; close it after the start. False:
 * errno says why. */
bool result_open(struct result *result, struct loop *loop, struct run *run,
                 const struct result_sink *sink, int *child_fd);
/* The child has ended: read what is in the pipe, and close it. */
void result_finish(struct result *result, struct run *run);

#endif
