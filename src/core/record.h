/* SPDX-License-Identifier: MIT */
/* record.h: what does the queue know about one key?
 *
 * One record per known key, whatever is going on with it: the facets of a key
 * (READY, HELD, DIRTY, WAITING) are marks on the same record, never entries in
 * several maps that could disagree. A record exists while at least one facet
 * does. A 31-byte key and all that is known of it take 48 bytes.
 */
#ifndef WQ_CORE_RECORD_H
#define WQ_CORE_RECORD_H

#include <stdint.h>
#include <string.h>

#include <wq/wq.h>

#include "core/slab.h"

enum wq__flag {
    WQ__READY = 1,    /* in the ready order */
    WQ__HELD = 2,     /* in a worker's hands; excludes READY (L2) */
    WQ__DIRTY = 4,    /* added while HELD: READY again at done */
    WQ__LONG = 8,     /* `bytes` holds a pointer to the key, not the key */
    WQ__BACKOFF = 16, /* its deadline is a backoff: set by a failure */
    WQ__WAITING = 32, /* only in what wq__core_facets() returns: see `wait` */
};

struct wq__rec {
    wq__ref       link;    /* READY: the next in line. HELD: the loan */
    uint32_t      hash;    /* of the key, as the index knows it */
    uint32_t      wait;    /* WAITING: 1 + place in the delay heap; else 0 */
    uint32_t      len;     /* of the key */
    unsigned char flags;   /* enum wq__flag */
    unsigned char bytes[]; /* the key, or where it is */
};

/* A key on loan. Freed at done; `rec` is 0 from then on. */
struct wq__loan {
    wq_item item; /* what the worker sees; item.slot names this loan */
    wq__ref rec;  /* whose key it is */
};

/* The longest key that is kept inside its record. */
#define WQ__KEY_INLINE (WQ__SLAB_MAX - offsetof(struct wq__rec, bytes))

static inline const void *
wq__rec_bytes(const struct wq__rec *rec)
{
    if (!(rec->flags & WQ__LONG))
        return rec->bytes;

    const void *p;
    memcpy(&p, rec->bytes, sizeof p);
    return p;
}

static inline wq_key
wq__rec_key(const struct wq__rec *rec)
{
    return (wq_key){wq__rec_bytes(rec), rec->len};
}

#endif
