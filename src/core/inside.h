/* SPDX-License-Identifier: MIT */
/* inside.h: what do the files of the core share about records?
 *
 * Small steps that core.c, add.c, due.c, look.c and audit.c all take. Besides
 * them only tests include this.
 */
#ifndef WQ_CORE_INSIDE_H
#define WQ_CORE_INSIDE_H

#include "core/core.h"

/* What is remembered about a key that is debounced or throttled, as long as it
 * has an entry in the delay heap. */
struct wq__pace {
    int64_t latest; /* DEBOUNCED: no deadline is later */
    /* How long the key is left alone after a run that serves a throttled add;
     * 0: the run serves none, or there is no such run. */
    int64_t next_span; /* of a READY or DIRTY key: after the next hand-out */
    int64_t wait_span; /* WAITING: after the run that the deadline asks for */
    int64_t until;     /* it is left alone; INT64_MIN: no such run yet */
};

static inline struct wq__rec *
wq__core_rec(const struct wq__core *c, wq__ref ref)
{
    return wq__slab_at(&c->recs, ref);
}

/* Has it a deadline? */
static inline bool
wq__rec_waits(const struct wq__rec *rec)
{
    return rec->wait && !(rec->flags & WQ__QUIET);
}

/* Will it be READY, or is it, whatever the time? */
static inline bool
wq__rec_is_wanted(const struct wq__rec *rec)
{
    return rec->flags & (WQ__READY | WQ__DIRTY);
}

/* Does it wait because it failed, and is nothing but that? */
static inline bool
wq__rec_backs_off(const struct wq__rec *rec)
{
    return (rec->flags & (WQ__BACKOFF | WQ__READY | WQ__HELD)) == WQ__BACKOFF;
}

/* Does its deadline serve anything but failures? */
static inline bool
wq__rec_is_expected(const struct wq__rec *rec)
{
    return !(rec->flags & WQ__BACKOFF) || rec->flags & WQ__EXPECTED;
}

/* Has it a backoff that adds, and a done while DIRTY, do not cut short? */
static inline bool
wq__core_respects_backoff(const struct wq__core *c, const struct wq__rec *rec)
{
    return c->respect && rec->flags & WQ__BACKOFF;
}

static inline bool
wq__core_is_higher(const struct wq__core *c, uint32_t level, uint32_t than)
{
    const struct wq__levels *l = &c->ready.levels;

    return level != than &&
           wq__levels_priority(l, level) > wq__levels_priority(l, than);
}

static inline struct wq__wait *
wq__core_entry(const struct wq__core *c, wq__ref ref)
{
    return wq__heap_entry(&c->waiting, ref);
}

/* What is remembered about the key's pace, or NULL. It has an entry. */
static inline struct wq__pace *
wq__core_pace(const struct wq__core *c, wq__ref ref)
{
    const wq__ref pace = wq__core_entry(c, ref)->pace;
    return pace ? wq__slab_at(&c->paces, pace) : NULL;
}

/* core.c: the record of a key, or a new one without any state, in the index:
 * pick->ref, pick->made. WQ_ENOMEM; whether there is room is not looked at. */
wq_err wq__core_find_or_make(struct wq__core *c, wq_key key,
                             struct wq__pick *pick);

/* core.c: a record in no list is not in the index any more, nor counted. It
 * stays in memory. */
void wq__core_unlist(struct wq__core *c, wq__ref ref);

/* core.c: a record without any state left is forgotten. */
void wq__core_forget_if_bare(struct wq__core *c, wq__ref ref);

/* core.c: `key` needs work, with the priority of `level`, which the caller
 * holds and goes on holding. WQ_ENOMEM, WQ_EFULL. */
wq_err wq__core_admit_to(struct wq__core *c, wq_key key, uint32_t hash,
                         int64_t now, uint32_t level, wq_added *what);

/* core.c: a known key needs work, with the priority of `level`, which the
 * caller holds and goes on holding. Only a wq_order fails. */
wq_err wq__core_want(struct wq__core *c, wq__ref ref, uint32_t level,
                     int64_t now, wq_added *what);

/* core.c: the same for one that is READY or DIRTY, which cannot fail. */
wq_added wq__core_merge(struct wq__core *c, wq__ref ref, uint32_t level);

/* core.c: a READY or DIRTY record is neither any more, and no hand-out comes of
 * it; the tally is the caller's, as is a QUIET entry. */
void wq__core_unwant(struct wq__core *c, wq__ref ref);

/* room.c: the keys of `picks` are in the index already, the new ones without any
 * state. WQ_EFULL: there is no room for them, and nothing has changed. Or READY
 * keys made room, if how->displace says so: those of the lowest priority first,
 * which is not above that of `level`, and none that `picks` names. They are a
 * list, threaded through their records. */
wq_err wq__core_make_room(struct wq__core *c, const struct wq__how *how,
                          uint32_t level, const struct wq__pick *picks,
                          size_t n, wq__ref *victims);

/* due.c: a record is to wait until `at`, with the priority of `level`, which
 * the caller holds and goes on holding. It has no deadline so far; room was
 * reserved in the heap. */
void wq__core_begin_deadline(struct wq__core *c, wq__ref ref, uint32_t level,
                             int64_t at);

/* due.c: its deadline serves this add, too, if need be with a higher
 * priority. */
wq_added wq__core_keep_deadline(struct wq__core *c, wq__ref ref,
                                uint32_t level);

/* due.c: its deadline is no more, and no run comes of it. If the key is left
 * alone at present, or will be after its next hand-out, that stays. */
void wq__core_end_deadline(struct wq__core *c, wq__ref ref, int64_t now);

/* due.c: the same, but the key is READY or DIRTY, and that run serves the
 * deadline. */
void wq__core_meet_deadline(struct wq__core *c, wq__ref ref, int64_t now);

/* due.c: a READY or DIRTY record, which has a deadline, is about to be neither:
 * the run that the deadline asks for serves what this one was for. */
void wq__core_defer_to_deadline(struct wq__core *c, wq__ref ref);

/* due.c: a QUIET entry goes away, or lives until the key may run again. */
void wq__core_settle_quiet(struct wq__core *c, wq__ref ref, int64_t now);

/* due.c: neither deadline nor pace. */
void wq__core_stop_waiting(struct wq__core *c, wq__ref ref);

#endif
