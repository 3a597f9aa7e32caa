/* SPDX-License-Identifier: MIT */
/* core.h: what happens to a key?
 *
 * The core: all that a queue means, as a state machine of (state, event, now).
 * It knows no lock, clock, thread or I/O; its caller serialises the calls and
 * passes the time. It keeps the laws L1 to L6 of docs/design.md;
 * wq__core_check() verifies them.
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
 *       WAITING, a deadline in the delay heap, is a state of its own: a WAITING
 *       key may also be absent, READY, HELD or HELD+DIRTY. wq__core_add_with
 *       sets a deadline; wq__core_promote acts as an add when the deadline has
 *       passed. A deadline may be a backoff. An add that respects a backoff
 *       adds nothing: the run at the end of the backoff covers it.
 *
 * Every verb first prepares, which may fail, then commits, which cannot. After
 * an error the state is the same as before the call, unless the comment of the
 * verb says otherwise (wq__core_add_with).
 *
 * core.c implements the picture above; add.c adds with options; capacity.c what
 * they do in a full queue; due.c deadlines and cooldowns; view.c statistics and
 * key info; audit.c the check of all laws. image.h is about keys that come from
 * a store and go back there. */
#ifndef WQ_CORE_CORE_H
#define WQ_CORE_CORE_H

#include <stddef.h>
#include <stdint.h>

#include <wq/inspect.h>
#include <wq/wq.h>

#include "core/copies.h"
#include "core/flush.h"
#include "core/hash.h"
#include "core/heap.h"
#include "core/index.h"
#include "core/loans.h"
#include "core/ready.h"
#include "core/record.h"
#include "core/slab.h"

/* Counts since the queue was created: see wq_stats in inspect.h. */
struct wq__tally {
    uint64_t adds, merged, gets, dones, removed, displaced, deferred, drops;
    /* Pending runs and loans that imports have brought, less those that expels
     * have taken away (image.h), modulo 2^64: the others do not count them. */
    uint64_t imported_runs, imported_loans;
};

struct wq__core {
    /* Read without a lock; rarely written, or never. */
    struct wq__hasher hasher;
    wq_allocator      mem;       /* a copy of the config's */
    size_t            max_len;   /* most records; 0: any number */
    size_t            max_bytes; /* most bytes of their keys; 0: any number */
    bool              respect;   /* every add respects a backoff */
    bool              ages;      /* records and loans are stamped */
    bool              shutting_down; /* adds are refused */
    uint16_t          prefix;        /* bytes of a record before its key */
    uint16_t          fresh_flags;   /* of a new record: prefix and epoch */
    /* A done does more than end the loan: there are ages or groups, or a
     * flush has begun. */
    bool looks_at_done;

    struct wq__slab  recs;            /* one record per known key */
    struct wq__loans loans;           /* one per HELD record */
    struct wq__slab  throttle_states; /* for debounced and throttled keys */
    struct wq__index index;           /* key -> record */
    struct wq__ready ready;           /* READY records, in order */
    /* WAITING records by deadline; COOLDOWN ones by their end */
    struct wq__heap  waiting;
    size_t           dirty;     /* HELD+DIRTY records */
    size_t           cooldowns; /* COOLDOWN records */
    size_t           bytes;     /* of all keys, if there is a max_bytes */
    struct wq__flush flush;     /* which flushes have begun */
    uint64_t         fence;     /* the last one handed out */
    struct wq__tally tally;
};

/* `order` and `mem` may be NULL. Cannot fail: memory is allocated when needed.
 * Do not move the core afterwards. The caller may set `respect` and `max_len`
 * before the first verb. */
void wq__core_init(struct wq__core *c, struct wq__hash_key secret,
                   const wq_order *order, const wq_allocator *mem);
void wq__core_fini(struct wq__core *c);

/* To be called before the first verb:
 *
 *   keep_ages     records and loans store when their state began
 *   have_groups   keys belong to groups, with at most `max_held` HELD keys each
 *                 (0: any number); not with a wq_order
 *   serve_after   a key that has been READY for `max_ready_ns` is handed out
 *                 next; keeps ages; not with a wq_order or a max_held
 *   bound_bytes   all known keys together have at most `max_bytes` */
