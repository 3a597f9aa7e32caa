/* SPDX-License-Identifier: MIT */
/* run.h: what is known about one execution of COMMAND for a key? */
#ifndef WQ_TOOL_RUN_H
#define WQ_TOOL_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <wq/wq.h>

#include "loop.h"
#include "result.h"

/* What became of it. */
enum outcome {
    OUTCOME_RUNNING, /* nothing yet */
    OUTCOME_OK,      /* exit 0 */
    OUTCOME_REQUEUE, /* exit 0, and the key comes again after retry_in_ns */
    OUTCOME_RETRY,   /* it failed, and is tried again after retry_in_ns */
    OUTCOME_FAILED,  /* it failed for good */
    OUTCOME_STOPPED, /* we ended it before its time (2nd signal, halt now, drain
                        time-out): the key is left */
};

struct capture; /* what output.c keeps for a run */

struct run {
    wq_item *item;     /* on loan from the queue until the run is over */
    wq_key   key;      /* item->key; the bytes are not terminated */
    uint64_t number;   /* 1, 2, ... as started; the joblog's Seq */
    unsigned slot;     /* 1 ... ; no other run has it at the same time */
    unsigned attempt;  /* 1: the first since the key last succeeded */
    int      priority; /* it was handed out with */
    char   **argv;     /* COMMAND with the key in it; ends with NULL. Valid
                          while the run lasts, to its `finished` calls */
    pid_t    pid;      /* and process group; 0: not started */

    int64_t started_ns;      /* CLOCK_MONOTONIC */
    int64_t started_wall_ns; /* since 1970 */
    int64_t ended_ns;        /* CLOCK_MONOTONIC; 0: it still runs */

    /* When it is over: */
    int          exit_code;   /* if signal is 0 */
    int          signal;      /* that killed it; 0: none */
    bool         timed_out;   /* it was told to stop by --timeout */
    bool         for_good;    /* no retry would help */
    enum outcome outcome;     /* and so ... */
    int64_t      retry_in_ns; /* ... RETRY, REQUEUE: the key waits so long */

    struct capture *capture;   /* output.c's own; NULL: none */
    uint64_t        out_bytes; /* on stdout; set by output_finish() */
    struct result   result;    /* what it said on $WQ_RESULT_FD */

    bool         stopping; /* stop_signal was sent to its group */
    bool         killed;   /* SIGKILL was */
    struct timer limit;    /* until stop_signal, or then until SIGKILL */
};

#endif
