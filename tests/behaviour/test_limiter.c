/* SPDX-License-Identifier: MIT */
/* test_limiter.c: do limiters say what docs/semantics.md promises?
 *
 * Through <wq/limiter.h> alone. Time, where it matters, is a clock that stands
 * still until it is told to move.
 */
#include "support/wq_test.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <wq/limiter.h>

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

static int64_t
when(wq_limiter *l, const char *key)
{
    return wq_limiter_when(l, wq_str(key));
}

static unsigned
requeues(wq_limiter *l, const char *key)
{
    return wq_limiter_num_requeues(l, wq_str(key));
}

static void
forget(wq_limiter *l, const char *key)
{
    wq_limiter_forget(l, wq_str(key));
}

/* The next answers for `key` are these, in milliseconds. */
#define ASSERT_WHEN_MS(l, key, ...)                                            \
    do {                                                                       \
        const int64_t expected[] = {__VA_ARGS__};                              \
        for (size_t i_ = 0; i_ < sizeof expected / sizeof *expected; i_++)     \
            assert_int_equal(when(l, key), expected[i_] * MS);                 \
    } while (0)

/* Ask n times, and then once more: the last answer. */
static int64_t
when_after(wq_limiter *l, const char *key, int n)
{
    for (int i = 0; i < n; i++)
        (void)when(l, key);
    return when(l, key);
}

static wq_limiter *
made(wq_limiter *l)
{
    assert_int_equal(wq_limiter_error(l), WQ_OK);
    return l;
}

/* L-31: a failed limiter with this error; destroying it does nothing. */
static void
assert_failed(wq_limiter *l, wq_err err)
{
    assert_non_null(l);
    assert_int_equal(wq_limiter_error(l), err);
    wq_limiter_destroy(l);
    assert_int_equal(wq_limiter_error(l), err);
}

/* ---- exponential --------------------------------------------------------- */

/* L-01 */
TEST(delay_of_a_key_doubles_with_each_failure_until_forgotten)
{
    wq_limiter *l = made(wq_limiter_exponential(1 * MS, 1 * SECOND));

    ASSERT_WHEN_MS(l, "one", 1, 2, 4, 8, 16);
    assert_int_equal(requeues(l, "one"), 5);
    ASSERT_WHEN_MS(l, "two", 1, 2);
    assert_int_equal(requeues(l, "two"), 2);
    forget(l, "one");
    assert_int_equal(requeues(l, "one"), 0);
    ASSERT_WHEN_MS(l, "one", 1);
    wq_limiter_destroy(l);
}

/* L-02 */
TEST(delay_stops_at_the_maximum)
{
    wq_limiter *l = made(wq_limiter_exponential(1 * MS, 1000 * SECOND));
    assert_int_equal(when_after(l, "one", 5), 32 * MS);
    assert_int_equal(when_after(l, "two", 1000), 1000 * SECOND);
    wq_limiter_destroy(l);

    l = made(wq_limiter_exponential(1 * MINUTE, 1000 * HOUR));
    assert_int_equal(when_after(l, "one", 2), 4 * MINUTE);
    assert_int_equal(when_after(l, "two", 1000), 1000 * HOUR);
    wq_limiter_destroy(l);
}

/* L-03 */
TEST(last_steps_before_the_maximum_are_whole)
{
    wq_limiter *l = made(wq_limiter_exponential(5 * MS, 1000 * SECOND));

    assert_int_equal(when_after(l, "one", 16), 327680 * MS);
    assert_int_equal(when(l, "one"), 655360 * MS);
    assert_int_equal(when(l, "one"), 1000 * SECOND);
    wq_limiter_destroy(l);
}

/* L-04: elsewhere the 64th of the third is INT64_MIN, and the 1025th of the
 * second undefined. */
TEST(odd_bases_end_at_the_maximum)
{
    wq_limiter *l = made(wq_limiter_exponential(2 * SECOND, 1 * SECOND));
    assert_int_equal(when(l, "one"), 1 * SECOND);
    wq_limiter_destroy(l);

    l = made(wq_limiter_exponential(0, 1 * SECOND));
    for (int i = 0; i < 1024; i++)
        assert_int_equal(when(l, "one"), 0);
    assert_int_equal(when(l, "one"), 1 * SECOND);
    assert_int_equal(when(l, "one"), 1 * SECOND);
    wq_limiter_destroy(l);

    l = made(wq_limiter_exponential(1, 1 * HOUR));
    assert_int_equal(when_after(l, "one", 41), INT64_C(1) << 41);
    for (int i = 42; i < 2000; i++)
        assert_int_equal(when(l, "one"), 1 * HOUR);
    wq_limiter_destroy(l);

    l = made(wq_limiter_exponential(1, WQ_FOREVER));
    assert_int_equal(when_after(l, "one", 62), INT64_C(1) << 62);
    assert_int_equal(when(l, "one"), WQ_FOREVER);
    assert_int_equal(when(l, "one"), WQ_FOREVER);
    wq_limiter_destroy(l);
}

/* L-05: the product is that of doubles, cut off. */
TEST(delay_is_a_product_of_doubles)
{
    const int64_t odd = (INT64_C(1) << 53) + 1;
    wq_limiter   *l = made(wq_limiter_exponential(odd, WQ_FOREVER));
    assert_int_equal(when(l, "one"), odd - 1);
    assert_int_equal(when(l, "one"), 2 * (odd - 1));
    wq_limiter_destroy(l);

    l = made(wq_limiter_exponential(INT64_MAX, INT64_MAX - 1));
    assert_int_equal(when(l, "one"), INT64_MAX - 1);
    wq_limiter_destroy(l);

    l = made(wq_limiter_exponential(INT64_MAX, INT64_MAX));
    for (int i = 0; i < 100; i++)
        assert_int_equal(when(l, "one"), INT64_MAX);
    assert_int_equal(requeues(l, "one"), 100);
    wq_limiter_destroy(l);
}

