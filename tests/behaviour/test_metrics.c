/* SPDX-License-Identifier: MIT */
/* test_metrics.c: what can a scenario not test of metrics?
 *
 * What a queue reports, and when, is in scenarios/metrics.scenario. Here are the
 * text of the registry, large batches, and queues without metrics.
 */
#include "metered.h"

#include <stdio.h>

/* The text of the registry has the line `workqueue_SERIES{name="test"} VALUE`. */
static void
assert_value(wq_registry *registry, const char *series, const char *value)
{
    char  *text = NULL;
    size_t len = 0;
    char   line[160];

    (void)snprintf(line, sizeof line, "\nworkqueue_%s{name=\"test\"} %s\n",
                   series, value);
    assert_err(wq_registry_text(registry, WQ_TEXT_PROMETHEUS, &text, &len),
               WQ_OK);
    if (!strstr(text, line))
        fail_msg("no line \"%s\" in\n%s", line, text);
    free(text);
}

/* M-02: the steps of client-go's own test. */
TEST(registry_has_the_numbers_of_client_go)
{
    wq_registry *r = NULL;

    assert_err(wq_registry_create(&r), WQ_OK);
    struct timed *t =
        timed_create(WQ_CONFIG(.name = "test", .metrics = wq_registry_sink(r)));

    add(t->q, "foo");
    assert_value(r, "adds_total", "1");
    assert_value(r, "depth", "1");
    step(t, 50 * US);
    wq_item *item = take_key(t->q, "foo");
    assert_value(r, "queue_duration_seconds_sum", "0.00005");
    assert_value(r, "queue_duration_seconds_count", "1");
    for (int i = 0; i < 5; i++)
        add(t->q, "foo");
    assert_value(r, "adds_total", "2");
    assert_value(r, "depth", "1");
    step(t, 25 * US);
    finish(t->q, item);
    assert_value(r, "work_duration_seconds_sum", "0.000025");
    assert_value(r, "depth", "1");
    item = take_key(t->q, "foo");
    assert_value(r, "queue_duration_seconds_sum", "0.000075");
    step(t, 1 * MS);
    assert_value(r, "unfinished_work_seconds", "0.001");
    assert_value(r, "longest_running_processor_seconds", "0.001");
    finish(t->q, item);
    assert_value(r, "work_duration_seconds_sum", "0.001025");
    assert_value(r, "work_duration_seconds_count", "2");
    timed_destroy(t);
    wq_registry_destroy(r);
}

/* M-04: wq_done_many() ends more keys than it does under one lock. */
TEST(keys_of_a_large_batch_are_reported_one_by_one)
{
    enum { MANY = 200 };
    struct metered *m = *state;
    wq_item        *items[MANY] = {NULL};
    size_t          n = 0;

    for (uint64_t i = 0; i < MANY; i++) {
        assert_err(wq_add(m->q, wq_u64(&i)), WQ_OK);
        step(m->t, 1);
    }
    assert_err(wq_get_many(m->q, items, MANY, 0, &n), WQ_OK);
    step(m->t, 3);
    assert_err(wq_done_many(m->q, items, n), WQ_OK);
    assert_int_equal(m->r.latency.n, MANY);
    assert_int_equal(m->r.work.n, MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(m->r.latency.ns[i], MANY - i);
        assert_int_equal(m->r.work.ns[i], 3);
    }
}

/* M-06 */
TEST(queue_without_a_name_or_a_sink_has_no_metrics)
{
    struct recorder r;

    recorder_init(&r);
    const struct {
        const char       *name;
        const wq_metrics *sink;
    } rows[] = {{NULL, &r.sink}, {"", &r.sink}, {"test", NULL}};

    for (int i = 0; i < 3; i++) {
        struct timed *t = timed_create(
            WQ_CONFIG(.name = rows[i].name, .metrics = rows[i].sink));
        add(t->q, "foo");
        assert_int_equal(info_of(t->q, "foo").ready_ns, -1);
        (void)take(t->q);
        assert_int_equal(info_of(t->q, "foo").held_ns, -1);
        assert_int_equal(counts_of(t->q).unfinished_ns, -1);
        assert_int_equal(counts_of(t->q).longest_ns, -1);
        assert_int_equal(counts_of(t->q).adds, 1);
        timed_destroy(t);
    }
    for (int i = 0; i < RECORDER_CALLS; i++)
        assert_int_equal(r.calls[i], 0);
}

WQ_TESTS(test(registry_has_the_numbers_of_client_go),
         with_sink(keys_of_a_large_batch_are_reported_one_by_one),
         test(queue_without_a_name_or_a_sink_has_no_metrics));
