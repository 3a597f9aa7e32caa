/* SPDX-License-Identifier: MIT */
/* test_metrics.c: what is a sink told, and when?
 *
 * On a fake clock, so that every duration is exact. What happens once is seen
 * by a sink of the test's own; what can be asked for, through wq_read_stats() too;
 * and the scene of client-go's own test also in the registry's text.
 */
#include "metered.h"

#include <dirent.h>
#include <stdio.h>

#include <wq/limiter.h>

static void
rate_limit(struct metered *m, const char *key)
{
    assert_err(wq_add_rate_limited(m->t.q, wq_str(key)), WQ_OK);
}

/* ---- client-go's scene -------------------------------------------------- */

/* M-02 */
TEST(scene_of_client_go_gives_the_same_numbers)
{
    struct metered *m = *state;
    wq_queue       *q = m->t.q;

    add(q, "foo");
    assert_adds_and_depth(m, 1, 1);
    step(&m->t, 50 * US);
    wq_item *item = take_key(q, "foo");
    assert_told(m->r.latency, 50 * US);
    assert_adds_and_depth(m, 1, 0);

    for (int i = 0; i < 5; i++)
        add(q, "foo");
    assert_adds_and_depth(m, 2, 1);
    assert_int_equal(stats(q).merged, 4);
    step(&m->t, 25 * US);
    finish(q, item);
    assert_told(m->r.work, 25 * US);
    assert_adds_and_depth(m, 2, 1);

    item = take_key(q, "foo");
    assert_told(m->r.latency, 50 * US, 25 * US);
    step(&m->t, 1 * MS);
    assert_int_equal(stats(q).unfinished_ns, 1 * MS);
    assert_int_equal(stats(q).longest_ns, 1 * MS);
    finish(q, item);
    assert_told(m->r.work, 25 * US, 1 * MS);
    assert_adds_and_depth(m, 2, 0);
    assert_int_equal(stats(q).unfinished_ns, 0);
    assert_int_equal(stats(q).longest_ns, 0);
    assert_int_equal(stats(q).gets, 2);
    assert_int_equal(stats(q).dones, 2);
    assert_int_equal(m->r.limited.n, 0);
}

/* The registry's text has this line. */
static void
assert_line(wq_registry *registry, const char *line)
{
    char  *text = NULL;
    size_t len = 0;
    char   whole[160];

    (void)snprintf(whole, sizeof whole, "\n%s\n", line);
    assert_err(wq_registry_text(registry, WQ_TEXT_PROMETHEUS, &text, &len),
               WQ_OK);
    if (!strstr(text, whole))
        fail_msg("no line \"%s\" in\n%s", line, text);
    free(text);
}

/* M-02 */
TEST(scene_of_client_go_reads_the_same_in_the_registry)
{
    wq_registry *registry = NULL;

    assert_err(wq_registry_create(&registry), WQ_OK);
    struct timed *t = timed_create(
        WQ_CONFIG(.name = "test", .metrics = wq_registry_sink(registry)));

    add(t->q, "foo");
    assert_line(registry, "workqueue_adds_total{name=\"test\"} 1");
    assert_line(registry, "workqueue_depth{name=\"test\"} 1");
    step(t, 50 * US);
    wq_item *item = take_key(t->q, "foo");
    assert_line(registry,
                "workqueue_queue_duration_seconds_sum{name=\"test\"} 0.00005");
    assert_line(registry,
                "workqueue_queue_duration_seconds_count{name=\"test\"} 1");
    for (int i = 0; i < 5; i++)
        add(t->q, "foo");
    assert_line(registry, "workqueue_adds_total{name=\"test\"} 2");
    assert_line(registry, "workqueue_depth{name=\"test\"} 1");
    step(t, 25 * US);
    finish(t->q, item);
    assert_line(registry,
                "workqueue_work_duration_seconds_sum{name=\"test\"} 0.000025");
    assert_line(registry, "workqueue_depth{name=\"test\"} 1");
    item = take_key(t->q, "foo");
    assert_line(registry, "workqueue_queue_duration_seconds_sum{name=\"test\"} "
                          "0.000075");
    step(t, 1 * MS);
    assert_line(registry,
                "workqueue_unfinished_work_seconds{name=\"test\"} 0.001");
    assert_line(
        registry,
        "workqueue_longest_running_processor_seconds{name=\"test\"} 0.001");
    finish(t->q, item);
    assert_line(registry,
                "workqueue_work_duration_seconds_sum{name=\"test\"} 0.001025");
    assert_line(registry,
                "workqueue_work_duration_seconds_count{name=\"test\"} 2");
    timed_destroy(t);
    wq_registry_destroy(registry);
}

