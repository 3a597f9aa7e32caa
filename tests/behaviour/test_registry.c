/* SPDX-License-Identifier: MIT */
/* test_registry.c: what does a registry say of the queues that report to it?
 *
 * What a queue reports, and when, is in scenarios/metrics.scenario.
 */
#include "registry.h"

/* ---- values -------------------------------------------------------------- */

/* M-06 M-09: seven metrics of Kubernetes, and six more. */
TEST(registry_has_all_metrics_of_a_new_queue)
{
    (void)open_stub("pods");
    assert_values(
        "pods", {"depth", "0"}, {"adds_total", "0"},
        {"queue_duration_seconds_count", "0"},
        {"queue_duration_seconds_sum", "0"},
        {"work_duration_seconds_count", "0"},
        {"work_duration_seconds_sum", "0"}, {"unfinished_work_seconds", "0"},
        {"longest_running_processor_seconds", "0"}, {"retries_total", "0"},
        {"waiting_keys", "0"}, {"paused_queues", "0"}, {"merged_total", "0"},
        {"drops_total", "0"}, {"limiter_delay_seconds_count", "0"},
        {"limiter_delay_seconds_sum", "0"});
    assert_depth("0", "0");
}

/* M-09 */
TEST(counters_and_gauges_are_those_of_the_queue)
{
    open_stub("pods")->counts = (wq_stats){
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
    assert_values("pods", {"depth", "5"}, {"waiting_keys", "7"},
                  {"paused_queues", "1"}, {"unfinished_work_seconds", "2.5"},
                  {"longest_running_processor_seconds", "0.00005"},
                  {"adds_total", "1152921504606846976"}, {"merged_total", "13"},
                  {"retries_total", "17"}, {"drops_total", "19"});
}

/* M-09: the bounds are powers of ten from 10 ns to 1000 s. A bound belongs to
 * its bucket, except 10 us and 100 us: their doubles are a little less. */
TEST(durations_are_counted_in_buckets)
{
    static const struct {
        const char *bound, *count;
    } rows[] = {
        {"1e-08", "3"},
        {"1e-07", "5"},
        {"1e-06", "7"},
        {"9.999999999999999e-06", "8"},
        {"9.999999999999999e-05", "10"}, /* Kubernetes multiplies doubles */
        {"0.001", "13"},
        {"0.01", "15"},
        {"0.1", "17"},
        {"1", "19"},
        {"10", "21"},
        {"100", "23"},
        {"1000", "25"},
        {"+Inf", "26"},
    };
    void   *handle = handle_of(open_stub("pods"));
    char    labels[60];
    int64_t ns = 10;

    for (int i = 0; i < 12; i++, ns *= 10) {
        reg.sink->latency(handle, ns);
        reg.sink->latency(handle, ns + 1);
    }
    reg.sink->latency(handle, 0);
    reg.sink->latency(handle, -5); /* the clock went back */
    assert_values("pods", {"queue_duration_seconds_sum", "2222.222222232"},
                  {"queue_duration_seconds_count", "26"});
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)snprintf(labels, sizeof labels, ",le=\"%s\"", rows[i].bound);
        assert_value("pods", labels, "queue_duration_seconds_bucket",
                     rows[i].count);
    }
}

/* M-09 */
TEST(each_kind_of_duration_has_its_own_histogram)
{
    void *handle = handle_of(open_stub("pods"));

    reg.sink->latency(handle, 1);
    reg.sink->work(handle, 20);
    reg.sink->limited(handle, 300);
    assert_values("pods", {"queue_duration_seconds_sum", "0.000000001"},
                  {"work_duration_seconds_sum", "0.00000002"},
                  {"limiter_delay_seconds_sum", "0.0000003"});
}

/* ---- queues come and go -------------------------------------------------- */

/* O-40 M-09: the longest is the longest of all; an age that is not kept counts
 * as 0. */
TEST(queues_with_the_same_name_are_added_up)
{
    const int64_t ages_ns[] = {700000000, 600000000, -1};

    for (int i = 0; i < 3; i++) {
        struct stub_queue *q = open_stub(i < 2 ? "twins" : "other");

        q->counts.ready = (size_t)i + 1;
        q->counts.adds = (uint64_t)i + 10;
        q->counts.unfinished_ns = q->counts.longest_ns = ages_ns[i];
        reg.sink->latency(handle_of(q), 1000);
    }
    assert_values("twins", {"depth", "3"}, {"adds_total", "21"},
                  {"queue_duration_seconds_count", "2"},
                  {"unfinished_work_seconds", "1.3"},
                  {"longest_running_processor_seconds", "0.7"});
    assert_values("other", {"depth", "3"}, {"unfinished_work_seconds", "0"});
}

