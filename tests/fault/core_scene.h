/* SPDX-License-Identifier: MIT */
/* core_scene.h: how does a core look before it gets no memory, and after?
 *
 *     scene = (struct scene){.ready = 3, .held = 1};
 *     expect_failure("get", op_get);
 *     expect_no_need("done", op_done);
 *
 * A test describes the core in `scene`; every round of a sweep makes that core
 * anew in `ctx`. When the operation fails, the core is as it was (L6): equal
 * snapshots. When it succeeds, something has changed.
 */
#ifndef WQ_TEST_CORE_SCENE_H
#define WQ_TEST_CORE_SCENE_H

#include "support/wq_test.h"

#include <stdio.h>
#include <string.h>

#include "core/core.h"
#include "fault/snapshot.h"
#include "support/core_kind.h"
#include "support/plug_in.h"
#include "support/sweep.h"

/* How the core looks before the operation. */
struct scene {
    int    ready, held, waiting; /* so many keys of each kind */
    int    levels;               /* as many keys of as many priorities */
    bool   dirty;                /* the held ones are dirty too */
    bool   paced;                /* some are throttled, some debounced */
    bool   ages;                 /* they are kept */
    bool   has_plug_in;
    size_t max_len;
    bool   grouped;   /* every key is a group of its own */
    size_t max_held;  /* of a group */
    bool   ageing;    /* which keeps ages */
    size_t max_bytes; /* of all keys */
};

struct ctx {
    struct wq__core core;
    struct plug_in  order;
    wq_order        plug_in;
    wq_item        *item; /* the last one handed out by the scene */
    wq_item        *out;  /* what a get under test wrote */
    struct snapshot before;
};

static struct scene scene;
static struct ctx   ctx;

static const wq_key NEW_KEY = {"new", 3};
static char         long_bytes[1000]; /* of the long key */

/* ---- making the scene --------------------------------------------------- */

/* What is known of a key before it is added. */
static inline struct wq__prepared
pick_of(wq_key key, int64_t at)
{
    struct wq__prepared pick = {.hash = wq__core_hash(&ctx.core, key),
                                .at = at};

    if (scene.grouped) {
        pick.group = key;
        pick.group_hash = pick.hash;
    }
    return pick;
}

/* In any way. */
static inline wq_err
add_to_scene(struct wq__how how, wq_key key, int64_t at)
{
    struct wq__prepared pick = pick_of(key, at);

    return wq__core_add_with(&ctx.core, &how, &key, &pick, 1, NULL, NULL);
}

static inline wq_err
add_how(struct wq__how how, wq_key key)
{
    return add_to_scene(how, key, 12);
}

static inline wq_err
add(wq_key key)
{
    wq_added what;

    if (scene.grouped || scene.max_bytes)
        return add_how((struct wq__how){0}, key);
    return wq__core_add(&ctx.core, key, wq__core_hash(&ctx.core, key), 0,
                        &what);
}

static inline wq_err
add_at(wq_key key, int64_t at)
{
    return add_to_scene((struct wq__how){.kind = WQ__ADD_AT}, key, at);
}

static inline wq_key
numbered(char text[static 32], const char *name, int i)
{
    (void)snprintf(text, 32, "%s%d", name, i);
    return wq_str(text);
}

/* One is READY, one is left alone, one waits until it is not any more; and a
 * series of debounced adds has begun. */
static inline void
make_paced(void)
{
    const struct wq__how throttle = {.kind = WQ__ADD_THROTTLE, .span = 50};
    const struct wq__how first = {
        .kind = WQ__ADD_THROTTLE, .span = 50, .priority = 1000};
    const struct wq__how debounce = {.kind = WQ__ADD_DEBOUNCE, .span = 50};
    const char *const    names[] = {"quiet", "throttled"};

    for (size_t i = 0; i < 2; i++) {
        wq_item *item;
        int64_t  work;
        assert_int_equal(add_how(first, wq_str(names[i])), WQ_OK);
        assert_int_equal(wq__core_get(&ctx.core, 0, &item), WQ_OK);
        assert_int_equal(wq__core_done(&ctx.core, item, 0, &work), WQ_OK);
    }
    assert_int_equal(add_how(throttle, wq_str("throttled")), WQ_OK);
    assert_int_equal(add_how(throttle, wq_str("paced")), WQ_OK);
    assert_int_equal(add_how(debounce, wq_str("series")), WQ_OK);
}

static inline void
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

