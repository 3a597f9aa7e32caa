/* SPDX-License-Identifier: MIT */
/* test_core_images.c: what does an import do when it gets no memory?
 *
 * L6: nothing. Images of every kind come into cores of many sizes, so that each
 * table is once about to grow.
 */
#include "fault/core_scene.h"

#include "core/image.h"

/* Priorities that no scene has: each needs a level. */
enum { PRIORITY = -1, WAIT_PRIORITY = -2 };

static struct wq__image image; /* what op_import() puts in */

static wq_err
op_import(void)
{
    return wq__core_import(&ctx.core, NEW_KEY,
                           wq__core_hash(&ctx.core, NEW_KEY), &image, NULL);
}

static wq_err
op_import_long(void)
{
    const wq_key key = long_key();

    return wq__core_import(&ctx.core, key, wq__core_hash(&ctx.core, key),
                           &image, &ctx.out);
}

static const char *expelled; /* the key of op_expel() */

static wq_err
op_expel(void)
{
    const wq_key key = wq_str(expelled);

    wq__core_expel(&ctx.core, key, wq__core_hash(&ctx.core, key));
    return WQ_OK;
}

static void
expect_at_all_sizes(const char *name)
{
    int *const kinds[] = {&scene.ready, &scene.held, &scene.waiting,
                          &scene.levels};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        scene = (struct scene){.ages = i % 2};
        expect_failure(name, op_import);
        expect_at_every_size(name, op_import, kinds[i], 0);
    }
}

TEST(import_of_a_READY_key_without_memory_changes_nothing)
{
    image = (struct wq__image){.states = WQ__READY, .priority = PRIORITY};
    expect_at_all_sizes("import READY");
}

TEST(import_of_a_HELD_key_without_memory_changes_nothing)
{
    image = (struct wq__image){
        .states = WQ__HELD | WQ__DIRTY, .priority = PRIORITY, .fence = 100};
    expect_at_all_sizes("import HELD and DIRTY");
}

TEST(import_of_a_WAITING_key_without_memory_changes_nothing)
{
    image = (struct wq__image){
        .states = WQ__WAITING, .wait_priority = WAIT_PRIORITY, .at_ns = 11};
    expect_at_all_sizes("import WAITING");
}

TEST(import_of_a_throttled_key_without_memory_changes_nothing)
{
    image = (struct wq__image){.states = WQ__COOLDOWN,
                               .at_ns = 11,
                               .throttled = true,
                               .cooldown_until_ns = 11};
    expect_at_all_sizes("import COOLDOWN");
    scene = (struct scene){.paced = true};
    expect_either("import COOLDOWN beside others", op_import);
}

/* All parts of the memory of a key. */
TEST(import_of_all_states_without_memory_changes_nothing)
{
    image = (struct wq__image){.states = WQ__HELD | WQ__DIRTY | WQ__WAITING,
                               .priority = PRIORITY,
                               .fence = 100,
                               .at_ns = 11,
                               .wait_priority = WAIT_PRIORITY,
                               .throttled = true,
                               .next_cooldown_ns = 5};
    expect_at_all_sizes("import all states");
    scene = (struct scene){0};
    expect_failures("import a long key", op_import_long, &scene.ready, SIZES);
}

TEST(expel_needs_no_memory)
{
    static const struct {
        const char *key;
        int        *kind;
    } keys[] = {
        {"ready0", &scene.ready},
        {"held0", &scene.held},
        {"wait0", &scene.waiting},
        {"level0", &scene.levels},
    };

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        scene = (struct scene){.dirty = true, .ages = i % 2};
        expelled = keys[i].key;
        for (*keys[i].kind = 1; *keys[i].kind < SIZES; ++*keys[i].kind)
            expect_no_need("expel", op_expel);
    }
}

WQ_TESTS(test(import_of_a_READY_key_without_memory_changes_nothing),
         test(import_of_a_HELD_key_without_memory_changes_nothing),
         test(import_of_a_WAITING_key_without_memory_changes_nothing),
         test(import_of_a_throttled_key_without_memory_changes_nothing),
         test(import_of_all_states_without_memory_changes_nothing),
         test(expel_needs_no_memory));
