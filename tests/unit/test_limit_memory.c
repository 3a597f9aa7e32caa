/* SPDX-License-Identifier: MIT */
/* test_limit_memory.c: what do limiters do when there is no memory, and what do
 * they do with it?
 *
 * Each kind is made and used with the first allocation refused, the second, and
 * so on. Whatever is refused: nothing crashes, nothing leaks, delays are of
 * those the kind may give, and what was not refused is counted.
 */
#include "support/wq_test.h"

#include <stdbool.h>
#include <stdio.h>

#include "core/span.h"
#include "limit/limiter.h"
#include "support/counting.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

static struct counting mem;
static wq_clock       *timer; /* stands still until it is moved */

static int
open_mem(void **state)
{
    (void)state;
    counting_init(&mem);
    timer = wq_clock_fake_create(0);
    return 0;
}

static int
close_mem(void **state)
{
    (void)state;
    wq_clock_destroy(timer);
    assert_int_equal(mem.bytes, 0);
    return 0;
}

/* ---- what each kind does without memory ---------------------------------- */

static wq_limiter *
make_exponential(const wq_allocator *a)
{
    return wq__limiter_exponential(a, MS, SECOND);
}

static wq_limiter *
make_fast_slow(const wq_allocator *a)
{
    return wq__limiter_fast_slow(a, MS, SECOND, 3);
}

static wq_limiter *
make_bucket(const wq_allocator *a)
{
    return wq__limiter_bucket(a, 1, 1000);
}

static wq_limiter *
make_item_bucket(const wq_allocator *a)
{
    return wq__limiter_item_bucket(a, 1, 1);
}

static wq_limiter *
make_capped(const wq_allocator *a)
{
    return wq__limiter_with_max_wait(a, wq__limiter_default_item(a), SECOND);
}

static int64_t
no_delay(void *self, wq_key key)
{
    (void)self;
    (void)key;
    return 0;
}

static wq_limiter *
make_own(const wq_allocator *a)
{
    const wq_limiter_ops ops = {.size = sizeof ops, .when = no_delay};
    return wq__limiter_create(a, &ops, NULL);
}

static wq_limiter *
make_from_spec(const wq_allocator *a)
{
    const wq_limiter_spec spec = {
        .size = sizeof spec,
        .parts = WQ_PART_EXPONENTIAL | WQ_PART_BUCKET | WQ_PART_MAX_WAIT,
        .base_ns = MS,
        .max_ns = 2 * SECOND,
        .rate = 1,
        .burst = 1000,
        .max_wait_ns = SECOND,
    };
    return wq__limiter_from_spec(a, &spec);
}

struct kind {
    wq_limiter *(*make)(const wq_allocator *a);
    unsigned count;      /* of a key after one when() */
    int64_t  first_ns;   /* what a new key waits */
    int64_t  refused_ns; /* what it waits when there is no memory for it */
};

static const struct kind kinds[] = {
    {make_exponential, 1, MS, SECOND},
    {make_fast_slow, 1, MS, SECOND},
    {make_bucket, 0, 0, 0},
    {make_item_bucket, 0, 0, SECOND},
    {wq__limiter_default, 1, 5 * MS, 1000 * SECOND},
    {wq__limiter_default_item, 1, MS, 1000 * SECOND},
    {make_capped, 1, MS, SECOND},
    {make_from_spec, 1, MS, SECOND},
    {make_own, 0, 0, 0},
};

/* Ask for 90 new keys: fewer than the default limiter lets through at once.
 * Returns how many were refused memory. */
static long
use(const struct kind *kind, wq_limiter *l)
{
    long refused = 0;

    wq_limiter_set_clock(l, timer);
    for (int i = 0; i < 90; i++) {
        char key[400]; /* every fifth too long for an entry */
        (void)snprintf(key, sizeof key, "%0*d", i % 5 ? 20 : 399, i);
        const int64_t  delay = wq_limiter_when(l, wq_str(key));
        const unsigned count = wq_limiter_num_requeues(l, wq_str(key));
        if (delay == kind->first_ns) {
            assert_int_equal(count, kind->count);
            continue;
        }
        assert_int_equal(delay, kind->refused_ns);
        assert_int_equal(count, 0);
        refused++;
        assert_int_equal(wq_limiter_when(l, wq_str(key)), kind->first_ns);
    }
    return refused;
}

/* Refuse the nth allocation. False: there were not so many. */
static bool
refuse(const struct kind *kind, uint64_t nth)
{
    const uint64_t before = mem.refused;

    counting_fail(&mem, nth, COUNTING_ONCE);
    wq_limiter *l = kind->make(&mem.allocator);
    if (wq_limiter_error(l)) {
        assert_int_equal(wq_limiter_error(l), WQ_ENOMEM);
    } else {
        /* A table that cannot grow may do without: at most one is refused. */
        assert_int_equal(mem.refused, before);
        assert_true(use(kind, l) <= 1);
        wq_limiter_destroy(l);
    }
    assert_int_equal(mem.bytes, 0);
    counting_heal(&mem);
    return mem.refused > before;
}

