/* SPDX-License-Identifier: MIT */
/* recorder.h: what was a metrics' sink told?
 *
 *     struct recorder r;
 *     recorder_init(&r);
 *     ... WQ_CONFIG(.name = "test", .metrics = &r.sink) ...
 *     assert_int_equal(r.latency.n, 1);
 *     assert_int_equal(r.latency.ns[0], 50);
 *
 * It keeps every duration it is told, the sums of all changes, and what
 * wq_read_stats() says when the queue ends. A `hook` is called from each of its
 * functions, to do what the test wants a sink to do.
 *
 * Threads: it may be told by any number of them; it is read when they are done,
 * or from within a hook.
 */
#ifndef WQ_TEST_RECORDER_H
#define WQ_TEST_RECORDER_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/metrics.h>

enum { RECORDER_KEPT = 256 }; /* the first so many durations of a kind */

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
    size_t  n;                 /* how many were told */
    int64_t sum;               /* of all */
    int64_t least;             /* of all; INT64_MAX: there are none */
    int64_t ns[RECORDER_KEPT]; /* in the order they were told */
};

struct recorder {
    wq_metrics sink;   /* to be given to a config; may be changed before */
    wq_err     answer; /* of open(); WQ_OK unless set */
    /* Called by each function, without a lock of the recorder's; or NULL. */
    void (*hook)(struct recorder *r, enum recorder_call call);
    void *arg; /* the hook's own */

    pthread_mutex_t mutex; /* guards all below, against those who tell */
    size_t          calls[RECORDER_CALLS];
    wq_queue       *q;        /* what open() was given */
    char            name[32]; /* as much of it as fits */
    wq_change       sum;      /* of all changes */
    size_t          empty;    /* changes in which nothing had changed */
    struct series   latency, work, limited;
    wq_stats        last;  /* what wq_read_stats() said in close() */
    size_t          order; /* when close() was called: 1, 2, ... of all */
};

/* `r` must not be moved while a queue has it. */
void recorder_init(struct recorder *r);

#endif
