/* SPDX-License-Identifier: MIT */
/* looks.h: does a thread look for a reply for a while before it sleeps?
 *
 * A server of this machine answers in 30 to 70 us. To sleep meanwhile, and to be
 * woken, can take as long again, and keeps both processes busy: most of all where
 * processors that are idle must be woken, as in a virtual machine. Where other
 * programs keep the processors busy, or the server is far away, looking for the
 * reply gains nothing, and takes the processor from others.
 *
 * So both are measured: how long a thread waits for a reply, mostly, if it looks
 * for it first, and if it sleeps at once. To look uses the processor: it pays if to
 * sleep takes 7/4 of the time. Each 32nd wait is of the kind that does not pay, so
 * that both times stay known. No look takes longer than WQ__LOOK_MOST: so where
 * looks do not pay they take 3 us for each wait at most. O(1); no side effects.
 */
#ifndef WQ_REDIS_LOOKS_H
#define WQ_REDIS_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WQ__LOOK_MOST = 100000, /* ns */
    WQ__LOOK_TRIAL = 32,
};

struct wq__looks {
    /* Half of the waits are shorter. 0: there was none. */
    int64_t  look_ns, sleep_ns;
    unsigned waits;
};

/* Does a thread that begins to wait look first? */
static inline bool
wq__looks_first(struct wq__looks *l)
{
    const bool pays = l->look_ns * 7 / 4 <= l->sleep_ns;

    return ++l->waits % WQ__LOOK_TRIAL ? pays : !pays;
}

/* It has waited for so long. A step up for each wait that is longer, down for each
 * that is shorter: so a few very long ones do not matter. */
static inline void
wq__looks_note(struct wq__looks *l, bool looked, int64_t took_ns)
{
    int64_t *const middle = looked ? &l->look_ns : &l->sleep_ns;
    const int64_t  step = *middle / 16 + 1;

    if (!*middle)
        *middle = took_ns > 0 ? took_ns : 1;
    else if (took_ns > *middle)
        *middle += step;
    else if (*middle > step)
        *middle -= step;
}

#endif