/* L-25 */
TEST(limiters_bear_every_refusal_of_memory)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (uint64_t nth = 1; refuse(&kinds[i], nth); nth++)
            assert_true(nth < 1000);
}

/* ---- item buckets -------------------------------------------------------- */

static wq_limiter *
make_timed_item_bucket(double limit)
{
    wq_limiter *l = wq__limiter_item_bucket(&mem.allocator, limit, 1);

    wq_limiter_set_clock(l, timer);
    return l;
}

static void
expect_delay(wq_limiter *l, uint64_t key, int64_t delay_ns)
{
    assert_int_equal(wq_limiter_when(l, wq_u64(&key)), delay_ns);
}

/* L-28: a million keys a second, each seen once. */
TEST(item_buckets_that_are_full_again_take_no_memory)
{
    wq_limiter *l = make_timed_item_bucket(1000);

    for (uint64_t i = 0; i < 100000; i++) {
        expect_delay(l, i, 0);
        wq_clock_fake_step(timer, 1000);
    }
    /* A bucket is full after 1000 steps; seen to within as many more. */
    assert_true(mem.peak < 200000);
    wq_limiter_destroy(l);
}

/* L-28: the hand that clears away passes over those in debt. */
TEST(item_buckets_in_debt_are_kept)
{
    const uint64_t debtor = 1 << 20;
    wq_limiter    *l = make_timed_item_bucket(1);

    for (int64_t i = 0; i < 5; i++)
        expect_delay(l, debtor, i * SECOND);
    for (uint64_t i = 0; i < 1000; i++)
        expect_delay(l, i, 0);
    expect_delay(l, debtor, 5 * SECOND);
    wq_clock_fake_step(timer, 3 * SECOND);
    for (uint64_t i = 0; i < 1000; i++)
        expect_delay(l, i, 0);
    expect_delay(l, debtor, 3 * SECOND);
    wq_limiter_destroy(l);
}

/* ---- ownership, as a queue uses it --------------------------------------- */

/* L-24 */
TEST(claimed_limiter_is_its_owners_until_unclaimed)
{
    wq_limiter *l = wq_limiter_default();

    assert_true(wq__limiter_claim(l));
    assert_false(wq__limiter_claim(l));
    wq_limiter_destroy(l); /* ignored */
    assert_int_equal(wq_limiter_when(l, wq_str("one")), 5 * MS);
    wq__limiter_unclaim(l);
    assert_true(wq__limiter_claim(l));
    wq__limiter_unclaim(l);
    wq_limiter_destroy(l);
}

/* L-31 */
TEST(failed_limiter_cannot_be_claimed)
{
    assert_false(wq__limiter_claim(wq_limiter_exponential(-1, 1)));
    assert_false(wq__limiter_claim(NULL));
}

/* ---- spans --------------------------------------------------------------- */

/* T-06 */
TEST(sums_and_differences_stop_at_the_ends)
{
    static const struct {
        int64_t a, b, sum, difference;
    } rows[] = {
        {1, 2, 3, -1},
        {10, 0, 10, 10},
        {10, WQ_FOREVER, WQ_FOREVER, 10 - WQ_FOREVER},
        {10, WQ_FOREVER - 10, WQ_FOREVER, 20 - WQ_FOREVER},
        {10, WQ_FOREVER - 11, WQ_FOREVER - 1, 21 - WQ_FOREVER},
        {INT64_MAX, 1, INT64_MAX, INT64_MAX - 1},
        {INT64_MIN, -1, INT64_MIN, INT64_MIN + 1},
        {INT64_MAX, INT64_MIN, -1, INT64_MAX},
        {INT64_MAX, -1, INT64_MAX - 1, INT64_MAX},
        {INT64_MIN, 1, INT64_MIN + 1, INT64_MIN},
        {0, INT64_MIN, INT64_MIN, INT64_MAX},
        {-1, INT64_MIN, INT64_MIN, INT64_MAX},
        {INT64_MIN, INT64_MIN, INT64_MIN, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(wq__span_add(rows[i].a, rows[i].b), rows[i].sum);
        assert_int_equal(wq__span_sub(rows[i].a, rows[i].b),
                         rows[i].difference);
    }
}

#define mem_test(name) test_with(name, open_mem, close_mem)

WQ_TESTS(mem_test(limiters_bear_every_refusal_of_memory),
         mem_test(item_buckets_that_are_full_again_take_no_memory),
         mem_test(item_buckets_in_debt_are_kept),
         test(claimed_limiter_is_its_owners_until_unclaimed),
         test(failed_limiter_cannot_be_claimed),
         test(sums_and_differences_stop_at_the_ends));
