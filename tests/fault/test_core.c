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

/* What is known of a key before it is added. */
static struct wq__pick
pick_of(wq_key key, int64_t at)
{
    struct wq__pick pick = {.hash = wq__core_hash(&ctx.core, key), .at = at};

    if (scene.grouped) {
        pick.group = key;
        pick.group_hash = pick.hash;
    }
    return pick;
}

/* In any way. */
static wq_err
add_to_scene(struct wq__how how, wq_key key, int64_t at)
{
    struct wq__pick pick = pick_of(key, at);

    return wq__core_add_with(&ctx.core, &how, &key, &pick, 1, NULL, NULL);
}

static wq_err
add_how(struct wq__how how, wq_key key)
{
    return add_to_scene(how, key, 12);
}

static wq_err
add(wq_key key)
{
    wq_added what;

    if (scene.grouped || scene.max_bytes)
        return add_how((struct wq__how){0}, key);
    return wq__core_add(&ctx.core, key, wq__core_hash(&ctx.core, key), 0,
                        &what);
}

static wq_err
add_at(wq_key key, int64_t at)
{
    return add_to_scene((struct wq__how){.kind = WQ__ADD_AT}, key, at);
}

static wq_key
numbered(char text[static 32], const char *name, int i)
{
    (void)snprintf(text, 32, "%s%d", name, i);
    return wq_str(text);
}

/* One is READY, one is left alone, one waits until it is not any more; and a
 * series of debounced adds has begun. */
static void
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
    if (scene.ages)
        wq__core_keep_ages(&ctx.core);
    if (scene.grouped)
        wq__core_have_groups(&ctx.core, scene.max_held);
    if (scene.ageing)
        wq__core_serve_after(&ctx.core, 5);
    if (scene.max_bytes)
        wq__core_bound_bytes(&ctx.core, SIZE_MAX);
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
    int64_t work;

    (void)unused;
    return wq__core_done(&ctx.core, ctx.item, 0, &work);
}

static wq_err
op_done_key(void *unused)
{
    const wq_key key = wq_str("held0");
    int64_t      work;

    (void)unused;
    return wq__core_done_key(&ctx.core, key, wq__core_hash(&ctx.core, key), 0,
                             &work);
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

/* ---- adds with a purpose ------------------------------------------------ */

/* What the sweeps below add, and how. */
static struct {
    struct wq__how how;
    const char    *names[8]; /* up to the first NULL */
} purpose;

static wq_err
op_purpose(void *unused)
{
    struct wq__pick picks[8] = {{0}};
    wq_key          keys[8];
    size_t          n = 0;

    (void)unused;
    for (; n < 8 && purpose.names[n]; n++) {
        keys[n] = strcmp(purpose.names[n], "long")
                      ? wq_str(purpose.names[n])
                      : (wq_key){long_bytes, sizeof long_bytes};
        picks[n] = pick_of(keys[n], 11 + (int64_t)n % 3);
    }
    wq__ref      victims;
    const wq_err err = wq__core_add_with(&ctx.core, &purpose.how, keys, picks,
                                         n, NULL, &victims);
    while (victims)
        victims = wq__core_bury(&ctx.core, victims);
    return err;
}

static const struct wq__how hows[] = {
    {.kind = WQ__ADD_NOW, .priority = 777},
    {.kind = WQ__ADD_AT, .priority = 777, .backoff = true},
    {.kind = WQ__ADD_DEBOUNCE, .priority = 777, .span = 30, .max_wait = 40},
    {.kind = WQ__ADD_THROTTLE, .priority = 777, .span = 30},
};
enum { HOWS = sizeof hows / sizeof hows[0] };

/* One key, in every way, when `*kind` keys of a kind are there. */
static void
sweep_every_way(const char *name, int *kind, int to)
{
    purpose.names[0] = name;
    purpose.names[1] = NULL;
    for (size_t i = 0; i < HOWS; i++) {
        purpose.how = hows[i];
        for (*kind = 0; *kind < to; ++*kind)
            sweep(name, op_purpose, !needs_memory(op_purpose));
    }
}

/* O-51 O-53 O-54 */
TEST(add_with_a_purpose_without_memory_changes_nothing)
{
    scene = (struct scene){.paced = true};
    sweep_every_way("new", &scene.levels, 40);
    scene = (struct scene){.ages = true};
    sweep_every_way("new", &scene.waiting, SIZES);
    memset(long_bytes, 'k', sizeof long_bytes);
    sweep_every_way("long", &scene.waiting, 3);
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
        sweep_every_way(names[i], &scene.levels, 12);
        scene = (struct scene){.ready = 1,
                               .held = 1,
                               .dirty = true,
                               .waiting = 3,
                               .paced = true,
                               .ages = true};
        sweep_every_way(names[i], &scene.levels, 3);
    }
}

