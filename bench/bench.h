/* SPDX-License-Identifier: MIT */
/* bench.h: what must a queue offer to be measured here?
 *
 * Every side does the same operations on the same keys through these verbs. The
 * indirect calls cost every side the same.
 */
#ifndef WQ_BENCH_H
#define WQ_BENCH_H

#include <stdbool.h>
#include <stddef.h>

#include <wq/wq.h>

struct side {
    const char *name;
    const char *what;
    void *(*create)(void);
    void (*add)(void *q, wq_key key);
    bool (*get)(void *q, void **item); /* blocks; false: shut down and empty */
    void (*done)(void *q, void *item);
    void (*shutdown)(void *q);
    void (*destroy)(void *q);
};

extern const struct side side_wq, side_naive;

/* Key number `i`: all different, of the same length. */
wq_key bench_key(size_t i);
double bench_now_ns(void);

/* Sorts `figures`. */
double bench_median(double *figures, size_t n);

/* Print how late keys are that were added with a delay. */
void bench_timers(void);

/* Print what features cost. */
void bench_features(size_t rounds);

/* No side may fail: a figure from a queue that refused work is worthless. */
void must(bool ok, const char *what);

#endif
