/* SPDX-License-Identifier: MIT */
/* open.h: which shared queue, and how is it opened?
 *
 * --queue or $WQ_QUEUE names it. Messages begin with the verb and say what the
 * store said; they contain no password.
 */
#ifndef WQ_TOOL_OPEN_H
#define WQ_TOOL_OPEN_H

#include <stdbool.h>

#include <wq/limiter.h>
#include <wq/wq.h>

#include "options/options.h"

/* Open options->queue. Takes over config->limiter. False: reported on stderr. */
bool queue_open(const struct options *options, const wq_config *config,
                wq_queue **out);

/* The same for keys that the process `holder` holds: see holder.h. */
bool queue_open_for(const struct options *options, int holder,
                    const wq_config *config, wq_queue **out);

/* Does the verb need a queue that exists? Then a mistake in the URL does not make
 * a new file. */
bool queue_must_exist(const struct options *options);

/* The limiter that delays failed keys. */
wq_limiter *queue_backoff(const struct backoff *how);
/* For wq_config.retry: what an add of a key does while its run fails. */
unsigned queue_retry_policy(const struct options *options);

/* What went wrong, in a sentence: what the store said, if it said something. */
const char *queue_error(wq_err err);

/* Report that the queue cannot be opened. */
void queue_refuse(const struct options *options, wq_err err);
/* Report that the verb cannot do `what`: "wq: list: cannot list the keys: ..." */
void queue_fail(const struct options *options, const char *what, wq_err err);
/* Report that it cannot do `what` with the key: "wq: add: cannot add k: the
 * disk is full". */
void queue_report(const struct options *options, const char *what, wq_key key,
                  wq_err err);

#endif
