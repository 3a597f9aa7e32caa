/* SPDX-License-Identifier: MIT */
/* ticks.h: how do ticks of the processor's counter become nanoseconds?
 *
 * By a straight line from an anchor: a moment at which both were read. Nothing
 * here reads a clock or a counter; stopwatch.c does, so that tests can check
 * any moment.
 *
 * A slope is nanoseconds per tick in units of 2^-32; 0: not known.
 */
#ifndef WQ_PORT_TICKS_H
#define WQ_PORT_TICKS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /* A line is used for so many ticks; then it gets a new anchor. With a
     * counter of 1 GHz or more, which all known processors have, that is at
     * most a millisecond. */
    WQ__TICKS_WINDOW = 1 << 20,
    /* The counter is read before and after the clock. If the two readings are
     * further apart than this, the thread was interrupted. */
    WQ__TICKS_SLACK = 1 << 12,
};

/* The times over which a slope is measured. If both ends are off by half of
 * WQ__TICKS_SLACK, the shortest is wrong by two parts in a thousand at 2 GHz,
 * and the longest by twenty in a million; in practice both are some fifty times
 * better. Longer ones would only add the risk of a suspend in the middle. */
#define WQ__TICK_RATE_SHORTEST_NS INT64_C(1000000)
#define WQ__TICK_RATE_LONGEST_NS INT64_C(256000000)

/* A line, and how far it was used. Zeroed: none yet. */
struct wq__line {
    uint64_t ticks;   /* the anchor: when the counter was at this, */
    int64_t  ns;      /* the clock was at this */
    uint64_t slope;   /* 0: there is no line */
    int64_t  last_ns; /* the last result; results never go back */
};

/* What is known of the counter's rate. Zeroed: nothing yet. */
struct wq__tick_rate {
    uint64_t ticks;     /* the counter when the measurement began, */
    int64_t  ns;        /* and the clock */
    int64_t  length_ns; /* how long `slope` was measured; 0: not yet */
    uint64_t slope;
};

/* The tick of a time that was read between two readings of the counter. False:
 * they are too far apart, or the counter went back. */
static inline bool
wq__ticks_between(uint64_t before, uint64_t after, uint64_t *ticks)
{
    const uint64_t slack = after - before;

    *ticks = before + slack / 2;
    return slack <= WQ__TICKS_SLACK;
}

static inline int64_t
wq__line_answer(struct wq__line *l, int64_t now_ns)
{
    if (now_ns > l->last_ns)
        l->last_ns = now_ns;
    return l->last_ns;
}

/* The time at `ticks` on the line. False: there is no line, or the anchor is
 * too far away, or it is later than `ticks` (the unsigned difference is large
 * then). */
static inline bool
wq__line_follow(struct wq__line *l, uint64_t ticks, int64_t *now_ns)
{
    const uint64_t since = ticks - l->ticks;

    if (!l->slope || since >= WQ__TICKS_WINDOW)
        return false;
    *now_ns = wq__line_answer(l, l->ns + (int64_t)(since * l->slope >> 32));
    return true;
}

/* Begin a new line; returns its first result. */
static inline int64_t
wq__line_anchor(struct wq__line *l, uint64_t ticks, int64_t ns, uint64_t slope)
{
    l->ticks = ticks;
    l->ns = ns;
    l->slope = slope;
    return wq__line_answer(l, ns);
}

/* The slope of a piece of a line; 0 if no processor has such a rate (more than
 * 16 GHz, less than 1/16 GHz): the counter or the clock was set meanwhile. */
static inline uint64_t
wq__tick_rate_of(uint64_t ticks, int64_t length_ns)
{
    const uint64_t ns = (uint64_t)length_ns; /* below 2^28: see LONGEST */

    return ticks < ns / 16 || ticks > ns * 16 ? 0 : (ns << 32) / ticks;
}

/* Learn from one more anchor; returns the slope known now. The slope is
 * measured again whenever the time is twice as long as before, up to
 * WQ__TICK_RATE_LONGEST_NS; then it stays. Anchors of several threads may come
 * a little out of order. */
static inline uint64_t
wq__tick_rate_learn(struct wq__tick_rate *p, uint64_t ticks, int64_t ns)
{
    const int64_t length_ns = ns - p->ns;
    uint64_t      slope = 0;

    if (length_ns < WQ__TICK_RATE_SHORTEST_NS || length_ns < 2 * p->length_ns)
        return p->slope;
    if (length_ns <= WQ__TICK_RATE_LONGEST_NS)
        slope = wq__tick_rate_of(ticks - p->ticks, length_ns);
    if (!slope) { /* begin again from here; the known slope stays */
        p->ticks = ticks;
        p->ns = ns;
        return p->slope;
    }
    p->length_ns = length_ns;
    return p->slope = slope;
}

#endif
