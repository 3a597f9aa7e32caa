/* SPDX-License-Identifier: MIT */
/* test_workers_stop.c: how does a pool of workers end, and how does it change
 * its size? By stop, drain, resize, and a shutdown of its queue. */
#include "pool.h"

#include "narrow.h"

/* ---- stop ---------------------------------------------------------------- */

/* PW-10 */
TEST(stop_waits_for_held_items_and_leaves_ready_keys)
{
    start_busy(1, "foo");
    add_keys("bar");
    struct worker *stop = start_blocked(run_stop);
    let(1);
    assert_err(worker_join(stop), WQ_OK);

    assert_int_equal(begun(), 1);
    assert_threads(0, 0);
    assert_false(wq_shutting_down(pool.q));
    work_on(pool.q, "bar");
    add_keys("foo"); /* foo was done */
    work_on(pool.q, "foo");
}

/* PW-10 PW-14 */
TEST(stopped_pool_cannot_be_resized_and_may_be_stopped_again)
{
    start(WQ_WORKERS(.threads = 2));
    assert_err(wq_workers_stop(pool.workers), WQ_OK);
    assert_err(wq_workers_stop(pool.workers), WQ_OK);
    assert_int_equal(wq_workers_count(pool.workers), 0);
    assert_err(wq_workers_resize(pool.workers, 1), WQ_ESTATE);
    assert_err(wq_workers_resize(pool.workers, 0), WQ_ESTATE);
}

/* PW-10 */
TEST(two_stops_at_once_both_wait)
{
    start_busy(3, "foo");
    struct worker *stops[] = {worker_start(run_stop, NULL),
                              worker_start(run_stop, NULL)};
    worker_await_all_blocked(stops, 2);
    let_all();
    assert_err(worker_join(stops[0]), WQ_OK);
    assert_err(worker_join(stops[1]), WQ_OK);
}

static wq_result
resize_while_stopping(void *ctx, const wq_item *item)
{
    const wq_result result = handle(ctx, item);

    if (wq_workers_resize(pool.workers, 5) != WQ_ESTATE)
        pool.wrong = __LINE__;
    return result;
}

/* PW-14: the handler does not wait for a stop that waits for it. */
TEST(resize_in_a_handler_is_refused_while_the_pool_stops)
{
    start(WQ_WORKERS(.threads = 1, .handler = resize_while_stopping));
    add_keys("foo");
    await_begun(1);
    struct worker *stop = start_blocked(run_stop);
    let_all();
    assert_err(worker_join(stop), WQ_OK);
}

/* The key is DIRTY, and cannot become READY at its done. */
static wq_result
add_and_refuse(void *ctx, const wq_item *item)
{
    (void)ctx;
    if (wq_add(pool.q, item->key))
        pool.wrong = __LINE__;
    narrow.refuses = true;
    return wq_result_done();
}

static void
resize_on_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    note_drop(ctx, key, retries, why);
    if (wq_workers_resize(pool.workers, 2) != WQ_ESTATE)
        pool.wrong = __LINE__;
}

static bool
has_failed_repeatedly(void *unused)
{
    (void)unused;
    return pool_stats().errors > 2;
}

/* PW-09 PW-14 PW-20 */
TEST(resize_is_refused_while_a_stop_waits_for_failing_done)
{
    narrow.err = WQ_ENOMEM;
    use_queue(WQ_CONFIG(.order = &narrow_order));
    start(WQ_WORKERS(.threads = 1, .handler = add_and_refuse,
                     .on_drop = resize_on_drop));
    add_keys("foo");
    await_that(has_failed_repeatedly, NULL, "the worker repeats the done");
    end();
    assert_int_equal(pool.drop_why, WQ_ENOMEM);
}

/* Stop the pool, in another thread, at any moment after its start. */
static void
start_and_stop(unsigned threads)
{
    start(WQ_WORKERS(.threads = threads));
    assert_err(worker_join(worker_start(run_stop, NULL)), WQ_OK);
    end();
}

/* PW-10: workers may have just started, or may be about to block. */
TEST(idle_pool_can_be_stopped_at_any_time)
{
    for (unsigned i = 0; i < 200; i++)
        start_and_stop(1 + i % 5);
}

/* A get of the user, which is repeated after an interrupt. */
static int
run_get_until_shutdown(struct worker *self)
{
    wq_item *item;
    wq_err   err;

    while ((err = wq_get(self->arg, &item)) == WQ_EINTERRUPTED)
        ;
    return (int)err;
}

/* PW-15 */
TEST(pool_stops_beside_other_gets_and_other_pools)
{
    wq_workers    *other;
    struct worker *own = worker_start(run_get_until_shutdown, pool.q);

    let_all();
    assert_err(wq_workers_start(
                   pool.q,
                   WQ_WORKERS(.threads = 2, .handler = handle, .ctx = &pool),
                   &other),
               WQ_OK);
    for (int i = 0; i < 50; i++)
        start_and_stop(3);
    assert_int_equal(stats_of(other).threads, 2);
    wq_shutdown(pool.q);
    assert_err(worker_join(own), WQ_ESHUTDOWN);
    assert_err(wq_workers_destroy(other), WQ_OK);
}

