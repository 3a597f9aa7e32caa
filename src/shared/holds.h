/* SPDX-License-Identifier: MIT */
/* holds.h: which keys does this handle hold?
 *
 * A hold is the item that a worker gets from a shared queue, and what the shell
 * knows about it. Its memory stays until the end of the handle, so that a done
 * can check any item of this handle: also one that is done already. Ended holds
 * are used again oldest first, so that a second done of an item is noticed for
 * as long as possible: here it would end the hold of a stranger.
 *
 * Not thread-safe: the shell's lock guards all of it. Cost: O(1), but
 * wq__holds_find_key(), which is O(holds).
 */
#ifndef WQ_SHARED_HOLDS_H
#define WQ_SHARED_HOLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wq/wq.h>

#include "shared/engine.h"

enum wq__hold_state {
    WQ__HOLD_ENDED,  /* free for the next key */
    WQ__HOLD_TAKEN,  /* by a batch that is not answered yet */
    WQ__HOLD_LENT,   /* a worker has the item */
    WQ__HOLD_ENDING, /* ... and a finish of it is under way */
};

struct wq__hold {
    wq_item             item; /* item.loan is its number */
    enum wq__hold_state state;
    bool                lost;      /* the store may have given it to others */
    bool                reported;  /* ... and on_lost was called */
    bool                reporting; /* ... and has not returned */
    bool                ends;      /* it ends when on_lost returns */
    bool             in_doubt;  /* a finish of it was sent, and not answered */
    uint32_t         holder;    /* the thread that got it (thread_mark.h) */
    int64_t          got_ns;    /* when */
    int64_t          waited_ns; /* for how long it was READY before */
    struct wq__hold *prev, *next; /* in the list of its state */
    char            *bytes;       /* of the key, and a NUL; owned */
    size_t           cap;         /* how many bytes are allocated */
};

struct wq__holds {
    const wq_allocator *mem;            /* not owned */
    struct wq__hold   **at;             /* by number; owned */
    size_t              len;            /* how many there are */
    size_t              cap;            /* of `at` */
    size_t              lent;           /* LENT or ENDING */
    size_t              lost;           /* of these, how many are lost */
    struct wq__hold    *first;          /* TAKEN, LENT, ENDING; in no order */
    struct wq__hold    *ended, *newest; /* ENDED: oldest and newest */
};

void wq__holds_init(struct wq__holds *h, const wq_allocator *mem);
void wq__holds_fini(struct wq__holds *h);

/* A new hold, TAKEN, with a copy of the key. NULL: out of memory. */
struct wq__hold *wq__holds_take(struct wq__holds        *h,
                                const struct wq__handed *handed);

/* A worker gets it. */
void wq__holds_lend(struct wq__holds *h, struct wq__hold *hold, int64_t now);

/* It is lost. */
void wq__holds_lose(struct wq__holds *h, struct wq__hold *hold);

/* It has ended. */
void wq__holds_end(struct wq__holds *h, struct wq__hold *hold);

/* The hold of `item`, if it is LENT or ENDING; else NULL. */
struct wq__hold *wq__holds_find(const struct wq__holds *h, const wq_item *item);

/* The LENT hold of `key`, or NULL. There are several if a finish was not
 * answered, or a hold was lost, and the handle has got the key again: then the
 * hold that the thread `holder` got; of several, or if there is none, the oldest,
 * whose worker calls first or again. */
struct wq__hold *wq__holds_find_key(const struct wq__holds *h, wq_key key,
                                    uint32_t holder);

/* Does this thread hold a key? */
bool wq__holds_any_of(const struct wq__holds *h, uint32_t holder);

#endif
