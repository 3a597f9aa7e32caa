/* SPDX-License-Identifier: MIT */
/* test_limiter.c: do limiters keep their promises about options, memory,
 * owners, callbacks and threads?
 *
 * Through <wq/limiter.h> alone. See scenarios/limiter.scenario for the delays
 * that they answer.
 */
#include "fixture.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include <wq/limiter.h>

#include "support/counting.h"
#include "support/probe.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
#define HOUR (3600 * SECOND)

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

static void
undo(wq_limiter *l, const char *key)
{
    wq_limiter_undo(l, wq_str(key));
}

/* The next answers for `key` are these, in milliseconds. */
#define ASSERT_WHEN_MS(l, key, ...)                                            \
    do {                                                                       \
        const int64_t expected[] = {__VA_ARGS__};                              \
        for (size_t i_ = 0; i_ < sizeof expected / sizeof *expected; i_++)     \
            assert_int_equal(when(l, key), expected[i_] * MS);                 \
    } while (0)

static wq_limiter *
made(wq_limiter *l)
{
    assert_err(wq_limiter_error(l), WQ_OK);
    return l;
}

/* L-31: a failed limiter with this error; destroying it does nothing. */
static void
assert_failed(wq_limiter *l, wq_err err)
{
    assert_non_null(l);
    assert_err(wq_limiter_error(l), err);
    wq_limiter_destroy(l);
    assert_err(wq_limiter_error(l), err);
}

/* ---- options ------------------------------------------------------------- */

/* L-29 */
TEST(options_left_out_have_their_defaults)
{
    wq_limiter *const all[] = {
        made(wq_limiter_exponential_with(NULL)),
        made(wq_limiter_exponential_with(WQ_EXPONENTIAL(.seed = 0))),
    };
    for (size_t i = 0; i < 2; i++) {
        ASSERT_WHEN_MS(all[i], "one", 5, 10, 20);
        for (int n = 0; n < 30; n++)
            (void)when(all[i], "one");
        ASSERT_WHEN_MS(all[i], "one", 1000000);
        wq_limiter_destroy(all[i]);
    }
    wq_limiter *l = made(wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.base_ns = 2 * MS, .max_ns = 5 * MS)));
    ASSERT_WHEN_MS(l, "one", 2, 4, 5, 5);
    wq_limiter_destroy(l);
}

/* L-29: a program that was compiled with a newer or an older header. */
TEST(options_of_another_size_are_read_to_the_shorter_end)
{
    struct {
        wq_exponential_options known;
        void                  *more;
    } newer = {.known = {.size = sizeof newer, .base_ns = 2 * MS}};
    wq_exponential_options older = {
        .size = offsetof(wq_exponential_options, max_ns),
        .base_ns = 3 * MS,
        .max_ns = -1, /* beyond its size */
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

/* L-32: also one that is not a whole number. */
TEST(delay_grows_by_the_factor)
{
    wq_limiter *l = made(wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.base_ns = 8 * MS, .max_ns = 50 * MS, .factor = 1.5)));

    ASSERT_WHEN_MS(l, "one", 8, 12, 18, 27);
    assert_int_equal(when(l, "one"), 40500000);
    ASSERT_WHEN_MS(l, "one", 50, 50);
    wq_limiter_destroy(l);
}

/* L-04 L-06 L-10 L-11 L-29 L-32 */
TEST(bad_arguments_and_options_are_refused)
{
    const wq_allocator incomplete = {.size = sizeof incomplete};
    const wq_jitter    unknown = (wq_jitter)3;
    wq_limiter *(*const with)(const wq_exponential_options *) =
        wq_limiter_exponential_with;
    wq_limiter *const all[] = {
        wq_limiter_exponential(-1, 1),
        wq_limiter_exponential(1, -1),
        with(WQ_EXPONENTIAL(.base_ns = -1)),
        with(WQ_EXPONENTIAL(.max_ns = -1)),
        with(WQ_EXPONENTIAL(.ttl_ns = -1)),
        with(WQ_EXPONENTIAL(.jitter = unknown)),
        with(WQ_EXPONENTIAL(.factor = 0.999)),
        with(WQ_EXPONENTIAL(.factor = -2)),
        with(WQ_EXPONENTIAL(.factor = NAN)),
        with(WQ_EXPONENTIAL(.factor = HUGE_VAL)),
        with(WQ_EXPONENTIAL(.allocator = &incomplete)),
        wq_limiter_fast_slow(-1, 1, 1),
        wq_limiter_fast_slow(1, -1, 1),
        wq_limiter_bucket(NAN, 1),
        wq_limiter_bucket(HUGE_VAL, 1),
        wq_limiter_bucket(-HUGE_VAL, 1),
        wq_limiter_item_bucket(NAN, 1),
        wq_limiter_item_bucket(HUGE_VAL, 1),
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!wq_limiter_error(all[i]))
            fail_msg("row %zu is accepted", i);
        assert_failed(all[i], WQ_EINVAL);
    }
}

