/* SPDX-License-Identifier: MIT */
/* test_workers_start.c: what is left when there are not enough threads, or not
 * enough memory, for a pool? Nothing, and it can be tried again. */
#include "support/wq_test.h"

#include <stdatomic.h>
#include <string.h>

#include <wq/workers.h>

#include "core/mem.h"
#include "port/thread.h"
#include "support/checkpoint.h"
#include "support/sweep.h"
#include "support/worker.h"

enum { THREADS = 4 };

static atomic_uint handled;

static wq_result
handle(void *ctx, const wq_item *item)
{
    (void)ctx;
    (void)item;
    atomic_fetch_add(&handled, 1);
    return wq_result_done();
}

static void
ignore(void *ctx, const wq_item *item, int64_t running_ns)
{
    (void)ctx;
    (void)item;
    (void)running_ns;
}

/* A queue with a key, and how a pool for it is made. */
static struct {
    struct counting  *mem;
    wq_queue         *q;
    wq_workers       *pool;
    wq_workers_config config;
} b;

static struct counting own; /* unless a sweep has another one */

static void
set_up(struct counting *mem, bool watched)
{
    memset(&b, 0, sizeof b);
    b.mem = mem;
    b.config = (wq_workers_config){
        .size = sizeof b.config,
        .threads = THREADS,
        .handler = handle,
        .allocator = &mem->allocator,
        .item_deadline_ns = watched,
        .on_stuck = ignore,
    };
    atomic_store(&handled, 0);
    assert_err(wq_create(NULL, &b.q), WQ_OK);
    assert_err(wq_add_str(b.q, "foo"), WQ_OK);
}

static wq_err
start(void)
{
    return wq_workers_start(b.q, &b.config, &b.pool);
}

static void
set_up_started(void)
{
    counting_init(&own);
    set_up(&own, false);
    assert_err(start(), WQ_OK);
}

static void
tear_down(void)
{
    wq__thread_refuse(0);
    assert_err(wq_workers_destroy(b.pool), WQ_OK);
    wq_destroy(b.q);
    if (b.mem == &own)
        assert_int_equal(own.bytes, 0);
}

static void
expect_workers(size_t n)
{
    wq_workers_stats counts = {.size = sizeof counts};

    assert_err(wq_workers_read_stats(b.pool, &counts), WQ_OK);
    assert_int_equal(counts.threads, n);
}

/* No pool, no memory, no key handed out. */
static void
expect_nothing_started(void)
{
    assert_null(b.pool);
    assert_int_equal(b.mem->bytes, 0);
    assert_int_equal(handled, 0);
    assert_int_equal(wq_len(b.q), 1);
}

static void
expect_size_unchanged(void)
{
    assert_int_equal(wq_workers_count(b.pool), THREADS);
    expect_workers(THREADS);
}

/* PW-04 */
TEST(start_without_enough_threads_starts_none)
{
    for (int watched = 0; watched <= 1; watched++)
        for (unsigned nth = 1; nth <= THREADS + (unsigned)watched; nth++) {
            counting_init(&own);
            set_up(&own, watched);
            wq__thread_refuse(nth);
            assert_err(start(), WQ_ENOMEM);
            expect_nothing_started();

            wq__thread_refuse(0);
            assert_err(start(), WQ_OK);
            assert_err(wq_workers_drain(b.pool, WQ_FOREVER), WQ_OK);
            assert_int_equal(handled, 1);
            tear_down();
        }
}

/* PW-14 */
TEST(resize_without_enough_threads_leaves_the_size)
{
    for (unsigned nth = 1; nth <= 3; nth++) {
        set_up_started();
        const size_t bytes = own.bytes;
        wq__thread_refuse(nth);
        assert_err(wq_workers_resize(b.pool, THREADS + 3), WQ_ENOMEM);
        expect_size_unchanged();
        assert_int_equal(own.bytes, bytes);

        wq__thread_refuse(0);
        assert_err(wq_workers_resize(b.pool, THREADS + 3), WQ_OK);
        expect_workers(THREADS + 3);
        tear_down();
    }
}

/* PW-17: their memory, and with it their threads, are given back. */
TEST(workers_that_left_are_gone_after_the_next_resize)
{
    wq_workers_stats counts = {.size = sizeof counts};

    set_up_started();
    assert_int_equal(own.blocks, 1 + THREADS);
    for (unsigned n = 1; n <= 20; n++) {
        assert_err(wq_workers_resize(b.pool, 0), WQ_OK);
        assert_err(wq_workers_resize(b.pool, 2), WQ_OK);
        do /* the worker that held foo is leaving */
            assert_err(wq_workers_read_stats(b.pool, &counts), WQ_OK);
        while (counts.threads > 2);
    }
    assert_err(wq_workers_resize(b.pool, 2), WQ_OK);
    assert_int_equal(own.blocks, 1 + 2);
    tear_down();
}

/* An allocator that can be held. */
static void *
allocate_on_stage(void *ctx, size_t n)
{
    checkpoint_pass(ctx);
    return wq__mem_alloc(&wq__mem_default, n);
}

