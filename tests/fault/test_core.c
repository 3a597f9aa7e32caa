/* SPDX-License-Identifier: MIT */
/* test_core.c: what does the core do when it gets no memory?
 *
 * L6: every verb, with every one of its allocations refused, once and for good:
 * either it does its work or it says WQ_ENOMEM and has done nothing. Each
 * verb is tried on cores of many sizes, so that every table is once about to
 * grow.
 */
#include "support/wq_test.h"

#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "fault/order.h"
#include "fault/snapshot.h"
#include "support/counting.h"

/* What the sweeps of a test share: how the core looks before the operation. */
struct scene {
    int  ready, held, waiting; /* so many keys of each kind */
    bool dirty;                /* the held ones are dirty too */
    bool has_plug_in;
};

struct ctx {
    struct wq__core core;
    struct order    order;
    wq_order        plug_in;
    wq_item        *item; /* the last one handed out by the scene */
    wq_item        *out;  /* what a get under test wrote */
    struct snapshot before;
};

static struct scene scene;
static struct ctx   ctx;

static const wq_key NEW_KEY = {"new", 3};
static char         long_bytes[1000];

/* ---- making the scene --------------------------------------------------- */

static wq_err
add(wq_key key)
{
    wq_added what;
    return wq__core_add(&ctx.core, key, wq__core_hash(&ctx.core, key), 0,
                        &what);
}

static wq_err
add_at(wq_key key, int64_t at)
{
    wq_added what;
    return wq__core_add_after(&ctx.core, key, wq__core_hash(&ctx.core, key), 0,
                              at, false, &what);
}

static wq_key
numbered(char text[static 32], const char *name, int i)
{
    (void)snprintf(text, 32, "%s%d", name, i);
    return wq_str(text);
}

static void
make_held(void)
{
    char text[32];

    for (int i = 0; i < scene.held; i++) {
        assert_int_equal(add(numbered(text, "held", i)), WQ_OK);
        assert_int_equal(wq__core_get(&ctx.core, 0, &ctx.item), WQ_OK);
        if (scene.dirty)
            assert_int_equal(add(numbered(text, "held", i)), WQ_OK);
    }
}

static void *
setup(struct counting *mem)
{
    const struct wq__hash_key secret = {.k0 = 1, .k1 = 2, .mask = UINT32_MAX};
    char                      text[32];

    memset(&ctx, 0, sizeof ctx);
    ctx.order.mem = &mem->allocator;
    ctx.plug_in = order_of(&ctx.order);
    wq__core_init(&ctx.core, secret, scene.has_plug_in ? &ctx.plug_in : NULL,
                  &mem->allocator);
    make_held();
    for (int i = 0; i < scene.ready; i++)
        assert_int_equal(add(numbered(text, "ready", i)), WQ_OK);
    for (int i = 0; i < scene.waiting; i++)
        assert_int_equal(add_at(numbered(text, "wait", i), 10 + i % 3), WQ_OK);
    snapshot_take(&ctx.before, &ctx.core);
    return &ctx;
}

/* ---- looking ------------------------------------------------------------ */

static void
expect_sound(void)
{
    const char *broken = wq__core_check(&ctx.core);
    if (broken)
        fail_msg("%s", broken);
}

static void
unchanged(void *unused)
{
    struct snapshot now;

    (void)unused;
    expect_sound();
    snapshot_take(&now, &ctx.core);
    assert_string_equal(now.text, ctx.before.text);
    assert_null(ctx.out);
}

static void
changed(void *unused)
{
    struct snapshot now;

    (void)unused;
    expect_sound();
    snapshot_take(&now, &ctx.core);
    assert_string_not_equal(now.text, ctx.before.text);
}

static void
teardown(void *unused)
{
    (void)unused;
    wq__core_fini(&ctx.core);
}

static void
sweep(const char *name, wq_err (*op)(void *), bool needs_none)
{
    const struct counting_sweep s = {
        .name = name,
        .setup = setup,
        .op = op,
        .unchanged = unchanged,
        .done = changed,
        .teardown = teardown,
        .needs_none = needs_none,
    };
    const char *broken = counting_sweep(&s);
    if (broken)
        fail_msg("%s", broken);
}

/* ---- operations --------------------------------------------------------- */

static wq_err
op_add(void *unused)
{
    (void)unused;
    return add(NEW_KEY);
}

static wq_err
op_add_long(void *unused)
{
    (void)unused;
    return add((wq_key){long_bytes, sizeof long_bytes});
}

static wq_err
op_admit(void *unused)
{
    wq_added what;

    (void)unused;
    return wq__core_admit(&ctx.core, NEW_KEY, wq__core_hash(&ctx.core, NEW_KEY),
                          0, &what);
}

static wq_err
op_add_held(void *unused)
{
    (void)unused;
    return add(wq_str("held0"));
}

static wq_err
op_add_waiting(void *unused)
{
    (void)unused;
    return add(wq_str("wait0"));
}

static wq_err
op_add_after(void *unused)
{
    (void)unused;
    return add_at(NEW_KEY, 11);
}

static wq_err
op_add_after_long(void *unused)
{
    (void)unused;
    return add_at((wq_key){long_bytes, sizeof long_bytes}, 11);
}

static wq_err
op_add_after_ready(void *unused)
{
    (void)unused;
    return add_at(wq_str("ready0"), 11);
}

static wq_err
op_add_after_sooner(void *unused)
{
    (void)unused;
    return add_at(wq_str("wait0"), 1);
}

static wq_err
op_promote(void *unused)
{
    (void)unused;
    wq__core_promote(&ctx.core, 1000);
    return WQ_OK;
}

static wq_err
op_get(void *unused)
{
    (void)unused;
    return wq__core_get(&ctx.core, 0, &ctx.out);
}