/* O-50: all or none, whichever of them there is no memory for. */
TEST(batch_without_memory_changes_nothing)
{
    static const char *const names[] = {"new1",  "ready0", "long", "new1",
                                        "held0", "wait0",  "new2", "quiet"};

    memset(long_bytes, 'k', sizeof long_bytes);
    memcpy(purpose.names, names, sizeof names);
    for (size_t i = 0; i < HOWS; i++) {
        purpose.how = hows[i];
        for (int size = 0; size < 20; size++) {
            scene = (struct scene){.ready = 1 + size,
                                   .held = 1,
                                   .waiting = 1,
                                   .levels = size,
                                   .paced = true,
                                   .ages = size % 2};
            sweep("batch", op_purpose, false);
        }
    }
}

/* O-55: nobody makes room for what cannot be added. */
TEST(batch_that_displaces_without_memory_changes_nothing)
{
    static const char *const names[8] = {"new1", "ready0", "long", "new2"};

    memset(long_bytes, 'k', sizeof long_bytes);
    memcpy(purpose.names, names, sizeof names);
    for (size_t i = 0; i < HOWS; i++) {
        purpose.how = hows[i];
        purpose.how.displace = true;
        for (int size = 4; size < 20; size++) {
            scene = (struct scene){
                .ready = size, .levels = 2, .max_len = (size_t)size + 2};
            sweep("batch that displaces", op_purpose, false);
        }
    }
}

/* Room is looked for before anything changes. */
static void
refuse_batches(struct scene full)
{
    static const char *const names[8] = {"new1", "ready0", "new2"};
    struct counting          mem;

    memcpy(purpose.names, names, sizeof names);
    for (size_t i = 0; i < HOWS; i++) {
        purpose.how = hows[i];
        scene = full;
        counting_init(&mem);
        (void)setup(&mem);
        assert_int_equal(op_purpose(NULL), WQ_EFULL);
        unchanged(NULL);
        teardown(NULL);
        assert_int_equal(mem.bytes, 0);
    }
}

TEST(batch_that_does_not_fit_changes_nothing)
{
    refuse_batches((struct scene){.ready = 4, .paced = true, .max_len = 9});
}

/* ---- what needs none ---------------------------------------------------- */

static const char *taken_back; /* by the next two */

static wq_err
op_remove(void *unused)
{
    const wq_key key = wq_str(taken_back);

    (void)unused;
    return wq__core_remove(&ctx.core, key, wq__core_hash(&ctx.core, key), 5);
}

static wq_err
op_cancel(void *unused)
{
    const wq_key key = wq_str(taken_back);

    (void)unused;
    return wq__core_cancel(&ctx.core, key, wq__core_hash(&ctx.core, key), 5);
}

/* O-57 O-58 */
TEST(taking_back_needs_no_memory)
{
    static const char *const wanted[] = {
        "ready1", "held0", "level2", "wait0", "throttled", "paced", "series"};

    scene = (struct scene){.ready = 3,
                           .held = 2,
                           .dirty = true,
                           .levels = 9,
                           .waiting = SIZES,
                           .paced = true};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        taken_back = wanted[i];
        sweep("remove", op_remove, true);
    }
    for (size_t i = 3; i < sizeof wanted / sizeof wanted[0]; i += 3) {
        taken_back = wanted[i];
        sweep("cancel", op_cancel, true);
    }
}

