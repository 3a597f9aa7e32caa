/* SPDX-License-Identifier: MIT */
/* spin.h: how long does a getter spin before it sleeps?
 *
 * A key that comes while a getter spins saves a sleep and a wake-up. All other
 * spinning wastes processor time. So spinning must pay for itself: an account,
 * in units of one look for work, holds what spinning has saved minus what it
 * has cost.
 *
 *   A spin is allowed while the account holds WQ__SPIN_WORTH looks, which take
 *   about as long as a sleep and its wake-up keep processors busy. It may last
 *   for as many looks as the account holds; each one is paid from it.
 *   A spin that ends with a key earns WQ__SPIN_WORTH: it saved a sleep.
 *   A sleep earns an eighth of that, so that a getter which never finds a key
 *   by spinning still tries once in eight sleeps.
 *
 * So a queue never spends more on spinning than spinning has saved, plus an
 * eighth of what its sleeps cost, plus the opening balance. If keys come so
 * soon that short spins find them, the account fills, and a getter may spin
 * longer now and then. O(1); no side effects.
 */
#ifndef WQ_MEMORY_SPIN_H
#define WQ_MEMORY_SPIN_H

#include <stdbool.h>

enum {
    /* 16 to 70 us, by the length of a pause: as long as an idle processor of a
     * virtual machine takes to wake up. With a quarter of it, two threads that
     * send one key to and fro could miss each other for ever: the spin of one
     * ended before the other was awake. */
    WQ__SPIN_WORTH = 1600,
    WQ__SPIN_TRIAL = WQ__SPIN_WORTH / 8,
    /* No spin is longer, and the account holds no more. */
    WQ__SPIN_MOST = 2 * WQ__SPIN_WORTH,
};

struct wq__spin {
    int account; /* 0 .. WQ__SPIN_MOST */
};

static inline void
wq__spin_init(struct wq__spin *s)
{
    s->account = WQ__SPIN_WORTH;
}

/* How many looks a spin may make now; 0: do not spin. */
static inline int
wq__spin_limit(const struct wq__spin *s)
{
    return s->account >= WQ__SPIN_WORTH ? s->account : 0;
}

static inline void
wq__spin_earn(struct wq__spin *s, int looks)
{
    const int sum = s->account + looks;

    s->account = sum < WQ__SPIN_MOST ? sum : WQ__SPIN_MOST;
}

/* A spin has made `looks` looks, wq__spin_limit() at most. (Two spins overlap
 * if the first has lost its processor: then the account may not cover both.) */
static inline void
wq__spin_pay(struct wq__spin *s, int looks, bool got_key)
{
    s->account = s->account > looks ? s->account - looks : 0;
    if (got_key)
        wq__spin_earn(s, WQ__SPIN_WORTH);
}

static inline void
wq__spin_note_sleep(struct wq__spin *s)
{
    wq__spin_earn(s, WQ__SPIN_TRIAL);
}

#endif