/* O-40 M-09: the counters are those at the end, not those of the last text. */
TEST(closed_queue_keeps_its_counters_and_loses_its_gauges)
{
    const wq_depth five = {.priority = 5, .keys = 4};

    for (int life = 1; life <= 3; life++) {
        struct stub_queue *q = open_stub("pods");

        q->counts.adds = 1;
        (void)read_text();
        q->counts = (wq_stats){.ready = 4,
                               .waiting = 2,
                               .unfinished_ns = 9,
                               .longest_ns = 9,
                               .adds = 100,
                               .merged = 30,
                               .retries = 20,
                               .drops = 10,
                               .paused = true};
        q->depths = &five;
        q->depths_len = 1;
        reg.sink->work(handle_of(q), 1000000000);
        (void)read_text();
        close_stub(q);
        assert_values("pods", {"adds_total", decimal(100 * life)},
                      {"merged_total", decimal(30 * life)},
                      {"retries_total", decimal(20 * life)},
                      {"drops_total", decimal(10 * life)},
                      {"work_duration_seconds_sum", decimal(life)},
                      {"depth", "0"}, {"waiting_keys", "0"},
                      {"paused_queues", "0"}, {"unfinished_work_seconds", "0"},
                      {"longest_running_processor_seconds", "0"});
        assert_depth("5", "0");
    }
}

/* O-40 */
TEST(queues_with_the_same_name_may_end_in_any_order)
{
    static const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}};
    struct stub_queue *all[3];

    for (int o = 0; o < 4; o++) {
        for (int i = 0; i < 3; i++) {
            all[i] = open_stub("pods");
            all[i]->counts.adds = all[i]->counts.ready = 1;
        }
        for (int i = 0; i < 3; i++) {
            close_stub(all[orders[o][i]]);
            assert_values("pods", {"depth", decimal(2 - i)},
                          {"adds_total", decimal(3 * o + 3)});
        }
    }
}

/* O-40: a backend that fails for a while must not look like a restart, nor like an
 * empty queue. */
TEST(counters_stay_while_a_queue_cannot_be_read)
{
    struct stub_queue *q = open_stub("pods");

    q->counts.adds = 7;
    q->counts.ready = 3;
    q->counts.paused = true;
    (void)read_text();
    q->stats_err = WQ_EIO;
    q->depths_err = WQ_EIO;
    assert_values("pods", {"adds_total", "7"},
                  {"work_duration_seconds_sum", "0"});
    assert_null(strstr(reg.text, "\nworkqueue_depth{"));
    assert_null(strstr(reg.text, "\nworkqueue_priority_depth{"));
    assert_null(strstr(reg.text, "\nworkqueue_unfinished_work_seconds{"));
    assert_null(strstr(reg.text, "\nworkqueue_paused_queues{"));
    q->stats_err = q->depths_err = WQ_OK;
    assert_values("pods", {"depth", "3"}, {"paused_queues", "1"});
    q->stats_err = WQ_EIO;
    close_stub(q);
    assert_values("pods", {"adds_total", "7"});
}

/* O-40 */
TEST(queue_without_stats_has_durations)
{
    struct stub_queue *q = open_stub("pods");

    q->backend.stats = NULL;
    q->backend.depths = NULL;
    reg.sink->work(handle_of(q), 1000000000);
    assert_values("pods", {"work_duration_seconds_sum", "1"},
                  {"adds_total", "0"});
}

/* O-40 M-06 */
TEST(registry_refuses_a_queue_without_a_name)
{
    struct stub_queue *q = &reg.queues[0];
    void              *handle = NULL;

    stub_queue_init(q);
    assert_err(reg.sink->open(reg.sink->self, &q->base, "", &handle),
               WQ_EINVAL);
    assert_err(reg.sink->open(reg.sink->self, &q->base, NULL, &handle),
               WQ_EINVAL);
    assert_null(handle);
    assert_string_equal(read_text(), "");
}

/* O-40: it reads the counts when it writes a text. */
TEST(sink_of_a_registry_needs_no_changes)
{
    assert_int_equal(reg.sink->size, sizeof(wq_metrics));
    assert_null(reg.sink->changed);
    assert_null(reg.sink->next);
    assert_ptr_equal(wq_registry_sink(reg.registry), reg.sink);
    assert_null(wq_registry_sink(NULL));
    assert_err(wq_registry_create(NULL), WQ_EINVAL);
    wq_registry_destroy(NULL);
}

