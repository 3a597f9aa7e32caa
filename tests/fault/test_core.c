/* SPDX-License-Identifier: MIT */
/* test_core.c: what does the core do when it gets no memory?
 *
 * L6: every verb, with every one of its allocations refused, once and for good:
 * either it does its work or it says WQ_ENOMEM and has done nothing. Each
 * verb is tried on cores of many sizes, so that every table is once about to
 * grow. Adds with options are in test_core_adds.c; groups, ages and a bound on
 * bytes are in test_core_groups.c.
 */
#include "fault/core_scene.h"

/* ---- operations --------------------------------------------------------- */

static wq_err
op_admit(void)
{
    wq_added what;

    return wq__core_admit(&ctx.core, NEW_KEY, wq__core_hash(&ctx.core, NEW_KEY),
                          0, &what);
}

static wq_err
op_add_held(void)
{
    return add(wq_str("held0"));
}

static wq_err
op_add_waiting(void)
{
    return add(wq_str("wait0"));
}

static wq_err
op_add_after(void)
{
    return add_at(NEW_KEY, 11);
}

static wq_err
op_add_after_long(void)
{
    return add_at(long_key(), 11);
}

static wq_err
op_add_after_ready(void)
{
    return add_at(wq_str("ready0"), 11);
}

static wq_err
op_add_after_sooner(void)
{
    return add_at(wq_str("wait0"), 1);
}

static wq_err
op_shut_down(void)
{
    wq__core_shut_down(&ctx.core);
    return WQ_OK;
}

/* ---- the sweeps --------------------------------------------------------- */

TEST(add_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    expect_failure("first add", op_add);
    expect_at_every_size("add", op_add, &scene.ready, 0);
}

TEST(add_of_a_long_key_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    expect_failures("add of a long key", op_add_long, &scene.ready, SIZES);
}

TEST(admit_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    expect_failure("first admit", op_admit);
    expect_at_every_size("admit", op_admit, &scene.ready, 0);
}

TEST(add_of_a_known_key_needs_no_memory)
{
    scene = (struct scene){.held = 1};
    expect_no_need("add of a held key", op_add_held);
    scene = (struct scene){.waiting = 5};
    expect_no_need("add of a waiting key", op_add_waiting);
}

TEST(add_after_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    expect_failure("first add_after", op_add_after);
    expect_at_every_size("add_after", op_add_after, &scene.waiting, 0);
    scene = (struct scene){0};
    expect_at_every_size("add_after among ready keys", op_add_after,
                         &scene.ready, 0);
}

TEST(add_after_of_a_long_key_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    expect_failures("add_after of a long key", op_add_after_long,
                    &scene.waiting, SIZES);
}

TEST(add_after_of_a_ready_key_without_memory_changes_nothing)
{
    scene = (struct scene){.ready = 3};
    expect_failure("first add_after of a ready key", op_add_after_ready);
    expect_at_every_size("add_after of a ready key", op_add_after_ready,
                         &scene.waiting, 0);
}

TEST(sooner_deadline_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    expect_at_every_size("sooner deadline", op_add_after_sooner, &scene.waiting,
                         1);
}

TEST(promotion_needs_no_memory)
{
    scene = (struct scene){.waiting = SIZES};
    expect_no_need("promotion", op_promote);
}

TEST(get_without_memory_keeps_the_key_first)
{
    scene = (struct scene){.ready = 2};
    expect_failure("first get", op_get);
    expect_at_every_size("get", op_get, &scene.held, 0);
}

TEST(done_needs_no_memory)
{
    for (int dirty = 0; dirty < 2; dirty++) {
        scene = (struct scene){.held = 1, .dirty = dirty};
        expect_no_need("done of the only key", op_done);
        scene.held = SIZES;
        scene.ready = 3;
        expect_no_need("done", op_done);
        expect_no_need("done by key", op_done_key);
    }
}

TEST(shutdown_needs_no_memory)
{
    scene = (struct scene){.ready = 3, .held = 3, .waiting = SIZES};
    expect_no_need("shutdown", op_shut_down);
}

/* ---- what needs none ---------------------------------------------------- */

static wq_err
op_cancel(void)
{
    const wq_key key = wq_str(taken_back);

    return wq__core_cancel(&ctx.core, key, wq__core_hash(&ctx.core, key), 5);
}

