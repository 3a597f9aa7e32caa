/* SPDX-License-Identifier: MIT */
/* patience.h: must a key wake a getter, or will one that is awake take it?
 *
 * To wake a thread takes as long as dozens of short keys, and the thread takes a
 * processor from those that work. So while keys are got fast, a key is left to
 * the getters that are awake, and the others sleep on:
 *
 *   fast     the last WQ__PATIENCE_GETS gets took WQ__PATIENCE_NS at most, that
 *            is, 2 us each; and they were a moment ago (WQ__PATIENCE_STALE_NS)
 *   nap      one of the sleeping getters, the timekeeper, sleeps for WQ__NAP_NS
 *            only, on behalf of all
 *
 * At the end of a nap: if as many keys have been handed out as were READY at its
 * beginning, those awake keep up, and the next nap begins, unless nothing is
 * handed out any more. If not, a getter that is awake works on one key for long,
 * or there are too many keys for those awake: then keys are not got fast any
 * more, until so many others have been.
 *
 * That many keys are those very keys, because the queue is FIFO: one with
 * priorities is not patient.
 *
 * So a key that a sleeping getter could have taken waits for two naps at most: a
 * key that comes after the beginning of one nap counts at the beginning of the
 * next. A nap takes 50 us, as much again where the system lets timers be late by
 * that (Linux, unless a program asks for less), and the time until the thread
 * runs.
 *
 * O(1); no side effects: the callers read the clock.
 */
#ifndef WQ_MEMORY_PATIENCE_H
#define WQ_MEMORY_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

#include <wq/wq.h>

enum {
    WQ__PATIENCE_GETS = 32,
    WQ__PATIENCE_NS = 64000,
    WQ__PATIENCE_STALE_NS = 4 * WQ__PATIENCE_NS,
    WQ__NAP_NS = 50000,
};

struct wq__patience {
    bool     allowed;     /* set by the caller, once */
    bool     fast;        /* keys were got fast when gets were timed last, */
    int64_t  timed_ns;    /* and when that was */
    unsigned gets;        /* since then */
    int64_t  nap_ends_ns; /* WQ_FOREVER: nobody takes a nap */
    uint64_t before;      /* the hand-outs before the nap, */
    uint64_t expected;    /* and those that it expects at its end */
};

static inline void
wq__patience_init(struct wq__patience *p, bool allowed)
{
    *p = (struct wq__patience){.allowed = allowed, .nap_ends_ns = WQ_FOREVER};
}

/* One more get. True: it is time to time them. */
static inline bool
wq__patience_count(struct wq__patience *p)
{
    return p->allowed && ++p->gets >= WQ__PATIENCE_GETS;
}

static inline void
wq__patience_time(struct wq__patience *p, int64_t now)
{
    p->fast = now - p->timed_ns <= WQ__PATIENCE_NS;
    p->timed_ns = now;
    p->gets = 0;
}

static inline bool
wq__patience_naps(const struct wq__patience *p)
{
    return p->nap_ends_ns != WQ_FOREVER;
}

/* A nap begins after `n` hand-outs, while `keys` wait for theirs; but not if it
 * is not known any more whether keys are got fast. */
static inline void
wq__patience_nap(struct wq__patience *p, uint64_t n, size_t keys, int64_t now)
{
    if (now - p->timed_ns > WQ__PATIENCE_STALE_NS) {
        p->fast = false;
        return;
    }
    p->nap_ends_ns = now + WQ__NAP_NS;
    p->before = n;
    p->expected = n + keys;
}

/* The nap is over, after `n` hand-outs. True: those who are awake keep up, and
 * the next nap should begin. */
static inline bool
wq__patience_wake(struct wq__patience *p, uint64_t n)
{
    p->nap_ends_ns = WQ_FOREVER;
    p->fast = p->fast && n >= p->expected;
    return p->fast && n > p->before;
}

#endif