/* ---- ages of held keys -------------------------------------------------- */

/* M-01 M-05 */
TEST(ages_of_held_keys_are_exact_at_any_time)
{
    struct metered *m = *state;
    wq_queue       *q = m->t.q;

    assert_int_equal(stats(q).unfinished_ns, 0);
    assert_int_equal(stats(q).longest_ns, 0);
    add(q, "foo");
    add(q, "bar");
    add(q, "baz");
    wq_item *foo = take_key(q, "foo");
    step(&m->t, 10);
    wq_item *bar = take_key(q, "bar");
    step(&m->t, 3);
    wq_item *baz = take_key(q, "baz");
    assert_int_equal(stats(q).unfinished_ns, 13 + 3);
    assert_int_equal(stats(q).longest_ns, 13);
    step(&m->t, 1);
    assert_int_equal(stats(q).unfinished_ns, 14 + 4 + 1);
    assert_int_equal(stats(q).longest_ns, 14);
    finish(q, bar); /* neither the oldest nor the newest */
    assert_int_equal(stats(q).unfinished_ns, 14 + 1);
    assert_int_equal(stats(q).longest_ns, 14);
    finish(q, foo);
    assert_int_equal(stats(q).unfinished_ns, 1);
    assert_int_equal(stats(q).longest_ns, 1);
    finish(q, baz);
    assert_int_equal(stats(q).unfinished_ns, 0);
    assert_int_equal(stats(q).longest_ns, 0);
}

/* M-01 M-05: there, nobody refreshes them after a shutdown. */
TEST(ages_go_on_after_a_shutdown)
{
    struct metered *m = *state;

    add(m->t.q, "foo");
    wq_item *item = take(m->t.q);
    step(&m->t, 1 * MS);
    wq_shutdown(m->t.q);
    step(&m->t, HOUR);
    assert_int_equal(stats(m->t.q).unfinished_ns, HOUR + 1 * MS);
    assert_int_equal(stats(m->t.q).longest_ns, HOUR + 1 * MS);
    finish(m->t.q, item);
    assert_told(m->r.work, HOUR + 1 * MS);
}

static int
count_threads(void)
{
    int  n = 0;
    DIR *tasks = opendir("/proc/self/task");

    if (!tasks)
        wq_test_skip("the system does not tell which threads there are");
    while (readdir(tasks))
        n++;
    (void)closedir(tasks);
    return n;
}

/* M-01 M-06 */
TEST(metrics_start_no_thread)
{
    const int       before = count_threads();
    struct metered *m = metered_create(WQ_CONFIG(.order = NULL));

    add(m->t.q, "foo");
    wq_item *item = take(m->t.q);
    step(&m->t, HOUR);
    assert_int_equal(stats(m->t.q).longest_ns, HOUR);
    assert_int_equal(count_threads(), before);
    finish(m->t.q, item);
    metered_destroy(m);
}

