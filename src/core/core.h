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
 *       WAITING, a deadline in the delay heap, is a facet of its own: a key may
 *       wait and also be absent, READY, HELD or HELD+DIRTY. wq__core_add_after
 *       sets it; wq__core_promote acts as an add when the time has come. A
 *       deadline may be a backoff, which an add can be made to respect: it then
 *       counts as served by what happens when the backoff ends.
 *
 * Every verb prepares (all that can fail), then commits (nothing can). On any
 * error the state is what it was.
 */
#ifndef WQ_CORE_CORE_H
#define WQ_CORE_CORE_H

#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

#include "core/hash.h"
#include "core/heap.h"
#include "core/index.h"
#include "core/ready.h"
#include "core/record.h"
#include "core/slab.h"

struct wq__core {
    struct wq__hash_key secret;        /* never changes: read without a lock */
    wq_allocator        mem;           /* a copy of the config's */
    struct wq__slab     recs;          /* one record per known key */
    struct wq__slab     loans;         /* one loan per HELD record; keeps */
    struct wq__index    index;         /* key -> record */
    struct wq__ready    ready;         /* READY records, in order */
    struct wq__heap     waiting;       /* WAITING records, by deadline */
    size_t              held;          /* HELD records */
    size_t              dirty;         /* HELD+DIRTY records */
    uint64_t            fence;         /* the fence given out last */
    bool                shutting_down; /* adds are refused */
    bool                respect;       /* every add respects a backoff */
};

/* What an add did. */
enum wq__added {
    WQ__ADDED_NEW,       /* the key became READY */
    WQ__ADDED_MERGED,    /* it was READY or DIRTY already */
    WQ__ADDED_DIRTY,     /* it is HELD and was marked */
    WQ__ADDED_SCHEDULED, /* it has a deadline now and had none */
    WQ__ADDED_SOONER,    /* its deadline was moved to an earlier time */
    WQ__ADDED_LATER, /* it has an earlier deadline already: no change (L5) */
};

/* `order` and `mem` may be NULL. Cannot fail: memory is taken when needed. The
 * core must not be moved afterwards. */
void wq__core_init(struct wq__core *c, struct wq__hash_key secret,
                   const wq_order *order, const wq_allocator *mem);
void wq__core_fini(struct wq__core *c);

/* Verbs take the hash beside the key, so that it can be computed before the
 * caller takes its lock. */
static inline uint32_t
wq__core_hash(const struct wq__core *c, wq_key key)
{
    return wq__hash(&c->secret, key);
}

/* `key` needs work. WQ_ESHUTDOWN, WQ_ENOMEM. */
wq_err wq__core_add(struct wq__core *c, wq_key key, uint32_t hash,
                    enum wq__added *what);

/* The same, but a key that waits by a backoff goes on waiting. */
wq_err wq__core_add_respecting(struct wq__core *c, wq_key key, uint32_t hash,
                               enum wq__added *what);

/* wq__core_add() that was accepted before the shutdown. */
wq_err wq__core_admit(struct wq__core *c, wq_key key, uint32_t hash,
                      enum wq__added *what);

/* `key` needs work at `at`; of two deadlines the earlier stays (L5). `backoff`:
 * because it failed. WQ_ESHUTDOWN, WQ_ENOMEM. */
wq_err wq__core_add_after(struct wq__core *c, wq_key key, uint32_t hash,
                          int64_t at, bool backoff, enum wq__added *what);

/* Which facets has `key`? enum wq__flag; 0: absent. */
unsigned wq__core_facets(const struct wq__core *c, wq_key key, uint32_t hash);

/* All deadlines that are not after `now` act as adds, in order. A key that a
 * wq_order refuses does not hold up the others: it waits on, and is offered
 * again WQ__OFFER_AGAIN_NS later. */
enum { WQ__OFFER_AGAIN_NS = 10000000 }; /* 10 ms: soon, but no spinning */
void wq__core_promote(struct wq__core *c, int64_t now);

/* The earliest deadline; WQ_FOREVER when nothing waits. */
int64_t wq__core_next_deadline(const struct wq__core *c);

/* Hand out the first READY key. WQ_ENOTFOUND: none is; WQ_ENOMEM; WQ_ESTATE:
 * the wq_order misbehaves. */
wq_err wq__core_get(struct wq__core *c, wq_item **out);

/* The loan ends. WQ_ESTATE: not on loan from here; WQ_ENOMEM (wq_order). */
wq_err wq__core_done(struct wq__core *c, const wq_item *item);
wq_err wq__core_done_key(struct wq__core *c, wq_key key, uint32_t hash);

/* From now on adds are refused. What waits goes on waiting, or is dropped. */
void wq__core_shut_down(struct wq__core *c);
void wq__core_drop_waiting(struct wq__core *c);

/* How many keys are READY. */
static inline size_t
wq__core_len(const struct wq__core *c)
{
    return c->ready.len;
}

/* Will no get find anything unless something is added: nothing is READY, and
 * nothing waits? */
static inline bool
wq__core_empty(const struct wq__core *c)
{
    return c->ready.len == 0 && c->waiting.len == 0;
}

/* Is there no work now: nothing READY, held or dirty? */
static inline bool
wq__core_idle(const struct wq__core *c)
{
    return c->ready.len == 0 && c->held == 0;
}

/* Verify every law. NULL when all hold, else which one is broken and how (a
 * static string). Cost: O(n). */
const char *wq__core_check(const struct wq__core *c);

#endif
