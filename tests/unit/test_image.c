/* SPDX-License-Identifier: MIT */
/* test_image.c: does a key come back from its image as it was?
 *
 * Keys in all combinations of states leave the core and come back. What memory
 * that fails does to an import is in fault/test_core_images.c; long random lives
 * of cores that are made from images again and again are in model/test_model.c.
 */
#include "unit/core_fixture.h"

#include "support/image_fields.h"
#include "support/look.h"

static struct wq__image export(const char *s)
{
    struct wq__image image;

    memset(&image, 0xA5, sizeof image); /* every field is written */
    wq__core_export(&f.core, wq_str(s), hash_of(s), &image);
    return image;
}

static wq_item *
import(const char *s, const struct wq__image *image)
{
    wq_item *item = (wq_item *)&f; /* is written */

    assert_int_equal(
        wq__core_import(&f.core, wq_str(s), hash_of(s), image, &item), WQ_OK);
    expect_sound();
    assert_ptr_equal(item, wq__core_find_item(&f.core, wq_str(s), hash_of(s)));
    return item;
}

static void
expel(const char *s)
{
    wq__core_expel(&f.core, wq_str(s), hash_of(s));
    expect_sound();
    assert_int_equal(export(s).states, 0);
}

/* ---- all states --------------------------------------------------------- */

#define LIFE(text, ...)                                                        \
    {                                                                          \
        .script = (text), .image = { __VA_ARGS__ }                             \
    }

/* A script that brings the key foo into the states; then its image. What the
 * image says of times READY and HELD counts in a core that keeps ages. */
static const struct life {
    const char      *script;
    struct wq__image image;
} lives[] = {
    LIFE("5: add foo +3 NEW", .states = WQ__READY, .priority = 3,
         .since_ns = 5),
    LIFE("5: add foo +3 NEW; 9: add foo @50 -4 keep SCHEDULED",
         .states = WQ__READY | WQ__WAITING, .priority = 3, .since_ns = 5,
         .at_ns = 50, .arrival = 1, .wait_priority = -4),
    LIFE("5: add foo +3 NEW; 7: get foo", .states = WQ__HELD,
         .held_priority = 3, .fence = 1, .held_ns = 7),
    LIFE("add a +9 NEW; get a; 5: add foo -3 NEW; 7: get foo; 9: add foo +4 "
         "DIRTY",
         .states = WQ__HELD | WQ__DIRTY, .priority = 4, .since_ns = 9,
         .held_priority = -3, .fence = 2, .held_ns = 7),
    LIFE("add foo NEW; 7: get foo; add foo @70 backoff +1 keep SCHEDULED",
         .states = WQ__HELD | WQ__WAITING | WQ__BACKOFF, .fence = 1,
         .held_ns = 7, .at_ns = 70, .arrival = 1, .wait_priority = 1),
    LIFE("add foo NEW; get foo; 4: add foo DIRTY; add a @80 SCHEDULED; "
         "add foo @80 SCHEDULED",
         .states = WQ__HELD | WQ__DIRTY | WQ__WAITING, .since_ns = 4,
         .fence = 1, .at_ns = 80, .arrival = 2),
    LIFE("add foo @never SCHEDULED", .states = WQ__WAITING, .at_ns = WQ_FOREVER,
         .arrival = 1),
    LIFE("add foo @-5 +2147483647 SCHEDULED", .states = WQ__WAITING,
         .at_ns = -5, .arrival = 1, .wait_priority = 2147483647),
    LIFE("add foo @50 backoff SCHEDULED", .states = WQ__WAITING | WQ__BACKOFF,
         .at_ns = 50, .arrival = 1),
    LIFE("respect; add foo @50 backoff SCHEDULED; add foo KEPT",
         .states = WQ__WAITING | WQ__BACKOFF | WQ__COVERS_ADD, .at_ns = 50,
         .arrival = 1),
    LIFE(
        "add foo debounce=10 max=25 SCHEDULED; 3: add foo debounce=10 +6 LATER",
        .states = WQ__WAITING | WQ__DEBOUNCED, .at_ns = 13, .arrival = 2,
        .wait_priority = 6, .throttled = true, .latest_ns = 25,
        .cooldown_until_ns = INT64_MIN),
    /* The cooldown begins at the hand-out. */
    LIFE("5: add foo throttle=30 NEW", .states = WQ__READY | WQ__COOLDOWN,
         .since_ns = 5, .at_ns = WQ_FOREVER, .arrival = 2, .throttled = true,
         .next_cooldown_ns = 30, .cooldown_until_ns = INT64_MIN),
    LIFE("add foo throttle=30 NEW; 7: get foo",
         .states = WQ__HELD | WQ__COOLDOWN, .fence = 1, .held_ns = 7,
         .at_ns = 37, .arrival = 3, .throttled = true, .cooldown_until_ns = 37),
    LIFE("add foo throttle=30 NEW; 7: get foo; done foo",
         .states = WQ__COOLDOWN, .at_ns = 37, .arrival = 3, .throttled = true,
         .cooldown_until_ns = 37),
    LIFE("add foo throttle=30 NEW; 7: run foo; 9: add foo throttle=40 +2 "
         "SCHEDULED",
         .states = WQ__WAITING, .at_ns = 37, .arrival = 4, .wait_priority = 2,
         .throttled = true, .wait_cooldown_ns = 40, .cooldown_until_ns = 37),
    LIFE("add foo throttle=30 NEW; 7: get foo; 9: add foo +1 DIRTY; "
         "add foo throttle=40 MERGED",
         .states = WQ__HELD | WQ__DIRTY | WQ__COOLDOWN, .priority = 1,
         .since_ns = 9, .fence = 1, .held_ns = 7, .at_ns = WQ_FOREVER,
         .arrival = 4, .throttled = true, .next_cooldown_ns = 40,
         .cooldown_until_ns = 37),
    LIFE("add foo throttle=30 NEW; add foo @50 SCHEDULED",
         .states = WQ__READY | WQ__WAITING, .at_ns = 50, .arrival = 3,
         .throttled = true, .next_cooldown_ns = 30,
         .cooldown_until_ns = INT64_MIN),
};