/* PW-15 */
TEST(workers_continue_after_an_interrupt)
{
    let_all();
    start(WQ_WORKERS(.threads = 2));
    for (unsigned i = 1; i <= 50; i++) {
        wq_interrupt(pool.q);
        add_keys("foo");
        tally_await(&pool.handlers.ended, i);
        await_idle();
    }
    assert_threads(2, 0);
    assert_int_equal(pool_stats().errors, 0);
}

/* PW-16 */
TEST(shutdown_of_the_queue_ends_the_workers)
{
    start(WQ_WORKERS(.threads = 3));
    add_keys("foo bar");
    wq_shutdown(pool.q);
    let_all();
    await_threads(0);
    assert_int_equal(tally_read(&pool.handlers.ended), 2);
    assert_int_equal(wq_workers_count(pool.workers), 3);
    resize(4);
    await_threads(0);
}

/* ---- stop within a time -------------------------------------------------- */

static wq_err
stop_within(int64_t timeout_ns)
{
    return wq_workers_stop_within(pool.workers, timeout_ns);
}

/* PW-26: it goes on stopping, and a later stop waits for it. */
TEST(stop_that_times_out_can_be_repeated)
{
    start_busy(2, "foo bar");
    add_keys("baz");
    assert_err(stop_within(0), WQ_ETIMEDOUT);
    assert_err(stop_within(MS), WQ_ETIMEDOUT);
    assert_int_equal(wq_workers_count(pool.workers), 0);
    assert_err(wq_workers_resize(pool.workers, 3), WQ_ESTATE);
    let(2);
    await_threads(0);
    assert_err(stop_within(LONG_NS), WQ_OK);
    assert_err(stop_within(0), WQ_OK);
    assert_int_equal(begun(), 2);
    work_on(pool.q, "baz");
}

/* PW-26 */
TEST(idle_pool_stops_within_the_time)
{
    for (unsigned n = 1; n <= 50; n++) {
        start(WQ_WORKERS(.threads = n % 5 + 1));
        assert_err(stop_within(LONG_NS), WQ_OK);
        assert_threads(0, 0);
        end();
    }
}

/* PW-26 */
TEST(pool_can_be_destroyed_after_a_stop_that_timed_out)
{
    start_busy(1, "foo");
    assert_err(stop_within(0), WQ_ETIMEDOUT);
    let_all();
    assert_err(wq_workers_destroy(pool.workers), WQ_OK);
    pool.workers = NULL;
    assert_int_equal(tally_read(&pool.handlers.ended), 1);
}

static int
run_stop_within(struct worker *self)
{
    (void)self;
    return (int)stop_within(WQ_FOREVER);
}

/* PW-26 */
TEST(stop_within_waits_for_handlers)
{
    start_busy(1, "foo");
    struct worker *stop = start_blocked(run_stop_within);
    let_all();
    assert_err(worker_join(stop), WQ_OK);
}

static wq_result
stop_own_pool_within(void *ctx, const wq_item *item)
{
    if (stop_within(0) != WQ_ESTATE)
        pool.wrong = __LINE__;
    return handle(ctx, item);
}

/* PW-26 PW-11 */
TEST(stop_within_refuses_bad_arguments_and_its_own_threads)
{
    assert_err(wq_workers_stop_within(NULL, 0), WQ_EINVAL);
    let_all();
    start(WQ_WORKERS(.threads = 1, .handler = stop_own_pool_within));
    assert_err(stop_within(-1), WQ_EINVAL);
    add_keys("foo");
    tally_await(&pool.handlers.ended, 1);
    assert_int_equal(wq_workers_count(pool.workers), 1);
}

/* ---- drain --------------------------------------------------------------- */

/* PW-12 */
TEST(drain_waits_for_ready_held_and_dirty_keys)
{
    start_busy(1, "foo bar");
    add_keys("foo"); /* DIRTY */
    struct worker *drain = start_blocked(run_drain);
    let(2);
    await_begun(3);
    worker_await_blocked(drain);
    let(1);
    assert_err(worker_join(drain), WQ_OK);
    assert_int_equal(tally_read(&pool.handlers.ended), 3);
    assert_threads(0, 0);
    assert_err(wq_workers_resize(pool.workers, 1), WQ_ESTATE);
    assert_err(drain_within(0), WQ_OK); /* again */
}

/* PW-13 */
TEST(workers_continue_after_a_drain_that_timed_out)
{
    start_busy(1, "foo bar");
    assert_err(drain_within(0), WQ_ETIMEDOUT);
    assert_err(drain_within(MS), WQ_ETIMEDOUT);
    assert_true(wq_shutting_down(pool.q));
    assert_int_equal(pool_stats().busy, 1);
    let_all();
    assert_err(drain_within(WQ_FOREVER), WQ_OK);
    assert_int_equal(tally_read(&pool.handlers.ended), 2);
}

