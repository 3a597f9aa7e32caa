/* SPDX-License-Identifier: MIT */
/* record.h: what does the queue know about one key?
 *
 * One record per known key: the states of a key (READY, HELD, DIRTY, WAITING)
 * are flags of one record, never entries in several maps that could disagree. A
 * record exists while the key has at least one state. A 31-byte key and its
 * record take 56 bytes.
 *
 * What only some queues need is stored between the record and its key, so that
 * a plain queue does not pay for it. All records of a queue have the same
 * parts:
 *
 *     record │ since when │ age list │ group │ key │ NUL
 *               8 bytes      16         24
 *
 * A NUL byte follows the key. It is not part of the key, and `len` does not
 * count it. */
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
    WQ__HELD = 2,  /* on loan to a worker; excludes READY (L2) */
    WQ__DIRTY = 4, /* added while HELD: READY again at done */
    /* How many bytes are between the record and its key: the sum of the parts
     * that the records of this queue have. */
    WQ__PREFIX = 8 | 16 | 32,
    WQ__BACKOFF = 64,    /* its deadline was set because it failed */
    WQ__DEBOUNCED = 128, /* its deadline may move to a later time */
    /* Its entry in the delay heap is the end of a cooldown, not a deadline. */
    WQ__COOLDOWN = 256,
    WQ__NAMED = 512,     /* named by the call in progress */
    WQ__REMOVING = 1024, /* HELD: all requests for it are withdrawn at done */
    /* BACKOFF: its deadline also covers an add that was not a failure. */
    WQ__COVERS_ADD = 2048,
    WQ__EPOCH = 4096 * 3,       /* READY, HELD: that of its run (flush.h) */
    WQ__NEXT_EPOCH = 16384 * 3, /* DIRTY: that of the next run */
    /* Only in what wq__core_states() returns: see `wait` and COOLDOWN. */
    WQ__WAITING = 0x10000
};

/* The parts of the prefix, in this order; each is optional. */
enum wq__part {
    WQ__PART_SINCE = 8, /* since when it is READY or DIRTY */
    WQ__PART_AGE = 16,  /* struct wq__age, only with the former */
    WQ__PART_GROUP = 24 /* struct wq__member */
};

struct wq__rec {
    wq__ref  next;       /* READY: the next in its list. HELD: its loan */
    wq__ref  prev;       /* READY: the one before; undefined for the first */
    uint32_t hash;       /* of the key */
    uint32_t wait;       /* 1 + place in the delay heap; else 0 */
    uint32_t level;      /* READY, DIRTY: the number of its priority */
    uint16_t len_less_1; /* of the key: 1 .. 65536 */
    uint16_t flags;      /* enum wq__flag */
    /* The prefix; then the key, or a pointer to it. */
    unsigned char bytes[];
};

_Static_assert(WQ_KEY_MAX - 1 <= UINT16_MAX, "len_less_1 holds every length");

/* The place of a READY record in the list of all READY ones, oldest first. */
struct wq__age {
    int64_t ready; /* since when it is READY; for a DIRTY one, since its done */
    wq__ref older, newer; /* 0: none */
};

/* The group of a record. Only the first record of a lane uses the other fields.
 * A lane is the READY keys with the same group and priority (groups.h). */
struct wq__member {
    uint32_t group; /* its number */
    wq__ref  last;  /* the last record of the lane */
    uint32_t len;   /* how many the lane has */
    /* The first records of the next and the previous lane in the ring of its
     * level; 0: not in the ring. */
    wq__ref next, prev;
    wq__ref other; /* the group's next lane, of another level; 0: none */
};

_Static_assert(sizeof(struct wq__age) == WQ__PART_AGE, "the size of its part");
_Static_assert(sizeof(struct wq__member) == WQ__PART_GROUP,
               "the size of its part");

/* The longest key that is stored inside its record, with its NUL. */
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

/* The epoch of the run that is READY or HELD, and of the next run of a DIRTY
 * key. */
static inline unsigned
wq__rec_epoch(const struct wq__rec *rec)
{
    return (rec->flags & WQ__EPOCH) / 4096U;
}

static inline unsigned
wq__rec_next_epoch(const struct wq__rec *rec)
{
    return (rec->flags & WQ__NEXT_EPOCH) / 16384U;
}

static inline void
wq__rec_set_epoch(struct wq__rec *rec, unsigned epoch)
{
    rec->flags =
        (uint16_t)((rec->flags & ~(unsigned)WQ__EPOCH) | epoch * 4096U);
}

static inline void
wq__rec_set_next_epoch(struct wq__rec *rec, unsigned epoch)
{
    rec->flags =
        (uint16_t)((rec->flags & ~(unsigned)WQ__NEXT_EPOCH) | epoch * 16384U);
}

#endif