/* M-05: -1 says "not kept", so no age is below 0. */
TEST(ages_are_never_negative)
{
    struct metered *m = *state;
    wq_queue       *q = m->t.q;

    wq_clock_fake_set(m->t.clock, 100);
    add(q, "foo");
    wq_item *item = take(q);
    wq_clock_fake_set(m->t.clock, 99);
    assert_int_equal(stats(q).unfinished_ns, 0);
    assert_int_equal(stats(q).longest_ns, 0);
    assert_int_equal(look(q, "foo").held_ns, 0);
    finish(q, item);
    add(q, "foo");
    wq_clock_fake_set(m->t.clock, 0);
    assert_int_equal(look(q, "foo").ready_ns, 0);
    work_on(q, "foo");
    assert_told(m->r.latency, 0, 0);
    assert_told(m->r.work, 0, 0);
}

/* M-05 */
TEST(sum_of_ages_is_not_below_the_longest)
{
    struct metered *m = *state;
    wq_queue       *q = m->t.q;

    wq_clock_fake_set(m->t.clock, 50);
    add(q, "foo");
    add(q, "bar");
    (void)take(q);
    wq_clock_fake_set(m->t.clock, 100);
    (void)take(q);
    wq_clock_fake_set(m->t.clock, 99); /* bar is -1 old */
    assert_int_equal(stats(q).longest_ns, 49);
    assert_int_equal(stats(q).unfinished_ns, 49);
}

/* M-05 */
TEST(sum_of_ages_stops_at_the_end_of_time)
{
    struct metered *m = *state;
    wq_queue       *q = m->t.q;

    wq_clock_fake_set(m->t.clock, INT64_MIN);
    add(q, "foo");
    add(q, "bar");
    (void)take(q);
    wq_clock_fake_set(m->t.clock, INT64_MAX);
    assert_int_equal(stats(q).longest_ns, INT64_MAX);
    assert_int_equal(stats(q).unfinished_ns, INT64_MAX);
    (void)take(q);
    assert_int_equal(stats(q).unfinished_ns, INT64_MAX);
}

/* ---- depth -------------------------------------------------------------- */

/* M-03 */
TEST(depth_counts_dirty_keys_and_len_does_not)
{
    struct metered *m = *state;
    wq_queue       *q = m->t.q;

    add(q, "foo");
    add(q, "bar");
    wq_item *item = take_key(q, "foo");
    add(q, "foo");
    assert_int_equal(wq_len(q), 1);
    assert_int_equal(m->r.sum.depth, 2);
    assert_int_equal(stats(q).ready, 1);
    assert_int_equal(stats(q).dirty, 1);
    assert_adds_and_depth(m, 3, 2);
    finish(q, item);
    assert_int_equal(wq_len(q), 2);
    assert_adds_and_depth(m, 3, 2);
}

/* M-08 */
TEST(retries_are_adds_with_a_delay_whatever_it_is)
{
    struct metered *m = *state;

    add_after(&m->t, "a", 0);
    add_after(&m->t, "b", -1 * S);
    add(m->t.q, "c");
    add_after(&m->t, "d", 1 * S);
    assert_adds_and_depth(m, 3, 3);
    assert_int_equal(stats(m->t.q).retries, 3);
    assert_int_equal(m->r.sum.retries, 3);
    step(&m->t, 1 * S);
    add(m->t.q, "c"); /* who changes something next, tells */
    assert_adds_and_depth(m, 4, 4);
    assert_int_equal(stats(m->t.q).retries, 3);
}

/* M-08 */
TEST(retries_count_every_key_of_a_batch)
{
    struct metered *m = *state;
    const wq_key    keys[] = {wq_str("a"), wq_str("b"), wq_str("c")};

    assert_err(wq_add_with(m->t.q, WQ_ADD(.after_ns = 1), keys, 3), WQ_OK);
    assert_int_equal(m->r.sum.retries, 3);
    assert_err(wq_add_with(m->t.q, WQ_ADD(.rate_limited = true), keys, 3),
               WQ_OK);
    assert_int_equal(m->r.sum.retries, 6);
    assert_err(wq_add_with(m->t.q, WQ_ADD(.after_ns = -1), keys, 3), WQ_OK);
    assert_err(wq_add_with(m->t.q, WQ_ADD(.debounce_ns = 1), keys, 3), WQ_OK);
    assert_int_equal(m->r.sum.retries, 6);
    assert_int_equal(stats(m->t.q).retries, 6);
}

