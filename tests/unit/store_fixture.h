/* SPDX-License-Identifier: MIT */
/* store_fixture.h: how do tests drive engines of the memory store?
 *
 * Two engines, `f.a` and `f.b`, with a lease of LEASE ns, on a fake clock that
 * begins at 0. Functions that check as they go; all invariants of the store are
 * checked after every step, and after a test no memory may be missing.
 */
#ifndef WQ_TEST_STORE_FIXTURE_H
#define WQ_TEST_STORE_FIXTURE_H

#include "support/wq_test.h"

#include <stdio.h>
#include <string.h>

#include <wq/clock.h>

#include "support/counting.h"
#include "support/look.h"
#include "support/memory_store.h"

enum { LEASE = 100, HELD_MAX = 64 };

/* What an engine has got. */
struct got {
    char     key[32];
    int      priority;
    uint64_t fence;
    unsigned requeues;
    int64_t  waited_ns;
    bool     tried; /* for the test: it was finished, without an answer */
};

struct fixture {
    struct counting      mem;
    wq_clock            *clock;
    struct memory_store *store;
    struct wq__terms     terms;
    struct wq__engine   *a, *b;
    struct wq__pulse     pulse; /* of the last batch */
    struct got           got[HELD_MAX];
    size_t               n_got;
    size_t               refuse; /* the take() to refuse; 0: none */
};

static struct fixture f;

static inline void
expect_sound(void)
{
    assert_sound_store(f.store);
}

static inline struct wq__engine *
open_engine(int64_t lease_ns)
{
    struct wq__engine *e = NULL;

    assert_int_equal(memory_store_engine(f.store, &f.terms, lease_ns, &e),
                     WQ_OK);
    expect_sound();
    return e;
}

/* A retry waits 10, 20, 40, ... */
static inline int
make_store(void **state)
{
    (void)state;
    memset(&f, 0, sizeof f);
    counting_init(&f.mem);
    f.clock = wq_clock_fake_create(0);
    f.store = memory_store_create_with(f.clock, &f.mem.allocator);
    f.terms.limiter = (wq_limiter_spec){
        .size = sizeof f.terms.limiter,
        .parts = WQ_PART_EXPONENTIAL,
        .base_ns = 10,
        .max_ns = 1000,
    };
    return 0;
}

static inline int
open_two(void **state)
{
    make_store(state);
    f.a = open_engine(LEASE);
    f.b = open_engine(LEASE);
    return 0;
}

static inline void
close_engine(struct wq__engine **e)
{
    if (*e)
        (*e)->ops->close(*e, false);
    *e = NULL;
}

static inline int
close_all(void **state)
{
    (void)state;
    expect_sound();
    close_engine(&f.a);
    close_engine(&f.b);
    memory_store_destroy(f.store);
    wq_clock_destroy(f.clock);
    assert_int_equal(f.mem.bytes, 0);
    return 0;
}

#define store_test(name) test_with(name, open_two, close_all)

/* Reopen both engines with other terms, in a new store. */
#define REOPEN(...)                                                            \
    do {                                                                       \
        struct wq__terms terms_ = {__VA_ARGS__};                               \
        terms_.limiter = f.terms.limiter;                                      \
        reopen(&terms_);                                                       \
    } while (0)

static inline void
reopen(const struct wq__terms *terms)
{
    void *state = NULL;

    close_all(&state);
    make_store(&state);
    f.terms = *terms;
    f.a = open_engine(LEASE);
    f.b = open_engine(LEASE);
}

static inline void
pass(int64_t ns)
{
    wq_clock_fake_step(f.clock, ns);
}

/* ---- operations ---------------------------------------------------------- */

static inline wq_err
run(struct wq__engine *e, struct wq__op *batch)
{
    const wq_err err = e->ops->run(e, batch, &f.pulse);

    expect_sound();
    return err;
}

static inline wq_err
run_one(struct wq__engine *e, struct wq__op *op)
{
    const wq_err err = run(e, op);
    return err ? err : op->err;
}