void wq__core_keep_ages(struct wq__core *c);
void wq__core_have_groups(struct wq__core *c, size_t max_held);
void wq__core_serve_after(struct wq__core *c, int64_t max_ready_ns);
void wq__core_bound_bytes(struct wq__core *c, size_t max_bytes);

/* Verbs take the hash beside the key, so that the caller can compute it before
 * it takes its lock. They use `now` only if ages are kept, unless the comment
 * of a verb says otherwise. */
static inline uint32_t
wq__core_hash(const struct wq__core *c, wq_key key)
{
    return wq__hash(&c->hasher, key);
}

/* ---- adds --------------------------------------------------------------- */

/* Request a run of `key` with priority 0. WQ_ESHUTDOWN, WQ_ENOMEM, WQ_EFULL. */
wq_err wq__core_add(struct wq__core *c, wq_key key, uint32_t hash, int64_t now,
                    wq_added *what);

/* wq__core_add() for a key that was accepted before the shutdown: never
 * WQ_ESHUTDOWN. */
wq_err wq__core_admit(struct wq__core *c, wq_key key, uint32_t hash,
                      int64_t now, wq_added *what);

/* wq__core_add() with another priority. */
wq_err wq__core_add_with_priority(struct wq__core *c, wq_key key, uint32_t hash,
                                  int64_t now, int priority, wq_added *what);

/* One key of wq__core_add_many(). */
struct wq__plain_add {
    uint32_t hash; /* in: of the key */
    wq__ref  ref;  /* private to the core, as the next */
    bool     made; /* this add created its record */
};

/* wq__core_add_with_priority() of all of `keys`, or of none. *results, which
 * may be NULL, becomes what was done with each key. Only for a queue without a
 * wq_order, groups or bounds. WQ_ESHUTDOWN, WQ_ENOMEM. */
wq_err wq__core_add_many(struct wq__core *c, const wq_key *keys,
                         struct wq__plain_add *adds, size_t n, int64_t now,
                         int priority, wq_added *results);

/* How to add: wq_add_options in the core's terms. */
struct wq__how {
    enum {
        WQ__ADD_NOW,      /* request a run now */
        WQ__ADD_AT,       /* ... at a time: wq__prepared.at */
        WQ__ADD_DEBOUNCE, /* ... `span` after the last such add */
        WQ__ADD_THROTTLE, /* ... but not within `span` of its last hand-out */
    } kind;
    int64_t       now;      /* always needed */
    int64_t       span;     /* see above */
    int64_t       max_wait; /* DEBOUNCE: not later than this after the first */
    int           priority;
    bool          backoff;  /* AT: because it failed */
    bool          respect;  /* NOW: a backoff of the key stays */
    bool          displace; /* when the queue is full, displace READY keys */
    wq_if_waiting waiting;
};

/* What the options say, but for the time and for `rate_limited`. */
static inline struct wq__how
wq__how_of(const wq_add_options *options)
{
    struct wq__how how = {
        .kind = WQ__ADD_NOW,
        .priority = options->priority,
        .waiting = options->waiting,
        .max_wait = options->max_wait_ns,
    };

    if (options->after_ns > 0) {
        how.kind = WQ__ADD_AT;
    } else if (options->debounce_ns) {
        how.kind = WQ__ADD_DEBOUNCE;
        how.span = options->debounce_ns;
    } else if (options->throttle_ns) {
        how.kind = WQ__ADD_THROTTLE;
        how.span = options->throttle_ns;
    }
    return how;
}

