/* SPDX-License-Identifier: MIT */
/* crowd.h: what do the stress tests of adds with a purpose share?
 *
 * Threads that are started and joined together, a watchdog, and the end of the
 * program when a law breaks. WQ_STRESS_SECONDS says how long the whole program
 * takes (about a second a test unless set); WQ_SEED makes other choices.
 */
#ifndef WQ_STRESS_CROWD_H
#define WQ_STRESS_CROWD_H

#include "support/wq_test.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <wq/inspect.h>

#include "unit/dice.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)

enum {
    THREADS_MAX = 128,
    SILENCE_S = 30, /* nothing moved for so long: somebody sleeps in vain */
};

static _Atomic uint64_t progress; /* raised by whoever gets something done */
static _Atomic uint64_t seeds;    /* every thread takes one */
static atomic_bool      stop;     /* those who go on for ever shall end */
static atomic_bool      watched;  /* the watchdog has something to watch */

__attribute__((format(printf, 1, 2))) static inline _Noreturn void
broken(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fprintf(stderr,
            "stress: WQ_SEED=%llu: ", (unsigned long long)dice_env_seed(1));
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

static inline void
expect_equal(const char *what, uint64_t expected, uint64_t got)
{
    if (expected != got)
        broken("%s: expected %llu, got %llu", what,
               (unsigned long long)expected, (unsigned long long)got);
}

static inline void
expect_at_most(const char *what, uint64_t most, uint64_t got)
{
    if (got > most)
        broken("%s: expected at most %llu, got %llu", what,
               (unsigned long long)most, (unsigned long long)got);
}

static inline void
expect_err(const char *what, wq_err expected, wq_err got)
{
    if (expected != got)
        broken("%s: expected %s, got %s", what, wq_err_name(expected),
               wq_err_name(got));
}

static inline void
nap_ns(int64_t ns)
{
    const struct timespec nap = {
        .tv_sec = (time_t)(ns / SECOND),
        .tv_nsec = (long)(ns % SECOND),
    };
    (void)nanosleep(&nap, NULL);
}

static inline struct dice
own_dice(void)
{
    const uint64_t n = atomic_fetch_add(&seeds, 1);
    return dice_from(dice_env_seed(1) * 1000 + n);
}

/* How long one test may take. */
static inline int64_t
share_ns(void)
{
    const char  *text = getenv("WQ_STRESS_SECONDS");
    const double seconds = text ? strtod(text, NULL) : 0;
    if (seconds <= 0)
        return SECOND * 7 / 10;
    return (int64_t)(seconds * (double)SECOND / (double)wq_tests_len);
}

/* ---- threads ------------------------------------------------------------ */

struct crowd {
    pthread_t all[THREADS_MAX];
    size_t    n;
};

static inline void
crowd_start(struct crowd *crowd, int n, void *(*run)(void *), void *arg)
{
    for (int i = 0; i < n; i++)
        expect_equal(
            "pthread_create", 0,
            (uint64_t)pthread_create(&crowd->all[crowd->n++], NULL, run, arg));
}

static inline void
crowd_join(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->n; i++)
        expect_equal("pthread_join", 0,
                     (uint64_t)pthread_join(crowd->all[i], NULL));
    crowd->n = 0;
}

static inline void *
watch(void *unused)
{
    uint64_t last = 0;
    int      silent = 0;

    (void)unused;
    for (; atomic_load(&watched); nap_ns(SECOND / 20)) {
        const uint64_t now = atomic_load(&progress);
        silent = now == last ? silent + 1 : 0;
        last = now;
        if (silent > SILENCE_S * 20)
            broken("nothing has moved for %d seconds: a wake-up was lost",
                   SILENCE_S);
    }
    return NULL;
}

static inline void
start_watchdog(struct crowd *dog)
{
    dog->n = 0;
    atomic_store(&watched, true);
    crowd_start(dog, 1, watch, NULL);
}

static inline void
stop_watchdog(struct crowd *dog)
{
    atomic_store(&watched, false);
    crowd_join(dog);
}

/* ---- laws --------------------------------------------------------------- */

/* One snapshot, and what holds at every moment. */
static inline wq_stats
look(wq_queue *q)
{
    wq_stats c = {.size = sizeof c};

    expect_err("stats", WQ_OK, wq_read_stats(q, &c));
    expect_equal("adds",
                 c.gets + c.removed + c.displaced + c.deferred + c.ready +
                     c.dirty,
                 c.adds);
    expect_equal("gets", c.dones + c.held, c.gets);
    expect_at_most("dirty keys", c.held, c.dirty);
    return c;
}

#endif
