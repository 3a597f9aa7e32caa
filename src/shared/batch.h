/* SPDX-License-Identifier: MIT */
/* batch.h: what is in a batch, and who carries it out? See batch.c.
 *
 * All of it is for the thread that leads (combine.c), which has the lock; it is
 * released meanwhile.
 */
#ifndef WQ_SHARED_BATCH_H
#define WQ_SHARED_BATCH_H

#include "port/park.h"
#include "shared/shared.h"

/* From so many threads on they are a crowd, and until they are fewer than the
 * second number: batches of a third of them are better than one of all. To change
 * between the two all the time would be worse than either. Measured:
 * docs/benchmarks/redis.md. In debug builds few are a crowd: so all tests with
 * threads have one. */
enum {
    WQ__CROWD = WQ_DEBUG ? 3 : 10,
    WQ__CROWD_STILL = WQ_DEBUG ? 2 : 8,
};

/* A thread with operations. On its stack. */
struct wq__post {
    struct wq__op    *ops;    /* may be NULL */
    struct wq__op    *last;   /* of these, while they are part of a batch */
    struct wq__post  *next;   /* in `posts`, or in the list of those answered */
    struct wq__parker parker; /* only if its thread waits */
    wq_err            err;    /* out: of the batch */
    wq_err            said;   /* out: the error that the engine spoke of */
    uint64_t unsettled;       /* out: its batch, if it must wait for settle() */
    bool     answered;        /* out: it has its results */
    bool     leads;           /* woken to lead; else it is answered */
};

/* Let batches take off while they may. Some thread has posted, or one flies. */
void wq__batch_launch(struct wq__shared *s);

/* Land the oldest batch, which there is. Returns the posts that have their results:
 * its own, and sometimes those of the next one. */
struct wq__post *wq__batch_land(struct wq__shared *s);

#endif
