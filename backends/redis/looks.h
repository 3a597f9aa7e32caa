/* SPDX-License-Identifier: MIT */
/* looks.h: does a thread look for a reply for a while before it sleeps?
 *
 * A server of this machine answers in 30 to 70 us. To sleep meanwhile, and to be
 * woken, can take as long again, and keeps both processes busy: most of all where
 * processors that are idle must be woken, as in a virtual machine. Where other
 * programs keep the processors busy, or the server is far away, looking for the
 * reply gains nothing. Between two looks the thread yields its processor to others
 * that want it, as far as that is cheap (shared/yields.h).
 *
 * So both are measured: how long a thread waits for a reply, on average, if it
 * looks for it first, and if it sleeps at once. Looks pay if to sleep takes at least
 * 5/4 of the time. How long a wait takes depends on the kind of those before it,
 * too: whether the processors sleep, and on which of them the threads run. So the
 * waits come in rounds of eight of one kind, and the first two of a round do not
 * count. The first ten rounds are of both kinds in turn; two of them do not count,
 * because a program may be starting: waits of 0.2 ms at the start decided for a
 * second. Then each 31st round is of the kind that does not pay: so both averages
 * stay known. No look begins later than WQ__LOOK_MOST after the wait: so where looks
 * do not pay they take about 3 us for each wait. O(1); no side effects.
 */
#ifndef WQ_REDIS_LOOKS_H
#define WQ_REDIS_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WQ__LOOK_MOST = 100000,     /* ns */
    WQ__LOOK_OUTLIER = 1000000, /* no wait counts for more */
    WQ__LOOK_ROUND = 8,
    WQ__LOOK_SETTLE = 2, /* so many waits of a round do not count, */
    WQ__LOOK_START = 2,  /* nor do so many rounds */
    WQ__LOOK_FIRST = 10,
    WQ__LOOK_TRIAL = 31,
    WQ__LOOK_MEMORY = 64, /* an average is of so many waits */
};

/* Waits of one kind. */
struct wq__waits {
    int64_t mean_ns;
    int     n; /* up to WQ__LOOK_MEMORY */
};

struct wq__looks {
    struct wq__waits looks, sleeps;
    unsigned         waits;       /* that have begun */
    bool             looks_first; /* in this round */
};

/* What is the kind of the round that begins? */
static inline bool
wq__looks_choose(const struct wq__looks *l)
{
    const unsigned round = l->waits / WQ__LOOK_ROUND;
    const bool     pays = l->looks.mean_ns * 5 / 4 <= l->sleeps.mean_ns;

    if (round < WQ__LOOK_FIRST)
        return round % 2 == 0;
    return round % WQ__LOOK_TRIAL ? pays : !pays;
}

/* Does a thread that begins to wait look first? */
static inline bool
wq__looks_first(struct wq__looks *l)
{
    if (l->waits % WQ__LOOK_ROUND == 0)
        l->looks_first = wq__looks_choose(l);
    l->waits++;
    return l->looks_first;
}

/* That wait has taken so long. */
static inline void
wq__looks_note(struct wq__looks *l, int64_t took_ns)
{
    const unsigned    before = l->waits - 1;
    struct wq__waits *w = l->looks_first ? &l->looks : &l->sleeps;
    const int64_t ns = took_ns < WQ__LOOK_OUTLIER ? took_ns : WQ__LOOK_OUTLIER;

    if (before % WQ__LOOK_ROUND < WQ__LOOK_SETTLE ||
        before / WQ__LOOK_ROUND < WQ__LOOK_START)
        return;
    if (w->n < WQ__LOOK_MEMORY)
        w->n++;
    w->mean_ns += (ns - w->mean_ns) / w->n;
}

#endif
