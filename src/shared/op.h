/* SPDX-License-Identifier: MIT */
/* op.h: what do all engines do alike with an operation?
 *
 * For engines whose keys the core decides about: each brings the key into a
 * core, and calls these.
 */
#ifndef WQ_SHARED_OP_H
#define WQ_SHARED_OP_H

#include "core/core.h"
#include "shared/engine.h"

/* Has a FINISH with this result ended the hold? */
static inline bool
wq__op_has_ended(wq_err err)
{
    return err == WQ_OK || err == WQ_EGIVENUP;
}

/* Does a GET hand out nothing, because the FINISH before it has failed? */
static inline bool
wq__op_is_held_back(const struct wq__op *get)
{
    const struct wq__op *finish = get->as.get.unless_failed;

    return finish && !wq__op_has_ended(finish->err);
}

/* Add to *did what a batch added to the counts of a core. The ends of loans are
 * counted one by one: those of expired holds are none of this handle. */
WQ__STORE_API void wq__did_count(struct wq__did         *did,
                                 const struct wq__tally *before,
                                 const struct wq__tally *after);

/* Hand out `next`, which wq__core_prepare_get() has found. An error is that of
 * op->as.get.take(): the key stays READY. */
wq_err wq__op_hand_out(const struct wq__op *op, struct wq__core *core,
                       int64_t now, const wq_item *next, int64_t waited_ns,
                       unsigned requeues, wq_item **item);

/* Carry out a GET: hand_out() until there are `max` keys, or none is READY, which
 * is WQ_ENOTFOUND. An error of the store ends the batch; others are an error of
 * the operation only if it has handed out nothing. */
wq_err wq__op_get(struct wq__op *op,
                  wq_err (*hand_out)(void *ctx, const struct wq__op *op),
                  void *ctx);

/* How an engine ends a hold; `hold` is its own. */
struct wq__settler {
    /* The loan ends in the core: cannot fail. */
    void (*end)(void *hold);
    /* The key has succeeded: forget its failures, and how often its holds have
     * expired. */
    void (*forget)(void *hold);
    /* Add the key again; *delayed: as in wq__op. WQ_EGIVENUP: it has had
     * *retries, which are all; no other error has an effect either. */
    wq_err (*add)(void *hold, const wq_add_options *how, int64_t *delayed,
                  unsigned *retries);
    /* READY again, as if it had not been handed out; the loan ends. */
    wq_err (*give_back)(void *hold, int priority);
    /* DEAD, without any other state, with its failures; the loan ends. */
    wq_err (*bury)(void *hold);
};

/* End a hold, whose key had `priority`, as op->as.finish.result says. Unless
 * wq__op_has_ended(), nothing has happened. */
wq_err wq__op_settle(const struct wq__settler *by, void *hold,
                     struct wq__op *op, int priority, struct wq__did *did);

#endif
