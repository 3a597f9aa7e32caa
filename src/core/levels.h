/* SPDX-License-Identifier: MIT */
/* levels.h: which priorities are in use, and which one is served first?
 *
 * A level is a priority in use: the list of its READY keys, and how many other
 * keys will come to it (DIRTY ones at done, WAITING ones at their deadline). A
 * level is created when a key is first added with its priority, the only step
 * that can fail, and exists while a key holds it. So a key that was accepted
 * can later always be put into the list of its level, without memory.
 *
 * Level 0 has priority 0. It always exists and needs no memory: a queue without
 * priorities has one list and pays for no other.
 *
 * A hash table finds a level by its priority; a heap holds the levels with
 * READY keys, the highest on top. A level whose list becomes empty stays in the
 * heap until it is seen on top, or is freed: so a list that becomes empty and
 * fills again, as the list of a plain queue does all the time, costs nothing.
 *
 * Cost: O(1) for one level in use, else O(log levels).
 */
#ifndef WQ_CORE_LEVELS_H
#define WQ_CORE_LEVELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

#include "core/slab.h"

struct wq__level {
    int      priority;
    uint32_t place;       /* 1 + place in the heap; 0: not in it */
    wq__ref  first, last; /* its list of READY keys; 0: empty */
    size_t   dirty;       /* DIRTY keys with this priority */
    size_t   len;         /* READY keys: in the list, or in the wq_order */
    size_t   bytes;       /* bytes of these keys, if the queue counts them */
    /* READY and DIRTY keys, deadlines and adds in progress that need it; not
     * counted for level 0 */
    size_t   holders;
    uint32_t next_free; /* of a level that is not used */
};

struct wq__levels {
    const wq_allocator *mem;      /* not owned */
    struct wq__level   *at;       /* owned unless it is `plain`; by number */
    uint32_t           *heap;     /* owned, likewise: numbers of levels */
    uint32_t           *slots;    /* owned: 1 + number of a level; 0: free */
    uint32_t            cap;      /* of the first two; of slots: twice that */
    uint32_t            used;     /* levels in use, level 0 included */
    uint32_t            fresh;    /* numbers from this one on were never used */
    uint32_t            freed;    /* the first of the freed levels; 0: none */
    uint32_t            heap_len; /* levels in the heap */
    bool                several;  /* there was ever one beside level 0 */
    struct wq__level    plain[1]; /* all that a plain queue needs */
    uint32_t            plain_heap[1];
};

/* Do not move it afterwards. */
void wq__levels_init(struct wq__levels *l, const wq_allocator *mem);
void wq__levels_fini(struct wq__levels *l);

/* Find or create the level of a priority, and hold it once more. WQ_ENOMEM. */
wq_err wq__levels_find(struct wq__levels *l, int priority, uint32_t *level);

/* Hold `level` once more, or release it once. */
static inline void
wq__levels_hold(struct wq__levels *l, uint32_t level)
{
    if (level)
        l->at[level].holders++;
}

void wq__levels_release_nonzero(struct wq__levels *l, uint32_t level);

static inline void
wq__levels_release(struct wq__levels *l, uint32_t level)
{
    if (level)
        wq__levels_release_nonzero(l, level);
}

static inline int
wq__levels_priority(const struct wq__levels *l, uint32_t level)
{
    return l->at[level].priority;
}

/* The list of `level` is not empty any more. */
void wq__levels_enter_heap(struct wq__levels *l, uint32_t level);

static inline void
wq__levels_filled(struct wq__levels *l, uint32_t level)
{
    if (!l->at[level].place)
        wq__levels_enter_heap(l, level);
}

/* The highest level with READY keys. There must be one. */
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