/* ---- exponential with options -------------------------------------------- */

/* L-29 */
TEST(options_left_out_mean_the_defaults)
{
    wq_limiter *const all[] = {
        made(wq_limiter_exponential_with(NULL)),
        made(wq_limiter_exponential_with(WQ_EXPONENTIAL(.seed = 0))),
    };
    for (size_t i = 0; i < 2; i++) {
        ASSERT_WHEN_MS(all[i], "one", 5, 10, 20);
        assert_int_equal(when_after(all[i], "one", 30), 1000 * SECOND);
        wq_limiter_destroy(all[i]);
    }
    wq_limiter *l = made(wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.base_ns = 2 * MS, .max_ns = 5 * MS)));
    ASSERT_WHEN_MS(l, "one", 2, 4, 5, 5);
    wq_limiter_destroy(l);
}

/* L-29: programs of another age. */
TEST(options_of_another_size_are_read_as_far_as_both_know_them)
{
    struct {
        wq_exponential_options known;
        void                  *more;
    } newer = {.known = {.size = sizeof newer, .base_ns = 2 * MS}};
    wq_exponential_options older = {
        .size = offsetof(wq_exponential_options, max_ns),
        .base_ns = 3 * MS,
        .max_ns = -1, /* not there, so not seen */
    };

    wq_limiter *l = made(wq_limiter_exponential_with(&newer.known));
    ASSERT_WHEN_MS(l, "one", 2);
    wq_limiter_destroy(l);
    l = made(wq_limiter_exponential_with(&older));
    ASSERT_WHEN_MS(l, "one", 3);
    wq_limiter_destroy(l);

    newer.more = &newer;
    assert_failed(wq_limiter_exponential_with(&newer.known), WQ_EINVAL);
    older.size = 0;
    assert_failed(wq_limiter_exponential_with(&older), WQ_EINVAL);
    older.size = sizeof older - 1;
    assert_failed(wq_limiter_exponential_with(&older), WQ_EINVAL);
}

/* L-29 */
TEST(options_that_make_no_sense_are_refused)
{
    const wq_allocator half = {.size = sizeof half};
    const wq_jitter    none = (wq_jitter)3;
    wq_limiter *const  all[] = {
         wq_limiter_exponential_with(WQ_EXPONENTIAL(.base_ns = -1)),
         wq_limiter_exponential_with(WQ_EXPONENTIAL(.max_ns = -1)),
         wq_limiter_exponential_with(WQ_EXPONENTIAL(.ttl_ns = -1)),
         wq_limiter_exponential_with(WQ_EXPONENTIAL(.jitter = none)),
         wq_limiter_exponential_with(WQ_EXPONENTIAL(.allocator = &half)),
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_failed(all[i], WQ_EINVAL);
}

enum { DRAWS = 2000 };

/* Draw delays of 1 s with jitter. Returns how far apart they are. */
static int64_t
spread(wq_jitter jitter, uint64_t seed, int64_t *delays, int64_t least)
{
    wq_limiter *l = made(wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.base_ns = SECOND, .jitter = jitter, .seed = seed)));
    int64_t     lowest = INT64_MAX, highest = 0;

    for (int i = 0; i < DRAWS; i++) {
        delays[i] = when(l, "one");
        forget(l, "one");
        assert_true(delays[i] >= least && delays[i] <= SECOND);
        lowest = delays[i] < lowest ? delays[i] : lowest;
        highest = delays[i] > highest ? delays[i] : highest;
    }
    wq_limiter_destroy(l);
    return highest - lowest;
}

/* L-20 */
TEST(jitter_spreads_delays_over_its_range)
{
    int64_t a[DRAWS];

    assert_int_equal(spread(WQ_JITTER_NONE, 7, a, SECOND), 0);
    assert_true(spread(WQ_JITTER_FULL, 7, a, 0) > SECOND * 98 / 100);
    assert_true(spread(WQ_JITTER_EQUAL, 7, a, SECOND / 2) > SECOND * 49 / 100);
}

/* L-20 */
TEST(jitter_repeats_with_its_seed_and_only_then)
{
    int64_t a[DRAWS], b[DRAWS];

    (void)spread(WQ_JITTER_FULL, 7, a, 0);
    (void)spread(WQ_JITTER_FULL, 7, b, 0);
    assert_memory_equal(a, b, sizeof a);
    (void)spread(WQ_JITTER_FULL, 8, b, 0);
    assert_memory_not_equal(a, b, sizeof a);
    (void)spread(WQ_JITTER_FULL, 0, a, 0);
    (void)spread(WQ_JITTER_FULL, 0, b, 0);
    assert_memory_not_equal(a, b, sizeof a);
}

/* L-20: the count goes on as without. The longest delays do not overflow, and
 * of the shortest both ends can be met. */
TEST(jitter_changes_no_count)
{
    wq_limiter *l = made(wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.base_ns = 1, .max_ns = WQ_FOREVER,
                       .jitter = WQ_JITTER_FULL)));

    for (int i = 0; i < 200; i++)
        assert_true(when(l, "one") >= 0);
    assert_int_equal(requeues(l, "one"), 200);
    wq_limiter_destroy(l);

    bool seen[3] = {false, false, false};
    l = made(wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.base_ns = 1, .max_ns = 1, .jitter = WQ_JITTER_FULL,
                       .seed = 1)));
    for (int i = 0; i < 100; i++)
        seen[when(l, "one")] = true;
    assert_true(seen[0] && seen[1] && !seen[2]);
    wq_limiter_destroy(l);
}