/* M-08 */
TEST(add_that_fails_is_no_retry)
{
    struct metered *m = *state;

    wq_shutdown(m->t.q);
    assert_err(wq_add_after(m->t.q, wq_str("a"), 1), WQ_ESHUTDOWN);
    assert_err(wq_add_after(m->t.q, wq_str("a"), 0), WQ_ESHUTDOWN);
    assert_err(wq_add_rate_limited(m->t.q, wq_str("a")), WQ_ESHUTDOWN);
    assert_int_equal(stats(m->t.q).retries, 0);
    assert_int_equal(m->r.calls[RECORDER_CHANGED], 0);
    assert_int_equal(m->r.limited.n, 0);
}

/* O-30: what was taken back or had to make room is told at once. */
TEST(keys_that_go_unseen_are_told)
{
    struct metered *m = metered_create(
        WQ_CONFIG(.max_len = 2, .overflow = WQ_OVERFLOW_DROP_OLDEST));

    add(m->t.q, "a");
    add(m->t.q, "b");
    add(m->t.q, "c"); /* a makes room */
    assert_adds_and_depth(m, 3, 2);
    assert_int_equal(m->r.sum.drops, 1);
    assert_int_equal(stats(m->t.q).displaced, 1);
    assert_err(wq_remove(m->t.q, wq_str("b")), WQ_OK);
    assert_adds_and_depth(m, 3, 1);
    assert_int_equal(stats(m->t.q).removed, 1);
    add_after(&m->t, "d", 1 * S);
    wq_shutdown(m->t.q);
    assert_int_equal(m->r.sum.drops, 2);
    assert_adds_and_depth(m, 3, 1);
    metered_destroy(m);
}

/* O-30 */
TEST(key_that_is_given_up_is_told)
{
    struct metered *m = metered_create(WQ_CONFIG(.max_retries = 1));

    rate_limit(m, "foo");
    assert_err(wq_add_rate_limited(m->t.q, wq_str("foo")), WQ_EGIVENUP);
    assert_int_equal(m->r.sum.drops, 1);
    assert_int_equal(m->r.sum.retries, 1);
    assert_int_equal(stats(m->t.q).drops, 1);
    metered_destroy(m);
}

/* O-62 O-30 */
TEST(drops_that_a_caller_counts_are_told)
{
    struct metered *m = *state;

    assert_err(wq_count_drops(m->t.q, 3), WQ_OK);
    assert_err(wq_count_drops(m->t.q, 0), WQ_OK);
    assert_int_equal(m->r.sum.drops, 3);
    assert_int_equal(stats(m->t.q).drops, 3);
    assert_adds_and_depth(m, 0, 0);
}

/* ---- durations ---------------------------------------------------------- */

/* M-04 */
TEST(latency_runs_from_the_first_add)
{
    struct metered *m = *state;
    wq_queue       *q = m->t.q;

    step(&m->t, 7);
    add(q, "foo");
    step(&m->t, 10);
    add(q, "foo");
    step(&m->t, 100);
    wq_item *item = take(q);
    assert_told(m->r.latency, 110);

    step(&m->t, 1000);
    add(q, "foo");
    step(&m->t, 10000);
    add(q, "foo");
    finish(q, item);
    assert_told(m->r.work, 11000);
    step(&m->t, 5);
    work_on(q, "foo");
    assert_told(m->r.latency, 110, 10005);
    assert_told(m->r.work, 11000, 0);
}

