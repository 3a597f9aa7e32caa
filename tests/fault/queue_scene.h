/* SPDX-License-Identifier: MIT */
/* queue_scene.h: how does a queue look before it gets no memory, and after?
 *
 *     scene = (struct scene){.ready = 3, .handed_over = 60};
 *     expect_failure("add", op_add, all_come_out);
 *     expect_no_need("len", op_len, all_come_out);
 *
 * A test describes the queue in `scene`; every round of a sweep makes that
 * queue anew in `ctx`. When the operation fails, no user sees a change (L6) and
 * what was accepted before is still there (O-13).
 */
#ifndef WQ_TEST_QUEUE_SCENE_H
#define WQ_TEST_QUEUE_SCENE_H

#include "support/wq_test.h"

#include <stdio.h>
#include <string.h>

#include <wq/limiter.h>

#include "fault/snapshot.h"
#include "memory/memory.h"
#include "support/plug_in.h"
#include "support/sweep.h"

/* How the queue looks before the operation. */
struct scene {
    int  ready, held;
    int  handed_over; /* in the ring, for whoever takes the lock next */
    bool dirty;       /* the held ones are */
    bool has_plug_in;
    bool has_limiter; /* one that takes memory for every key */
    bool gives_up;    /* after one retry */
};

struct ctx {
    struct counting *mem;
    wq_queue        *q;
    struct plug_in   order;
    wq_item         *item; /* the last one handed out by the scene */
    wq_item         *out;  /* what a get under test wrote */
    struct snapshot  before;
    size_t           pending; /* keys READY or in the ring */
    wq_item         *many[64];
    size_t           n;       /* how many of them there are */
    size_t           visited; /* keys that a walk has shown */
    size_t           dropped; /* calls of on_drop() */
};

static struct scene scene;
static struct ctx   ctx;
static char         long_bytes[2000]; /* of the long key */

static const int64_t hour = INT64_C(3600) * 1000000000;

static inline wq_key
long_key(void)
{
    return (wq_key){long_bytes, sizeof long_bytes};
}

static inline struct wq__memory *
inside(void)
{
    return (struct wq__memory *)(void *)ctx.q;
}

static inline size_t
count_pending(void)
{
    return wq__core_len(&inside()->core) + wq__inbox_len(&inside()->inbox);
}

/* ---- making the scene --------------------------------------------------- */

static inline void
on_drop(void *unused, wq_key key, unsigned retries, wq_err why)
{
    (void)unused;
    assert_int_equal(strlen(key.data), key.len);
    assert_int_equal(retries, 1);
    assert_int_equal(why, WQ_EGIVENUP);
    ctx.dropped++;
}

static inline wq_err
create(void)
{
    const wq_order order = plug_in_order(&ctx.order);
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

static inline void
add_numbered(const char *name, int i)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%s%d", name, i);
    assert_int_equal(wq_add_str(ctx.q, text), WQ_OK);
}

static inline void
make_held(void)
{
    for (int i = 0; i < scene.held; i++) {
        add_numbered("held", i);
        assert_int_equal(wq_get_within(ctx.q, 0, &ctx.item), WQ_OK);
        if (scene.dirty)
            add_numbered("held", i);
    }
}

/* Until the end, this thread has the lock, and adds are handed over. */
static inline void
begin_handing_over(void)
{
    wq__lock_take(&inside()->lock);
    wq__inbox_open(&inside()->inbox);
}

static inline void
end_handing_over(void)
{
    wq__lock_release(&inside()->lock);
}

static inline void
note_before(void)
{
    snapshot_take(&ctx.before, &inside()->core);
    ctx.pending = count_pending();
}

static inline void
setup_nothing(struct counting *mem)
{
    memset(&ctx, 0, sizeof ctx);
    memset(long_bytes, 'k', sizeof long_bytes);
    ctx.mem = mem;
    ctx.order.mem = &mem->allocator;
}

static inline void
setup(struct counting *mem)
{
    setup_nothing(mem);
    assert_int_equal(create(), WQ_OK);
    make_held();
    for (int i = 0; i < scene.ready; i++)
        add_numbered("ready", i);
    begin_handing_over();
    for (int i = 0; i < scene.handed_over; i++)
        add_numbered("handed", i);
    end_handing_over();
    note_before();
}

static inline void
teardown(void)
{
    wq_destroy(ctx.q);
}

/* ---- looking ------------------------------------------------------------ */

static inline void
expect_sound(void)
{
    assert_sound(&inside()->core);
}

/* Keys may have moved from the ring into the core, in order: no user sees
 * that. */
static inline void
unchanged(void)
{
    expect_sound();
    assert_int_equal(count_pending(), ctx.pending);
    assert_null(ctx.out);
    if (scene.handed_over == 0)
        assert_same(&ctx.before, &inside()->core);
}

static inline void
expect_key(const wq_item *item, const char *name, int i)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%s%d", name, i);
    assert_int_equal(item->key.len, strlen(text));
    assert_memory_equal(item->key.data, text, strlen(text));
}

/* The keys READY first and those handed over after them come out in order. */
static inline void
expect_all_in_order(int from_ready)
{
    wq_item *item;

    for (int i = from_ready; i < scene.ready + scene.handed_over; i++) {
        assert_int_equal(wq_get_within(ctx.q, 0, &item), WQ_OK);
        expect_key(item, i < scene.ready ? "ready" : "handed",
                   i < scene.ready ? i : i - scene.ready);
        assert_int_equal(wq_done(ctx.q, item), WQ_OK);
    }
}

static inline void
all_come_out(void)
{
    expect_sound();
    expect_all_in_order(0);
}

/* ---- the sweeps --------------------------------------------------------- */

enum { SIZES = 40 };

static const struct fixture queue_fixture = {setup, teardown};

/* When an allocation of `op` fails, nothing has changed. */
static inline void
expect_failure(const char *name, wq_err (*op)(void), void (*done)(void))
{
    assert_fails_cleanly(&queue_fixture, name, op, unchanged, done);
}

static inline void
expect_no_need(const char *name, wq_err (*op)(void), void (*done)(void))
{
    assert_needs_no_memory(&queue_fixture, name, op, done);
}

#endif