/* L-21 */
TEST(key_unused_for_longest_makes_room_for_a_new_one)
{
    wq_limiter *l =
        made(wq_limiter_exponential_with(WQ_EXPONENTIAL(.max_keys = 3)));

    ASSERT_WHEN_MS(l, "a", 5, 10);
    ASSERT_WHEN_MS(l, "b", 5);
    ASSERT_WHEN_MS(l, "c", 5);
    ASSERT_WHEN_MS(l, "a", 20);
    assert_int_equal(requeues(l, "b"), 1); /* to look is no use */
    ASSERT_WHEN_MS(l, "d", 5);
    assert_int_equal(requeues(l, "a"), 3);
    assert_int_equal(requeues(l, "b"), 0);
    assert_int_equal(requeues(l, "c"), 1);
    assert_int_equal(requeues(l, "d"), 1);

    forget(l, "c");
    ASSERT_WHEN_MS(l, "e", 5);
    assert_int_equal(requeues(l, "a"), 3);
    wq_limiter_destroy(l);
}

/* L-22 */
TEST(key_left_alone_for_its_time_to_live_is_forgotten)
{
    wq_clock   *clock = wq_clock_fake_create(0);
    wq_limiter *l =
        made(wq_limiter_exponential_with(WQ_EXPONENTIAL(.ttl_ns = MINUTE)));
    wq_limiter_set_clock(l, clock);

    ASSERT_WHEN_MS(l, "a", 5);
    ASSERT_WHEN_MS(l, "b", 5, 10);
    wq_clock_fake_step(clock, MINUTE - 1);
    ASSERT_WHEN_MS(l, "b", 20);
    assert_int_equal(requeues(l, "a"), 1);
    wq_clock_fake_step(clock, 1);
    assert_int_equal(requeues(l, "a"), 0);
    assert_int_equal(requeues(l, "b"), 3);
    ASSERT_WHEN_MS(l, "a", 5, 10);
    wq_clock_fake_step(clock, MINUTE - 1);
    ASSERT_WHEN_MS(l, "b", 5);
    ASSERT_WHEN_MS(l, "a", 20);
    wq_clock_fake_step(clock, HOUR);
    ASSERT_WHEN_MS(l, "a", 5);

    /* Many at once: they leave one by one, but none counts any more. */
    const char *const keys[] = {"c", "d", "e", "f", "g"};
    for (size_t i = 0; i < 5; i++)
        ASSERT_WHEN_MS(l, keys[i], 5, 10);
    wq_clock_fake_step(clock, MINUTE);
    for (size_t i = 5; i > 0; i--)
        ASSERT_WHEN_MS(l, keys[i - 1], 5);
    wq_limiter_destroy(l);
    wq_clock_destroy(clock);
}

/* ---- memory -------------------------------------------------------------- */

struct memory {
    size_t used;
    size_t most; /* no more than this */
};

static void *
take(void *ctx, size_t n)
{
    struct memory *m = ctx;

    if (n > m->most - m->used)
        return NULL;
    m->used += n;
    return malloc(n);
}

static void
give(void *ctx, void *p, size_t n)
{
    struct memory *m = ctx;

    m->used -= n;
    free(p);
}

enum { MANY = 20000 };

static wq_key
nth_key(char *buf, size_t size, int n)
{
    (void)snprintf(buf, size, "namespace-%05d/some-name-%05d", n, n);
    return wq_str(buf); /* 31 bytes */
}

static void
fill(wq_limiter *l)
{
    char buf[64];

    for (int i = 0; i < MANY; i++)
        assert_int_equal(wq_limiter_when(l, nth_key(buf, sizeof buf, i)),
                         5 * MS);
}

/* L-27 */
TEST(key_costs_few_bytes_and_none_once_forgotten)
{
    struct memory      m = {.most = SIZE_MAX};
    const wq_allocator mem = {
        .size = sizeof mem, .ctx = &m, .alloc = take, .free = give};
    char buf[64];

    wq_limiter *l =
        made(wq_limiter_exponential_with(WQ_EXPONENTIAL(.allocator = &mem)));
    assert_int_equal(nth_key(buf, sizeof buf, 1).len, 31);
    fill(l);
    assert_in_range(m.used / MANY, 31 + 4, 31 + 24);
    for (int i = 0; i < MANY; i++)
        wq_limiter_forget(l, nth_key(buf, sizeof buf, i));
    assert_true(m.used < 200000);
    wq_limiter_destroy(l);
    assert_int_equal(m.used, 0);
}

/* L-21, L-22: neither a bound nor a time to live lets memory grow. */
TEST(bounded_keys_take_bounded_memory)
{
    struct memory      m = {.most = SIZE_MAX};
    const wq_allocator mem = {
        .size = sizeof mem, .ctx = &m, .alloc = take, .free = give};

    wq_limiter *l = made(wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.allocator = &mem, .max_keys = 100)));
    fill(l);
    assert_true(m.used < 100000);
    wq_limiter_destroy(l);

    wq_clock *clock = wq_clock_fake_create(0);
    l = made(wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.allocator = &mem, .ttl_ns = 100)));
    wq_limiter_set_clock(l, clock);
    char buf[64];
    for (int i = 0; i < MANY; i++) {
        (void)wq_limiter_when(l, nth_key(buf, sizeof buf, i));
        wq_clock_fake_step(clock, 1);
    }
    assert_true(m.used < 100000);
    wq_limiter_destroy(l);
    assert_int_equal(m.used, 0);
    wq_clock_destroy(clock);
}

