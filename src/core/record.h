/* SPDX-License-Identifier: MIT */
/* record.h: what does the queue know about one key?
 *
 * One record per known key, whatever is going on with it: the states of a key
 * (READY, HELD, DIRTY, WAITING) are marks on the same record, never entries in
 * several maps that could disagree. A record exists while at least one state
 * does. A 31-byte key and all that is known of it take 56 bytes.
 *
 * What only some queues need stands between the record and its key, so that a
 * plain queue does not pay for it. All records of a queue have the same parts:
 *
 *     record │ since when │ age list │ group │ key │ NUL
 *               8 bytes      16         24
 *
 * A NUL byte follows the key, which counts neither as part of it nor in `len`.
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
    WQ__READY = 1, /* in the ready order */
    WQ__HELD = 2,  /* in a worker's hands; excludes READY (L2) */
    WQ__DIRTY = 4, /* added while HELD: READY again at done */
    /* How many bytes stand between the record and its key: the sum of the
     * parts that the records of this queue have. */
    WQ__PREFIX = 8 | 16 | 32,
    WQ__BACKOFF = 64,    /* its deadline was set by a failure */
    WQ__DEBOUNCED = 128, /* its deadline may be put off */
    WQ__QUIET = 256,     /* its entry in the delay heap is no deadline: it only
                             says how long the key is to be left alone */
    WQ__PICKED = 512,    /* named by the add that is under way */
    WQ__REMOVING = 1024, /* HELD: whatever was asked for it ends at done */
    WQ__EXPECTED = 2048, /* BACKOFF: its deadline serves an add that was no
                            failure, too */
    WQ__TURN = 4096 * 3, /* READY, HELD: the turn of this run (flush.h) */
    WQ__NEXT_TURN = 16384 * 3, /* DIRTY: the turn of the next one */
    WQ__WAITING = 0x10000 /* only in what wq__core_states() returns: see `wait`
                             and QUIET */
};

/* The parts of the prefix, in this order; each is there or not. */
enum wq__part {
    WQ__PART_SINCE = 8, /* since when it is READY or DIRTY */
    WQ__PART_AGE = 16,  /* struct wq__age, only with the former */
    WQ__PART_GROUP = 24 /* struct wq__member */
};

struct wq__rec {
    wq__ref  next;       /* READY: the next in line. HELD: its loan */
    wq__ref  prev;       /* READY: the one before; anything for the first */
    uint32_t hash;       /* of the key, as the index knows it */
    uint32_t wait;       /* 1 + place in the delay heap; else 0 */
    uint32_t level;      /* READY, DIRTY: the number of its priority */
    uint16_t len_less_1; /* of the key: 1 .. 65536 */
    uint16_t flags;      /* enum wq__flag */
    /* The prefix; then the key, or where it is. */
    unsigned char bytes[];
};

_Static_assert(WQ_KEY_MAX - 1 <= UINT16_MAX, "len_less_1 holds every length");

/* Where a READY record stands among all READY ones, the oldest first. */
struct wq__age {
    int64_t ready; /* since when it is READY: a DIRTY one, since its done */
    wq__ref older, newer; /* 0: none */
};

/* The group of a record. The other fields are of the first record of a lane: of
 * the READY keys with the same group and priority (groups.h). */
struct wq__member {
    uint32_t group;     /* its number */
    wq__ref  last;      /* the last record of the lane */
    uint32_t len;       /* how many the lane has */
    wq__ref next, prev; /* the first records of the lanes before and after it in
                            the ring of its level; 0: not in the ring */
    wq__ref other;      /* the group's next lane, of another level; 0: none */
};

_Static_assert(sizeof(struct wq__age) == WQ__PART_AGE, "as said");
_Static_assert(sizeof(struct wq__member) == WQ__PART_GROUP, "as said");

/* The longest key that is kept inside its record, with its NUL. */
#define WQ__KEY_INLINE                                                         \
    (WQ__SLAB_MAX - offsetof(struct wq__rec, bytes) - WQ__PART_SINCE -         \
     WQ__PART_AGE - WQ__PART_GROUP - 1)

static inline unsigned char *
wq__rec_key_at(struct wq__rec *rec)
{
    return rec->bytes + (rec->flags & WQ__PREFIX);
}

static inline bool
wq__rec_is_long(const struct wq__rec *rec)
{
    return rec->len_less_1 >= WQ__KEY_INLINE;
}

static inline const void *
wq__rec_bytes(const struct wq__rec *rec)
{
    const unsigned char *at = rec->bytes + (rec->flags & WQ__PREFIX);
    if (!wq__rec_is_long(rec))
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

/* Since when it is READY or DIRTY; only if ages are kept. */
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
    memcpy(rec->bytes, &now, sizeof now);
}

/* Only of a queue that has the part. */
static inline struct wq__age *
wq__rec_age(struct wq__rec *rec)
{
    return (struct wq__age *)(void *)(rec->bytes + WQ__PART_SINCE);
}

static inline struct wq__member *
wq__rec_member(struct wq__rec *rec)
{
    return (struct wq__member *)(void *)(wq__rec_key_at(rec) - WQ__PART_GROUP);
}

/* The turn of the run that is READY or HELD, and of the one it is DIRTY for. */
static inline unsigned
wq__rec_turn(const struct wq__rec *rec)
{
    return (rec->flags & WQ__TURN) / 4096U;
}

static inline unsigned
wq__rec_next_turn(const struct wq__rec *rec)
{
    return (rec->flags & WQ__NEXT_TURN) / 16384U;
}

static inline void
wq__rec_set_turn(struct wq__rec *rec, unsigned turn)
{
    rec->flags = (uint16_t)((rec->flags & ~(unsigned)WQ__TURN) | turn * 4096U);
}

static inline void
wq__rec_set_next_turn(struct wq__rec *rec, unsigned turn)
{
    rec->flags =
        (uint16_t)((rec->flags & ~(unsigned)WQ__NEXT_TURN) | turn * 16384U);
}

#endif
