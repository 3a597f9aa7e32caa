/* SPDX-License-Identifier: MIT */
/* gets.h: what does a get need until its batch is answered? */
#ifndef WQ_SHARED_GETS_H
#define WQ_SHARED_GETS_H

#include "shared/shared.h"

struct wq__getting {
    struct wq__shared *s;
    wq_item          **out;    /* each is a hold that is TAKEN */
    size_t             n;      /* how many were taken */
    uint32_t           holder; /* the thread that gets them */
};

/* Begin the operation `op` that takes up to `max` keys. */
void wq__getting_begin(struct wq__getting *g, struct wq__shared *s,
                       wq_item **out, size_t max, struct wq__op *op);

/* With the lock: the batch is answered. The keys are on loan; or, after an
 * error, they are not. */
void wq__getting_end(struct wq__shared *s, struct wq__getting *g, wq_err err);

/* A loan of a key that the session `from` holds already, 0: our own, for a store
 * whose holds can outlive a handle or change hands. WQ_ESTATE: it is on loan;
 * WQ_ENOTFOUND, WQ_ENOTSUP: see WQ__OP_RESUME. */
WQ__STORE_API wq_err wq__shared_resume_hold(wq_queue *q, int64_t from,
                                            wq_key key, wq_item **out);

#endif