/* L-25 */
TEST(key_there_is_no_memory_for_waits_longest_and_is_not_counted)
{
    struct memory      m = {.most = SIZE_MAX};
    const wq_allocator mem = {
        .size = sizeof mem, .ctx = &m, .alloc = take, .free = give};

    wq_limiter *l =
        made(wq_limiter_exponential_with(WQ_EXPONENTIAL(.allocator = &mem)));
    m.most = m.used;
    assert_int_equal(when(l, "one"), 1000 * SECOND);
    assert_int_equal(when(l, "one"), 1000 * SECOND);
    assert_int_equal(requeues(l, "one"), 0);
    forget(l, "one");
    wq_limiter_undo(l, wq_str("one"));

    m.most = SIZE_MAX;
    ASSERT_WHEN_MS(l, "one", 5);
    m.most = m.used;
    ASSERT_WHEN_MS(l, "one", 10); /* a known key needs none */
    wq_limiter_destroy(l);

    m.most = 0;
    assert_failed(
        wq_limiter_exponential_with(WQ_EXPONENTIAL(.allocator = &mem)),
        WQ_ENOMEM);
}

/* ---- fast and slow ------------------------------------------------------- */

/* L-06 */
TEST(few_failures_are_retried_fast_and_more_slowly)
{
    wq_limiter *l = made(wq_limiter_fast_slow(5 * MS, 10 * SECOND, 3));

    ASSERT_WHEN_MS(l, "one", 5, 5, 5, 10000, 10000);
    assert_int_equal(requeues(l, "one"), 5);
    ASSERT_WHEN_MS(l, "two", 5, 5);
    assert_int_equal(requeues(l, "two"), 2);
    forget(l, "one");
    assert_int_equal(requeues(l, "one"), 0);
    ASSERT_WHEN_MS(l, "one", 5);
    wq_limiter_destroy(l);

    l = made(wq_limiter_fast_slow(5 * MS, 10 * SECOND, 0));
    ASSERT_WHEN_MS(l, "one", 10000);
    wq_limiter_destroy(l);
}

/* ---- a limiter of the user's own ----------------------------------------- */

/* Says `delay`, and counts what it is asked. */
struct own {
    int64_t   delay;
    int       whens, forgets, undos, destroys;
    wq_clock *clock;
};

static int64_t
own_when(void *self, wq_key key)
{
    struct own *o = self;
    assert_int_equal(key.len, 3);
    o->whens++;
    return o->delay;
}

static void
own_forget(void *self, wq_key key)
{
    struct own *o = self;
    assert_int_equal(key.len, 3);
    o->forgets++;
}

static unsigned
own_requeues(void *self, wq_key key)
{
    struct own *o = self;
    assert_int_equal(key.len, 3);
    return (unsigned)o->whens;
}

static void
own_undo(void *self, wq_key key)
{
    struct own *o = self;
    assert_int_equal(key.len, 3);
    o->undos++;
}

static void
own_set_clock(void *self, wq_clock *clock)
{
    struct own *o = self;
    o->clock = clock;
}

static void
own_destroy(void *self)
{
    struct own *o = self;
    o->destroys++;
}

static const wq_limiter_ops own_ops = {
    .size = sizeof own_ops,
    .when = own_when,
    .forget = own_forget,
    .num_requeues = own_requeues,
    .destroy = own_destroy,
    .undo = own_undo,
    .set_clock = own_set_clock,
};

static wq_limiter *
own(struct own *o)
{
    return made(wq_limiter_create(&own_ops, o));
}

/* L-26 */
TEST(own_limiter_gets_every_call)
{
    struct own  o = {.delay = 7};
    wq_limiter *l = own(&o);
    wq_clock   *clock = wq_clock_fake_create(0);

    assert_int_equal(when(l, "one"), 7);
    assert_int_equal(requeues(l, "one"), 1);
    forget(l, "one");
    wq_limiter_undo(l, wq_str("one"));
    wq_limiter_set_clock(l, clock);
    assert_ptr_equal(o.clock, clock);
    o.delay = -7;
    assert_int_equal(when(l, "one"), 0);
    wq_limiter_destroy(l);
    assert_int_equal(o.forgets, 1);
    assert_int_equal(o.undos, 1);
    assert_int_equal(o.destroys, 1);
    wq_clock_destroy(clock);
}

/* L-26 */
TEST(own_limiter_needs_no_more_than_when)
{
    struct own           o = {.delay = 7};
    const wq_limiter_ops least = {.size = sizeof least, .when = own_when};
    const wq_limiter_ops older = {
        .size = offsetof(wq_limiter_ops, undo),
        .when = own_when,
        .undo = own_undo, /* not there, so not seen */
    };
    const wq_limiter_ops *const both[] = {&least, &older};

    for (size_t i = 0; i < 2; i++) {
        wq_limiter *l = made(wq_limiter_create(both[i], &o));
        assert_int_equal(when(l, "one"), 7);
        assert_int_equal(requeues(l, "one"), 0);
        forget(l, "one");
        wq_limiter_undo(l, wq_str("one"));
        wq_limiter_set_clock(l, NULL);
        wq_limiter_destroy(l);
    }
    assert_int_equal(o.forgets + o.undos + o.destroys, 0);
}

/* L-26 L-31: what the ops name as destroy() gets `self` then. */
TEST(own_limiter_without_when_is_refused_and_destroyed)
{
    struct own     o = {0};
    wq_limiter_ops ops = own_ops;

    ops.when = NULL;
    assert_failed(wq_limiter_create(&ops, &o), WQ_EINVAL);
    assert_int_equal(o.destroys, 1);
    ops.destroy = NULL;
    assert_failed(wq_limiter_create(&ops, &o), WQ_EINVAL);
    assert_int_equal(o.destroys, 1);
}

