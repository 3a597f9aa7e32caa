/* SPDX-License-Identifier: MIT */
/* test_metrics.c: what do sinks and onlookers see when there is no memory?
 *
 * Every allocation is refused once, and for good: what did not happen is not
 * told, sinks that were opened are closed, and numbers that count stay true.
 */
#include "support/wq_test.h"

#include <string.h>

#include <wq/limiter.h>

#include "memory/memory.h"
#include "support/look.h"
#include "support/recorder.h"
#include "support/sweep.h"

struct ctx {
    struct counting *mem;
    wq_queue        *q;
    struct recorder  all[2]; /* two sinks */
};

static struct ctx ctx;

/* ---- the scene ---------------------------------------------------------- */

static void
setup_nothing(struct counting *mem)
{
    memset(&ctx, 0, sizeof ctx);
    ctx.mem = mem;
    recorder_init(&ctx.all[0]);
    recorder_init(&ctx.all[1]);
    ctx.all[0].sink.next = &ctx.all[1].sink;
}

static wq_err
op_create(void)
{
    return wq_create(WQ_CONFIG(.name = "test", .metrics = &ctx.all[0].sink,
                               .allocator = &ctx.mem->allocator),
                     &ctx.q);
}

static void
setup(struct counting *mem)
{
    setup_nothing(mem);
    assert_err(op_create(), WQ_OK);
}

static void
teardown(void)
{
    wq_destroy(ctx.q);
    for (int i = 0; i < 2; i++) {
        const struct recorder *r = &ctx.all[i];
        assert_int_equal(r->calls[RECORDER_OPEN], r->calls[RECORDER_CLOSE]);
        assert_int_equal(r->sum.adds, r->last.adds);
        assert_int_equal(r->sum.retries, r->last.retries);
        assert_int_equal(r->sum.depth, r->last.ready + r->last.dirty);
    }
}

static const struct fixture no_queue_yet = {setup_nothing, teardown};
static const struct fixture a_queue = {setup, teardown};

/* ---- create ------------------------------------------------------------- */

static void
no_queue(void)
{
    assert_null(ctx.q);
    assert_int_equal(ctx.mem->bytes, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(ctx.all[i].calls[RECORDER_OPEN],
                         ctx.all[i].calls[RECORDER_CLOSE]);
}

static void
one_add_told(void)
{
    for (int i = 0; i < 2; i++)
        assert_int_equal(ctx.all[i].sum.adds, 1);
}

static void
queue_tells(void)
{
    assert_err(wq_add_str(ctx.q, "foo"), WQ_OK);
    one_add_told();
}

/* L6 M-06 */
TEST(create_without_memory_leaves_no_sink_open)
{
    assert_fails_cleanly(&no_queue_yet, "create", op_create, no_queue,
                         queue_tells);
}

/* ---- adds --------------------------------------------------------------- */

static void
nothing_told(void)
{
    const wq_stats counts = stats_of(ctx.q);

    assert_int_equal(counts.adds + counts.retries + counts.waiting, 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ctx.all[i].calls[RECORDER_CHANGED], 0);
        assert_int_equal(ctx.all[i].limited.n, 0);
    }
}

static wq_err
op_add(void)
{
    return wq_add_str(ctx.q, "foo");
}

/* L6 M-02 */
TEST(add_without_memory_tells_nothing)
{
    assert_fails_cleanly(&a_queue, "add", op_add, nothing_told, one_add_told);
}

static wq_err
op_retry(void)
{
    return wq_add_rate_limited(ctx.q, wq_str("foo"));
}

static void
one_retry_told(void)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ctx.all[i].sum.retries, 1);
        assert_int_equal(ctx.all[i].limited.n, 1);
    }
}

/* L6 M-04 M-08 */
TEST(retry_without_memory_tells_nothing)
{
    assert_fails_cleanly(&a_queue, "rate-limited add", op_retry, nothing_told,
                         one_retry_told);
}

