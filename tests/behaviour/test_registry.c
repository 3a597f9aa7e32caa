/* SPDX-License-Identifier: MIT */
/* test_registry.c: what does a registry tell about the queues that report to
 * it?
 *
 * The queues are told ones (support/told_queue.h); what a real queue reports,
 * and when, is another test's question.
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include <wq/metrics.h>

#include "support/exposition.h"
#include "support/told_queue.h"

struct scene {
    wq_registry      *registry;
    const wq_metrics *sink;
    char             *text; /* the last one asked for */
};

static struct scene scene;

static int
open_scene(void **state)
{
    (void)state;
    assert_err(wq_registry_create(&scene.registry), WQ_OK);
    scene.sink = wq_registry_sink(scene.registry);
    scene.text = NULL;
    return 0;
}

static int
close_scene(void **state)
{
    (void)state;
    free(scene.text);
    wq_registry_destroy(scene.registry);
    return 0;
}

/* Make a told queue, and report its beginning. */
static void *
begin(struct told *told, const char *name)
{
    void *handle = NULL;

    told_init(told);
    assert_err(scene.sink->open(scene.sink->self, &told->base, name, &handle),
               WQ_OK);
    assert_non_null(handle);
    return handle;
}

/* Ask for the text, in both formats, and have it judged. */
static const char *
read_text(void)
{
    static const wq_text formats[] = {WQ_TEXT_OPENMETRICS, WQ_TEXT_PROMETHEUS};

    for (size_t i = 0; i < 2; i++) {
        size_t len = 0;
        free(scene.text);
        assert_err(
            wq_registry_text(scene.registry, formats[i], &scene.text, &len),
            WQ_OK);
        assert_int_equal(strlen(scene.text), len);
        const char *broken = exposition_check(scene.text, len, formats[i]);
        if (broken)
            fail_msg("%s in:\n%s", broken, scene.text);
    }
    return scene.text;
}

static void
expect(const char *text, const char *series, const char *value)
{
    const char *found = exposition_value(text, series);

    if (!found || strcmp(found, value) != 0)
        fail_msg("%s is %s, not %s, in:\n%s", series,
                 found ? found : "not there", value, text);
}

/* ---- what is told -------------------------------------------------------- */

/* M-06 M-09: seven of Kubernetes' metrics, and six more. */
TEST(all_metrics_are_there_from_the_beginning)
{
    static const char *const series[] = {
        "workqueue_depth{name=\"pods\"}",
        "workqueue_adds_total{name=\"pods\"}",
        "workqueue_queue_duration_seconds_count{name=\"pods\"}",
        "workqueue_queue_duration_seconds_sum{name=\"pods\"}",
        "workqueue_work_duration_seconds_count{name=\"pods\"}",
        "workqueue_work_duration_seconds_sum{name=\"pods\"}",
        "workqueue_unfinished_work_seconds{name=\"pods\"}",
        "workqueue_longest_running_processor_seconds{name=\"pods\"}",
        "workqueue_retries_total{name=\"pods\"}",
        "workqueue_waiting_keys{name=\"pods\"}",
        "workqueue_paused_queues{name=\"pods\"}",
        "workqueue_merged_total{name=\"pods\"}",
        "workqueue_drops_total{name=\"pods\"}",
        "workqueue_limiter_delay_seconds_count{name=\"pods\"}",
        "workqueue_limiter_delay_seconds_sum{name=\"pods\"}",
        "workqueue_priority_depth{name=\"pods\",priority=\"0\"}",
    };
    struct told told;
    void       *handle = begin(&told, "pods");
    const char *text = read_text();

    for (size_t i = 0; i < sizeof series / sizeof series[0]; i++)
        expect(text, series[i], "0");
    scene.sink->close(handle);
}