/* L-26 L-31 */
TEST(own_limiter_whose_ops_cannot_be_read_is_refused)
{
    struct own     o = {0};
    wq_limiter_ops ops = own_ops;

    assert_failed(wq_limiter_create(NULL, &o), WQ_EINVAL);
    ops.size = 0;
    assert_failed(wq_limiter_create(&ops, &o), WQ_EINVAL);
    ops.size = sizeof(size_t);
    assert_failed(wq_limiter_create(&ops, &o), WQ_EINVAL);
    assert_int_equal(o.destroys, 0); /* no destroy() was there to be called */
}

/* L-26 */
TEST(what_no_queue_would_take_is_not_asked_for)
{
    static const char long_key[WQ_KEY_MAX + 1];
    struct own        o = {.delay = 7};
    wq_limiter       *l = own(&o);
    const wq_key bad[] = {{NULL, 3}, {"one", 0}, {long_key, sizeof long_key}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(wq_limiter_when(l, bad[i]), WQ_FOREVER);
        assert_int_equal(wq_limiter_num_requeues(l, bad[i]), 0);
        wq_limiter_forget(l, bad[i]);
        wq_limiter_undo(l, bad[i]);
    }
    assert_int_equal(o.whens + o.forgets + o.undos, 0);
    wq_limiter_destroy(l);

    assert_int_equal(when(NULL, "one"), WQ_FOREVER);
    assert_int_equal(requeues(NULL, "one"), 0);
    forget(NULL, "one");
    wq_limiter_undo(NULL, wq_str("one"));
    wq_limiter_set_clock(NULL, NULL);
    wq_limiter_destroy(NULL);
    assert_int_equal(wq_limiter_error(NULL), WQ_EINVAL);
}

/* L-31 */
TEST(failed_limiter_answers_as_no_limiter_does)
{
    wq_limiter *l = wq_limiter_exponential(-1, 1);
    wq_clock   *clock = wq_clock_fake_create(0);

    assert_int_equal(when(l, "one"), WQ_FOREVER);
    assert_int_equal(requeues(l, "one"), 0);
    forget(l, "one");
    wq_limiter_undo(l, wq_str("one"));
    wq_limiter_set_clock(l, clock);
    wq_limiter_destroy(l);
    wq_limiter_destroy(l);
    assert_int_equal(wq_limiter_error(l), WQ_EINVAL);
    wq_clock_destroy(clock);
}

/* L-26: the longest key there may be, and any bytes. */
TEST(keys_are_bytes_of_any_length)
{
    static char  bytes[WQ_KEY_MAX];
    const size_t lens[] = {1, 2, 300, 314, 315, 316, 400, WQ_KEY_MAX};
    wq_limiter  *l = made(wq_limiter_exponential(1, 1000));

    for (unsigned round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
            const wq_key key = {bytes, lens[i]};
            assert_int_equal(wq_limiter_num_requeues(l, key), round);
            assert_int_equal(wq_limiter_when(l, key), 1 << round);
        }
    wq_limiter_forget(l, (wq_key){bytes, WQ_KEY_MAX});
    assert_int_equal(wq_limiter_when(l, (wq_key){bytes, WQ_KEY_MAX}), 1);
    wq_limiter_destroy(l);
}

/* ---- combinations -------------------------------------------------------- */

/* L-07 */
TEST(longest_of_several_delays_counts)
{
    wq_limiter *const parts[] = {
        wq_limiter_fast_slow(5 * MS, 3 * SECOND, 3),
        wq_limiter_exponential(1 * MS, 1 * SECOND),
    };
    wq_limiter *l = made(wq_limiter_max_of(2, parts));

    ASSERT_WHEN_MS(l, "one", 5, 5, 5, 3000, 3000);
    assert_int_equal(requeues(l, "one"), 5);
    ASSERT_WHEN_MS(l, "two", 5, 5);
    assert_int_equal(requeues(l, "two"), 2);
    forget(l, "one");
    assert_int_equal(requeues(l, "one"), 0);
    ASSERT_WHEN_MS(l, "one", 5);
    wq_limiter_destroy(l);
}

/* L-08 */
TEST(each_of_several_is_asked_each_time)
{
    struct own        a = {.delay = 1}, b = {.delay = 9}, c = {.delay = 5};
    wq_limiter *const parts[] = {own(&a), own(&b), own(&c)};
    wq_limiter       *l = made(wq_limiter_max_of(3, parts));
    wq_clock         *clock = wq_clock_fake_create(0);

    assert_int_equal(when(l, "one"), 9);
    assert_int_equal(when(l, "one"), 9);
    forget(l, "one");
    wq_limiter_undo(l, wq_str("one"));
    wq_limiter_set_clock(l, clock);
    const struct own *const all[] = {&a, &b, &c};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(all[i]->whens, 2);
        assert_int_equal(all[i]->forgets, 1);
        assert_int_equal(all[i]->undos, 1);
        assert_ptr_equal(all[i]->clock, clock);
    }
    wq_limiter_destroy(l);
    assert_int_equal(a.destroys + b.destroys + c.destroys, 3);
    wq_clock_destroy(clock);
}

/* L-08 */
TEST(none_at_all_say_nothing)
{
    wq_limiter *l = made(wq_limiter_max_of(0, NULL));

    assert_int_equal(when(l, "one"), 0);
    assert_int_equal(requeues(l, "one"), 0);
    forget(l, "one");
    wq_limiter_destroy(l);
}

static int64_t
when_in_steps(void *self, wq_key key)
{
    int *calls = self;
    (void)key;
    return ++*calls <= 100 ? 5 * MS : 1000 * SECOND;
}

