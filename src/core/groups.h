/* SPDX-License-Identifier: MIT */
/* groups.h: which group is next, when the keys of several groups are READY?
 *
 * In a queue with groups (wq_config.group) the READY keys of one group and one
 * priority are a lane: a list that is linked through their records. The lanes
 * of one priority form a ring. A hand-out takes the first key of the lane that
 * the level points to, and the level then points to the next lane: groups take
 * turns (round robin), however many keys each group has.
 *
 *     level ──► lane a ◄─► lane b ◄─► lane c ◄─► (lane a)
 *                 │          │          │
 *                 a/1        b/1        c/1
 *                 a/2                   c/2
 *
 * A lane has no memory of its own: its first record stores its fields (struct
 * wq__member), and passes them to the next record when that becomes the first.
 * So making a key READY cannot fail. A group does have memory, allocated when
 * its first record is created.
 *
 * A group with `max_held` HELD keys is blocked: its lanes leave their rings
 * until one of these keys is done.
 *
 * Cost: independent of the number of groups. O(priorities among the READY keys
 * of the group) for a key that becomes READY, is handed out or removed, and for
 * a hand-out that blocks the group or a done that unblocks it.
 */
#ifndef WQ_CORE_GROUPS_H
#define WQ_CORE_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

#include "core/levels.h"
#include "core/record.h"
#include "core/slab.h"

struct wq__group {
    uint32_t number;  /* its index in the table */
    uint32_t next;    /* the next group in the same bucket; 0: none */
    uint32_t hash;    /* of its name */
    size_t   records; /* keys that belong to it; it exists while there is one */
    size_t   ready;   /* of these, how many are READY, */
    size_t   held;    /* and HELD */
    wq__ref  lanes;   /* the first record of one of its lanes; 0: none */
    size_t   len;     /* of the name */
    unsigned char name[];
};

struct wq__groups {
    const wq_allocator *mem;      /* not owned */
    struct wq__slab    *recs;     /* the records; not owned */
    struct wq__levels  *levels;   /* which own the rings; not owned here */
    size_t              max_held; /* most HELD keys of a group; 0: any number */
    size_t              offers;   /* READY keys that could be handed out now */

    struct wq__group **at; /* owned, and what it points to; by number, NULL:
                                   free; 0 is not used */
    uint32_t          *buckets; /* owned: the first group; 0: none */
    uint32_t          *spare;   /* owned: numbers that were used and are free */
    uint32_t           cap;     /* of all three; a power of two, or 0 */
    uint32_t           live;    /* how many groups exist */
    uint32_t           spares;  /* numbers in `spare` */
    uint32_t           fresh;   /* numbers from this one on were never used */
};

void wq__groups_init(struct wq__groups *g, const wq_allocator *mem,
                     struct wq__slab *recs, struct wq__levels *levels);
void wq__groups_fini(struct wq__groups *g);

/* One more record belongs to the group `name`, which may be empty: *number is
 * its number. Creates the group if it does not exist. WQ_ENOMEM: nothing
 * changed. */
wq_err wq__groups_join(struct wq__groups *g, wq_key name, uint32_t hash,
                       uint32_t *number);

/* A record, which is not READY, leaves its group. */
void wq__groups_part(struct wq__groups *g, struct wq__rec *rec);

/* A record that is not READY goes to the end of its lane. */
void wq__groups_push(struct wq__groups *g, wq__ref ref, struct wq__rec *rec);

/* Remove a READY record from its lane. */
void wq__groups_take_out(struct wq__groups *g, wq__ref ref);

/* Remove and return the next record of `level`, which has a lane in its ring;
 * the lane behind is next then. */
wq__ref wq__groups_take_first(struct wq__groups *g, uint32_t level);

/* A record that is not READY becomes HELD, or stops being HELD. */
void wq__groups_hold(struct wq__groups *g, struct wq__rec *rec);
void wq__groups_release(struct wq__groups *g, struct wq__rec *rec);

static inline struct wq__group *
wq__groups_of(const struct wq__groups *g, struct wq__rec *rec)
{
    return g->at[wq__rec_member(rec)->group];
}

/* Does the group have to wait for a done before its next hand-out? */
static inline bool
wq__groups_is_blocked(const struct wq__groups *g, const struct wq__group *group)
{
    return g->max_held && group->held >= g->max_held;
}

/* The first record of the lane that the group has in `level`; 0: none. */
wq__ref wq__groups_lane(const struct wq__groups *g, struct wq__group *group,
                        uint32_t level);

/* How many keys that lane has. */
size_t wq__groups_lane_len(const struct wq__groups *g, struct wq__group *group,
                           uint32_t level);

/* What is wrong here, or NULL; for the auditor. */
const char *wq__groups_check(const struct wq__groups *g);

#endif