TEST(promotion_of_paced_keys_needs_no_memory)
{
    scene = (struct scene){.waiting = 20, .levels = 9, .paced = true};
    sweep("promotion", op_promote, true);
    sweep("shutdown", op_shut_down, true);
}

/* O-30 O-31 O-32 O-33 */
TEST(looking_needs_no_memory_and_changes_nothing)
{
    const wq_key    wait0 = wq_str("wait0");
    struct counting mem;
    wq_stats        counts;
    wq_depth        depths[4];
    wq_key_info     info;
    wq_key          key;
    wq__ref         cursor = 0;
    size_t          n, budget = 1000, met = 0;

    scene = (struct scene){.ready = 3,
                           .held = 2,
                           .dirty = true,
                           .levels = 9,
                           .waiting = 20,
                           .paced = true,
                           .ages = true};
    counting_init(&mem);
    (void)setup(&mem);
    const uint64_t calls = mem.calls;
    wq__core_stats(&ctx.core, 5, &counts);
    wq__core_depths(&ctx.core, depths, 4, &n);
    wq__core_look(&ctx.core, wait0, wq__core_hash(&ctx.core, wait0), 5, &info);
    while (wq__core_walk(&ctx.core, &cursor, &budget, 31, 5, &key, &info))
        met++;
    assert_int_equal(met, 3 + 2 + 9 + 20 + 3);
    assert_int_equal(mem.calls, calls);
    unchanged(NULL);
    teardown(NULL);
}

/* ---- groups, ageing, bytes ---------------------------------------------- */

/* O-80: of the record, of the group and of the table, each is missing once. */
TEST(add_of_a_new_group_without_memory_changes_nothing)
{
    scene = (struct scene){.grouped = true};
    sweep("first add", op_add, false);
    sweep_sizes("add", op_add, &scene.ready, 0);
    scene = (struct scene){.grouped = true, .max_held = 1};
    sweep_sizes("add, others held", op_add, &scene.held, 0);
    memset(long_bytes, 'k', sizeof long_bytes);
    scene = (struct scene){.grouped = true, .ageing = true};
    for (scene.ready = 0; scene.ready < SIZES; scene.ready++)
        sweep("add of a long key", op_add_long, false);
}

/* O-80 O-51 O-53 O-54 */
TEST(add_of_a_new_group_in_every_way_changes_nothing)
{
    scene = (struct scene){.grouped = true, .paced = true};
    sweep_every_way("new", &scene.levels, 20);
    scene = (struct scene){.grouped = true, .ageing = true};
    sweep_every_way("new", &scene.waiting, 20);
}

/* O-80 O-50: the groups made for keys before the one that fails go, too. */
TEST(batch_over_new_groups_without_memory_changes_nothing)
{
    static const char *const names[] = {"new1", "ready0", "long", "new1",
                                        "new2", "wait0",  "new3", "new4"};

    memset(long_bytes, 'k', sizeof long_bytes);
    memcpy(purpose.names, names, sizeof names);
    for (size_t i = 0; i < HOWS; i++) {
        purpose.how = hows[i];
        for (int size = 0; size < 20; size++) {
            scene = (struct scene){.ready = 1 + size,
                                   .waiting = 1,
                                   .levels = size % 4,
                                   .grouped = true,
                                   .max_held = (size_t)size % 2,
                                   .ageing = size % 2 == 0,
                                   .max_bytes = 100000};
            sweep("batch", op_purpose, false);
        }
    }
}