/* L-09 */
TEST(maximum_wait_cuts_off_what_is_longer)
{
    const wq_limiter_ops ops = {.size = sizeof ops, .when = when_in_steps};
    int                  calls = 0;
    wq_limiter          *l = made(wq_limiter_with_max_wait(
                 wq_limiter_create(&ops, &calls), 500 * SECOND));

    for (int i = 0; i < 100; i++)
        assert_int_equal(when(l, "one"), 5 * MS);
    for (int i = 0; i < 100; i++)
        assert_int_equal(when(l, "one"), 500 * SECOND);
    wq_limiter_destroy(l);

    l = made(
        wq_limiter_with_max_wait(wq_limiter_exponential(MS, HOUR), 3 * MS));
    ASSERT_WHEN_MS(l, "one", 1, 2, 3, 3);
    assert_int_equal(requeues(l, "one"), 4);
    wq_limiter_undo(l, wq_str("one"));
    assert_int_equal(requeues(l, "one"), 3);
    forget(l, "one");
    assert_int_equal(requeues(l, "one"), 0);
    ASSERT_WHEN_MS(l, "one", 1);
    wq_limiter_destroy(l);
}

/* Fails for want of memory. */
static wq_limiter *
without_memory(void)
{
    static struct memory m = {.most = 0};
    const wq_allocator   mem = {
          .size = sizeof mem, .ctx = &m, .alloc = take, .free = give};

    return wq_limiter_exponential_with(WQ_EXPONENTIAL(.allocator = &mem));
}

/* L-24 L-31 */
TEST(combination_that_fails_destroys_its_parts)
{
    struct own a = {0}, b = {0};

    assert_failed(
        wq_limiter_max_of(3, (wq_limiter *[]){own(&a), NULL, own(&b)}),
        WQ_EINVAL);
    assert_int_equal(a.destroys, 1);
    assert_int_equal(b.destroys, 1);
    assert_failed(wq_limiter_max_of(1, (wq_limiter *[]){NULL}), WQ_EINVAL);
    assert_failed(wq_limiter_max_of(2, NULL), WQ_EINVAL);
    assert_failed(wq_limiter_with_max_wait(NULL, 1), WQ_EINVAL);
    assert_failed(wq_limiter_with_max_wait(own(&a), -1), WQ_EINVAL);
    assert_int_equal(a.destroys, 2);
}

/* L-31: of several, the first one's. */
TEST(combination_of_a_failed_limiter_fails_with_its_error)
{
    struct own a = {0}, b = {0};

    assert_failed(wq_limiter_with_max_wait(without_memory(), 1), WQ_ENOMEM);
    assert_failed(
        wq_limiter_max_of(
            4, (wq_limiter *[]){own(&a), without_memory(), own(&b),
                                wq_limiter_with_max_wait(own(&a), -1)}),
        WQ_ENOMEM);
    assert_int_equal(a.destroys, 2);
    assert_int_equal(b.destroys, 1);
    assert_failed(
        wq_limiter_max_of(2, (wq_limiter *[]){NULL, without_memory()}),
        WQ_EINVAL);
}

/* L-24 */
TEST(limiter_has_one_owner)
{
    struct own  a = {.delay = 7}, b = {0};
    wq_limiter *part = own(&a);
    wq_limiter *l = made(wq_limiter_with_max_wait(part, 5));

    assert_failed(wq_limiter_max_of(2, (wq_limiter *[]){part, own(&b)}),
                  WQ_EINVAL);
    assert_int_equal(b.destroys, 1);
    assert_failed(wq_limiter_with_max_wait(part, 5), WQ_EINVAL);
    wq_limiter_destroy(part); /* not the caller's any more */
    assert_int_equal(a.destroys, 0);
    assert_int_equal(when(l, "one"), 5);
    wq_limiter_destroy(l);
    assert_int_equal(a.destroys, 1);

    part = own(&a);
    assert_failed(wq_limiter_max_of(3, (wq_limiter *[]){part, own(&b), part}),
                  WQ_EINVAL);
    assert_int_equal(a.destroys, 2); /* once */
    assert_int_equal(b.destroys, 2);
}

/* ---- buckets ------------------------------------------------------------- */

/* L-10, L-23 */
TEST(bucket_paces_all_keys_together_on_the_given_clock)
{
    wq_clock   *clock = wq_clock_fake_create(0);
    wq_limiter *l = made(wq_limiter_bucket(10, 2));
    wq_limiter_set_clock(l, clock);

    ASSERT_WHEN_MS(l, "one", 0);
    ASSERT_WHEN_MS(l, "two", 0);
    ASSERT_WHEN_MS(l, "one", 100, 200);
    forget(l, "one");
    assert_int_equal(requeues(l, "one"), 0);
    ASSERT_WHEN_MS(l, "two", 300);
    wq_clock_fake_step(clock, 250 * MS);
    ASSERT_WHEN_MS(l, "one", 150);
    wq_clock_fake_step(clock, HOUR);
    ASSERT_WHEN_MS(l, "one", 0, 0, 100);
    wq_limiter_destroy(l);
    wq_clock_destroy(clock);
}