/* Without ages nobody knows since when. */
static struct wq__image
expected_image(const struct life *life)
{
    struct wq__image image = life->image;

    if (!f.core.ages)
        image.since_ns = image.held_ns = 0;
    if (image.states & WQ__HELD)
        image.holder = 77;
    return image;
}

/* A core in which foo has lived so far. */
static void
live(const struct life *life, bool ages)
{
    (void)open_core(NULL);
    f.prepared = true;
    if (ages)
        wq__core_keep_ages(&f.core);
    print_message("%s\n", life->script);
    play(life->script);
    wq_item *item = wq__core_find_item(&f.core, wq_str("foo"), hash_of("foo"));
    if (item)
        wq__core_note_holder(item, 77);
}

TEST(image_shows_all_that_is_known)
{
    for (size_t i = 0; i < 2 * LEN(lives); i++) {
        live(&lives[i / 2], i % 2);
        const struct wq__image actual = export("foo");
        const struct wq__image expected = expected_image(&lives[i / 2]);
        assert_same_fields(image_fields, &actual, &expected);
        assert_true(wq__image_is_possible(&actual));
        (void)close_core(NULL);
    }
}

#define STATS_FIELD(member) FIELD(wq_stats, member)

static const struct field stats_fields[] = {
    STATS_FIELD(ready),         STATS_FIELD(held),  STATS_FIELD(dirty),
    STATS_FIELD(waiting),       STATS_FIELD(known), STATS_FIELD(next_ns),
    STATS_FIELD(unfinished_ns), STATS_FIELD(adds),  STATS_FIELD(merged),
    STATS_FIELD(gets),          STATS_FIELD(dones), STATS_FIELD(removed)};

/* What the verbs show of foo, and of the core. */
struct sight {
    wq_key_info infos[2]; /* at two times */
    int64_t     deadline, first_deadline, next_deadline;
    bool        held_by_77;
    wq_stats    stats;
};

