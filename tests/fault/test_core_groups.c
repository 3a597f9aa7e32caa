/* SPDX-License-Identifier: MIT */
/* test_core_groups.c: what becomes of groups, ages and a bound on bytes when
 * the core gets no memory?
 *
 * L6: an add makes its groups and keys, all or none. What was accepted needs no
 * memory to go on.
 */
#include "fault/core_adds.h"

/* O-80: of the record, of the group and of the table, each is missing once. */
TEST(add_of_a_new_group_without_memory_changes_nothing)
{
    scene = (struct scene){.grouped = true};
    expect_failure("first add", op_add);
    expect_at_every_size("add", op_add, &scene.ready, 0);
    scene = (struct scene){.grouped = true, .max_held = 1};
    expect_at_every_size("add, others held", op_add, &scene.held, 0);
    scene = (struct scene){.grouped = true, .ageing = true};
    expect_failures("add of a long key", op_add_long, &scene.ready, SIZES);
}

/* O-80 O-51 O-53 O-54 */
TEST(add_of_a_new_group_in_every_way_changes_nothing)
{
    scene = (struct scene){.grouped = true, .paced = true};
    expect_every_way("new", &scene.levels, 20);
    scene = (struct scene){.grouped = true, .ageing = true};
    expect_every_way("new", &scene.waiting, 20);
}

static struct scene
few_priorities(int size)
{
    return (struct scene){.ready = 1 + size,
                          .waiting = 1,
                          .levels = size % 4,
                          .grouped = true,
                          .max_held = (size_t)size % 2,
                          .ageing = size % 2 == 0,
                          .max_bytes = 100000};
}

/* O-80 O-50: the groups made for keys before the one that fails go, too. */
TEST(batch_over_new_groups_without_memory_changes_nothing)
{
    EXPECT_ALL_OR_NONE(few_priorities, 0, 20,
                       .names = {"new1", "ready0", "long", "new1", "new2",
                                 "wait0", "new3", "new4"});
}

/* The READY keys have 6 bytes each. */
static struct scene
full_of_bytes(int size)
{
    return (struct scene){.ready = size,
                          .levels = 2,
                          .grouped = true,
                          .ageing = size % 2,
                          .max_bytes = 17 + 6 * (size_t)size};
}

/* O-80 O-87 O-55: nobody makes room for what cannot be added. */
TEST(batch_that_displaces_groups_without_memory_changes_nothing)
{
    EXPECT_ALL_OR_NONE(full_of_bytes, 5, 11, .displace = true,
                       .names = {"new1", "ready0", "new2", "new3"});
}

/* O-87 */
TEST(batch_whose_bytes_do_not_fit_changes_nothing)
{
    expect_full((struct scene){.ready = 4, .grouped = true, .max_bytes = 31});
}

static wq_err
op_hasten(void)
{
    wq__core_shut_down(&ctx.core);
    wq__core_flush_waiting(&ctx.core, 5, false);
    return WQ_OK;
}

/* O-80 O-86 O-89: what was accepted can always go on. */
TEST(grouped_keys_go_on_without_memory)
{
    for (size_t bound = 0; bound < 3; bound++) {
        scene = (struct scene){.ready = 3,
                               .held = 20,
                               .dirty = bound > 0,
                               .waiting = 20,
                               .levels = 5,
                               .paced = true,
                               .grouped = true,
                               .max_held = bound,
                               .ageing = bound == 0};
        expect_no_need("done", op_done);
        expect_no_need("done by key", op_done_key);
        expect_no_need("promotion", op_promote);
        expect_no_need("flush of deadlines", op_hasten);
        taken_back = "ready1";
        expect_no_need("remove", op_remove);
        taken_back = "wait1";
        expect_no_need("remove", op_remove);
    }
}

/* O-80 */
TEST(get_of_a_grouped_key_without_memory_keeps_its_turn)
{
    scene = (struct scene){.ready = 4, .grouped = true, .max_held = 1};
    expect_failure("first get", op_get);
    scene = (struct scene){.ready = 4, .grouped = true, .ageing = true};
    expect_at_every_size("get", op_get, &scene.held, 0);
}

WQ_TESTS(test(add_of_a_new_group_without_memory_changes_nothing),
         test(add_of_a_new_group_in_every_way_changes_nothing),
         test(batch_over_new_groups_without_memory_changes_nothing),
         test(batch_that_displaces_groups_without_memory_changes_nothing),
         test(batch_whose_bytes_do_not_fit_changes_nothing),
         test(grouped_keys_go_on_without_memory),
         test(get_of_a_grouped_key_without_memory_keeps_its_turn));
