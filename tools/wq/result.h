/* SPDX-License-Identifier: MIT */
/* result.h: what does a child say on $WQ_RESULT_FD?
 *
 * Lines, at any time until it ends:
 *
 *     requeue-after=30s   run this key again then. After success: just so.
 *                         After a failure: instead of the backoff
 *     priority=10         of this key's next run, and of the `add`s below
 *     add=OTHERKEY        add that key, at once; to the end of the line
 *
 * Where the last of these is not ended by a newline it counts as well. What is
 * not understood is told on stderr once for each run, and left out.
 */
#ifndef WQ_TOOL_RESULT_H
#define WQ_TOOL_RESULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop.h"

struct run;

/* Who wants to know of `add=`. */
struct result_sink {
    void (*add)(void *ctx, struct run *run, const void *key, size_t len);
    void *ctx;
};

struct result {
    int                       fd;    /* our end; -1: none */
    struct loop              *loop;  /* not owned */
    struct watch              watch; /* of it, so that a child can say much */
    struct timer              late;  /* until it is watched */
    char                     *line;  /* a line that has not ended yet */
    size_t                    len, room; /* of it */
    bool                      overlong;  /* the rest of this line is left out */
    bool                      complained;  /* once is enough */
    bool                      requeue;     /* requeue-after was said */
    int64_t                   requeue_ns;  /* ... with this */
    bool                      prioritized; /* priority was said */
    int                       priority;    /* ... with this */
    const struct result_sink *sink;        /* not owned */
};

/* A pipe: *child_fd is for the child, to be closed once it is started. */
bool result_open(struct result *result, struct loop *loop, struct run *run,
                 const struct result_sink *sink, int *child_fd);
/* The child is gone: read what is there, and close. */
void result_finish(struct result *result, struct run *run);

#endif
