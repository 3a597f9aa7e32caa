/* SPDX-License-Identifier: MIT */
/* test_pause.c: what goes on, and what does not, between wq_pause() and
 * wq_resume()? */
#include "asked.h"

#include <poll.h>
#include <stdio.h>

#include <wq/metrics.h>
#include <wq/workers.h>

#include "support/recorder.h"
#include "support/stage.h"

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

/* Keys may be READY, and none is handed out. */
static void
assert_hands_out_nothing(wq_queue *q)
{
    wq_item *items[4];
    size_t   n;

    assert_err(wq_get_within(q, 0, items), WQ_ETIMEDOUT);
    assert_err(wq_get_many(q, items, 4, 0, &n), WQ_ETIMEDOUT);
    items[0] = NULL;
    assert_err(wq_next(q, 0, items), WQ_ETIMEDOUT);
}

/* ---- what stops ---------------------------------------------------------- */

/* O-85 */
TEST(paused_queue_hands_out_nothing_until_resumed)
{
    struct timed *t = *state;

    add(t->q, "a");
    add(t->q, "b");
    assert_int_equal(counts_of(t->q).offered, 2);
    pause_queue(t->q);
    assert_hands_out_nothing(t->q);
    assert_int_equal(wq_len(t->q), 2);
    resume_queue(t->q);
    work_on(t->q, "a");
    work_on(t->q, "b");
}

static wq_key
one_group(void *ctx, wq_key key)
{
    (void)ctx;
    return (wq_key){key.data, 0};
}

/* O-85: of whatever kind the queue is. */
TEST(every_kind_of_queue_can_be_paused)
{
    const wq_config *const kinds[] = {
        WQ_CONFIG(.ages = true),
        WQ_CONFIG(.real_time = true),
        WQ_CONFIG(.max_len = 5),
        WQ_CONFIG(.max_len = 5, .overflow = WQ_OVERFLOW_BLOCK),
        WQ_CONFIG(.max_bytes = 100),
        WQ_CONFIG(.group = one_group),
        WQ_CONFIG(.group = one_group, .group_max_held = 1),
        WQ_CONFIG(.max_ready_ns = S),
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct timed *t = timed_create(kinds[i]);

        add(t->q, "a");
        add_at(t->q, 3, "high");
        pause_queue(t->q);
        assert_hands_out_nothing(t->q);
        step(t, 2 * S);
        assert_hands_out_nothing(t->q);
        assert_err(wq_resume(t->q), WQ_OK);
        finish(t->q, take(t->q));
        finish(t->q, take(t->q));
        assert_none_due(t);
        timed_destroy(t);
    }
}

/* O-85 O-05: on the fake clock. */
TEST(get_times_out_while_paused)
{
    struct timed *t = *state;

    pause_queue(t->q);
    add(t->q, "a");
    struct worker *w = get_in_time(t, S);
    await_sleepers(t, 1);
    step(t, S - 1);
    worker_await_blocked(w);
    step(t, 1);
    assert_err(worker_join(w), WQ_ETIMEDOUT);
}

/* O-85 */
TEST(getters_asleep_are_woken_by_resume)
{
    enum { GETTERS = 3 };
    static const char *const names[] = {"a", "b", "c"};
    struct timed            *t = *state;
    struct worker           *all[GETTERS];
    wq_item                 *items[GETTERS];

    for (int i = 0; i < GETTERS; i++)
        all[i] = worker_get(t->q, &items[i]);
    worker_await_all_blocked(all, GETTERS);
    pause_queue(t->q);
    for (int i = 0; i < GETTERS; i++)
        add(t->q, names[i]);
    worker_await_all_blocked(all, GETTERS);
    assert_int_equal(counts_of(t->q).gets, 0);
    resume_queue(t->q);
    for (int i = 0; i < GETTERS; i++) {
        assert_err(worker_join(all[i]), WQ_OK);
        finish(t->q, items[i]);
    }
}

/* O-85: a get that begins during the pause. */
TEST(get_of_a_ready_key_blocks_until_resumed)
{
    struct timed *t = *state;
    wq_item      *item;

    add(t->q, "a");
    pause_queue(t->q);
    struct worker *w = worker_get(t->q, &item);
    worker_await_blocked(w);
    resume_queue(t->q);
    assert_err(worker_join(w), WQ_OK);
    assert_key(item, "a");
    finish(t->q, item);
}

