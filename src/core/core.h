/* SPDX-License-Identifier: MIT */
/* core.h: what happens to a key?
 *
 * The heart: the whole meaning of the queue as a state machine of
 * (state, event, now). It knows no lock, clock, thread or I/O; whoever calls it
 * serialises the calls and passes the time. The laws L1 to L6 of docs/design.md
 * are kept here and checked by wq__core_check().
 *
 *                 add            get            done
 *       absent ────────► READY ────────► HELD ────────► absent
 *                          ▲              │
 *                          │ done         │ add
 *                          │              ▼
 *                          └───────── HELD+DIRTY
 *
 *       add: wq__core_add     get: wq__core_get     done: wq__core_done
 *
 *       WAITING, a deadline in the delay heap, is a state of its own: a key may
 *       wait and also be absent, READY, HELD or HELD+DIRTY. wq__core_add_with
 *       sets it; wq__core_promote acts as an add when the time has come. A
 *       deadline may be a backoff, which an add can be made to respect: it then
 *       counts as served by what happens when the backoff ends.
 *
 * Every verb prepares (all that can fail), then commits (nothing can). On any
 * error the state is what it was.
 *
 * core.c is the life of a key as in the picture, add.c the adds with a purpose,
 * due.c what becomes of deadlines, look.c what can be seen, audit.c whether all
 * laws hold.
 */
#ifndef WQ_CORE_CORE_H
#define WQ_CORE_CORE_H

#include <stddef.h>
#include <stdint.h>

#include <wq/inspect.h>
#include <wq/wq.h>

#include "core/hash.h"
#include "core/heap.h"
#include "core/index.h"
#include "core/loans.h"
#include "core/ready.h"
#include "core/record.h"
#include "core/slab.h"

/* What has happened since the queue was made: see wq_stats in inspect.h. */
struct wq__tally {
    uint64_t adds, merged, gets, dones, removed, displaced, deferred, drops;
};

struct wq__core {
    /* Read without a lock; rarely written, or never. */
    struct wq__hasher hasher;
    wq_allocator      mem;           /* a copy of the config's */
    size_t            max_len;       /* records there may be; 0: any number */
    bool              respect;       /* every add respects a backoff */
    bool              ages;          /* records and loans are stamped */
    bool              shutting_down; /* adds are refused */

    struct wq__slab  recs;    /* one record per known key */
    struct wq__loans loans;   /* one per HELD record */
    struct wq__slab  paces;   /* for debounced and throttled keys */
    struct wq__index index;   /* key -> record */
    struct wq__ready ready;   /* READY records, in order */
    struct wq__heap  waiting; /* WAITING records, by deadline; QUIET ones */
    size_t           dirty;   /* HELD+DIRTY records */
    size_t           quiet;   /* QUIET records */
    uint64_t         fence;   /* the fence given out last */
    struct wq__tally tally;
};

/* `order` and `mem` may be NULL. Cannot fail: memory is taken when needed. The
 * core must not be moved afterwards. `respect`, `ages` and `max_len` are set by
 * the caller before the first verb. */
void wq__core_init(struct wq__core *c, struct wq__hash_key secret,
                   const wq_order *order, const wq_allocator *mem);
void wq__core_fini(struct wq__core *c);

/* Verbs take the hash beside the key, so that it can be computed before the
 * caller takes its lock; and `now`, which matters only if ages are kept, or
 * where it is said. */
static inline uint32_t
wq__core_hash(const struct wq__core *c, wq_key key)
{
    return wq__hash(&c->hasher, key);
}

/* ---- adds --------------------------------------------------------------- */

/* `key` needs work, with priority 0. WQ_ESHUTDOWN, WQ_ENOMEM, WQ_EFULL. */
wq_err wq__core_add(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
                    wq_added *what);

/* wq__core_add() that was accepted before the shutdown. */
wq_err wq__core_admit(struct wq__core *c, wq_key key, uint32_t hash,
                      int64_t now, wq_added *what);

/* wq__core_add() with another priority. */
wq_err wq__core_add_urgent(struct wq__core *c, wq_key key, uint32_t hash,
                           int64_t now, int priority, wq_added *what);

/* How to add: what wq_add_options says, in the core's terms. */
struct wq__how {
    enum {
        WQ__ADD_NOW,      /* it needs work */
        WQ__ADD_AT,       /* ... at a time: wq__pick.at */
        WQ__ADD_DEBOUNCE, /* ... `span` after the last such add */
        WQ__ADD_THROTTLE, /* ... but not within `span` of its last hand-out */
    } kind;
    int64_t       now;      /* always needed */
    int64_t       span;     /* see above */
    int64_t       max_wait; /* DEBOUNCE: not later than this after the first */
    int           priority;
    bool          backoff;  /* AT: because it failed */
    bool          respect;  /* NOW: a key that waits by a backoff waits on */
    bool          displace; /* when full, the oldest make room */
    wq_if_waiting waiting;
};

/* One key of an add, and what the core knows about it. */
struct wq__pick {
    uint32_t hash;       /* in: of the key */
    wq__ref  ref;        /* the core's own, as the next one; 0: skipped, and
                            not known */
    bool     made;       /* its record was made by this add */
    bool     skip;       /* in: leave it alone; it counts as KEPT */
    bool     asked;      /* the caller's own */
    bool     backoff;    /* out: it waits because it failed */
    wq_added added;      /* out: what was done */
    bool     at_once;    /* in: AT: there is no deadline, it is now */
    int64_t  at;         /* in: AT: the deadline */
    int64_t  delay;      /* the caller's own: what the limiter said */
    wq__ref  victim;     /* out: who made room for it; 0: nobody */
    wq_key   victim_key; /* out: valid until the victim is freed */
};

