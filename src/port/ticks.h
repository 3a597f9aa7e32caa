/* SPDX-License-Identifier: MIT */
/* ticks.h: how do ticks of the processor's counter become nanoseconds?
 *
 * By a straight line from an anchor: a moment at which both were read. Nothing
 * here reads a clock or a counter; stopwatch.c does, so that tests can ask
 * about any moment.
 *
 * A slope is nanoseconds for a tick in units of 2^-32; 0: not known.
 */
#ifndef WQ_PORT_TICKS_H
#define WQ_PORT_TICKS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /* A line is followed for so many ticks, then it is anchored anew. Counters
     * that run at 1 GHz or more, as all do that we know, are followed for a
     * millisecond at most. */
    WQ__TICKS_WINDOW = 1 << 20,
    /* The tick of an anchor lies between a reading before and one after the
     * clock was read; further apart than this, the thread was interrupted. */
    WQ__TICKS_SLACK = 1 << 12,
};

/* The lengths over which a slope is measured. Ends that are off by half of
 * WQ__TICKS_SLACK each make the shortest wrong by two parts in a thousand at 2
 * GHz, and the longest by twenty in a million; in truth both are some fifty
 * times better. Longer ones only add the danger of a suspend in the middle. */
#define WQ__PACE_SHORTEST_NS INT64_C(1000000)
#define WQ__PACE_LONGEST_NS INT64_C(256000000)

/* A line, and how far it was followed. Zeroed: none yet. */
struct wq__line {
    uint64_t ticks;   /* the anchor: when the counter showed this, */
    int64_t  ns;      /* it was that late */
    uint64_t slope;   /* 0: there is no line */
    int64_t  last_ns; /* what was answered last; we never go back */
};

/* What is known of the counter's pace. Zeroed: nothing yet. */
struct wq__pace {
    uint64_t ticks;     /* where the measuring began, */
    int64_t  ns;        /* and when */
    int64_t  length_ns; /* how long `slope` was measured; 0: it was not */
    uint64_t slope;
};

/* Which tick belongs to a time that was read between two readings of the
 * counter? False: they are too far apart to tell, or it went back. */
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

/* Follow the line to `ticks`. False: there is none, or the anchor is too far
 * away, or lies ahead (the difference, unsigned, is then large). */
static inline bool
wq__line_follow(struct wq__line *l, uint64_t ticks, int64_t *now_ns)
{
    const uint64_t since = ticks - l->ticks;

    if (!l->slope || since >= WQ__TICKS_WINDOW)
        return false;
    *now_ns = wq__line_answer(l, l->ns + (int64_t)(since * l->slope >> 32));
    return true;
}

/* Begin a new line, and say what it begins with. */
static inline int64_t
wq__line_anchor(struct wq__line *l, uint64_t ticks, int64_t ns, uint64_t slope)
{
    l->ticks = ticks;
    l->ns = ns;
    l->slope = slope;
    return wq__line_answer(l, ns);
}

/* The slope of a piece of line; 0 if no processor has one like that (more than
 * 16 GHz, less than 1/16 GHz): the counter or the clock was set meanwhile. */
static inline uint64_t
wq__pace_of(uint64_t ticks, int64_t length_ns)
{
    const uint64_t ns = (uint64_t)length_ns; /* below 2^28: see LONGEST */

    return ticks < ns / 16 || ticks > ns * 16 ? 0 : (ns << 32) / ticks;
}

/* Learn from one more anchor; says the slope known now. It is made better
 * whenever it can be measured over twice the length, until that is more than
 * half of the longest: then it is left alone. Anchors of several threads may
 * come a little out of order. */
static inline uint64_t
wq__pace_learn(struct wq__pace *p, uint64_t ticks, int64_t ns)
{
    const int64_t length_ns = ns - p->ns;
    uint64_t      slope = 0;

    if (length_ns < WQ__PACE_SHORTEST_NS || length_ns < 2 * p->length_ns)
        return p->slope;
    if (length_ns <= WQ__PACE_LONGEST_NS)
        slope = wq__pace_of(ticks - p->ticks, length_ns);
    if (!slope) { /* begin again from here; what we know stays known */
        p->ticks = ticks;
        p->ns = ns;
        return p->slope;
    }
    p->length_ns = length_ns;
    return p->slope = slope;
}

#endif
