/* SPDX-License-Identifier: MIT */
/* view.h: what is the program doing right now?
 *
 * For the display, the page, the summary and the events. All numbers are from
 * one moment. A key that is added again after it was settled counts again:
 *
 *     keys = ok + failed + left        (skipped keys are not counted)
 */
#ifndef WQ_TOOL_VIEW_H
#define WQ_TOOL_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/inspect.h>
#include <wq/metrics.h>
#include <wq/wq.h>

#include "options/options.h"
#include "process/run.h"
#include "run/durations.h"
#include "run/failures.h"

struct runner;

enum phase {
    PHASE_RUNNING,   /* more input may come */
    PHASE_FINISHING, /* the input has ended: run the keys that are left */
    PHASE_DRAINING,  /* starts nothing more; lets runs finish */
    PHASE_STOPPING,  /* sent the stop signal to runs */
    PHASE_KILLING,   /* killed them */
};

/* Since the start. */
struct counts {
    uint64_t adds;      /* adds: input, list, `add=` */
    uint64_t merged;    /* of these: merged into a pending run */
    uint64_t skipped;   /* of these: skipped by --resume or --once */
    uint64_t unmatched; /* lines without a key: --key, --key-column; no adds */
    uint64_t bad;     /* records that are not keys (too long, NUL, not JSON) */
    uint64_t runs;    /* started */
    uint64_t ok;      /* keys that succeeded */
    uint64_t failed;  /* keys that failed for good, and `bad` */
    uint64_t retries; /* runs that failed and are retried */
    uint64_t tempfails; /* of these: exit 75 */
    uint64_t restarts;  /* runs stopped by --restart */
    uint64_t timeouts;  /* runs stopped by --timeout */
    uint64_t lost;      /* runs of a shared queue whose hold was lost */
};

struct view {
    int64_t    now_ns;     /* CLOCK_MONOTONIC */
    int64_t    started_ns; /* of the program, same clock */
    enum phase phase;
    bool       finite; /* the input has ended: the time left can be estimated
                          (retries may still come) */

    struct counts counts;

    /* Now; `outdated`: the store does not answer, and the numbers of its keys are
     * those of its last answer, or 0. */
    bool    outdated;
    size_t  ready;    /* READY keys: they wait for a slot or for --rate */
    size_t  waiting;  /* WAITING keys: debounce, after, retry */
    size_t  retrying; /* of these: for a retry (one that has become READY may
                         count while others wait) */
    size_t  running;  /* runs, as view_runs() lists them */
    size_t  again;    /* of these: DIRTY, the key runs once more */
    size_t  slots;    /* runs allowed at the same time */
    size_t  left;     /* keys not settled: running, READY, WAITING */
    size_t  dead;     /* DEAD keys of a shared queue */
    int64_t next_ns;  /* until the earliest deadline; WQ_FOREVER: none */
    bool    unread;   /* input was left unread: more keys may be left */
    /* Different keys that were settled; 0: not known, as there are too many.
     * Only at the end: how many of the keys that are left are among them. */
    uint64_t distinct, left_again;
};

void view_take(struct runner *runner, struct view *out);

/* The current runs, ordered by slot: *n pointers, valid until the callback of
 * the loop returns. */
struct run *const *view_runs(struct runner *runner, size_t *n);

/* "running", "finishing", ... */
const char *phase_name(enum phase phase);

/* For wq_each(), wq_read_key() and /metrics. */
wq_queue             *view_queue(struct runner *runner);
wq_registry          *view_registry(struct runner *runner);
const struct options *view_options(struct runner *runner);

/* Why keys failed, and how long things took. */
const struct failures        *view_failures(const struct runner *runner);
const struct queue_durations *view_durations(const struct runner *runner);

#endif
