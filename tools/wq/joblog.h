/* SPDX-License-Identifier: MIT */
/* joblog.h: which runs were there, in the format of GNU parallel's --joblog?
 *
 * A heading, then a line for each run that settled its key, well or for bad:
 * Seq, Host, Starttime, JobRuntime, Send, Receive, Exitval, Signal, Command,
 * with tabs between. An attempt that is followed by another has no line, as in
 * GNU parallel: a key that waits for its retry when wq ends is not in the log,
 * and --resume runs it.
 *
 * With --resume or --resume-failed an existing file is read first, and appended
 * to; else it is begun anew. A key is known again by its Command, quoted as GNU
 * parallel does (a newline is a NUL), not by its Seq: the order of the input
 * may be another one, and a log that GNU parallel wrote for the same simple
 * command can be resumed, and the other way round.
 */
#ifndef WQ_TOOL_JOBLOG_H
#define WQ_TOOL_JOBLOG_H

#include <stdbool.h>

#include <wq/wq.h>

#include "options.h"
#include "run.h"

struct joblog; /* opaque */

/* *out is NULL if options->joblog is. False: told on stderr. */
bool joblog_open(const struct options *options, struct joblog **out);
void joblog_close(struct joblog *log); /* NULL is allowed, as below */

/* The highest Seq in the file that was resumed; 0: none. New runs count on. */
uint64_t joblog_last(const struct joblog *log);
/* Was this key dealt with, as options->resume says? Asked for keys that come in
 * by input or --list, not for retries and `add=`. */
bool joblog_skips(struct joblog *log, wq_key key);
/* A run is over. After output_finish(). */
void joblog_finished(struct joblog *log, const struct run *run);
/* A line could not be written, which was told on stderr; none is written any
 * more: exit with STATUS_ERROR. */
bool joblog_failed(const struct joblog *log);

#endif
