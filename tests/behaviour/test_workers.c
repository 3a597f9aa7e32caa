/* SPDX-License-Identifier: MIT */
/* test_workers.c: how does a pool of workers start, what does it do with a key,
 * and what do its stats count?
 *
 * How it ends, and how it changes its size, is in test_workers_stop.c.
 */
#include "pool.h"

#include <stdio.h>
#include <unistd.h>

#include <wq/backend.h>

#include "threads.h"

/* ---- start --------------------------------------------------------------- */

/* A config as a later release may have it. */
struct later_config {
    wq_workers_config config;
    char              more[16];
};

/* PW-01 PW-25: wq_work_one() refuses the same configs. */
TEST(bad_configs_are_refused)
{
    wq_workers *const   untouched = (wq_workers *)(void *)&pool;
    wq_workers         *out = untouched;
    const wq_allocator  incomplete = {.size = sizeof incomplete};
    const size_t        size = sizeof(wq_workers_config);
    struct later_config rows[] = {
        {.config = {.size = size, .threads = 1}}, /* no handler */
        {.config = {.size = size, .handler = handle, .item_deadline_ns = 1}},
        {.config = {.size = size,
                    .handler = handle,
                    .on_stuck = note_stuck,
                    .item_deadline_ns = -1}},
        {.config = {.size = size, .handler = handle, .allocator = &incomplete}},
        {.config = {.size = 0, .handler = handle}},
        {.config = {.size = 13, .handler = handle}},
        {.config = {.size = sizeof rows[0], .handler = handle},
         .more = {[15] = 1}},
    };

    add_keys("foo");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const wq_err start = wq_workers_start(pool.q, &rows[i].config, &out);
        const wq_err work = wq_work_one(pool.q, &rows[i].config, 0);
        if (start != WQ_EINVAL || work != WQ_EINVAL)
            fail_msg("row %zu: %s, %s", i, wq_err_name(start),
                     wq_err_name(work));
    }
    assert_err(wq_workers_start(NULL, WQ_WORKERS(.handler = handle), &out),
               WQ_EINVAL);
    assert_err(wq_workers_start(pool.q, NULL, &out), WQ_EINVAL);
    assert_err(wq_workers_start(pool.q, WQ_WORKERS(.handler = handle), NULL),
               WQ_EINVAL);
    assert_ptr_equal(out, untouched);
    assert_int_equal(wq_len(pool.q), 1);
}

/* PW-01: the program was compiled with another release of the header. */
TEST(configs_of_older_and_newer_releases_are_accepted)
{
    struct later_config later = {
        .config = {.size = sizeof later, .handler = handle}};
    wq_workers_config early = {.size = offsetof(wq_workers_config, ctx),
                               .handler = handle,
                               .item_deadline_ns = -1}; /* is not read */

    assert_err(wq_workers_start(pool.q, &later.config, &pool.workers), WQ_OK);
    end();
    assert_err(wq_workers_start(pool.q, &early, &pool.workers), WQ_OK);
}

/* PW-01 */
TEST(null_pools_are_refused)
{
    wq_workers_stats counts = {.size = sizeof counts};

    assert_err(wq_workers_stop(NULL), WQ_EINVAL);
    assert_err(wq_workers_drain(NULL, 0), WQ_EINVAL);
    assert_err(wq_workers_resize(NULL, 1), WQ_EINVAL);
    assert_err(wq_workers_read_stats(NULL, &counts), WQ_EINVAL);
    assert_int_equal(wq_workers_count(NULL), 0);
    assert_err(wq_workers_destroy(NULL), WQ_OK);
}

/* PW-02 */
TEST(zero_threads_means_one_for_each_processor)
{
    start(WQ_WORKERS(.threads = 0));
    assert_in_range(wq_workers_count(pool.workers), 1,
                    sysconf(_SC_NPROCESSORS_ONLN));
    assert_int_equal(pool_stats().threads, wq_workers_count(pool.workers));
}

static char names[2][32]; /* of threads, by the key: "0" or "1" */

static wq_result
note_name(void *ctx, const wq_item *item)
{
    char *name = names[*(const char *)item->key.data - '0'];
    FILE *f = fopen("/proc/thread-self/comm", "r");

    if (f && fgets(name, sizeof names[0], f))
        name[strcspn(name, "\n")] = '\0';
    if (f)
        (void)fclose(f);
    return handle(ctx, item);
}

