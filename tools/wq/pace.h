/* SPDX-License-Identifier: MIT */
/* pace.h: how fast does it go, and how long will it take?
 *
 * Rates are those of the last seconds: one that counts from the beginning would
 * not notice that something has changed.
 */
#ifndef WQ_TOOL_PACE_H
#define WQ_TOOL_PACE_H

#include "view.h"

/* Samples are half a second apart, so 32 are 16 seconds. */
#define PACE_SAMPLES 32
#define PACE_APART_NS INT64_C(500000000)

struct pace_sample {
    int64_t  at_ns;
    uint64_t ended;   /* runs that are over */
    uint64_t settled; /* keys that are */
};

/* Zero is one that knows nothing yet. */
struct pace {
    struct pace_sample ring[PACE_SAMPLES];
    size_t             n; /* samples ever taken */
    struct pace_sample now;
};

/* Take note. May be called as often as one likes. */
void pace_take(struct pace *pace, const struct view *view);

/* A second, lately: runs that ended; keys that were settled. */
double pace_runs(const struct pace *pace);
double pace_keys(const struct pace *pace);

/* How long until nothing is left, if it goes on so; -1: nobody can tell. */
int64_t pace_left_ns(const struct pace *pace, const struct view *view);

#endif
