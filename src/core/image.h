/* SPDX-License-Identifier: MIT */
/* image.h: what does a core know of one key, as data?
 *
 * A shared queue keeps its keys in a store. For an operation it reads the rows
 * of the keys involved, imports them into a scratch core, calls the verbs of
 * core.h, and writes the rows back. So what a verb means is written once, in
 * the core, for every store.
 *
 *       row ──► wq__core_import ──► verbs ──► wq__core_export ──► row
 *                                                │
 *                                                ▼
 *                                          wq__core_expel
 *
 * A scratch core is an ordinary core that holds only some keys for a moment. It
 * keeps its memory from one operation to the next, and does not grow with their
 * number. It has no wq_order, groups or ageing, no flush is under way in it,
 * and no key of it is to be removed at done: images do not store what these
 * need.
 *
 * Cost: O(1), of a key with an entry in the delay heap O(log n).
 */
#ifndef WQ_CORE_IMAGE_H
#define WQ_CORE_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/core.h"

/* All that a core knows of one key. A field is 0 if the key has none of the
 * states that the comment of the field names. */
struct wq__image {
    /* READY, HELD, DIRTY, WAITING, BACKOFF, COVERS_ADD, DEBOUNCED and COOLDOWN
     * of enum wq__flag; 0: the core does not know the key. */
    unsigned states;

    int     priority; /* READY, DIRTY: of the pending run */
    int64_t since_ns; /* READY, DIRTY: since when, if ages are kept */

    int      held_priority; /* HELD: of the hand-out */
    uint64_t fence;         /* HELD: of the hand-out */
    int64_t  held_ns;       /* HELD: since when, if ages are kept */
    /* HELD: what wq__core_note_holder() noted; undefined before that call. */
    uint32_t holder;

    /* WAITING: the deadline. COOLDOWN: its end; WQ_FOREVER while the run that
     * it follows is pending. */
    int64_t  at_ns;
    uint64_t arrival;       /* WAITING, COOLDOWN: breaks ties of at_ns (L4) */
    int      wait_priority; /* WAITING: of the run at the deadline */

    /* WAITING, COOLDOWN: the key has a throttle state, the next four; they are
     * the fields of struct wq__throttle_state. DEBOUNCED and COOLDOWN keys
     * always have one. */
    bool    throttled;
    int64_t latest_ns, next_cooldown_ns, wait_cooldown_ns, cooldown_until_ns;
};

/* Can a core export this image? A row that was damaged must not reach
 * wq__core_import(), which relies on the answer. */
bool wq__image_is_possible(const struct wq__image *image);

/* The numbers that a store gave out last: the fence, and the arrival number of
 * a deadline. To be set before the verbs, and read after them. */
struct wq__numbers {
    uint64_t fence, arrival;
};

static inline void
wq__core_set_numbers(struct wq__core *c, struct wq__numbers last)
{
    c->fence = last.fence;
    c->waiting.seq = last.arrival;
}

static inline struct wq__numbers
wq__core_numbers(const struct wq__core *c)
{
    return (struct wq__numbers){.fence = c->fence, .arrival = c->waiting.seq};
}

/* Copy out what the core knows of `key`. Changes nothing. */
void wq__core_export(const struct wq__core *c, wq_key key, uint32_t hash,
                     struct wq__image *out);

/* Put in `key`, which the core does not know, as `image` says; the bytes are
 * copied. An image without states puts in nothing.
 *
 * A READY key becomes the last of its priority, and a HELD key the last in the
 * list of loans by age: import several keys in their order. The heap orders the
 * others by at_ns and arrival. Fence and arrival number of the core are at
 * least those of the image afterwards.
 *
 * Counts nothing in `tally`, and ignores the bounds of the queue. `item` may be
 * NULL; *item: the item of a HELD key, else NULL. Its wq__core_latency() is 0.
 * WQ_ENOMEM: nothing has changed. */
wq_err wq__core_import(struct wq__core *c, wq_key key, uint32_t hash,
                       const struct wq__image *image, wq_item **item);

/* Take `key` out, whatever its states, and count nothing. Its item ends. Does
 * nothing if the core does not know the key. */
void wq__core_expel(struct wq__core *c, wq_key key, uint32_t hash);

/* The item of `key`, for wq__core_done() and wq__core_give_back(); NULL: the
 * key is not HELD. */
wq_item *wq__core_find_item(const struct wq__core *c, wq_key key,
                            uint32_t hash);

#endif