/* L-10, T-01, T-11, T-12 */
TEST(bucket_without_burst_or_rate_or_limit)
{
    wq_limiter *l = made(wq_limiter_bucket(10, 0));
    assert_int_equal(when(l, "one"), WQ_FOREVER);
    wq_limiter_destroy(l);

    l = made(wq_limiter_bucket(WQ_RATE_INF, 0));
    for (int i = 0; i < 1000; i++)
        assert_int_equal(when(l, "one"), 0);
    wq_limiter_destroy(l);

    const double dry[] = {0, -1};
    for (size_t i = 0; i < 2; i++) {
        l = made(wq_limiter_bucket(dry[i], 1));
        assert_int_equal(when(l, "one"), 0);
        assert_int_equal(when(l, "one"), WQ_FOREVER);
        wq_limiter_destroy(l);
        l = made(wq_limiter_item_bucket(dry[i], 1));
        assert_int_equal(when(l, "one"), 0);
        assert_int_equal(when(l, "one"), WQ_FOREVER);
        assert_int_equal(when(l, "two"), 0);
        wq_limiter_destroy(l);
    }
    l = made(wq_limiter_item_bucket(10, 0));
    assert_int_equal(when(l, "one"), WQ_FOREVER);
    wq_limiter_destroy(l);
    l = made(wq_limiter_item_bucket(WQ_RATE_INF, 0));
    assert_int_equal(when(l, "one"), 0);
    wq_limiter_destroy(l);
}

/* L-23: a change of clock neither brings nor takes tokens. */
TEST(change_of_clock_keeps_what_was_counted)
{
    wq_clock   *early = wq_clock_fake_create(5 * SECOND);
    wq_clock   *late = wq_clock_fake_create(900 * HOUR);
    wq_limiter *kinds[] = {made(wq_limiter_bucket(10, 1)),
                           made(wq_limiter_item_bucket(10, 1))};

    for (size_t i = 0; i < 2; i++) {
        wq_limiter *l = kinds[i];
        wq_limiter_set_clock(l, late);
        ASSERT_WHEN_MS(l, "one", 0, 100);
        wq_limiter_set_clock(l, early);
        ASSERT_WHEN_MS(l, "one", 200);
        wq_clock_fake_step(early, 200 * MS);
        ASSERT_WHEN_MS(l, "one", 100);
        wq_limiter_set_clock(l, late);
        ASSERT_WHEN_MS(l, "one", 200);
        wq_limiter_destroy(l);
    }

    wq_limiter *l = made(wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.base_ns = MS, .ttl_ns = SECOND)));
    wq_limiter_set_clock(l, early);
    ASSERT_WHEN_MS(l, "one", 1);
    wq_clock_fake_step(early, SECOND / 2);
    wq_limiter_set_clock(l, late);
    wq_clock_fake_step(late, SECOND / 2 - 1);
    assert_int_equal(requeues(l, "one"), 1);
    wq_clock_fake_step(late, 1);
    assert_int_equal(requeues(l, "one"), 0);
    wq_limiter_destroy(l);
    wq_clock_destroy(early);
    wq_clock_destroy(late);
}

/* L-11 */
TEST(item_bucket_paces_each_key)
{
    wq_clock   *clock = wq_clock_fake_create(0);
    wq_limiter *l = made(wq_limiter_item_bucket(wq_rate_every(100 * MS), 1));
    wq_limiter_set_clock(l, clock);

    ASSERT_WHEN_MS(l, "one", 0);
    assert_true(when_after(l, "one", 1000) >= 99 * SECOND);
    ASSERT_WHEN_MS(l, "two", 0);
    assert_int_equal(requeues(l, "one"), 0);
    forget(l, "one");
    ASSERT_WHEN_MS(l, "one", 0, 100);
    wq_clock_fake_step(clock, 50 * MS);
    ASSERT_WHEN_MS(l, "one", 150);
    wq_clock_fake_step(clock, HOUR);
    ASSERT_WHEN_MS(l, "one", 0, 100);
    wq_limiter_destroy(l);
    wq_clock_destroy(clock);
}

/* L-12 */
TEST(default_limiters_are_those_of_client_go)
{
    wq_clock   *clock = wq_clock_fake_create(0);
    wq_limiter *l = made(wq_limiter_default());
    wq_limiter_set_clock(l, clock);

    ASSERT_WHEN_MS(l, "one", 5, 10, 20);
    assert_int_equal(requeues(l, "one"), 3);
    for (int i = 3; i < 100; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "key %d", i);
        ASSERT_WHEN_MS(l, key, 5);
    }
    ASSERT_WHEN_MS(l, "101", 100);
    ASSERT_WHEN_MS(l, "102", 200);
    ASSERT_WHEN_MS(l, "103", 300);
    wq_limiter_destroy(l);

    l = made(wq_limiter_default_item());
    ASSERT_WHEN_MS(l, "one", 1, 2, 4);
    assert_int_equal(when_after(l, "one", 30), 1000 * SECOND);
    wq_limiter_destroy(l);
    wq_clock_destroy(clock);
}

/* ---- all ----------------------------------------------------------------- */

/* L-30 */
TEST(undo_takes_back_one_when)
{
    wq_clock   *clock = wq_clock_fake_create(0);
    wq_limiter *l = made(wq_limiter_exponential(MS, HOUR));
    ASSERT_WHEN_MS(l, "one", 1, 2, 4);
    wq_limiter_undo(l, wq_str("one"));
    assert_int_equal(requeues(l, "one"), 2);
    ASSERT_WHEN_MS(l, "one", 4);
    for (int i = 0; i < 10; i++)
        wq_limiter_undo(l, wq_str("one"));
    assert_int_equal(requeues(l, "one"), 0);
    ASSERT_WHEN_MS(l, "one", 1);
    wq_limiter_destroy(l);

    l = made(wq_limiter_fast_slow(MS, SECOND, 1));
    ASSERT_WHEN_MS(l, "one", 1);
    wq_limiter_undo(l, wq_str("one"));
    ASSERT_WHEN_MS(l, "one", 1, 1000);
    wq_limiter_destroy(l);

    wq_limiter *const paces[] = {made(wq_limiter_bucket(10, 1)),
                                 made(wq_limiter_item_bucket(10, 1))};
    for (size_t i = 0; i < 2; i++) {
        wq_limiter_set_clock(paces[i], clock);
        ASSERT_WHEN_MS(paces[i], "one", 0, 100, 200);
        wq_limiter_undo(paces[i], wq_str("one"));
        ASSERT_WHEN_MS(paces[i], "one", 200);
        for (int k = 0; k < 10; k++)
            wq_limiter_undo(paces[i], wq_str("one"));
        ASSERT_WHEN_MS(paces[i], "one", 0, 100); /* no more than was there */
        wq_limiter_destroy(paces[i]);
    }
    wq_clock_destroy(clock);
}

