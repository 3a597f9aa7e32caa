/* SPDX-License-Identifier: MIT */
/* record.h: what does the queue know about one key?
 *
 * One record per known key, whatever is going on with it: the states of a key
 * (READY, HELD, DIRTY, WAITING) are marks on the same record, never entries in
 * several maps that could disagree. A record exists while at least one state
 * does. A 31-byte key and all that is known of it take 56 bytes, 64 with its
 * age.
 */
#ifndef WQ_CORE_RECORD_H
#define WQ_CORE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <wq/wq.h>

#include "core/same.h"
#include "core/slab.h"

enum wq__flag {
    WQ__READY = 1,       /* in the ready order */
    WQ__HELD = 2,        /* in a worker's hands; excludes READY (L2) */
    WQ__DIRTY = 4,       /* added while HELD: READY again at done */
    WQ__STAMPED = 8,     /* eight bytes before the key: since when it is READY
                            or DIRTY. All records of a queue have it, or none */
    WQ__LONG = 16,       /* instead of the key: where it is */
    WQ__BACKOFF = 32,    /* its deadline was set by a failure */
    WQ__DEBOUNCED = 64,  /* its deadline may be put off */
    WQ__QUIET = 128,     /* its entry in the delay heap is no deadline: it only
                            says how long the key is to be left alone */
    WQ__PICKED = 256,    /* named by the add that is under way */
    WQ__WAITING = 0x8000 /* only in what wq__core_states() returns: see `wait`
                            and QUIET */
};

struct wq__rec {
    wq__ref  next;       /* READY: the next in line. HELD: its loan */
    wq__ref  prev;       /* READY: the one before; anything for the first */
    uint32_t hash;       /* of the key, as the index knows it */
    uint32_t wait;       /* 1 + place in the delay heap; else 0 */
    uint32_t level;      /* READY, DIRTY: the number of its priority */
    uint16_t len_less_1; /* of the key: 1 .. 65536 */
    uint16_t flags;      /* enum wq__flag */
    /* If STAMPED, since when; then the key, or where it is. */
    unsigned char bytes[];
};

_Static_assert(WQ_KEY_MAX - 1 <= UINT16_MAX, "len_less_1 holds every length");

/* The longest key that is kept inside its record. */
#define WQ__KEY_INLINE                                                         \
    (WQ__SLAB_MAX - offsetof(struct wq__rec, bytes) - sizeof(int64_t))

/* Where the stamp ends and the key begins: the flag is the number of bytes. */
_Static_assert(WQ__STAMPED == sizeof(int64_t), "see wq__rec_key_at()");

static inline unsigned char *
wq__rec_key_at(struct wq__rec *rec)
{
    return rec->bytes + (rec->flags & WQ__STAMPED);
}

static inline const void *
wq__rec_bytes(const struct wq__rec *rec)
{
    const unsigned char *at = rec->bytes + (rec->flags & WQ__STAMPED);
    if (!(rec->flags & WQ__LONG))
        return at;

    const void *p;
    memcpy(&p, at, sizeof p);
    return p;
}

static inline size_t
wq__rec_len(const struct wq__rec *rec)
{
    return (size_t)rec->len_less_1 + 1;
}

static inline wq_key
wq__rec_key(const struct wq__rec *rec)
{
    return (wq_key){wq__rec_bytes(rec), wq__rec_len(rec)};
}

static inline bool
wq__rec_has_key(const struct wq__rec *rec, wq_key key)
{
    return wq__same_key(wq__rec_key(rec), key);
}

static inline void
wq__rec_set(struct wq__rec *rec, unsigned flags)
{
    rec->flags = (uint16_t)(rec->flags | flags);
}

static inline void
wq__rec_clear(struct wq__rec *rec, unsigned flags)
{
    rec->flags = (uint16_t)(rec->flags & ~flags);
}

/* Since when it is READY or DIRTY; only if STAMPED. */
static inline int64_t
wq__rec_since(const struct wq__rec *rec)
{
    int64_t since;
    memcpy(&since, rec->bytes, sizeof since);
    return since;
}

static inline void
wq__rec_stamp(struct wq__rec *rec, int64_t now)
{
    if (rec->flags & WQ__STAMPED)
        memcpy(rec->bytes, &now, sizeof now);
}

#endif
