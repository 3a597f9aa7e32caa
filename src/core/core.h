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
 * room.c what they do when there is no room, due.c what becomes of deadlines,
 * look.c what can be seen, audit.c whether all laws hold.
 */
#ifndef WQ_CORE_CORE_H
#define WQ_CORE_CORE_H

#include <stddef.h>
#include <stdint.h>

#include <wq/inspect.h>
#include <wq/wq.h>

#include "core/flush.h"
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
    size_t            max_bytes;     /* bytes of their keys; 0: any number */
    bool              respect;       /* every add respects a backoff */
    bool              ages;          /* records and loans are stamped */
    bool              shutting_down; /* adds are refused */
    uint16_t          prefix;        /* what records have before their keys */
    uint16_t          fresh_flags;   /* of a new record: prefix and turn */
    bool              looks_at_done; /* there are ages or groups, or a flush is
                                        under way */

    struct wq__slab  recs;    /* one record per known key */
    struct wq__loans loans;   /* one per HELD record */
    struct wq__slab  paces;   /* for debounced and throttled keys */
    struct wq__index index;   /* key -> record */
    struct wq__ready ready;   /* READY records, in order */
    struct wq__heap  waiting; /* WAITING records, by deadline; QUIET ones */
    size_t           dirty;   /* HELD+DIRTY records */
    size_t           quiet;   /* QUIET records */
    size_t           bytes;   /* of all keys, if there is a max_bytes */
    struct wq__flush flush;   /* who waits for what was asked before */
    uint64_t         fence;   /* the fence given out last */
    struct wq__tally tally;
};

/* `order` and `mem` may be NULL. Cannot fail: memory is taken when needed. The
 * core must not be moved afterwards. `respect` and `max_len` may be set by the
 * caller before the first verb. */
void wq__core_init(struct wq__core *c, struct wq__hash_key secret,
                   const wq_order *order, const wq_allocator *mem);
void wq__core_fini(struct wq__core *c);

/* Before the first verb: records and loans are stamped; keys belong to groups,
 * of which `max_held` keys may be HELD at a time (0: any number); a key that has
 * been READY for so long is next, which needs ages; the keys that are known have
 * no more than so many bytes. The second and third are not for queues with a
 * wq_order; a max_held is not for queues with the third. */
void wq__core_keep_ages(struct wq__core *c);
void wq__core_have_groups(struct wq__core *c, size_t max_held);
void wq__core_serve_after(struct wq__core *c, int64_t max_ready_ns);
void wq__core_bound_bytes(struct wq__core *c, size_t max_bytes);

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
    bool          displace; /* when full, READY keys make room */
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
    wq_key   group;      /* in: of the key, if the queue has groups */
    uint32_t group_hash; /* in: wq__core_hash() of that; of no bytes: 0 */
};

/* Room in a queue with bounds: for so many keys, and so many bytes of them. */
struct wq__space {
    size_t keys, bytes;
};

/* All of `keys` need work: all or none. WQ_ESHUTDOWN, WQ_ENOMEM; WQ_EFULL:
 * there is no room, and *needs, which may be NULL, is for how much; an error of
 * a wq_order, perhaps of that name, and then *needs is 0 and the keys before are
 * added.
 *
 * With how->displace, *victims is a list of keys that made room, or 0: they are
 * gone, but their records are there to be looked at until wq__core_bury(), which
 * returns the next one. */
wq_err  wq__core_add_with(struct wq__core *c, const struct wq__how *how,
                          const wq_key *keys, struct wq__pick *picks, size_t n,
                          struct wq__space *needs, wq__ref *victims);
wq_key  wq__core_victim_key(const struct wq__core *c, wq__ref victim);
wq__ref wq__core_bury(struct wq__core *c, wq__ref victim);

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

/* From now on, or no longer: `key`, which must be HELD, needs no work when it is
 * done, whatever was asked for it until then. WQ_ENOTFOUND: it is not HELD. */
wq_err wq__core_remove_at_done(struct wq__core *c, wq_key key, uint32_t hash,
                               bool on);

/* ---- waiting for work to be over ---------------------------------------- */

/* A flush: the turn to wait for, and whether it has finished. */
uint64_t wq__core_begin_flush(struct wq__core *c);

static inline bool
wq__core_has_flushed(const struct wq__core *c, uint64_t turn)
{
    return wq__flush_has_finished(&c->flush, turn);
}

/* What was asked for one key before a moment. */
struct wq__errand {
    uint64_t fence;  /* hand-outs up to this one are waited for */
    bool     wanted; /* and the next one, too */
};

/* What is asked for `key` now, so that it can be waited for. */
struct wq__errand wq__core_errand(const struct wq__core *c, wq_key key,
                                  uint32_t hash);

/* Is it done, or taken back? To be called after every change. */
bool wq__core_is_served(const struct wq__core *c, wq_key key, uint32_t hash,
                        struct wq__errand *errand);

/* ---- pausing ------------------------------------------------------------ */

/* While paused, nothing is handed out. */
void wq__core_pause(struct wq__core *c, bool paused);

static inline bool
wq__core_is_paused(const struct wq__core *c)
{
    return c->ready.special & WQ__PAUSED;
}

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

/* Hand out the next READY key. WQ_ENOTFOUND: none is, or may be handed out;
 * WQ_ENOMEM; WQ_ESTATE: the wq_order misbehaves. */
wq_err wq__core_get(struct wq__core *c, int64_t now, wq_item **out);

/* The thread that got an item, by a number of the caller's choice; whether a
 * thread got `key`, or any key, and has not said done. Cost of the last: O(keys
 * that were HELD at one time). */
static inline void
wq__core_note_holder(wq_item *item, uint32_t thread)
{
    ((struct wq__loan *)(void *)item)->holder = thread;
}

bool wq__core_is_held_by(const struct wq__core *c, wq_key key, uint32_t hash,
                         uint32_t thread);
bool wq__core_holds_any(const struct wq__core *c, uint32_t thread);

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

/* After wq__core_shut_down(): all deadlines come now, those of backoffs only if
 * `backoffs`; the others are dropped. A key that a wq_order refuses waits on. */
void wq__core_hasten(struct wq__core *c, int64_t now, bool backoffs);

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

/* How many keys could be handed out now? */
static inline size_t
wq__core_offers(const struct wq__core *c)
{
    return wq__ready_offers(&c->ready);
}

/* How much more there is room for. */
static inline struct wq__space
wq__core_room(const struct wq__core *c)
{
    struct wq__space room = {SIZE_MAX, SIZE_MAX};

    if (c->max_len)
        room.keys = c->index.len < c->max_len ? c->max_len - c->index.len : 0;
    if (c->max_bytes)
        room.bytes = c->bytes < c->max_bytes ? c->max_bytes - c->bytes : 0;
    return room;
}

/* Could so much be there at once, if nothing else were? */
bool wq__core_ever_fits(const struct wq__core *c, struct wq__space needs);

static inline bool
wq__space_holds(struct wq__space room, struct wq__space needs)
{
    return needs.keys <= room.keys && needs.bytes <= room.bytes;
}

/* How many runs are owed: by READY, HELD and DIRTY keys. */
static inline size_t
wq__core_owed(const struct wq__core *c)
{
    return c->ready.len + c->loans.live + c->dirty;
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
