/* SPDX-License-Identifier: MIT */
/* holder.h: how is a key held for another process?
 *
 * A hold belongs to a process. `wq get` ends as soon as it has printed the key;
 * so it opens the queue for the process that called it, usually a script. Keys
 * that are got then stay HELD until `wq done`, or until that process ends. Only
 * queues in SQLite can do this.
 */
#ifndef WQ_TOOL_HOLDER_H
#define WQ_TOOL_HOLDER_H

#include <stdbool.h>

#include <wq/wq.h>

#include "options/options.h"

/* The process that holds the keys: --holder, or our parent. */
int holder_of(const struct options *options);

/* queue_open() for that process. */
bool holder_open(const struct options *options, const wq_config *config,
                 wq_queue **out);

/* A loan of a key that the process holds. WQ_ENOTFOUND: it does not hold it;
 * else as wq_sqlite_resume(). */
wq_err holder_resume(wq_queue *q, wq_key key, wq_item **out);

#endif
