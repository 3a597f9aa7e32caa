/* SPDX-License-Identifier: MIT */
/* run.h: what is known about one run, an execution of COMMAND for a key? */
#ifndef WQ_TOOL_RUN_H
#define WQ_TOOL_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <wq/wq.h>

#include "base/loop.h"
#include "process/result.h"

/* How it ended. */
enum outcome {
    OUTCOME_RUNNING,   /* not over */
    OUTCOME_OK,        /* exit 0 */
    OUTCOME_REQUEUE,   /* exit 0, and the key runs again after retry_in_ns */
    OUTCOME_RETRY,     /* it failed, and the key is retried after retry_in_ns */
    OUTCOME_FAILED,    /* it failed for good */
    OUTCOME_STOPPED,   /* wq stopped it (2nd signal, --halt=now, drain timeout):
                        the key is left */
    OUTCOME_RESTARTED, /* --restart stopped it: the key was added again */
    OUTCOME_LOST,      /* its hold was lost: the result does not count */
};

struct capture; /* internal to the room output */

#define RUN_LINE 160 /* bytes that are kept of the last line on stderr */

/* --max-args: one process works on several keys. It belongs to the first run;
 * the other keys have runs of their own, which `rest` links, and which get a copy
 * of the result. */
struct run {
    struct run *rest; /* the next key of the same process; NULL: none */

    wq_item *item;     /* HELD until the queue knows the result */
    wq_key   key;      /* a copy of item->key, in the slot; a NUL follows */
    wq_key   line;     /* the input line of the key, likewise; --key and the
                          like. Else the key */
    uint64_t lines;    /* so many lines had come for the key */
    uint64_t ticket;   /* --keep-order: see output_expect(); 0: none */
    uint64_t number;   /* 1, 2, ... in order of starts; Seq of the joblog */
    unsigned slot;     /* from 1; no other run has it at the same time */
    unsigned attempt;  /* 1: the first since the key was last settled */
    int      priority; /* of the item */
    char   **argv;     /* COMMAND with the key in it; ends with NULL. Valid
                          until the run is released */
    pid_t    pid;      /* also its process group; 0: not started */

    int64_t started_ns;      /* CLOCK_MONOTONIC */
    int64_t started_wall_ns; /* since 1970 */
    int64_t ended_ns;        /* CLOCK_MONOTONIC; 0: not over */

    /* Set when it is over: */
    int          exit_code; /* if signal is 0 */
    int          signal;    /* that killed it; 0: it exited */
    bool         timed_out; /* stopped by --timeout */
    bool         for_good;  /* a retry would not help */
    enum outcome outcome;
    int64_t      retry_in_ns; /* RETRY, REQUEUE: the key waits so long */

    struct capture *capture;   /* NULL: none */
    uint64_t        out_bytes; /* written to stdout; set by output_finish() */
    char            err_line[RUN_LINE]; /* the last line on stderr that is not
                                       blank, cut; set by output_finish() */
    size_t          err_len;            /* 0: none, or --ungroup */
    struct result   result;             /* what it wrote to $WQ_RESULT_FD */

    bool         lost;     /* its hold was lost (shared queues) */
    bool         deferred; /* requeue-after of a failure is stored, and the hold
                              is left to be ended (shared queues) */
    bool         restarting; /* --restart has stopped it */
    bool         stopping;   /* stop_signal was sent to its group */
    bool         killed;     /* SIGKILL was sent */
    struct timer limit;      /* first for stop_signal, then for SIGKILL */
};

/* The number of further keys of the process. */
static inline size_t
run_rest(const struct run *run)
{
    size_t n = 0;

    while ((run = run->rest))
        n++;
    return n;
}

#endif
