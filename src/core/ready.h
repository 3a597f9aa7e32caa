/* SPDX-License-Identifier: MIT */
/* ready.h: in which order do READY keys leave?
 *
 * By priority, the highest first; within a priority first in, first out. Each
 * priority has a list that is linked through the records: it needs no memory,
 * so a push cannot fail. levels.h manages the priorities; the caller that makes
 * a record READY holds its level.
 *
 * Some queues are special:
 *
 *   PLUG_IN   a wq_order of the user decides; then a push can fail, and nothing
 *             has changed
 *   GROUPED   within a priority the groups take turns (groups.h)
 *   AGEING    a key that has been READY for `max_ready_ns` is next, whatever
 *             its priority: all READY keys are in a list, the oldest first
 *   SIZED     levels know how many bytes their READY keys have
 *   PAUSED    no key leaves
 *
 * Each is a bit of `special`: a plain queue pays one comparison with 0 for all
 * of them.
 *
 * Cost: O(1), with priorities O(log levels); or the wq_order's.
 */
#ifndef WQ_CORE_READY_H
#define WQ_CORE_READY_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include <wq/wq.h>

#include "core/groups.h"
#include "core/hash.h"
#include "core/index.h"
#include "core/levels.h"
#include "core/record.h"
#include "core/slab.h"

enum wq__special {
    WQ__PLUG_IN = 1,
    WQ__GROUPED = 2,
    WQ__AGEING = 4,
    WQ__SIZED = 8,
    WQ__PAUSED = 16,
};

struct wq__ready {
    size_t            len;     /* READY records */
    unsigned          special; /* enum wq__special */
    struct wq__levels levels;  /* their lists by priority */

    struct wq__slab *recs; /* the records; not owned */
    /* To check what a plug-in returns; not owned. */
    const struct wq__index  *index;
    const struct wq__hasher *hasher; /* for the index; not owned */

    wq_order          plug_in; /* PLUG_IN: a copy of the config's */
    struct wq__groups groups;  /* GROUPED */

    /* AGEING: */
    int64_t  max_ready_ns;   /* one that was READY for this time is next */
    wq__ref  oldest, newest; /* the READY records, by age; 0: none */
    uint64_t overdue;        /* keys that left before their turn so far */
};

/* `order` may be NULL: first in, first out. Do not move it afterwards. */
void wq__ready_init(struct wq__ready *r, struct wq__slab *recs,
                    const struct wq__index  *index,
                    const struct wq__hasher *hasher, const wq_order *order,
                    const wq_allocator *mem);
void wq__ready_fini(struct wq__ready *r);

/* See wq__core_is_fifo(). */
static inline bool
wq__ready_is_fifo(const struct wq__ready *r)
{
    return !(r->special & (WQ__PLUG_IN | WQ__GROUPED | WQ__AGEING)) &&
           !r->levels.several;
}

/* How many keys could be handed out now, one after the other. */
static inline size_t
wq__ready_offers(const struct wq__ready *r)
{
    if (!r->special)
        return r->len;
    if (r->special & WQ__PAUSED)
        return 0;
    return r->special & WQ__GROUPED ? r->groups.offers : r->len;
}

/* Append to the list of its level. Private to ready.c and to the push below. */
static inline void
wq__ready_append(struct wq__ready *r, wq__ref ref, struct wq__rec *rec)
{
    struct wq__level *level = &r->levels.at[rec->level];

    rec->next = 0;
    rec->prev = level->last;
    if (level->last)
        ((struct wq__rec *)wq__slab_at(r->recs, level->last))->next = ref;
    else
        level->first = ref;
    level->last = ref;
    wq__levels_filled(&r->levels, rec->level);
}

wq_err wq__ready_push_special(struct wq__ready *r, wq__ref ref,
                              struct wq__rec *rec);

/* Make `rec`, the record of `ref`, READY in its level; sets its flag. It must
 * not be READY. Only a plug-in fails. */
static inline wq_err
wq__ready_push(struct wq__ready *r, wq__ref ref, struct wq__rec *rec)
{
    assert(!(rec->flags & WQ__READY));
    if (r->special) {
        const wq_err err = wq__ready_push_special(r, ref, rec);
        if (err)
            return err;
    } else {
        wq__ready_append(r, ref, rec);
    }
    wq__rec_set(rec, WQ__READY);
    r->levels.at[rec->level].len++;
    r->len++;
    return WQ_OK;
}

/* A READY record was added again. */
void wq__ready_touch(struct wq__ready *r, wq__ref ref);

/* A READY record moves to the end of another, higher level. */
void wq__ready_raise(struct wq__ready *r, wq__ref ref, uint32_t level);

/* Remove the first record of the highest level. Does not write `prev` of the
 * record behind it: `prev` of a first record is undefined, so its memory need
 * not be touched. */
static inline wq__ref
wq__ready_take_first(struct wq__ready *r)
{
    struct wq__level *level = &r->levels.at[wq__levels_top(&r->levels)];
    const wq__ref     ref = level->first;

    level->first = ((struct wq__rec *)wq__slab_at(r->recs, ref))->next;
    if (!level->first)
        level->last = 0;
    return ref;
}

/* The same for special queues. WQ_ENOTFOUND: no key may leave; WQ_ESTATE: see
 * below. */
wq_err wq__ready_take_special(struct wq__ready *r, int64_t now, wq__ref *out);

/* A record that was removed from its list stops being READY. */
static inline void
wq__ready_unmark(struct wq__ready *r, struct wq__rec *rec)
{
    wq__rec_clear(rec, WQ__READY);
    r->levels.at[rec->level].len--;
    r->len--;
}

/* Remove the record to hand out next; clears its flag. Only AGEING queues use
 * `now`.
 *
 * WQ_ENOTFOUND: no key is READY and may leave. WQ_ESTATE: the plug-in returned
 * no key although some are READY, or a key that is not READY; nothing changed.
 */
static inline wq_err
wq__ready_pop(struct wq__ready *r, int64_t now, wq__ref *out,
              struct wq__rec **rec)
{
    if (r->len == 0)
        return WQ_ENOTFOUND;
    if (r->special) {
        const wq_err err = wq__ready_take_special(r, now, out);
        if (err)
            return err;
    } else {
        *out = wq__ready_take_first(r);
    }
    *rec = wq__slab_at(r->recs, *out);
    wq__ready_unmark(r, *rec);
    return WQ_OK;
}

/* Can any READY record be removed, not only the next? */
bool wq__ready_can_remove(const struct wq__ready *r);

/* Remove a READY record; clears its flag. */
void wq__ready_remove(struct wq__ready *r, wq__ref ref);

#endif