/* M-09 */
TEST(counters_and_gauges_are_those_of_the_queue)
{
    struct told told;
    void       *handle = begin(&told, "pods");

    told.counts = (wq_stats){
        .ready = 3,
        .held = 5,
        .dirty = 2,
        .waiting = 7,
        .unfinished_ns = INT64_C(2500000000),
        .longest_ns = 50000,
        .adds = UINT64_C(1) << 60,
        .merged = 13,
        .retries = 17,
        .drops = 19,
        .paused = true,
    };
    const char *text = read_text();
    expect(text, "workqueue_depth{name=\"pods\"}", "5");
    expect(text, "workqueue_waiting_keys{name=\"pods\"}", "7");
    expect(text, "workqueue_paused_queues{name=\"pods\"}", "1");
    expect(text, "workqueue_unfinished_work_seconds{name=\"pods\"}", "2.5");
    expect(text, "workqueue_longest_running_processor_seconds{name=\"pods\"}",
           "0.00005");
    expect(text, "workqueue_adds_total{name=\"pods\"}", "1152921504606846976");
    expect(text, "workqueue_merged_total{name=\"pods\"}", "13");
    expect(text, "workqueue_retries_total{name=\"pods\"}", "17");
    expect(text, "workqueue_drops_total{name=\"pods\"}", "19");
    scene.sink->close(handle);
}

/* M-09: bounds are powers of ten from 10 ns to 1000 s, and belong to their
 * bucket; but 10 and 100 us, which are a little less, to the next. */
TEST(durations_are_counted_in_buckets)
{
    static const char *const bounds[] = {
        "1e-08",
        "1e-07",
        "1e-06",
        "9.999999999999999e-06",
        "9.999999999999999e-05", /* Kubernetes multiplies doubles */
        "0.001",
        "0.01",
        "0.1",
        "1",
        "10",
        "100",
        "1000",
        "+Inf"};
    struct told told;
    void       *handle = begin(&told, "pods");
    char        series[100];
    int64_t     ns = 10;

    for (int i = 0; i < 12; i++, ns *= 10) {
        scene.sink->latency(handle, ns);
        scene.sink->latency(handle, ns + 1);
    }
    scene.sink->latency(handle, 0);
    scene.sink->latency(handle, -5); /* a clock that went back */
    const char *text = read_text();
    for (int i = 0; i < 13; i++) {
        char count[20];
        (void)snprintf(series, sizeof series,
                       "workqueue_queue_duration_seconds_bucket"
                       "{name=\"pods\",le=\"%s\"}",
                       bounds[i]);
        const int less = i == 3 || i == 4;
        (void)snprintf(count, sizeof count, "%d",
                       i < 12 ? 3 + 2 * i - less : 26);
        expect(text, series, count);
    }
    expect(text, "workqueue_queue_duration_seconds_sum{name=\"pods\"}",
           "2222.222222232");
    expect(text, "workqueue_queue_duration_seconds_count{name=\"pods\"}", "26");
    scene.sink->close(handle);
}

/* M-09 */
TEST(each_duration_has_a_histogram_of_its_own)
{
    struct told told;
    void       *handle = begin(&told, "pods");

    scene.sink->latency(handle, 1);
    scene.sink->work(handle, 20);
    scene.sink->limited(handle, 300);
    const char *text = read_text();
    expect(text, "workqueue_queue_duration_seconds_sum{name=\"pods\"}",
           "0.000000001");
    expect(text, "workqueue_work_duration_seconds_sum{name=\"pods\"}",
           "0.00000002");
    expect(text, "workqueue_limiter_delay_seconds_sum{name=\"pods\"}",
           "0.0000003");
    scene.sink->close(handle);
}

/* ---- queues come and go -------------------------------------------------- */

