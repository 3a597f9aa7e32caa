/* SPDX-License-Identifier: MIT */
/* store_inside.h: what do the files of the memory store share? See
 * memory_store.h.
 *
 * A hold is a loan of the core, whose `holder` is the number of a session:
 *
 *   of a session that lives       the hold is valid
 *   of a session that has ended   the hold is to be given back, as expired
 *   0                             ... without an expiry
 *
 * So a session ends in one step, whatever it holds; store_give_back() can give
 * its keys back later, and may stop when there is no memory.
 */
#ifndef WQ_TEST_STORE_INSIDE_H
#define WQ_TEST_STORE_INSIDE_H

#include "support/memory_store.h"

#include "core/core.h"
#include "limit/table.h"
#include "port/beacon.h"
#include "port/lock.h"
#include "workers/wakeup.h"

enum { STORE_PLANS = 16 };

struct memory_engine;

/* A session that lives is in the list of the store. */
struct store_session {
    struct store_session *next;
    uint32_t              number;   /* of its holds; never used again */
    int64_t               until_ns; /* it ends then; WQ_FOREVER: never */
    /* Frees it; NULL: its engine was closed in a child of fork(), and the store
     * frees it. */
    struct memory_engine *owner;
};

/* DEAD keys, and keys whose holds have expired. */
struct store_dead {
    struct wq__table notes;       /* key -> struct note; see store_dead.c */
    wq__ref          first, last; /* the DEAD keys, in order; 0: none */
    size_t           len;         /* how many are DEAD */
    uint64_t         number;      /* of the last one; they grow */
};

struct memory_store {
    struct wq__lock   lock; /* guards all below but `clock` and `mem` */
    wq_clock         *clock;
    wq_allocator      mem;
    size_t            refs;   /* engines, and the test */
    bool              opened; /* the terms of the first engine are applied */
    size_t            max_len;
    wq_limiter       *limiter; /* owned */
    struct wq__core   core;
    struct store_dead dead;
    struct store_session *sessions;     /* those that live */
    uint32_t              last_session; /* number of the last one */
    struct memory_engine *engines;
    /* Some holds are to be given back. */
    bool    has_ended_holds;
    size_t  give_back_at_most; /* of them, in one batch; 0: all */
    int64_t due_ns;            /* the earliest deadline, after the last call */
    bool    ready, held;       /* there were such keys after the last call */
    bool    news; /* sleepers of other sessions must know of this call */

    struct store_plan plans[STORE_PLANS];
    size_t            n_plans;
    unsigned          calls;
};

struct memory_engine {
    struct wq__engine     base;
    struct memory_store  *store; /* counted in its refs */
    struct memory_engine *next;  /* in the list of the store */
    struct wq__terms      terms;
    struct store_session *session;    /* owned; see `lives` */
    bool                  lives;      /* the session has not ended */
    bool                  unreported; /* it began in a call without a reply */
    struct wq__wakeup     wakeup;     /* of the thread in wait() */
    bool                  kicked;     /* since the last wait() */
    bool                  changed; /* by another session since the last run() */
    struct wq__beacon     beacon;  /* lit while `changed`; opened by fd() */
};

/* ---- store_sessions.c ---------------------------------------------------- */

/* Begin a session of the engine, whose last one has ended. */
void store_begin_session(struct memory_engine *e, int64_t now);
void store_end_session(struct memory_store *store, struct store_session *s);

/* End the sessions whose time is over. */
void store_end_expired(struct memory_store *store, int64_t now);

/* Does a session of this number live? */
bool store_is_live(const struct memory_store *store, uint32_t number);

/* The hold of `key` that belongs to the session of `e` and has this fence, or
 * NULL. */
struct wq__loan *store_find_hold(struct memory_engine *e, wq_key key,
                                 uint64_t fence);

/* The session of `e` releases its holds that `known` does not name: they are to
 * be given back without an expiry. */
void store_release(struct memory_engine *e, const struct wq__known *known,
                   size_t n);

/* Give back what is to be given back, in the order of hand-out. Returns how
 * many holds of other sessions than that of `e` had expired. */
size_t store_give_back(struct memory_engine *e, int64_t now);

/* When a batch of `e` has something to do next: a deadline passes, another
 * session may end, or there are holds to give back. */
int64_t store_next_ns(const struct memory_engine *e, int64_t now);

/* How many sessions that live hold a key. */
size_t store_holders(const struct memory_store *store);

/* ---- store_dead.c -------------------------------------------------------- */

void store_dead_init(struct memory_store *store);
void store_dead_fini(struct memory_store *store);
bool store_is_dead(const struct memory_store *store, wq_key key);

/* End a loan, and make its key DEAD, without any other state. WQ_ENOMEM:
 * nothing has changed. */
wq_err store_bury(struct memory_store *store, const struct wq__loan *loan);

/* A DEAD key becomes READY. WQ_ENOTFOUND: it is not DEAD; WQ_ENOMEM. */
wq_err store_revive(struct memory_store *store, wq_key key, int64_t now);

/* A DEAD key is forgotten. False: it is not DEAD. */
bool store_unbury(struct memory_store *store, wq_key key);

/* End a loan whose session has ended by time: count it, and make the key READY,
 * or DEAD if it has expired `max` times (0: never). WQ_ENOMEM: nothing has
 * changed. */
wq_err store_expire(struct memory_store *store, const struct wq__loan *loan,
                    unsigned max, int64_t now);

/* Forget how often holds of the key have expired. */
void store_forget_expiries(struct memory_store *store, wq_key key);

/* The DEAD key after the one with this number, which begins at 0. False: there
 * is none. */
bool store_next_dead(const struct memory_store *store, uint64_t *number,
                     wq_key *key);

/* What is known of a DEAD key. */
void store_dead_info(const struct memory_store *store, wq_key key,
                     wq_key_info *info);

const char *store_check_dead(const struct memory_store *store);

/* ---- store_ops.c --------------------------------------------------------- */

/* End a loan: the key is READY again, with its priority. WQ_ENOMEM: nothing has
 * changed. */
wq_err store_return(struct memory_store *store, const struct wq__loan *loan,
                    int64_t now);

/* Carry out the operations in order. Adds to *did what core.tally does not
 * count. */
void store_carry_out(struct memory_engine *e, struct wq__op *batch, int64_t now,
                     struct wq__did *did);

/* ---- store_check.c ------------------------------------------------------- */

/* memory_store_check() with the lock. */
const char *store_check(const struct memory_store *store);

/* ---- store_faults.c ------------------------------------------------------ */

/* What the plans do to a call. */
struct store_effect {
    wq_err  err;         /* of the first plan that has one */
    bool    happens;     /* the call has its effect in the store */
    bool    end_session; /* before it */
    int64_t jump_ns;     /* after it; 0: no jump */
};

/* Count a call, and find out. */
struct store_effect store_next_effect(struct memory_engine *e,
                                      enum store_call       call);

/* A copy of the batch that leaves the original alone: it has the same effect
 * on the store, but its results go nowhere. NULL: out of memory. */
struct wq__op *store_copy_batch(struct memory_store *store,
                                const struct wq__op *batch, size_t *n);
void           store_free_batch(struct memory_store *store, struct wq__op *copy,
                                size_t n);

#endif