/* PW-13 */
TEST(stop_after_a_drain_waits_for_held_items_only)
{
    start_busy(1, "foo bar");
    assert_err(drain_within(0), WQ_ETIMEDOUT);
    struct worker *stop = start_blocked(run_stop);
    let(1);
    assert_err(worker_join(stop), WQ_OK);
    assert_int_equal(wq_len(pool.q), 1);
}

/* PW-12 */
TEST(shutdown_of_the_queue_ends_a_drain)
{
    start_busy(1, "foo");
    struct worker *drain = start_blocked(run_drain);
    wq_shutdown(pool.q);
    assert_err(worker_join(drain), WQ_EINTERRUPTED);
}

/* PW-12 */
TEST(drain_refuses_a_negative_timeout)
{
    start(WQ_WORKERS(.threads = 1));
    assert_err(drain_within(-1), WQ_EINVAL);
    assert_false(wq_shutting_down(pool.q));
}

/* ---- resize -------------------------------------------------------------- */

/* PW-14 */
TEST(pool_that_grows_runs_more_handlers_at_once)
{
    start_busy(1, "foo bar baz");
    resize(3);
    await_begun(3);
    assert_int_equal(pool.most, 3);
    assert_int_equal(wq_workers_count(pool.workers), 3);
    assert_threads(3, 3);
}

/* PW-14 */
TEST(pool_that_shrinks_does_not_wait_for_busy_workers)
{
    start_busy(3, "foo bar baz");
    resize(1);
    assert_int_equal(wq_workers_count(pool.workers), 1);
    assert_int_equal(pool_stats().threads, 3);
    let(3);
    await_threads(1);

    add_keys("foo bar");
    await_begun(4);
    assert_int_equal(pool_stats().busy, 1);
    assert_int_equal(wq_len(pool.q), 1);
}

/* PW-14 */
TEST(pool_that_grows_again_keeps_workers_that_would_end)
{
    start_busy(3, "foo bar baz");
    resize(1);
    resize(4);
    assert_int_equal(pool_stats().threads, 4);
    let_all();
    await_idle();
    assert_int_equal(pool_stats().threads, 4);
}

/* PW-14 */
TEST(pool_of_size_zero_is_paused)
{
    let_all();
    start(WQ_WORKERS(.threads = 3));
    resize(0);
    assert_int_equal(pool_stats().threads, 0); /* all were idle */
    add_keys("foo");
    assert_int_equal(wq_len(pool.q), 1);
    assert_err(drain_within(0), WQ_ETIMEDOUT);
    assert_int_equal(begun(), 0);
    resize(1);
    assert_err(drain_within(WQ_FOREVER), WQ_OK);
    assert_int_equal(tally_read(&pool.handlers.ended), 1);
}

/* PW-14 */
TEST(resize_of_an_idle_pool_returns_with_that_many_threads)
{
    start(WQ_WORKERS(.threads = 1));
    for (unsigned i = 0; i < 200; i++) {
        const unsigned n = (i * 7) % 6;

        resize(n);
        assert_int_equal(pool_stats().threads, n);
    }
}

WQ_TESTS(with_pool(stop_waits_for_held_items_and_leaves_ready_keys),
         with_pool(stopped_pool_cannot_be_resized_and_may_be_stopped_again),
         with_pool(two_stops_at_once_both_wait),
         with_pool(resize_in_a_handler_is_refused_while_the_pool_stops),
         with_pool(resize_is_refused_while_a_stop_waits_for_failing_done),
         with_pool(idle_pool_can_be_stopped_at_any_time),
         with_pool(pool_stops_beside_other_gets_and_other_pools),
         with_pool(workers_continue_after_an_interrupt),
         with_pool(shutdown_of_the_queue_ends_the_workers),
         with_pool(stop_that_times_out_can_be_repeated),
         with_pool(idle_pool_stops_within_the_time),
         with_pool(pool_can_be_destroyed_after_a_stop_that_timed_out),
         with_pool(stop_within_waits_for_handlers),
         with_pool(stop_within_refuses_bad_arguments_and_its_own_threads),
         with_pool(drain_waits_for_ready_held_and_dirty_keys),
         with_pool(workers_continue_after_a_drain_that_timed_out),
         with_pool(stop_after_a_drain_waits_for_held_items_only),
         with_pool(shutdown_of_the_queue_ends_a_drain),
         with_pool(drain_refuses_a_negative_timeout),
         with_pool(pool_that_grows_runs_more_handlers_at_once),
         with_pool(pool_that_shrinks_does_not_wait_for_busy_workers),
         with_pool(pool_that_grows_again_keeps_workers_that_would_end),
         with_pool(pool_of_size_zero_is_paused),
         with_pool(resize_of_an_idle_pool_returns_with_that_many_threads));
