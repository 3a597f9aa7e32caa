/* SPDX-License-Identifier: MIT */
/* bare_queue.h: what does the layers' inner queue look like, and how does a test
 * stop or refuse its calls?
 *
 * A bare queue is an in-memory one that shows only the verbs that a backend must
 * have, and drain and interrupt. A test may replace or remove verbs in
 * b->backend. (support/plain_queue.h is a queue with an implementation of its
 * own.)
 *
 * A gate stops one call:
 *
 *     gate_arm(&g, GATE_BEFORE_GET);     the next get stops before it sleeps
 *     ...
 *     gate_await(&g);                    it has stopped
 *     gate_open(&g);                     it goes on
 */
#ifndef WQ_BARE_QUEUE_H
#define WQ_BARE_QUEUE_H

#include <stdatomic.h>

#include <wq/backend.h>

#include "support/checkpoint.h"

/* Where a gate can stop a call. Gets that do not sleep are not stopped. */
enum gate_at {
    GATE_BEFORE_GET = 1,  /* about to enter the in-memory queue */
    GATE_AFTER_GET = 2,   /* has left the in-memory queue */
    GATE_AFTER_ADD = 4,   /* the same, for an add of any kind */
    GATE_AFTER_DRAIN = 8, /* the same, for a drain */
    GATE_AFTER_WAIT = 16, /* the same, for a remove_wait that may block */
};

struct gate {
    atomic_uint at; /* of enum gate_at; the next call that gets there stops */
    struct checkpoint checkpoint;
};

#define GATE_INIT                                                              \
    {                                                                          \
        .checkpoint = CHECKPOINT_INIT                                          \
    }

struct bare {
    wq_queue       base;
    wq_backend     backend;     /* its own */
    wq_queue      *memory;      /* does the work; owned */
    struct gate   *gate;        /* the test's; outlives the queue. NULL: none */
    atomic_int    *destroys;    /* counted there, if not NULL */
    atomic_int     adds;        /* calls of add() */
    atomic_int     nowaits;     /* calls of add_with() with nowait */
    atomic_int     refuse_next; /* so many adds from now find no memory */
    const char    *refused_key; /* NULL: none */
    _Atomic wq_err refused_with; /* what its adds return; WQ_OK: they succeed */
    size_t         max_ready;    /* WQ_EFULL when so many are READY; 0: never */
    wq_err         add_with_err; /* what add_with() returns, if not WQ_OK */
    wq_err         remove_err;   /* what remove() returns, if not WQ_OK */
    atomic_int     removes;      /* calls of remove() */
};

/* Aborts without memory. `config` is that of the in-memory queue. */
struct bare *bare_create(const wq_config *config);

/* Show add_with and add_after, too. */
void bare_show_adds(struct bare *b);

/* Show key_info, each, stats, remove and remove_wait, too. */
void bare_show_keys(struct bare *b);

void gate_arm(struct gate *g, unsigned at);
/* Wait until a call has stopped; a timeout fails the test. */
void gate_await(struct gate *g);
void gate_open(struct gate *g);

#endif
