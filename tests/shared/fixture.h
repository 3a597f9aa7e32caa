/* SPDX-License-Identifier: MIT */
/* fixture.h: how do tests drive several handles of one store?
 *
 * One store inside the process (support/memory_store.h) on a fake clock that
 * begins at 0, and three handles of it, `f.a`, `f.b` and `f.c`, which are used
 * through wq.h. The engines behind them fail on command. What the handles report
 * to on_lost and on_drop is recorded. After a test the invariants of the store
 * hold.
 *
 *   with_handles(name)  holds do not end by time
 *   with_leases(name)   they end LEASE after the last wq_renew()
 *   with_threads(name)  the same; each handle has a thread that renews, and one
 *                       that watches
 */
#ifndef WQ_SHARED_FIXTURE_H
#define WQ_SHARED_FIXTURE_H

#include "support/wq_test.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <wq/clock.h>
#include <wq/inspect.h>
#include <wq/limiter.h>
#include <wq/wq.h>

#include "support/look.h"
#include "support/memory_store.h"
#include "support/shared_queue.h"
#include "support/take.h"
#include "support/worker.h"

/* A third and a twelfth of it are whole numbers. */
enum { LEASE = 1200, HANDLES = 3, THREADS_OF_LEASES = 2 * HANDLES };

enum { LOSSES_MAX = 64 };

/* What was reported to on_lost or on_drop. */
struct report {
    char     key[40];
    uint64_t number; /* on_lost: the fence; on_drop: the retries */
    int      handle; /* which */
    wq_err   why;    /* on_drop */
    bool     ended_by_nul;
};

struct reports {
    struct report at[LOSSES_MAX];
    size_t        n;
};

struct fixture {
    wq_clock            *clock;
    struct memory_store *store;
    wq_queue            *a, *b, *c;
    struct wq__engine   *engines[HANDLES]; /* of a, b and c */
    pthread_mutex_t      lock;             /* guards what follows */
    struct reports       lost, dropped;
};

static struct fixture f;

static char handle_names[HANDLES + 1] = "abc"; /* what callbacks get */

static inline void
expect_sound(void)
{
    assert_sound_store(f.store);
}

/* ---- reports ------------------------------------------------------------- */

static inline void
record(struct reports *all, const void *ctx, wq_key key, uint64_t number,
       wq_err why)
{
    (void)pthread_mutex_lock(&f.lock);
    struct report *r = &all->at[all->n < LOSSES_MAX ? all->n : LOSSES_MAX - 1];

    *r = (struct report){.number = number,
                         .why = why,
                         .handle = (int)((const char *)ctx - handle_names),
                         .ended_by_nul =
                             ((const char *)key.data)[key.len] == '\0'};
    memcpy(r->key, key.data,
           key.len < sizeof r->key ? key.len : sizeof r->key - 1);
    all->n++;
    (void)pthread_mutex_unlock(&f.lock);
}

static inline void
note_lost(void *ctx, wq_key key, uint64_t fence)
{
    record(&f.lost, ctx, key, fence, WQ_OK);
}

static inline void
note_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    record(&f.dropped, ctx, key, retries, why);
}

static inline size_t
count_lost(void)
{
    (void)pthread_mutex_lock(&f.lock);
    const size_t n = f.lost.n;
    (void)pthread_mutex_unlock(&f.lock);
    return n;
}

/* How often the loss of this hand-out was reported. */
static inline size_t
count_lost_of(const char *key, uint64_t fence)
{
    size_t n = 0;

    (void)pthread_mutex_lock(&f.lock);
    for (size_t i = 0; i < f.lost.n; i++)
        n += f.lost.at[i].number == fence && !strcmp(f.lost.at[i].key, key);
    (void)pthread_mutex_unlock(&f.lock);
    return n;
}

/* ---- life ---------------------------------------------------------------- */

/* A retry waits 10, 20, 40, ... */
static inline wq_queue *
join_with(int handle, const struct shared_queue_options *options,
          const wq_config *config)
{
    wq_config mine = *config;
    wq_queue *q = NULL;

    mine.clock = f.clock;
    if (!mine.limiter)
        mine.limiter = wq_limiter_exponential(10, 1000);
    mine.on_lost = note_lost;
    mine.lost_ctx = handle_names + handle;
    mine.on_drop = note_drop;
    mine.drop_ctx = handle_names + handle;
    assert_err(
        shared_queue_join(f.store, options, &mine, &f.engines[handle], &q),
        WQ_OK);
    return q;
}