/* One key of an add, prepared: what the caller and the core know about it. */
struct wq__prepared {
    uint32_t hash; /* in: of the key */
    /* Private to the core, as the next; 0: skipped, and the key is unknown. */
    wq__ref  ref;
    bool     made;    /* this add created its record */
    bool     skip;    /* in: do not add this key; `added` is KEPT */
    bool     limited; /* private to the caller: the limiter was called for it */
    bool     backoff; /* out: AT: it was in BACKOFF before */
    wq_added added;   /* out: what was done */
    bool     at_once; /* in: AT: no deadline, request a run now */
    int64_t  at;      /* in: AT: the deadline */
    int64_t  delay;   /* private to the caller: the limiter's delay */
    wq_key   group;   /* in: of the key, if the queue has groups */
    uint32_t group_hash; /* in: wq__core_hash() of that; of no bytes: 0 */
};

/* A part of the capacity of a queue with bounds: keys, and bytes of keys. */
struct wq__capacity {
    size_t keys, bytes;
};

/* Add all of `keys`, or none. WQ_ESHUTDOWN, WQ_ENOMEM. WQ_EFULL: the queue is
 * full, and *needs, which may be NULL, says how much capacity the add needs. An
 * error of a wq_order, which may be WQ_EFULL too: *needs is 0, and the keys
 * before the failing one are added.
 *
 * With how->displace, *victims is the list of displaced keys; 0: none. They
 * have left the queue, but their records stay readable until
 * wq__core_free_victim(), which returns the next of the list. */
wq_err  wq__core_add_with(struct wq__core *c, const struct wq__how *how,
                          const wq_key *keys, struct wq__prepared *prepared,
                          size_t n, struct wq__capacity *needs,
                          wq__ref *victims);
wq_key  wq__core_victim_key(const struct wq__core *c, wq__ref victim);
wq__ref wq__core_free_victim(struct wq__core *c, wq__ref victim);

/* wq_add_after() of one key: request a run at `at`; of two deadlines the
 * earlier stays (L5). `backoff`: because the key failed. */
wq_err wq__core_add_after(struct wq__core *c, wq_key key, uint32_t hash,
                          int64_t now, int64_t at, bool backoff,
                          wq_added *what);

/* The deadline of `key`; WQ_FOREVER: it has none. */
int64_t wq__core_deadline(const struct wq__core *c, wq_key key, uint32_t hash);

/* Move the deadline of `key`, if it has one, to `at`, earlier or later.
 * `backoff`: because the key failed. Needs no memory. */
void wq__core_replace_deadline(struct wq__core *c, wq_key key, uint32_t hash,
                               int64_t at, bool backoff);

/* ---- withdrawing -------------------------------------------------------- */

/* Withdraw every request for a run of `key`, now or at a deadline. Uses `now`.
 * WQ_ENOTFOUND; WQ_ESTATE: it is HELD only; WQ_ENOTSUP: the wq_order cannot
 * remove. */
wq_err wq__core_remove(struct wq__core *c, wq_key key, uint32_t hash,
                       int64_t now);

/* Remove the deadline of `key`. Uses `now`. WQ_ENOTFOUND: it has none. */
wq_err wq__core_cancel(struct wq__core *c, wq_key key, uint32_t hash,
                       int64_t now);

/* `on`: when the loan of `key`, which must be HELD, ends, withdraw every
 * request that was made until then. !`on`: no longer. WQ_ENOTFOUND: it is not
 * HELD. */
wq_err wq__core_remove_at_done(struct wq__core *c, wq_key key, uint32_t hash,
                               bool on);

/* ---- waiting for work to be over ---------------------------------------- */

/* Begin a flush: returns the epoch to wait for. Has that epoch finished? */
uint64_t wq__core_begin_flush(struct wq__core *c);

static inline bool
wq__core_has_flushed(const struct wq__core *c, uint64_t epoch)
{
    return wq__flush_has_finished(&c->flush, epoch);
}

/* A flush of one key: the runs of it that were requested before a moment. */
struct wq__key_flush {
    uint64_t fence;   /* wait for the hand-outs up to this one, */
    bool     pending; /* and for the next one */
};

/* Begin a flush of `key`: the runs that are requested now. */
struct wq__key_flush wq__core_begin_key_flush(const struct wq__core *c,
                                              wq_key key, uint32_t hash);

/* Are these runs done or withdrawn? To be called after every change of the
 * queue, since it keeps track of hand-outs. */
