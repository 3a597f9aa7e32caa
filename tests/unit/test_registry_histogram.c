/* SPDX-License-Identifier: MIT */
/* test_registry_histogram.c: does every duration go to its bucket, and is
 * nothing lost when many threads count? */
#include "unit/counted.h"

#include <pthread.h>

#include "metrics/shards.h"
#include "support/checkpoint.h"

/* ---- buckets ------------------------------------------------------------- */

/* M-09: the bounds are 10e-9 * 10^k seconds, and belong to their bucket. */
static unsigned
bucket_by_search(uint64_t ns)
{
    unsigned k = 0;

    for (uint64_t bound = 10; k < 12 && ns > bound; bound *= 10)
        k++;
    /* As doubles, Kubernetes' bounds are a little less than these two. */
    return k + (ns == 10000 || ns == 100000);
}

static void
expect_bucket(uint64_t ns)
{
    if (wq__bucket_of(ns) != bucket_by_search(ns))
        fail_msg("%llu ns: bucket %u, not %u", (unsigned long long)ns,
                 wq__bucket_of(ns), bucket_by_search(ns));
}

TEST(duration_goes_to_the_first_bucket_not_below_it)
{
    uint64_t random = 1;

    assert_int_equal(wq__bucket_of(0), 0);
    assert_int_equal(wq__bucket_of(10), 0);
    assert_int_equal(wq__bucket_of(11), 1);
    assert_int_equal(wq__bucket_of(UINT64_C(1000000000000)), 11);
    assert_int_equal(wq__bucket_of(UINT64_C(1000000000001)), 12);
    assert_int_equal(wq__bucket_of(UINT64_MAX), 12);
    for (uint64_t ns = 0; ns < 2000000; ns++)
        expect_bucket(ns);
    for (uint64_t bound = 10; bound <= UINT64_MAX / 10; bound *= 10)
        for (int d = -2; d <= 2; d++)
            expect_bucket(bound + (uint64_t)d);
    for (int bit = 0; bit < 64; bit++)
        for (int d = -2; d <= 2; d++)
            expect_bucket((UINT64_C(1) << bit) + (uint64_t)d);
    for (int i = 0; i < 1000000; i++) {
        random = random * 6364136223846793005U + 1442695040888963407U;
        expect_bucket(random >> (i % 64));
    }
}

static void
expect_durations(const struct wq__histogram *h, uint64_t in_last,
                 uint64_t seconds, uint32_t ns)
{
    struct wq__durations d = {0};

    wq__histogram_read(h, &d);
    assert_int_equal(d.buckets[WQ__BOUNDS], in_last);
    assert_int_equal(d.seconds, seconds);
    assert_int_equal(d.ns, ns);
}

/* A sum that went round would look like a restart of the program. */
TEST(sum_stops_at_its_end_and_counts_go_on)
{
    static struct wq__histogram own, shared;

    for (int i = 0; i < 4; i++) {
        wq__histogram_own(&own, INT64_MAX);
        wq__histogram_shared(&shared, INT64_MAX);
    }
    expect_durations(&own, 4, 18446744073, 709551615);
    expect_durations(&shared, 4, 18446744073, 709551615);
}

TEST(sums_are_exact)
{
    struct wq__durations d = {.ns = 999999999};
    struct wq__histogram h = {.sum_ns = 2};

    wq__histogram_read(&h, &d);
    assert_int_equal(d.seconds, 1);
    assert_int_equal(d.ns, 1);
}

/* ---- shards -------------------------------------------------------------- */

COUNTED(shards);

static void
expect_counts(uint64_t latency, uint64_t work, uint64_t ns)
{
    struct wq__durations d[WQ__MEASURES] = {{{0}, 0, 0}};
    uint64_t             counts[WQ__MEASURES] = {0};
    uint64_t             sum = 0;

    wq__shards_read(&shards, d);
    for (int m = 0; m < WQ__MEASURES; m++) {
        sum += d[m].seconds * 1000000000 + d[m].ns;
        for (int i = 0; i < WQ__BUCKETS; i++)
            counts[m] += d[m].buckets[i];
    }
    assert_int_equal(counts[WQ__LATENCY], latency);
    assert_int_equal(counts[WQ__WORK], work);
    assert_int_equal(counts[WQ__LIMITED], 0);
    assert_int_equal(sum, ns);
}

