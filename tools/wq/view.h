/* SPDX-License-Identifier: MIT */
/* view.h: what is going on? Asked by progress, page and summary.
 *
 * Numbers are taken at one moment, between two events of the loop. A "key" here
 * is a piece of work: one that comes again after it was settled counts again.
 *
 *     keys = ok + failed + left        (skipped keys are none of these)
 */
#ifndef WQ_TOOL_VIEW_H
#define WQ_TOOL_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/inspect.h>
#include <wq/metrics.h>
#include <wq/wq.h>

#include "options.h"
#include "run.h"

struct runner;

/* What the program is at. */
enum phase {
    PHASE_RUNNING,   /* all is well; more input may come */
    PHASE_FINISHING, /* the input has ended: what is there is worked off */
    PHASE_DRAINING,  /* starts nothing more; lets runs finish */
    PHASE_STOPPING,  /* told runs to stop */
    PHASE_KILLING,   /* killed them */
};

struct view {
    int64_t    now_ns;     /* CLOCK_MONOTONIC */
    int64_t    started_ns; /* of the program, same clock */
    enum phase phase;
    bool       finite; /* the input has ended, nothing follows: an ETA makes
                          sense (retries may still come) */

    /* Since the beginning. */
    uint64_t adds;      /* keys that came in: input, list, `add=` */
    uint64_t merged;    /* of these: found the key pending; no run more */
    uint64_t skipped;   /* of these: --resume left them out */
    uint64_t bad;       /* input that is no key (too long, NUL, not JSON) */
    uint64_t runs;      /* started */
    uint64_t ok;        /* keys that succeeded */
    uint64_t failed;    /* keys that failed for good; and `bad` */
    uint64_t retries;   /* runs that failed and were put off */
    uint64_t tempfails; /* of these: exit 75, not an error */
    uint64_t timeouts;  /* runs stopped by --timeout */

    /* At this moment. */
    size_t  ready;    /* keys that wait for a slot (or for the rate) */
    size_t  waiting;  /* keys that wait for a time: debounce, after, retry */
    size_t  retrying; /* of these: because they failed (one that is due, and
                         in line again, may count while others wait) */
    size_t  running;  /* runs; = view_runs() */
    size_t  again;    /* of these: the key came again, and runs once more */
    size_t  slots;    /* runs allowed at the same time */
    size_t  left;     /* keys not settled: running, ready, waiting */
    bool    paced;    /* --rate holds back the next start */
    int64_t next_ns;  /* until the earliest deadline; WQ_FOREVER: none */
};

/* Take the numbers. */
void view_take(struct runner *runner, struct view *out);

/* The runs under way, in order of slots: *n pointers (none of them NULL), valid
 * until the loop goes on. */
struct run *const *view_runs(struct runner *runner, size_t *n);

/* For walks over keys (wq_each(), wq_read_key()) and for /metrics. */
wq_queue             *view_queue(struct runner *runner);
wq_registry          *view_registry(struct runner *runner);
const struct options *view_options(struct runner *runner);
struct events        *view_events(struct runner *runner);

#endif
