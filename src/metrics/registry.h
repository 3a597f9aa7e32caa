/* SPDX-License-Identifier: MIT */
/* registry.h: what is a registry made of?
 *
 * Sorted names; each with the open queues of that name, and the counts of those
 * that were destroyed. To render text, the registry queries every queue, adds
 * up its shards, stores the sums with the name (registry.c), and writes them
 * (exposition.c).
 *
 * One lock guards all but the shards, which need none. A queue's lock is taken
 * under it, by wq_read_stats() and wq_read_depths(), and never the other way
 * round: a queue reports without holding its lock. Names are never removed:
 * counters must not go down.
 */
#ifndef WQ_METRICS_REGISTRY_H
#define WQ_METRICS_REGISTRY_H

#include <wq/metrics.h>

#include "metrics/shards.h"
#include "port/lock.h"
#include "text/text.h"

/* How many priorities of a name have a label of their own: a bound on the
 * number of series, whatever priorities a program uses. */
enum { WQ__PRIORITIES = 25 };

/* Counts that only grow. */
struct wq__history {
    uint64_t             adds, merged, retries, drops; /* see wq_stats */
    struct wq__durations durations[WQ__MEASURES];
};

struct wq__seconds {
    uint64_t seconds;
    uint32_t ns; /* below a second */
};

/* The sums over the queues of a name, at the last query. */
struct wq__totals {
    struct wq__history history;
    uint64_t           depth;
    uint64_t           waiting;
    uint64_t           paused;     /* how many of the queues are paused */
    struct wq__seconds unfinished; /* the sum over the queues */
    struct wq__seconds longest;    /* the largest of them */
    uint64_t           others;     /* depth of priorities without a label */
    bool unknown; /* a queue does not tell its state: no gauge is a sum */
};

struct wq__name {
    /* Owned: `cap` bytes, of which `len` are used. Valid UTF-8: names that look
     * the same are the same. */
    char                *text;
    size_t               len;
    size_t               cap;
    struct wq__reporter *open;   /* its queues; see registry.c */
    struct wq__history   closed; /* of queues that were destroyed */
    struct wq__totals    now;    /* at the last query */
    struct {
        int      priority;
        uint64_t depth;      /* at the last query */
    } known[WQ__PRIORITIES]; /* the first ones that were seen, sorted */
    size_t known_len;
    bool   has_others; /* a key had a priority without a label */
};

struct wq_registry {
    struct wq__lock   lock; /* guards all below but `mem` and `sink` */
    wq_allocator      mem;
    wq_metrics        sink;
    struct wq__name **names; /* owned, sorted by their bytes */
    size_t            names_len;
    size_t            names_cap;
    wq_depth         *depths; /* owned; a buffer for wq_read_depths() */
    size_t            depths_cap;
};

/* Write what is stored with the names. (exposition.c) */
void wq__exposition(const wq_registry *registry, wq_text format,
                    struct wq__text *t);

#endif