/* PW-03: two threads of a pool have these names. */
static void
assert_thread_names(const char *name, const char *first, const char *second)
{
    if (access("/proc/thread-self/comm", R_OK) != 0)
        wq_test_skip("the system does not report the names of threads");
    start(WQ_WORKERS(.threads = 1, .name = name, .handler = note_name));
    add_keys("0");
    await_begun(1);
    resize(2);
    add_keys("1");
    await_begun(2);
    end();
    assert_string_equal(names[0], first);
    assert_string_equal(names[1], second);
}

/* PW-03 */
TEST(threads_are_named_and_numbered)
{
    assert_thread_names("pod", "pod-0", "pod-1");
}

/* PW-03 */
TEST(long_thread_names_are_cut_before_the_number)
{
    assert_thread_names("a-name-longer-than-15-bytes", "a-name-longer-0",
                        "a-name-longer-1");
}

/* ---- handlers ------------------------------------------------------------ */

/* PQ-47 PW-12 PW-21 */
TEST(every_key_is_handled_once_and_done)
{
    char key[16];

    let_all();
    start(WQ_WORKERS(.threads = 4));
    for (int i = 0; i < 100; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        add(pool.q, key);
    }
    assert_err(drain_within(WQ_FOREVER), WQ_OK);
    assert_int_equal(begun(), 100);
    assert_int_equal(pool_stats().done, 100);
    assert_int_equal(pool_stats().threads, 0);
    assert_none_ready(pool.q, WQ_ESHUTDOWN);
}

/* */
TEST(key_added_while_handled_is_handled_again_after_done)
{
    start_busy(2, "foo");
    add_keys("foo foo");
    let_all();
    assert_err(drain_within(WQ_FOREVER), WQ_OK);
    assert_int_equal(begun(), 2);
    assert_int_equal(pool.most, 1);
}

static wq_result
use_everything(void *ctx, const wq_item *item)
{
    wq_workers_stats counts = {.size = sizeof counts};
    wq_item         *other;

    (void)ctx;
    if (item->key.len != 3 || wq_shutting_down(pool.q))
        return wq_result_done(); /* a key that the handler added */
    if (wq_add_str(pool.q, "other") || wq_add(pool.q, item->key) ||
        wq_add_after(pool.q, wq_str("later"), MS) ||
        wq_forget(pool.q, item->key) ||
        wq_num_requeues(pool.q, item->key) != 0 || wq_len(pool.q) > 2)
        pool.wrong = __LINE__;
    if (wq_get_within(pool.q, 0, &other) == WQ_OK &&
        wq_done(pool.q, other) != WQ_OK)
        pool.wrong = __LINE__;
    wq_interrupt(pool.q);
    if (wq_workers_resize(pool.workers, 3) ||
        wq_workers_resize(pool.workers, 1) ||
        wq_workers_count(pool.workers) != 1 ||
        wq_workers_read_stats(pool.workers, &counts) || counts.busy < 1)
        pool.wrong = __LINE__;
    wq_shutdown(pool.q);
    tally_add(&pool.handlers.begun, 1);
    return wq_result_done();
}

/* PW-09 */
TEST(handler_may_use_the_queue_and_resize_its_pool)
{
    start(WQ_WORKERS(.threads = 2, .handler = use_everything));
    add_keys("foo");
    await_begun(1);
    await_threads(0);
}

static bool
cannot_end_own_pool(void)
{
    return wq_workers_stop(pool.workers) == WQ_ESTATE &&
           drain_within(0) == WQ_ESTATE &&
           wq_workers_destroy(pool.workers) == WQ_ESTATE &&
           !wq_shutting_down(pool.q);
}

static void
end_own_pool_in_piece(void *ctx, size_t piece)
{
    (void)ctx;
    (void)piece;
    if (!cannot_end_own_pool())
        pool.wrong = __LINE__;
}

static wq_result
end_own_pool(void *ctx, const wq_item *item)
{
    if (!cannot_end_own_pool() ||
        wq_parallelize(3, 9, end_own_pool_in_piece, NULL, NULL))
        pool.wrong = __LINE__;
    return handle(ctx, item);
}

static void
end_own_pool_on_drop(void *ctx, wq_key key, unsigned retries, wq_err why)
{
    end_own_pool_in_piece(ctx, 0);
    note_drop(ctx, key, retries, why);
}