bool wq__core_has_flushed_key(const struct wq__core *c, wq_key key,
                              uint32_t hash, struct wq__key_flush *flush);

/* ---- pausing ------------------------------------------------------------ */

/* While paused, wq__core_get() hands out no key. */
void wq__core_pause(struct wq__core *c, bool paused);

static inline bool
wq__core_is_paused(const struct wq__core *c)
{
    return c->ready.special & WQ__PAUSED;
}

/* ---- time --------------------------------------------------------------- */

/* All deadlines that are not after `now` act as adds, in order. A key that a
 * wq_order refuses does not delay the others: its deadline moves by
 * WQ__OFFER_AGAIN_NS. */
enum { WQ__OFFER_AGAIN_NS = 10000000 }; /* 10 ms: soon, but no spinning */
void wq__core_promote(struct wq__core *c, int64_t now);

/* When wq__core_promote() has something to do next: a deadline passes or a
 * cooldown ends. WQ_FOREVER: never. */
int64_t wq__core_next_deadline(const struct wq__core *c);

/* The earliest deadline; WQ_FOREVER: there is none. Cost: O(1), plus the number
 * of cooldowns that end before it. */
int64_t wq__core_first_deadline(const struct wq__core *c);

/* ---- get and done ------------------------------------------------------- */

/* Does the next get need the time? */
static inline bool
wq__core_needs_time(const struct wq__core *c)
{
    return c->ages || c->throttle_states.live;
}

/* Hand out the next READY key. WQ_ENOTFOUND: no key is READY and may be handed
 * out; WQ_ENOMEM; WQ_ESTATE: the wq_order misbehaves. */
wq_err wq__core_get(struct wq__core *c, int64_t now, wq_item **out);

/* Prepare a wq__core_get() at the same time, and show the item that it will
 * hand out; it cannot fail then, unless the core is changed before. *next has
 * no loan yet; its key is valid until the next change. *waited: as
 * wq__core_latency(), -1 if ages are not kept. Not for a queue with a wq_order,
 * groups or ageing. WQ_ENOTFOUND, WQ_ENOMEM: as wq__core_get(). */
wq_err wq__core_prepare_get(struct wq__core *c, int64_t now, wq_item *next,
                            int64_t *waited);

/* Note which thread got an item, by a number of the caller's choice. Does this
 * thread hold `key`, or any key? Cost of the last: O(the most keys that were
 * ever HELD at the same time). */
static inline void
wq__core_note_holder(wq_item *item, uint32_t thread)
{
    ((struct wq__loan *)(void *)item)->holder = thread;
}

bool wq__core_is_held_by(const struct wq__core *c, wq_key key, uint32_t hash,
                         uint32_t thread);
bool wq__core_holds_any(const struct wq__core *c, uint32_t thread);

/* How long the key of an item was READY, if ages are kept. */
static inline int64_t
wq__core_latency(const wq_item *item)
{
    return ((const struct wq__loan *)(const void *)item)->waited;
}

/* End a loan. `*work`: how long it lasted, if ages are kept. WQ_ESTATE: not a
 * loan of this queue; WQ_ENOMEM (wq_order). */
wq_err wq__core_done(struct wq__core *c, const wq_item *item, int64_t now,
                     int64_t *work);
wq_err wq__core_done_key(struct wq__core *c, wq_key key, uint32_t hash,
                         int64_t now, int64_t *work);

/* Without a lock: false if this loan of some queue has ended, so that its key
 * may not be read. Only a done can tell whether it is a loan of this queue. */
static inline bool
wq__core_may_be_lent(const wq_item *item)
{
    return ((const struct wq__loan *)(const void *)item)->rec != 0;
}

/* Give back the key of a loan: it is DIRTY, with `priority`, also after a
 * shutdown. WQ_ESTATE: not a loan of this queue; WQ_ENOMEM. */
wq_err wq__core_give_back(struct wq__core *c, const wq_item *item, int priority,
                          int64_t now);