/* ---- looking ------------------------------------------------------------ */

static void
setup_keys(struct counting *mem)
{
    setup(mem);
    for (uint64_t i = 0; i < 100; i++)
        assert_err(wq_add(ctx.q, wq_u64(&i)), WQ_OK);
}

static wq_err
op_each(void)
{
    return each_or_none(ctx.q, 100);
}

static const struct fixture hundred_keys = {setup_keys, teardown};

/* L6 O-33 */
TEST(walk_without_memory_visits_nothing)
{
    assert_fails_cleanly(&hundred_keys, "each", op_each, NULL, NULL);
}

static wq_err
op_look(void)
{
    wq_stats    counts = {.size = sizeof counts};
    wq_key_info info = {.size = sizeof info};
    wq_depth    depth;
    size_t      n;
    wq_err      err = wq_read_stats(ctx.q, &counts);

    if (!err)
        err = wq_read_depths(ctx.q, &depth, 1, &n);
    return err ? err : wq_read_key(ctx.q, wq_str("foo"), &info);
}

/* O-30 O-31 O-32 */
TEST(looking_needs_no_memory)
{
    assert_needs_no_memory(&hundred_keys, "look", op_look, NULL);
}

/* ---- keys that cannot be taken in --------------------------------------- */

static wq_stats
stats(void)
{
    const wq_stats c = stats_of(ctx.q);

    assert_int_equal(c.adds, c.gets + c.removed + c.displaced + c.deferred +
                                 c.ready + c.dirty);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ctx.all[i].sum.adds, c.adds);
        assert_int_equal(ctx.all[i].sum.depth, c.ready + c.dirty);
    }
    return c;
}

/* O-13 O-30 O-32: `new` is accepted and cannot be taken in yet, and so is what
 * comes after it; it counts when it is. */
TEST(keys_in_an_inbox_without_memory_count_when_they_are_taken_in)
{
    struct counting    mem;
    wq_key_info        info = {.size = sizeof info, .states = 77};
    static char        new_key[100]; /* it needs a block of its own */
    struct wq__memory *m;

    counting_init(&mem);
    setup(&mem);
    m = (struct wq__memory *)(void *)ctx.q;
    memset(new_key, 'n', sizeof new_key);
    assert_err(wq_add_str(ctx.q, "foo"), WQ_OK);
    wq__lock_take(&m->lock);
    wq__inbox_open(&m->inbox);
    /* No producer tries to wake anybody: this thread has the lock. */
    atomic_store(&m->wake_from, WQ__WAKE_NOBODY);
    assert_err(wq_add(ctx.q, (wq_key){new_key, sizeof new_key}), WQ_OK);
    assert_err(wq_add_str(ctx.q, "foo"), WQ_OK); /* will be merged */
    wq__lock_release(&m->lock);

    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    const wq_stats before = stats();
    assert_int_equal(wq_len(ctx.q), 3); /* each counts singly there */
    assert_err(wq_read_key(ctx.q, wq_str("foo"), &info), WQ_ENOMEM);
    assert_int_equal(info.states, 77);
    counting_heal(&mem);
    assert_err(wq_add_str(ctx.q, "foo"),
               WQ_OK); /* tells, as questions do not */
    const wq_stats after = stats();
    assert_true(after.adds >= before.adds); /* counts never go down */
    assert_int_equal(after.adds, 2);
    assert_int_equal(after.merged, 2);
    assert_int_equal(after.ready, 2);
    teardown();
    assert_int_equal(mem.bytes, 0);
}

WQ_TESTS(test(create_without_memory_leaves_no_sink_open),
         test(add_without_memory_tells_nothing),
         test(retry_without_memory_tells_nothing),
         test(walk_without_memory_visits_nothing),
         test(looking_needs_no_memory),
         test(keys_in_an_inbox_without_memory_count_when_they_are_taken_in));
