/* SPDX-License-Identifier: MIT */
/* outbox.h: how is output written without blocking?
 *
 * Our stdout and stderr may be pipes with a slow reader, or a stopped terminal.
 * A write() that blocks would hold up timeouts, signals and retries, too.
 * O_NONBLOCK cannot be set, since other processes share the open file. A pipe is
 * opened anew by /proc, with O_NONBLOCK. For what cannot be opened so, poll()
 * comes first, and then a write() of at most PIPE_BUF bytes, for which a ready
 * pipe has space. The rest waits in a queue.
 *
 * There is one queue for both, so that pieces do not mix if both are the same
 * file.
 */
#ifndef WQ_TOOL_OUTBOX_H
#define WQ_TOOL_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "base/loop.h"
#include "output/store.h"

enum target { TARGET_OUT, TARGET_ERR }; /* our stdout, our stderr */

struct outbox; /* opaque */

/* The loop calls on_progress(ctx), never the functions below. NULL: out of
 * memory. */
struct outbox *outbox_create(struct loop *loop, void (*on_progress)(void *ctx),
                             void        *ctx);
/* Write what can be written without blocking, and free. NULL is allowed. */
void outbox_destroy(struct outbox *box);

/* Append bytes. */
void outbox_add(struct outbox *box, enum target target, const void *data,
                size_t len);
/* Append what is in the store, and make the store empty. */
void outbox_add_store(struct outbox *box, enum target target,
                      struct store *store);
/* Move bytes of a pipe to the target without a copy, and without waiting for
 * either. *n is their number. */
enum moved {
    MOVED,         /* *n is above 0 */
    MOVED_ALL,     /* the pipe has ended */
    MOVED_NONE,    /* there is nothing in the pipe */
    MOVED_FULL,    /* the target has no space: outbox_await_space() */
    MOVED_REFUSED, /* not possible now: read the pipe, and add the bytes */
};
enum moved outbox_move(struct outbox *box, enum target target, int pipe,
                       size_t *n);
/* Call on_progress() when the target has space. */
void outbox_await_space(struct outbox *box, enum target target);
/* Does the last byte added for the target not end a line? */
bool outbox_within_line(const struct outbox *box, enum target target);

/* Does so much wait that no more should be added? */
bool outbox_congested(const struct outbox *box);
/* Is everything written? */
bool outbox_idle(const struct outbox *box);
/* Notice that the reader of stdout has closed it, although only other processes
 * write to it. */
void outbox_watch_reader(struct outbox *box);
/* Look whether it has. */
void outbox_check_reader(struct outbox *box);
/* Is stdout unusable? */
bool outbox_broken(const struct outbox *box);
/* Was output lost, other than by EPIPE? Reported on stderr. */
bool outbox_failed(const struct outbox *box);
/* Report that output is lost for lack of memory. */
void outbox_lost(struct outbox *box);

#endif