static struct sight
look(void)
{
    const wq_key   foo = wq_str("foo");
    const uint32_t hash = hash_of("foo");

    return (struct sight){
        .infos = {look_at("foo", 9), look_at("foo", 1000)},
        .deadline = wq__core_deadline(&f.core, foo, hash),
        .first_deadline = wq__core_first_deadline(&f.core),
        .next_deadline = wq__core_next_deadline(&f.core),
        .held_by_77 = wq__core_is_held_by(&f.core, foo, hash, 77),
        .stats = counts_at(9),
    };
}

static void
assert_same_sight(const struct sight *a, const struct sight *b)
{
    expect_same(&a->infos[0], &b->infos[0]);
    expect_same(&a->infos[1], &b->infos[1]);
    assert_int_equal(a->deadline, b->deadline);
    assert_int_equal(a->first_deadline, b->first_deadline);
    assert_int_equal(a->next_deadline, b->next_deadline);
    assert_int_equal(a->held_by_77, b->held_by_77);
    assert_same_fields(stats_fields, &a->stats, &b->stats);
}

TEST(key_looks_the_same_after_it_came_back)
{
    for (size_t i = 0; i < 2 * LEN(lives); i++) {
        live(&lives[i / 2], i % 2);
        const struct sight     before = look();
        const struct wq__image image = export("foo");
        expel("foo");
        const wq_item *item = import("foo", &image);
        if (item)
            assert_string_equal(item->key.data, "foo");
        const struct wq__image again = export("foo");
        assert_same_fields(image_fields, &again, &image);
        const struct sight after = look();
        assert_same_sight(&after, &before);
        (void)close_core(NULL);
    }
}

/* A scratch core: the numbers of its keys come from the store. */
TEST(key_looks_the_same_in_another_core)
{
    const struct life others = {
        .script = "add a +3 NEW; get a; add b +4 NEW; add c @50 SCHEDULED"};

    for (size_t i = 0; i < LEN(lives); i++) {
        live(&lives[i], true);
        const struct wq__image image = export("foo");
        const wq_key_info      info = look_at("foo", 1000);
        (void)close_core(NULL);

        live(&others, true);
        const struct wq__tally tally = f.core.tally;
        (void)import("foo", &image);
        const struct wq__image again = export("foo");
        const wq_key_info      info_again = look_at("foo", 1000);
        assert_same_fields(image_fields, &again, &image);
        expect_same(&info_again, &info);
        expel("foo");
        assert_memory_equal(&f.core.tally, &tally, sizeof tally);
        play("len 1; loans 1; waiting 1; records 3; paces 0; dirty 0; "
             "entries 1; reserved 0; levels 2; get b +4; due c 50");
        (void)close_core(NULL);
    }
}

/* ---- order and numbers -------------------------------------------------- */

TEST(imported_READY_key_is_the_last_of_its_priority)
{
    const struct wq__image ready = {.states = WQ__READY, .priority = 2};

    play("add a +2 NEW; add z +1 NEW");
    (void)import("b", &ready);
    (void)import("c", &ready);
    play("add d +2 NEW; get a +2; get b +2; get c +2; get d +2; get z +1");
}

/* L4: the arrival number decides, not the order of imports. */
TEST(imported_deadlines_leave_in_arrival_order)
{
    struct wq__image waits = {.states = WQ__WAITING, .at_ns = 50, .arrival = 7};

    (void)import("second", &waits);
    waits.arrival = 9;
    (void)import("third", &waits);
    waits.arrival = 3;
    (void)import("first", &waits);
    play("add fourth @50 SCHEDULED; pass 50; "
         "get first; get second; get third; get fourth");
}

TEST(import_raises_the_numbers_of_the_core)
{
    const struct wq__image held = {.states = WQ__HELD, .fence = 40};
    const struct wq__image waits = {.states = WQ__WAITING, .arrival = 50};

    (void)import("a", &held);
    (void)import("b", &waits);
    assert_int_equal(wq__core_numbers(&f.core).fence, 40);
    assert_int_equal(wq__core_numbers(&f.core).arrival, 50);
}