/* O-80 O-87 O-55: nobody makes room for what cannot be added. */
TEST(batch_that_displaces_groups_without_memory_changes_nothing)
{
    static const char *const names[8] = {"new1", "ready0", "new2", "new3"};

    memcpy(purpose.names, names, sizeof names);
    for (size_t i = 0; i < HOWS; i++) {
        purpose.how = hows[i];
        purpose.how.displace = true;
        for (int size = 5; size <= 10; size++) { /* of 6 bytes each */
            scene = (struct scene){.ready = size,
                                   .levels = 2,
                                   .grouped = true,
                                   .ageing = size % 2,
                                   .max_bytes = 17 + 6 * (size_t)size};
            sweep("batch that displaces", op_purpose, false);
        }
    }
}

/* O-87 */
TEST(batch_whose_bytes_do_not_fit_changes_nothing)
{
    refuse_batches(
        (struct scene){.ready = 4, .grouped = true, .max_bytes = 31});
}

static wq_err
op_hasten(void *unused)
{
    (void)unused;
    wq__core_shut_down(&ctx.core);
    wq__core_hasten(&ctx.core, 5, false);
    return WQ_OK;
}

/* O-80 O-86 O-89: what was accepted can always go on. */
TEST(grouped_keys_go_on_without_memory)
{
    for (size_t bound = 0; bound < 3; bound++) {
        scene = (struct scene){.ready = 3,
                               .held = 20,
                               .dirty = bound > 0,
                               .waiting = 20,
                               .levels = 5,
                               .paced = true,
                               .grouped = true,
                               .max_held = bound,
                               .ageing = bound == 0};
        sweep("done", op_done, true);
        sweep("done by key", op_done_key, true);
        sweep("promotion", op_promote, true);
        sweep("flush of deadlines", op_hasten, true);
        taken_back = "ready1";
        sweep("remove", op_remove, true);
        taken_back = "wait1";
        sweep("remove", op_remove, true);
    }
}

/* O-80 */
TEST(get_of_a_grouped_key_without_memory_keeps_its_turn)
{
    scene = (struct scene){.ready = 4, .grouped = true, .max_held = 1};
    sweep("first get", op_get, false);
    scene = (struct scene){.ready = 4, .grouped = true, .ageing = true};
    sweep_sizes("get", op_get, &scene.held, 0);
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

TEST(throttled_add_that_the_plug_in_refuses_changes_nothing)
{
    purpose.how = hows[3];
    memset(purpose.names, 0, sizeof purpose.names);
    purpose.names[0] = "new";
    scene = (struct scene){.has_plug_in = true};
    for (scene.ready = 0; scene.ready < 10; scene.ready++)
        sweep("throttled add", op_purpose, false);
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
         test(add_with_a_purpose_without_memory_changes_nothing),
         test(add_with_a_purpose_of_a_known_key_without_memory_changes_nothing),
         test(batch_without_memory_changes_nothing),
         test(batch_that_displaces_without_memory_changes_nothing),
         test(batch_that_does_not_fit_changes_nothing),
         test(taking_back_needs_no_memory),
         test(promotion_of_paced_keys_needs_no_memory),
         test(looking_needs_no_memory_and_changes_nothing),
         test(add_that_the_plug_in_has_no_memory_for_changes_nothing),
         test(add_of_a_waiting_key_that_the_plug_in_refuses_changes_nothing),
         test(done_of_a_dirty_key_that_the_plug_in_refuses_keeps_the_loan),
         test(done_of_a_clean_key_does_not_ask_the_plug_in),
         test(throttled_add_that_the_plug_in_refuses_changes_nothing),
         test(get_without_memory_does_not_ask_the_plug_in),
         test(add_of_a_new_group_without_memory_changes_nothing),
         test(add_of_a_new_group_in_every_way_changes_nothing),
         test(batch_over_new_groups_without_memory_changes_nothing),
         test(batch_that_displaces_groups_without_memory_changes_nothing),
         test(batch_whose_bytes_do_not_fit_changes_nothing),
         test(grouped_keys_go_on_without_memory),
         test(get_of_a_grouped_key_without_memory_keeps_its_turn));