static wq_err
op_done(void *unused)
{
    (void)unused;
    return wq__core_done(&ctx.core, ctx.item, 0, NULL);
}

static wq_err
op_done_key(void *unused)
{
    const wq_key key = wq_str("held0");

    (void)unused;
    return wq__core_done_key(&ctx.core, key, wq__core_hash(&ctx.core, key), 0,
                             NULL);
}

static wq_err
op_shut_down(void *unused)
{
    (void)unused;
    wq__core_shut_down(&ctx.core);
    return WQ_OK;
}

/* ---- the sweeps --------------------------------------------------------- */

enum { SIZES = 70 }; /* tables of the core double five times on the way */

/* Does the operation fail when it gets no memory at all? */
static bool
needs_memory(wq_err (*op)(void *))
{
    struct counting mem;

    counting_init(&mem);
    void *c = setup(&mem);
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    const bool needs = op(c) != WQ_OK;
    counting_heal(&mem);
    teardown(c);
    return needs;
}

/* The first add of all needs memory for everything, later ones only when
 * something is full: whether any round fails depends on the size. */
static void
sweep_sizes(const char *name, wq_err (*op)(void *), int *kind, int from)
{
    char what[64];

    for (*kind = from; *kind < SIZES; ++*kind) {
        (void)snprintf(what, sizeof what, "%s, %d keys there", name, *kind);
        sweep(what, op, !needs_memory(op));
    }
}

TEST(add_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    sweep("first add", op_add, false);
    sweep_sizes("add", op_add, &scene.ready, 0);
}

TEST(add_of_a_long_key_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    memset(long_bytes, 'k', sizeof long_bytes);
    for (scene.ready = 0; scene.ready < SIZES; scene.ready++)
        sweep("add of a long key", op_add_long, false);
}

TEST(admit_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    sweep("first admit", op_admit, false);
    sweep_sizes("admit", op_admit, &scene.ready, 0);
}

TEST(add_of_a_known_key_needs_no_memory)
{
    scene = (struct scene){.held = 1};
    sweep("add of a held key", op_add_held, true);
    scene = (struct scene){.waiting = 5};
    sweep("add of a waiting key", op_add_waiting, true);
}

TEST(add_after_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    sweep("first add_after", op_add_after, false);
    sweep_sizes("add_after", op_add_after, &scene.waiting, 0);
    scene = (struct scene){0};
    sweep_sizes("add_after among ready keys", op_add_after, &scene.ready, 0);
}

TEST(add_after_of_a_long_key_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    memset(long_bytes, 'k', sizeof long_bytes);
    for (scene.waiting = 0; scene.waiting < SIZES; scene.waiting++)
        sweep("add_after of a long key", op_add_after_long, false);
}

TEST(add_after_of_a_ready_key_without_memory_changes_nothing)
{
    scene = (struct scene){.ready = 3};
    sweep("first add_after of a ready key", op_add_after_ready, false);
    sweep_sizes("add_after of a ready key", op_add_after_ready, &scene.waiting,
                0);
}

TEST(sooner_deadline_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    sweep_sizes("sooner deadline", op_add_after_sooner, &scene.waiting, 1);
}

TEST(promotion_needs_no_memory)
{
    scene = (struct scene){.waiting = SIZES};
    sweep("promotion", op_promote, true);
}

TEST(get_without_memory_keeps_the_key_first)
{
    scene = (struct scene){.ready = 2};
    sweep("first get", op_get, false);
    sweep_sizes("get", op_get, &scene.held, 0);
}

TEST(done_needs_no_memory)
{
    for (int dirty = 0; dirty < 2; dirty++) {
        scene = (struct scene){.held = 1, .dirty = dirty};
        sweep("done of the only key", op_done, true);
        scene.held = SIZES;
        scene.ready = 3;
        sweep("done", op_done, true);
        sweep("done by key", op_done_key, true);
    }
}

TEST(shutdown_needs_no_memory)
{
    scene = (struct scene){.ready = 3, .held = 3, .waiting = SIZES};
    sweep("shutdown", op_shut_down, true);
}

/* ---- the same behind a plug-in that needs memory ------------------------ */

TEST(add_that_the_plug_in_has_no_memory_for_changes_nothing)
{
    scene = (struct scene){.has_plug_in = true};
    for (scene.ready = 0; scene.ready < SIZES; scene.ready++)
        sweep("add", op_add, false);
}

TEST(add_of_a_waiting_key_that_the_plug_in_refuses_changes_nothing)
{
    scene = (struct scene){.waiting = 5, .has_plug_in = true};
    sweep("add of a waiting key", op_add_waiting, false);
}

TEST(done_of_a_dirty_key_that_the_plug_in_refuses_keeps_the_loan)
{
    scene = (struct scene){.held = 5, .dirty = true, .has_plug_in = true};
    sweep("done", op_done, false);
    sweep("done by key", op_done_key, false);
}

TEST(done_of_a_clean_key_does_not_ask_the_plug_in)
{
    scene = (struct scene){.held = 5, .ready = 2, .has_plug_in = true};
    sweep("done", op_done, true);
    sweep("done by key", op_done_key, true);
}

TEST(get_without_memory_does_not_ask_the_plug_in)
{
    scene = (struct scene){.ready = 3, .has_plug_in = true};
    sweep("get", op_get, false);
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
         test(add_that_the_plug_in_has_no_memory_for_changes_nothing),
         test(add_of_a_waiting_key_that_the_plug_in_refuses_changes_nothing),
         test(done_of_a_dirty_key_that_the_plug_in_refuses_keeps_the_loan),
         test(done_of_a_clean_key_does_not_ask_the_plug_in),
         test(get_without_memory_does_not_ask_the_plug_in));
