/* SPDX-License-Identifier: MIT */
/* failures.h: which keys have failed, and why?
 *
 * For the display, the page and the summary. Memory is bounded: the last failure
 * of the first FAILURES_FIRST keys that failed for good is kept, the last
 * FAILURES_KEPT failures for good, and the last failure of RETRIES_KEPT keys that
 * are retried; the oldest make room. About 250 KiB when all are in use, nothing
 * before the first failure.
 *
 * Cost: O(RETRIES_KEPT) for a failure, for the success of a retry, and for a
 * search.
 */
#ifndef WQ_TOOL_FAILURES_H
#define WQ_TOOL_FAILURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/short_key.h"
#include "process/run.h"

#define FAILURES_FIRST 10 /* that the summary lists */
#define FAILURES_KEPT 100 /* that the page shows */
#define RETRIES_KEPT 500  /* as many keys as the page shows */

/* A run that failed. */
struct failure {
    uint64_t         number; /* 1, 2, ... in the order of ends; 0: unused */
    struct short_key key;
    unsigned         attempt;
    unsigned         times;     /* of the first: how often the key failed */
    int              exit_code; /* if signal is 0 */
    int              signal;    /* that killed it; 0: it exited */
    bool             timed_out;
    int64_t          at_ns;          /* when it ended: CLOCK_MONOTONIC */
    size_t           line_len;       /* 0: no line is known */
    char             line[RUN_LINE]; /* its last line on stderr */
};

/* Zero has none. */
struct failures {
    uint64_t        count;   /* failures for good */
    uint64_t        beyond;  /* those of keys that `first` does not have */
    struct failure *first;   /* FAILURES_FIRST, one for a key; owned, or NULL */
    struct failure *kept;    /* FAILURES_KEPT: number n is at n % of that */
    uint64_t        retries; /* runs that failed and are retried */
    struct failure *retried; /* RETRIES_KEPT, in no order; one for a key */
};

void failures_fini(struct failures *f);

/* A run is over: note its failure, or forget those of a key that succeeded. Does
 * nothing but count if it is out of memory. */
void failures_note(struct failures *f, const struct run *run);

/* The failure with this number, if it is kept: from failures_oldest() to
 * f->count. NULL: no. */
const struct failure *failures_at(const struct failures *f, uint64_t number);
/* The lowest number that is kept and not below `from`. */
uint64_t failures_oldest(const struct failures *f, uint64_t from);
/* The last failure of one of the first keys, from 0; NULL: there is none. */
const struct failure *failures_first(const struct failures *f, size_t i);

/* The last failure of a key that is retried, or that failed for good; NULL: not
 * known. */
const struct failure *failures_of(const struct failures  *f,
                                  const struct short_key *key);
/* The latest one of a key that is retried; NULL: none. */
const struct failure *failures_last_retry(const struct failures *f);

/* "exit 3", "killed by SIGSEGV" or "timed out", as a string. */
#define FAILURE_REASON 48
const char *failure_reason(const struct failure *failure,
                           char                  text[FAILURE_REASON]);
/* What is known of the failure of a run that is over. */
struct failure failure_of(const struct run *run);

#endif