/* Are all of them on loan, and is each of them named once? */
bool wq__core_are_lent(struct wq__core *c, wq_item *const *items, size_t n);

/* ---- life --------------------------------------------------------------- */

/* Refuse adds from now on; WAITING keys stay. Drop all WAITING keys. */
void wq__core_shut_down(struct wq__core *c);
void wq__core_drop_waiting(struct wq__core *c);

/* After wq__core_shut_down(): all deadlines pass now; backoffs that cover only
 * failures are dropped unless `backoffs`. A key that a wq_order refuses
 * stays WAITING. */
void wq__core_flush_waiting(struct wq__core *c, int64_t now, bool backoffs);

/* ---- what can be seen --------------------------------------------------- */

/* The states of `key`, of enum wq__flag; 0: absent. */
unsigned wq__core_states(const struct wq__core *c, wq_key key, uint32_t hash);

/* Fill in what the core knows. */
void wq__core_stats(const struct wq__core *c, int64_t now, wq_stats *out);
void wq__core_key_info(const struct wq__core *c, wq_key key, uint32_t hash,
                       int64_t now, wq_key_info *out);
void wq__core_depths(const struct wq__core *c, wq_depth *out, size_t max,
                     size_t *n);

/* Find the next record in memory that has one of `states` (enum wq_state).
 * *cursor, which begins at 0, moves on; each record that is looked at takes 1
 * from *budget. False: no more records, or the budget is 0. */
bool wq__core_walk(const struct wq__core *c, wq__ref *cursor, size_t *budget,
                   unsigned states, int64_t now, wq_key *key,
                   wq_key_info *info);

/* Copy the next such keys, as many as there is space for, without looking at
 * many records. False: there are no more. */
bool wq__core_copy_some(const struct wq__core *c, wq__ref *cursor,
                        unsigned states, int64_t now, struct wq__copies *out);

/* How many keys are READY. */
static inline size_t
wq__core_len(const struct wq__core *c)
{
    return c->ready.len;
}

/* How many keys have a deadline. */
static inline size_t
wq__core_waiting(const struct wq__core *c)
{
    return c->waiting.len - c->cooldowns;
}

/* How many keys gets could hand out now. */
static inline size_t
wq__core_offers(const struct wq__core *c)
{
    return wq__ready_offers(&c->ready);
}

/* How much more the queue can hold. */
static inline struct wq__capacity
wq__core_free_capacity(const struct wq__core *c)
{
    struct wq__capacity left = {SIZE_MAX, SIZE_MAX};

    if (c->max_len)
        left.keys = c->index.len < c->max_len ? c->max_len - c->index.len : 0;
    if (c->max_bytes)
        left.bytes = c->bytes < c->max_bytes ? c->max_bytes - c->bytes : 0;
    return left;
}

/* Would an empty queue hold this much? */
bool wq__core_ever_fits(const struct wq__core *c, struct wq__capacity needs);

static inline bool
wq__capacity_covers(struct wq__capacity left, struct wq__capacity needs)
{
    return needs.keys <= left.keys && needs.bytes <= left.bytes;
}

/* Runs that have not ended: of READY, HELD and DIRTY keys. */
static inline size_t
wq__core_unfinished_runs(const struct wq__core *c)
{
    return c->ready.len + c->loans.live + c->dirty;
}

/* Are keys handed out in the order in which they became READY? No longer, once a
 * key has had a priority. */
static inline bool
wq__core_is_fifo(const struct wq__core *c)
{
    return wq__ready_is_fifo(&c->ready);
}

/* Will gets find no key unless one is added: none is READY or WAITING? */
static inline bool
wq__core_empty(const struct wq__core *c)
{
    return c->ready.len == 0 && wq__core_waiting(c) == 0;
}

/* Is there no work now: no key is READY, HELD or DIRTY? */
static inline bool
wq__core_idle(const struct wq__core *c)
{
    return c->ready.len == 0 && c->loans.live == 0;
}

/* Verify every law. NULL when all hold, else which one is broken and how (a
 * static string). Cost: O(n). */
const char *wq__core_check(const struct wq__core *c);

#endif