static inline void
setup(struct counting *mem)
{
    const struct wq__hash_key secret = {.k0 = 1, .k1 = 2, .mask = UINT32_MAX};
    char                      text[32];

    memset(&ctx, 0, sizeof ctx);
    memset(long_bytes, 'k', sizeof long_bytes);
    ctx.order.mem = &mem->allocator;
    ctx.plug_in = plug_in_order(&ctx.order);
    wq__core_init(&ctx.core, secret, scene.has_plug_in ? &ctx.plug_in : NULL,
                  &mem->allocator);
    const struct core_kind kind = {scene.ages, scene.grouped, scene.max_held,
                                   scene.ageing ? 5 : 0,
                                   scene.max_bytes ? SIZE_MAX : 0};
    core_set_kind(&ctx.core, &kind);
    make_held();
    for (int i = 0; i < scene.ready; i++)
        assert_int_equal(add(numbered(text, "ready", i)), WQ_OK);
    for (int i = 0; i < scene.waiting; i++)
        assert_int_equal(add_at(numbered(text, "wait", i), 10 + i % 3), WQ_OK);
    for (int i = 0; i < scene.levels; i++)
        assert_int_equal(add_how((struct wq__how){.priority = i + 1},
                                 numbered(text, "level", i)),
                         WQ_OK);
    if (scene.paced)
        make_paced();
    ctx.core.max_len = scene.max_len;
    if (scene.max_bytes)
        wq__core_bound_bytes(&ctx.core, scene.max_bytes);
    snapshot_take(&ctx.before, &ctx.core);
}

/* ---- looking ------------------------------------------------------------ */

static inline void
unchanged(void)
{
    assert_sound(&ctx.core);
    assert_same(&ctx.before, &ctx.core);
    assert_null(ctx.out);
}

static inline void
changed(void)
{
    struct snapshot now;

    assert_sound(&ctx.core);
    snapshot_take(&now, &ctx.core);
    assert_string_not_equal(now.text, ctx.before.text);
}

static inline void
teardown(void)
{
    wq__core_fini(&ctx.core);
}

/* ---- the sweeps --------------------------------------------------------- */

enum { SIZES = 70 }; /* tables of the core double five times on the way */

static const struct fixture core_fixture = {setup, teardown};

/* When an allocation of `op` fails, nothing has changed. */
static inline void
expect_failure(const char *name, wq_err (*op)(void))
{
    assert_fails_cleanly(&core_fixture, name, op, unchanged, changed);
}

static inline void
expect_no_need(const char *name, wq_err (*op)(void))
{
    assert_needs_no_memory(&core_fixture, name, op, changed);
}

/* Does the operation fail when it gets no memory at all? */
static inline bool
needs_memory(wq_err (*op)(void))
{
    struct counting mem;

    counting_init(&mem);
    setup(&mem);
    counting_fail(&mem, 1, COUNTING_FROM_NOW);
    const bool needs = op() != WQ_OK;
    counting_heal(&mem);
    teardown();
    return needs;
}

/* The first add of all needs memory for everything, later ones only when
 * something is full: whether any round fails depends on the scene. */
static inline void
expect_either(const char *name, wq_err (*op)(void))
{
    (needs_memory(op) ? expect_failure : expect_no_need)(name, op);
}

/* The operation needs memory, however many keys of a kind are there. */
static inline void
expect_failures(const char *name, wq_err (*op)(void), int *kind, int to)
{
    for (*kind = 0; *kind < to; ++*kind)
        expect_failure(name, op);
}

/* Whether it does depends on how many there are. */
static inline void
expect_at_every_size(const char *name, wq_err (*op)(void), int *kind, int from)
{
    char what[64];

    for (*kind = from; *kind < SIZES; ++*kind) {
        (void)snprintf(what, sizeof what, "%s, %d keys there", name, *kind);
        expect_either(what, op);
    }
}

/* ---- operations --------------------------------------------------------- */

static inline wq_key
long_key(void)
{
    return (wq_key){long_bytes, sizeof long_bytes};
}

static inline wq_err
op_add(void)
{
    return add(NEW_KEY);
}

static inline wq_err
op_add_long(void)
{
    return add(long_key());
}

static inline wq_err
op_get(void)
{
    return wq__core_get(&ctx.core, 0, &ctx.out);
}

static inline wq_err
op_done(void)
{
    int64_t work;

    return wq__core_done(&ctx.core, ctx.item, 0, &work);
}

static inline wq_err
op_done_key(void)
{
    const wq_key key = wq_str("held0");
    int64_t      work;

    return wq__core_done_key(&ctx.core, key, wq__core_hash(&ctx.core, key), 0,
                             &work);
}

static inline wq_err
op_promote(void)
{
    wq__core_promote(&ctx.core, 1000);
    return WQ_OK;
}

static const char *taken_back; /* the key of op_remove() */

static inline wq_err
op_remove(void)
{
    const wq_key key = wq_str(taken_back);

    return wq__core_remove(&ctx.core, key, wq__core_hash(&ctx.core, key), 5);
}

#endif