/* ---- jitter -------------------------------------------------------------- */

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
TEST(jitter_repeats_only_with_its_seed)
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

/* L-20: the longest delays do not overflow, and the shortest ones can be either
 * end of the range. */
TEST(jitter_does_not_change_the_count)
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

/* ---- memory -------------------------------------------------------------- */

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
    struct counting mem;
    char            buf[64];

    counting_init(&mem);
    wq_limiter *l = made(wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.allocator = &mem.allocator)));
    assert_int_equal(nth_key(buf, sizeof buf, 1).len, 31);
    fill(l);
    assert_in_range(mem.bytes / MANY, 31 + 4, 31 + 24);
    for (int i = 0; i < MANY; i++)
        wq_limiter_forget(l, nth_key(buf, sizeof buf, i));
    assert_true(mem.bytes < 200000);
    wq_limiter_destroy(l);
    assert_int_equal(mem.bytes, 0);
}

/* L-21 L-22 */
TEST(bounded_keys_take_bounded_memory)
{
    struct counting mem;

    counting_init(&mem);
    wq_limiter *l = made(wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.allocator = &mem.allocator, .max_keys = 100)));
    fill(l);
    assert_true(mem.bytes < 100000);
    wq_limiter_destroy(l);

    wq_clock *clock = wq_clock_fake_create(0);
    l = made(wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.allocator = &mem.allocator, .ttl_ns = 100)));
    wq_limiter_set_clock(l, clock);
    char buf[64];
    for (int i = 0; i < MANY; i++) {
        (void)wq_limiter_when(l, nth_key(buf, sizeof buf, i));
        wq_clock_fake_step(clock, 1);
    }
    assert_true(mem.bytes < 100000);
    wq_limiter_destroy(l);
    assert_int_equal(mem.bytes, 0);
    wq_clock_destroy(clock);
}

/* A failed limiter: there was no memory for it. */
static wq_limiter *
without_memory(void)
{
    static struct counting mem;

    counting_init(&mem);
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    return wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.allocator = &mem.allocator));
}

/* L-25 */
TEST(key_without_memory_waits_longest_and_is_not_counted)
{
    struct counting mem;

    counting_init(&mem);
    wq_limiter *l = made(wq_limiter_exponential_with(
        WQ_EXPONENTIAL(.allocator = &mem.allocator)));
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    assert_int_equal(when(l, "one"), 1000 * SECOND);
    assert_int_equal(when(l, "one"), 1000 * SECOND);
    assert_int_equal(requeues(l, "one"), 0);
    forget(l, "one");
    undo(l, "one");

    counting_heal(&mem);
    ASSERT_WHEN_MS(l, "one", 5);
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    ASSERT_WHEN_MS(l, "one", 10); /* a known key needs none */
    wq_limiter_destroy(l);
    assert_failed(without_memory(), WQ_ENOMEM);
}

/* ---- limiters of users --------------------------------------------------- */

static wq_limiter *
probe(struct probe *p)
{
    return made(wq_limiter_create(&probe_ops, p));
}

/* Call each function once, with a key of three bytes. */
static void
call_all(wq_limiter *l, int64_t delay_ns, unsigned requeued, wq_clock *clock)
{
    assert_int_equal(when(l, "one"), delay_ns);
    assert_int_equal(requeues(l, "one"), requeued);
    forget(l, "one");
    undo(l, "one");
    wq_limiter_set_clock(l, clock);
}

