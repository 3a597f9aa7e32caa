/* SPDX-License-Identifier: MIT */
/* rows.h: how does an engine carry out operations on keys that are rows?
 *
 * A store keeps all that it knows of a key as one row. What a verb does to a key
 * is decided by the core, as for queues in memory: the row of the key is put
 * into a scratch core that holds no other key, the core's own function is
 * called, and the row is written back. The store only finds rows, by key, the
 * first READY one, those that are due, and writes them.
 *
 *   rows.c        rows in and out of the scratch core
 *   row_limits.c  limiters whose state is in the rows
 *   row_ops.c     what each operation does
 *   row_view.c    what can be seen
 *
 * All functions are called within a transaction of the store, by one thread at
 * a time. They return an error of the transaction: WQ_EAWAY, WQ_EIO or
 * WQ_ENOMEM end it, and nothing of it may happen.
 */
#ifndef WQ_SHARED_ROWS_H
#define WQ_SHARED_ROWS_H

#include "core/core.h"
#include "core/image.h"
#include "limit/tokens.h"
#include "shared/engine.h"

/* All that a store knows of a key. */
struct wq__row {
    int64_t          id;    /* 0: there is no row; else the store's affair */
    bool             dead;  /* DEAD: then no other state */
    struct wq__image image; /* what the core knows; DEAD: `priority` */
    int64_t          seq;   /* READY: its place in the order; DEAD: likewise */
    int64_t          owner; /* HELD: the session */
    uint32_t         fails; /* since its last success */
    int64_t          failed_ns; /* when it failed last */
    uint32_t         expiries;  /* holds that ended with their session */
    bool             has_bucket;
    double           tokens;    /* its own bucket */
    int64_t          tokens_ns; /* when that was written */
};

/* How many keys are there, and when is there something to do next? */
struct wq__row_counts {
    uint64_t ready, held, dirty, waiting, dead, known;
    int64_t  next_ns; /* the earliest deadline or end of a cooldown */
};

/* A token bucket in a transaction. */
struct wq__row_bucket {
    bool            read;  /* from the store */
    bool            moved; /* ... and changed */
    struct wq__fill level;
};

enum wq__row_order {
    WQ__FIRST_READY, /* by priority and place */
    WQ__FIRST_DUE,   /* WAITING or COOLDOWN until `bound_ns` at the latest */
    WQ__FIRST_USED,  /* the own bucket was written after `bound_ns` */
};

struct wq__rows;

struct wq__row_store {
    /* No release has written such a row: WQ_EAWAY, with a sentence. */
    wq_err (*damaged)(struct wq__rows *r, wq_key key,
                      const struct wq__row *row);

    /* Read the row of `key`; row->id is 0 if there is none. */
    wq_err (*find)(struct wq__rows *r, wq_key key, struct wq__row *row);

    /* The first row in this order. The key is valid until the next call.
     * WQ_ENOTFOUND: there is none. */
    wq_err (*first)(struct wq__rows *r, enum wq__row_order order,
                    int64_t bound_ns, struct wq__row *row, wq_key *key);

    /* Write a row, which differs from `before`; `empty`: delete it. */
    wq_err (*write)(struct wq__rows *r, wq_key key,
                    const struct wq__row *before, struct wq__row *row,
                    bool empty);

    /* Remember the rows; put them back as they were, or (!undo) forget that. */
    wq_err (*save)(struct wq__rows *r);
    wq_err (*end_save)(struct wq__rows *r, bool undo);

    /* The bucket of all keys; *there: it has been written. */
    wq_err (*read_bucket)(struct wq__rows *r, struct wq__fill *level,
                          bool *there);

    /* Which process is the session? For people, with a NUL; "" before the call,
     * and if that is not known. */
    void (*name_holder)(struct wq__rows *r, int64_t session,
                        char out[WQ_HOLDER_BYTES]);
};

struct wq__rows {
    const struct wq__row_store *store;
    struct wq__terms            terms;
    struct wq__core             scratch; /* empty between operations */
    uint64_t random; /* state of the random numbers of jitter */
    int64_t  holder; /* the session that holds what is handed out */

    /* ---- the transaction under way; set by the engine at its begin ---- */
    int64_t               now_ns;
    int64_t               number; /* the last one in use: see wq__rows_number */
    struct wq__row_counts counts; /* as they will be after it */
    size_t                made_ready; /* keys that became READY */
    bool                  promised;   /* an operation has promised something */
    bool stale_next; /* counts.next_ns was that of a deadline that is gone */
    bool more_to_do; /* deadlines are left for the next transaction */
    bool
        torn; /* a part of an operation was written: the transaction must end */
    struct wq__row_bucket bucket; /* of all keys */
};

