/* SPDX-License-Identifier: MIT */
/* test_pause.c: who sees that a queue is paused: a batch under way, metrics, a
 * dump, a pool? scenarios/pause.scenario says what a pause stops. */
#include "asked.h"

#include <stdio.h>

#include <wq/metrics.h>
#include <wq/workers.h>

#include "support/checkpoint.h"
#include "support/recorder.h"

static void
pause_queue(wq_queue *q)
{
    assert_err(wq_pause(q), WQ_OK);
    assert_true(counts_of(q).paused);
    assert_int_equal(counts_of(q).offered, 0);
}

static void
resume_queue(wq_queue *q)
{
    assert_err(wq_resume(q), WQ_OK);
    const wq_stats counts = counts_of(q);
    assert_false(counts.paused);
    assert_int_equal(counts.offered, counts.ready);
}

static void
pause_at_latency(struct recorder *r, enum recorder_call call)
{
    if (call == RECORDER_LATENCY)
        *(wq_err *)r->arg = wq_pause(r->q);
}

/* O-85 O-59: with metrics, a batch takes 64 keys at a time, and reports to the
 * sinks in between. */
TEST(pause_in_the_middle_of_a_batch_ends_it)
{
    enum { KEYS = 100, AT_ONCE = 64 };
    struct recorder r;
    wq_err          paused = WQ_EINVAL;
    wq_item        *items[KEYS];
    size_t          n = 0;

    recorder_init(&r);
    r.hook = pause_at_latency;
    r.arg = &paused;
    struct timed *t =
        timed_create(WQ_CONFIG(.name = "test", .metrics = &r.sink));
    for (uint64_t i = 0; i < KEYS; i++)
        assert_err(wq_add(t->q, wq_u64(&i)), WQ_OK);
    assert_err(wq_get_many(t->q, items, KEYS, 0, &n), WQ_OK);
    assert_err(paused, WQ_OK);
    assert_int_equal(n, AT_ONCE);
    assert_err(wq_done_many(t->q, items, n), WQ_OK);
    assert_err(wq_get_many(t->q, items, KEYS, 0, &n), WQ_ETIMEDOUT);
    r.hook = NULL;
    resume_queue(t->q);
    assert_err(wq_get_many(t->q, items, KEYS, 0, &n), WQ_OK);
    assert_int_equal(n, KEYS - AT_ONCE);
    assert_err(wq_done_many(t->q, items, n), WQ_OK);
    timed_destroy(t);
}

/* ---- what can be seen ---------------------------------------------------- */

static void
expect_paused(wq_registry *registry, int queues)
{
    char line[64], *text;

    (void)snprintf(line, sizeof line,
                   "\nworkqueue_paused_queues{name=\"test\"} %d\n", queues);
    for (int format = WQ_TEXT_PROMETHEUS; format <= WQ_TEXT_OPENMETRICS;
         format++) {
        size_t len;

        assert_err(wq_registry_text(registry, (wq_text)format, &text, &len),
                   WQ_OK);
        if (!strstr(text, line))
            fail_msg("'%s' is not in:\n%s", line, text);
        free(text);
    }
}

/* O-85 M-09: several queues share the name. */
TEST(metric_counts_the_paused_queues_of_a_name)
{
    wq_registry *registry;
    wq_queue    *queues[2];

    assert_err(wq_registry_create(&registry), WQ_OK);
    for (int i = 0; i < 2; i++)
        queues[i] = open_queue(
            WQ_CONFIG(.name = "test", .metrics = wq_registry_sink(registry)));
    expect_paused(registry, 0);
    for (int i = 0; i < 2; i++) {
        pause_queue(queues[i]);
        expect_paused(registry, i + 1);
    }
    resume_queue(queues[0]);
    expect_paused(registry, 1);
    wq_destroy(queues[1]);
    expect_paused(registry, 0);
    wq_destroy(queues[0]);
    wq_registry_destroy(registry);
}

static wq_err
find_paused(void *found, const char *text, size_t len)
{
    char line[1024];

    (void)snprintf(line, sizeof line, "%.*s", (int)len, text);
    if (strstr(line, "\"ready\":1,\"offered\":0,") &&
        strstr(line, ",\"paused\":true,"))
        *(bool *)found = true;
    return WQ_OK;
}

/* O-85 O-34 */
TEST(dump_shows_that_a_queue_is_paused)
{
    wq_queue *q = *state;
    bool      found = false;

    add(q, "a");
    assert_err(wq_dump(q, find_paused, &found), WQ_OK);
    assert_false(found);
    pause_queue(q);
    assert_err(wq_dump(q, find_paused, &found), WQ_OK);
    assert_true(found);
}

/* ---- a pool -------------------------------------------------------------- */

static wq_result
handle(void *ctx, const wq_item *item)
{
    (void)item;
    checkpoint_pass(ctx);
    return wq_result_done();
}

static bool
two_sleep(void *arg)
{
    return counts_of(arg).sleeping == 2;
}

/* O-85: the worker that has a key finishes it. */
TEST(pool_is_idle_while_paused)
{
    wq_queue         *q = *state;
    struct checkpoint checkpoint = CHECKPOINT_INIT;
    wq_workers       *pool;

    assert_err(wq_workers_start(q,
                                WQ_WORKERS(.threads = 2, .handler = handle,
                                           .ctx = &checkpoint),
                                &pool),
               WQ_OK);
    add(q, "a");
    tally_await(&checkpoint.begun, 1);
    pause_queue(q);
    add(q, "b");
    add(q, "c");
    tally_add(&checkpoint.allowed, CHECKPOINT_OPEN);
    await_that(two_sleep, q, "the workers to sleep");
    assert_int_equal(tally_read(&checkpoint.begun), 1);
    resume_queue(q);
    tally_await(&checkpoint.begun, 3);
    assert_err(wq_workers_drain(pool, WQ_FOREVER), WQ_OK);
    assert_err(wq_workers_destroy(pool), WQ_OK);
}

/* O-85 */
TEST(pause_without_a_queue_is_refused)
{
    assert_err(wq_pause(NULL), WQ_EINVAL);
    assert_err(wq_resume(NULL), WQ_EINVAL);
}

WQ_TESTS(test(pause_in_the_middle_of_a_batch_ends_it),
         test(metric_counts_the_paused_queues_of_a_name),
         test_with(dump_shows_that_a_queue_is_paused, make_queue, drop_queue),
         test_with(pool_is_idle_while_paused, make_queue, drop_queue),
         test(pause_without_a_queue_is_refused));
