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
#include <stdlib.h>

#include "core/mem.h"
#include "core/span.h"
#include "limit/limiter.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

/* An allocator that refuses one allocation, and counts what is out. */
struct memory {
    size_t used;
    long   until; /* so many succeed first; below zero: all do */
};

static void *
take(void *ctx, size_t n)
{
    struct memory *m = ctx;

    if (m->until-- == 0)
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

static wq_allocator
allocator(struct memory *m)
{
    *m = (struct memory){.until = -1};
    return (wq_allocator){
        .size = sizeof(wq_allocator), .ctx = m, .alloc = take, .free = give};
}

/* ---- what each kind does without memory ---------------------------------- */

static wq_limiter *
make_exponential(const wq_allocator *mem)
{
    return wq__limiter_exponential(mem, MS, SECOND);
}

static wq_limiter *
make_fast_slow(const wq_allocator *mem)
{
    return wq__limiter_fast_slow(mem, MS, SECOND, 3);
}

static wq_limiter *
make_bucket(const wq_allocator *mem)
{
    return wq__limiter_bucket(mem, 1, 1000);
}

static wq_limiter *
make_item_bucket(const wq_allocator *mem)
{
    return wq__limiter_item_bucket(mem, 1, 1);
}

static wq_limiter *
make_capped(const wq_allocator *mem)
{
    return wq__limiter_with_max_wait(mem, wq__limiter_default_item(mem),
                                     SECOND);
}

static int64_t
no_delay(void *self, wq_key key)
{
    (void)self;
    (void)key;
    return 0;
}

static wq_limiter *
make_own(const wq_allocator *mem)
{
    const wq_limiter_ops ops = {.size = sizeof ops, .when = no_delay};
    return wq__limiter_create(mem, &ops, NULL);
}

struct kind {
    wq_limiter *(*make)(const wq_allocator *mem);
    unsigned count;      /* of a key it was asked about once */
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
    {make_own, 0, 0, 0},
};

/* Ask for 90 new keys, on a clock that stands still: fewer than the default
 * limiter lets through at once. Returns how many were refused memory. */
static long
use(const struct kind *kind, wq_limiter *l, wq_clock *clock)
{
    long refused = 0;

    wq_limiter_set_clock(l, clock);
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
refuse(const struct kind *kind, long nth, wq_clock *clock)
{
    struct memory      mem;
    const wq_allocator a = allocator(&mem);

    mem.until = nth;
    wq_limiter *l = kind->make(&a);
    if (wq_limiter_error(l)) {
        assert_int_equal(wq_limiter_error(l), WQ_ENOMEM);
        assert_int_equal(mem.used, 0);
        return true;
    }
    const bool made_before = mem.until >= 0;
    const long refused = use(kind, l, clock);
    const bool reached = mem.until < 0;
    /* A table that cannot grow may do without: so at most one is refused. */
    assert_true(made_before && refused <= 1);
    wq_limiter_destroy(l);
    assert_int_equal(mem.used, 0);
    return reached;
}

/* L-25 */
TEST(limiters_bear_every_refusal_of_memory)
{
    wq_clock *clock = wq_clock_fake_create(0);

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (long nth = 0; refuse(&kinds[i], nth, clock); nth++)
            assert_true(nth < 1000);
    wq_clock_destroy(clock);
}

/* ---- item buckets -------------------------------------------------------- */

/* L-28: a million keys a second, each seen once. */
TEST(item_buckets_that_are_full_again_take_no_memory)
{
    struct memory      mem;
    const wq_allocator a = allocator(&mem);
    wq_clock          *clock = wq_clock_fake_create(0);
    wq_limiter        *l = wq__limiter_item_bucket(&a, 1000, 1);
    size_t             most = 0;

    wq_limiter_set_clock(l, clock);
    for (uint64_t i = 0; i < 100000; i++) {
        assert_int_equal(wq_limiter_when(l, wq_u64(&i)), 0);
        wq_clock_fake_step(clock, 1000);
        most = mem.used > most ? mem.used : most;
    }
    /* A bucket is full after 1000 steps; seen to within as many more. */
    assert_true(most < 200000);
    wq_limiter_destroy(l);
    assert_int_equal(mem.used, 0);
    wq_clock_destroy(clock);
}

/* L-28: the hand that clears away passes over those in debt. */
TEST(item_buckets_in_debt_are_kept)
{
    wq_clock   *clock = wq_clock_fake_create(0);
    wq_limiter *l = wq__limiter_item_bucket(&wq__mem_default, 1, 1);
    uint64_t    debtor = 1 << 20;

    wq_limiter_set_clock(l, clock);
    for (int64_t i = 0; i < 5; i++)
        assert_int_equal(wq_limiter_when(l, wq_u64(&debtor)), i * SECOND);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(wq_limiter_when(l, wq_u64(&i)), 0);
    assert_int_equal(wq_limiter_when(l, wq_u64(&debtor)), 5 * SECOND);
    wq_clock_fake_step(clock, 3 * SECOND);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(wq_limiter_when(l, wq_u64(&i)), 0);
    assert_int_equal(wq_limiter_when(l, wq_u64(&debtor)), 3 * SECOND);
    wq_limiter_destroy(l);
    wq_clock_destroy(clock);
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
    assert_int_equal(wq__span_add(1, 2), 3);
    assert_int_equal(wq__span_add(INT64_MAX, 1), INT64_MAX);
    assert_int_equal(wq__span_add(INT64_MIN, -1), INT64_MIN);
    assert_int_equal(wq__span_add(INT64_MAX, INT64_MIN), -1);
    assert_int_equal(wq__span_sub(1, 2), -1);
    assert_int_equal(wq__span_sub(INT64_MAX, -1), INT64_MAX);
    assert_int_equal(wq__span_sub(INT64_MIN, 1), INT64_MIN);
    assert_int_equal(wq__span_sub(0, INT64_MIN), INT64_MAX);
    assert_int_equal(wq__span_sub(-1, INT64_MIN), INT64_MAX);
    assert_int_equal(wq__span_sub(INT64_MIN, INT64_MIN), 0);
}

WQ_TESTS(test(limiters_bear_every_refusal_of_memory),
         test(item_buckets_that_are_full_again_take_no_memory),
         test(item_buckets_in_debt_are_kept),
         test(claimed_limiter_is_its_owners_until_unclaimed),
         test(failed_limiter_cannot_be_claimed),
         test(sums_and_differences_stop_at_the_ends));