/* O-40 M-09: the longest is the longest of all; what is not kept is 0. */
TEST(queues_of_one_name_are_added_up)
{
    struct told told[3];
    void       *handles[3];

    for (int i = 0; i < 3; i++) {
        handles[i] = begin(&told[i], i < 2 ? "twins" : "other");
        told[i].counts.ready = (size_t)i + 1;
        told[i].counts.adds = (uint64_t)i + 10;
        scene.sink->latency(handles[i], 1000);
    }
    told[0].counts.unfinished_ns = told[0].counts.longest_ns = 700000000;
    told[1].counts.unfinished_ns = told[1].counts.longest_ns = 600000000;
    const char *text = read_text();
    expect(text, "workqueue_depth{name=\"twins\"}", "3");
    expect(text, "workqueue_adds_total{name=\"twins\"}", "21");
    expect(text, "workqueue_queue_duration_seconds_count{name=\"twins\"}", "2");
    expect(text, "workqueue_unfinished_work_seconds{name=\"twins\"}", "1.3");
    expect(text, "workqueue_longest_running_processor_seconds{name=\"twins\"}",
           "0.7");
    expect(text, "workqueue_depth{name=\"other\"}", "3");
    expect(text, "workqueue_unfinished_work_seconds{name=\"other\"}", "0");
    for (int i = 0; i < 3; i++)
        scene.sink->close(handles[i]);
}

/* O-40 M-09: the last numbers are those at the end, not those of the last
 * text. */
TEST(counters_of_a_queue_stay_when_it_is_destroyed_and_gauges_do_not)
{
    struct told    told;
    const wq_depth five = {.priority = 5, .keys = 4};
    const wq_stats at_the_end = {.ready = 4,
                                 .waiting = 2,
                                 .unfinished_ns = 9,
                                 .longest_ns = 9,
                                 .adds = 100,
                                 .merged = 30,
                                 .retries = 20,
                                 .drops = 10,
                                 .paused = true};

    for (int life = 1; life <= 3; life++) {
        void *handle = begin(&told, "pods");
        told.counts.adds = 1;
        (void)read_text();
        told.counts = at_the_end;
        told.depths = &five;
        told.depths_len = 1;
        scene.sink->work(handle, 1000000000);
        (void)read_text();
        scene.sink->close(handle);

        const char *text = read_text();
        assert_int_equal(
            exposition_count(text, "workqueue_adds_total{name=\"pods\"}"),
            100 * life);
        assert_int_equal(
            exposition_count(text, "workqueue_merged_total{name=\"pods\"}"),
            30 * life);
        assert_int_equal(
            exposition_count(text, "workqueue_retries_total{name=\"pods\"}"),
            20 * life);
        assert_int_equal(
            exposition_count(text, "workqueue_drops_total{name=\"pods\"}"),
            10 * life);
        assert_int_equal(
            exposition_count(
                text, "workqueue_work_duration_seconds_sum{name=\"pods\"}"),
            life);
        expect(text, "workqueue_depth{name=\"pods\"}", "0");
        expect(text, "workqueue_waiting_keys{name=\"pods\"}", "0");
        expect(text, "workqueue_paused_queues{name=\"pods\"}", "0");
        expect(text, "workqueue_unfinished_work_seconds{name=\"pods\"}", "0");
        expect(text,
               "workqueue_longest_running_processor_seconds{name=\"pods\"}",
               "0");
        expect(text, "workqueue_priority_depth{name=\"pods\",priority=\"5\"}",
               "0");
    }
}

/* O-40: of two queues of one name, either may go first. */
TEST(queues_of_one_name_end_in_any_order)
{
    static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}};
    struct told      told[3];
    void            *handles[3];

    for (int o = 0; o < 4; o++) {
        for (int i = 0; i < 3; i++) {
            handles[i] = begin(&told[i], "pods");
            told[i].counts.adds = told[i].counts.ready = 1;
        }
        for (int i = 0; i < 3; i++) {
            scene.sink->close(handles[orders[o][i]]);
            const char *text = read_text();
            assert_int_equal(
                exposition_count(text, "workqueue_depth{name=\"pods\"}"),
                2 - i);
            assert_int_equal(
                exposition_count(text, "workqueue_adds_total{name=\"pods\"}"),
                3 * o + 3);
        }
    }
}

