/* SPDX-License-Identifier: MIT */
/* test_layers.c: what does a user see when a layered queue gets no memory?
 *
 * Both layers around an in-memory queue, all with the same allocator. Every
 * allocation of an add with options is refused once, and for good: the add
 * returns WQ_ENOMEM, and a dump of the queue, with its stats, its keys and
 * their failures, is the same as before (L6).
 */
#include "support/wq_test.h"

#include <stdio.h>
#include <string.h>

#include <wq/backend.h>
#include <wq/clock.h>
#include <wq/limiter.h>

#include "support/look.h"
#include "support/sweep.h"

#define S INT64_C(1000000000)

enum { BATCH = 40 }; /* more than an add prepares without memory */

struct dump {
    char   text[40000];
    size_t len;
};

static struct ctx {
    struct counting *mem;
    wq_clock        *clock;
    wq_queue        *q;
    struct dump      before;
} ctx;

/* The add under test. */
static wq_add_options how;
static wq_key         keys[BATCH];
static size_t         len;      /* of `keys` */
static unsigned       expected; /* states of its keys afterwards */
static char           names[BATCH][8];

static wq_err
write_dump(void *out, const char *text, size_t size)
{
    struct dump *d = out;

    if (size > sizeof d->text - d->len)
        return WQ_EIO;
    memcpy(d->text + d->len, text, size);
    d->len += size;
    return WQ_OK;
}

static void
dump(struct dump *out)
{
    out->len = 0;
    assert_int_equal(wq_dump(ctx.q, write_dump, out), WQ_OK);
}

/* ---- the scene ----------------------------------------------------------- */

static void
add_scene(const char *key, int64_t after_ns, int priority)
{
    assert_int_equal(
        wq_add_one_str(ctx.q, key,
                       WQ_ADD(.after_ns = after_ns, .priority = priority)),
        WQ_OK);
}

static void
setup(struct counting *mem)
{
    wq_queue *inner = NULL, *delaying = NULL;

    ctx = (struct ctx){.mem = mem, .clock = wq_clock_fake_create(0)};
    const wq_allocator *from = &mem->allocator;
    assert_int_equal(
        wq_create(WQ_CONFIG(.allocator = from, .clock = ctx.clock), &inner),
        WQ_OK);
    assert_int_equal(
        wq_delaying_wrap(
            inner, WQ_CONFIG(.allocator = from, .clock = ctx.clock), &delaying),
        WQ_OK);
    assert_int_equal(wq_rate_limiting_wrap(
                         delaying,
                         WQ_CONFIG(.allocator = from, .clock = ctx.clock,
                                   .limiter = wq_limiter_exponential(S, S)),
                         &ctx.q),
                     WQ_OK);
    add_scene("ready", 0, 1);
    add_scene("both", 0, 1);
    add_scene("both", S, 2);
    add_scene("waits", S, 3);
    add_scene("other", S, 4); /* priority 9 needs memory in the layer */
    dump(&ctx.before);
}

static void
teardown(void)
{
    wq_destroy(ctx.q);
    wq_clock_destroy(ctx.clock);
}

static void
unchanged(void)
{
    struct dump now;

    counting_heal(ctx.mem);
    dump(&now);
    assert_int_equal(now.len, ctx.before.len);
    assert_memory_equal(now.text, ctx.before.text, now.len);
}

/* ---- adds ---------------------------------------------------------------- */

static wq_err
op_add_with(void)
{
    return wq_add_with(ctx.q, &how, keys, len);
}

static void
keys_are_in(void)
{
    counting_heal(ctx.mem);
    for (size_t i = 0; i < len; i++) {
        wq_key_info info = {.size = sizeof info};

        assert_int_equal(wq_read_key(ctx.q, keys[i], &info), WQ_OK);
        assert_int_equal(info.states, expected);
        assert_int_equal(info.priority, how.priority);
    }
}

static const struct fixture layers = {setup, teardown};

static void
sweep(const char *name, wq_err (*op)(void), void (*done)(void))
{
    assert_fails_cleanly_in_small_tables(&layers, name, op, unchanged, done);
}

static void
sweep_add(const char *name, wq_add_options options, unsigned states)
{
    how = options;
    how.size = sizeof how;
    how.priority = 9;
    expected = states;
    sweep(name, op_add_with, keys_are_in);
}

static void
name_new_keys(void)
{
    for (len = 0; len < BATCH; len++) {
        (void)snprintf(names[len], sizeof names[len], "new%zu", len);
        keys[len] = wq_str(names[len]);
    }
}

static void
name_key(const char *key)
{
    keys[0] = wq_str(key);
    len = 1;
}

/* O-18 O-50 R-03 */
TEST(many_keys_without_memory_change_nothing)
{
    name_new_keys();
    sweep_add("now", (wq_add_options){.after_ns = 0}, WQ_STATE_READY);
    sweep_add("delay", (wq_add_options){.after_ns = S}, WQ_STATE_WAITING);
    sweep_add("rate limit", (wq_add_options){.rate_limited = true},
              WQ_STATE_WAITING | WQ_STATE_BACKOFF);
}

/* O-18 O-52 O-53 */
TEST(combined_add_without_memory_changes_nothing)
{
    static const char *const known[] = {"ready", "both", "waits"};

    for (int i = 0; i < 3; i++) {
        name_key(known[i]);
        sweep_add("replace",
                  (wq_add_options){.after_ns = 2 * S,
                                   .waiting = WQ_IF_WAITING_REPLACE},
                  WQ_STATE_WAITING);
        sweep_add("merge now", (wq_add_options){.waiting = WQ_IF_WAITING_MERGE},
                  WQ_STATE_READY);
    }
    name_key("new");
    sweep_add("debounce", (wq_add_options){.debounce_ns = S}, WQ_STATE_WAITING);
}

/* ---- walks --------------------------------------------------------------- */

static wq_err
op_each(void)
{
    return each_or_none(ctx.q, 4);
}

/* O-18 O-33 */
TEST(walk_without_memory_visits_no_key)
{
    sweep("each", op_each, NULL);
}

WQ_TESTS(test(many_keys_without_memory_change_nothing),
         test(combined_add_without_memory_changes_nothing),
         test(walk_without_memory_visits_no_key));
