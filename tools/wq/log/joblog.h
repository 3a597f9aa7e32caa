/* SPDX-License-Identifier: MIT */
/* joblog.h: what does --joblog record? The format is that of GNU parallel.
 *
 * A heading, then a line for each run that settled its key: Seq, Host,
 * Starttime, JobRuntime, Send, Receive, Exitval, Signal, Command, separated by
 * tabs. An attempt that is followed by a retry has no line, as in GNU parallel:
 * a key that waits for its retry when wq ends is not in the log, and --resume
 * runs it.
 *
 * With --resume or --resume-failed, an existing file is read first and appended
 * to; otherwise it is overwritten. A key is identified by its Command, quoted as
 * GNU parallel does (a newline is a NUL), not by its Seq: the order of the input
 * may differ, and a log of GNU parallel for the same simple command can be
 * resumed, and vice versa. So words that differ between the runs of a key, such
 * as {#}, are not replaced in the log, and a log can only be resumed if COMMAND
 * has the whole key.
 */
#ifndef WQ_TOOL_JOBLOG_H
#define WQ_TOOL_JOBLOG_H

#include <stdbool.h>

#include <wq/wq.h>

#include "base/text.h"
#include "options/options.h"
#include "process/run.h"

/* A line of the resumed log. */
struct joblog_entry {
    const char *command; /* in `content` */
    size_t      len;     /* of it */
    size_t      number;  /* of the line: the last one for a Command counts */
    bool        ok;      /* it succeeded */
};

struct joblog {
    const struct options *options;
    int                   fd;
    struct wq__text       content;  /* of the resumed log */
    struct joblog_entry  *entries;  /* sorted; the last for each Command */
    size_t                n;        /* of them */
    size_t                capacity; /* of `entries` */
    uint64_t              last;     /* highest Seq */
    bool                  append;   /* the key is appended to COMMAND */
    bool                  named;    /* COMMAND has the whole key */
    bool                  failed;   /* nothing more is written */
    struct wq__text       line;     /* being written, or looked up */
};

/* Without --joblog the functions do nothing. False: reported on stderr. Call
 * joblog_close() in both cases. */
bool joblog_open(struct joblog *log, const struct options *options);
void joblog_close(struct joblog *log);

/* The highest Seq of the resumed file; 0: none. New runs continue from it. */
uint64_t joblog_last(const struct joblog *log);
/* Does --resume skip this key? For keys of the input and of --list, not for
 * retries and `add=`. */
bool joblog_skips(struct joblog *log, wq_key key);
/* A run is over. After output_finish(). */
void joblog_finished(struct joblog *log, const struct run *run);
/* Did writing fail? It was reported on stderr, and nothing more is written: exit
 * with STATUS_ERROR. */
bool joblog_failed(const struct joblog *log);

#endif
