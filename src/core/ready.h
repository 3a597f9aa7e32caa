/* SPDX-License-Identifier: MIT */
/* ready.h: in which order do READY keys leave?
 *
 * First come, first served, by a list threaded through the records: no memory
 * of its own, so a push cannot fail. Or, when the config names a wq_order, as
 * that decides; then a push can fail, and nothing has changed.
 *
 * Cost: O(1), or the wq_order's.
 */
#ifndef WQ_CORE_READY_H
#define WQ_CORE_READY_H

#include <stddef.h>

#include <wq/wq.h>

#include "core/hash.h"
#include "core/index.h"
#include "core/slab.h"

struct wq__ready {
    size_t  len;         /* READY records */
    wq__ref first, last; /* the list; 0 when empty or with a plug-in */

    struct wq__slab           *recs;   /* where references lead; not owned */
    const struct wq__index    *index;  /* whose key is it? not owned */
    const struct wq__hash_key *secret; /* for looking up there; not owned */

    bool     has_plug_in; /* `plug_in` orders instead of the list */
    wq_order plug_in;     /* a copy of the config's */
};

/* `order` may be NULL: first come, first served. */
void wq__ready_init(struct wq__ready *r, struct wq__slab *recs,
                    const struct wq__index    *index,
                    const struct wq__hash_key *secret, const wq_order *order);
void wq__ready_fini(struct wq__ready *r);

/* A record that is not READY becomes so; sets its flag. Only a plug-in
 * fails. */
wq_err wq__ready_push(struct wq__ready *r, wq__ref ref);

/* A READY record was added again. */
void wq__ready_touch(struct wq__ready *r, wq__ref ref);

/* Take out the record to hand out next; clears its flag.
 *
 * WQ_ENOTFOUND: none is READY. WQ_ESTATE: the plug-in gave none although some
 * are, or a key that is not READY; nothing changed here. */
wq_err wq__ready_pop(struct wq__ready *r, wq__ref *out);

#endif
