/* SPDX-License-Identifier: MIT */
/* crew.h: how many cycles do threads make in a while?
 *
 * A cycle of a thread adds a key of its own and takes any key. All threads
 * start at once, and stop after a time.
 */
#ifndef WQ_BENCH_CREW_H
#define WQ_BENCH_CREW_H

#include <stddef.h>

#include <wq/wq.h>

enum { CREW_MOST = 64 };

/* A thread, with a cache line of its own. */
struct member {
    _Alignas(64) wq_queue *queue;
    wq_item *item; /* what it holds between two cycles, or NULL */
    size_t   n;    /* cycles so far */
    void    *own;  /* of this member */
};

struct crew {
    size_t threads;
    void (*begin)(void); /* of a thread; NULL: nothing */
    void (*cycle)(struct member *m, wq_key key);
    struct member members[CREW_MOST]; /* `own` is set before crew_run() */
};

/* Run them for so long. Returns the number of their cycles. */
size_t crew_run(struct crew *crew, wq_queue *q, double span_ns,
                double *took_ns);

#endif
