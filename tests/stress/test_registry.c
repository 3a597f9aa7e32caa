/* SPDX-License-Identifier: MIT */
/* test_registry.c: is every report counted exactly once while threads and
 * queues come and go, and others read?
 *
 * Short-lived threads, more in all than the registry has thread numbers, report
 * to queues that stay; each of them also opens a queue, reports to it, and
 * closes it. Readers check that the text is valid at any time and that no
 * counter ever decreases.
 */
#include "stress/crowd.h"

#include <wq/metrics.h>

#include "support/exposition.h"
#include "support/stub_queue.h"

enum { QUEUES = 3, THREADS = 6, READERS = 2, REPORTS = 200 };

static wq_registry      *registry;
static struct stub_queue stubs[QUEUES];
static void             *handles[QUEUES];
static _Atomic uint64_t  reports;     /* to queues that stay, each */
static _Atomic uint64_t  reported_ns; /* their sum */
static _Atomic uint64_t  short_lived; /* queues that were opened and closed */

/* ---- threads that report ------------------------------------------------- */

static void
open_and_close_queue(const wq_metrics *sink, uint64_t n)
{
    struct stub_queue stub;
    void             *handle = NULL;

    stub_queue_init(&stub);
    stub.counts.adds = 2;
    expect_err(
        "open", WQ_OK,
        sink->open(sink->self, &stub.base, n % 2 ? "odd" : "even", &handle));
    sink->latency(handle, 10);
    sink->limited(handle, 20);
    sink->close(handle);
}

static void *
report(void *unused)
{
    const wq_metrics *sink = wq_registry_sink(registry);
    uint64_t          ns = 0;

    for (int i = 0; i < REPORTS; i++) {
        const int64_t took = (int64_t)1 << i % 40;
        ns += (uint64_t)took;
        for (int q = 0; q < QUEUES; q++)
            sink->work(handles[q], took);
    }
    atomic_fetch_add(&reports, REPORTS);
    atomic_fetch_add(&reported_ns, ns);
    open_and_close_queue(sink, atomic_fetch_add(&short_lived, 1));
    return unused;
}

/* Start such threads one after the other. */
static void *
start_many(void *unused)
{
    while (!atomic_load(&stop)) {
        struct crowd one = {.n = 0};
        crowd_start(&one, 1, report, NULL);
        crowd_join(&one);
    }
    return unused;
}

/* ---- threads that read --------------------------------------------------- */

static void
expect_no_decrease(const char *text, const char *series, long long *last)
{
    const long long n = exposition_count(text, series);

    if (n < *last)
        broken("%s: decreased from %lld to %lld", series, *last, n);
    *last = n;
}

static void *
read_text(void *unused)
{
    static const char *const series[] = {
        "workqueue_work_duration_seconds_count{name=\"q\"}",
        "workqueue_adds_total{name=\"odd\"}",
        "workqueue_queue_duration_seconds_count{name=\"odd\"}",
    };
    long long last[] = {-1, -1, -1};

    while (!atomic_load(&stop)) {
        char  *text;
        size_t len;
        if (wq_registry_text(registry, WQ_TEXT_PROMETHEUS, &text, &len))
            continue;
        for (size_t i = 0; i < sizeof series / sizeof series[0]; i++)
            expect_no_decrease(text, series[i], &last[i]);
        const char *wrong = exposition_check(text, len, WQ_TEXT_PROMETHEUS);
        if (wrong)
            broken("text: %s", wrong);
        free(text);
    }
    return unused;
}

/* ---- the run ------------------------------------------------------------- */

static void
open_queues(void)
{
    expect_err("registry", WQ_OK, wq_registry_create(&registry));
    const wq_metrics *sink = wq_registry_sink(registry);

    for (int q = 0; q < QUEUES; q++) {
        stub_queue_init(&stubs[q]);
        expect_err("open", WQ_OK,
                   sink->open(sink->self, &stubs[q].base, "q", &handles[q]));
    }
}

static void
run_threads(void)
{
    struct crowd crowd = {.n = 0};

    crowd_start(&crowd, THREADS, start_many, NULL);
    crowd_start(&crowd, READERS, read_text, NULL);
    nap_ns(share_or_ns(SECOND));
    atomic_store(&stop, true);
    crowd_join(&crowd);
}

static void
expect_count(const char *text, const char *series, uint64_t expected)
{
    const long long found = exposition_count(text, series);

    if (found != (long long)expected)
        fail_msg("%s: expected %llu, got %lld", series,
                 (unsigned long long)expected, found);
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
    const uint64_t lives = atomic_load(&short_lived);
    char          *text;
    size_t         len;

    assert_int_equal(
        wq_registry_text(registry, WQ_TEXT_PROMETHEUS, &text, &len), WQ_OK);
    expect_count(text, "workqueue_work_duration_seconds_count{name=\"q\"}",
                 QUEUES * atomic_load(&reports));
    expect_sum(text, QUEUES * atomic_load(&reported_ns));
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
TEST(every_report_is_counted_once)
{
    open_queues();
    run_threads();
    assert_true(atomic_load(&short_lived) > 0);
    expect_everything();
    for (int q = 0; q < QUEUES; q++)
        wq_registry_sink(registry)->close(handles[q]);
    expect_everything();
    wq_registry_destroy(registry);
}

WQ_TESTS(test(every_report_is_counted_once));
