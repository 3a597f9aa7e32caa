/* SPDX-License-Identifier: MIT */
/* levels.h: which priorities are in use, and which one is served first?
 *
 * A level is a priority that some key has: the line of READY keys with it, and
 * how many keys will come to it (DIRTY ones at done, WAITING ones in time). A
 * level is made when a key first asks for its priority, which is the only step
 * that can fail, and stays as long as a key holds on to it. So what was
 * accepted can always be put into its line later, without memory.
 *
 * Level 0 is the one of priority 0. It is always there and costs nothing: a
 * queue without priorities has one line, and no memory for the others.
 *
 * Levels are found by a hash of their priority; those that have READY keys are
 * in a heap with the highest on top. A level that has run empty stays in the
 * heap until it is seen on top, or goes away: a line that runs empty and fills
 * again, as the only one of a plain queue does all the time, costs nothing.
 *
 * Cost: O(1) for one level in use, else O(log levels).
 */
#ifndef WQ_CORE_LEVELS_H
#define WQ_CORE_LEVELS_H

#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

#include "core/slab.h"

struct wq__level {
    int      priority;
    uint32_t place;       /* 1 + place in the heap; 0: not in it */
    wq__ref  first, last; /* the line; 0: it is empty */
    size_t   dirty;       /* DIRTY keys that will come to it */
    size_t   len;         /* keys in the line, or in the wq_order */
    size_t   bytes;       /* ... of these keys, if the queue counts them */
    size_t   holders;     /* who needs it: READY and DIRTY keys, deadlines; not
                             counted for level 0 */
    uint32_t next_free;   /* of a level that is not in use */
};

struct wq__levels {
    const wq_allocator *mem;      /* not owned */
    struct wq__level   *at;       /* owned unless it is `plain`; by number */
    uint32_t           *heap;     /* owned, likewise: numbers of levels */
    uint32_t           *slots;    /* owned: 1 + number of a level; 0: free */
    uint32_t            cap;      /* of the first two; of slots: twice that */
    uint32_t            used;     /* levels in use, the first included */
    uint32_t            fresh;    /* from this number on, never used */
    uint32_t            freed;    /* a level that was used; 0: none */
    uint32_t            heap_len; /* levels in the heap */
    struct wq__level    plain[1]; /* all that a plain queue needs */
    uint32_t            plain_heap[1];
};

/* Must not be moved afterwards. */
void wq__levels_init(struct wq__levels *l, const wq_allocator *mem);
void wq__levels_fini(struct wq__levels *l);

/* The level of a priority, made if need be: once more somebody holds it.
 * WQ_ENOMEM. */
wq_err wq__levels_find(struct wq__levels *l, int priority, uint32_t *level);

/* Once more, and once less, somebody holds `level`. */
static inline void
wq__levels_hold(struct wq__levels *l, uint32_t level)
{
    if (level)
        l->at[level].holders++;
}

void wq__levels_let_go(struct wq__levels *l, uint32_t level);

static inline void
wq__levels_release(struct wq__levels *l, uint32_t level)
{
    if (level)
        wq__levels_let_go(l, level);
}

static inline int
wq__levels_priority(const struct wq__levels *l, uint32_t level)
{
    return l->at[level].priority;
}

/* `level` has got a key in its line. */
void wq__levels_enter_heap(struct wq__levels *l, uint32_t level);

static inline void
wq__levels_filled(struct wq__levels *l, uint32_t level)
{
    if (!l->at[level].place)
        wq__levels_enter_heap(l, level);
}

/* The highest level that has a key in its line. There must be one. */
uint32_t wq__levels_drop_empty_tops(struct wq__levels *l);

static inline uint32_t
wq__levels_top(struct wq__levels *l)
{
    const uint32_t top = l->heap[0];
    return l->at[top].first ? top : wq__levels_drop_empty_tops(l);
}

/* What is wrong here, or NULL; for the auditor. */
const char *wq__levels_check(const struct wq__levels *l);

#endif
