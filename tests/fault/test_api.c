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

#include <wq/limiter.h>

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
    bool has_limiter; /* one that takes memory for every key */
    bool gives_up;    /* after one retry; the long key had it */
};

struct ctx {
    struct counting *mem;
    wq_queue        *q;
    struct order     order;
    wq_item         *item; /* the last one handed out by the scene */
    wq_item         *out;  /* what a get under test wrote */
    struct snapshot  before;
    size_t           pending; /* keys READY or in the ring */
    wq_item         *many[64];
    size_t           n;       /* how many of them there are */
    size_t           visited; /* keys that a walk has shown */
    size_t           dropped; /* calls of on_drop() */
};

/* A batch to add, and how. */
static wq_add_options how;
static size_t         batch;

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

static const int64_t hour = INT64_C(3600) * 1000000000;

static void
on_drop(void *unused, wq_key key, unsigned retries, wq_err why)
{
    (void)unused;
    assert_int_equal(strlen(key.data), key.len);
    assert_int_equal(retries, 1);
    assert_int_equal(why, WQ_EGIVENUP);
    ctx.dropped++;
}

static wq_err
create(void)
{
    const wq_order order = order_of(&ctx.order);
    wq_limiter    *limiter = NULL;

    if (scene.has_limiter)
        limiter = wq_limiter_exponential_with(
            WQ_EXPONENTIAL(.base_ns = hour, .max_ns = hour,
                           .allocator = &ctx.mem->allocator));
    return wq_create(WQ_CONFIG(.allocator = &ctx.mem->allocator,
                               .order = scene.has_plug_in ? &order : NULL,
                               .max_retries = scene.gives_up,
                               .on_drop = on_drop, .limiter = limiter),
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
    assert_int_equal(inside()->core.loans.live, scene.held - 1);
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

/* ---- adds with a purpose ------------------------------------------------ */

enum { BATCH_MAX = 40 };

static char   batch_names[BATCH_MAX][32];
static wq_key batch_keys[BATCH_MAX];

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
op_add_with(void *unused)
{
    wq_added     what[BATCH_MAX];
    wq_added     never = (wq_added)77;
    const size_t n = batch;

    (void)unused;
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
unchanged_and_not_asked(void *unused)
{
    unchanged(unused);
    for (size_t i = 0; i < batch; i++)
        assert_int_equal(wq_num_requeues(ctx.q, batch_keys[i]), 0);
}

static void
batch_is_in(void *unused)
{
    (void)unused;
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
sweep_adds(const char *name, const wq_add_options *wanted)
{
    static const size_t sizes[] = {1, 3, BATCH_MAX};

    how = *wanted;
    for (int i = 0; i < 3; i++) {
        name_batch(sizes[i]);
        /* a few keys find room that is there already, and are no test */
        const int most = batch < BATCH_MAX ? 1 : SIZES;
        for (scene.ready = 0; scene.ready < most; scene.ready += 3)
            run_sweep(&(struct counting_sweep){
                .name = name,
                .setup = setup,
                .op = op_add_with,
                .unchanged = unchanged_and_not_asked,
                .done = batch_is_in,
                .teardown = teardown,
            });
    }
}

/* O-50: all or none. */
TEST(batch_without_memory_adds_none)
{
    scene = (struct scene){0};
    sweep_adds("batch", WQ_ADD(.priority = 0));
    sweep_adds("batch with a priority", WQ_ADD(.priority = -1));
    sweep_adds("delayed batch", WQ_ADD(.after_ns = hour, .priority = -3));
}

/* O-50 O-53 O-54 */
TEST(batch_of_paced_keys_without_memory_adds_none)
{
    scene = (struct scene){0};
    sweep_adds("debounced batch",
               WQ_ADD(.debounce_ns = hour, .max_wait_ns = 2 * hour));
    sweep_adds("throttled batch", WQ_ADD(.throttle_ns = hour, .priority = -2));
}

/* O-50 R-03: what was asked in vain is taken back. */
TEST(batch_of_limited_keys_without_memory_adds_none)
{
    scene = (struct scene){.has_limiter = true};
    sweep_adds("limited batch", WQ_ADD(.rate_limited = true));
}

/* ---- giving up ---------------------------------------------------------- */

static wq_key
long_key(void)
{
    return (wq_key){long_bytes, sizeof long_bytes};
}

static void *
setup_retried(struct counting *mem)
{
    setup_nothing(mem);
    assert_int_equal(create(), WQ_OK);
    assert_int_equal(wq_add_rate_limited(ctx.q, long_key()), WQ_OK);
    snapshot_take(&ctx.before, &inside()->core);
    ctx.pending = count_pending();
    return &ctx;
}

static wq_err
op_give_up(void *unused)
{
    (void)unused;
    const wq_err err = wq_add_rate_limited(ctx.q, long_key());
    return err == WQ_EGIVENUP ? WQ_OK : err;
}

static void
unchanged_and_not_given_up(void *unused)
{
    unchanged(unused);
    assert_int_equal(wq_num_requeues(ctx.q, long_key()), 1);
    assert_int_equal(ctx.dropped, 0);
}

static void
was_given_up(void *unused)
{
    (void)unused;
    expect_sound();
    assert_int_equal(wq_num_requeues(ctx.q, long_key()), 0);
    assert_int_equal(ctx.dropped, 1);
}

/* O-17 */
TEST(long_key_without_memory_is_not_given_up)
{
    scene = (struct scene){.has_limiter = true, .gives_up = true};
    memset(long_bytes, 'k', sizeof long_bytes);
    run_sweep(&(struct counting_sweep){
        .name = "give up",
        .setup = setup_retried,
        .op = op_give_up,
        .unchanged = unchanged_and_not_given_up,
        .done = was_given_up,
        .teardown = teardown,
    });
}

/* O-13 O-50 */
TEST(batch_behind_keys_handed_over_without_memory_loses_none)
{
    scene = (struct scene){.handed_over = 60};
    how = *WQ_ADD(.priority = -1);
    name_batch(3);
    sweep("batch behind keys handed over", op_add_with, batch_is_in, false);
}

static wq_err
op_remove(void *unused)
{
    (void)unused;
    return wq_remove(ctx.q, wq_str("handed3"));
}

static void
one_is_removed(void *unused)
{
    wq_stats c = {.size = sizeof c};

    (void)unused;
    expect_sound();
    assert_int_equal(wq_read_stats(ctx.q, &c), WQ_OK);
    assert_int_equal(c.removed, 1);
    assert_int_equal(c.ready, ctx.pending - 1);
}

/* O-57 O-13 */
TEST(remove_behind_keys_handed_over_without_memory_removes_nothing)
{
    scene = (struct scene){.handed_over = 60};
    sweep("remove", op_remove, one_is_removed, false);
}

static wq_err
op_remove_wait(void *unused)
{
    (void)unused;
    return wq_remove_wait(ctx.q, wq_str("handed3"), WQ_FOREVER);
}

/* O-84 O-13 */
TEST(removal_behind_keys_handed_over_without_memory_removes_nothing)
{
    scene = (struct scene){.handed_over = 60};
    sweep("remove_wait", op_remove_wait, one_is_removed, false);
}

static wq_err
op_flush(void *unused)
{
    (void)unused;
    const wq_err err = wq_flush(ctx.q, 0);
    return err == WQ_ETIMEDOUT ? WQ_OK : err;
}

static wq_err
op_wait_idle(void *unused)
{
    (void)unused;
    const wq_err err = wq_wait_idle(ctx.q, 0);
    return err == WQ_ETIMEDOUT ? WQ_OK : err;
}

static wq_err
op_flush_key(void *unused)
{
    (void)unused;
    const wq_err err = wq_flush_key(ctx.q, wq_str("handed3"), 0);
    return err == WQ_ETIMEDOUT ? WQ_OK : err;
}

/* O-81 O-82 O-83 O-13: what was handed over counts, or nobody waits. */
TEST(waits_behind_keys_handed_over_without_memory_fail)
{
    scene = (struct scene){.ready = 3, .handed_over = 60};
    sweep("flush", op_flush, all_come_out, false);
    sweep("wait_idle", op_wait_idle, all_come_out, false);
    sweep("flush_key", op_flush_key, all_come_out, false);
}

static wq_err
op_pause_and_resume(void *unused)
{
    (void)unused;
    const wq_err err = wq_pause(ctx.q);
    return err ? err : wq_resume(ctx.q);
}

/* O-85 */
TEST(pauses_need_no_memory)
{
    scene = (struct scene){.ready = 3, .handed_over = 60};
    sweep("pause", op_pause_and_resume, all_come_out, true);
}

/* ---- batches ------------------------------------------------------------ */

static wq_err
op_get_many(void *unused)
{
    (void)unused;
    return wq_get_many(ctx.q, ctx.many, 64, 0, &ctx.n);
}

/* It may be fewer: the next get will meet what stopped this one. */
static void
many_came_in_order(void *unused)
{
    char text[32];

    (void)unused;
    expect_sound();
    assert_in_range(ctx.n, 1, scene.ready);
    for (size_t i = 0; i < ctx.n; i++) {
        (void)snprintf(text, sizeof text, "ready%zu", i);
        assert_int_equal(ctx.many[i]->key.len, strlen(text));
        assert_memory_equal(ctx.many[i]->key.data, text, strlen(text));
    }
    expect_all_in_order((int)ctx.n);
}

static void
unchanged_and_none_taken(void *unused)
{
    unchanged(unused);
    assert_int_equal(ctx.n, 0);
    assert_null(ctx.many[0]);
}

/* O-59 */
TEST(get_of_many_without_memory_takes_as_many_as_it_can)
{
    scene = (struct scene){.ready = 60};
    run_sweep(&(struct counting_sweep){
        .name = "get of many",
        .setup = setup,
        .op = op_get_many,
        .unchanged = unchanged_and_none_taken,
        .done = many_came_in_order,
        .teardown = teardown,
    });
}

static void *
setup_many(struct counting *mem)
{
    (void)setup(mem);
    assert_int_equal(op_get_many(NULL), WQ_OK);
    assert_int_equal(ctx.n, scene.ready);
    return &ctx;
}

static wq_err
op_done_many(void *unused)
{
    (void)unused;
    return wq_done_many(ctx.q, ctx.many, ctx.n);
}

static void
none_is_held(void *unused)
{
    (void)unused;
    expect_sound();
    assert_int_equal(inside()->core.loans.live, 0);
}

/* O-60 */
TEST(done_of_many_needs_no_memory)
{
    scene = (struct scene){.ready = 60};
    run_sweep(&(struct counting_sweep){
        .name = "done of many",
        .setup = setup_many,
        .op = op_done_many,
        .unchanged = none_is_held,
        .done = none_is_held,
        .teardown = teardown,
        .needs_none = true,
    });
}

static wq_err
op_next(void *unused)
{
    (void)unused;
    const wq_err err = wq_next(ctx.q, 0, &ctx.item);
    assert_true(err ? !ctx.item : ctx.item != NULL);
    return err;
}

static void
the_next_is_held(void *unused)
{
    (void)unused;
    expect_sound();
    assert_int_equal(inside()->core.loans.live, 1);
    expect_all_in_order(1);
}

/* A key of another size than those there are: it needs a new block. */
static void
hand_over_a_longer_one(void)
{
    struct wq__memory *m = inside();

    memset(long_bytes, 'k', sizeof long_bytes);
    wq__lock_take(&m->lock);
    wq__inbox_open(&m->inbox);
    assert_int_equal(wq_add(ctx.q, (wq_key){long_bytes, 100}), WQ_OK);
    wq__lock_release(&m->lock);
}

/* O-61 O-13: the old one is done, which needs no memory; *item says so. */
TEST(next_without_memory_has_given_back_the_old_one)
{
    struct counting mem;

    counting_init(&mem);
    scene = (struct scene){.held = 1};
    (void)setup(&mem);
    hand_over_a_longer_one();
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    assert_int_equal(op_next(NULL), WQ_ENOMEM);
    expect_sound();
    assert_int_equal(inside()->core.loans.live, 0);
    assert_int_equal(count_pending(), 1);
    assert_int_equal(op_next(NULL), WQ_ENOMEM);
    counting_heal(&mem);
    assert_int_equal(op_next(NULL), WQ_OK);
    assert_int_equal(ctx.item->key.len, 100);
    teardown(NULL);
    assert_int_equal(mem.bytes, 0);
}

/* O-61: where one loan ends another can begin. */
TEST(next_needs_no_memory_where_keys_are_ready)
{
    scene = (struct scene){.held = 1, .ready = 5};
    sweep("next", op_next, the_next_is_held, true);
}

static bool
visit(void *unused, wq_key key, const wq_key_info *info)
{
    (void)unused, (void)key, (void)info;
    ctx.visited++;
    return true;
}

static wq_err
op_each(void *unused)
{
    (void)unused;
    return wq_each(ctx.q, 0, visit, NULL);
}

static void
unchanged_and_none_visited(void *unused)
{
    unchanged(unused);
    assert_int_equal(ctx.visited, 0);
}

static void
all_were_visited(void *unused)
{
    (void)unused;
    assert_int_equal(ctx.visited, scene.ready + scene.held);
    all_come_out(NULL);
}

/* O-33 */
TEST(walk_without_memory_visits_nothing)
{
    scene = (struct scene){.ready = 200, .held = 5};
    run_sweep(&(struct counting_sweep){
        .name = "each",
        .setup = setup,
        .op = op_each,
        .unchanged = unchanged_and_none_visited,
        .done = all_were_visited,
        .teardown = teardown,
    });
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
         test(destroy_needs_no_memory), test(batch_without_memory_adds_none),
         test(batch_of_paced_keys_without_memory_adds_none),
         test(batch_of_limited_keys_without_memory_adds_none),
         test(long_key_without_memory_is_not_given_up),
         test(batch_behind_keys_handed_over_without_memory_loses_none),
         test(remove_behind_keys_handed_over_without_memory_removes_nothing),
         test(removal_behind_keys_handed_over_without_memory_removes_nothing),
         test(waits_behind_keys_handed_over_without_memory_fail),
         test(pauses_need_no_memory),
         test(get_of_many_without_memory_takes_as_many_as_it_can),
         test(done_of_many_needs_no_memory),
         test(next_without_memory_has_given_back_the_old_one),
         test(next_needs_no_memory_where_keys_are_ready),
         test(walk_without_memory_visits_nothing));
