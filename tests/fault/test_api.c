/* SPDX-License-Identifier: MIT */
/* test_api.c: what does a user see when the queue gets no memory?
 *
 * Every verb of wq.h, with every one of its allocations refused, once and for
 * good: the work is done or the answer is WQ_ENOMEM and nothing has changed
 * (L6). What was accepted before is still there (O-13).
 */
#include "support/wq_test.h"

#include <stdio.h>
#include <string.h>

#include "fault/order.h"
#include "fault/snapshot.h"
#include "memory/memory.h"
#include "support/counting.h"

/* How the queue looks before the operation. */
struct scene {
    int  ready, held;
    int  handed_over; /* in the ring, for whoever takes the lock next */
    bool dirty;       /* the held ones are */
    bool has_plug_in;
};

struct ctx {
    struct counting *mem;
    wq_queue        *q;
    struct order     order;
    wq_item         *item; /* the last one handed out by the scene */
    wq_item         *out;  /* what a get under test wrote */
    struct snapshot  before;
    size_t           pending; /* keys READY or in the ring */
};

static struct scene scene;
static struct ctx   ctx;
static char         long_bytes[2000];

static struct wq__memory *
inside(void)
{
    return (struct wq__memory *)(void *)ctx.q;
}

static size_t
count_pending(void)
{
    return wq__core_len(&inside()->core) + wq__inbox_len(&inside()->inbox);
}

/* ---- making the scene --------------------------------------------------- */

static wq_err
create(void)
{
    const wq_order order = order_of(&ctx.order);

    return wq_create(WQ_CONFIG(.allocator = &ctx.mem->allocator,
                               .order = scene.has_plug_in ? &order : NULL),
                     &ctx.q);
}

static wq_err
add_numbered(const char *name, int i)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%s%d", name, i);
    return wq_add(ctx.q, wq_str(text));
}

static void
make_held(void)
{
    for (int i = 0; i < scene.held; i++) {
        assert_int_equal(add_numbered("held", i), WQ_OK);
        assert_int_equal(wq_get_within(ctx.q, 0, &ctx.item), WQ_OK);
        if (scene.dirty)
            assert_int_equal(add_numbered("held", i), WQ_OK);
    }
}

static void
hand_over(void)
{
    struct wq__memory *m = inside();

    wq__lock_take(&m->lock);
    wq__inbox_open(&m->inbox);
    for (int i = 0; i < scene.handed_over; i++)
        assert_int_equal(add_numbered("handed", i), WQ_OK);
    wq__lock_release(&m->lock);
}

static void *
setup_nothing(struct counting *mem)
{
    memset(&ctx, 0, sizeof ctx);
    ctx.mem = mem;
    ctx.order.mem = &mem->allocator;
    return &ctx;
}

static void *
setup(struct counting *mem)
{
    setup_nothing(mem);
    assert_int_equal(create(), WQ_OK);
    make_held();
    for (int i = 0; i < scene.ready; i++)
        assert_int_equal(add_numbered("ready", i), WQ_OK);
    hand_over();
    snapshot_take(&ctx.before, &inside()->core);
    ctx.pending = count_pending();
    return &ctx;
}

/* ---- looking ------------------------------------------------------------ */

static void
expect_sound(void)
{
    const char *broken = wq__core_check(&inside()->core);
    if (broken)
        fail_msg("%s", broken);
}

/* Keys may have moved from the ring into the core, in order: no user sees
 * that. */
static void
unchanged(void *unused)
{
    struct snapshot now;

    (void)unused;
    expect_sound();
    assert_int_equal(count_pending(), ctx.pending);
    assert_null(ctx.out);
    if (scene.handed_over == 0) {
        snapshot_take(&now, &inside()->core);
        assert_string_equal(now.text, ctx.before.text);
    }
}

/* The keys READY first and those handed over after them come out in order. */
static void
expect_all_in_order(int from_ready)
{
    char     text[32];
    wq_item *item;

    for (int i = from_ready; i < scene.ready + scene.handed_over; i++) {
        assert_int_equal(wq_get_within(ctx.q, 0, &item), WQ_OK);
        (void)snprintf(text, sizeof text, "%s%d",
                       i < scene.ready ? "ready" : "handed",
                       i < scene.ready ? i : i - scene.ready);
        assert_int_equal(item->key.len, strlen(text));
        assert_memory_equal(item->key.data, text, strlen(text));
        assert_int_equal(wq_done(ctx.q, item), WQ_OK);
    }
}

