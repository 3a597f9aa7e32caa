/* SPDX-License-Identifier: MIT */
/* test_core_adds.c: what does an add with options do when the core gets no
 * memory?
 *
 * L6: all of its keys are added or none, in every way: now, later, debounced or
 * throttled, with others that make room or without.
 */
#include "fault/core_adds.h"

/* O-51 O-53 O-54 */
TEST(add_with_a_purpose_without_memory_changes_nothing)
{
    scene = (struct scene){.paced = true};
    expect_every_way("new", &scene.levels, 40);
    scene = (struct scene){.ages = true};
    expect_every_way("new", &scene.waiting, SIZES);
    expect_every_way("long", &scene.waiting, 3);
}

/* A level, an entry of the heap and a pace may be needed all the same. */
TEST(add_with_a_purpose_of_a_known_key_without_memory_changes_nothing)
{
    static const char *const names[] = {"ready0", "held0",     "level0",
                                        "quiet",  "throttled", "paced",
                                        "series", "wait0"};

    for (size_t i = 0; i < 8; i++) {
        scene =
            (struct scene){.ready = 1, .held = 1, .waiting = 1, .paced = true};
        expect_every_way(names[i], &scene.levels, 12);
        scene.dirty = scene.ages = true;
        scene.waiting = 3;
        expect_every_way(names[i], &scene.levels, 3);
    }
}

static struct scene
every_state(int size)
{
    return (struct scene){.ready = 1 + size,
                          .held = 1,
                          .waiting = 1,
                          .levels = size,
                          .paced = true,
                          .ages = size % 2};
}

static struct scene
full_of_keys(int size)
{
    return (struct scene){
        .ready = size, .levels = 2, .max_len = (size_t)size + 2};
}

/* O-50: all or none, whichever of them there is no memory for. */
TEST(batch_without_memory_changes_nothing)
{
    EXPECT_ALL_OR_NONE(every_state, 0, 20,
                       .names = {"new1", "ready0", "long", "new1", "held0",
                                 "wait0", "new2", "quiet"});
}

static wq_err
op_add_many(void)
{
    static const char *const names[] = {"new1",  "ready0", "long", "new1",
                                        "held0", "wait0",  "new2"};
    enum { N = sizeof names / sizeof names[0] };
    struct wq__plain_add adds[N];
    wq_key               keys[N];

    for (size_t i = 0; i < N; i++) {
        keys[i] = strcmp(names[i], "long") ? wq_str(names[i]) : long_key();
        adds[i].hash = wq__core_hash(&ctx.core, keys[i]);
    }
    return wq__core_add_many(&ctx.core, keys, adds, N, 11, 777, NULL);
}

/* O-50: the same for a batch without options, which has a way of its own. */
TEST(plain_batch_without_memory_changes_nothing)
{
    for (int size = 0; size < 20; size++) {
        scene = every_state(size);
        expect_failure("plain batch", op_add_many);
    }
}

/* O-55: nobody makes room for what cannot be added. */
TEST(batch_that_displaces_without_memory_changes_nothing)
{
    EXPECT_ALL_OR_NONE(full_of_keys, 4, 20, .displace = true,
                       .names = {"new1", "ready0", "long", "new2"});
}

TEST(batch_that_does_not_fit_changes_nothing)
{
    expect_full((struct scene){.ready = 4, .paced = true, .max_len = 9});
}

TEST(throttled_add_that_the_plug_in_refuses_changes_nothing)
{
    add_one_key("new");
    purpose.how = hows[3];
    scene = (struct scene){.has_plug_in = true};
    expect_failures("throttled add", op_add_with, &scene.ready, 10);
}

WQ_TESTS(test(add_with_a_purpose_without_memory_changes_nothing),
         test(add_with_a_purpose_of_a_known_key_without_memory_changes_nothing),
         test(batch_without_memory_changes_nothing),
         test(plain_batch_without_memory_changes_nothing),
         test(batch_that_displaces_without_memory_changes_nothing),
         test(batch_that_does_not_fit_changes_nothing),
         test(throttled_add_that_the_plug_in_refuses_changes_nothing));
