/* SPDX-License-Identifier: MIT */
/* core_adds.h: which adds with options do the fault tests try?
 *
 * One key or a batch of up to eight, in each of the ways in `hows`. The name
 * "long" stands for the long key of core_scene.h.
 */
#ifndef WQ_TEST_CORE_ADDS_H
#define WQ_TEST_CORE_ADDS_H

#include "fault/core_scene.h"

enum { BATCH = 8 };

/* What op_add_with() adds, and how. */
static struct {
    struct wq__how how;
    const char    *names[BATCH]; /* up to the first NULL */
} purpose;

static inline wq_err
op_add_with(void)
{
    struct wq__prepared picks[BATCH] = {{0}};
    wq_key              keys[BATCH];
    size_t              n = 0;

    for (; n < BATCH && purpose.names[n]; n++) {
        keys[n] = strcmp(purpose.names[n], "long") ? wq_str(purpose.names[n])
                                                   : long_key();
        picks[n] = pick_of(keys[n], 11 + (int64_t)n % 3);
    }
    wq__ref      victims;
    const wq_err err = wq__core_add_with(&ctx.core, &purpose.how, keys, picks,
                                         n, NULL, &victims);
    while (victims)
        victims = wq__core_free_victim(&ctx.core, victims);
    return err;
}

static const struct wq__how hows[] = {
    {.kind = WQ__ADD_NOW, .priority = 777},
    {.kind = WQ__ADD_AT, .priority = 777, .backoff = true},
    {.kind = WQ__ADD_DEBOUNCE, .priority = 777, .span = 30, .max_wait = 40},
    {.kind = WQ__ADD_THROTTLE, .priority = 777, .span = 30},
};
enum { HOWS = sizeof hows / sizeof hows[0] };

static inline void
add_one_key(const char *name)
{
    memset(&purpose, 0, sizeof purpose);
    purpose.names[0] = name;
}

/* One key, in every way, when `*kind` keys of a kind are there. */
static inline void
expect_every_way(const char *name, int *kind, int to)
{
    add_one_key(name);
    for (size_t i = 0; i < HOWS; i++) {
        purpose.how = hows[i];
        for (*kind = 0; *kind < to; ++*kind)
            expect_either(name, op_add_with);
    }
}

/* A batch, and the scenes that it meets. */
struct batch {
    struct scene (*scene)(int size);
    int         from, to; /* the sizes */
    bool        displace; /* others make room */
    const char *names[BATCH];
};

/* In every way: all of its keys are added or none. */
static inline void
expect_all_or_none(const struct batch *b)
{
    memcpy(purpose.names, b->names, sizeof b->names);
    for (size_t i = 0; i < HOWS; i++) {
        purpose.how = hows[i];
        purpose.how.displace = b->displace;
        for (int size = b->from; size < b->to; size++) {
            scene = b->scene(size);
            expect_failure("batch", op_add_with);
        }
    }
}

#define EXPECT_ALL_OR_NONE(...) expect_all_or_none(&(struct batch){__VA_ARGS__})

/* There is no room for both new keys. Room is looked for before anything
 * changes. */
static inline void
expect_full(struct scene full)
{
    struct counting mem;

    memset(&purpose, 0, sizeof purpose);
    purpose.names[0] = "new1";
    purpose.names[1] = "ready0";
    purpose.names[2] = "new2";
    for (size_t i = 0; i < HOWS; i++) {
        purpose.how = hows[i];
        scene = full;
        counting_init(&mem);
        setup(&mem);
        assert_int_equal(op_add_with(), WQ_EFULL);
        unchanged();
        teardown();
        assert_int_equal(mem.bytes, 0);
    }
}

#endif