static void
end_own_pool_on_stuck(void *ctx, const wq_item *item, int64_t running_ns)
{
    if (!cannot_end_own_pool() || wq_workers_resize(pool.workers, 2))
        pool.wrong = __LINE__;
    note_stuck(ctx, item, running_ns);
}

/* PW-11 PW-09 */
TEST(callbacks_cannot_end_their_own_pool)
{
    pool.result = wq_result_drop();
    start(WQ_WORKERS(.threads = 1, .handler = end_own_pool,
                     .on_drop = end_own_pool_on_drop, .item_deadline_ns = MS,
                     .on_stuck = end_own_pool_on_stuck,
                     .clock = pool.t->clock));
    add_keys("foo");
    await_begun(1);
    await_sleepers(pool.t, 1);
    pass(MS);
    tally_await(&pool.reports.begun, 1);
    let_reports();
    let_all();
    tally_await(&pool.drops, 1);
}

/* ---- results ------------------------------------------------------------- */

/* The n-th run has begun, and the next one begins in exactly `delay_ns`. */
static void
assert_runs_again_in(unsigned n, int64_t delay_ns, unsigned requeues)
{
    await_begun(n);
    await_sleepers(pool.t, 1);
    assert_int_equal(wq_num_requeues(pool.q, wq_str("foo")), requeues);
    pass(delay_ns - 1);
    assert_int_equal(begun(), n);
    pass(1);
}

/* PQ-47 R-01 */
TEST(key_that_fails_runs_again_after_the_delay_of_the_limiter)
{
    use_limiter(0);
    pool.result = wq_result_retry();
    let_all();
    start(WQ_WORKERS(.threads = 1));
    add_keys("foo");
    for (unsigned n = 1; n <= 4; n++)
        assert_runs_again_in(n, 5 * MS << (n - 1), n);
    await_begun(5);
    end();
    assert_int_equal(pool.last.retried, 5);
}

/* PQ-47 */
TEST(key_that_runs_again_later_has_no_failures)
{
    use_limiter(0);
    pool.result = wq_result_after(70 * MS);
    let_all();
    start(WQ_WORKERS(.threads = 1));
    assert_err(wq_add_rate_limited(pool.q, wq_str("foo")), WQ_OK);
    await_sleepers(pool.t, 1);
    pass(5 * MS);
    for (unsigned n = 1; n <= 3; n++)
        assert_runs_again_in(n, 70 * MS, 0);
    await_begun(4);
}

static wq_result
retry_with_priority_7(void *ctx, const wq_item *item)
{
    if (item->priority != 7)
        pool.wrong = __LINE__;
    (void)handle(ctx, item);
    return begun() % 2 ? wq_result_retry() : wq_result_after(MS);
}

/* PQ-47 */
TEST(key_that_is_added_again_keeps_its_priority)
{
    use_limiter(0);
    let_all();
    start(WQ_WORKERS(.threads = 1, .handler = retry_with_priority_7));
    assert_err(wq_add_one(pool.q, wq_str("foo"), WQ_ADD(.priority = 7)), WQ_OK);
    for (unsigned n = 1; n <= 5; n++) {
        await_begun(n);
        await_sleepers(pool.t, 1);
        pass(1000 * MS);
    }
    end();
    assert_true(pool.last.retried >= 3 && pool.last.delayed >= 2);
}

static wq_result
fail_once(void *ctx, const wq_item *item)
{
    (void)handle(ctx, item);
    return begun() == 1 ? wq_result_retry() : wq_result_done();
}

/* PQ-47: a layer has no priorities; the key is added again without one. */
TEST(key_is_retried_where_priorities_are_not_supported)
{
    wq_queue *inner = pool.q;

    assert_err(wq_add_one(inner, wq_str("foo"), WQ_ADD(.priority = 5)), WQ_OK);
    assert_err(
        wq_rate_limiting_wrap(
            inner, WQ_CONFIG(.limiter = wq_limiter_exponential(1, 1)), &pool.q),
        WQ_OK);
    pool.t->q = pool.q; /* which owns `inner` */
    let_all();
    start(WQ_WORKERS(.threads = 1, .handler = fail_once, .on_drop = note_drop));
    await_begun(2);
    end();
    assert_int_equal(pool.last.retried, 1);
    assert_int_equal(pool.last.dropped, 0);
}

