/* SPDX-License-Identifier: MIT */
/* measure.h: what does bench_shared measure? */
#ifndef WQ_BENCH_MEASURE_H
#define WQ_BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>

enum { MOST_ROUNDS = 101 };

/* Measure for a short time only. */
extern bool shared_quick;

/* Measure one round; print the medians of so many. */
void cycles_measure(size_t round);
void cycles_print(size_t rounds);

/* Measure and print. */
void wakeups_print(void);

#endif