/* O-85 */
TEST(pauses_do_not_add_up)
{
    struct timed *t = *state;

    assert_err(wq_resume(t->q), WQ_OK); /* of none */
    add(t->q, "a");
    pause_queue(t->q);
    pause_queue(t->q);
    resume_queue(t->q);
    resume_queue(t->q);
    work_on(t->q, "a");
}

/* O-85 O-61: the done of a wq_next() counts, its get waits. */
TEST(next_gives_back_and_gets_nothing_while_paused)
{
    struct timed *t = *state;
    wq_item      *item = NULL;

    add(t->q, "a");
    add(t->q, "b");
    assert_err(wq_next(t->q, 0, &item), WQ_OK);
    pause_queue(t->q);
    assert_err(wq_next(t->q, 0, &item), WQ_ETIMEDOUT);
    assert_null(item);
    assert_int_equal(counts_of(t->q).dones, 1);
    resume_queue(t->q);
    work_on(t->q, "b");
}

static void
pause_at_latency(struct recorder *r, enum recorder_call call)
{
    if (call == RECORDER_LATENCY)
        *(wq_err *)r->arg = wq_pause(r->q);
}

/* O-85 O-59: with metrics, it takes 64 at a time, and tells the sinks between. */
TEST(pause_in_the_middle_of_a_batch_ends_it)
{
    enum { KEYS = 100, AT_ONCE = 64 };
    struct timed   *t = timed_begin(0);
    struct recorder r;
    wq_err          paused = WQ_EINVAL;
    wq_item        *items[KEYS];
    size_t          n = 0;

    recorder_init(&r);
    r.hook = pause_at_latency;
    r.arg = &paused;
    assert_err(wq_create(WQ_CONFIG(.clock = t->clock, .name = "test",
                                   .metrics = &r.sink),
                         &t->q),
               WQ_OK);
    for (uint64_t i = 0; i < KEYS; i++)
        assert_err(wq_add(t->q, wq_u64(&i)), WQ_OK);
    assert_err(wq_get_many(t->q, items, KEYS, 0, &n), WQ_OK);
    assert_err(paused, WQ_OK);
    assert_int_equal(n, AT_ONCE);
    assert_err(wq_done_many(t->q, items, n), WQ_OK);
    assert_hands_out_nothing(t->q);
    r.hook = NULL;
    resume_queue(t->q);
    assert_err(wq_get_many(t->q, items, KEYS, 0, &n), WQ_OK);
    assert_int_equal(n, KEYS - AT_ONCE);
    assert_err(wq_done_many(t->q, items, n), WQ_OK);
    timed_destroy(t);
}

/* ---- what goes on -------------------------------------------------------- */

/* O-85 */
TEST(adds_dones_and_removals_go_on_while_paused)
{
    struct timed *t = *state;

    add(t->q, "held");
    wq_item *item = take(t->q);
    pause_queue(t->q);
    add(t->q, "held");
    add(t->q, "a");
    add(t->q, "a");
    add(t->q, "b");
    finish(t->q, item);
    assert_err(wq_remove(t->q, wq_str("b")), WQ_OK);
    assert_err(wq_remove_wait(t->q, wq_str("a"), WQ_FOREVER), WQ_OK);
    assert_int_equal(counts_of(t->q).merged, 1);
    assert_int_equal(wq_len(t->q), 1);
    assert_err(wq_flush(t->q, 0), WQ_ETIMEDOUT);
    assert_hands_out_nothing(t->q);
    resume_queue(t->q);
    work_on(t->q, "held");
    assert_none_due(t);
}

/* O-85 */
TEST(deadlines_come_while_paused)
{
    struct timed *t = *state;

    add_after(t, "a", S);
    pause_queue(t->q);
    struct worker *w = get_in_time(t, HOUR);
    await_sleepers(t, 1);
    step(t, S);
    assert_states(t->q, "a", WQ_STATE_READY);
    worker_await_blocked(w); /* woken at the deadline, and asleep again */
    resume_queue(t->q);
    assert_err(worker_join(w), WQ_OK);
    finish(t->q, t->item);
}

/* O-85: keys that a producer hands over for another getter. */
TEST(keys_handed_over_stay_until_resumed)
{
    struct timed  *t = *state;
    struct worker *w;
    wq_item       *item;

    for (int i = 0; i < 3; i++) { /* see test_other_getter.c */
        add(t->q, "first");
        w = worker_get(t->q, &item);
        assert_err(worker_join(w), WQ_OK);
        finish(t->q, item);
    }
    pause_queue(t->q);
    add(t->q, "a");
    add(t->q, "b");
    w = worker_get(t->q, &item);
    worker_await_blocked(w);
    assert_hands_out_nothing(t->q);
    resume_queue(t->q);
    assert_err(worker_join(w), WQ_OK);
    assert_key(item, "a");
    finish(t->q, item);
    work_on(t->q, "b");
}

