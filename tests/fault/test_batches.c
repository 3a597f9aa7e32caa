/* SPDX-License-Identifier: MIT */
/* test_batches.c: what does a user see when there is no memory for a call with
 * several keys or items?
 *
 * A batch is added as a whole or not at all; a get takes as many as it can; a
 * done needs no memory, also when the next get fails.
 */
#include "fault/queue_scene.h"

/* ---- adds with options -------------------------------------------------- */

enum { BATCH_MAX = 40 };

static char   batch_names[BATCH_MAX][32];
static wq_key batch_keys[BATCH_MAX];

/* A batch to add, and how. */
static wq_add_options how;
static size_t         batch;

static void
name_batch(size_t n)
{
    batch = n;
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(batch_names[i], sizeof batch_names[i], "new%zu", i);
        batch_keys[i] = wq_str(batch_names[i]);
    }
}

static wq_err
op_add_with(void)
{
    wq_added     what[BATCH_MAX];
    wq_added     never = (wq_added)77;
    const size_t n = batch;

    for (size_t i = 0; i < n; i++)
        what[i] = never;
    how.size = sizeof how;
    how.results = what;
    const wq_err err = wq_add_with(ctx.q, &how, batch_keys, n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(what[i] == never, err != WQ_OK);
    return err;
}

/* The limiter knows nothing of it, either. */
static void
unchanged_and_not_asked(void)
{
    unchanged();
    for (size_t i = 0; i < batch; i++)
        assert_int_equal(wq_num_requeues(ctx.q, batch_keys[i]), 0);
}

static void
batch_is_in(void)
{
    expect_sound();
    expect_all_in_order(0);
    for (size_t i = 0; i < batch; i++) {
        wq_key_info info = {.size = sizeof info};
        assert_int_equal(wq_read_key(ctx.q, batch_keys[i], &info), WQ_OK);
        assert_int_equal(info.states & (WQ_STATE_READY | WQ_STATE_WAITING),
                         how.debounce_ns || how.after_ns || how.rate_limited
                             ? WQ_STATE_WAITING
                             : WQ_STATE_READY);
        assert_int_equal(info.priority, how.priority);
    }
}

static void
expect_all_or_none(const char *name, const wq_add_options *wanted)
{
    static const size_t sizes[] = {1, 3, BATCH_MAX};

    how = *wanted;
    for (int i = 0; i < 3; i++) {
        name_batch(sizes[i]);
        /* a few keys find room that is there already, and are no test */
        const int most = batch < BATCH_MAX ? 1 : SIZES;
        for (scene.ready = 0; scene.ready < most; scene.ready += 3)
            assert_fails_cleanly(&queue_fixture, name, op_add_with,
                                 unchanged_and_not_asked, batch_is_in);
    }
}

/* O-50: all or none. */
TEST(batch_without_memory_adds_none)
{
    scene = (struct scene){0};
    expect_all_or_none("batch", WQ_ADD(.priority = 0));
    expect_all_or_none("batch with a priority", WQ_ADD(.priority = -1));
    expect_all_or_none("delayed batch",
                       WQ_ADD(.after_ns = hour, .priority = -3));
}

/* O-50 O-53 O-54 */
TEST(batch_of_paced_keys_without_memory_adds_none)
{
    scene = (struct scene){0};
    expect_all_or_none("debounced batch",
                       WQ_ADD(.debounce_ns = hour, .max_wait_ns = 2 * hour));
    expect_all_or_none("throttled batch",
                       WQ_ADD(.throttle_ns = hour, .priority = -2));
}

/* O-50 R-03: what was asked in vain is taken back. */
TEST(batch_of_limited_keys_without_memory_adds_none)
{
    scene = (struct scene){.has_limiter = true};
    expect_all_or_none("limited batch", WQ_ADD(.rate_limited = true));
}

/* O-13 O-50 */
TEST(batch_behind_keys_handed_over_without_memory_loses_none)
{
    scene = (struct scene){.handed_over = 60};
    how = *WQ_ADD(.priority = -1);
    name_batch(3);
    expect_failure("batch behind keys handed over", op_add_with, batch_is_in);
}

/* ---- several items ------------------------------------------------------ */

static wq_err
op_get_many(void)
{
    return wq_get_many(ctx.q, ctx.many, 64, 0, &ctx.n);
}

/* It may be fewer: the next get will meet what stopped this one. */
static void
many_came_in_order(void)
{
    expect_sound();
    assert_in_range(ctx.n, 1, scene.ready);
    for (int i = 0; i < (int)ctx.n; i++)
        expect_key(ctx.many[i], "ready", i);
    expect_all_in_order((int)ctx.n);
}

static void
unchanged_and_none_taken(void)
{
    unchanged();
    assert_int_equal(ctx.n, 0);
    assert_null(ctx.many[0]);
}

/* O-59 */
TEST(get_of_many_without_memory_takes_as_many_as_it_can)
{
    scene = (struct scene){.ready = 60};
    assert_fails_cleanly(&queue_fixture, "get of many", op_get_many,
                         unchanged_and_none_taken, many_came_in_order);
}

static void
setup_many(struct counting *mem)
{
    setup(mem);
    assert_int_equal(op_get_many(), WQ_OK);
    assert_int_equal(ctx.n, scene.ready);
}

static const struct fixture many_held = {setup_many, teardown};

static wq_err
op_done_many(void)
{
    return wq_done_many(ctx.q, ctx.many, ctx.n);
}

static void
none_is_held(void)
{
    expect_sound();
    assert_int_equal(inside()->core.loans.live, 0);
}

/* O-60 */
TEST(done_of_many_needs_no_memory)
{
    scene = (struct scene){.ready = 60};
    assert_needs_no_memory(&many_held, "done of many", op_done_many,
                           none_is_held);
}

/* ---- done and get in one ------------------------------------------------ */

static wq_err
op_next(void)
{
    const wq_err err = wq_next(ctx.q, 0, &ctx.item);
    assert_true(err ? !ctx.item : ctx.item != NULL);
    return err;
}

static void
the_next_is_held(void)
{
    expect_sound();
    assert_int_equal(inside()->core.loans.live, 1);
    expect_all_in_order(1);
}

/* A key of another size than those there are: it needs a new block. */
static void
hand_over_a_longer_one(void)
{
    begin_handing_over();
    assert_int_equal(wq_add(ctx.q, (wq_key){long_bytes, 100}), WQ_OK);
    end_handing_over();
}

/* O-61 O-13: the old one is done, which needs no memory; *item says so. */
TEST(next_without_memory_has_given_back_the_old_one)
{
    struct counting mem;

    counting_init(&mem);
    scene = (struct scene){.held = 1};
    setup(&mem);
    hand_over_a_longer_one();
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    assert_int_equal(op_next(), WQ_ENOMEM);
    expect_sound();
    assert_int_equal(inside()->core.loans.live, 0);
    assert_int_equal(count_pending(), 1);
    assert_int_equal(op_next(), WQ_ENOMEM);
    counting_heal(&mem);
    assert_int_equal(op_next(), WQ_OK);
    assert_int_equal(ctx.item->key.len, 100);
    teardown();
    assert_int_equal(mem.bytes, 0);
}

/* O-61: where one loan ends another can begin. */
TEST(next_needs_no_memory_where_keys_are_ready)
{
    scene = (struct scene){.held = 1, .ready = 5};
    expect_no_need("next", op_next, the_next_is_held);
}

WQ_TESTS(test(batch_without_memory_adds_none),
         test(batch_of_paced_keys_without_memory_adds_none),
         test(batch_of_limited_keys_without_memory_adds_none),
         test(batch_behind_keys_handed_over_without_memory_loses_none),
         test(get_of_many_without_memory_takes_as_many_as_it_can),
         test(done_of_many_needs_no_memory),
         test(next_without_memory_has_given_back_the_old_one),
         test(next_needs_no_memory_where_keys_are_ready));