/* M-04: what was taken back does not count. */
TEST(latency_runs_from_the_add_after_a_removal)
{
    struct metered *m = *state;

    add(m->t.q, "foo");
    step(&m->t, 10);
    assert_err(wq_remove(m->t.q, wq_str("foo")), WQ_OK);
    add(m->t.q, "foo");
    step(&m->t, 3);
    work_on(m->t.q, "foo");
    assert_told(m->r.latency, 3);
}

/* M-04 */
TEST(raising_a_key_does_not_make_it_younger)
{
    struct metered *m = *state;
    const wq_key    foo = wq_str("foo");

    add(m->t.q, "foo");
    step(&m->t, 10);
    assert_err(wq_add_with(m->t.q, WQ_ADD(.priority = 5), &foo, 1), WQ_OK);
    step(&m->t, 3);
    work_on(m->t.q, "foo");
    assert_told(m->r.latency, 13);
}

/* M-04 Q-21 */
TEST(done_of_a_key_that_is_not_held_reports_nothing)
{
    struct metered *m = *state;
    wq_queue       *q = m->t.q;

    assert_err(wq_done_key(q, wq_str("foo")), WQ_ESTATE);
    add(q, "foo");
    assert_err(wq_done_key(q, wq_str("foo")), WQ_ESTATE);
    wq_item *item = take(q);
    finish(q, item);
    assert_err(wq_done(q, item), WQ_ESTATE);
    wq_item *again = item;
    assert_err(wq_done_many(q, &again, 1), WQ_ESTATE);
    assert_err(wq_next(q, 0, &again), WQ_ESTATE);
    assert_int_equal(m->r.work.n, 1);
    assert_int_equal(m->r.latency.n, 1);
}

/* M-04 */
TEST(done_by_key_reports_like_done)
{
    struct metered *m = *state;

    add(m->t.q, "foo");
    (void)take(m->t.q);
    step(&m->t, 10);
    assert_err(wq_done_key(m->t.q, wq_str("foo")), WQ_OK);
    assert_told(m->r.work, 10);
}

/* M-04 */
TEST(latency_of_a_key_that_waited_runs_from_its_deadline)
{
    struct metered *m = *state;
    wq_queue       *q = m->t.q;

    add_after(&m->t, "foo", 1 * S);
    step(&m->t, 1 * S + 30);
    assert_int_equal(look(q, "foo").ready_ns, 30);
    step(&m->t, 5);
    wq_item *item = take(q);
    assert_told(m->r.latency, 35);

    add_after(&m->t, "foo", 10); /* it comes while the key is held */
    step(&m->t, 100);
    finish(q, item);
    step(&m->t, 1);
    work_on(q, "foo");
    assert_told(m->r.latency, 35, 91);
    assert_told(m->r.work, 100, 0);
}

/* M-04: nobody looked at the queue in between. */
TEST(latency_does_not_depend_on_when_the_deadline_is_noticed)
{
    struct metered *m = *state;

    add_after(&m->t, "foo", 1 * S);
    add_after(&m->t, "bar", 2 * S);
    step(&m->t, 10 * S);
    work_on(m->t.q, "foo");
    work_on(m->t.q, "bar");
    assert_told(m->r.latency, 9 * S, 8 * S);
}

/* M-04: nobody had noticed the deadline before the add. */
TEST(latency_of_an_add_after_the_deadline_runs_from_the_deadline)
{
    struct metered *m = *state;

    add_after(&m->t, "foo", 10);
    step(&m->t, 15);
    add(m->t.q, "foo");
    step(&m->t, 5);
    work_on(m->t.q, "foo");
    assert_told(m->r.latency, 10);
}

/* M-04 D-08: the clock is set back before the hand-out. */
TEST(latency_is_never_negative)
{
    struct metered *m = *state;

    add_after(&m->t, "foo", 10);
    step(&m->t, 15);
    assert_int_equal(wq_len(m->t.q), 1);
    step(&m->t, -15);
    work_on(m->t.q, "foo");
    assert_told(m->r.latency, 0);
}