/* ---- rows.c --------------------------------------------------------------- */

/* `terms` are copied. */
WQ__STORE_API void wq__rows_init(struct wq__rows            *r,
                                 const struct wq__row_store *store,
                                 const struct wq__terms     *terms);
WQ__STORE_API void wq__rows_fini(struct wq__rows *r);

/* Begin a transaction; sets all that is not an argument to 0. */
WQ__STORE_API void wq__rows_begin(struct wq__rows *r, int64_t now_ns,
                                  int64_t                      number,
                                  const struct wq__row_counts *counts);

/* A new number, larger than all before: a place, a fence, an arrival. */
static inline int64_t
wq__rows_number(struct wq__rows *r)
{
    return ++r->number;
}

/* Does the queue know the key: has it a state, or a cooldown? */
static inline bool
wq__row_is_known(const struct wq__row *row)
{
    return row->dead || row->image.states;
}

/* WQ_EAWAY: no release has written such a row; the store is damaged. */
WQ__STORE_API wq_err wq__row_check(struct wq__rows *r, wq_key key,
                                   const struct wq__row *row);

/* Put the row into the scratch core; *item, unless NULL: its loan, or NULL. */
wq_err wq__row_import(struct wq__rows *r, wq_key key, const struct wq__row *row,
                      wq_item **item);

/* Take the key out of the scratch core, into row->image. */
void wq__row_export(struct wq__rows *r, wq_key key, struct wq__row *row);

/* Write the row if it differs from `before`: insert, update or delete it. Keeps
 * the counts, and gives a key that became READY its place. */
wq_err wq__row_write(struct wq__rows *r, wq_key key,
                     const struct wq__row *before, struct wq__row *row);

/* Export and write. */
wq_err wq__row_save(struct wq__rows *r, wq_key key,
                    const struct wq__row *before, struct wq__row *row);

/* ---- row_limits.c --------------------------------------------------------- */

/* How often the key has failed. */
WQ__STORE_API unsigned wq__row_requeues(const struct wq__rows *r,
                                        const struct wq__row  *row);

/* Count a failure, and say how long the key waits. */
wq_err wq__row_when(struct wq__rows *r, struct wq__row *row, int64_t *delay_ns);

/* The key has succeeded. */
void wq__row_forget(struct wq__row *row);

/* Buckets of keys that are full again are forgotten, a few at a time. */
wq_err wq__rows_drop_full_buckets(struct wq__rows *r);

/* ---- row_ops.c ------------------------------------------------------------ */

/* Deadlines that have passed act; cooldowns end. At most `most` of them. */
WQ__STORE_API wq_err wq__rows_promote(struct wq__rows *r, int most);

/* Carry out an operation on keys, from WQ__OP_ADD to WQ__OP_KEY_INFO. Returns an
 * error only if the transaction must end. */
WQ__STORE_API wq_err wq__rows_carry_out(struct wq__rows *r, struct wq__op *op,
                                        struct wq__did *did);

/* The hold of a row ends: READY again; `expired`: counts an expiry, and may be
 * DEAD then. */
WQ__STORE_API wq_err wq__rows_give_back(struct wq__rows *r, wq_key key,
                                        const struct wq__row *before,
                                        bool                  expired);

/* ---- row_view.c ----------------------------------------------------------- */

/* What is known of a key, whose row is not in the scratch core. */
WQ__STORE_API wq_err wq__row_describe(struct wq__rows *r, wq_key key,
                                      const struct wq__row *row,
                                      wq_key_info          *info);

/* NULL: the row is one that the core can have. Else what is wrong with it, a
 * static string. */
WQ__STORE_API const char *wq__row_problem(struct wq__rows *r, wq_key key,
                                          const struct wq__row *row);

/* The parts of stats that are counts of keys. */
static inline void
wq__rows_fill_in(const struct wq__row_counts *n, wq_stats *out)
{
    out->ready = out->offered = (size_t)n->ready;
    out->held = (size_t)n->held;
    out->dirty = (size_t)n->dirty;
    out->waiting = (size_t)n->waiting;
    out->dead = (size_t)n->dead;
    out->known = (size_t)n->known;
}

/* Add to the depth of a priority; those beyond `max` are only counted. */
WQ__STORE_API void wq__depths_add(wq_depth *out, size_t max, size_t *n,
                                  int priority, size_t keys);

#endif