/* whatever comes of it, a when counts; forget sets to zero, again
 * and again. */
TEST(asking_counts_and_forgetting_is_all_forget_does)
{
    wq_limiter *l = made(wq_limiter_exponential(MS, SECOND));

    (void)when(l, "one");
    (void)when(l, "one");
    assert_int_equal(requeues(l, "one"), 2);
    assert_int_equal(requeues(l, "one"), 2);
    forget(l, "one");
    forget(l, "one");
    forget(l, "never seen");
    assert_int_equal(requeues(l, "one"), 0);
    wq_limiter_destroy(l);
}

/* L-04, L-06, L-10, L-11 */
TEST(arguments_that_make_no_sense_are_refused)
{
    wq_limiter *const all[] = {
        wq_limiter_exponential(-1, 1),       wq_limiter_exponential(1, -1),
        wq_limiter_fast_slow(-1, 1, 1),      wq_limiter_fast_slow(1, -1, 1),
        wq_limiter_bucket(NAN, 1),           wq_limiter_bucket(HUGE_VAL, 1),
        wq_limiter_bucket(-HUGE_VAL, 1),     wq_limiter_item_bucket(NAN, 1),
        wq_limiter_item_bucket(HUGE_VAL, 1),
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_failed(all[i], WQ_EINVAL);
}

enum { THREADS = 4, CALLS = 3000 };

static void *
use(void *arg)
{
    wq_limiter *l = arg;
    char        key[16];

    for (int i = 0; i < CALLS; i++) {
        (void)when(l, "shared");
        (void)snprintf(key, sizeof key, "key %d", i % 50);
        (void)when(l, key);
        (void)requeues(l, key);
        if (i % 3 == 0)
            forget(l, key);
        if (i % 10 == 0)
            wq_limiter_set_clock(l, NULL);
        if (i % 2 == 0)
            wq_limiter_undo(l, wq_str("shared"));
    }
    return NULL;
}

/* L-01, L-30: no call of any thread is lost. */
TEST(limiters_count_for_many_threads)
{
    wq_limiter *const parts[] = {
        wq_limiter_exponential_with(
            WQ_EXPONENTIAL(.jitter = WQ_JITTER_EQUAL, .ttl_ns = HOUR)),
        wq_limiter_fast_slow(1, 2, 3),
        wq_limiter_bucket(1e9, 10),
        wq_limiter_item_bucket(1e9, 10),
    };
    wq_limiter *l = made(wq_limiter_max_of(4, parts));
    pthread_t   ids[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, use, l), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(ids[i], NULL), 0);
    assert_int_equal(requeues(l, "shared"), THREADS * CALLS / 2);
    wq_limiter_destroy(l);
}

WQ_TESTS(test(delay_of_a_key_doubles_with_each_failure_until_forgotten),
         test(delay_stops_at_the_maximum),
         test(last_steps_before_the_maximum_are_whole),
         test(odd_bases_end_at_the_maximum),
         test(delay_is_a_product_of_doubles),
         test(options_left_out_mean_the_defaults),
         test(options_of_another_size_are_read_as_far_as_both_know_them),
         test(options_that_make_no_sense_are_refused),
         test(jitter_spreads_delays_over_its_range),
         test(jitter_repeats_with_its_seed_and_only_then),
         test(jitter_changes_no_count),
         test(key_unused_for_longest_makes_room_for_a_new_one),
         test(key_left_alone_for_its_time_to_live_is_forgotten),
         test(key_costs_few_bytes_and_none_once_forgotten),
         test(bounded_keys_take_bounded_memory),
         test(key_there_is_no_memory_for_waits_longest_and_is_not_counted),
         test(few_failures_are_retried_fast_and_more_slowly),
         test(own_limiter_gets_every_call),
         test(own_limiter_needs_no_more_than_when),
         test(own_limiter_without_when_is_refused_and_destroyed),
         test(own_limiter_whose_ops_cannot_be_read_is_refused),
         test(what_no_queue_would_take_is_not_asked_for),
         test(failed_limiter_answers_as_no_limiter_does),
         test(keys_are_bytes_of_any_length),
         test(longest_of_several_delays_counts),
         test(each_of_several_is_asked_each_time),
         test(none_at_all_say_nothing),
         test(maximum_wait_cuts_off_what_is_longer),
         test(combination_that_fails_destroys_its_parts),
         test(combination_of_a_failed_limiter_fails_with_its_error),
         test(limiter_has_one_owner),
         test(bucket_paces_all_keys_together_on_the_given_clock),
         test(bucket_without_burst_or_rate_or_limit),
         test(change_of_clock_keeps_what_was_counted),
         test(item_bucket_paces_each_key),
         test(default_limiters_are_those_of_client_go),
         test(undo_takes_back_one_when),
         test(asking_counts_and_forgetting_is_all_forget_does),
         test(arguments_that_make_no_sense_are_refused),
         test(limiters_count_for_many_threads));