/* O-40: a backend that fails for a while must not look like a restart. */
TEST(queue_that_cannot_tell_keeps_its_counters)
{
    struct told told;
    void       *handle = begin(&told, "pods");

    told.counts.adds = 7;
    told.counts.ready = 3;
    told.counts.paused = true;
    (void)read_text();
    told.stats_err = WQ_EIO;
    told.depths_err = WQ_EIO;
    const char *text = read_text();
    expect(text, "workqueue_adds_total{name=\"pods\"}", "7");
    expect(text, "workqueue_depth{name=\"pods\"}", "0");
    expect(text, "workqueue_paused_queues{name=\"pods\"}", "0");
    scene.sink->close(handle);
    expect(read_text(), "workqueue_adds_total{name=\"pods\"}", "7");
}

/* O-40 */
TEST(queue_that_knows_no_numbers_still_has_durations)
{
    struct told told;
    void       *handle = begin(&told, "pods");

    told.backend.stats = NULL;
    told.backend.depths = NULL;
    scene.sink->work(handle, 1000000000);
    const char *text = read_text();
    expect(text, "workqueue_work_duration_seconds_sum{name=\"pods\"}", "1");
    expect(text, "workqueue_adds_total{name=\"pods\"}", "0");
    scene.sink->close(handle);
}

/* O-40 M-06: a queue without a name is none of ours. */
TEST(registry_refuses_what_has_no_name)
{
    struct told told;
    void       *handle = NULL;

    told_init(&told);
    assert_err(scene.sink->open(scene.sink->self, &told.base, "", &handle),
               WQ_EINVAL);
    assert_err(scene.sink->open(scene.sink->self, &told.base, NULL, &handle),
               WQ_EINVAL);
    assert_null(handle);
    assert_string_equal(read_text(), "");
}

/* O-40: it asks; it need not be told. */
TEST(registry_is_a_sink_that_asks)
{
    assert_int_equal(scene.sink->size, sizeof(wq_metrics));
    assert_null(scene.sink->changed);
    assert_null(scene.sink->next);
    assert_ptr_equal(wq_registry_sink(scene.registry), scene.sink);
    assert_null(wq_registry_sink(NULL));
    assert_err(wq_registry_create(NULL), WQ_EINVAL);
    wq_registry_destroy(NULL);
}

/* M-07: the registry as a default; the second one is refused. */
TEST(registry_can_be_the_default_sink_once)
{
    const wq_metrics another = {.size = sizeof another};
    wq_metrics       wrong = another;

    wrong.size = 1;
    assert_err(wq_metrics_set_default(&wrong), WQ_EINVAL);
    assert_err(wq_metrics_set_default(scene.sink), WQ_OK);
    assert_err(wq_metrics_set_default(&another), WQ_ESTATE);
    assert_err(wq_metrics_set_default(scene.sink), WQ_ESTATE);
    assert_err(wq_metrics_set_default(NULL), WQ_OK);
    assert_err(wq_metrics_set_default(&another), WQ_OK);
    assert_err(wq_metrics_set_default(NULL), WQ_OK);
}

/* ---- priorities ---------------------------------------------------------- */

static long long
depth_at(const char *text, const char *priority)
{
    char series[100];

    (void)snprintf(series, sizeof series,
                   "workqueue_priority_depth{name=\"pods\",priority=\"%s\"}",
                   priority);
    return exposition_count(text, series);
}

