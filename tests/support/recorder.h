/* SPDX-License-Identifier: MIT */
/* recorder.h: what was reported to a metrics sink?
 *
 *     struct recorder r;
 *     recorder_init(&r);
 *     ... WQ_CONFIG(.name = "test", .metrics = &r.sink) ...
 *     assert_int_equal(r.latency.n, 1);
 *     assert_int_equal(r.latency.ns[0], 50);
 *
 * A sink that keeps every duration reported to it, the sums of all changes, and
 * the wq_read_stats() of the closing queue. Each of its functions calls a
 * `hook`, with which a test makes the sink do more.
 *
 * Threads: any number may report. Read the fields after these threads have
 * ended, or from a hook.
 */
#ifndef WQ_TEST_RECORDER_H
#define WQ_TEST_RECORDER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/metrics.h>

enum { RECORDER_KEPT = 256 }; /* durations kept of a kind: the first ones */

/* Which of the sink's functions was called. */
enum recorder_call {
    RECORDER_OPEN,
    RECORDER_CLOSE,
    RECORDER_CHANGED,
    RECORDER_LATENCY,
    RECORDER_WORK,
    RECORDER_LIMITED,
    RECORDER_CALLS,
};

/* Durations of a kind. */
struct series {
    size_t  n;                 /* how many were reported */
    int64_t sum;               /* of all */
    int64_t least;             /* of all; INT64_MAX if there are none */
    int64_t ns[RECORDER_KEPT]; /* in the order of the reports */
};

struct recorder {
    wq_metrics sink;   /* for a config; may be changed before */
    wq_err     answer; /* of open(); WQ_OK unless set */
    /* Called by each function, with `mutex` released; or NULL. */
    void (*hook)(struct recorder *r, enum recorder_call call);
    void *arg; /* the hook's own */

    pthread_mutex_t mutex; /* guards all below */
    size_t          calls[RECORDER_CALLS];
    wq_queue       *q;        /* what open() was given */
    char            name[32]; /* truncated to fit */
    wq_change       sum;      /* of all changes */
    size_t          empty;    /* changes whose numbers were all zero */
    struct series   latency, work, limited;
    wq_stats        last;  /* of wq_read_stats() in close() */
    size_t          order; /* of close() among all recorders: 1, 2, ... */
};

/* Do not move `r` while a queue uses it. */
void recorder_init(struct recorder *r);

/* Are the sums of all changes what `counts` says, and was each of them a
 * change? */
bool recorder_agrees(const struct recorder *r, const wq_stats *counts);

#endif
