/* SPDX-License-Identifier: MIT */
/* test_store.c: what does the memory store do when it gets no memory?
 *
 * Every operation, with every one of its allocations refused, once and for
 * good: either it does its work, or it is WQ_ENOMEM and has done nothing. A
 * session that ends is given back as far as there is memory, and later for the
 * rest.
 */
#include "support/wq_test.h"

#include <stdio.h>
#include <string.h>

#include <wq/clock.h>

#include "support/counting.h"
#include "support/memory_store.h"
#include "support/sweep.h"

enum { LEASE = 100, KEYS = 20, TEXT = 4000 };

/* What the sweeps of a test share. */
static struct {
    int  held;   /* keys that the first engine holds, of as many priorities */
    bool failed; /* each has failed once */
    bool dead;   /* one more is DEAD */
    bool empty;  /* there is no engine */
} scene;

struct ctx {
    wq_clock            *clock;
    struct memory_store *store;
    struct wq__engine   *a, *b;
    uint64_t             fence; /* of the last key that was got */
    size_t               taken;
    char                 before[TEXT];
};

static struct ctx ctx;

static const struct wq__terms terms = {
    .limiter = {.size = sizeof terms.limiter,
                .parts = WQ_PART_EXPONENTIAL,
                .base_ns = 10,
                .max_ns = 1000},
    .max_retries = 1,
    .max_expiries = 2,
};

/* ---- operations ---------------------------------------------------------- */

static wq_err
run(struct wq__engine *e, struct wq__op *op)
{
    struct wq__pulse pulse;
    const wq_err     err = e->ops->run(e, op, &pulse);

    return err || !op ? err : op->err;
}

static wq_err
add_keys(struct wq__engine *e, const char *key, const wq_add_options *how,
         size_t n)
{
    static char   text[KEYS][48]; /* a name, and any number */
    wq_key        keys[KEYS];
    struct wq__op op = {.kind = WQ__OP_ADD,
                        .as.add = {.how = how, .keys = keys, .n = n}};

    for (size_t i = 0; i < n; i++) {
        (void)snprintf(text[i], sizeof text[i], "%s%zu", key, i);
        keys[i] = wq_str(text[i]);
    }
    return run(e, &op);
}

static wq_err
take(void *unused, const struct wq__handed *handed)
{
    (void)unused;
    ctx.fence = handed->fence;
    ctx.taken++;
    return WQ_OK;
}

static wq_err
get(struct wq__engine *e)
{
    struct wq__op op = {.kind = WQ__OP_GET, .as.get = {.max = 1, .take = take}};

    return run(e, &op);
}

static wq_err
finish(const char *key, wq_result result)
{
    struct wq__op op = {.kind = WQ__OP_FINISH,
                        .as.finish = {.key = wq_str(key),
                                      .fence = ctx.fence,
                                      .result = result}};

    return run(ctx.a, &op);
}

/* ---- looking ------------------------------------------------------------- */

static bool
tell(void *text, wq_key key, const wq_key_info *info)
{
    const size_t len = strlen(text);

    (void)snprintf((char *)text + len, TEXT - len, "%.*s:%u/%d/%lld/%llu/%u ",
                   (int)key.len, (const char *)key.data, info->states,
                   info->priority, (long long)info->wait_ns,
                   (unsigned long long)info->fence, info->requeues);
    return true;
}

static void
describe(char text[TEXT])
{
    struct wq__op op = {.kind = WQ__OP_WALK,
                        .as.walk = {.states = 63, .found = tell, .ctx = text}};

    *text = '\0';
    while (!op.as.walk.ended)
        assert_int_equal(run(ctx.b, &op), WQ_OK);
}

static void
expect_sound(void)
{
    assert_sound_store(ctx.store);
}

static void
unchanged(void)
{
    char now[TEXT];

    expect_sound();
    if (!ctx.b)
        return;
    describe(now);
    assert_string_equal(now, ctx.before);
}

static void
changed(void)
{
    char now[TEXT];

    expect_sound();
    describe(now);
    assert_string_not_equal(now, ctx.before);
}

/* ---- the scene ----------------------------------------------------------- */

static void
make_held(void)
{
    for (int i = 0; i < scene.held; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "held%d", i);
        assert_int_equal(
            add_keys(ctx.a, key,
                     WQ_ADD(.priority = i, .rate_limited = scene.failed), 1),
            WQ_OK);
        wq_clock_fake_step(ctx.clock, 10);
        assert_int_equal(get(ctx.a), WQ_OK);
    }
}

static void
setup(struct counting *mem)
{
    memset(&ctx, 0, sizeof ctx);
    ctx.clock = wq_clock_fake_create(0);
    ctx.store = memory_store_create_with(ctx.clock, &mem->allocator);
    if (scene.empty)
        return;
    assert_int_equal(memory_store_engine(ctx.store, &terms, LEASE, &ctx.a),
                     WQ_OK);
    assert_int_equal(memory_store_engine(ctx.store, &terms, 0, &ctx.b), WQ_OK);
    if (scene.dead) {
        assert_int_equal(add_keys(ctx.a, "dead", WQ_ADD(.priority = 50), 1),
                         WQ_OK);
        assert_int_equal(get(ctx.a), WQ_OK);
        assert_int_equal(finish("dead0", wq_result_bury()), WQ_OK);
    }
    make_held();
    describe(ctx.before);
    ctx.taken = 0;
}

static void
teardown(void)
{
    if (ctx.a)
        ctx.a->ops->close(ctx.a, false);
    expect_sound();
    if (ctx.b)
        ctx.b->ops->close(ctx.b, false);
    memory_store_destroy(ctx.store);
    wq_clock_destroy(ctx.clock);
}

static const struct fixture a_store = {setup, teardown};