/* M-09 */
TEST(depth_is_told_by_priority)
{
    const wq_depth depths[] = {{7, 3}, {0, 0}, {-2, 1}};
    struct told    told[2];
    void          *one = begin(&told[0], "pods");
    void          *two = begin(&told[1], "pods");

    told[0].depths = depths;
    told[0].depths_len = 3;
    told[1].depths = depths;
    told[1].depths_len = 1;
    const char *text = read_text();
    assert_int_equal(depth_at(text, "7"), 6);
    assert_int_equal(depth_at(text, "0"), 0);
    assert_int_equal(depth_at(text, "-2"), 1);
    assert_int_equal(depth_at(text, "other"), -1);
    const char *minus = strstr(text, "priority=\"-2\"");
    assert_true(minus < strstr(text, "priority=\"0\""));
    assert_true(strstr(text, "priority=\"0\"") <
                strstr(text, "priority=\"7\""));

    told[0].depths_len = told[1].depths_len = 0; /* they are gone */
    text = read_text();
    assert_int_equal(depth_at(text, "7"), 0);
    assert_int_equal(depth_at(text, "-2"), 0);
    scene.sink->close(one);
    scene.sink->close(two);
}

enum { MANY = 1000 };

/* M-09: 0 is among the 25, whatever comes first. */
TEST(priorities_beyond_25_share_a_label)
{
    static wq_depth depths[MANY];
    struct told     told;
    void           *handle = begin(&told, "pods");
    char            priority[20];
    unsigned        labels = 0;

    for (int i = 0; i < MANY; i++)
        depths[i] = (wq_depth){.priority = MANY - 1 - i, .keys = 2};
    told.depths = depths;
    told.depths_len = 3;
    assert_int_equal(depth_at(read_text(), "other"), -1);
    told.depths_len = MANY;
    const char *text = read_text();
    assert_int_equal(depth_at(text, "999"), 2);
    assert_int_equal(depth_at(text, "0"), 2);
    assert_int_equal(depth_at(text, "other"), 2 * (MANY - 25));
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(priority, sizeof priority, "%d", i);
        labels += depth_at(text, priority) == 2;
    }
    assert_int_equal(labels, 25);

    told.depths_len = 0;
    assert_int_equal(depth_at(read_text(), "other"), 0);
    scene.sink->close(handle);
}

/* M-09 */
TEST(queue_without_priorities_has_all_keys_at_0)
{
    struct told told;
    void       *handle = begin(&told, "pods");

    told.counts.ready = 3;
    told.counts.dirty = 1;
    told.backend.depths = NULL;
    assert_int_equal(depth_at(read_text(), "0"), 4);
    told.backend.stats = NULL;
    assert_int_equal(depth_at(read_text(), "0"), 0);
    scene.sink->close(handle);
}

/* M-09: other is what is there and not known. */
TEST(queue_that_cannot_tell_its_priorities_has_them_anywhere)
{
    struct told told;
    void       *handle = begin(&told, "pods");

    told.depths_err = WQ_EIO;
    assert_int_equal(depth_at(read_text(), "other"), -1);
    told.counts.ready = 3;
    assert_int_equal(depth_at(read_text(), "other"), 3);
    assert_int_equal(depth_at(read_text(), "0"), 0);
    scene.sink->close(handle);
}

#define registry_test(name) test_with(name, open_scene, close_scene)

WQ_TESTS(
    registry_test(all_metrics_are_there_from_the_beginning),
    registry_test(counters_and_gauges_are_those_of_the_queue),
    registry_test(durations_are_counted_in_buckets),
    registry_test(each_duration_has_a_histogram_of_its_own),
    registry_test(queues_of_one_name_are_added_up),
    registry_test(
        counters_of_a_queue_stay_when_it_is_destroyed_and_gauges_do_not),
    registry_test(queues_of_one_name_end_in_any_order),
    registry_test(queue_that_cannot_tell_keeps_its_counters),
    registry_test(queue_that_knows_no_numbers_still_has_durations),
    registry_test(registry_refuses_what_has_no_name),
    registry_test(registry_is_a_sink_that_asks),
    registry_test(registry_can_be_the_default_sink_once),
    registry_test(depth_is_told_by_priority),
    registry_test(priorities_beyond_25_share_a_label),
    registry_test(queue_without_priorities_has_all_keys_at_0),
    registry_test(queue_that_cannot_tell_its_priorities_has_them_anywhere));
