/* SPDX-License-Identifier: MIT */
/* registry.h: what does a registry know?
 *
 * Names, sorted; each with the queues of that name that are open, and the
 * history of those that are not any more. When text is wanted every queue is
 * asked, its shards are added up, and the sums are put down beside the name
 * (registry.c); then they are written (exposition.c).
 *
 * One lock guards it all, but for the shards, which guard themselves. A queue's
 * lock is taken under it, by wq_read_stats() and wq_read_depths(), and never the other
 * way round: a queue reports without its lock. Names are never removed:
 * counters must not go down.
 */
#ifndef WQ_METRICS_REGISTRY_H
#define WQ_METRICS_REGISTRY_H

#include <wq/metrics.h>

#include "metrics/shards.h"
#include "port/lock.h"
#include "text/text.h"

/* As many priorities of a name have a label of their own: what a careless
 * caller can add to the number of series is bounded. */
enum { WQ__PRIORITIES = 25 };

/* What only grows. */
struct wq__history {
    uint64_t             adds, merged, retries, drops; /* see wq_stats */
    struct wq__durations durations[WQ__MEASURES];
};

struct wq__seconds {
    uint64_t seconds;
    uint32_t ns; /* below a second */
};

/* The sums over the queues of a name, at the moment they were asked. */
struct wq__totals {
    struct wq__history history;
    uint64_t           depth;
    uint64_t           waiting;
    uint64_t           paused;     /* how many queues are */
    struct wq__seconds unfinished; /* the sum over the queues */
    struct wq__seconds longest;    /* the largest of them */
    uint64_t           others;     /* depth of priorities without a label */
};

struct wq__name {
    char                *text; /* owned, `cap` bytes of which `len` count; */
    size_t               len;  /* is UTF-8: two names that look the same are */
    size_t               cap;  /* the same */
    struct wq__reporter *open; /* its queues; see registry.c */
    struct wq__history   closed; /* of queues that were destroyed */
    struct wq__totals    now;    /* as of the last question */
    struct {
        int      priority;
        uint64_t depth;      /* as of the last question */
    } known[WQ__PRIORITIES]; /* the first ones ever seen, by priority */
    size_t known_len;
    bool   has_others; /* there was a key of yet another one */
};

struct wq_registry {
    struct wq__lock   lock; /* guards all below but `mem` and `sink` */
    wq_allocator      mem;
    wq_metrics        sink;
    struct wq__name **names; /* owned, sorted by their bytes */
    size_t            names_len;
    size_t            names_cap;
    wq_depth         *depths; /* owned; what a queue's answer is put in */
    size_t            depths_cap;
};

/* Write what is put down beside the names. (exposition.c) */
void wq__exposition(const wq_registry *registry, wq_text format,
                    struct wq__text *t);

#endif
