/* SPDX-License-Identifier: MIT */
/* crowd.h: what do all stress tests share?
 *
 * Expectations that abort the program, threads that start and end together, and
 * a watchdog that aborts the program when nothing moves for SILENCE_S seconds.
 *
 * WQ_STRESS_SECONDS sets how long the whole program runs (default: about a
 * second per test); WQ_SEED sets the seed of all random choices.
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
#include <string.h>
#include <time.h>

#include <wq/inspect.h>

#include "port/time.h"
#include "unit/dice.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)

enum {
    THREADS_MAX = 128,
    SILENCE_S = 30, /* no progress for so long: a wake-up was lost */
};

static _Atomic uint64_t progress; /* grows with all that gets done */
static _Atomic uint64_t seeds;    /* each thread takes one */
static atomic_bool      stop;     /* threads that run in a loop must end */
static atomic_bool      watched;  /* the watchdog must go on */

/* ---- expectations -------------------------------------------------------- */

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
expect(bool ok, const char *what, uint64_t expected, uint64_t got)
{
    if (!ok)
        broken("%s: expected %llu, got %llu", what,
               (unsigned long long)expected, (unsigned long long)got);
}

static inline void
expect_equal(const char *what, uint64_t expected, uint64_t got)
{
    expect(expected == got, what, expected, got);
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

/* ---- time and chance ----------------------------------------------------- */

static inline void
nap_ns(int64_t ns)
{
    const struct timespec nap = {
        .tv_sec = (time_t)(ns / SECOND),
        .tv_nsec = (long)(ns % SECOND),
    };
    (void)nanosleep(&nap, NULL);
}

/* How long one test runs: its part of WQ_STRESS_SECONDS, or `otherwise`. */
static inline int64_t
share_or_ns(int64_t otherwise)
{
    const char  *text = getenv("WQ_STRESS_SECONDS");
    const double seconds = text ? strtod(text, NULL) : 0;
    if (seconds <= 0)
        return otherwise;
    return (int64_t)(seconds * (double)SECOND / (double)wq_tests_count());
}

static inline int64_t
share_ns(void)
{
    return share_or_ns(SECOND * 7 / 10);
}

static inline struct dice
own_dice(void)
{
    const uint64_t n = atomic_fetch_add(&seeds, 1);
    return dice_from(dice_env_seed(1) * 1000 + n);
}

/* ---- threads ------------------------------------------------------------- */

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

/* They run for share_ns(), until `stop` is set. */
static inline void
crowd_stop_after_share(struct crowd *crowd)
{
    nap_ns(share_ns());
    atomic_store(&stop, true);
    crowd_join(crowd);
}

static inline void *
watch(void *unused)
{
    uint64_t last = 0;
    int      silent = 0;

    for (; atomic_load(&watched); nap_ns(SECOND / 20)) {
        const uint64_t now = atomic_load(&progress);
        silent = now == last ? silent + 1 : 0;
        last = now;
        if (silent > SILENCE_S * 20)
            broken("no progress for %d seconds: a wake-up was lost", SILENCE_S);
    }
    return unused;
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

/* Threads that do the same. */
struct role {
    int n;
    void *(*run)(void *);
    void *arg;
};

/* Run the threads of a test for share_ns(), then drain `q`. The consumers end
 * at the shutdown; the others, up to a role without `run`, end at `stop`. */
static inline void
run_roles(wq_queue *q, struct role consumers, const struct role *others)
{
    struct crowd getting = {.n = 0}, stopping = {.n = 0}, dog;

    start_watchdog(&dog);
    crowd_start(&getting, consumers.n, consumers.run, consumers.arg);
    for (; others->run; others++)
        crowd_start(&stopping, others->n, others->run, others->arg);
    crowd_stop_after_share(&stopping);
    expect_err("drain", WQ_OK, wq_shutdown_with_drain(q));
    crowd_join(&getting);
    stop_watchdog(&dog);
}

/* Call `round` until share_ns() has passed; the number of calls. Each call
 * counts as progress. */
static inline unsigned
repeat(void (*round)(struct dice *dice))
{
    const int64_t end = wq__time_now() + share_ns();
    struct crowd  dog;
    struct dice   dice = own_dice();
    unsigned      rounds = 0;

    start_watchdog(&dog);
    for (; wq__time_now() < end; rounds++) {
        round(&dice);
        atomic_fetch_add(&progress, 1);
    }
    stop_watchdog(&dog);
    return rounds;
}

/* ---- tests --------------------------------------------------------------- */

/* A test that is one `struct plan`, carried out by play(); both are the
 * file's. */
#define PLAY(name, ...)                                                        \
    TEST(name)                                                                 \
    {                                                                          \
        play(&(struct plan){__VA_ARGS__});                                     \
    }

/* A test that is one function, called again and again. */
#define REPEAT(name, round)                                                    \
    TEST(name)                                                                 \
    {                                                                          \
        print_message("%u rounds\n", repeat(round));                           \
    }

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