/* L-26 */
TEST(own_limiter_gets_every_call)
{
    struct probe p = {.delay_ns = 7};
    wq_limiter  *l = probe(&p);
    wq_clock    *clock = wq_clock_fake_create(0);

    call_all(l, 7, 1, clock);
    assert_ptr_equal(p.clock, clock);
    assert_int_equal(p.key_len, 3);
    p.delay_ns = -7;
    assert_int_equal(when(l, "four"), 0);
    assert_int_equal(p.key_len, 4);
    wq_limiter_destroy(l);
    assert_int_equal(p.forgets, 1);
    assert_int_equal(p.undos, 1);
    assert_int_equal(p.destroys, 1);
    wq_clock_destroy(clock);
}

/* L-26 */
TEST(own_limiter_needs_only_when)
{
    struct probe         p = {.delay_ns = 7};
    const wq_limiter_ops least = {.size = sizeof least, .when = probe_ops.when};
    const wq_limiter_ops older = {
        .size = offsetof(wq_limiter_ops, undo),
        .when = probe_ops.when,
        .undo = probe_ops.undo, /* beyond its size */
    };
    const wq_limiter_ops *const both[] = {&least, &older};

    for (size_t i = 0; i < 2; i++) {
        wq_limiter *l = made(wq_limiter_create(both[i], &p));

        call_all(l, 7, 0, NULL);
        wq_limiter_destroy(l);
    }
    assert_int_equal(p.forgets + p.undos + p.destroys, 0);
}

/* L-26 L-31: destroy() gets `self`, if there is one. */
TEST(own_limiter_without_when_is_refused_and_destroyed)
{
    struct probe   p = {0};
    wq_limiter_ops ops = probe_ops;

    ops.when = NULL;
    assert_failed(wq_limiter_create(&ops, &p), WQ_EINVAL);
    assert_int_equal(p.destroys, 1);
    ops.destroy = NULL;
    assert_failed(wq_limiter_create(&ops, &p), WQ_EINVAL);
    assert_int_equal(p.destroys, 1);
}

/* L-26 L-31 */
TEST(own_limiter_with_unreadable_ops_is_refused)
{
    struct probe   p = {0};
    wq_limiter_ops ops = probe_ops;

    assert_failed(wq_limiter_create(NULL, &p), WQ_EINVAL);
    ops.size = 0;
    assert_failed(wq_limiter_create(&ops, &p), WQ_EINVAL);
    ops.size = sizeof(size_t);
    assert_failed(wq_limiter_create(&ops, &p), WQ_EINVAL);
    assert_int_equal(p.destroys, 0); /* there is no destroy() to call */
}

/* L-26 */
TEST(limiter_is_not_called_with_bad_keys)
{
    static const char long_key[WQ_KEY_MAX + 1];
    struct probe      p = {.delay_ns = 7};
    wq_limiter       *l = probe(&p);
    const wq_key bad[] = {{NULL, 3}, {"one", 0}, {long_key, sizeof long_key}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(wq_limiter_when(l, bad[i]), WQ_FOREVER);
        assert_int_equal(wq_limiter_num_requeues(l, bad[i]), 0);
        wq_limiter_forget(l, bad[i]);
        wq_limiter_undo(l, bad[i]);
    }
    assert_int_equal(p.whens + p.forgets + p.undos, 0);
    wq_limiter_destroy(l);
}

/* L-26 L-31 */
TEST(null_and_failed_limiters_answer_forever)
{
    wq_limiter *const all[] = {NULL, wq_limiter_exponential(-1, 1)};
    wq_clock         *clock = wq_clock_fake_create(0);

    for (size_t i = 0; i < 2; i++) {
        call_all(all[i], WQ_FOREVER, 0, clock);
        wq_limiter_set_clock(all[i], NULL);
        wq_limiter_destroy(all[i]);
        wq_limiter_destroy(all[i]);
        assert_int_equal(wq_limiter_error(all[i]), WQ_EINVAL);
    }
    wq_clock_destroy(clock);
}

/* L-26: up to the longest key. */
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