static inline wq_added
add_with(struct wq__engine *e, const char *key, const wq_add_options *how)
{
    const wq_key  k = wq_str(key);
    wq_added      added = WQ_ADDED_NEW;
    struct wq__op op = {
        .kind = WQ__OP_ADD,
        .as.add = {.how = how, .keys = &k, .n = 1, .added = &added}};

    assert_int_equal(run_one(e, &op), WQ_OK);
    return added;
}

static inline wq_added
add(struct wq__engine *e, const char *key)
{
    return add_with(e, key, WQ_ADD(.priority = 0));
}

static inline wq_err
take(void *ctx, const struct wq__handed *handed)
{
    struct got *got = &f.got[f.n_got];

    (void)ctx;
    if (f.refuse && --f.refuse == 0)
        return WQ_ENOMEM;
    assert_in_range(f.n_got, 0, HELD_MAX - 1);
    assert_in_range(handed->key.len, 1, sizeof got->key - 1);
    *got = (struct got){.priority = handed->priority,
                        .fence = handed->fence,
                        .requeues = handed->requeues,
                        .waited_ns = handed->waited_ns};
    memcpy(got->key, handed->key.data, handed->key.len);
    f.n_got++;
    return WQ_OK;
}

#define GET(most)                                                              \
    (&(struct wq__op){.kind = WQ__OP_GET,                                      \
                      .as.get = {.max = (most), .take = take}})

/* Get one key, which must be `expected`. Returns a copy. */
static inline struct got
get(struct wq__engine *e, const char *expected)
{
    f.n_got = 0;
    assert_int_equal(run_one(e, GET(1)), WQ_OK);
    assert_int_equal(f.n_got, 1);
    assert_string_equal(f.got[0].key, expected);
    return f.got[0];
}

static inline void
expect_nothing_to_get(struct wq__engine *e)
{
    struct wq__op *op = GET(1);

    f.n_got = 0;
    assert_int_equal(run_one(e, op), WQ_OK);
    assert_int_equal(op->as.get.n, 0);
    assert_int_equal(f.n_got, 0);
}

static inline struct wq__op
finish_op(const struct got *got, wq_result result)
{
    return (struct wq__op){.kind = WQ__OP_FINISH,
                           .as.finish = {.key = wq_str(got->key),
                                         .fence = got->fence,
                                         .result = result}};
}

static inline wq_err
finish(struct wq__engine *e, struct got got, wq_result result)
{
    struct wq__op op = finish_op(&got, result);
    return run_one(e, &op);
}

/* An operation about one key. */
static inline wq_err
do_one(struct wq__engine *e, enum wq__op_kind kind, const char *key)
{
    struct wq__op op = {.kind = kind, .as.one.key = wq_str(key)};
    return run_one(e, &op);
}

static inline unsigned
requeues(struct wq__engine *e, const char *key)
{
    struct wq__op op = {.kind = WQ__OP_REQUEUES, .as.one.key = wq_str(key)};

    assert_int_equal(run_one(e, &op), WQ_OK);
    return op.as.one.requeues;
}

static inline wq_key_info
look(struct wq__engine *e, const char *key)
{
    wq_key_info   info = {.size = sizeof info};
    struct wq__op op = {.kind = WQ__OP_KEY_INFO,
                        .as.one = {.key = wq_str(key), .info = &info}};

    assert_int_equal(run_one(e, &op), WQ_OK);
    return info;
}

static inline unsigned
states(struct wq__engine *e, const char *key)
{
    return look(e, key).states;
}

static inline wq_stats
stats(struct wq__engine *e)
{
    wq_stats      out = {.size = sizeof out};
    struct wq__op op = {.kind = WQ__OP_STATS, .as.stats = &out};

    assert_int_equal(run_one(e, &op), WQ_OK);
    return out;
}

/* Nothing but what is due. */
static inline void
look_around(struct wq__engine *e)
{
    assert_int_equal(run(e, NULL), WQ_OK);
}

static inline wq_err
renew(struct wq__engine *e)
{
    const wq_err err = e->ops->renew(e);

    expect_sound();
    return err;
}

/* Fails unless it succeeds. True: a new session has begun. */
static inline bool
reconcile(struct wq__engine *e, const struct wq__known *known, size_t n)
{
    bool lost = false;

    assert_int_equal(e->ops->reconcile(e, known, n, &lost), WQ_OK);
    expect_sound();
    return lost;
}

#endif