/* PW-06; S-13: a DEAD key keeps its failures. */
TEST(key_is_given_up_after_max_retries)
{
    wq_key_info info = {.size = sizeof info};

    use_limiter(2);
    pool.result = wq_result_retry();
    let_all();
    start(WQ_WORKERS(.threads = 1, .on_drop = note_drop));
    add_keys("foo");
    for (unsigned n = 1; n <= 2; n++)
        assert_runs_again_in(n, 5 * MS << (n - 1), n);
    tally_await(&pool.drops, 1);
    assert_int_equal(begun(), 3);
    assert_err(pool.drop_why, WQ_EGIVENUP);
    assert_int_equal(pool.drop_retries, 2);
    assert_err(wq_read_key(pool.q, wq_str("foo"), &info), WQ_OK);
    assert_int_equal(info.requeues, info.states == WQ_STATE_DEAD ? 2 : 0);
}

/* O-62 PW-08 */
TEST(key_that_the_pool_drops_counts_once_in_the_queue)
{
    wq_stats counts = {.size = sizeof counts};

    pool.result = wq_result_drop();
    let_all();
    start(WQ_WORKERS(.threads = 1, .on_drop = note_drop));
    add_keys("foo");
    tally_await(&pool.drops, 1);
    assert_err(wq_read_stats(pool.q, &counts), WQ_OK);
    assert_int_equal(counts.drops, 1);
    end();
    assert_int_equal(pool.last.dropped, 1);
}

/* PW-07 */
TEST(key_that_fails_after_shutdown_is_dropped)
{
    pool.result = wq_result_retry();
    start(WQ_WORKERS(.threads = 1, .on_drop = note_drop));
    add_keys("foo");
    await_begun(1);
    wq_shutdown(pool.q);
    let_all();
    tally_await(&pool.drops, 1);
    assert_err(pool.drop_why, WQ_ESHUTDOWN);
}

/* ---- the watchdog -------------------------------------------------------- */

static void
start_watched(void)
{
    start(WQ_WORKERS(.threads = 2, .item_deadline_ns = 10 * MS,
                     .on_stuck = note_stuck, .clock = pool.t->clock));
}

/* PW-18 */
TEST(handler_over_its_deadline_is_reported_once_for_each_run)
{
    let_reports();
    start_watched();
    for (unsigned n = 1; n <= 3; n++) {
        add_keys("foo");
        await_begun(n);
        await_sleepers(pool.t, 1);
        pass(10 * MS - 1);
        assert_int_equal(tally_read(&pool.reports.begun), n - 1);
        pass(1);
        tally_await(&pool.reports.ended, n);
        assert_int_equal(pool.running_ns, 10 * MS);
        pass(1000 * MS); /* not again */
        let(1);
        tally_await(&pool.handlers.ended, n);
        await_idle();
    }
    end();
    assert_int_equal(tally_read(&pool.reports.begun), 3);
}

/* PW-18 */
TEST(each_handler_is_reported_at_its_own_deadline)
{
    let_reports();
    start_watched();
    add_keys("foo");
    await_begun(1);
    pass(4 * MS);
    add_keys("bar");
    await_begun(2);
    await_sleepers(pool.t, 1);
    pass(6 * MS);
    tally_await(&pool.reports.begun, 1);
    await_sleepers(pool.t, 1);
    pass(3 * MS);
    assert_int_equal(tally_read(&pool.reports.begun), 1);
    pass(2 * MS);
    tally_await(&pool.reports.begun, 2);
    assert_int_equal(pool.running_ns, 11 * MS);
}

/* PW-18 */
TEST(handler_that_returns_in_time_is_not_reported)
{
    let_all();
    start_watched();
    for (unsigned n = 1; n <= 5; n++) {
        add_keys("foo");
        tally_await(&pool.handlers.ended, n);
        await_idle();
        pass(7 * MS);
    }
    end();
    assert_int_equal(tally_read(&pool.reports.begun), 0);
}

/* PW-18 */
TEST(item_is_not_done_while_it_is_reported)
{
    start_watched();
    end_handler_while_it_is_reported();
    struct worker *drain = worker_drain(pool.q);
    worker_await_blocked(drain);
    let_reports();
    assert_err(worker_join(drain), WQ_OK);
}

/* PW-18: stop waits for the handler and for the report, which may begin while
 * the pool stops. */
TEST(stop_waits_while_a_handler_is_reported)
{
    start_watched();
    add_keys("foo");
    await_begun(1);
    struct worker *stop = start_blocked(run_stop);
    await_sleepers(pool.t, 1);
    pass(10 * MS);
    tally_await(&pool.reports.begun, 1);
    let_all();
    worker_await_blocked(stop);
    let_reports();
    assert_err(worker_join(stop), WQ_OK);
}