/* M-04 */
TEST(key_for_a_get_that_sleeps_has_no_latency)
{
    struct metered *m = *state;
    struct worker  *w = get_in_time(&m->t, 10 * S);

    await_sleepers(&m->t, 1);
    step(&m->t, 1 * S);
    add(m->t.q, "foo");
    assert_err(worker_join(w), WQ_OK);
    assert_told(m->r.latency, 0);
    step(&m->t, 4);
    finish(m->t.q, m->t.item);
    assert_told(m->r.work, 4);
}

/* M-04 */
TEST(keys_of_a_batch_are_reported_one_by_one)
{
    struct metered *m = *state;
    wq_queue       *q = m->t.q;
    wq_item        *items[4] = {NULL};
    size_t          n = 0;

    add(q, "a");
    step(&m->t, 10);
    add(q, "b");
    step(&m->t, 5);
    add(q, "c");
    assert_err(wq_get_many(q, items, 4, 0, &n), WQ_OK);
    assert_int_equal(n, 3);
    assert_told(m->r.latency, 15, 5, 0);
    step(&m->t, 7);
    add(q, "d");
    assert_err(wq_get_many(q, items + 3, 1, 0, &n), WQ_OK);
    step(&m->t, 1);
    assert_err(wq_done_many(q, items, 4), WQ_OK);
    assert_told(m->r.work, 8, 8, 8, 1);
    assert_adds_and_depth(m, 4, 0);
    assert_int_equal(stats(q).dones, 4);
}

/* M-04: more than are done under one lock. */
TEST(many_keys_of_a_batch_are_reported_one_by_one)
{
    enum { MANY = 200 };
    struct metered *m = *state;
    wq_item        *items[MANY] = {NULL};
    size_t          n = 0;

    for (uint64_t i = 0; i < MANY; i++) {
        assert_err(wq_add(m->t.q, wq_u64(&i)), WQ_OK);
        step(&m->t, 1);
    }
    assert_err(wq_get_many(m->t.q, items, MANY, 0, &n), WQ_OK);
    step(&m->t, 3);
    assert_err(wq_done_many(m->t.q, items, n), WQ_OK);
    assert_int_equal(m->r.latency.n, MANY);
    assert_int_equal(m->r.work.n, MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(m->r.latency.ns[i], MANY - i);
        assert_int_equal(m->r.work.ns[i], 3);
    }
}

/* M-04 */
TEST(next_reports_both_halves)
{
    struct metered *m = *state;
    wq_queue       *q = m->t.q;
    wq_item        *item = NULL;

    add(q, "a");
    step(&m->t, 2);
    add(q, "b");
    assert_err(wq_next(q, 0, &item), WQ_OK);
    assert_told(m->r.latency, 2);
    assert_int_equal(m->r.work.n, 0);
    step(&m->t, 3);
    assert_err(wq_next(q, 0, &item), WQ_OK);
    assert_key(item, "b");
    assert_told(m->r.latency, 2, 3);
    assert_told(m->r.work, 3);
    step(&m->t, 5);
    assert_err(wq_next(q, 0, &item), WQ_ETIMEDOUT);
    assert_null(item);
    assert_told(m->r.latency, 2, 3);
    assert_told(m->r.work, 3, 5);
}

static int
run_next(struct worker *self)
{
    struct timed *t = self->arg;

    return (int)wq_next(t->q, 10 * S, &t->item);
}

/* M-04 */
TEST(next_that_sleeps_reports_both_halves)
{
    struct metered *m = *state;

    add(m->t.q, "a");
    m->t.item = take(m->t.q);
    step(&m->t, 3);
    struct worker *w = worker_start(run_next, &m->t);
    await_sleepers(&m->t, 1);
    step(&m->t, 1 * S);
    add(m->t.q, "b");
    assert_err(worker_join(w), WQ_OK);
    assert_key(m->t.item, "b");
    assert_told(m->r.latency, 0, 0);
    assert_told(m->r.work, 3);
}

