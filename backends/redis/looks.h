/* SPDX-License-Identifier: MIT */
/* looks.h: does a thread look for a reply for a while before it sleeps?
 *
 * A server of this machine answers in 30 to 70 us. To sleep meanwhile, and to be
 * woken, can take as long again, and keeps both processes busy: most of all where
 * processors that are idle must be woken, as in a virtual machine. Where other
 * programs keep the processors busy, or the server is far away, looking for the
 * reply gains nothing, and takes the processor from others.
 *
 * So both are measured: how long a thread waits for a reply, on average, if it
 * looks for it first, and if it sleeps at once. Looks pay if to sleep takes at least
 * 5/4 of the time. The first 16 waits are of both kinds, and then each 31st is of
 * the kind that does not pay, so that both averages stay known. (The number is odd:
 * calls mostly come in pairs, of which one takes longer.) No look takes longer than
 * WQ__LOOK_MOST: so where looks do not pay they take about 3 us for each wait.
 * O(1); no side effects.
 */
#ifndef WQ_REDIS_LOOKS_H
#define WQ_REDIS_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WQ__LOOK_MOST = 100000,     /* ns */
    WQ__LOOK_OUTLIER = 1000000, /* no wait counts for more */
    WQ__LOOK_TRIAL = 31,
    WQ__LOOK_FIRST = 16,
    WQ__LOOK_MEMORY = 64, /* an average is of so many waits */
};

/* Waits of one kind. */
struct wq__waits {
    int64_t mean_ns;
    int     n; /* up to WQ__LOOK_MEMORY */
};

struct wq__looks {
    struct wq__waits looks, sleeps;
    unsigned         waits;
};

/* Does a thread that begins to wait look first? */
static inline bool
wq__looks_first(struct wq__looks *l)
{
    const bool pays = l->looks.mean_ns * 5 / 4 <= l->sleeps.mean_ns;
    const int  n = l->looks.n + l->sleeps.n;

    if (n < WQ__LOOK_FIRST)
        return (n + 1) / 2 % 2 == 0; /* look, sleep, sleep, look, ... */
    return ++l->waits % WQ__LOOK_TRIAL ? pays : !pays;
}

/* It has waited for so long. */
static inline void
wq__looks_note(struct wq__looks *l, bool looked, int64_t took_ns)
{
    struct wq__waits *w = looked ? &l->looks : &l->sleeps;
    const int64_t ns = took_ns < WQ__LOOK_OUTLIER ? took_ns : WQ__LOOK_OUTLIER;

    if (w->n < WQ__LOOK_MEMORY)
        w->n++;
    w->mean_ns += (ns - w->mean_ns) / w->n;
}

#endif
