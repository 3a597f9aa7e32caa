/* SPDX-License-Identifier: MIT */
/* test_workers_start.c: what is left when there are not enough threads, or not
 * enough memory, for a pool? Nothing, and it can be tried again. */
#include "support/wq_test.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <wq/workers.h>

#include "port/thread.h"
#include "support/counting.h"
#include "support/stage.h"
#include "support/worker.h"

#define assert_err(actual, expected)                                           \
    assert_string_equal(wq_err_name((wq_err)(actual)), wq_err_name(expected))

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
struct bench {
    struct counting  *mem;
    wq_queue         *q;
    wq_workers       *pool;
    wq_workers_config config;
};

static void
set_up(struct bench *b, struct counting *mem, int64_t item_deadline_ns)
{
    *b = (struct bench){
        .mem = mem,
        .config =
            {
                .size = sizeof b->config,
                .threads = THREADS,
                .handler = handle,
                .allocator = &mem->allocator,
                .item_deadline_ns = item_deadline_ns,
                .on_stuck = ignore,
            },
    };
    atomic_store(&handled, 0);
    assert_err(wq_create(NULL, &b->q), WQ_OK);
    assert_err(wq_add_str(b->q, "foo"), WQ_OK);
}

static void
tear_down(struct bench *b)
{
    wq__thread_refuse(0);
    assert_err(wq_workers_destroy(b->pool), WQ_OK);
    wq_destroy(b->q);
}

static size_t
count_workers(struct bench *b)
{
    wq_workers_stats counts = {.size = sizeof counts};

    assert_err(wq_workers_read_stats(b->pool, &counts), WQ_OK);
    return counts.threads;
}

/* PW-04 */
TEST(start_without_enough_threads_starts_none_and_calls_no_handler)
{
    for (int watched = 0; watched <= 1; watched++)
        for (unsigned nth = 1; nth <= THREADS + (unsigned)watched; nth++) {
            struct counting mem;
            struct bench    b;

            counting_init(&mem);
            set_up(&b, &mem, watched);
            wq__thread_refuse(nth);
            assert_err(wq_workers_start(b.q, &b.config, &b.pool), WQ_ENOMEM);
            assert_null(b.pool);
            assert_int_equal(mem.bytes, 0);
            assert_int_equal(handled, 0);
            assert_int_equal(wq_len(b.q), 1);

            wq__thread_refuse(0);
            assert_err(wq_workers_start(b.q, &b.config, &b.pool), WQ_OK);
            assert_err(wq_workers_drain(b.pool, WQ_FOREVER), WQ_OK);
            assert_int_equal(handled, 1);
            tear_down(&b);
            assert_int_equal(mem.bytes, 0);
        }
}

/* PW-14 */
TEST(resize_without_enough_threads_leaves_the_size)
{
    for (unsigned nth = 1; nth <= 3; nth++) {
        struct counting mem;
        struct bench    b;

        counting_init(&mem);
        set_up(&b, &mem, 0);
        assert_err(wq_workers_start(b.q, &b.config, &b.pool), WQ_OK);
        const size_t bytes = mem.bytes;
        wq__thread_refuse(nth);
        assert_err(wq_workers_resize(b.pool, THREADS + 3), WQ_ENOMEM);
        assert_int_equal(wq_workers_count(b.pool), THREADS);
        assert_int_equal(count_workers(&b), THREADS);
        assert_int_equal(mem.bytes, bytes);

        wq__thread_refuse(0);
        assert_err(wq_workers_resize(b.pool, THREADS + 3), WQ_OK);
        assert_int_equal(count_workers(&b), THREADS + 3);
        tear_down(&b);
        assert_int_equal(mem.bytes, 0);
    }
}

/* PW-17: their memory, and with it their threads, are given back. */
TEST(workers_who_have_left_are_gone_after_the_next_resize)
{
    struct counting mem;
    struct bench    b;

    counting_init(&mem);
    set_up(&b, &mem, 0);
    assert_err(wq_workers_start(b.q, &b.config, &b.pool), WQ_OK);
    assert_int_equal(mem.blocks, 1 + THREADS);
    for (unsigned n = 1; n <= 20; n++) {
        assert_err(wq_workers_resize(b.pool, 0), WQ_OK);
        assert_err(wq_workers_resize(b.pool, 2), WQ_OK);
        while (count_workers(&b) > 2)
            ; /* whoever had foo in hand is leaving */
    }
    assert_err(wq_workers_resize(b.pool, 2), WQ_OK);
    assert_int_equal(mem.blocks, 1 + 2);
    tear_down(&b);
    assert_int_equal(mem.bytes, 0);
}

/* An allocator that can be held. */
static void *
allocate_on_stage(void *ctx, size_t n)
{
    stage_pass(ctx);
    return malloc(n);
}

static void
release(void *ctx, void *p, size_t n)
{
    (void)ctx;
    (void)n;
    free(p);
}