/* ---- what can be seen ---------------------------------------------------- */

static void
expect_text(wq_registry *registry, wq_text format, const char *line)
{
    char  *text;
    size_t len;

    assert_err(wq_registry_text(registry, format, &text, &len), WQ_OK);
    if (!strstr(text, line))
        fail_msg("'%s' is not in:\n%s", line, text);
    free(text);
}

/* O-85 M-09: a name that several queues share. */
TEST(metric_counts_the_paused_queues_of_a_name)
{
    static const char *const lines[] = {
        "\nworkqueue_paused_queues{name=\"test\"} 0\n",
        "\nworkqueue_paused_queues{name=\"test\"} 1\n",
        "\nworkqueue_paused_queues{name=\"test\"} 2\n",
    };
    wq_registry *registry;
    wq_queue    *queues[2];

    (void)state;
    assert_err(wq_registry_create(&registry), WQ_OK);
    for (int i = 0; i < 2; i++)
        assert_err(wq_create(WQ_CONFIG(.name = "test",
                                       .metrics = wq_registry_sink(registry)),
                             &queues[i]),
                   WQ_OK);
    for (int n = 0; n < 3; n++) {
        expect_text(registry, WQ_TEXT_PROMETHEUS, lines[n]);
        expect_text(registry, WQ_TEXT_OPENMETRICS, lines[n]);
        if (n < 2)
            pause_queue(queues[n]);
    }
    resume_queue(queues[0]);
    expect_text(registry, WQ_TEXT_PROMETHEUS, lines[1]);
    wq_destroy(queues[1]);
    expect_text(registry, WQ_TEXT_PROMETHEUS, lines[0]);
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
    struct timed *t = *state;
    bool          found = false;

    add(t->q, "a");
    assert_err(wq_dump(t->q, find_paused, &found), WQ_OK);
    assert_false(found);
    pause_queue(t->q);
    assert_err(wq_dump(t->q, find_paused, &found), WQ_OK);
    assert_true(found);
}

/* ---- a pool -------------------------------------------------------------- */

static wq_result
handle(void *ctx, const wq_item *item)
{
    (void)item;
    stage_pass(ctx);
    return wq_result_done();
}

static bool
two_sleep(void *arg)
{
    return counts_of(arg).sleeping == 2;
}

/* O-85: a worker at work finishes its key; then the pool is idle. */
TEST(pool_stays_idle_while_paused)
{
    struct timed *t = *state;
    struct stage  stage = STAGE_INIT;
    wq_workers   *pool;

    assert_err(wq_workers_start(
                   t->q,
                   WQ_WORKERS(.threads = 2, .handler = handle, .ctx = &stage),
                   &pool),
               WQ_OK);
    add(t->q, "a");
    tally_await(&stage.begun, 1);
    pause_queue(t->q);
    add(t->q, "b");
    add(t->q, "c");
    tally_add(&stage.allowed, STAGE_OPEN);
    await_that(two_sleep, t->q, "the workers to sleep");
    assert_int_equal(tally_read(&stage.begun), 1);
    resume_queue(t->q);
    tally_await(&stage.begun, 3);
    assert_err(wq_workers_drain(pool, WQ_FOREVER), WQ_OK);
    assert_err(wq_workers_destroy(pool), WQ_OK);
}

/* ---- an event loop ------------------------------------------------------- */

#if defined(__linux__) && !defined(WQ_PORT_POSIX)

static bool
readable(wq_queue *q)
{
    struct pollfd p = {.fd = wq_fd(q), .events = POLLIN};

    assert_true(p.fd >= 0);
    return poll(&p, 1, 0) == 1;
}

/* O-85 O-70 */
TEST(deadline_of_a_paused_queue_lights_no_descriptor)
{
    struct timed *t = *state;

    assert_false(readable(t->q));
    assert_err(wq_pause(t->q), WQ_OK);
    add_after(t, "a", S);
    step(t, S);
    assert_false(readable(t->q));
    assert_err(wq_resume(t->q), WQ_OK);
    assert_true(readable(t->q));
    work_on(t->q, "a");
}

