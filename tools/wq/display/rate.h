/* SPDX-License-Identifier: MIT */
/* rate.h: how many runs and keys per second, and how much time is left?
 *
 * Rates are measured over the last 16 seconds: a mean since the start would hide
 * a change.
 */
#ifndef WQ_TOOL_RATE_H
#define WQ_TOOL_RATE_H

#include "run/view.h"

/* 32 samples, half a second apart, are 16 seconds. */
#define RATE_SAMPLES 32
#define RATE_SAMPLE_NS INT64_C(500000000)

struct rate_sample {
    int64_t  at_ns;
    uint64_t ended;   /* runs that are over */
    uint64_t settled; /* keys that are settled */
};

/* Zero before the first sample. */
struct run_rate {
    struct rate_sample ring[RATE_SAMPLES];
    size_t             n; /* samples taken since the start */
    struct rate_sample now;
};

/* Take a sample. May be called at any interval. */
void rate_take(struct run_rate *rate, const struct view *view);

/* Per second: runs that ended; keys that were settled. */
double rate_runs(const struct run_rate *rate);
double rate_keys(const struct run_rate *rate);

/* The time until no key is left, at this rate; -1: unknown. */
int64_t rate_left_ns(const struct run_rate *rate, const struct view *view);

#endif