static void
all_come_out(void *unused)
{
    (void)unused;
    expect_sound();
    expect_all_in_order(0);
}

static void
all_but_the_first_come_out(void *unused)
{
    (void)unused;
    expect_sound();
    assert_non_null(ctx.out);
    expect_all_in_order(1);
}

static void
teardown(void *unused)
{
    (void)unused;
    wq_destroy(ctx.q);
}

static void
run_sweep(const struct counting_sweep *sweep)
{
    const char *broken = counting_sweep(sweep);
    if (broken)
        fail_msg("%s", broken);
}

static void
sweep(const char *name, wq_err (*op)(void *), void (*done)(void *),
      bool        needs_none)
{
    run_sweep(&(struct counting_sweep){
        .name = name,
        .setup = setup,
        .op = op,
        .unchanged = unchanged,
        .done = done,
        .teardown = teardown,
        .needs_none = needs_none,
    });
}

/* ---- create ------------------------------------------------------------- */

static wq_err
op_create(void *unused)
{
    (void)unused;
    return create();
}

static void
no_queue(void *unused)
{
    (void)unused;
    assert_null(ctx.q);
}

static void
queue_works(void *unused)
{
    wq_item *item;

    (void)unused;
    assert_int_equal(wq_add_str(ctx.q, "foo"), WQ_OK);
    assert_int_equal(wq_get_within(ctx.q, 0, &item), WQ_OK);
    assert_int_equal(wq_done(ctx.q, item), WQ_OK);
}

/* O-01: the out-parameter is untouched. */
TEST(create_without_memory_makes_nothing)
{
    for (int plug_in = 0; plug_in < 2; plug_in++) {
        scene = (struct scene){.has_plug_in = plug_in};
        run_sweep(&(struct counting_sweep){
            .name = "create",
            .setup = setup_nothing,
            .op = op_create,
            .unchanged = no_queue,
            .done = queue_works,
            .teardown = teardown,
        });
    }
}

/* ---- add ---------------------------------------------------------------- */

enum { SIZES = 40 };

static wq_err
op_add(void *unused)
{
    (void)unused;
    return wq_add_str(ctx.q, "new");
}

static wq_err
op_add_long(void *unused)
{
    (void)unused;
    return wq_add(ctx.q, (wq_key){long_bytes, sizeof long_bytes});
}

static wq_err
op_add_held(void *unused)
{
    (void)unused;
    return wq_add_str(ctx.q, "held0");
}

TEST(first_add_without_memory_changes_nothing)
{
    scene = (struct scene){0};
    sweep("first add", op_add, all_come_out, false);
}

TEST(add_of_a_long_key_without_memory_changes_nothing)
{
    memset(long_bytes, 'k', sizeof long_bytes);
    scene = (struct scene){0};
    for (scene.ready = 0; scene.ready < SIZES; scene.ready++)
        sweep("add of a long key", op_add_long, all_come_out, false);
}

TEST(add_behind_a_plug_in_without_memory_changes_nothing)
{
    scene = (struct scene){.has_plug_in = true};
    for (scene.ready = 0; scene.ready < SIZES; scene.ready++)
        sweep("add", op_add, all_come_out, false);
}

TEST(add_of_a_held_key_needs_no_memory)
{
    scene = (struct scene){.held = 3};
    sweep("add of a held key", op_add_held, all_come_out, true);
}

/* O-13: the add is refused, and what was accepted before it is kept. */
TEST(add_behind_keys_handed_over_without_memory_loses_none)
{
    scene = (struct scene){.handed_over = 60};
    sweep("add behind keys handed over", op_add, all_come_out, false);
}

/* ---- get ---------------------------------------------------------------- */

static wq_err
op_get(void *unused)
{
    (void)unused;
    return wq_get_within(ctx.q, 0, &ctx.out);
}

TEST(get_without_memory_keeps_the_key_first)
{
    scene = (struct scene){.ready = 3};
    sweep("first get", op_get, all_but_the_first_come_out, false);
}

TEST(get_behind_a_plug_in_without_memory_keeps_the_key_first)
{
    scene = (struct scene){.ready = 3, .has_plug_in = true};
    sweep("first get", op_get, all_but_the_first_come_out, false);
}

/* O-13 */
TEST(get_of_keys_handed_over_without_memory_loses_none)
{
    scene = (struct scene){.handed_over = 60};
    sweep("get of a key handed over", op_get, all_but_the_first_come_out,
          false);
}