static void
sweep(const char *name, wq_err (*op)(void), void (*done)(void))
{
    assert_fails_cleanly_in_small_tables(&a_store, name, op, unchanged, done);
}

/* The same with a scene in which this is true. */
static void
sweep_with(bool *of_scene, const char *name, wq_err (*op)(void),
           void (*done)(void))
{
    *of_scene = true;
    sweep(name, op, done);
    *of_scene = false;
}

/* ---- what is swept ------------------------------------------------------- */

static const wq_add_options *how;

static wq_err
op_add(void)
{
    return add_keys(ctx.a, "new", how, KEYS);
}

static void
sweep_add(const char *name, const wq_add_options *options)
{
    how = options;
    sweep(name, op_add, changed);
}

TEST(add_without_memory_changes_nothing)
{
    sweep_add("add", WQ_ADD(.priority = -5));
    sweep_add("delay", WQ_ADD(.after_ns = 50));
    sweep_add("limit", WQ_ADD(.rate_limited = true));
    sweep_add("debounce", WQ_ADD(.debounce_ns = 50));
}

static wq_err
op_get(void)
{
    const wq_err err = get(ctx.a);

    if (err)
        assert_int_equal(ctx.taken, 0); /* not even shown */
    return err;
}

static void
setup_ready(struct counting *mem)
{
    setup(mem);
    assert_int_equal(add_keys(ctx.a, "ready", WQ_ADD(.priority = 0), 2), WQ_OK);
    describe(ctx.before);
}

static const struct fixture ready_keys = {setup_ready, teardown};

TEST(get_without_memory_hands_out_nothing)
{
    assert_fails_cleanly(&ready_keys, "get", op_get, unchanged, changed);
}

static wq_err
op_retry(void)
{
    return finish("held20", wq_result_retry());
}

static wq_err
op_after(void)
{
    return finish("held20", wq_result_after(77));
}

static wq_err
op_back(void)
{
    wq_result result = wq_result_back();

    result.prioritized = true;
    result.priority = 99;
    return finish("held20", result);
}

static wq_err
op_bury(void)
{
    return finish("held20", wq_result_bury());
}

TEST(finish_without_memory_changes_nothing)
{
    scene.held = 3;
    sweep("retry", op_retry, changed);
    sweep("after", op_after, changed);
    sweep("back", op_back, changed);
    sweep("bury", op_bury, changed);
    scene.held = 0;
}

static wq_err
op_give_up(void)
{
    const wq_err err = finish("held20", wq_result_retry());

    return err == WQ_EGIVENUP ? WQ_OK : err;
}

TEST(giving_up_without_memory_changes_nothing)
{
    scene.held = 3;
    scene.failed = true;
    sweep("give up", op_give_up, changed);
    scene.held = 0;
    scene.failed = false;
}

static wq_err
op_revive(void)
{
    struct wq__op op = {.kind = WQ__OP_REVIVE, .as.one.key = wq_str("dead0")};

    return run(ctx.a, &op);
}

TEST(revive_without_memory_changes_nothing)
{
    sweep_with(&scene.dead, "revive", op_revive, changed);
}

static wq_err
op_open(void)
{
    return memory_store_engine(ctx.store, &terms, LEASE, &ctx.b);
}

static void
opened(void)
{
    expect_sound();
    assert_non_null(ctx.b);
}

TEST(engine_without_memory_is_not_opened)
{
    sweep_with(&scene.empty, "open", op_open, opened);
}

static wq_err
op_expire(void)
{
    memory_store_end_session(ctx.a);
    (void)run(ctx.b, NULL);
    expect_sound();
    return WQ_OK;
}

/* All keys that were HELD have these states, and their priority. With memory
 * the rest of them is given back. */
static void
expect_all(unsigned states)
{
    char now[TEXT], part[48];

    describe(now);
    for (int i = 0; i < scene.held; i++) {
        (void)snprintf(part, sizeof part, "held%d0:%u/%d/", i, states, i);
        assert_non_null(strstr(now, part));
    }
}

/* The second time all of them are DEAD. */
static void
expired(void)
{
    expect_all(WQ_STATE_READY);
    for (int i = 0; i < scene.held; i++)
        assert_int_equal(get(ctx.a), WQ_OK);
    memory_store_end_session(ctx.a);
    expect_all(WQ_STATE_DEAD);
}

static wq_err
op_close(void)
{
    ctx.a->ops->close(ctx.a, false);
    ctx.a = NULL;
    expect_sound();
    return WQ_OK;
}

static void
given_back(void)
{
    expect_all(WQ_STATE_READY);
}

TEST(holds_are_given_back_when_there_is_memory)
{
    scene.held = 5;
    assert_needs_no_memory(&a_store, "expire", op_expire, expired);
    assert_needs_no_memory(&a_store, "close", op_close, given_back);
    scene.held = 0;
}

static wq_err
op_unheard(void)
{
    memory_store_fail(ctx.store, STORE_EIO_AFTER, 1, 0);
    assert_int_equal(add_keys(ctx.a, "new", WQ_ADD(.priority = 0), 3), WQ_EIO);
    expect_sound();
    return WQ_OK;
}

TEST(unheard_batch_without_memory_happens_or_not)
{
    assert_needs_no_memory(&a_store, "unheard", op_unheard, expect_sound);
}

WQ_TESTS(test(add_without_memory_changes_nothing),
         test(get_without_memory_hands_out_nothing),
         test(finish_without_memory_changes_nothing),
         test(giving_up_without_memory_changes_nothing),
         test(revive_without_memory_changes_nothing),
         test(engine_without_memory_is_not_opened),
         test(holds_are_given_back_when_there_is_memory),
         test(unheard_batch_without_memory_happens_or_not));
