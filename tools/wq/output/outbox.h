/* SPDX-License-Identifier: MIT */
/* outbox.h: how is output written without blocking?
 *
 * Our stdout and stderr may be pipes with a slow reader, or a stopped terminal.
 * A write() that blocks would hold up timeouts, signals and retries, too.
 * O_NONBLOCK cannot be set, since other processes share the open file. So poll()
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