/* All of `keys` need work: all or none. WQ_ESHUTDOWN, WQ_ENOMEM; WQ_EFULL:
 * there is no room, and *needs, which may be NULL, is for how many; an error
 * of a wq_order, perhaps of that name, and then *needs is 0 and the keys before
 * are added. Victims are to be given back by wq__core_bury(). */
wq_err wq__core_add_with(struct wq__core *c, const struct wq__how *how,
                         const wq_key *keys, struct wq__pick *picks, size_t n,
                         size_t *needs);
void   wq__core_bury(struct wq__core *c, wq__ref victim);

/* One key at a time, as wq_add_after(): `key` needs work at `at`; of two
 * deadlines the earlier stays (L5). `backoff`: because it failed. */
wq_err wq__core_add_after(struct wq__core *c, wq_key key, uint32_t hash,
                          int64_t now, int64_t at, bool backoff,
                          wq_added *what);

/* ---- taking back -------------------------------------------------------- */

/* `key` needs no work. Needs `now`. WQ_ENOTFOUND; WQ_ESTATE: it is HELD only;
 * WQ_ENOTSUP: the wq_order cannot. */
wq_err wq__core_remove(struct wq__core *c, wq_key key, uint32_t hash,
                       int64_t now);

/* Its deadline is no more. Needs `now`. WQ_ENOTFOUND: it has none. */
wq_err wq__core_cancel(struct wq__core *c, wq_key key, uint32_t hash,
                       int64_t now);

/* ---- time --------------------------------------------------------------- */

/* All deadlines that are not after `now` act as adds, in order. A key that a
 * wq_order refuses does not hold up the others: it waits on, and is offered
 * again WQ__OFFER_AGAIN_NS later. */
enum { WQ__OFFER_AGAIN_NS = 10000000 }; /* 10 ms: soon, but no spinning */
void wq__core_promote(struct wq__core *c, int64_t now);

/* When there is something to promote next, be it that a throttled key need not
 * be left alone any longer; WQ_FOREVER: never. */
int64_t wq__core_next_deadline(const struct wq__core *c);

/* The earliest deadline; WQ_FOREVER: there is none. Cost: O(1), and as many
 * keys as are left alone for less long. */
int64_t wq__core_first_deadline(const struct wq__core *c);

/* ---- get and done ------------------------------------------------------- */

/* Must the next get be told the time? */
static inline bool
wq__core_needs_time(const struct wq__core *c)
{
    return c->ages || c->paces.live;
}

/* Hand out the first READY key. WQ_ENOTFOUND: none is; WQ_ENOMEM; WQ_ESTATE:
 * the wq_order misbehaves. */
wq_err wq__core_get(struct wq__core *c, int64_t now, wq_item **out);

/* For how long an item on loan was READY before, if ages are kept. */
static inline int64_t
wq__core_latency(const wq_item *item)
{
    return ((const struct wq__loan *)(const void *)item)->waited;
}

/* The loan ends. `*work`: for how long it was one, if ages are kept. WQ_ESTATE:
 * not on loan from here; WQ_ENOMEM (wq_order). */
wq_err wq__core_done(struct wq__core *c, const wq_item *item, int64_t now,
                     int64_t *work);
wq_err wq__core_done_key(struct wq__core *c, wq_key key, uint32_t hash,
                         int64_t now, int64_t *work);

/* Are all of them on loan, and each named once? */
bool wq__core_are_lent(struct wq__core *c, wq_item *const *items, size_t n);

/* ---- life --------------------------------------------------------------- */

/* From now on adds are refused. What waits goes on waiting, or is dropped. */
void wq__core_shut_down(struct wq__core *c);
void wq__core_drop_waiting(struct wq__core *c);

/* ---- what can be seen --------------------------------------------------- */

/* Which states has `key`? enum wq__flag; 0: absent. */
unsigned wq__core_states(const struct wq__core *c, wq_key key, uint32_t hash);

/* Fill in what the core knows. */
void wq__core_stats(const struct wq__core *c, int64_t now, wq_stats *out);
void wq__core_look(const struct wq__core *c, wq_key key, uint32_t hash,
                   int64_t now, wq_key_info *out);
void wq__core_depths(const struct wq__core *c, wq_depth *out, size_t max,
                     size_t *n);

/* Look at the next record in memory that has one of `states` (enum wq_state),
 * from *cursor on, which begins at 0 and moves; at most *budget slots are
 * looked at, which is counted down. False: no more, or the budget is spent. */
bool wq__core_walk(const struct wq__core *c, wq__ref *cursor, size_t *budget,
                   unsigned states, int64_t now, wq_key *key,
                   wq_key_info *info);

/* How many keys are READY. */
static inline size_t
wq__core_len(const struct wq__core *c)
{
    return c->ready.len;
}

/* How many have a deadline. */
static inline size_t
wq__core_waiting(const struct wq__core *c)
{
    return c->waiting.len - c->quiet;
}

/* How many more keys there is room for. */
static inline size_t
wq__core_room(const struct wq__core *c)
{
    if (!c->max_len)
        return SIZE_MAX;
    return c->index.len < c->max_len ? c->max_len - c->index.len : 0;
}

/* Will no get find anything unless something is added: nothing is READY, and
 * nothing waits? */
static inline bool
wq__core_empty(const struct wq__core *c)
{
    return c->ready.len == 0 && wq__core_waiting(c) == 0;
}

/* Is there no work now: nothing READY, held or dirty? */
static inline bool
wq__core_idle(const struct wq__core *c)
{
    return c->ready.len == 0 && c->loans.live == 0;
}

/* Verify every law. NULL when all hold, else which one is broken and how (a
 * static string). Cost: O(n). */
const char *wq__core_check(const struct wq__core *c);

#endif