/* ---- threads ------------------------------------------------------------- */

static void
note_lost(void *ctx, const wq_item *item)
{
    (void)ctx;
    (void)item;
    pool.wrong = __LINE__; /* holds of a queue in memory do not end */
}

static bool
process_has_threads(void *n)
{
    return count_threads() == *(int *)n;
}

/* PW-17 */
TEST(pool_has_its_threads_and_a_watchdog_if_needed)
{
    /* A sanitizer may start a thread of its own with the first of ours. And a
     * thread that has been joined may still be listed: count while they run. */
    start(WQ_WORKERS(.threads = 2));
    int before = count_threads() - 2;
    end();

    for (int watchdog = 0; watchdog <= 2; watchdog++) {
        int with = before + 3 + (watchdog > 0);

        start(WQ_WORKERS(.threads = 3, .on_stuck = note_stuck,
                         .item_deadline_ns = watchdog == 1 ? MS : 0,
                         .on_lost = watchdog == 2 ? note_lost : NULL));
        await_that(process_has_threads, &with, "the threads have started");
        end();
        await_that(process_has_threads, &before, "the threads have ended");
    }
}

/* ---- stats --------------------------------------------------------------- */

static bool
one_is_done(void *unused)
{
    (void)unused;
    return pool_stats().done == 1;
}

/* PW-21 */
TEST(stats_count_threads_and_results)
{
    start_busy(2, "foo");
    assert_threads(2, 1);
    assert_int_equal(pool_stats().done, 0);
    let_all();
    await_idle(); /* the key is counted a moment later */
    await_that(one_is_done, NULL, "the key is counted");
    assert_threads(2, 0);
    assert_err(wq_workers_stop(pool.workers), WQ_OK);
    assert_int_equal(pool_stats().done, 1); /* by threads that have ended */
    assert_threads(0, 0);
}

/* PW-21 */
TEST(stats_are_filled_as_far_as_the_size_reaches)
{
    wq_workers_stats counts = {.size = offsetof(wq_workers_stats, busy),
                               .busy = 77};

    start(WQ_WORKERS(.threads = 2));
    assert_err(wq_workers_read_stats(pool.workers, &counts), WQ_OK);
    assert_int_equal(counts.threads, 2);
    assert_int_equal(counts.busy, 77);
    assert_int_equal(counts.size, offsetof(wq_workers_stats, busy));
    counts.size = 0;
    assert_err(wq_workers_read_stats(pool.workers, &counts), WQ_EINVAL);
    counts.size = 9;
    assert_err(wq_workers_read_stats(pool.workers, &counts), WQ_EINVAL);
    assert_err(wq_workers_read_stats(pool.workers, NULL), WQ_EINVAL);
}

WQ_TESTS(with_pool(bad_configs_are_refused),
         with_pool(configs_of_older_and_newer_releases_are_accepted),
         test(null_pools_are_refused),
         with_pool(zero_threads_means_one_for_each_processor),
         with_pool(threads_are_named_and_numbered),
         with_pool(long_thread_names_are_cut_before_the_number),
         with_pool(every_key_is_handled_once_and_done),
         with_pool(key_added_while_handled_is_handled_again_after_done),
         with_pool(handler_may_use_the_queue_and_resize_its_pool),
         with_pool(callbacks_cannot_end_their_own_pool),
         with_pool(key_that_fails_runs_again_after_the_delay_of_the_limiter),
         with_pool(key_that_runs_again_later_has_no_failures),
         with_pool(key_that_is_added_again_keeps_its_priority),
         with_pool(key_is_retried_where_priorities_are_not_supported),
         with_pool(key_is_given_up_after_max_retries),
         with_pool(key_that_the_pool_drops_counts_once_in_the_queue),
         with_pool(key_that_fails_after_shutdown_is_dropped),
         with_pool(handler_over_its_deadline_is_reported_once_for_each_run),
         with_pool(each_handler_is_reported_at_its_own_deadline),
         with_pool(handler_that_returns_in_time_is_not_reported),
         with_pool(item_is_not_done_while_it_is_reported),
         with_pool(stop_waits_while_a_handler_is_reported),
         with_pool(pool_has_its_threads_and_a_watchdog_if_needed),
         with_pool(stats_count_threads_and_results),
         with_pool(stats_are_filled_as_far_as_the_size_reaches));
