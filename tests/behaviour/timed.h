/* SPDX-License-Identifier: MIT */
/* timed.h: what do tests about time say so often that it has a word?
 *
 * A queue on a fake clock that begins at 0, made by with_time(...) for a test
 * that finds it in *state, or by timed_create() with a config of the test's
 * own. No test waits for time to pass: it moves the clock.
 *
 * To look at a thread that sleeps until a deadline: await_sleepers(), then
 * step. A thread that sleeps without a limit does not count there; see
 * worker_await_blocked().
 */
#ifndef WQ_BEHAVIOUR_TIMED_H
#define WQ_BEHAVIOUR_TIMED_H

#include "fixture.h"

#include <stdlib.h>

#include <wq/clock.h>

#include "support/worker.h"

#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define S INT64_C(1000000000)
#define HOUR (3600 * S)

struct timed {
    wq_clock *clock;
    wq_queue *q;
    size_t    sleepers;   /* what await_sleepers() waits for */
    int64_t   timeout_ns; /* of get_in_time() */
    wq_item  *item;       /* what it got */
};

/* An entry of WQ_TESTS() for a test that wants a queue on a fake clock. */
#define with_time(name) test_with(name, timed_setup, timed_teardown)

/* A clock at `now_ns`, and no queue yet. */
static inline struct timed *
timed_begin(int64_t now_ns_)
{
    struct timed *t = calloc(1, sizeof *t);

    assert_non_null(t);
    t->clock = wq_clock_fake_create(now_ns_);
    assert_non_null(t->clock);
    return t;
}

/* A clock at 0 and a queue on it; of `config` all but the clock is used. */
static inline struct timed *
timed_create(const wq_config *config)
{
    struct timed *t = timed_begin(0);
    wq_config     mine = *config;

    mine.clock = t->clock;
    t->q = open_queue(&mine);
    return t;
}

static inline void
timed_destroy(struct timed *t)
{
    wq_destroy(t->q);
    wq_clock_destroy(t->clock);
    free(t);
}

static inline int
timed_setup(void **state)
{
    *state = timed_create(WQ_CONFIG(.order = NULL));
    return 0;
}

static inline int
timed_teardown(void **state)
{
    timed_destroy(*state);
    return 0;
}

static inline void
step(struct timed *t, int64_t by_ns)
{
    wq_clock_fake_step(t->clock, by_ns);
}

static inline void
add_after(struct timed *t, const char *key, int64_t delay_ns)
{
    assert_err(wq_add_after(t->q, wq_str(key), delay_ns), WQ_OK);
}

/* Nothing is READY at this moment. */
static inline void
assert_none_due(struct timed *t)
{
    assert_none_ready(t->q, WQ_ETIMEDOUT);
}

/* `key` becomes READY in exactly `delay_ns`, and nothing before; it is worked
 * on. */
static inline void
assert_due_in(struct timed *t, const char *key, int64_t delay_ns)
{
    step(t, delay_ns - 1);
    assert_none_due(t);
    step(t, 1);
    work_on(t->q, key);
}

static inline int
wait_for_sleepers(struct worker *self)
{
    const struct timed *t = self->arg;

    wq_clock_fake_wait_for_waiters(t->clock, t->sleepers);
    return 0;
}

/* Wait until `n` threads sleep until a deadline; fails the test if that takes
 * too long. */
static inline void
await_sleepers(struct timed *t, size_t n)
{
    t->sleepers = n;
    assert_int_equal(worker_join(worker_start(wait_for_sleepers, t)), 0);
}

static inline int
run_get_in_time(struct worker *self)
{
    struct timed *t = self->arg;

    return (int)wq_get_within(t->q, t->timeout_ns, &t->item);
}

/* wq_get_within() in a thread of its own; one at a time, since the result goes
 * to t->item. */
static inline struct worker *
get_in_time(struct timed *t, int64_t timeout_ns)
{
    t->timeout_ns = timeout_ns;
    t->item = NULL;
    return worker_start(run_get_in_time, t);
}

#endif