TEST(verbs_go_on_from_the_numbers_of_the_store)
{
    wq__core_set_numbers(&f.core,
                         (struct wq__numbers){.fence = 99, .arrival = 199});
    const struct wq__image ready = {.states = WQ__READY};
    (void)import("a", &ready);
    assert_int_equal(get("a")->fence, 100);
    play("add b @50 SCHEDULED");
    assert_int_equal(export("b").arrival, 200);
    const struct wq__numbers last = wq__core_numbers(&f.core);
    assert_int_equal(last.fence, 100);
    assert_int_equal(last.arrival, 200);
}

/* ---- items -------------------------------------------------------------- */

TEST(imported_item_can_be_given_back_and_done)
{
    const struct wq__image held = {
        .states = WQ__HELD, .held_priority = 3, .fence = 8, .held_ns = 10};
    int64_t work = -1;

    wq__core_keep_ages(&f.core);
    wq_item *item = import("foo", &held);
    assert_int_equal(wq__core_latency(item), 0);
    assert_int_equal(wq__core_give_back(&f.core, item, 5, 30), WQ_OK);
    play("states foo HELD DIRTY");
    assert_int_equal(wq__core_done(&f.core, item, 30, &work), WQ_OK);
    assert_int_equal(work, 20);
    play("get foo +5");
}

TEST(item_ends_when_its_key_is_expelled)
{
    int64_t work;

    play("add foo NEW; get foo");
    const wq_item *item = f.held[0];
    expel("foo");
    assert_int_equal(wq__core_done(&f.core, item, 0, &work), WQ_ESTATE);
}

TEST(only_a_HELD_key_has_an_item)
{
    play("add ready NEW; add waits @50 SCHEDULED");
    assert_null(wq__core_find_item(&f.core, wq_str("ready"), hash_of("ready")));
    assert_null(wq__core_find_item(&f.core, wq_str("waits"), hash_of("waits")));
    assert_null(wq__core_find_item(&f.core, wq_str("none"), hash_of("none")));
}

/* ---- edges -------------------------------------------------------------- */

TEST(unknown_key_has_an_empty_image)
{
    static const struct wq__image empty;
    const struct wq__image        image = export("foo");

    assert_same_fields(image_fields, &image, &empty);
    assert_true(wq__image_is_possible(&image));
    assert_null(import("foo", &image));
    play("records 0");
    expel("foo"); /* does nothing */
    assert_int_equal(
        wq__core_import(&f.core, wq_str("foo"), hash_of("foo"), &empty, NULL),
        WQ_OK);
}

/* The bytes of a key need not stay, and may be longer than a record. */
TEST(import_copies_a_long_key)
{
    const struct wq__image held = {.states = WQ__HELD, .fence = 1};
    char                   bytes[1000];

    memset(bytes, 'k', sizeof bytes - 1);
    bytes[sizeof bytes - 1] = '\0';
    const wq_item *item = import(bytes, &held);
    assert_ptr_not_equal(item->key.data, bytes);
    assert_memory_equal(item->key.data, bytes, sizeof bytes);
    expel(bytes);
}

TEST(import_ignores_the_bounds_of_the_queue)
{
    const struct wq__image ready = {.states = WQ__READY};

    play("bound 1; add a NEW");
    assert_int_equal(
        wq__core_import(&f.core, wq_str("b"), hash_of("b"), &ready, NULL),
        WQ_OK);
    expel("b");
}