/* M-07 */
TEST(default_sink_is_set_once_until_it_is_reset)
{
    const wq_metrics another = {.size = sizeof another};
    const wq_metrics wrong = {.size = 1};

    assert_err(wq_metrics_set_default(&wrong), WQ_EINVAL);
    assert_err(wq_metrics_set_default(reg.sink), WQ_OK);
    assert_err(wq_metrics_set_default(&another), WQ_ESTATE);
    assert_err(wq_metrics_set_default(reg.sink), WQ_ESTATE);
    assert_err(wq_metrics_set_default(NULL), WQ_OK);
    assert_err(wq_metrics_set_default(&another), WQ_OK);
    assert_err(wq_metrics_set_default(NULL), WQ_OK);
}

/* ---- priorities ---------------------------------------------------------- */

/* M-09 */
TEST(depth_is_reported_by_priority)
{
    const wq_depth     depths[] = {{7, 3}, {0, 0}, {-2, 1}};
    struct stub_queue *one = open_stub("pods"), *two = open_stub("pods");

    one->depths = two->depths = depths;
    one->depths_len = 3;
    two->depths_len = 1;
    assert_depths({"7", "6"}, {"0", "0"}, {"-2", "1"}, {"other", NULL});
    const char *minus_2 = strstr(reg.text, "priority=\"-2\"");
    const char *zero = strstr(reg.text, "priority=\"0\"");
    assert_true(minus_2 < zero && zero < strstr(reg.text, "priority=\"7\""));

    one->depths_len = two->depths_len = 0;
    assert_depths({"7", "0"}, {"-2", "0"});
}

/* M-09: priority 0 is among the 25. */
TEST(priorities_beyond_25_share_a_label)
{
    enum { MANY = 1000 };
    static wq_depth    depths[MANY];
    struct stub_queue *q = open_stub("pods");
    unsigned           labels = 0;

    for (int i = 0; i < MANY; i++)
        depths[i] = (wq_depth){.priority = MANY - 1 - i, .keys = 2};
    q->depths = depths;
    q->depths_len = 3;
    assert_depths({"other", NULL});
    q->depths_len = MANY;
    assert_depths({"999", "2"}, {"0", "2"},
                  {"other", decimal(2 * (MANY - 25))});
    for (const char *at = reg.text; (at = strstr(at, "priority=\"")); at++)
        labels += !strncmp(strchr(at, '}'), "} 2\n", 4);
    assert_int_equal(labels, 25);

    q->depths_len = 0;
    assert_depths({"other", "0"});
}

/* M-09 */
TEST(queue_without_priorities_has_all_keys_at_0)
{
    struct stub_queue *q = open_stub("pods");

    q->counts.ready = 3;
    q->counts.dirty = 1;
    q->backend.depths = NULL;
    assert_depths({"0", "4"});
    q->backend.stats = NULL;
    assert_depths({"0", "0"});
}

/* M-09 */
TEST(keys_of_unknown_priority_count_as_other)
{
    struct stub_queue *q = open_stub("pods");

    q->depths_err = WQ_EIO;
    assert_depths({"other", NULL});
    q->counts.ready = 3;
    assert_depths({"other", "3"}, {"0", "0"});
}

WQ_TESTS(with_registry(registry_has_all_metrics_of_a_new_queue),
         with_registry(counters_and_gauges_are_those_of_the_queue),
         with_registry(durations_are_counted_in_buckets),
         with_registry(each_kind_of_duration_has_its_own_histogram),
         with_registry(queues_with_the_same_name_are_added_up),
         with_registry(closed_queue_keeps_its_counters_and_loses_its_gauges),
         with_registry(queues_with_the_same_name_may_end_in_any_order),
         with_registry(counters_stay_while_a_queue_cannot_be_read),
         with_registry(queue_without_stats_has_durations),
         with_registry(registry_refuses_a_queue_without_a_name),
         with_registry(sink_of_a_registry_needs_no_changes),
         with_registry(default_sink_is_set_once_until_it_is_reset),
         with_registry(depth_is_reported_by_priority),
         with_registry(priorities_beyond_25_share_a_label),
         with_registry(queue_without_priorities_has_all_keys_at_0),
         with_registry(keys_of_unknown_priority_count_as_other));