/* L-08 */
TEST(combination_calls_each_of_its_limiters)
{
    struct probe      p[] = {{.delay_ns = 1}, {.delay_ns = 9}, {.delay_ns = 5}};
    wq_limiter *const parts[] = {probe(&p[0]), probe(&p[1]), probe(&p[2])};
    wq_limiter       *l = made(wq_limiter_max_of(3, parts));
    wq_clock         *clock = wq_clock_fake_create(0);

    assert_int_equal(when(l, "one"), 9);
    call_all(l, 9, 2, clock);
    wq_limiter_destroy(l);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(p[i].whens, 2);
        assert_int_equal(p[i].forgets, 1);
        assert_int_equal(p[i].undos, 1);
        assert_ptr_equal(p[i].clock, clock);
        assert_int_equal(p[i].destroys, 1);
    }
    wq_clock_destroy(clock);
}

/* L-24 L-31 */
TEST(combination_that_fails_destroys_its_parts)
{
    struct probe a = {0}, b = {0};

    assert_failed(
        wq_limiter_max_of(3, (wq_limiter *[]){probe(&a), NULL, probe(&b)}),
        WQ_EINVAL);
    assert_int_equal(a.destroys, 1);
    assert_int_equal(b.destroys, 1);
    assert_failed(wq_limiter_max_of(1, (wq_limiter *[]){NULL}), WQ_EINVAL);
    assert_failed(wq_limiter_max_of(2, NULL), WQ_EINVAL);
    assert_failed(wq_limiter_with_max_wait(NULL, 1), WQ_EINVAL);
    assert_failed(wq_limiter_with_max_wait(probe(&a), -1), WQ_EINVAL);
    assert_int_equal(a.destroys, 2);
}

/* L-31: with that of the first one. */
TEST(combination_of_a_failed_limiter_fails_with_its_error)
{
    struct probe a = {0}, b = {0};

    assert_failed(wq_limiter_with_max_wait(without_memory(), 1), WQ_ENOMEM);
    assert_failed(
        wq_limiter_max_of(
            4, (wq_limiter *[]){probe(&a), without_memory(), probe(&b),
                                wq_limiter_with_max_wait(probe(&a), -1)}),
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
    struct probe a = {.delay_ns = 7}, b = {0};
    wq_limiter  *part = probe(&a);
    wq_limiter  *l = made(wq_limiter_with_max_wait(part, 5));

    assert_failed(wq_limiter_max_of(2, (wq_limiter *[]){part, probe(&b)}),
                  WQ_EINVAL);
    assert_int_equal(b.destroys, 1);
    assert_failed(wq_limiter_with_max_wait(part, 5), WQ_EINVAL);
    wq_limiter_destroy(part); /* ignored: l owns it */
    assert_int_equal(a.destroys, 0);
    assert_int_equal(when(l, "one"), 5);
    wq_limiter_destroy(l);
    assert_int_equal(a.destroys, 1);

    part = probe(&a);
    assert_failed(wq_limiter_max_of(3, (wq_limiter *[]){part, probe(&b), part}),
                  WQ_EINVAL);
    assert_int_equal(a.destroys, 2); /* once */
    assert_int_equal(b.destroys, 2);
}

/* ---- clocks and threads -------------------------------------------------- */

/* L-23: it neither adds nor takes tokens. */
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
            undo(l, "shared");
    }
    return NULL;
}

/* L-01 L-30: no call of any thread is lost. */
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

WQ_TESTS(test(options_left_out_have_their_defaults),
         test(options_of_another_size_are_read_to_the_shorter_end),
         test(delay_grows_by_the_factor),
         test(bad_arguments_and_options_are_refused),
         test(jitter_spreads_delays_over_its_range),
         test(jitter_repeats_only_with_its_seed),
         test(jitter_does_not_change_the_count),
         test(key_costs_few_bytes_and_none_once_forgotten),
         test(bounded_keys_take_bounded_memory),
         test(key_without_memory_waits_longest_and_is_not_counted),
         test(own_limiter_gets_every_call), test(own_limiter_needs_only_when),
         test(own_limiter_without_when_is_refused_and_destroyed),
         test(own_limiter_with_unreadable_ops_is_refused),
         test(limiter_is_not_called_with_bad_keys),
         test(null_and_failed_limiters_answer_forever),
         test(keys_are_bytes_of_any_length),
         test(combination_calls_each_of_its_limiters),
         test(combination_that_fails_destroys_its_parts),
         test(combination_of_a_failed_limiter_fails_with_its_error),
         test(limiter_has_one_owner),
         test(change_of_clock_keeps_what_was_counted),
         test(limiters_count_for_many_threads));