/* O-13 */
TEST(get_of_keys_handed_over_to_a_plug_in_without_memory_loses_none)
{
    scene = (struct scene){.handed_over = 20, .has_plug_in = true};
    sweep("get of a key handed over", op_get, all_but_the_first_come_out,
          false);
}

/* ---- done --------------------------------------------------------------- */

static wq_err
op_done(void *unused)
{
    (void)unused;
    return wq_done(ctx.q, ctx.item);
}

static wq_err
op_done_key(void *unused)
{
    (void)unused;
    return wq_done_key(ctx.q, wq_str("held0"));
}

static void
one_is_done(void *unused)
{
    (void)unused;
    expect_sound();
    assert_int_equal(inside()->core.held, scene.held - 1);
    assert_int_equal(wq_len(ctx.q), scene.dirty ? 1 : 0);
}

TEST(done_needs_no_memory)
{
    for (int dirty = 0; dirty < 2; dirty++) {
        scene = (struct scene){.held = 50, .dirty = dirty};
        sweep("done", op_done, one_is_done, true);
        sweep("done by key", op_done_key, one_is_done, true);
    }
}

TEST(done_that_the_plug_in_has_no_memory_for_keeps_the_loan)
{
    scene = (struct scene){.held = 5, .dirty = true, .has_plug_in = true};
    sweep("done", op_done, one_is_done, false);
    sweep("done by key", op_done_key, one_is_done, false);
}

/* ---- length and shutdown ------------------------------------------------ */

static wq_err
op_len(void *unused)
{
    (void)unused;
    const size_t len = wq_len(ctx.q);
    assert_int_equal(len, ctx.pending);
    return WQ_OK;
}

/* O-13 */
TEST(length_is_right_without_memory)
{
    scene = (struct scene){.ready = 3, .handed_over = 60};
    sweep("len", op_len, all_come_out, true);
}

static wq_err
op_shutdown(void *unused)
{
    (void)unused;
    wq_shutdown(ctx.q);
    return WQ_OK;
}

static wq_err
op_drain(void *unused)
{
    (void)unused;
    const wq_err err = wq_shutdown_with_drain_within(ctx.q, 0);
    return err == WQ_ETIMEDOUT ? WQ_OK : err;
}

static void
all_come_out_and_no_more_go_in(void *unused)
{
    wq_item *item;

    (void)unused;
    assert_true(wq_shutting_down(ctx.q));
    assert_int_equal(wq_add_str(ctx.q, "late"), WQ_ESHUTDOWN);
    all_come_out(NULL);
    assert_int_equal(wq_get_within(ctx.q, 0, &item), WQ_ESHUTDOWN);
    assert_int_equal(wq_shutdown_with_drain_within(ctx.q, 0), WQ_OK);
}

/* O-13 Q-13 */
TEST(shutdown_without_memory_loses_nothing)
{
    scene = (struct scene){.ready = 3, .handed_over = 60};
    sweep("shutdown", op_shutdown, all_come_out_and_no_more_go_in, true);
    sweep("drain", op_drain, all_come_out_and_no_more_go_in, true);
}

static wq_err
op_nothing(void *unused)
{
    (void)unused;
    return WQ_OK;
}

/* The teardown alone: destroying needs no memory, whatever is inside. */
static void
memory_fails_for_good(void *unused)
{
    (void)unused;
    counting_fail(ctx.mem, 1, COUNTING_FROM_NOW);
}

TEST(destroy_needs_no_memory)
{
    scene = (struct scene){.ready = 20, .held = 20, .handed_over = 60};
    sweep("destroy", op_nothing, memory_fails_for_good, true);
}

WQ_TESTS(test(create_without_memory_makes_nothing),
         test(first_add_without_memory_changes_nothing),
         test(add_of_a_long_key_without_memory_changes_nothing),
         test(add_behind_a_plug_in_without_memory_changes_nothing),
         test(add_of_a_held_key_needs_no_memory),
         test(add_behind_keys_handed_over_without_memory_loses_none),
         test(get_without_memory_keeps_the_key_first),
         test(get_behind_a_plug_in_without_memory_keeps_the_key_first),
         test(get_of_keys_handed_over_without_memory_loses_none),
         test(get_of_keys_handed_over_to_a_plug_in_without_memory_loses_none),
         test(done_needs_no_memory),
         test(done_that_the_plug_in_has_no_memory_for_keeps_the_loan),
         test(length_is_right_without_memory),
         test(shutdown_without_memory_loses_nothing),
         test(destroy_needs_no_memory));
