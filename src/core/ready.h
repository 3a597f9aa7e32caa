/* SPDX-License-Identifier: MIT */
/* ready.h: in which order do READY keys leave?
 *
 * By priority, the highest first; first come, first served inside, by a list
 * threaded through the records: no memory of its own, so a push cannot fail.
 * Which priorities there are, levels.h knows; a record holds on to its level,
 * and whoever makes it READY has seen to that.
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
 * All of these are bits of `special`, and one comparison with 0 is all that a
 * plain queue pays for them.
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
    struct wq__levels levels;  /* their lines, and what else has a priority */

    struct wq__slab         *recs;   /* where references lead; not owned */
    const struct wq__index  *index;  /* whose key is it? not owned */
    const struct wq__hasher *hasher; /* for looking up there; not owned */

    wq_order          plug_in; /* PLUG_IN: a copy of the config's */
    struct wq__groups groups;  /* GROUPED */

    /* AGEING: */
    int64_t  max_ready_ns;   /* how long a key is READY before it is next */
    wq__ref  oldest, newest; /* the READY records, by age; 0: none */
    uint64_t overdue;        /* keys that left before their turn, so far */
};

/* `order` may be NULL: first come, first served. Must not be moved
 * afterwards. */
void wq__ready_init(struct wq__ready *r, struct wq__slab *recs,
                    const struct wq__index  *index,
                    const struct wq__hasher *hasher, const wq_order *order,
                    const wq_allocator *mem);
void wq__ready_fini(struct wq__ready *r);

/* How many could be handed out one after the other, if nothing else happened? */
static inline size_t
wq__ready_offers(const struct wq__ready *r)
{
    if (!r->special)
        return r->len;
    if (r->special & WQ__PAUSED)
        return 0;
    return r->special & WQ__GROUPED ? r->groups.offers : r->len;
}

/* The end of its level's line. The head of this file's own, as those down to
 * the push. */
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

/* The record `rec`, which `ref` names and which is not READY, becomes so, in
 * its level; sets its flag. Only a plug-in fails. */
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

/* A READY record goes to the end of another, higher level. */
void wq__ready_raise(struct wq__ready *r, wq__ref ref, uint32_t level);

/* The first of the highest line. `prev` of the one behind it is not written: it
 * says nothing there, and the record need not be touched. */
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

/* The record to hand out next leaves its place. WQ_ENOTFOUND: none may leave;
 * WQ_ESTATE: see below. */
wq_err wq__ready_take_special(struct wq__ready *r, int64_t now, wq__ref *out);

/* A record that has left its place is not READY. */
static inline void
wq__ready_unmark(struct wq__ready *r, struct wq__rec *rec)
{
    wq__rec_clear(rec, WQ__READY);
    r->levels.at[rec->level].len--;
    r->len--;
}

/* Take out the record to hand out next; clears its flag. `now` matters only to
 * AGEING queues.
 *
 * WQ_ENOTFOUND: none is READY, or may leave. WQ_ESTATE: the plug-in gave none
 * although some are, or a key that is not READY; nothing changed here. */
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

/* Can READY records be taken out that are not the next? */
bool wq__ready_can_remove(const struct wq__ready *r);

/* Take out a READY record; clears its flag. */
void wq__ready_remove(struct wq__ready *r, wq__ref ref);

#endif