TEST(images_that_break_a_law_are_impossible)
{
    static const struct wq__image broken[] = {
        {.states = WQ__NAMED | WQ__READY},
        {.states = WQ__REMOVING | WQ__HELD},
        {.states = WQ__READY | 8},
        {.states = 1U << 31},
        {.states = WQ__READY | WQ__HELD},
        {.states = WQ__DIRTY},
        {.states = WQ__READY | WQ__DIRTY},
        {.states = WQ__BACKOFF},
        {.states = WQ__READY | WQ__BACKOFF},
        {.states = WQ__WAITING | WQ__COVERS_ADD},
        {.states = WQ__DEBOUNCED, .throttled = true},
        {.states = WQ__READY | WQ__DEBOUNCED, .throttled = true},
        {.states = WQ__WAITING | WQ__DEBOUNCED},
        {.states = WQ__COOLDOWN},
        {.states = WQ__WAITING | WQ__COOLDOWN, .throttled = true},
        {.states = WQ__READY, .throttled = true},
        {.throttled = true},
        {.states = WQ__WAITING, .throttled = true, .next_cooldown_ns = 1},
        {.states = WQ__COOLDOWN,
         .at_ns = 5,
         .throttled = true,
         .wait_cooldown_ns = 1,
         .cooldown_until_ns = 5},
        {.states = WQ__COOLDOWN,
         .at_ns = 5,
         .throttled = true,
         .cooldown_until_ns = 6},
        {.states = WQ__READY | WQ__COOLDOWN,
         .at_ns = 5,
         .throttled = true,
         .next_cooldown_ns = 1,
         .cooldown_until_ns = 5},
    };

    for (size_t i = 0; i < LEN(broken); i++)
        if (wq__image_is_possible(&broken[i]))
            fail_msg("image %zu is possible", i);
}

/* ---- memory ------------------------------------------------------------- */

enum { SOME = 5 }; /* keys at a time */

/* Some keys come and go, one of them by verbs. Names, priorities and numbers
 * are new each time. */
static void
use_once(int cycle)
{
    char names[SOME][32];

    for (int i = 0; i < SOME; i++) {
        struct wq__image image = lives[(cycle + i) % (int)LEN(lives)].image;
        (void)snprintf(names[i], sizeof names[i], "key %06d", SOME * cycle + i);
        image.priority += cycle % 1000;
        image.wait_priority -= image.wait_priority < 0 ? cycle % 1000 : 0;
        image.arrival += (uint64_t)cycle;
        assert_int_equal(wq__core_import(&f.core, wq_str(names[i]),
                                         hash_of(names[i]), &image, NULL),
                         WQ_OK);
    }
    wq_item *item = NULL;
    if (wq__core_get(&f.core, 60, &item) == WQ_OK && cycle % 2) {
        int64_t work;
        assert_int_equal(wq__core_done(&f.core, item, 70, &work), WQ_OK);
    }
    for (int i = 0; i < SOME; i++)
        wq__core_expel(&f.core, wq_str(names[i]), hash_of(names[i]));
    assert_int_equal(f.core.index.len, 0);
}

TEST(scratch_core_does_not_grow)
{
    enum { FIRST = 1000, CYCLES = 100000 };
    size_t peak = 0;

    for (int i = 0; i < CYCLES; i++) {
        if (i == FIRST)
            peak = f.mem.peak;
        use_once(i);
        if (i % 100 == 0)
            expect_sound();
    }
    print_message("%zu bytes\n", peak);
    assert_int_equal(f.mem.peak, peak);
}

WQ_TESTS(test(image_shows_all_that_is_known),
         test(key_looks_the_same_after_it_came_back),
         test(key_looks_the_same_in_another_core),
         core_test(imported_READY_key_is_the_last_of_its_priority),
         core_test(imported_deadlines_leave_in_arrival_order),
         core_test(import_raises_the_numbers_of_the_core),
         core_test(verbs_go_on_from_the_numbers_of_the_store),
         core_test(imported_item_can_be_given_back_and_done),
         core_test(item_ends_when_its_key_is_expelled),
         core_test(only_a_HELD_key_has_an_item),
         core_test(unknown_key_has_an_empty_image),
         core_test(import_copies_a_long_key),
         core_test(import_ignores_the_bounds_of_the_queue),
         test(images_that_break_a_law_are_impossible),
         core_test(scratch_core_does_not_grow));
