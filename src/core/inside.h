/* SPDX-License-Identifier: MIT */
/* inside.h: what do the files of the core share about records?
 *
 * Small functions that core.c, add.c, capacity.c, due.c, image.c, view.c and
 * audit.c use. Besides them only tests include this.
 */
#ifndef WQ_CORE_INSIDE_H
#define WQ_CORE_INSIDE_H

#include "core/core.h"

/* So many keys ahead an add of several prefetches their slots of the index, and
 * deadlines that pass in a row their records: memory that is not in the cache
 * takes some 100 ns. */
enum { WQ__AHEAD = 4 };

/* What the queue remembers about a debounced or throttled key, while the key
 * has an entry in the delay heap. A run that covers a throttled add is followed
 * by a cooldown, in which throttled adds do not run the key again. */
struct wq__throttle_state {
    int64_t latest; /* DEBOUNCED: no deadline is later */
    /* How long the cooldown is; 0: the run covers no throttled add, or there is
     * no such run. */
    int64_t next_cooldown;  /* READY or DIRTY: after the next hand-out */
    int64_t wait_cooldown;  /* WAITING: after the run at the deadline */
    int64_t cooldown_until; /* INT64_MIN: no cooldown has begun */
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
    return rec->wait && !(rec->flags & WQ__COOLDOWN);
}

/* Is a run pending: is it READY, or will it be at done? */
static inline bool
wq__rec_is_pending(const struct wq__rec *rec)
{
    return rec->flags & (WQ__READY | WQ__DIRTY);
}

/* Is it WAITING by a backoff, and neither READY nor HELD? */
static inline bool
wq__rec_backs_off(const struct wq__rec *rec)
{
    return (rec->flags & (WQ__BACKOFF | WQ__READY | WQ__HELD)) == WQ__BACKOFF;
}

/* Does its deadline cover an add that was not a failure? */
static inline bool
wq__rec_covers_add(const struct wq__rec *rec)
{
    return !(rec->flags & WQ__BACKOFF) || rec->flags & WQ__COVERS_ADD;
}

/* Has it a backoff that adds, and a done of a DIRTY key, must not shorten? */
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

/* Its throttle state, or NULL. The record has an entry in the heap. */
static inline struct wq__throttle_state *
wq__core_throttle_state(const struct wq__core *c, wq__ref ref)
{
    const wq__ref state = wq__core_entry(c, ref)->throttle;
    return state ? wq__slab_at(&c->throttle_states, state) : NULL;
}

/* core.c: find the record of a key, or create one without any state, in the
 * index; sets prepared->ref and prepared->made. WQ_ENOMEM. Does not check the
 * bounds. */
wq_err wq__core_find_or_make(struct wq__core *c, wq_key key,
                             struct wq__prepared *prepared);

/* core.c: a record that is in no list leaves the index and the counts. It stays
 * in memory. */
void wq__core_unlist(struct wq__core *c, wq__ref ref);

/* core.c: free a record that has no state left. */
void wq__core_forget_if_bare(struct wq__core *c, wq__ref ref);

/* core.c: request a run of `key` with the priority of `level`. The caller holds
 * the level, before and after. WQ_ENOMEM, WQ_EFULL. */
wq_err wq__core_admit_at_level(struct wq__core *c, wq_key key, uint32_t hash,
                               int64_t now, uint32_t level, wq_added *what);

/* core.c: the same for a key that has a record. Only a wq_order fails. */
wq_err wq__core_request_run(struct wq__core *c, wq__ref ref, uint32_t level,
                            int64_t now, wq_added *what);

/* core.c: the same for one that is READY or DIRTY; cannot fail. */
wq_added wq__core_merge(struct wq__core *c, wq__ref ref, uint32_t level);

/* core.c: withdraw the pending run of a READY or DIRTY record. The caller
 * counts it, and settles a COOLDOWN entry. */
void wq__core_withdraw_run(struct wq__core *c, wq__ref ref);

/* capacity.c: the keys of `prepared` are in the index already, the new ones
 * without any state. WQ_EFULL: the queue exceeds its bounds with them, and
 * nothing has changed. With how->displace, READY keys are displaced instead: of
 * the lowest priority first, none above the priority of `level`, and none that
 * `prepared` names. *victims is a list of them, linked through their records.
 */
wq_err wq__core_ensure_capacity(struct wq__core *c, const struct wq__how *how,
                                uint32_t                   level,
                                const struct wq__prepared *prepared, size_t n,
                                wq__ref *victims);

/* due.c: a record without a deadline gets one at `at`, with the priority of
 * `level`. The caller holds the level, before and after, and has reserved
 * memory in the heap. */
void wq__core_begin_deadline(struct wq__core *c, wq__ref ref, uint32_t level,
                             int64_t at);

/* due.c: its deadline covers this add, too, and takes over a higher
 * priority. */
wq_added wq__core_keep_deadline(struct wq__core *c, wq__ref ref,
                                uint32_t level);

/* due.c: remove its deadline; no run comes of it. A cooldown, now or after the
 * next hand-out, stays. */
void wq__core_end_deadline(struct wq__core *c, wq__ref ref, int64_t now);

/* due.c: the same for a READY or DIRTY key: the pending run covers the
 * adds that the deadline covers. */
void wq__core_meet_deadline(struct wq__core *c, wq__ref ref, int64_t now);

/* due.c: the pending run of a record that has a deadline is about to be
 * withdrawn: the run at the deadline covers its adds instead. */
void wq__core_defer_to_deadline(struct wq__core *c, wq__ref ref);

/* due.c: remove a COOLDOWN entry, or keep it until the cooldown ends. */
void wq__core_settle_cooldown(struct wq__core *c, wq__ref ref, int64_t now);

/* due.c: remove the deadline and the throttle state. */
void wq__core_stop_waiting(struct wq__core *c, wq__ref ref);

#endif
