/* SPDX-License-Identifier: MIT */
/* ready.h: in which order do READY keys leave?
 *
 * By priority, the highest first; first come, first served inside, by a list
 * threaded through the records: no memory of its own, so a push cannot fail.
 * Or, when the config names a wq_order, as that decides; then a push can fail,
 * and nothing has changed. Which priorities there are, levels.h knows; a record
 * holds on to its level, and whoever makes it READY has seen to that.
 *
 * Cost: O(1), with priorities O(log levels); or the wq_order's.
 */
#ifndef WQ_CORE_READY_H
#define WQ_CORE_READY_H

#include <stddef.h>

#include <wq/wq.h>

#include "core/hash.h"
#include "core/index.h"
#include "core/levels.h"
#include "core/record.h"
#include "core/slab.h"

struct wq__ready {
    size_t            len;    /* READY records */
    struct wq__levels levels; /* their lines, and what else has a priority */

    struct wq__slab           *recs;   /* where references lead; not owned */
    const struct wq__index    *index;  /* whose key is it? not owned */
    const struct wq__hash_key *secret; /* for looking up there; not owned */

    bool     has_plug_in; /* `plug_in` orders instead of the lines */
    wq_order plug_in;     /* a copy of the config's */
};

/* `order` may be NULL: first come, first served. Must not be moved
 * afterwards. */
void wq__ready_init(struct wq__ready *r, struct wq__slab *recs,
                    const struct wq__index    *index,
                    const struct wq__hash_key *secret, const wq_order *order,
                    const wq_allocator *mem);
void wq__ready_fini(struct wq__ready *r);

/* The record `rec`, which `ref` names and which is not READY, becomes so, in
 * its level; sets its flag. Only a plug-in fails. */
wq_err wq__ready_push(struct wq__ready *r, wq__ref ref, struct wq__rec *rec);

/* A READY record was added again. */
void wq__ready_touch(struct wq__ready *r, wq__ref ref);

/* A READY record goes to the end of another, higher level. */
void wq__ready_raise(struct wq__ready *r, wq__ref ref, uint32_t level);

/* Take out the record to hand out next; clears its flag.
 *
 * WQ_ENOTFOUND: none is READY. WQ_ESTATE: the plug-in gave none although some
 * are, or a key that is not READY; nothing changed here. */
wq_err wq__ready_pop(struct wq__ready *r, wq__ref *out, struct wq__rec **rec);

/* Can READY records be taken out that are not the next? */
bool wq__ready_can_remove(const struct wq__ready *r);

/* Take out a READY record; clears its flag. */
void wq__ready_remove(struct wq__ready *r, wq__ref ref);

#endif
