/* SPDX-License-Identifier: MIT */
/* test_registry_stress.c: is every report counted exactly once while threads
 * and queues come and go, and others read?
 *
 * Short-lived threads, more in all than there are numbers for them, report to
 * queues that stay; each of them also makes a queue, reports to it, and ends
 * it. Readers see to it that the text can be read at any time and that no
 * counter ever falls. WQ_STRESS_SECONDS says how long; the default is 1.
 */
#include "support/wq_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include <wq/metrics.h>

#include "support/exposition.h"
#include "support/told_queue.h"

enum { QUEUES = 3, THREADS = 6, READERS = 2, REPORTS = 200 };

struct storm {
    wq_registry     *registry;
    struct told      told[QUEUES];
    void            *handles[QUEUES];
    _Atomic uint64_t reports; /* to queues that stay, each */
    _Atomic uint64_t ns;      /* their sum */
    _Atomic uint64_t lives;   /* queues that came and went */
    atomic_bool      over;
    const char      *broken; /* what a reader found; the first one writes */
    atomic_bool      is_broken;
};

static struct storm storm;

static double
seconds(void)
{
    const char *text = getenv("WQ_STRESS_SECONDS");
    return text ? strtod(text, NULL) : 1.0;
}

static double
now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- those who report ---------------------------------------------------- */

static bool
live_a_short_life(const wq_metrics *sink, uint64_t n)
{
    struct told told;
    void       *handle = NULL;

    told_init(&told);
    told.counts.adds = 2;
    if (sink->open(sink->self, &told.base, n % 2 ? "odd" : "even", &handle))
        return false;
    sink->latency(handle, 10);
    sink->limited(handle, 20);
    sink->close(handle);
    return true;
}

static void *
report(void *unused)
{
    const wq_metrics *sink = wq_registry_sink(storm.registry);
    uint64_t          ns = 0;

    for (int i = 0; i < REPORTS; i++) {
        const int64_t took = (int64_t)1 << i % 40;
        ns += (uint64_t)took;
        for (int q = 0; q < QUEUES; q++)
            sink->work(storm.handles[q], took);
    }
    atomic_fetch_add(&storm.reports, REPORTS);
    atomic_fetch_add(&storm.ns, ns);
    const uint64_t n = atomic_fetch_add(&storm.lives, 1);
    return live_a_short_life(sink, n) ? unused : &storm;
}

/* Starts such threads one after the other. */
static void *
start_many(void *unused)
{
    while (!atomic_load(&storm.over)) {
        pthread_t thread;
        void     *failed;
        if (pthread_create(&thread, NULL, report, NULL) != 0 ||
            pthread_join(thread, &failed) != 0 || failed)
            return &storm;
    }
    return unused;
}

/* ---- those who read ------------------------------------------------------ */

static void
complain(const char *what)
{
    if (!atomic_exchange(&storm.is_broken, true))
        storm.broken = what;
}

/* Complains if the series has fallen. */
static void
watch(const char *text, const char *series, long long *last)
{
    const long long n = exposition_count(text, series);

    if (n < *last)
        complain(series);
    *last = n;
}

static void *
read_on(void *unused)
{
    long long work = -1;
    long long adds = -1;
    long long short_lives = -1;

    while (!atomic_load(&storm.over)) {
        char  *text;
        size_t len;
        if (wq_registry_text(storm.registry, WQ_TEXT_PROMETHEUS, &text, &len))
            continue;
        watch(text, "workqueue_work_duration_seconds_count{name=\"q\"}", &work);
        watch(text, "workqueue_adds_total{name=\"odd\"}", &adds);
        watch(text, "workqueue_queue_duration_seconds_count{name=\"odd\"}",
              &short_lives);
        if (exposition_check(text, len, WQ_TEXT_PROMETHEUS))
            complain("the text cannot be read");
        free(text);
    }
    return unused;
}

/* ---- the storm ----------------------------------------------------------- */

static void
begin(void)
{
    assert_int_equal(wq_registry_create(&storm.registry), WQ_OK);
    const wq_metrics *sink = wq_registry_sink(storm.registry);

    for (int q = 0; q < QUEUES; q++) {
        told_init(&storm.told[q]);
        assert_int_equal(
            sink->open(sink->self, &storm.told[q].base, "q", &storm.handles[q]),
            WQ_OK);
    }
}

static void
rage(void)
{
    const double end = now() + seconds();
    pthread_t    threads[THREADS + READERS];

    for (int i = 0; i < THREADS + READERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL,
                                        i < THREADS ? start_many : read_on,
                                        NULL),
                         0);
    while (now() < end) {
        const struct timespec nap = {.tv_nsec = 10000000};
        (void)nanosleep(&nap, NULL);
    }
    atomic_store(&storm.over, true);
    for (int i = 0; i < THREADS + READERS; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
}

static void
expect_count(const char *text, const char *series, uint64_t expected)
{
    const long long found = exposition_count(text, series);

    if (found != (long long)expected)
        fail_msg("%s: %lld, not %llu", series, found,
                 (unsigned long long)expected);
}

static void
expect_sum(const char *text, uint64_t ns)
{
    const char *sum = exposition_value(
        text, "workqueue_work_duration_seconds_sum{name=\"q\"}");
    char *point;

    assert_non_null(sum);
    const uint64_t whole = strtoull(sum, &point, 10);
    assert_int_equal(whole, ns / 1000000000);
    uint64_t fraction = 0;
    for (int i = 1; i <= 9; i++)
        fraction =
            fraction * 10 + (uint64_t)(*point && point[1] ? *++point - '0' : 0);
    assert_int_equal(fraction, ns % 1000000000);
}

static void
expect_everything(void)
{
    const uint64_t lives = atomic_load(&storm.lives);
    char          *text;
    size_t         len;

    assert_int_equal(
        wq_registry_text(storm.registry, WQ_TEXT_PROMETHEUS, &text, &len),
        WQ_OK);
    expect_count(text, "workqueue_work_duration_seconds_count{name=\"q\"}",
                 QUEUES * atomic_load(&storm.reports));
    expect_sum(text, QUEUES * atomic_load(&storm.ns));
    expect_count(text, "workqueue_queue_duration_seconds_count{name=\"odd\"}",
                 lives / 2);
    expect_count(text, "workqueue_limiter_delay_seconds_count{name=\"even\"}",
                 lives - lives / 2);
    expect_count(text, "workqueue_adds_total{name=\"even\"}",
                 2 * (lives - lives / 2));
    expect_count(text, "workqueue_depth{name=\"odd\"}", 0);
    free(text);
}

/* O-40 O-41 M-09 */
TEST(every_report_is_counted_once_whoever_comes_and_goes)
{
    begin();
    rage();
    if (storm.broken)
        fail_msg("broken: %s", storm.broken);
    assert_true(atomic_load(&storm.lives) > 0);
    expect_everything();
    for (int q = 0; q < QUEUES; q++)
        wq_registry_sink(storm.registry)->close(storm.handles[q]);
    expect_everything();
    wq_registry_destroy(storm.registry);
}

WQ_TESTS(test(every_report_is_counted_once_whoever_comes_and_goes));