static int
run_resize(struct worker *self)
{
    return (int)wq_workers_resize(self->arg, THREADS);
}

/* PW-14: or there would be twice as many. */
TEST(two_resizes_at_once_take_turns)
{
    struct stage       stage = STAGE_INIT;
    const wq_allocator slow = {.size = sizeof slow,
                               .ctx = &stage,
                               .alloc = allocate_on_stage,
                               .free = release};
    struct bench       b;
    struct counting    unused;

    counting_init(&unused);
    set_up(&b, &unused, 0);
    b.config.threads = 1;
    b.config.allocator = &slow;
    tally_add(&stage.allowed, 2); /* the pool and one worker */
    assert_err(wq_workers_start(b.q, &b.config, &b.pool), WQ_OK);

    struct worker *first = worker_start(run_resize, b.pool);
    tally_await(&stage.begun, 3);
    struct worker *second = worker_start(run_resize, b.pool);
    worker_await_blocked(second);
    assert_int_equal(tally_read(&stage.begun), 3);
    tally_add(&stage.allowed, STAGE_OPEN);
    assert_err(worker_join(first), WQ_OK);
    assert_err(worker_join(second), WQ_OK);
    assert_int_equal(count_workers(&b), THREADS);
    tear_down(&b);
}

/* ---- every allocation refused once --------------------------------------- */

static void *
make_bench(struct counting *mem)
{
    static struct bench b;

    set_up(&b, mem, 1);
    return &b;
}

static wq_err
op_start(void *ctx)
{
    struct bench *b = ctx;
    return wq_workers_start(b->q, &b->config, &b->pool);
}

static void
nothing_started(void *ctx)
{
    struct bench *b = ctx;

    assert_null(b->pool);
    assert_int_equal(b->mem->bytes, 0);
    assert_int_equal(handled, 0);
}

static void
all_started(void *ctx)
{
    assert_int_equal(count_workers(ctx), THREADS);
}

static void
end_bench(void *ctx)
{
    tear_down(ctx);
}

/* PW-04 */
TEST(start_without_memory_starts_nothing)
{
    const char *broken = counting_sweep(&(struct counting_sweep){
        .name = "start",
        .setup = make_bench,
        .op = op_start,
        .unchanged = nothing_started,
        .done = all_started,
        .teardown = end_bench,
    });
    if (broken)
        fail_msg("%s", broken);
}

static void *
make_started_bench(struct counting *mem)
{
    struct bench *b = make_bench(mem);

    assert_err(op_start(b), WQ_OK);
    return b;
}

static wq_err
op_resize(void *ctx)
{
    return wq_workers_resize(((struct bench *)ctx)->pool, THREADS + 3);
}

static void
size_is_what_it_was(void *ctx)
{
    assert_int_equal(wq_workers_count(((struct bench *)ctx)->pool), THREADS);
    assert_int_equal(count_workers(ctx), THREADS);
}

static void
size_is_larger(void *ctx)
{
    assert_int_equal(count_workers(ctx), THREADS + 3);
}

/* PW-14 */
TEST(resize_without_memory_leaves_the_size)
{
    const char *broken = counting_sweep(&(struct counting_sweep){
        .name = "resize",
        .setup = make_started_bench,
        .op = op_resize,
        .unchanged = size_is_what_it_was,
        .done = size_is_larger,
        .teardown = end_bench,
    });
    if (broken)
        fail_msg("%s", broken);
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
TEST(parallelize_without_memory_does_all_the_work)
{
    atomic_uint     visits[100] = {0};
    struct counting mem;

    counting_init(&mem);
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    assert_err(wq_parallelize(4, 100, visit, visits,
                              WQ_PARALLEL(.allocator = &mem.allocator)),
               WQ_OK);
    assert_int_equal(mem.refused, 1);
    assert_each_visited_once(visits, 100);
}

/* PW-24 */
TEST(parallelize_gives_its_memory_back)
{
    atomic_uint     visits[100] = {0};
    struct counting mem;

    counting_init(&mem);
    assert_err(wq_parallelize(4, 100, visit, visits,
                              WQ_PARALLEL(.allocator = &mem.allocator)),
               WQ_OK);
    assert_int_equal(mem.calls, 1);
    assert_int_equal(mem.bytes, 0);
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

WQ_TESTS(test(start_without_enough_threads_starts_none_and_calls_no_handler),
         test(resize_without_enough_threads_leaves_the_size),
         test(workers_who_have_left_are_gone_after_the_next_resize),
         test(two_resizes_at_once_take_turns),
         test(start_without_memory_starts_nothing),
         test(resize_without_memory_leaves_the_size),
         test(parallelize_without_enough_threads_does_all_the_work),
         test(parallelize_without_memory_does_all_the_work),
         test(parallelize_gives_its_memory_back),
         test(thread_names_are_cut_before_the_suffix),
         test(there_is_a_processor));