/* An add that has to wait for room. */
struct late_add {
    wq_queue             *q;
    const wq_add_options *how;
};

static int
run_late_add(struct worker *self)
{
    const struct late_add *job = self->arg;
    const wq_key           key = wq_str("late");

    return (int)wq_add_with(job->q, job->how, &key, 1);
}

/* The latency of a key whose producer waited for 10 ns, and which was READY for
 * 1 ns. */
static int64_t
latency_after_room(const wq_add_options *how)
{
    wq_limiter *soon = wq_limiter_bucket(1, 10);
    assert_non_null(soon);
    struct metered *m =
        metered_create(WQ_CONFIG(.max_len = 1, .overflow = WQ_OVERFLOW_BLOCK,
                                 .limiter = soon));
    struct late_add job = {m->t.q, how};

    add(m->t.q, "first");
    wq_item       *item = take(m->t.q);
    struct worker *w = worker_start(run_late_add, &job);
    worker_await_blocked(w);
    step(&m->t, 10);
    finish(m->t.q, item);
    assert_err(worker_join(w), WQ_OK);
    step(&m->t, 1);
    work_on(m->t.q, "late");
    assert_int_equal(m->r.latency.n, 2);
    const int64_t latency = m->r.latency.ns[1];
    metered_destroy(m);
    return latency;
}

/* M-04: the wait for room is the producer's, not the key's. */
TEST(latency_does_not_count_the_wait_for_room)
{
    assert_int_equal(latency_after_room(WQ_ADD(.priority = 0)), 1);
    assert_int_equal(latency_after_room(WQ_ADD(.throttle_ns = 5)), 1);
    assert_int_equal(latency_after_room(WQ_ADD(.rate_limited = true)), 1);
}

/* M-04 */
TEST(what_a_limiter_decides_is_reported)
{
    struct metered *m = metered_create(
        WQ_CONFIG(.limiter = wq_limiter_exponential(5 * MS, 1000 * S)));
    const wq_key keys[] = {wq_str("foo"), wq_str("bar")};

    rate_limit(m, "foo");
    assert_told(m->r.limited, 5 * MS);
    rate_limit(m, "foo"); /* the earlier deadline stays */
    assert_told(m->r.limited, 5 * MS, 10 * MS);
    assert_err(wq_add_with(m->t.q, WQ_ADD(.rate_limited = true), keys, 2),
               WQ_OK);
    assert_told(m->r.limited, 5 * MS, 10 * MS, 20 * MS, 5 * MS);
    assert_int_equal(m->r.sum.retries, 4);
    assert_adds_and_depth(m, 0, 0);

    step(&m->t, 5 * MS + 3);
    work_on(m->t.q, "foo");
    work_on(m->t.q, "bar");
    assert_told(m->r.latency, 3, 3);
    metered_destroy(m);
}

/* M-04 */
TEST(delay_that_a_policy_spares_is_not_reported)
{
    struct metered *m = metered_create(
        WQ_CONFIG(.limiter = wq_limiter_exponential(5 * MS, 1000 * S),
                  .retry = WQ_RETRY_ONCE | WQ_RETRY_FAILURES_ONLY));

    rate_limit(m, "foo"); /* nobody holds it: no failure */
    assert_int_equal(m->r.limited.n, 0);
    (void)take_key(m->t.q, "foo");
    rate_limit(m, "foo");
    rate_limit(m, "foo"); /* it waits already */
    assert_told(m->r.limited, 5 * MS);
    assert_int_equal(m->r.sum.retries, 3);
    metered_destroy(m);
}