/* O-85 O-70 */
TEST(descriptor_is_not_readable_while_paused)
{
    struct timed *t = *state;

    add(t->q, "a");
    assert_true(readable(t->q));
    pause_queue(t->q);
    assert_false(readable(t->q));
    add(t->q, "b");
    assert_false(readable(t->q));
    add_after(t, "c", S);
    step(t, S);
    assert_hands_out_nothing(t->q); /* the clock woke the loop in vain */
    assert_false(readable(t->q));
    resume_queue(t->q);
    assert_true(readable(t->q));
    work_on(t->q, "a");
    work_on(t->q, "b");
    work_on(t->q, "c");
    assert_false(readable(t->q));
    pause_queue(t->q);
    wq_shutdown(t->q);
    assert_true(readable(t->q));
}

#define fd_tests                                                               \
    with_time(deadline_of_a_paused_queue_lights_no_descriptor),                \
        with_time(descriptor_is_not_readable_while_paused),
#else
#define fd_tests /* there is no wq_fd() */
#endif

/* ---- the end ------------------------------------------------------------- */

/* O-85 */
TEST(shutdown_ends_the_pause)
{
    struct timed *t = *state;
    wq_item      *item;

    add(t->q, "a");
    add(t->q, "b");
    pause_queue(t->q);
    struct worker *w = worker_get(t->q, &item);
    worker_await_blocked(w);
    wq_shutdown(t->q);
    assert_err(worker_join(w), WQ_OK);
    finish(t->q, item);
    assert_false(counts_of(t->q).paused);
    finish(t->q, take(t->q));
    assert_none_ready(t->q, WQ_ESHUTDOWN);
}

/* O-85: none that comes later begins. */
TEST(queue_that_is_shut_down_cannot_be_paused)
{
    struct timed *t = *state;

    add(t->q, "a");
    wq_shutdown(t->q);
    assert_err(wq_pause(t->q), WQ_ESHUTDOWN);
    assert_false(counts_of(t->q).paused);
    assert_err(wq_resume(t->q), WQ_OK);
    work_on(t->q, "a");
    assert_err(wq_pause(t->q), WQ_ESHUTDOWN);
}

/* O-85 */
TEST(drain_ends_the_pause)
{
    struct timed *t = *state;

    add(t->q, "a");
    pause_queue(t->q);
    struct worker *drain = worker_drain(t->q);
    worker_await_blocked(drain);
    assert_false(counts_of(t->q).paused);
    work_on(t->q, "a");
    assert_err(worker_join(drain), WQ_OK);
}

/* O-03 O-85 */
TEST(paused_queue_is_destroyed_under_its_getters)
{
    struct timed  *t = timed_create(WQ_CONFIG(.order = NULL));
    struct worker *w;

    add(t->q, "a");
    pause_queue(t->q);
    w = worker_get(t->q, NULL);
    worker_await_blocked(w);
    timed_destroy(t);
    assert_err(worker_join(w), WQ_ESHUTDOWN);
}

/* O-08 O-85 */
TEST(interrupt_ends_a_get_of_a_paused_queue)
{
    struct timed *t = *state;

    add(t->q, "a");
    pause_queue(t->q);
    struct worker *w = worker_get(t->q, NULL);
    worker_await_blocked(w);
    wq_interrupt(t->q);
    assert_err(worker_join(w), WQ_EINTERRUPTED);
}

/* O-85 */
TEST(no_queue_cannot_be_paused)
{
    (void)state;
    assert_err(wq_pause(NULL), WQ_EINVAL);
    assert_err(wq_resume(NULL), WQ_EINVAL);
}

WQ_TESTS(with_time(paused_queue_hands_out_nothing_until_resumed),
         test(every_kind_of_queue_can_be_paused),
         with_time(get_times_out_while_paused),
         with_time(getters_asleep_are_woken_by_resume),
         with_time(get_of_a_ready_key_blocks_until_resumed),
         with_time(pauses_do_not_add_up),
         with_time(next_gives_back_and_gets_nothing_while_paused),
         test(pause_in_the_middle_of_a_batch_ends_it),
         with_time(adds_dones_and_removals_go_on_while_paused),
         with_time(deadlines_come_while_paused),
         with_time(keys_handed_over_stay_until_resumed),
         test(metric_counts_the_paused_queues_of_a_name),
         with_time(dump_shows_that_a_queue_is_paused),
         with_time(pool_stays_idle_while_paused),
         fd_tests with_time(shutdown_ends_the_pause),
         with_time(queue_that_is_shut_down_cannot_be_paused),
         with_time(drain_ends_the_pause),
         test(paused_queue_is_destroyed_under_its_getters),
         with_time(interrupt_ends_a_get_of_a_paused_queue),
         test(no_queue_cannot_be_paused));
