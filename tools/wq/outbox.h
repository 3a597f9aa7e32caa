/* SPDX-License-Identifier: MIT */
/* outbox.h: how does output get out while nobody may be kept waiting?
 *
 * Our stdout and stderr may be pipes whose reader is slow, or a terminal that
 * was stopped. A write() that waits there would stop time-outs, signals and
 * retries, too; O_NONBLOCK cannot be set, for others share what it is set on.
 * So poll() is asked first, and then at most PIPE_BUF bytes are written, which
 * a pipe that is ready takes. What does not go out now waits in a queue.
 *
 * It is one queue for both, so that where they are the same file what is for
 * one does not get in between what is for the other.
 */
#ifndef WQ_TOOL_OUTBOX_H
#define WQ_TOOL_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>

#include "loop.h"
#include "store.h"

enum door { DOOR_OUT, DOOR_ERR }; /* our stdout, our stderr */

struct outbox; /* opaque */

/* on_progress(ctx) is called from the loop, never from the calls below. NULL:
 * no memory. */
struct outbox *outbox_create(struct loop *loop, void (*on_progress)(void *ctx),
                             void        *ctx);
/* Writes what can be written without waiting, and frees. NULL is allowed. */
void outbox_destroy(struct outbox *box);

/* Let these bytes out behind all others. */
void outbox_add(struct outbox *box, enum door door, const void *data,
                size_t len);
/* Let out what is in the store, which is empty then. */
void outbox_add_store(struct outbox *box, enum door door, struct store *store);
/* Does what was added last for that door end within a line? */
bool outbox_within_line(const struct outbox *box, enum door door);

/* So much waits that no more should be added. */
bool outbox_congested(const struct outbox *box);
/* Nothing waits. */
bool outbox_idle(const struct outbox *box);
/* Nothing can be written to stdout any more. */
bool outbox_broken(const struct outbox *box);
/* Output was lost, other than by a reader that has gone; told on stderr. */
bool outbox_failed(const struct outbox *box);
/* ... namely now. */
void outbox_lost(struct outbox *box);

#endif