/* M-04: an add that fails has not happened. */
TEST(delay_of_an_add_that_is_refused_is_not_reported)
{
    struct metered *m = metered_create(
        WQ_CONFIG(.max_len = 1,
                  .limiter = wq_limiter_exponential(5 * MS, 1000 * S)));

    add(m->t.q, "foo");
    assert_err(wq_add_rate_limited(m->t.q, wq_str("bar")), WQ_EFULL);
    assert_int_equal(m->r.limited.n, 0);
    assert_int_equal(wq_num_requeues(m->t.q, wq_str("bar")), 0);
    assert_int_equal(m->r.sum.retries, 0);
    metered_destroy(m);
}

/* ---- who pays ----------------------------------------------------------- */

/* M-06 */
TEST(queue_without_a_name_or_a_sink_has_no_metrics)
{
    struct metered *m = metered_begin();
    const char     *names[] = {NULL, "", "test"};

    for (int i = 0; i < 3; i++) {
        const wq_metrics *sink = i < 2 ? &m->r.sink : NULL;
        assert_err(wq_create(WQ_CONFIG(.name = names[i], .metrics = sink,
                                       .clock = m->t.clock),
                             &m->t.q),
                   WQ_OK);
        add(m->t.q, "foo");
        assert_int_equal(look(m->t.q, "foo").ready_ns, -1);
        (void)take(m->t.q);
        assert_int_equal(look(m->t.q, "foo").held_ns, -1);
        assert_int_equal(stats(m->t.q).unfinished_ns, -1);
        assert_int_equal(stats(m->t.q).longest_ns, -1);
        assert_int_equal(stats(m->t.q).adds, 1);
        wq_destroy(m->t.q);
    }
    m->t.q = NULL;
    for (int i = 0; i < RECORDER_CALLS; i++)
        assert_int_equal(m->r.calls[i], 0);
    metered_destroy(m);
}

WQ_TESTS(with_sink(scene_of_client_go_gives_the_same_numbers),
         test(scene_of_client_go_reads_the_same_in_the_registry),
         with_sink(ages_of_held_keys_are_exact_at_any_time),
         with_sink(ages_go_on_after_a_shutdown), test(metrics_start_no_thread),
         with_sink(ages_are_never_negative),
         with_sink(sum_of_ages_is_not_below_the_longest),
         with_sink(sum_of_ages_stops_at_the_end_of_time),
         with_sink(depth_counts_dirty_keys_and_len_does_not),
         with_sink(retries_are_adds_with_a_delay_whatever_it_is),
         with_sink(retries_count_every_key_of_a_batch),
         with_sink(add_that_fails_is_no_retry),
         test(keys_that_go_unseen_are_told), test(key_that_is_given_up_is_told),
         with_sink(drops_that_a_caller_counts_are_told),
         with_sink(latency_runs_from_the_first_add),
         with_sink(latency_runs_from_the_add_after_a_removal),
         with_sink(raising_a_key_does_not_make_it_younger),
         with_sink(done_of_a_key_that_is_not_held_reports_nothing),
         with_sink(done_by_key_reports_like_done),
         with_sink(latency_of_a_key_that_waited_runs_from_its_deadline),
         with_sink(latency_does_not_depend_on_when_the_deadline_is_noticed),
         with_sink(latency_of_an_add_after_the_deadline_runs_from_the_deadline),
         with_sink(latency_is_never_negative),
         with_sink(key_for_a_get_that_sleeps_has_no_latency),
         with_sink(keys_of_a_batch_are_reported_one_by_one),
         with_sink(many_keys_of_a_batch_are_reported_one_by_one),
         with_sink(next_reports_both_halves),
         with_sink(next_that_sleeps_reports_both_halves),
         test(latency_does_not_count_the_wait_for_room),
         test(what_a_limiter_decides_is_reported),
         test(delay_that_a_policy_spares_is_not_reported),
         test(delay_of_an_add_that_is_refused_is_not_reported),
         test(queue_without_a_name_or_a_sink_has_no_metrics));