static inline void
begin(void)
{
    memset(&f, 0, sizeof f);
    (void)pthread_mutex_init(&f.lock, NULL);
    f.clock = wq_clock_fake_create(0);
    assert_non_null(f.clock);
    f.store = memory_store_create(f.clock);
    assert_non_null(f.store);
}

static inline int
open_with(struct shared_queue_options options, const wq_config *config)
{
    begin();
    f.a = join_with(0, &options, config);
    f.b = join_with(1, &options, config);
    f.c = join_with(2, &options, config);
    return 0;
}

static inline int
open_handles(void **state)
{
    (void)state;
    return open_with((struct shared_queue_options){.lease_ns = 0},
                     WQ_CONFIG(.ages = true));
}

static inline int
open_leases(void **state)
{
    (void)state;
    return open_with((struct shared_queue_options){.lease_ns = LEASE,
                                                   .manual_renew = true,
                                                   .max_expiries = 3},
                     WQ_CONFIG(.ages = true));
}

static inline int
open_threads(void **state)
{
    (void)state;
    return open_with((struct shared_queue_options){.lease_ns = LEASE},
                     WQ_CONFIG(.ages = true));
}

static inline void
leave_with(wq_queue **q)
{
    wq_destroy(*q);
    *q = NULL;
}

static inline int
close_all(void **state)
{
    (void)state;
    memory_store_heal(f.store);
    expect_sound();
    leave_with(&f.a);
    leave_with(&f.b);
    leave_with(&f.c);
    expect_sound();
    memory_store_destroy(f.store);
    wq_clock_destroy(f.clock);
    (void)pthread_mutex_destroy(&f.lock);
    return 0;
}

#define with_handles(name) test_with(name, open_handles, close_all)
#define with_leases(name) test_with(name, open_leases, close_all)
#define with_threads(name) test_with(name, open_threads, close_all)

/* All handles again, in a new store. */
#define REOPEN(options_, ...)                                                  \
    do {                                                                       \
        (void)close_all(NULL);                                                 \
        (void)open_with((struct shared_queue_options)options_,                 \
                        WQ_CONFIG(__VA_ARGS__));                               \
    } while (0)

/* A call fails: the `nth` from now on of the engine of this handle. */
static inline void
plan_at(int handle, enum store_fault fault, unsigned nth, unsigned calls)
{
    memory_store_plan(f.store, (struct store_plan){.fault = fault,
                                                   .nth = nth,
                                                   .engine = f.engines[handle],
                                                   .calls = calls});
}

static inline void
pass(int64_t ns)
{
    wq_clock_fake_step(f.clock, ns);
}

static inline int
wait_for_sleepers(struct worker *self)
{
    wq_clock_fake_wait_for_waiters(f.clock, (size_t)(uintptr_t)self->arg);
    return 0;
}

/* Wait until `n` threads sleep until a deadline. */
static inline void
await_sleepers(size_t n)
{
    struct worker *w = worker_start(wait_for_sleepers, (void *)(uintptr_t)n);
    assert_int_equal(worker_join(w), 0);
}

/* ---- words --------------------------------------------------------------- */

static inline void
add(wq_queue *q, const char *key)
{
    assert_err(wq_add_str(q, key), WQ_OK);
}

/* Add the key, and get it. */
static inline wq_item *
hold(wq_queue *q, const char *key)
{
    add(q, key);
    return take_key(q, key);
}

static inline void
work_on(wq_queue *q, const char *key)
{
    assert_err(wq_done(q, take_key(q, key)), WQ_OK);
}

static inline void
assert_none_ready(wq_queue *q)
{
    wq_item *item = NULL;

    assert_err(wq_get_within(q, 0, &item), WQ_ETIMEDOUT);
}

/* `w` sleeps in a get of `q`; an add through another handle wakes it. */
static inline void
expect_sleeps_until_add(struct worker *w, wq_queue *q, wq_item **item)
{
    worker_await_blocked(w);
    add(f.c, "k");
    assert_err(worker_join(w), WQ_OK);
    assert_err(wq_done(q, *item), WQ_OK);
}

static inline unsigned
states(wq_queue *q, const char *key)
{
    return info_of(q, key).states;
}

#endif