/* O-57 O-58 */
TEST(taking_back_needs_no_memory)
{
    static const char *const wanted[] = {
        "ready1", "held0", "level2", "wait0", "throttled", "paced", "series"};

    scene = (struct scene){.ready = 3,
                           .held = 2,
                           .dirty = true,
                           .levels = 9,
                           .waiting = SIZES,
                           .paced = true};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        taken_back = wanted[i];
        expect_no_need("remove", op_remove);
    }
    for (size_t i = 3; i < sizeof wanted / sizeof wanted[0]; i += 3) {
        taken_back = wanted[i];
        expect_no_need("cancel", op_cancel);
    }
}

TEST(promotion_of_paced_keys_needs_no_memory)
{
    scene = (struct scene){.waiting = 20, .levels = 9, .paced = true};
    expect_no_need("promotion", op_promote);
    expect_no_need("shutdown", op_shut_down);
}

/* O-30 O-31 O-32 O-33 */
TEST(looking_needs_no_memory_and_changes_nothing)
{
    const wq_key    wait0 = wq_str("wait0");
    struct counting mem;
    wq_stats        counts;
    wq_depth        depths[4];
    wq_key_info     info;
    wq_key          key;
    wq__ref         cursor = 0;
    size_t          n, budget = 1000, met = 0;

    scene = (struct scene){.ready = 3,
                           .held = 2,
                           .dirty = true,
                           .levels = 9,
                           .waiting = 20,
                           .paced = true,
                           .ages = true};
    counting_init(&mem);
    setup(&mem);
    const uint64_t calls = mem.calls;
    wq__core_stats(&ctx.core, 5, &counts);
    wq__core_depths(&ctx.core, depths, 4, &n);
    wq__core_key_info(&ctx.core, wait0, wq__core_hash(&ctx.core, wait0), 5,
                      &info);
    while (wq__core_walk(&ctx.core, &cursor, &budget, 31, 5, &key, &info))
        met++;
    assert_int_equal(met, 3 + 2 + 9 + 20 + 3);
    assert_int_equal(mem.calls, calls);
    unchanged();
    teardown();
}

/* ---- the same behind a plug-in that needs memory ------------------------ */

TEST(add_that_the_plug_in_has_no_memory_for_changes_nothing)
{
    scene = (struct scene){.has_plug_in = true};
    expect_failures("add", op_add, &scene.ready, SIZES);
}

TEST(add_of_a_waiting_key_that_the_plug_in_refuses_changes_nothing)
{
    scene = (struct scene){.waiting = 5, .has_plug_in = true};
    expect_failure("add of a waiting key", op_add_waiting);
}

TEST(done_of_a_dirty_key_that_the_plug_in_refuses_keeps_the_loan)
{
    scene = (struct scene){.held = 5, .dirty = true, .has_plug_in = true};
    expect_failure("done", op_done);
    expect_failure("done by key", op_done_key);
}

TEST(done_of_a_clean_key_does_not_ask_the_plug_in)
{
    scene = (struct scene){.held = 5, .ready = 2, .has_plug_in = true};
    expect_no_need("done", op_done);
    expect_no_need("done by key", op_done_key);
}

TEST(get_without_memory_does_not_ask_the_plug_in)
{
    scene = (struct scene){.ready = 3, .has_plug_in = true};
    expect_failure("get", op_get);
}

WQ_TESTS(test(add_without_memory_changes_nothing),
         test(add_of_a_long_key_without_memory_changes_nothing),
         test(admit_without_memory_changes_nothing),
         test(add_of_a_known_key_needs_no_memory),
         test(add_after_without_memory_changes_nothing),
         test(add_after_of_a_long_key_without_memory_changes_nothing),
         test(add_after_of_a_ready_key_without_memory_changes_nothing),
         test(sooner_deadline_without_memory_changes_nothing),
         test(promotion_needs_no_memory),
         test(get_without_memory_keeps_the_key_first),
         test(done_needs_no_memory), test(shutdown_needs_no_memory),
         test(taking_back_needs_no_memory),
         test(promotion_of_paced_keys_needs_no_memory),
         test(looking_needs_no_memory_and_changes_nothing),
         test(add_that_the_plug_in_has_no_memory_for_changes_nothing),
         test(add_of_a_waiting_key_that_the_plug_in_refuses_changes_nothing),
         test(done_of_a_dirty_key_that_the_plug_in_refuses_keeps_the_loan),
         test(done_of_a_clean_key_does_not_ask_the_plug_in),
         test(get_without_memory_does_not_ask_the_plug_in));