static int
run_resize(struct worker *self)
{
    return (int)wq_workers_resize(self->arg, THREADS);
}

/* PW-14: or there would be twice as many. */
TEST(two_resizes_at_once_take_turns)
{
    struct checkpoint  checkpoint = CHECKPOINT_INIT;
    const wq_allocator slow = {.size = sizeof slow,
                               .ctx = &checkpoint,
                               .alloc = allocate_on_stage,
                               .free = wq__mem_default.free};

    counting_init(&own);
    set_up(&own, false);
    b.config.threads = 1;
    b.config.allocator = &slow;
    tally_add(&checkpoint.allowed, 2); /* the pool and one worker */
    assert_err(start(), WQ_OK);

    struct worker *first = worker_start(run_resize, b.pool);
    tally_await(&checkpoint.begun, 3);
    struct worker *second = worker_start(run_resize, b.pool);
    worker_await_blocked(second);
    assert_int_equal(tally_read(&checkpoint.begun), 3);
    tally_add(&checkpoint.allowed, CHECKPOINT_OPEN);
    assert_err(worker_join(first), WQ_OK);
    assert_err(worker_join(second), WQ_OK);
    expect_workers(THREADS);
    tear_down();
}

/* ---- every allocation refused once --------------------------------------- */

static void
set_up_stopped(struct counting *mem)
{
    set_up(mem, true);
}

static void
set_up_running(struct counting *mem)
{
    set_up(mem, true);
    assert_err(start(), WQ_OK);
}

static wq_err
op_resize(void)
{
    return wq_workers_resize(b.pool, THREADS + 3);
}

static void
expect_started(void)
{
    expect_workers(THREADS);
}

static void
expect_larger(void)
{
    expect_workers(THREADS + 3);
}

/* PW-04 PW-14 */
TEST(start_and_resize_without_memory_change_nothing)
{
    static const struct fixture stopped = {set_up_stopped, tear_down};
    static const struct fixture running = {set_up_running, tear_down};

    assert_fails_cleanly(&stopped, "start", start, expect_nothing_started,
                         expect_started);
    assert_fails_cleanly(&running, "resize", op_resize, expect_size_unchanged,
                         expect_larger);
}

/* ---- wq_parallelize() ---------------------------------------------------- */

static void
visit(void *ctx, size_t piece)
{
    atomic_fetch_add(&((atomic_uint *)ctx)[piece], 1);
}

static void
assert_each_visited_once(const atomic_uint *visits, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_int_equal(visits[i], 1);
}

/* PW-24 */
TEST(parallelize_without_enough_threads_does_all_the_work)
{
    for (unsigned nth = 1; nth <= 4; nth++) {
        atomic_uint visits[100] = {0};

        wq__thread_refuse(nth);
        assert_err(wq_parallelize(4, 100, visit, visits, NULL), WQ_OK);
        wq__thread_refuse(0);
        assert_each_visited_once(visits, 100);
    }
}

/* PW-24 */
TEST(parallelize_gives_memory_back_or_does_without)
{
    for (int refused = 0; refused < 2; refused++) {
        atomic_uint     visits[100] = {0};
        struct counting mem;

        counting_init(&mem);
        if (refused)
            counting_fail(&mem, 1, COUNTING_FROM_NOW);
        assert_err(wq_parallelize(4, 100, visit, visits,
                                  WQ_PARALLEL(.allocator = &mem.allocator)),
                   WQ_OK);
        assert_int_equal(mem.calls, 1);
        assert_int_equal(mem.refused, refused);
        assert_int_equal(mem.bytes, 0);
        assert_each_visited_once(visits, 100);
    }
}

/* ---- names --------------------------------------------------------------- */

/* PW-03 */
TEST(thread_names_are_cut_before_the_suffix)
{
    static const struct {
        const char *name, *suffix, *whole;
    } rows[] = {
        {"pod", "-0", "pod-0"},
        {"", "-0", ""},
        {"123456789abcd", "-0", "123456789abcd-0"},
        {"123456789abcde", "-0", "123456789abcd-0"},
        {"123456789abcdef0", "-4294967295", "1234-4294967295"},
        {"123456789abcdef0", "-watch", "123456789-watch"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char name[WQ__THREAD_NAME_MAX];

        wq__thread_name(name, rows[i].name, rows[i].suffix);
        assert_string_equal(name, rows[i].whole);
    }
}

/* PW-02 */
TEST(there_is_a_processor)
{
    assert_true(wq__thread_processors() >= 1);
}

WQ_TESTS(test(start_without_enough_threads_starts_none),
         test(resize_without_enough_threads_leaves_the_size),
         test(workers_that_left_are_gone_after_the_next_resize),
         test(two_resizes_at_once_take_turns),
         test(start_and_resize_without_memory_change_nothing),
         test(parallelize_without_enough_threads_does_all_the_work),
         test(parallelize_gives_memory_back_or_does_without),
         test(thread_names_are_cut_before_the_suffix),
         test(there_is_a_processor));