TEST(thread_counts_in_a_shard_of_its_own)
{
    for (int i = 0; i < 100; i++)
        wq__shards_count(&shards, WQ__LATENCY, 5);
    assert_int_equal(mem.calls, 1);
    assert_int_equal(
        (uintptr_t)atomic_load(&shards.own[wq__thread_mark_number]) %
            WQ__SHARD_ALIGN,
        0);
    wq__shards_count(&shards, WQ__WORK, 7);
    wq__shards_count(&shards, WQ__WORK, -7); /* a clock that went back */
    expect_counts(100, 2, 507);
}

/* Nothing is lost, and as soon as there is memory the thread has its own. */
TEST(thread_without_memory_counts_in_the_shared_shard)
{
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    for (int i = 0; i < 10; i++)
        wq__shards_count(&shards, WQ__LATENCY, 5);
    assert_int_equal(atomic_load(&shards.shared.of[WQ__LATENCY].buckets[0]),
                     10);
    expect_counts(10, 0, 50);
    counting_heal(&mem);
    wq__shards_count(&shards, WQ__LATENCY, 5);
    assert_int_equal(mem.blocks, 1);
    assert_int_equal(atomic_load(&shards.shared.of[WQ__LATENCY].buckets[0]),
                     10);
    expect_counts(11, 0, 55);
}

static void *
count_some(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++)
        wq__shards_count(&shards, WQ__WORK, 3);
    return NULL;
}

/* They have the same number, so they count on where the last one ended. */
TEST(thread_goes_on_in_the_shard_of_one_that_ended)
{
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, count_some, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    assert_int_equal(mem.blocks, 1);
    expect_counts(0, 50000, 150000);
}

enum { CROWD = WQ__THREAD_NUMBERS + 12 };
static struct tally counted = TALLY_INIT;

/* Nobody ends before all have counted: some have no number. */
static void *
count_in_a_crowd(void *unused)
{
    (void)count_some(unused);
    tally_add(&counted, 1);
    (void)tally_reaches(&counted, CROWD);
    (void)count_some(unused);
    return NULL;
}

TEST(more_threads_than_numbers_lose_no_count)
{
    pthread_t threads[CROWD];

    for (int i = 0; i < CROWD; i++)
        assert_int_equal(
            pthread_create(&threads[i], NULL, count_in_a_crowd, NULL), 0);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_true(atomic_load(&shards.shared.of[WQ__WORK].buckets[0]) >= 12000);
    expect_counts(0, UINT64_C(2000) * CROWD, UINT64_C(6000) * CROWD);
}

enum { TABLES = 100 };
static struct wq__shards tables[TABLES];

static void *
count_once_in_each(void *unused)
{
    for (int i = 0; i < TABLES; i++)
        wq__shards_count(&tables[i], WQ__LATENCY, 1);
    return unused;
}

static uint64_t
count_in(const struct wq__shards *table)
{
    struct wq__durations d[WQ__MEASURES] = {{{0}, 0, 0}};

    wq__shards_read(table, d);
    return d[WQ__LATENCY].buckets[0];
}

/* A reader finds a shard that was made just now, and it is empty or has its
 * count: never what was in the memory before. The thread sanitizer sees if that
 * is luck. */
TEST(reader_sees_a_new_shard_whole)
{
    pthread_t thread;

    for (int i = 0; i < TABLES; i++)
        wq__shards_init(&tables[i], &mem.allocator);
    assert_int_equal(pthread_create(&thread, NULL, count_once_in_each, NULL),
                     0);
    for (int i = 0; i < TABLES;) {
        const uint64_t n = count_in(&tables[i]);
        assert_in_range(n, 0, 1);
        i += n == 1;
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    for (int i = 0; i < TABLES; i++)
        wq__shards_fini(&tables[i]);
}

WQ_TESTS(test(duration_goes_to_the_first_bucket_not_below_it),
         test(sum_stops_at_its_end_and_counts_go_on), test(sums_are_exact),
         counted_test(shards, thread_counts_in_a_shard_of_its_own),
         counted_test(shards, thread_without_memory_counts_in_the_shared_shard),
         counted_test(shards, thread_goes_on_in_the_shard_of_one_that_ended),
         counted_test(shards, more_threads_than_numbers_lose_no_count),
         counted_test(shards, reader_sees_a_new_shard_whole));
